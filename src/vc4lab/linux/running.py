"""A booted Linux from Python: run programs in it, look at its screen and its machine.

linux = Linux.booted()
print(linux.run("uname -a").output)
linux.run(["kmscube"], frames=60)
linux.screen.image.save("cube.png")
"""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING

from vc4lab.linux.boots import BootFailed, LinuxBoot, LinuxPlan, setup_command
from vc4lab.linux.dialogue import Dialogue
from vc4lab.linux.kernels import UnknownTarget, architecture_of
from vc4lab.linux.transfer import LARGEST, get_command, guest_path, pack, put_command, unpack
from vc4lab.scanout.timings import timing_of
from vc4lab.soc.devices.serial.serial import SerialPort
from vc4lab.soc.machine import Machine, Stop
from vc4lab.soc.media.sd_medium import SECTOR, CardFile
from vc4lab.soc.states.state import StateError, load_state
from vc4lab.soc.videocore.edid import MOST_MODES

if TYPE_CHECKING:
    from vc4lab.linux.jobs import Jobs
    from vc4lab.soc.videocore.framebuffer import Screen

PLAN = LinuxPlan()
LIMIT = 120.0
STEP_SECONDS = 0.02
LONGEST_SIDE, HIGHEST_RATE, HIGHEST_CLOCK = 2048, 240, 162_000_000
"""Bounds of a monitor's mode: pixels, pictures a second, pixels a second; vc4.ko shows none beyond."""
INTERRUPT = b"\x03"
_OF_KERNEL = re.compile(r"\[ *\d+\.\d+\] ")
"""How lines of the kernel's log begin."""
SETTING = "stty -echo -onlcr; "


Modes = str | Sequence[tuple[int, int, int]]
"""A monitor's modes, the native one first: width, height and rate of each, or a text such as
"1280x720,800x600@75"."""


def modes_of(modes: Modes) -> list[tuple[int, int, int]]:
    """A monitor's modes. Raises ValueError for those that Linux does not take, and for too many."""
    if isinstance(modes, str):
        from vc4lab.drm.kms.modes import parse_modes

        modes = [one.mode for one in parse_modes(modes)]
    for mode in modes:
        check_mode(*mode)
    if not 1 <= len(modes) <= MOST_MODES:
        raise ValueError(f"a monitor has 1 to {MOST_MODES} modes, not {len(modes)}")
    return list(modes)


def check_mode(width: int, height: int, rate: int) -> None:
    """Whether Linux takes a monitor's mode. Raises ValueError."""
    what = f"a mode of {width}x{height} at {rate} Hz"
    if not (0 < width <= LONGEST_SIDE and 0 < height <= LONGEST_SIDE and 0 < rate <= HIGHEST_RATE):
        raise ValueError(
            f"{what}: sides of 1 to {LONGEST_SIDE} pixels and 1 to {HIGHEST_RATE} Hz are possible"
        )
    clock = 1000 * timing_of(width, height, rate).clock
    if clock > HIGHEST_CLOCK:
        raise ValueError(
            f"{what} has a pixel clock of {clock / 1e6:.1f} MHz, and Linux's driver takes no mode "
            f"of more than {HIGHEST_CLOCK // 1_000_000} MHz"
        )


def connect(machine: Machine, modes: Modes) -> None:
    """Another monitor at a machine's HDMI. Raises ValueError."""
    machine.hardware.connector.plug(modes_of(modes))


@dataclass(frozen=True)
class Finished:
    """How a program ended.

    Attributes
    ----------
    code
        Its exit code; None: it goes on, the pictures that were waited for have come.
    output
        Its output, standard error too.
    """

    code: int | None
    output: str


class LinuxStopped(Exception):  # noqa: N818 - said to the user as it is
    """The machine, or a program, did not come to an end as it should; the text says how."""


class Linux:
    """A machine whose Linux waits for a command.

    Parameters
    ----------
    machine
        It has the state in which the guest waits.
    port
        Its serial line.

    Attributes
    ----------
    machine
        The machine: `machine.v3d`, `machine.frames`, `machine.reporter` and so on.
    """

    def __init__(self, machine: Machine, port: SerialPort) -> None:
        self.machine = machine
        self._port = port
        self._output = bytearray()
        self._dialogue = Dialogue(self._output.extend)
        self._dialogue.ready = True
        port.listener = self._dialogue.feed
        port.attended = True

    @classmethod
    def booted(
        cls,
        plan: LinuxPlan = PLAN,
        *,
        suite: str | None = None,
        show: Callable[[str], None] = lambda _text: None,
    ) -> Linux:
        """From a saved state, which is made first if there is none.

        Raises
        ------
        BootFailed, RootFailed, BootError, OSError
            `vc4lab linux --setup` has not been run, or Linux does not start.
        """
        from vc4lab.drm.setup.places import find_brought

        try:
            architecture = architecture_of(plan.board, plan.architecture)
        except UnknownTarget as error:
            raise BootFailed(str(error)) from None
        brought = find_brought(suite, architecture)
        if brought is None:
            raise BootFailed(f"nothing is installed yet: {setup_command(plan.board)}")
        boot = LinuxBoot(brought, plan)
        boot.prepare(show)
        try:
            return cls._loaded(boot)
        except StateError as error:
            show(f"{boot.state}: {error}; it is made again")
            boot.state.unlink(missing_ok=True)
            boot.prepare(show)
            return cls._loaded(boot)

    @classmethod
    def _loaded(cls, boot: LinuxBoot) -> Linux:
        """From the state that there is. Raises StateError, BootError, OSError."""
        port = SerialPort()
        machine = Machine(boot.kernel.image, serial=port, options=boot.options)
        load_state(machine, boot.state, in_place=True)
        return cls(machine, port)

    @property
    def screen(self) -> Screen:
        """The display."""
        return self.machine.screen

    def jobs(self) -> Jobs:
        """The V3D's jobs from now on: lists, size, time and picture of each."""
        from vc4lab.linux.jobs import Jobs

        return Jobs.of(self.machine)

    def connect(self, *modes: int | str, rate: int = 60) -> None:
        """Another monitor: `connect(800, 600)` or `connect(800, 600, 75)` with this one mode,
        `connect("1280x720,800x600@75")` with these, the native one first.

        Linux's driver looks for it every ten seconds, and where a program asks for the modes; the
        picture stays until a program sets a mode.

        Raises
        ------
        ValueError
            Sides that no display list can have, a rate of less than 1 or more than 240, a pixel
            clock above the 162 MHz of Linux's driver, or more than eight modes.
        TypeError
            Neither a text nor two or three numbers.
        """
        connect(self.machine, _asked(modes, rate))

    def disconnect(self) -> None:
        """Pull the monitor's plug. Linux's driver looks every ten seconds."""
        self.machine.hardware.connector.unplug()

    @property
    def is_running(self) -> bool:
        """Whether a program runs whose end was not waited for."""
        return not self._dialogue.ready

    def run(
        self, program: str | Sequence[str], *, frames: int | None = None, seconds: float = LIMIT
    ) -> Finished:
        """Run a command of the guest's shell, or a program with its arguments.

        frames: come back once so many pictures more were on the screen; the program goes on with
        the next `wait`, and `interrupt` ends it.

        Raises
        ------
        LinuxStopped
            A program runs already; it did not end within so many seconds of guest time; the
            machine has stopped.
        ValueError
            The command is longer than the serial line keeps (65,536 bytes), or has a zero byte.
        """
        if self.is_running:
            raise LinuxStopped("a program is running already; wait for it, or interrupt it")
        command = program if isinstance(program, str) else f"exec {shlex.join(program)}"
        self._output.clear()
        self._dialogue.send(self._port, SETTING + command)
        return self.wait(frames=frames, seconds=seconds)

    def wait(self, *, frames: int | None = None, seconds: float = LIMIT) -> Finished:
        """Go on with the program that runs; as `run`."""
        machine = self.machine
        wanted = None if frames is None else machine.frames.count + frames
        end = machine.seconds + seconds

        def look(count: int) -> None:
            if wanted is not None and count >= wanted:
                machine.end("the pictures have come")

        machine.frames.listeners.append(look)
        try:
            while self.is_running and (wanted is None or machine.frames.count < wanted):
                self._step(end, seconds)
        finally:
            machine.frames.listeners.remove(look)
        return Finished(None if self.is_running else self._dialogue.code, self._text())

    def _step(self, end: float, seconds: float) -> None:
        result = self.machine.run(seconds=STEP_SECONDS)
        if result.reason not in (Stop.SECONDS, Stop.STOPPED):
            raise LinuxStopped(f"{result.message}; the output was: {self._text()}")
        if self.machine.seconds > end:
            text = f"the program did not end within {seconds:g} s of guest time"
            raise LinuxStopped(f"{text}; the output was: {self._text()}")

    def put(
        self,
        source: str | os.PathLike[str],
        path: str | PurePosixPath | None = None,
        *,
        seconds: float = LIMIT,
    ) -> str:
        """Copy a file or folder of the host's into the guest; where it lies there.

        path: its name in the guest, relative ones from /root on; "folder/", or a folder that there
        is: into it; None: the same name in /root. Modes, folders and links are kept, devices left
        out; files belong to the guest's root. It takes guest time, as from an SD card.

        Raises
        ------
        OSError
            The source cannot be read.
        ValueError
            The path names no file.
        LinuxStopped
            A program runs; the guest has no room for it, or has a card in its slot.
        """
        here = Path(source)
        name = Path(os.path.abspath(here)).name
        there = guest_path(path, name)
        with tempfile.TemporaryFile() as file:
            if not str(path or "").endswith("/") and self._is_folder(there):
                there /= name
            pack(here, there.name, file)
            size = file.seek(0, os.SEEK_END)
            self._transfer(file, size, put_command(there.parent), seconds)
        return str(there)

    def get(
        self,
        path: str | PurePosixPath,
        target: str | os.PathLike[str] | None = None,
        *,
        seconds: float = LIMIT,
    ) -> Path:
        """Copy a file or folder of the guest's to the host; where it lies.

        target: its name here, or a folder for it; None: the same name in the working directory.
        A file that is there is replaced.

        Raises
        ------
        OSError
            The target cannot be written.
        ValueError
            The path names no file; what the guest sends is damaged.
        LinuxStopped
            A program runs; there is no such file.
        """
        there = guest_path(path, "")
        here = Path(target) if target is not None else Path(there.name)
        if here.is_dir():
            here = here / there.name
        with tempfile.TemporaryFile() as file:
            self._transfer(file, LARGEST, get_command(there), seconds)
            file.seek(0)
            unpack(file, there.name, here)
        return here

    def _is_folder(self, path: PurePosixPath) -> bool:
        return self.run(["test", "-d", str(path)]).code == 0

    def _transfer(self, file: IO[bytes], size: int, command: str, seconds: float) -> None:
        """Run a command in the guest with a file as the card in its slot. Raises LinuxStopped."""
        slot = self.machine.card_slot
        before = slot.exchange(CardFile(file.fileno(), -(-size // SECTOR), "the transfer"))
        try:
            done = self.run(command, seconds=seconds)
        finally:
            slot.exchange(before)
        if done.code:
            lines = [line for line in done.output.splitlines() if not _OF_KERNEL.match(line)]
            reason = "; ".join(lines) or f"exit code {done.code}"
            raise LinuxStopped(f"the guest cannot copy: {reason}")

    def type(self, text: str | bytes) -> None:
        """Type on the program's terminal; `wait` goes on with it."""
        self._port.type(text)

    def interrupt(self, seconds: float = LIMIT) -> Finished:
        """Ctrl-C for the program that runs; how it ended. Raises LinuxStopped."""
        self.type(INTERRUPT)
        return self.wait(seconds=seconds)

    def _text(self) -> str:
        return self._output.decode("utf-8", "replace").replace("\r\n", "\n")


def _asked(modes: Sequence[int | str], rate: int) -> Modes:
    """Check the modes that `Linux.connect` was given. Raises TypeError."""
    match modes:
        case [str(text)]:
            return text
        case [int(width), int(height)]:
            return [(width, height, rate)]
        case [int(width), int(height), int(own)]:
            return [(width, height, own)]
    raise TypeError(f"a monitor's modes are a text, or width, height and rate, not {modes!r:.60}")

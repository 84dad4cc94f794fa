"""A booted Linux as a saved state: made once, loaded whenever a program is to run.

Below the folder of the suite (`drm/setup/places.py`)::

    linux/root-….cpio    the root (`root.py`)
    linux/….state        a machine that waits for a command

Names have a digest of everything they are made of; the oldest go when there are many.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import logging
import os
import time
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from vc4lab import __version__
from vc4lab.cache.contents import keep_within
from vc4lab.cache.place import cache_folder
from vc4lab.cache.trust import Untrusted, check_way
from vc4lab.diagnostics import Reporter
from vc4lab.drm.setup.places import Brought
from vc4lab.files import PREFIX, why, written_whole
from vc4lab.linux.archive import is_whole
from vc4lab.linux.dialogue import Dialogue
from vc4lab.linux.init import INIT, LISTENER
from vc4lab.linux.kernels import MEMORY, TARGETS, UnknownTarget, architecture_of, command_line, find_kernel
from vc4lab.linux.root import CARD_MODULES, GL_PROGRAMS, MODULES, PROGRAMS, driver_of, has_driver, make_root
from vc4lab.soc.boot.boot_extras import BootExtras
from vc4lab.soc.boot.boot_plan import RAMDISK_NAME
from vc4lab.soc.boot.display_modes import DEFAULT_MODE
from vc4lab.soc.devices.serial.serial import SerialPort
from vc4lab.soc.machine import Machine, Stop
from vc4lab.soc.options import MachineOptions
from vc4lab.soc.states.state import VERSION, save_state
from vc4lab.soc.videocore.edid import edid_block

STEP_SECONDS = 0.05
SETTLE_SECONDS = 0.5
"""Guest time after the first answer, in which drivers come to rest."""
LONGEST_BOOT = 120.0
"""Seconds of guest time."""
KEPT = 6
"""Roots and states in a folder."""
CUT_OFF_SECONDS = 3600
"""A file whose writer has not written for so long has none any more."""
LAST_LINES = 5
PAGE = 4096
POISON_FREE_INITMEM = 0xCC
"""Linux, include/linux/poison.h."""

Show = Callable[[str], None]


class BootFailed(Exception):  # noqa: N818 - said to the user as it is
    """Linux did not come up; the text says why."""


@dataclass(frozen=True)
class LinuxPlan:
    """The choices of what is to be booted.

    Attributes
    ----------
    architecture
        Debian's name of it; None: the usual one of the board.
    cores
        How many cores Linux sees.
    append
        More for the kernel's command line.
    programs
        Programs of the brought packages besides those that are always there.
    files
        Files of the brought packages besides those that programs name, such as what a program
        opens: paths below the folder of the unpacked packages. Libraries that they name come too.
    """

    board: str = "pi3"
    architecture: str | None = None
    cores: int = 1
    append: str = ""
    programs: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


class LinuxBoot:
    """Prepares what a plan needs. Raises BootFailed where something is missing."""

    def __init__(self, brought: Brought, plan: LinuxPlan = LinuxPlan()) -> None:
        try:
            architecture_of(plan.board, plan.architecture or brought.architecture)
        except UnknownTarget as error:
            raise BootFailed(f"{error}; `vc4lab boot` takes other kernels") from None
        self.target = TARGETS[plan.board, brought.architecture]
        self.setup = setup_command(plan.board, brought.architecture)
        kernel = find_kernel(brought)
        if kernel is None:
            raise BootFailed(f"there is no kernel in {brought.tree}/boot: {self.setup}")
        self.brought, self.plan, self.kernel = brought, plan, kernel
        self.folder = brought.folder / "linux"
        lacking = () if has_driver(brought) else GL_PROGRAMS
        for name in plan.programs:
            if name in lacking:
                raise BootFailed(
                    f"{name} needs Mesa's vc4 driver, which Debian does not build for "
                    f"{brought.architecture}; a build of yours goes to {driver_of(brought)}"
                )
        own = [name for name in PROGRAMS if name not in lacking]
        programs = [name for name in own if brought.program(name) is not None]
        self.programs = sorted({*programs, *plan.programs})
        packages = sorted(path.name for path in (brought.folder / "packages").iterdir())
        root = _digest(
            kernel.release, self.programs, packages, MODULES, CARD_MODULES, INIT, LISTENER,
            *(plan.files,) if plan.files else (),
        )  # fmt: skip
        self.root = self.folder / f"root-{root}.cpio"
        memory = MEMORY.get(brought.architecture, "")
        self.line = command_line(self.target.console, plan.cores, plan.append, memory)
        machine = plan.board, VERSION, edid_block(*DEFAULT_MODE), __version__
        state = _digest(root, machine, self.line, POISON_FREE_INITMEM)
        self.state = self.folder / f"{plan.board}-{state}.state"

    @property
    def extras(self) -> BootExtras:
        """The boot's parts besides the kernel. Raises ValueError."""
        return BootExtras(self.line, self.root, self.kernel.tree(self.plan.board))

    @property
    def options(self) -> MachineOptions:
        """The options of a machine into which the saved state is loaded."""
        extras = replace(self.extras, ramdisk=None)  # the state has what was made of it
        return MachineOptions(self.plan.board, extras=extras)

    @property
    def has_state(self) -> bool:
        """Whether there is a state that is whole, and trusted; one that was cut off has lost its
        table."""
        return _is_own(self.state) and zipfile.is_zipfile(self.state)

    def prepare(self, show: Show = lambda _text: None) -> None:
        """Make root and state, unless they are there. Raises BootFailed, RootFailed, OSError;
        Untrusted of these for a folder that others may write to."""
        self.make_root(show)
        if self.has_state:
            _note_use(self.state)
            return
        machine = self.power_on(show)
        show("saving the state")
        clear_ramdisk(machine)
        save_state(machine, self.state, packed=False, private=True)
        del machine
        gc.collect()  # it is circles of objects, with all its RAM
        _drop_oldest(self.folder, "*.state")
        root = cache_folder()
        if root is not None:
            keep_within(root)

    def make_root(self, show: Show = lambda _text: None) -> None:
        """Make the root, unless it is there. Raises RootFailed, OSError."""
        check_way(self.folder)
        if _is_own(self.root) and is_whole(self.root):
            _note_use(self.root)
            return
        self.brought.check_all()
        self.folder.mkdir(mode=0o700, exist_ok=True)
        show("making a root")
        with written_whole(self.root, private=True) as file:
            make_root(self.brought, self.kernel.release, self.programs, file, self.plan.files)
        _drop_oldest(self.folder, "root-*.cpio")

    def power_on(self, show: Show = lambda _text: None) -> Machine:
        """A machine that has come to its listener. Raises BootFailed."""
        lines = [bytearray()]

        def output(data: bytes) -> None:
            if data == b"\n":
                show(_plain(lines[-1]))
                lines.append(bytearray())
            else:
                lines[-1] += data

        dialogue = Dialogue(output)
        port = SerialPort(dialogue.feed)
        port.attended = True
        options = MachineOptions(self.plan.board, extras=self.extras)
        machine = Machine(self.kernel.image, reporter=Reporter(), serial=port, options=options)
        while not dialogue.ready:
            result = machine.run(seconds=STEP_SECONDS)
            if result.reason is not Stop.SECONDS or machine.seconds > LONGEST_BOOT:
                what = result.message if result.reason is not Stop.SECONDS else "no shell came"
                last = "\n".join(_plain(line) for line in lines[-LAST_LINES:])
                raise BootFailed(f"Linux did not start: {what}. Its last lines:\n{last}")
        machine.run(seconds=SETTLE_SECONDS)
        return machine


def clear_ramdisk(machine: Machine) -> None:
    """Clear the pages of the RAM disk that Linux has freed and not used again.

    It fills them with a pattern. In a state they would be 200 MB.
    """
    freed = bytes((POISON_FREE_INITMEM,)) * PAGE
    for piece in machine.plan.pieces:
        if piece.name == RAMDISK_NAME:
            for address in range(piece.address, piece.address + len(piece.data), PAGE):
                if machine.memory.holds(address, freed):
                    machine.memory.fill(address, PAGE)


def setup_command(board: str, architecture: str | None = None) -> str:
    """Return the command that brings the kernel of a board."""
    command = "vc4lab linux --setup" + ("" if board == LinuxPlan.board else f" --board {board}")
    usual = architecture in (None, architecture_of(board))
    return command if usual else f"{command} --arch {architecture}"


def _plain(line: Sequence[int]) -> str:
    text = bytes(line).decode("utf-8", "replace")
    return "".join(c for c in text if c.isprintable())


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]


def _is_own(path: Path) -> bool:
    """Whether there is a file that no one else can have written; else it is made again."""
    try:
        check_way(path)
    except Untrusted as error:
        logging.getLogger("vc4lab").warning("vc4lab: %s; it is made again", error)
        return False
    return path.is_file()


def _note_use(path: Path) -> None:
    """The oldest go; a cache that cannot be written to keeps what it has."""
    with contextlib.suppress(OSError):
        os.utime(path)


def _drop_oldest(folder: Path, pattern: str) -> None:
    with contextlib.suppress(OSError):
        files = sorted(folder.glob(pattern), key=lambda path: path.stat().st_mtime)
        for path in files[:-KEPT]:
            path.unlink()
        for path in folder.glob(f"{PREFIX}*"):  # of a command that was killed while it wrote
            if time.time() - path.stat().st_mtime > CUT_OFF_SECONDS:
                path.unlink()


def reason_of(error: Exception) -> str:
    """A sentence about what `prepare` raised."""
    return f"{error.filename}: {why(error)}" if isinstance(error, OSError) else str(error)

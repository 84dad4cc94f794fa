"""The virtual device as a whole: memory, GPU, display and ioctls, which the supervisor serves."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from vc4lab.diagnostics import Reporter, StrictStop
from vc4lab.diagnostics.unknown import DEFAULT_UNKNOWNS
from vc4lab.drm.cpu_memory.accounts import CpuMemory
from vc4lab.drm.cpu_memory.profiles import Profile, load_profile
from vc4lab.drm.cpu_memory.touched import Looker
from vc4lab.drm.device.drivers import NAMES, Driver, core_of
from vc4lab.drm.device.gpu import Gpu
from vc4lab.drm.device.open_files import OpenFiles
from vc4lab.drm.device.pictures import FinalScreen, Pictures, RunResult
from vc4lab.drm.device.vc4 import Vc4
from vc4lab.drm.events import HandedOver
from vc4lab.drm.input.input_nodes import add_input_nodes
from vc4lab.drm.input.sink import Input
from vc4lab.drm.kernel.hardware import JobReports
from vc4lab.drm.kms.atomic import Atomic
from vc4lab.drm.kms.commits import Commits
from vc4lab.drm.kms.formats import MODIFIERS
from vc4lab.drm.kms.frames import FrameBuffers
from vc4lab.drm.kms.leases import Leases
from vc4lab.drm.kms.legacy import Legacy
from vc4lab.drm.kms.modes import STANDARD, Mode, modes_of
from vc4lab.drm.kms.property_values import PropertyValues
from vc4lab.drm.kms.resources import Resources
from vc4lab.drm.kms.screen import Screen
from vc4lab.drm.nodes.platform_gpu import MAJOR, MINORS, asked_status, platform_gpu, show_plug, zynqmp
from vc4lab.drm.nodes.tree import Node
from vc4lab.drm.objects.files import OpenFile
from vc4lab.drm.objects.gem import Buffers
from vc4lab.drm.objects.memory import DEFAULT_BYTES, GpuMemory
from vc4lab.drm.objects.syncobjs import SyncObjects
from vc4lab.drm.processes.census import mapped_ranges
from vc4lab.drm.setup.programs import choose, in_front_of
from vc4lab.drm.supervisor.supervisor import Supervisor
from vc4lab.drm.supervisor.uevents import card_changed
from vc4lab.drm.uapi.ioctls import table_of
from vc4lab.drm.xlnx.buffers import XlnxBuffers
from vc4lab.drm.xlnx.parameters import Parameters
from vc4lab.options import GpuOptions, chosen
from vc4lab.ranges import PICTURES, check_word
from vc4lab.scanout.composer import picture_of
from vc4lab.scanout.formats import LINEAR

POINTERS = ("relative", "absolute")

if TYPE_CHECKING:
    from PIL.Image import Image

    from vc4lab.diagnostics.unknown import Unknowns


class DrmDevice:
    """A Pi's GPU for unmodified Linux programs.

    Parameters
    ----------
    device
        The display's driver: "vc4", or "xlnx" for that of the ZynqMP, with the V3D beside it.
    params
        Settings of the display's driver, see `vc4lab.drm.xlnx.parameters`.
    cpu_memory
        Keep accounts of what reads and writes of buffers would cost on a board: "ultra96", "pi3",
        a file, or a Profile. Raises BadProfile, OSError.
    modes
        What the connector offers, the preferred one first; also as text, as for `--modes`.
    paced
        Whether pictures appear at the mode's rate; else as fast as they come.
    gpu_memory
        Bytes that programs can have in all.
    engine, threads, unknowns
        See `GpuOptions`.
    gpu
        These three as one object, instead of them.
    trace
        Called with a line for each ioctl.
    input
        Whether there are a keyboard and a pointer (`self.input`).
    pointer
        "relative" as a mouse, which games want, or "absolute" as a tablet: places on the screen.
    """

    def __init__(
        self,
        *,
        device: str = "vc4",
        params: Mapping[str, int] | None = None,
        cpu_memory: str | os.PathLike[str] | Profile | None = None,
        modes: Sequence[Mode] | str = STANDARD,
        paced: bool = True,
        gpu_memory: int = DEFAULT_BYTES,
        engine: str = "jit",
        threads: int | None = None,
        unknowns: Unknowns | None = None,
        reporter: Reporter | None = None,
        trace: Callable[[str], None] | None = None,
        deep: bool = False,
        input: bool = False,
        pointer: str = "relative",
        gpu: GpuOptions | None = None,
    ) -> None:
        from vc4lab.v3d.core import V3D

        if device not in NAMES:
            raise ValueError(f"no device is called {device!r}; the devices are {', '.join(NAMES)}")
        if params and device != "xlnx":
            raise ValueError(f"the device {device} has no parameters")
        check_word("pointer", pointer, POINTERS)
        modes = modes_of(modes)
        self.name = device
        self.reporter = reporter if reporter is not None else Reporter()
        self.memory = GpuMemory(gpu_memory)
        gpu = chosen(gpu, GpuOptions(engine, threads, unknowns or DEFAULT_UNKNOWNS))
        self.v3d = V3D(self.memory.guest, JobReports(self.reporter), options=gpu)
        self.gpu = Gpu(self.v3d, self.reporter)
        self.gpu.on_signalled = self._job_signalled
        self.gpu.on_strict = self._strict_stop
        self.gpu.on_failure = self._keep_failure
        self.strict_stop: StrictStop | None = None
        self._failure: Exception | None = None
        self.syncobjs = SyncObjects()
        gpu_buffers = self.buffers = Buffers(self.memory)
        self.vc4 = Vc4(self.v3d, self.gpu, gpu_buffers, self.syncobjs, self.reporter)
        tree = platform_gpu() if device == "vc4" else zynqmp()
        if device == "xlnx":
            self.parameters = Parameters(tree, params)
            self.buffers = XlnxBuffers(self.memory, self.parameters)
        self.screen = Screen(modes, paced=paced, tiled=device == "vc4")
        self.pictures = Pictures(self.screen, self.memory.guest, self.v3d.unknowns)
        self.screen.on_frame = self._frame_shown
        self.screen.on_leaving = self.pictures.keep
        commits = Commits(self.screen, self.vc4, self.v3d.unknowns)
        modifiers = MODIFIERS if device == "vc4" else (LINEAR,)
        self.frames = FrameBuffers(self.screen, self.buffers, modifiers)
        self.buffers.shown = self.screen.buffers
        self.resources = Resources(self.screen)
        self.resources.before_probe = self._obey_status
        values = PropertyValues(self.screen, self.resources, self.syncobjs)
        legacy = Legacy(self.screen, commits, self.resources, self.frames, values)
        atomic = Atomic(self.screen, commits, values, self.syncobjs)
        self.core = core_of(device, "soc:gpu" if device == "vc4" else "xlnx-drm.0")
        self.core.lease_ended = partial(self._announce, "LEASE", 1)
        leases = Leases(self.screen, self.resources, self.core)
        display = self.frames, self.resources, legacy, atomic, leases
        shows = Driver(self.core, self.buffers, self._strict_stop, self.reporter)
        self.drivers = {"card0": shows, "renderD128": shows}
        """Driver by node."""
        if device == "vc4":
            shows.table = table_of(self.core, gpu_buffers, self.syncobjs, self.vc4, *display)
        else:
            shows.table = table_of(self.core, self.buffers, self.parameters, *display)
            draws = Driver(core_of("vc4", "amba:gpu"), gpu_buffers, self._strict_stop, self.reporter)
            draws.table = table_of(draws.core, gpu_buffers, self.syncobjs, self.vc4)
            self.drivers = {"card0": shows, "card1": draws, "renderD128": draws}
        self.table = shows.table
        shown = self.screen, self.pictures
        leases.released = lambda file: self.files.released(file)
        self.files = OpenFiles(self.drivers, self.memory, self.gpu, self.syncobjs, self._forget, trace, shown)
        self.supervisor = Supervisor(self.files, tree, deep=deep)
        self.files.supervisor = self.supervisor
        self.pictures.wake = self.supervisor.wake
        self.v3d.listeners.keep = self._keep_failure
        heard = self.gpu.job_taken, self.gpu.job_counted, self.gpu.job_done, self.screen.handed_over
        for listeners in (*heard, self.supervisor.call_answered):
            listeners.keep = self._keep_failure
        self.input: Input | None = None
        """Keys and the pointer's movements go in here."""
        if input:
            preferred = modes[0] if modes else STANDARD[0]
            absolute = (preferred.width, preferred.height) if pointer == "absolute" else None
            self.input = self.files.input = Input(self.supervisor.wake, absolute)
            self.files.sources = self.input, *shown
        self.supervisor.inputs = input
        add_input_nodes(tree, self.input.devices if self.input is not None else ())
        for driver in self.drivers.values():
            driver.buffers.finished = lambda: self.gpu.finished
            driver.buffers.let_go = self.vc4.let_go
            driver.core.bury = self.supervisor.let_go
            driver.buffers.bury = partial(self.supervisor.let_go, whole=True)
            driver.buffers.mappings = partial(mapped_ranges, self.memory.inodes)
        self.cpu_memory: CpuMemory | None = None
        """Accounts of reads and writes."""
        if cpu_memory is not None:
            self._keep_accounts(cpu_memory)
        self.stop_after: int | None = None
        """End the programs after so many frames."""
        self.frame_listeners: list[Callable[[int], None]] = []
        """Called with the number of pictures so far while the new one is on the screen."""

    def __enter__(self) -> DrmDevice:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the GPU's thread, and let go of descriptors; no program runs after this."""
        self.gpu.stop()
        self.supervisor.close()

    def run(
        self,
        program: Sequence[str],
        *,
        frames: int | None = None,
        environment: dict[str, str] | None = None,
        arm64: bool | str = True,
        **options: Any,
    ) -> RunResult:
        """Run a program to its end, or until so many frames were shown.

        Where the host has no vc4 driver, programs are run with what `vc4lab drm --setup` brought:
        `arm64=False` declines, a suite's name ("trixie") asks for that one whatever the host has.
        Other options are those of subprocess.Popen.

        The result is its exit code and has the last picture: `run(["kmscube"]).screen.image`.
        Raises NotPossible where programs cannot be supervised, OSError if it cannot be started
        or if others may have written what --setup brought,
        ValueError or TypeError for a number of frames that is none or a program without a name, and
        what a listener raised (`drm/events.py`).
        """
        frames = PICTURES.check_optional(frames)
        if not program or not program[0]:
            raise ValueError("program: a name is needed, and it is empty")
        before = self.screen.frames
        self.stop_after = before + frames if frames is not None else None
        self.screen.is_over = False
        paths = self.supervisor.paths
        with (
            in_front_of(choose(arm64, environment), paths, program, environment) as started,
            self.pictures.served_by_this_thread(),
        ):
            code = self.supervisor.run(started[0], environment=started[1], **options)
        self.vc4.let_go()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        return RunResult(code, FinalScreen(self.pictures.pixels, self.screen.frames - before))

    def connect(self, modes: Sequence[Mode] | str = STANDARD) -> None:
        """Plug a screen in, or another one; its modes as for `--modes`. From any thread.

        Raises ValueError for a text that names no modes, TypeError for what is no mode.
        """
        self._plug(modes_of(modes))

    def disconnect(self) -> None:
        """Pull the screen's plug; what programs have set stays set. From any thread."""
        self._plug(())

    def _plug(self, modes: tuple[Mode, ...]) -> None:
        self.screen.plug(modes)
        self._show_plug()
        self._announce("HOTPLUG", 1, CONNECTOR=self.screen.connector.id)

    def _show_plug(self) -> None:
        with contextlib.suppress(OSError):  # the programs have just ended
            show_plug(self.supervisor.tree, bool(self.screen.offered))

    def _obey_status(self) -> None:
        """Obey from now on what a program has written into the connector's file."""
        asked = asked_status(self.supervisor.tree)
        if asked is None:
            return
        if asked:
            self.screen.forced = None if asked == "detect" else asked.startswith("on")
        self._show_plug()

    def _announce(self, what: str, value: int, **more: int) -> None:
        """Let programs that listen for device events hear of a change of the card."""
        card = self.supervisor.tree.resolve("/sys/class/drm/card0")
        if isinstance(card, Node):
            number = MAJOR, MINORS["card0"]
            self.supervisor.uevents.send(card_changed(card.path, number, {what: value, **more}))

    @property
    def frames_came(self) -> bool:
        """Whether the frames that were asked for have been shown."""
        return self.stop_after is not None and self.screen.frames >= self.stop_after

    def screenshot(self) -> Image | None:
        """Give what the screen shows, or what it showed last; from any thread.

        While a program runs this waits for a picture that the program has handed over but that is
        not visible yet: a second at most.
        """
        pixels = self.pictures.ask()
        return picture_of(pixels) if pixels is not None else None

    # -- events inside -----------------------------------------------------------------------------

    def _keep_accounts(self, profile: str | os.PathLike[str] | Profile) -> None:
        made = profile if isinstance(profile, Profile) else load_profile(profile)
        self.cpu_memory = CpuMemory(
            made, self.memory.guest, Looker(self.memory.inodes), self.reporter,
            is_coherent=self.v3d.unknowns["dma_coherent"] == "yes",
        )  # fmt: skip
        accounts = self.files.cpu_memory = self.cpu_memory
        accounts.frame_counted.keep = self._keep_failure
        self.gpu.job_done.subscribe(lambda event: accounts.job_finished(event.seqno))
        self.supervisor.unmaps = True
        self.screen.handed_over.subscribe(self._handed_over)

    def _handed_over(self, _event: HandedOver) -> None:
        assert self.cpu_memory is not None
        frames = [self.screen.frame_buffer_of(plane) for plane in self.screen.planes]
        self.cpu_memory.frame([frame.buffer.root for frame in frames if frame is not None])

    def _forget(self, file: OpenFile) -> None:
        """The display lets go of what a file has of it."""
        for flip in self.screen.flips:
            if flip.file is file:
                flip.wants_event = False
        self.screen.waiters = [w for w in self.screen.waiters if w.file is not file]
        self.frames.released(file)
        self.resources.released(file)
        self.vc4.let_go()

    def _job_signalled(self) -> None:
        if self.screen.flips or self.supervisor.waiting.asks:  # else it had nothing to do
            self.supervisor.wake()

    def _strict_stop(self, stop: StrictStop) -> None:
        self.strict_stop = self.strict_stop or stop
        self.supervisor.stop()

    def _keep_failure(self, failure: Exception) -> None:
        """A listener has raised, in any thread: the programs are ended, then it is raised."""
        self._failure = self._failure or failure
        self.supervisor.stop()

    def _frame_shown(self) -> None:
        for listener in self.frame_listeners:
            listener(self.screen.frames)
        if self.frames_came:
            self.pictures.keep()
            self.screen.is_over = True
            self.supervisor.stop()

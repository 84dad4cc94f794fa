"""The device as the supervisor sees it: what programs opened of it, and what they ask of that."""

from __future__ import annotations

import errno
import select
import stat
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, field

from vc4lab.drm.cpu_memory.accounts import CpuMemory
from vc4lab.drm.device.drivers import Driver, Trace
from vc4lab.drm.device.gpu import Gpu
from vc4lab.drm.device.pictures import Pictures
from vc4lab.drm.input.devices import EvdevFile
from vc4lab.drm.input.sink import Input
from vc4lab.drm.kms.screen import Screen
from vc4lab.drm.nodes.platform_gpu import MAJOR, MINORS
from vc4lab.drm.objects.core import SYS_ADMIN
from vc4lab.drm.objects.dma_bufs import DmaBuf, DmaBufCalls
from vc4lab.drm.objects.files import OpenFile
from vc4lab.drm.objects.gem_objects import GemObject
from vc4lab.drm.objects.memory import PAGE, GpuMemory
from vc4lab.drm.objects.syncobjs import SyncObjects
from vc4lab.drm.processes.descriptors import Opened
from vc4lab.drm.supervisor.answers import Answer, Caller, Outcome
from vc4lab.drm.supervisor.file_status import FileStatus
from vc4lab.drm.supervisor.supervisor import Supervisor
from vc4lab.drm.uapi.numbers import SYNC_FILE_TYPE
from vc4lab.drm.uapi.results import Refused
from vc4lab.memory import SharedFile

FIRST_INODE = 2000
_READABLE = select.POLLIN | select.POLLRDNORM
_ALWAYS = _READABLE | select.POLLOUT | select.POLLWRNORM
"""Poll's answer for a file that has no word in it, as a sync object's."""


@dataclass
class OpenFiles:
    """Answers what the supervisor asks of the device: `supervisor.answers.Device` describes each method.

    Attributes
    ----------
    drivers
        Driver by node.
    forget
        Called with a file of which the display has to let go.
    sources
        What the supervisor calls in time.
    supervisor
        Set before programs run.
    """

    drivers: dict[str, Driver]
    memory: GpuMemory
    gpu: Gpu
    syncobjs: SyncObjects
    forget: Callable[[OpenFile], None]
    trace: Trace | None
    sources: Sequence[Screen | Pictures | Input]
    input: Input | None = None
    cpu_memory: CpuMemory | None = None
    supervisor: Supervisor = field(init=False)
    dma_bufs: DmaBufCalls = field(init=False)

    def __post_init__(self) -> None:
        self.dma_bufs = DmaBufCalls(self.gpu, self.syncobjs, lambda: self.supervisor.wake())

    def open(self, name: str, caller: Caller) -> OpenFile | EvdevFile:
        if self.input is not None and name in self.input.nodes:
            return self._open_input(self.input, name, caller)
        self.supervisor.let_go()  # who has just ended has the display no more
        file = OpenFile(name, caller.process, caller.name)
        file.is_authenticated |= caller.may(SYS_ADMIN)
        self.drivers[name].core.opened(file)
        if self.trace is not None:
            self.trace(f"{file}: open, file {file.number}")
        return file

    def _open_input(self, source: Input, name: str, caller: Caller) -> EvdevFile:
        file = source.open(name, caller)
        if self.trace is not None:
            self.trace(f"{file}: open")

        def look() -> None:
            if not source.take_written(file):
                self.released(file)

        self.supervisor.watch(file.watched, look)
        return file

    def released(self, opened: Opened) -> None:
        if isinstance(opened, EvdevFile):
            if self.trace is not None:
                self.trace(f"{opened}: closed")
            self.supervisor.forget(opened.watched)
            self.supervisor.descriptors.forget_socket(opened)
            opened.close()
        elif isinstance(opened, DmaBuf):
            opened.owner.dma_buf_released(opened)
        elif isinstance(opened, OpenFile):
            driver = self.drivers[opened.node]
            if opened not in driver.core.files:
                return
            if self.trace is not None:
                self.trace(f"{opened}: closed, file {opened.number}")
            self.forget(opened)
            driver.buffers.released(opened)
            driver.core.released(opened)
            opened.close()
            if not driver.core.files:  # what waited for mappings to go need not wait any more
                driver.buffers.reclaim()
                self.gpu.rest()

    def ioctl(self, opened: Opened, caller: Caller, request: int, argument: int) -> Answer:
        if type(opened) is OpenFile:
            return self.drivers[opened.node].ioctl(opened, caller, request, argument, self.trace)
        if isinstance(opened, DmaBuf):
            return self.dma_bufs.ioctl(opened, caller, request, argument)
        if isinstance(opened, EvdevFile) and self.input is not None:
            return self.input.ioctl(opened, caller, request, argument)
        raise Refused(errno.ENOTTY)

    def plain_ioctl(self, caller: Caller, number: int, request: int, argument: int) -> Answer:
        """A sync file's ioctl; others are the kernel's."""
        if request >> 8 & 0xFF == SYNC_FILE_TYPE:
            result = self.syncobjs.file_ioctl(caller, number, request, argument)
            if result is not None:
                return result
        return Outcome.PROCEED

    def unmapping(self, caller: Caller, address: int, size: int) -> None:
        """A program unmaps something: what it touched there is counted now."""
        if self.cpu_memory is not None:
            self.cpu_memory.unmapping(caller.process, size, address)

    @property
    def memories(self) -> Container[int]:
        return self.memory.inodes

    def check_mapping(self, caller: Caller, opened: Opened, offset: int, size: int) -> tuple[int, SharedFile]:
        """Only the file's own buffers can be mapped; a dma-buf from its beginning on."""
        size = -(-size // PAGE) * PAGE
        place, target = self._find_mapping(opened, offset, size)
        target.was_mapped = True
        if self.cpu_memory is not None and place == offset:
            process = caller.process
            self.cpu_memory.mapped(process, caller.other(process).name, target.root, size)
        return place, self.memory.files[target.root.address]

    def _find_mapping(self, opened: Opened, offset: int, size: int) -> tuple[int, GemObject]:
        """Find the place of a mapping in the memory file, and its buffer. Raises Refused."""
        if isinstance(opened, OpenFile):
            target = self.drivers[opened.node].buffers.find_mapping(opened, offset, size)
            if target is None or target.private or not target.is_needed:
                raise Refused(errno.EINVAL, f"no buffer of the file at 0x{offset:x}")
            return offset, target
        if not isinstance(opened, DmaBuf):
            raise Refused(errno.ENODEV)
        target = opened.object
        if offset < target.address:  # as the program sees it; later as it was changed
            offset += target.address
        if not target.address <= offset <= offset + size <= target.address + target.size:
            raise Refused(errno.EINVAL, "beyond the end of the dma-buf")
        return target.address if target.faults_from_start else offset, target

    def events_kept(self) -> Iterable[int]:
        """Sync files whose fences are not done."""
        return self.syncobjs.files

    def forget_event(self, number: int) -> None:
        self.syncobjs.files.forget(number)

    def next_event(self) -> float | None:
        first = None
        for source in self.sources:
            moment = source.next_event()
            if moment is not None and (first is None or moment < first):
                first = moment
        return first

    def tick(self, now: float) -> None:
        for source in self.sources:
            source.tick(now)

    # -- what the kernel reports of a descriptor ---------------------------------------------------

    def readiness(self, opened: Opened) -> int:
        if isinstance(opened, OpenFile):
            return _READABLE if opened.events else 0
        if isinstance(opened, DmaBuf):
            return opened.readiness(self.gpu.finished)
        return _ALWAYS

    def draws_shared(self) -> bool:
        finished = self.gpu.finished
        exports = (driver.buffers.exports for driver in self.drivers.values())
        return any(
            target.seqno > finished or (target.fences and target.attached(writes=False))
            for shared in exports
            for target in shared
        )

    def take_events(self, opened: Opened, room: int) -> bytes:
        return opened.take_events(room) if isinstance(opened, OpenFile) else b""

    def put_back_events(self, opened: Opened, taken: bytes) -> None:
        if isinstance(opened, OpenFile):
            opened.put_back(taken)

    def event_descriptor(self, opened: Opened) -> int | None:
        if isinstance(opened, DmaBuf):
            return opened.stand_in(self.gpu)
        return opened.event_descriptor if isinstance(opened, OpenFile) else None

    def status(self, opened: Opened) -> FileStatus:
        if isinstance(opened, OpenFile):
            node = self.supervisor.tree.find(self.name_of(opened))
            seen = (node.mode, node.owner) if node is not None else ()
            return FileStatus.character_device(MAJOR, MINORS[opened.node], *seen)
        if isinstance(opened, EvdevFile):
            return FileStatus.character_device(*opened.device.numbers)
        size = self.size_of(opened) or 0
        return FileStatus(stat.S_IFREG | 0o600, FIRST_INODE + id(opened) % (1 << 40), size)

    def size_of(self, opened: Opened) -> int | None:
        return opened.object.size if isinstance(opened, DmaBuf) else None

    def name_of(self, opened: Opened) -> str:
        if isinstance(opened, OpenFile):
            return f"/dev/dri/{opened.node}"
        if isinstance(opened, EvdevFile):
            return f"/dev/input/{opened.device.node}"
        return "/dmabuf:" if isinstance(opened, DmaBuf) else "anon_inode:syncobj_file"

"""What the kernel reports about device descriptors: pending events, fstat, links in /proc."""

from __future__ import annotations

import stat

from vc4lab.drm.device.files import OpenFile
from vc4lab.drm.device.gem_objects import DmaBuf
from vc4lab.drm.input.clients import EvdevFile
from vc4lab.drm.nodes.platform_gpu import MAJOR, MINORS
from vc4lab.drm.supervisor.descriptors import Opened
from vc4lab.drm.supervisor.file_status import FileStatus

FIRST_INODE = 2000


class Descriptions:
    """The part of the device that depends on nothing but what a descriptor stands for."""

    def is_readable(self, opened: Opened) -> bool:
        """Whether events wait."""
        return isinstance(opened, OpenFile) and bool(opened.events)

    def take_events(self, opened: Opened, room: int) -> bytes:
        """Events for read()."""
        return opened.take_events(room) if isinstance(opened, OpenFile) else b""

    def event_descriptor(self, opened: Opened) -> int | None:
        """For epoll."""
        return opened.event_descriptor if isinstance(opened, OpenFile) else None

    def status(self, opened: Opened) -> FileStatus:
        """fstat."""
        if isinstance(opened, OpenFile):
            return FileStatus.character_device(MAJOR, MINORS[opened.node])
        if isinstance(opened, EvdevFile):
            return FileStatus.character_device(*opened.device.numbers)
        size = self.size_of(opened) or 0
        return FileStatus(stat.S_IFREG | 0o600, FIRST_INODE + id(opened) % (1 << 40), size)

    def size_of(self, opened: Opened) -> int | None:
        """Bytes of a dma-buf."""
        return opened.object.size if isinstance(opened, DmaBuf) else None

    def name_of(self, opened: Opened) -> str:
        """What a link in /proc shows."""
        if isinstance(opened, OpenFile):
            return f"/dev/dri/{opened.node}"
        if isinstance(opened, EvdevFile):
            return f"/dev/input/{opened.device.node}"
        return "/dmabuf:" if isinstance(opened, DmaBuf) else "anon_inode:syncobj_file"

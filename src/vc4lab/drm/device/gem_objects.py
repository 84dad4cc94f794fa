"""Buffers, those of another driver, and buffers as descriptors."""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING, Protocol

from vc4lab.drm.cpu_memory.profiles import Attribute
from vc4lab.drm.supervisor.descriptors import Opened, kept
from vc4lab.drm.uapi.submit import Buffer

if TYPE_CHECKING:
    from vc4lab.drm.kernel.shaders import Stream

SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
"""Of a dma-buf's own file: no more seals, no shrinking, no growing, no writing."""


class Owner(Protocol):
    """The driver that made a buffer, as its descriptors and importers need it (`Buffers`)."""

    def hold(self, target: GemObject) -> GemObject:
        """One more holder."""

    def drop(self, target: GemObject) -> None:
        """One holder less."""

    def export(self, target: GemObject) -> DmaBuf:
        """The buffer as a descriptor."""

    def dma_buf_released(self, buffer: DmaBuf) -> None:
        """The last descriptor and mapping are gone."""


class GemObject:
    """A buffer. `holders` counts handles, frame buffers, dma-bufs and jobs that need it."""

    was_mapped: bool = False
    seqno: int = 0
    """The last job that uses it."""
    write_seqno: int = 0
    """The last job that draws into it."""
    faults_from_start = False
    """Whether a mapping of its dma-buf shows its beginning whatever the offset."""

    def __init__(
        self, address: int, size: int, asked: int, kind: str, *, private: bool = False
    ) -> None:
        self.address = address
        self.size = size
        self.asked = asked
        """Bytes that were asked for, before rounding to pages."""
        self.kind = kind
        self.private = private
        self.label = ""
        self.modifier = 0
        self.holders = 0
        self.name = 0
        """Global name (FLINK), 0 for none."""
        self.is_shared = False
        """Whether it ever was a dma-buf: then it is not purged."""
        self.exported: DmaBuf | None = None
        self.is_needed = True
        self.was_purged = False
        self.stream: Stream | None = None
        """What a shader takes, found when its buffer was made."""
        self.submit = Buffer(0, address, size, shader=private)
        """As jobs see it."""

    @property
    def root(self) -> GemObject:
        """The object whose memory it is."""
        return self

    @property
    def attribute(self) -> Attribute:
        """How programs' mappings of it go through the processor's caches."""
        return Attribute.WRITE_COMBINED

    def __str__(self) -> str:
        label = f" {self.label!r}" if self.label else ""
        return f"{self.kind}{label} 0x{self.address:x}+0x{self.size:x}"


class ImportedObject(GemObject):
    """Another driver's buffer, seen by this one: the memory stays the exporter's."""

    def __init__(self, exporter: GemObject, owner: Owner) -> None:
        super().__init__(exporter.address, exporter.size, exporter.size, "imported")
        self.exporter = owner.hold(exporter)
        self.owner = owner

    @property
    def root(self) -> GemObject:
        return self.exporter

    @property
    def was_mapped(self) -> bool:
        return self.exporter.was_mapped

    @was_mapped.setter
    def was_mapped(self, value: bool) -> None:
        self.exporter.was_mapped = value

    @property
    def seqno(self) -> int:
        return self.exporter.seqno

    @seqno.setter
    def seqno(self, value: int) -> None:
        self.exporter.seqno = value

    @property
    def write_seqno(self) -> int:
        return self.exporter.write_seqno

    @write_seqno.setter
    def write_seqno(self, value: int) -> None:
        self.exporter.write_seqno = value

    @property
    def attribute(self) -> Attribute:
        return self.exporter.attribute


class DmaBuf(Opened):
    """A buffer as a descriptor."""

    def __init__(self, target: GemObject, owner: Owner) -> None:
        self.object = target
        self.owner = owner
        """Of the driver that made the buffer."""
        self.pieces = [(target.address, target.size)]
        """Its scatter table: where it lies in memory."""
        file = kept(os.memfd_create("vc4lab-dmabuf", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING))
        os.ftruncate(file, target.size)
        # it only has a size; what is mapped is the memory
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, SEALS)
        self.file: int | None = file

    def close(self) -> None:
        """Let go of the host's descriptor."""
        if self.file is not None:
            os.close(self.file)
            self.file = None

"""A buffer object."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vc4lab.drm.cpu_memory.profiles import Attribute
from vc4lab.drm.uapi.submit import Buffer

if TYPE_CHECKING:
    from vc4lab.drm.kernel.shaders import Stream
    from vc4lab.drm.objects.fences import Fence


class GemObject:
    """A buffer. `holders` counts handles, frame buffers, dma-bufs and jobs that need it."""

    was_mapped: bool = False
    seqno: int = 0
    """The last job that uses it."""
    write_seqno: int = 0
    """The last job that draws into it."""
    fences: tuple[tuple[Fence, bool], ...] = ()
    """Those that programs have attached to it; whether each stands for writing."""
    faults_from_start = False
    """Whether a mapping of its dma-buf shows its beginning whatever the offset."""

    def __init__(self, address: int, size: int, asked: int, kind: str, *, private: bool = False) -> None:
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
        self.is_needed = True
        self.was_purged = False
        self.stream: Stream | None = None
        """The words that a shader takes, found when its buffer was made."""
        self.submit = Buffer(0, address, size, shader=private)
        """As jobs see it."""

    def attached(self, *, writes: bool) -> list[Fence]:
        """Fences of programs that are not done, those of writing or all; from any thread."""
        return [fence for fence, own in self.fences if not fence.is_done and (own or not writes)]

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

"""Dumb buffers of the display driver: scan-out or not, cached by the processor or not."""

from __future__ import annotations

from vc4lab.drm.cpu_memory.profiles import Attribute
from vc4lab.drm.objects.dma_bufs import DmaBuf
from vc4lab.drm.objects.files import OpenFile
from vc4lab.drm.objects.gem import Buffers, ImportedObject, check_dumb
from vc4lab.drm.objects.gem_objects import GemObject
from vc4lab.drm.objects.memory import GpuMemory
from vc4lab.drm.uapi.ioctls import Call
from vc4lab.drm.uapi.results import invalid
from vc4lab.drm.xlnx.parameters import ALIGNMENT, CACHE_DEFAULT, SCANOUT_ALIGNMENT, Parameters

SCANOUT = 1
CACHE_MASK = 6
CACHE_BY_DEFAULT, CACHE_UNNAMED, CACHE_OFF, CACHE_ON = 0, 2, 4, 6
_U32 = (1 << 32) - 1


def is_cached(flags: int, default_mode: int) -> bool:
    """Whether the processor caches a dumb buffer of these flags."""
    chosen = flags & CACHE_MASK
    return chosen == CACHE_ON or (chosen == CACHE_BY_DEFAULT and default_mode != 0)


def align(value: int, unit: int) -> int:
    """The kernel's ALIGN of 32-bit numbers: rounds up if `unit` is a power of two."""
    return (value + unit - 1) & ~(unit - 1) & _U32


def pitch_of(width: int, bits: int, flags: int, alignment: int, asked: int = 0) -> int:
    """Bytes from line to line; `asked` is what the driver finds in its argument."""
    unit = SCANOUT_ALIGNMENT if flags & SCANOUT or not alignment else alignment
    least = -(-width * bits // 8)
    pitch = asked
    if not pitch or pitch & (unit - 1):
        pitch = align(least, unit)
    return max(pitch, least)


class XlnxObject(GemObject):
    """A buffer that this driver made."""

    faults_from_start = True  # its fault handler counts from the start of the mapping

    def __init__(self, address: int, size: int, asked: int, kind: str) -> None:
        super().__init__(address, size, asked, kind)
        self.is_cached = False
        self.driver_size = size
        """The size that the driver notes beside the object's."""
        self.kernel_address = address

    @property
    def attribute(self) -> Attribute:
        return Attribute.CACHED if self.is_cached else Attribute.WRITE_COMBINED


class XlnxImport(ImportedObject):
    """Another driver's buffer: the driver notes neither a size nor that it is cached."""

    is_cached = False
    driver_size = 0

    def __init__(self, buffer: DmaBuf) -> None:
        super().__init__(buffer.object, buffer.owner)
        self.table = list(buffer.pieces)
        """The exporter's scatter table."""
        self.address = self.table[0][0]
        self.kernel_address = self.address  # mapped into the kernel at import


class XlnxBuffers(Buffers):
    """The driver's buffers."""

    def __init__(self, memory: GpuMemory, parameters: Parameters) -> None:
        super().__init__(memory)
        self.parameters = parameters

    def make(self, address: int, size: int, asked: int, kind: str, private: bool) -> GemObject:
        return XlnxObject(address, size, asked, kind)

    def make_import(self, buffer: DmaBuf) -> ImportedObject:
        return XlnxImport(buffer)

    def create_dumb(self, call: Call) -> None:
        """Linux clears pitch and size before it asks the driver: what was asked is not seen."""
        a = call.args
        check_dumb(a)
        pitch = pitch_of(a.width, a.bpp, a.flags, self.parameters[ALIGNMENT])
        size = pitch * a.height
        kind = "scan-out" if a.flags & SCANOUT else "dumb"
        target = self.create(size, kind)
        assert isinstance(target, XlnxObject)
        target.is_cached = is_cached(a.flags, self.parameters[CACHE_DEFAULT])
        a.handle, a.pitch, a.size = self.add_handle(call.file, target), pitch, size

    def map_dumb(self, call: Call) -> None:
        """Linux gives no offset for imported buffers; a mapping of one goes to its exporter."""
        target = self.lookup(call.file, call.args.handle)
        if isinstance(target, ImportedObject):
            raise invalid("an imported buffer is mapped through its exporter")
        call.args.offset = self.offset_of(target)

    def find_mapping(self, file: OpenFile, offset: int, size: int) -> GemObject | None:
        """Only from a buffer's beginning on."""
        found = super().find_mapping(file, offset, size)
        return found if found is not None and found.address == offset else None

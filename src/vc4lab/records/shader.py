"""Shader records: what the shader state records (64, 65, 66) point to.

A GL record names three programs with their uniforms and up to eight attribute arrays; an NV record
a fragment program and vertices that are shaded already; a VG record only a fragment program.
Source: AG100-R pp. 79-81, Mesa's vc4 packets, recorded records of drivers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from vc4lab.bits import Bits, Layout
from vc4lab.records.payload import Address, Flags
from vc4lab.records.states import GlShaderState

ALIGNMENT = 16
MAX_ATTRIBUTES = 8
GL_FIXED_SIZE = 36
ATTRIBUTE_SIZE = 8
PSE_WORDS, CLIP_HEADER_WORDS = 3, 4
"""Words of a shaded vertex: Ys:Xs, Zs, 1/Wc before point size and varyings; Xc, Yc, Zc, Wc before all."""
EXTENDED_STRIDES = GL_FIXED_SIZE + MAX_ATTRIBUTES * ATTRIBUTE_SIZE
"""Byte offset of the extended strides, 4 bytes an array."""

Reader = Callable[[int, int], bytes]


class GlShaderRecord(Layout, width=8 * GL_FIXED_SIZE):
    """The fixed part of a GL shader record. Numbers of uniforms are ignored by the hardware."""

    fs_single_threaded = Bits(0)
    point_size = Bits(1, doc="shaded vertices carry a point size")
    clipping = Bits(2)
    fs_uniform_count = Bits(23, 16)
    fs_varyings = Bits(31, 24)
    fs_code = Address(63, 32)
    fs_uniforms = Address(95, 64)
    vs_uniform_count = Bits(111, 96)
    vs_attributes = Flags(119, 112, doc="bit n: array n is loaded")
    vs_size = Bits(127, 120, doc="total bytes of attributes per vertex")
    vs_code = Address(159, 128)
    vs_uniforms = Address(191, 160)
    cs_uniform_count = Bits(207, 192)
    cs_attributes = Flags(215, 208, doc="bit n: array n is loaded")
    cs_size = Bits(223, 216, doc="total bytes of attributes per vertex")
    cs_code = Address(255, 224)
    cs_uniforms = Address(287, 256)


class AttributeRecord(Layout, width=8 * ATTRIBUTE_SIZE):
    """One attribute array of a GL shader record."""

    address = Address(31, 0)
    size_minus_1 = Bits(39, 32)
    stride = Bits(47, 40)
    vs_offset = Bits(55, 48, doc="bytes, in the vertex shader's VPM column")
    cs_offset = Bits(63, 56, doc="bytes, in the coordinate shader's VPM column")


class WideStrideRecord(Layout, width=32):
    """The upper bits of the stride of an array of an extended record."""

    ignored = Bits(7, 0, doc="these bits are those of the array's record")
    upper = Bits(31, 8, doc="in units of 256 bytes")


class NvShaderRecord(Layout, width=128):
    """Fragment program and vertices shaded beforehand."""

    single_threaded = Bits(0)
    point_size = Bits(1, doc="vertices carry a point size")
    clipping = Bits(2)
    clip_header = Bits(3, doc="vertices begin with Xc, Yc, Zc, Wc")
    stride = Bits(15, 8, doc="bytes of a vertex")
    uniform_count = Bits(23, 16)
    varyings = Bits(31, 24)
    code = Address(63, 32)
    uniforms = Address(95, 64)
    vertices = Address(127, 96)


class VgShaderRecord(Layout, width=96):
    """Fragment program for VG primitives."""

    single_threaded = Bits(0)
    uniform_count = Bits(23, 16)
    varyings = Bits(31, 24)
    code = Address(63, 32)
    uniforms = Address(95, 64)


@dataclass(frozen=True)
class Attribute:
    """One attribute array: `size` bytes per vertex, `stride` bytes apart (0: always the same)."""

    address: int
    size: int
    stride: int
    vs_offset: int
    cs_offset: int


@dataclass(frozen=True)
class GlShader:
    """A whole GL shader record."""

    record: GlShaderRecord
    attributes: tuple[Attribute, ...]
    extended: bool = False

    def to_bytes(self) -> bytes:
        """The record's bytes. Raises ValueError for a stride or size that does not fit."""
        arrays = [
            AttributeRecord.make(
                address=a.address,
                size_minus_1=a.size - 1,
                stride=a.stride & 0xFF if self.extended else a.stride,
                vs_offset=a.vs_offset,
                cs_offset=a.cs_offset,
            ).to_bytes()
            for a in self.attributes
        ]
        data = self.record.to_bytes() + b"".join(arrays)
        if self.extended:
            data = data.ljust(EXTENDED_STRIDES, b"\0")
            data += b"".join((a.stride & ~0xFF).to_bytes(4, "little") for a in self.attributes)
        return data

    def text(self) -> str:
        """Several lines for people."""
        lines = [self.record.text()]
        for number, a in enumerate(self.attributes):
            lines.append(
                f"attribute {number}: address=0x{a.address:08x} size={a.size} stride={a.stride} "
                f"vs_offset={a.vs_offset} cs_offset={a.cs_offset}"
            )
        return "\n".join(lines)


def attribute_count(state: GlShaderState) -> int:
    """Number of attribute arrays that record 64 announces."""
    if state.extended or state.attributes == 0:
        return MAX_ATTRIBUTES
    return int(state.attributes)


def gl_record_size(count: int, extended: bool) -> int:
    """Bytes of a GL shader record with `count` arrays, as Linux sizes it (extended: 100 + 4n)."""
    return EXTENDED_STRIDES + 4 * count if extended else GL_FIXED_SIZE + ATTRIBUTE_SIZE * count


def parse_gl(read: Reader, address: int, count: int, extended: bool = False) -> GlShader:
    """The GL shader record at `address` with `count` arrays. Missing bytes count as 0."""
    size = gl_record_size(count, extended)
    data = read(address, size).ljust(size, b"\0")
    arrays = []
    for number in range(count):
        start = GL_FIXED_SIZE + number * ATTRIBUTE_SIZE
        upper = EXTENDED_STRIDES + 4 * number
        arrays.append(
            _attribute(data[start : start + ATTRIBUTE_SIZE], data[upper : upper + 4] if extended else b"")
        )
    return GlShader(GlShaderRecord.from_bytes(data), tuple(arrays), extended)


@lru_cache(maxsize=1024)
def _attribute(data: bytes, wide_stride: bytes) -> Attribute:
    """Cached: the same few arrays recur."""
    array = AttributeRecord.from_bytes(data)
    stride = array.stride | int.from_bytes(wide_stride, "little") & ~0xFF
    return Attribute(array.address, array.size_minus_1 + 1, stride, array.vs_offset, array.cs_offset)


def parse_gl_state(read: Reader, state: GlShaderState) -> GlShader:
    """The GL shader record that a record 64 points to."""
    return parse_gl(read, state.address, attribute_count(state), bool(state.extended))


def parse_nv(read: Reader, address: int) -> NvShaderRecord:
    """The NV shader record at `address`. Missing bytes count as 0."""
    return NvShaderRecord.from_bytes(read(address, 16).ljust(16, b"\0"))


def parse_vg(read: Reader, address: int) -> VgShaderRecord:
    """The VG shader record at `address`. Missing bytes count as 0."""
    return VgShaderRecord.from_bytes(read(address, 12).ljust(12, b"\0"))

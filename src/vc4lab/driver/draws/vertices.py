"""Attribute arrays and shader records: where a draw's vertices come from."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from vc4lab.driver.compiler.interface import VERTEX_NUMBER
from vc4lab.mesa.protocol.formats import Format, layout_of
from vc4lab.mesa.store.resources import Refused
from vc4lab.records.shader import (
    ATTRIBUTE_SIZE,
    GL_FIXED_SIZE,
    MAX_ATTRIBUTES,
    Attribute,
    AttributeRecord,
    GlShader,
    GlShaderRecord,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vc4lab.driver.compiler.interface import AttributeSlot
    from vc4lab.driver.draws.primitives import Batch
    from vc4lab.driver.draws.programs import PlacedFragment, PlacedVertex
    from vc4lab.driver.gpu.memory import GpuMemory
    from vc4lab.mesa.state.pipe import PipeState

WORD, WORD_BYTES = 1 << 32, 4
SINGLE = {
    int(Format[f"R64{more}_FLOAT"]): int(Format[f"R32{more.replace('64', '32')}_FLOAT"])
    for more in ("", "G64", "G64B64", "G64B64A64")
}
"""Formats of 64-bit numbers, and those that programs get in their place."""
ZEROS = 64
"""Bytes, for vertex inputs that have no buffer."""
FIRST_NUMBERS, MOST_NUMBERS = 1 << 12, 1 << 20
"""Lengths of the table of vertices' numbers; draws of higher ones have a list of their own."""
MAX_STRIDE = 255
"""Bytes; larger ones need the extended form of the shader record."""


class Source(NamedTuple):
    """An attribute in its buffer: bytes from the buffer's begin, from vertex to vertex."""

    resource: Any
    offset: int
    stride: int
    divisor: int
    size: int
    """Bytes that are read of a vertex; a slot's are whole words."""
    is_double: bool = False
    """Whether its numbers have 64 bits, which the VPM's loads cannot take: they are made 32."""


def sources(state: PipeState, slots: tuple[AttributeSlot, ...]) -> list[Source | None]:
    """Find each slot's attribute; None: nowhere. Raises Refused."""
    elements = state.vertex_elements.elements if state.vertex_elements is not None else ()
    found: list[Source | None] = []
    for slot in slots:
        if slot.element < 0:
            found.append(None)
            continue
        if slot.element >= len(elements):
            raise Refused("GL-015", f"the vertex shader reads IN[{slot.element}], which is not set")
        element = elements[slot.element]
        buffers = state.vertex_buffers
        index = element.vertex_buffer_index
        bound = buffers[index] if index < len(buffers) else None
        if bound is None:
            raise Refused("GL-015", f"vertex buffer {index} is not bound")
        resource: Any = bound.resource
        if not resource.is_buffer:
            raise Refused("GL-005", f"{resource} is no buffer of vertices")
        # Mesa subtracts what a draw does not read: offsets wrap.
        offset = (bound.state.offset + element.src_offset) % WORD
        format_number = int(element.src_format)
        layout = layout_of(format_number)
        is_double = format_number in SINGLE
        size = slot.size if layout is None else min(slot.size, layout.block_bytes)
        stride, divisor = bound.state.stride, element.instance_divisor
        size *= 1 + is_double
        found.append(Source(resource, offset, stride, divisor, size, is_double))
    return found


class Instance(NamedTuple):
    """One instance of a draw.

    number: from 0, and what attributes of instances count by their divisor. first: the draw's first
    one, which is added to that (ARB_base_instance).
    """

    number: int
    first: int


class FixedArrays:
    """Arrays for vertex inputs that have no buffer: zeros, or the vertices' numbers."""

    def __init__(self, memory: GpuMemory) -> None:
        self._memory = memory
        self._zeros = memory.store(bytes(ZEROS))
        self._numbers = self._count = 0

    def place(self, slot: AttributeSlot, batch: Batch) -> tuple[int, int]:
        """Address and stride of an array. Raises OutOfMemory."""
        if slot.element != VERTEX_NUMBER:
            return self._zeros, 0
        if batch.picked is not None:
            return self._memory.keep(batch.picked.astype(np.uint32).tobytes()), WORD_BYTES
        if batch.lowest >= 0 and batch.highest < MOST_NUMBERS:
            first = self._table(batch.highest + 1)
        else:
            numbers = np.arange(batch.lowest, batch.highest + 1)
            first = self._memory.keep(numbers.astype(np.uint32).tobytes())
            first -= batch.lowest * WORD_BYTES
        return (first + batch.base * WORD_BYTES) % WORD, WORD_BYTES

    @property
    def numbers(self) -> tuple[int, int]:
        """Address and bytes of the numbers that there are."""
        return self._numbers, self._count * WORD_BYTES

    def _table(self, count: int) -> int:
        """The address of the numbers from 0 on, at least so many."""
        if count > self._count:
            self._count = max(FIRST_NUMBERS, 1 << (count - 1).bit_length())
            self._numbers = self._memory.store(np.arange(self._count, dtype=np.uint32).tobytes())
        return self._numbers


def attributes(
    slots: tuple[AttributeSlot, ...],
    arrays: list[Source | None],
    batch: Batch,
    instance: Instance,
    memory: GpuMemory,
    fixed: FixedArrays,
) -> list[tuple[int, int]]:
    """Address and stride of each array. Raises Refused if a vertex is outside of its buffer.

    fixed: for slots that have no source.
    """
    made = []
    for slot, source in zip(slots, arrays, strict=True):
        if source is None:
            made.append(fixed.place(slot, batch))
        elif source.divisor:
            number = instance.first + instance.number // source.divisor
            first = _inside(source, slot, number, number)
            if source.is_double:
                made.append((_kept(source, slot, np.array([number]), memory)[0], 0))
            else:
                made.append((source.resource.address + first, 0))
        else:
            first = _inside(source, slot, batch.lowest, batch.highest)
            if batch.picked is not None:
                made.append(_kept(source, slot, batch.picked, memory))
            elif source.is_double:
                numbers = np.arange(batch.lowest, batch.highest + 1)
                address, stride = _kept(source, slot, numbers, memory)
                made.append(((address + (batch.base - batch.lowest) * stride) % WORD, stride))
            else:
                first += (batch.base - batch.lowest) * source.stride
                made.append(((source.resource.address + first) % WORD, source.stride))
    return made


def _inside(source: Source, slot: AttributeSlot, lowest: int, highest: int) -> int:
    """Byte offset of the lowest vertex. Raises Refused if not all are in the buffer."""
    first = (source.offset + lowest * source.stride) % WORD
    last = first + (highest - lowest) * source.stride + source.size
    if last > source.resource.size:
        raise Refused(
            "GL-005",
            f"{source.resource} ends before vertex {highest} of input {slot.element} "
            f"(byte {last} of {source.resource.size})",
        )
    return first


def _kept(source: Source, slot: AttributeSlot, numbers: NDArray[Any], memory: GpuMemory) -> tuple[int, int]:
    """Copies of some vertices: address and stride."""
    data = source.resource.bytes_of(0, source.resource.size)
    starts = (source.offset + numbers * source.stride) % WORD
    rows = data[starts[:, None] + np.arange(source.size)]
    if source.is_double:
        rows = rows.view("<f8").astype("<f4").view(np.uint8)
    stride = -(-slot.size // 4) * 4
    padded = np.zeros((len(rows), stride), np.uint8)
    padded[:, : rows.shape[1]] = rows
    return memory.keep(padded.tobytes()), stride


def moves(
    state: PipeState,
    slots: tuple[AttributeSlot, ...],
    arrays: list[Source | None],
    instance: Instance,
    place: int,
    fixed: FixedArrays,
) -> tuple[tuple[int, ...], ...] | None:
    """Rows of `placed.Move` for the arrays of an instance's shader record at a place of a plan;
    None: some are copies, or have no place for their strides.

    Offsets of vertex buffers are each draw's own.
    """
    assert state.vertex_elements is not None
    rows: list[tuple[int, ...]] = []
    for number, (slot, source) in enumerate(zip(slots, arrays, strict=True)):
        word = place // WORD_BYTES + ShaderRecords.FIRST_ARRAY + ShaderRecords.ARRAY_WORDS * number
        if source is not None:
            if source.is_double or source.stride > MAX_STRIDE:
                return None
            element, resource = state.vertex_elements.elements[slot.element], source.resource
            relative, stride = element.src_offset, source.stride
            if source.divisor:
                step = instance.first + instance.number // source.divisor
                relative, stride = (relative + step * stride) % WORD, 0
            where = element.vertex_buffer_index, relative, resource.address
            limits = stride, source.size, resource.size, 0
            rows.append((word, *where, *limits, ctypes.addressof(resource.used)))
        elif slot.element == VERTEX_NUMBER:
            first, size = fixed.numbers
            rows.append((word, -1, 0, first, WORD_BYTES, WORD_BYTES, size, 0, 0))
    return tuple(rows)


class ShaderRecords:
    """The GL shader records of a pipeline: what stays is made once, addresses are put in."""

    def __init__(self, fragment: PlacedFragment, vertex: PlacedVertex, *, has_point_size: bool) -> None:
        compiled = vertex.compiled
        slots = compiled.attributes
        self._slots = slots
        self._fixed = int(
            GlShaderRecord.make(
                fs_single_threaded=not fragment.shader.is_threaded,
                point_size=has_point_size,
                clipping=1,
                fs_uniform_count=min(len(fragment.shader.uniforms), 255),
                fs_varyings=len(fragment.shader.varyings),
                fs_code=fragment.code,
                vs_uniform_count=min(len(compiled.vertex.uniforms), 65535),
                vs_attributes=_selected([slot.vertex_offset for slot in slots]),
                vs_size=compiled.vertex_size,
                vs_code=vertex.vertex_code,
                cs_uniform_count=min(len(compiled.coordinate.uniforms), 65535),
                cs_attributes=_selected([slot.coordinate_offset for slot in slots]),
                cs_size=compiled.coordinate_size,
                cs_code=vertex.coordinate_code,
            )
        )
        self._arrays: dict[tuple[int, int], int] = {}
        """Array records without an address, by slot and stride."""

    UNIFORMS = tuple(
        field.lo // 32
        for field in (GlShaderRecord.fs_uniforms, GlShaderRecord.vs_uniforms,
                      GlShaderRecord.cs_uniforms)
    )  # fmt: skip
    """Words of a record: the addresses of the streams."""
    FIRST_ARRAY, ARRAY_WORDS = GL_FIXED_SIZE // 4, ATTRIBUTE_SIZE // 4
    """The first word of its arrays, each with its address in its first word."""
    assert (AttributeRecord.address.lo, AttributeRecord.address.hi) == (0, 31)

    def head(self, uniforms: tuple[int, int, int]) -> bytes:
        """The fixed part. `uniforms`: addresses of fragment, vertex, coordinate streams."""
        fields = GlShaderRecord.fs_uniforms, GlShaderRecord.vs_uniforms, GlShaderRecord.cs_uniforms
        value = self._fixed
        for field, address in zip(fields, uniforms, strict=True):
            value |= address << field.lo
        return value.to_bytes(GL_FIXED_SIZE, "little")

    def record(self, head: bytes, places: list[tuple[int, int]]) -> bytes:
        """A whole record. `places`: address and stride of each array."""
        if any(stride > MAX_STRIDE for _, stride in places):
            arrays = tuple(
                Attribute(address, slot.size, stride, slot.vertex_offset or 0,
                          slot.coordinate_offset or 0)
                for slot, (address, stride) in zip(self._slots, places, strict=True)
            )  # fmt: skip
            return GlShader(GlShaderRecord.from_bytes(head), arrays, extended=True).to_bytes()
        parts = [head]
        low = AttributeRecord.address.lo
        for number, (address, stride) in enumerate(places):
            word = self._arrays.get((number, stride))
            if word is None:
                word = self._arrays[number, stride] = self._array(number, stride)
            parts.append((word | address << low).to_bytes(ATTRIBUTE_SIZE, "little"))
        return b"".join(parts)

    def _array(self, number: int, stride: int) -> int:
        slot = self._slots[number]
        return int(
            AttributeRecord.make(
                size_minus_1=slot.size - 1,
                stride=stride,
                vs_offset=slot.vertex_offset or 0,
                cs_offset=slot.coordinate_offset or 0,
            )
        )


def _selected(offsets: list[int | None]) -> int:
    assert len(offsets) <= MAX_ATTRIBUTES
    return sum(1 << number for number, offset in enumerate(offsets) if offset is not None)

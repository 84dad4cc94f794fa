"""Attribute arrays and shader records: where a draw's vertices come from."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from vc4lab.mesa.store.resources import Refused
from vc4lab.records.shader import MAX_ATTRIBUTES, Attribute, GlShader, GlShaderRecord

if TYPE_CHECKING:
    from vc4lab.driver.compiler.result import AttributeSlot
    from vc4lab.driver.draws.primitives import Batch
    from vc4lab.driver.draws.programs import PlacedFragment, PlacedVertex
    from vc4lab.driver.gpu.memory import GpuMemory
    from vc4lab.mesa.state.pipe import PipeState

WORD = 1 << 32
MAX_STRIDE = 255
"""Bytes; larger ones need the extended form of the shader record."""
NO_OFFSET = 0
"""Of an array that a program does not read."""


class Source(NamedTuple):
    """An attribute in its buffer: bytes from the buffer's begin, from vertex to vertex."""

    resource: Any
    offset: int
    stride: int
    divisor: int


def sources(state: PipeState, slots: tuple[AttributeSlot, ...]) -> list[Source | None]:
    """Where each slot's attribute is; None: nowhere. Raises Refused."""
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
        found.append(Source(resource, offset, bound.state.stride, element.instance_divisor))
    return found


def attributes(
    slots: tuple[AttributeSlot, ...],
    arrays: list[Source | None],
    batch: Batch,
    instance: int,
    memory: GpuMemory,
    nothing: int,
) -> tuple[Attribute, ...]:
    """The arrays of a shader record. Raises Refused if a vertex lies outside of its buffer.

    instance: the number of the instance, with the draw's first one added. nothing: an address
    with zeros, for slots that have no source.
    """
    made = []
    for slot, source in zip(slots, arrays, strict=True):
        if source is None:
            address, stride = nothing, 0
        elif source.divisor:
            first = _inside(source, slot, instance // source.divisor, instance // source.divisor)
            address, stride = source.resource.address + first, 0
        else:
            first = _inside(source, slot, batch.lowest, batch.highest)
            if batch.picked is not None:
                address, stride = _picked(source, slot, batch, memory)
            else:
                first += (batch.base - batch.lowest) * source.stride
                address = (source.resource.address + first) % WORD
                stride = source.stride
        made.append(
            Attribute(
                address,
                slot.size,
                stride,
                NO_OFFSET if slot.vertex_offset is None else slot.vertex_offset,
                NO_OFFSET if slot.coordinate_offset is None else slot.coordinate_offset,
            )
        )
    return tuple(made)


def _inside(source: Source, slot: AttributeSlot, lowest: int, highest: int) -> int:
    """Byte offset of the lowest vertex. Raises Refused if not all are in the buffer."""
    first = (source.offset + lowest * source.stride) % WORD
    last = first + (highest - lowest) * source.stride + slot.size
    if last > source.resource.size:
        raise Refused(
            "GL-005",
            f"{source.resource} ends before vertex {highest} of input {slot.element} "
            f"(byte {last} of {source.resource.size})",
        )
    return first


def _picked(
    source: Source, slot: AttributeSlot, batch: Batch, memory: GpuMemory
) -> tuple[int, int]:
    """Copies of the vertices that a batch picks: address and stride."""
    assert batch.picked is not None
    data = source.resource.bytes_of(0, source.resource.size)
    starts = (source.offset + batch.picked * source.stride) % WORD
    rows = data[starts[:, None] + np.arange(slot.size)]
    stride = -(-slot.size // 4) * 4
    padded = np.zeros((len(rows), stride), np.uint8)
    padded[:, : slot.size] = rows
    return memory.keep(padded.tobytes()), stride


@lru_cache(maxsize=1024)
def shader_record(
    fragment: PlacedFragment,
    vertex: PlacedVertex,
    uniforms: tuple[int, int, int],
    arrays: tuple[Attribute, ...],
    has_point_size: bool,
) -> bytes:
    """A GL shader record. `uniforms`: addresses of fragment, vertex, coordinate streams."""
    slots = vertex.compiled.attributes
    record = GlShaderRecord.make(
        fs_single_threaded=not fragment.shader.is_threaded,
        point_size=has_point_size,
        clipping=1,
        fs_uniform_count=min(len(fragment.shader.uniforms), 255),
        fs_varyings=len(fragment.shader.varyings),
        fs_code=fragment.code,
        fs_uniforms=uniforms[0],
        vs_uniform_count=min(len(vertex.compiled.vertex.uniforms), 65535),
        vs_attributes=_selected([slot.vertex_offset for slot in slots]),
        vs_size=vertex.compiled.vertex_size,
        vs_code=vertex.vertex_code,
        vs_uniforms=uniforms[1],
        cs_uniform_count=min(len(vertex.compiled.coordinate.uniforms), 65535),
        cs_attributes=_selected([slot.coordinate_offset for slot in slots]),
        cs_size=vertex.compiled.coordinate_size,
        cs_code=vertex.coordinate_code,
        cs_uniforms=uniforms[2],
    )
    return GlShader(record, arrays, needs_extension(arrays)).to_bytes()


def needs_extension(arrays: tuple[Attribute, ...]) -> bool:
    """Whether a stride takes more than eight bits."""
    return any(one.stride > MAX_STRIDE for one in arrays)


def _selected(offsets: list[int | None]) -> int:
    assert len(offsets) <= MAX_ATTRIBUTES
    return sum(1 << number for number, offset in enumerate(offsets) if offset is not None)

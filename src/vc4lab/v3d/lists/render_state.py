"""The state a primitive is drawn with: what records 56, 64-67 and 96-104 last said.

One table (`STATE_FIELDS`) says where each field sits in its record; the Python helper and the
native walker of the tile lists both follow it. Source: AG100-R Tables 42-45; defaults as drivers
rely on them (Zmin 0, Zmax 1, point size and line width 1, everything else zero).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

from vc4lab.simd import Struct, Value, f32, i8, i16, i32, load, staged, store

PRIMITIVE_LIST_FORMAT = 56
GL_SHADER, NV_SHADER, VG_SHADER, VG_INLINE_SHADER = 64, 65, 66, 67
POINT_SIZE, LINE_WIDTH, RHT_BOUNDARY = 98, 99, 100
CLIP_WINDOW, VIEWPORT_OFFSET = 102, 103
ENABLE_FORWARD, ENABLE_REVERSE, CLOCKWISE_IS_FORWARD = 1, 2, 4
"""Bits 2:0 of record 96."""

TRIANGLES_16_BIT = 0x12
"""Record 56 for triangles with 16-bit indices: what the binner writes unless told otherwise."""


class RenderState(Struct):
    """Everything the state records say, one word each; comparable byte by byte (no padding)."""

    config = i32
    flat_flags = i32
    point_size = f32
    line_width = f32
    rht_boundary = i32
    depth_offset = i32
    clip_left = i32
    clip_bottom = i32
    clip_width = i32
    clip_height = i32
    viewport_x = i32
    viewport_y = i32
    z_min = f32
    z_max = f32
    list_format = i32
    shader_kind = i32
    shader_word = i32
    shader_uniforms = i32


EMPTY_WINDOWS = {"nothing": 0, "both": 1, "each": 2, "wraps": 3}
"""The unknown "clip_window_empty" as a number."""
NO_CLIP_LIMIT = 1 << 16
"""A side of the clip window that no frame reaches."""


def unlimited(start: Any, size: Any, other: Any, empty_windows: Any) -> Any:
    """Whether the clip window sets no limit in the direction in which it has `size` pixels.

    Of numbers a bool, of staged values an i1. `start`: its first pixel in this direction; `other`:
    its size in the other one.
    """
    return (size == 0) & (
        ((empty_windows == 3) & (start == 0))
        | (empty_windows == 2)
        | ((empty_windows == 1) & (other == 0))
    )


def clip_box(state: Any, empty_windows: int) -> tuple[int, int, int, int]:
    """Left, bottom, right and top of the pixels that a state's clip window leaves."""
    width, height = state.clip_width, state.clip_height
    left, right = state.clip_left, state.clip_left + width
    bottom, top = state.clip_bottom, state.clip_bottom + height
    if unlimited(left, width, height, empty_windows):
        left, right = 0, NO_CLIP_LIMIT
    if unlimited(bottom, height, width, empty_windows):
        bottom, top = 0, NO_CLIP_LIMIT
    return left, bottom, right, top


STATE_WORDS = 18
STATE_BYTES = STATE_WORDS * 4


@dataclass(frozen=True)
class StateField:
    """Where a field stands in its record: byte offset after the id, width, interpretation."""

    name: str
    offset: int
    width: int
    signed: bool = False
    real: bool = False


STATE_FIELDS: dict[int, tuple[StateField, ...]] = {
    56: (StateField("list_format", 0, 1),),
    64: (StateField("shader_word", 0, 4),),
    65: (StateField("shader_word", 0, 4),),
    66: (StateField("shader_word", 0, 4),),
    67: (StateField("shader_word", 0, 4), StateField("shader_uniforms", 4, 4)),
    96: (StateField("config", 0, 3),),
    97: (StateField("flat_flags", 0, 4),),
    98: (StateField("point_size", 0, 4, real=True),),
    99: (StateField("line_width", 0, 4, real=True),),
    100: (StateField("rht_boundary", 0, 2, signed=True),),
    101: (StateField("depth_offset", 0, 4),),
    102: (
        StateField("clip_left", 0, 2),
        StateField("clip_bottom", 2, 2),
        StateField("clip_width", 4, 2),
        StateField("clip_height", 6, 2),
    ),
    103: (
        StateField("viewport_x", 0, 2, signed=True),
        StateField("viewport_y", 2, 2, signed=True),
    ),
    104: (StateField("z_min", 0, 4, real=True), StateField("z_max", 4, 4, real=True)),
}

STATE_RECORD_BYTES: dict[int, int] = {
    identifier: 1 + max(item.offset + item.width for item in fields)
    for identifier, fields in STATE_FIELDS.items()
}
"""Size of each state record, id byte included."""

DEFAULTS: dict[str, float] = {
    "point_size": 1.0,
    "line_width": 1.0,
    "z_max": 1.0,
    "list_format": TRIANGLES_16_BIT,
}


def default_state() -> RenderState:
    """A fresh state with the values a thread starts with."""
    state = RenderState()
    for name, value in DEFAULTS.items():
        setattr(state, name, value)
    return state


def state_bytes(state: RenderState) -> bytes:
    """The state's words as bytes: equal bytes mean equal states."""
    import ctypes

    return ctypes.string_at(state.address, STATE_BYTES)


def copy_state(state: RenderState) -> RenderState:
    """An independent copy."""
    return state_from_bytes(state_bytes(state))


def state_from_bytes(data: bytes) -> RenderState:
    """The inverse of `state_bytes`."""
    import ctypes

    state = RenderState()
    ctypes.memmove(state.address, data[:STATE_BYTES].ljust(STATE_BYTES, b"\0"), STATE_BYTES)
    return state


def _decode(item: StateField, payload: bytes) -> float:
    raw = payload[item.offset : item.offset + item.width].ljust(item.width, b"\0")
    if item.real:
        return float(struct.unpack("<f", raw)[0])
    value = int.from_bytes(raw, "little", signed=item.signed)
    return value - (1 << 32) if value >= 1 << 31 else value


def apply_record(state: RenderState, record: bytes) -> bool:
    """Apply one state record (id byte and payload) to `state`; False if it is none."""
    fields = STATE_FIELDS.get(record[0]) if record else None
    if fields is None:
        return False
    payload = record[1:]
    import ctypes

    for item in fields:
        if item.real:  # copied as bits: a float conversion would quieten NaNs
            raw = payload[item.offset : item.offset + 4].ljust(4, b"\0")
            ctypes.memmove(state.address + RenderState.offset(item.name), raw, 4)
        else:
            setattr(state, item.name, _decode(item, payload))
    if GL_SHADER <= record[0] <= VG_INLINE_SHADER:
        state.shader_kind = record[0]
        if record[0] != VG_INLINE_SHADER:
            state.shader_uniforms = 0
    return True


@staged
def apply_record_native(state: Value, identifier: int, payload: Value) -> None:
    """Native form of `apply_record` for one known record id; reads 4 bytes at most past a field."""
    where: Any = RenderState.at(state)
    for item in STATE_FIELDS[identifier]:
        source = payload + item.offset
        if item.width == 4:
            store(where.field_ptr(item.name), load(i32, source))
        elif item.width == 3:
            store(where.field_ptr(item.name), load(i32, source) & 0xFFFFFF)
        elif item.width == 2 and item.signed:
            store(where.field_ptr(item.name), load(i16, source).sext(i32))
        elif item.width == 2:
            store(where.field_ptr(item.name), load(i16, source).zext(i32))
        else:
            store(where.field_ptr(item.name), load(i8, source).zext(i32))
    if GL_SHADER <= identifier <= VG_INLINE_SHADER:
        where.shader_kind = identifier
        if identifier != VG_INLINE_SHADER:
            where.shader_uniforms = 0

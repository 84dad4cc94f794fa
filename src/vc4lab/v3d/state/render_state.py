"""The state a primitive is drawn with: what the state records set last.

Their classes (`records/states.py`) say which members of `RenderState` they set and where each
stands in the record; native code follows the table made of that (`records.use.STATE_FIELDS`).
Source: AG100-R Tables 42-45; defaults as drivers rely on them (Zmin 0, Zmax 1, point size and line
width 1, everything else zero).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vc4lab.diagnostics.unknown import Unknowns
from vc4lab.records.payload import ShaderState
from vc4lab.records.states import RenderState
from vc4lab.records.use import DEFAULTS, STATE_FIELDS, ids_of
from vc4lab.simd import Value, i8, i16, i32, load, staged, store

if TYPE_CHECKING:
    from vc4lab.simd.members import Whole

SHADERS = ids_of(ShaderState)
SHADER_MEMBERS = {item.name for number in SHADERS for item in STATE_FIELDS[number]}
ENABLE_FORWARD, ENABLE_REVERSE, CLOCKWISE_IS_FORWARD = 1, 2, 4
"""Bits 2:0 of record 96."""


EMPTY_WINDOWS = {"nothing": 0, "both": 1, "each": 2, "wraps": 3}
"""The unknown "clip_window_empty" as a number."""
NO_CLIP_LIMIT = 1 << 16
"""A side of the clip window that no frame reaches."""


def empty_windows(unknowns: Unknowns) -> int:
    """What clip windows without pixels limit: an `EMPTY_WINDOWS`."""
    return EMPTY_WINDOWS[unknowns["clip_window_empty"]]


def rht_movement(unknowns: Unknowns) -> int:
    """-1 if the viewport offset moves the boundary of record 100, else 0."""
    return -int(unknowns["rht_boundary_offset"] == "moved")


def rht_boundary(state: RenderState, movement: Value | int) -> Whole:
    """The other side of right-hand trapezoids, of numbers or staged values."""
    return state.rht_boundary + (state.viewport_x & movement)


def unlimited(start: Any, size: Any, other: Any, empty_windows: Any) -> Any:
    """Whether the clip window sets no limit in the direction in which it has `size` pixels.

    Of numbers a bool, of staged values an i1. `start`: its first pixel in this direction; `other`:
    its size in the other one.
    """
    return (size == 0) & (
        ((empty_windows == 3) & (start == 0)) | (empty_windows == 2) | ((empty_windows == 1) & (other == 0))
    )


@staged
def clip_box(state: RenderState, empty_windows: Any) -> tuple[Any, Any, Any, Any]:
    """Left, bottom, right and top of the pixels that a state's clip window leaves.

    Of numbers or staged values.
    """
    width, height = state.clip_width, state.clip_height
    left: Any = state.clip_left
    right: Any = state.clip_left + width
    bottom: Any = state.clip_bottom
    top: Any = state.clip_bottom + height
    if unlimited(left, width, height, empty_windows):
        left, right = 0, NO_CLIP_LIMIT
    if unlimited(bottom, height, width, empty_windows):
        bottom, top = 0, NO_CLIP_LIMIT
    return left, bottom, right, top


STATE_WORDS = len(RenderState.fields)
STATE_BYTES = STATE_WORDS * 4


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


def state_from_bytes(data: bytes) -> RenderState:
    """The inverse of `state_bytes`."""
    import ctypes

    state = RenderState()
    ctypes.memmove(state.address, data[:STATE_BYTES].ljust(STATE_BYTES, b"\0"), STATE_BYTES)
    return state


def _unsaid(shader: int) -> list[str]:
    """Members that this record of shader state leaves to others of its kind: they become 0."""
    return sorted(SHADER_MEMBERS - {item.name for item in STATE_FIELDS[shader]})


@staged
def apply_record_native(state: Value, identifier: int, payload: Value) -> None:
    """Applies a state record with this id to `state`; reads 4 bytes at most past a field."""
    where = RenderState.at(state)
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
    if identifier in SHADERS:
        where.shader_kind = identifier
        for name in _unsaid(identifier):
            setattr(where, name, 0)

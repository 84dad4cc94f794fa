"""Uniform streams: what a program reads word by word, put together for each draw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from vc4lab.driver.compiler.interface import CompiledShader, Uniform, UniformKind
from vc4lab.driver.compiler.tgsi.window import STIPPLE
from vc4lab.driver.draws.textures import Texture, float_word

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vc4lab.driver.gpu.memory import GpuMemory
    from vc4lab.mesa.protocol.state_commands import Viewport

_COMPONENTS = "rgba"
STIPPLE_ROWS = 32


@dataclass(frozen=True)
class StreamValues:
    """Sources of the words of a draw's streams.

    Attributes
    ----------
    textures
        Textures of the stage, by number; None: it has none there.
    order
        The order of the tile buffer's bytes (`ColorTarget.order`).
    stencil
        Set-up words.
    stipple
        The address of the polygon stipple: its rows, 16 bytes apart.
    """

    textures: tuple[Texture | None, ...]
    viewport: Viewport
    blend_color: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0)
    order: str = "rgba"
    alpha_ref: float = 0.0
    stencil: tuple[int, ...] = ()
    clip_planes: tuple[float, ...] = ()
    instance: int = 0
    stipple: int = 0


@dataclass(frozen=True, eq=False)
class StreamPlan:
    """A program's stream.

    Attributes
    ----------
    fixed
        Words that are the same in all draws; the others 0.
    pairs
        Words of constant buffer 0: their places in the stream and in the buffer.
    others
        Words that follow from the draw's state.
    look_ups
        Words for look-ups of constant buffer 0: their places, a byte of the buffer, whether they
        are the largest offset from there that is inside of it; else its address.
    late
        Those that follow from its other constant buffers.
    own_addresses
        Words that are the address of the stream.
    """

    fixed: Any
    pairs: tuple[tuple[int, int], ...]
    others: tuple[tuple[int, Uniform], ...]
    look_ups: tuple[tuple[int, int, bool], ...]
    late: tuple[tuple[int, Uniform], ...]
    own_addresses: tuple[int, ...]


def stream_plan(shader: CompiledShader) -> StreamPlan:
    """The plan of a program's stream."""
    uniforms = shader.uniforms
    fixed = np.zeros(len(uniforms), np.uint32)
    pairs, others, look_ups, late, own = [], [], [], [], []
    for number, one in enumerate(uniforms):
        if one.kind is UniformKind.LITERAL:
            fixed[number] = one.value & 0xFFFFFFFF
        elif one.kind is UniformKind.CONSTANT and one.index == 0:
            pairs.append((number, one.value))
        elif one.kind is UniformKind.UNIFORMS_ADDRESS:
            own.append(number)
        elif one.kind in _LOOK_UPS and one.index == 0:
            look_ups.append((number, one.value, one.kind is UniformKind.CONSTANTS_LIMIT))
        elif one.kind in _OF_CONSTANTS and one.index != STIPPLE:
            late.append((number, one))
        elif one.kind is not UniformKind.TEXTURE_ZERO:
            others.append((number, one))
    return StreamPlan(fixed, tuple(pairs), tuple(others), tuple(look_ups), tuple(late), tuple(own))


def stream_words(plan: StreamPlan, values: StreamValues) -> NDArray[np.uint32]:
    """The words of a program's stream that are the same with other constants. Raises Refused."""
    words: NDArray[np.uint32] = plan.fixed.copy()
    for number, one in plan.others:
        words[number] = _WORDS[one.kind](one, values) & 0xFFFFFFFF
    return words


def late_word(one: Uniform, constants: tuple[bytes, ...], memory: GpuMemory) -> int:
    """A word that follows from constant buffers. Raises OutOfMemory."""
    found: int = _OF_CONSTANTS[one.kind](one, constants, memory)
    return found


def _constant(one: Uniform, constants: tuple[bytes, ...], _memory: GpuMemory) -> int:
    data = constants[one.index] if one.index < len(constants) else b""
    return int.from_bytes(data[4 * one.value : 4 * one.value + 4], "little")


def _constants_address(one: Uniform, constants: tuple[bytes, ...], memory: GpuMemory) -> int:
    data = constants[one.index] if one.index < len(constants) else b""
    return memory.keep(data or bytes(4)) + one.value


def _constants_limit(one: Uniform, constants: tuple[bytes, ...], _memory: GpuMemory) -> int:
    size = len(constants[one.index]) if one.index < len(constants) else 0
    return max(size - 4 - one.value, 0)


def _texture(values: StreamValues, number: int) -> Texture:
    found = values.textures[number] if number < len(values.textures) else None
    return found if found is not None else NO_TEXTURE


NO_TEXTURE = Texture((0, 1 << 20 | 1 << 8, 0), 1, 1, 0)
"""Sampled where nothing is bound: one texel at address 0."""


def _blend_color(one: Uniform, values: StreamValues, *_: Any) -> int:
    word = 0
    for byte, name in enumerate(values.order):
        value = 1.0 if name == "x" else values.blend_color[_COMPONENTS.index(name)]
        word |= _unorm(value) << 8 * byte
    return word


def _unorm(value: float) -> int:
    return round(_inside(value) * 255)


def _inside(value: float) -> float:
    return min(max(value, 0.0), 1.0) if value == value else 0.0


def _clip_plane(one: Uniform, values: StreamValues, *_: Any) -> int:
    place = 4 * one.index + one.value
    return float_word(values.clip_planes[place] if place < len(values.clip_planes) else 0.0)


_KIND = UniformKind
_WORDS: dict[UniformKind, Any] = {
    _KIND.VIEWPORT_X_SCALE: lambda _, v, *_rest: float_word(v.viewport.scale[0] * 16),
    _KIND.VIEWPORT_Y_SCALE: lambda _, v, *_rest: float_word(v.viewport.scale[1] * 16),
    _KIND.VIEWPORT_Z_SCALE: lambda _, v, *_rest: float_word(v.viewport.scale[2]),
    _KIND.VIEWPORT_Z_OFFSET: lambda _, v, *_rest: float_word(v.viewport.translate[2]),
    _KIND.TEXTURE_P0: lambda one, v, *_rest: _texture(v, one.index).parameters[0],
    _KIND.TEXTURE_P1: lambda one, v, *_rest: _texture(v, one.index).parameters[1],
    _KIND.TEXTURE_P2: lambda one, v, *_rest: _texture(v, one.index).parameters[2] | 1 << 30 | one.value,
    _KIND.TEXTURE_WIDTH_RCP: lambda one, v, *_rest: float_word(1 / _texture(v, one.index).width),
    _KIND.TEXTURE_HEIGHT_RCP: lambda one, v, *_rest: float_word(1 / _texture(v, one.index).height),
    _KIND.TEXTURE_MIN_LEVEL: lambda one, v, *_rest: float_word(_texture(v, one.index).min_level),
    _KIND.TEXTURE_MAX_LEVEL: lambda one, v, *_rest: float_word(_texture(v, one.index).max_level),
    _KIND.TEXTURE_ADDRESS: lambda one, v, *_rest: _texture(v, one.index).parameters[0],
    _KIND.TEXTURE_LIMIT: lambda one, v, *_rest: _texture(v, one.index).parameters[1],
    _KIND.TEXTURE_ROW: lambda one, v, *_rest: _texture(v, one.index).parameters[2],
    _KIND.TEXTURE_BORDER: lambda one, v, *_rest: _texture(v, one.index).border,
    _KIND.BLEND_COLOR: _blend_color,
    _KIND.BLEND_ALPHA: lambda _, v, *_rest: _unorm(v.blend_color[3]) * 0x01010101,
    _KIND.BLEND_COMPONENT: lambda one, v, *_rest: float_word(_inside(v.blend_color[one.index])),
    _KIND.ALPHA_REF: lambda _, v, *_rest: float_word(v.alpha_ref),
    _KIND.STENCIL: lambda one, v, *_rest: v.stencil[one.index],
    _KIND.CLIP_PLANE: _clip_plane,
    _KIND.INSTANCE: lambda _, v, *_rest: v.instance,
    _KIND.CONSTANTS_ADDRESS: lambda one, v: v.stipple + one.value,
    _KIND.CONSTANTS_LIMIT: lambda one, _: STIPPLE_ROWS * 16 - 4 - one.value,
}
"""Makers of each kind of word."""
_OF_CONSTANTS: dict[UniformKind, Any] = {
    _KIND.CONSTANT: _constant,
    _KIND.CONSTANTS_ADDRESS: _constants_address,
    _KIND.CONSTANTS_LIMIT: _constants_limit,
}
"""As above, for values that follow from constant buffers."""
_LOOK_UPS = (_KIND.CONSTANTS_ADDRESS, _KIND.CONSTANTS_LIMIT)

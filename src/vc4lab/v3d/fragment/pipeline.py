"""Fragment pipelines: one native function per draw state, from compressed list to tile buffer.

`fragment_pipeline(key)` compiles (or finds) the function `draw(context, params, list) -> status`.
It walks the list, sets primitives up and runs the fragment program, inlined, on every 4x4 block
with coverage. Three engines share all of it: "fast" (floating-point shortcuts that notice when they
were wrong), "exact", and "interpreter" (blocks go to the golden interpreter in Python).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from vc4lab.qpu.environment import Unsupported
from vc4lab.qpu.program import Program
from vc4lab.simd import (
    Function,
    NativeFunction,
    NativeModule,
    Value,
    any_,
    build,
    call_with_flags,
    const,
    i32,
    max_,
    min_,
    ptr,
    select,
    staged,
)
from vc4lab.v3d.fragment.block import BlockShader
from vc4lab.v3d.fragment.primitives import VERTICES, PrimitiveTracer
from vc4lab.v3d.fragment.setup import Box, VertexSource
from vc4lab.v3d.fragment.shader import DrawConstants
from vc4lab.v3d.fragment.tile_context import (
    MAX_VARYINGS,
    PRIMITIVES,
    STATUS_BAD_LIST,
    STATUS_DEOPT,
    DrawParams,
    FragmentKey,
    TileContext,
)
from vc4lab.v3d.geometry.primitive_decoder import EXHAUSTED, MALFORMED, Decoder

INVALID_OR_OVERFLOW = 1 | 8
"""Sticky floating-point flags that make the fast engine give up."""

INDEX_CODES = {16: 1, 24: 2, 32: 3}
"""Index bits → data type of record 56."""


@dataclass(frozen=True)
class Pipeline:
    """A compiled draw state. `address` is the native `draw(context, params, list) -> status`."""

    key: FragmentKey
    program: Program
    module: NativeModule

    @property
    def draw(self) -> NativeFunction:
        """The entry point, callable from Python with three addresses."""
        return self.module["draw"]

    @property
    def address(self) -> int:
        """Host address of the entry point."""
        return self.module["draw"].address

    @property
    def exact(self) -> Pipeline:
        """The pipeline to use for a tile where this one gave up."""
        return fragment_pipeline(replace(self.key, engine="exact"))


@staged
def draw_list(
    key: Any, program: Any, context_pointer: Value, params_pointer: Value, address: Value
) -> Value:
    """Draws one compressed list into the tile; returns a status."""
    context: Any = TileContext.at(context_pointer)
    params: Any = DrawParams.at(params_pointer)
    memory = context.memory
    constants = DrawConstants.load(key, program, memory, params)
    shader = BlockShader(constants, context, params)
    tracer = PrimitiveTracer(shader, VertexSource.load(context, params), window(context, params))
    decoder = Decoder(memory, PRIMITIVES.index(key.primitive), INDEX_CODES[key.index_bits])
    decoder.open(address)
    while decoder.next():
        tracer.draw(decoder)
        going = shader.running()
        if going is not None:
            if ~going:
                break
    status = shader.status.get()
    ended = decoder.status.get()
    if (ended == EXHAUSTED) | (ended == MALFORMED):
        status = const(i32, STATUS_BAD_LIST)
    if key.engine == "fast":
        if any_(shader.wild.get()):
            status = const(i32, STATUS_DEOPT)
    return status


def window(context: Any, params: Any) -> Box:
    """The pixels of the tile that a draw may touch: clip window and frame, relative to the tile."""
    x, y = context.tile_x, context.tile_y
    right = min_(min_(params.clip_right, context.frame_width) - x, context.tile_width)
    top = min_(min_(params.clip_top, context.frame_height) - y, context.tile_height)
    return Box(max_(params.clip_left - x, 0), max_(params.clip_bottom - y, 0), right, top)


def draw_function(key: FragmentKey) -> Function:
    """The native function of a pipeline, not yet compiled."""
    program = Program(key.program, key.code_address)

    def body(context: Value, params: Value, address: Value) -> Value:
        return draw_list(key, program, context, params, address)

    whole = Function(args=(ptr, ptr, i32), returns=i32, body=body, name="draw_list")
    if key.engine != "fast":
        return whole

    def guarded(context: Value, params: Value, address: Value) -> Value:
        status, flags = call_with_flags(whole, context, params, address)
        suspicious = (flags & INVALID_OR_OVERFLOW) != 0
        return select(suspicious, const(i32, STATUS_DEOPT), status)

    return Function(args=(ptr, ptr, i32), returns=i32, body=guarded, name="draw")


def cache_key(key: FragmentKey) -> str:
    """A stable text for the cache of compiled objects."""
    return hashlib.sha256(repr(key).encode()).hexdigest()


@lru_cache(maxsize=1024)
def fragment_pipeline(key: FragmentKey, target: Any = None) -> Pipeline:
    """The compiled pipeline of a draw state.

    Raises `Unsupported` (with a diagnostic code) for a program that does what this simulator does
    not, and for frame modes it does not draw yet.
    """
    check_supported(key)
    functions = {"draw": draw_function(key)}
    module = build("fragment", functions, target=target, key=cache_key(key))
    return Pipeline(key, Program(key.program, key.code_address), module)


def check_supported(key: FragmentKey) -> None:
    """Raises `Unsupported` for what no pipeline can be made for yet."""
    if key.multisample:
        raise Unsupported("FRG-004", "4x multisample frames are not drawn yet")
    if key.wide_colour:
        raise Unsupported("FRG-005", "64-bit colour frames are not drawn yet")
    if key.primitive not in VERTICES or key.index_bits == 32:
        raise Unsupported("FRG-006", f"{key.primitive} with x/y coordinates are not drawn yet")
    if key.n_varyings > MAX_VARYINGS:
        raise Unsupported("FRG-007", f"{key.n_varyings} varyings, at most {MAX_VARYINGS} fit")

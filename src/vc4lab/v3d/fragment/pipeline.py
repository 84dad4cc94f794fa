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

from vc4lab.optimisations import THOROUGH_BUILDS
from vc4lab.qpu.program.program import Program
from vc4lab.qpu.run.environment import Unsupported
from vc4lab.simd import (
    Function,
    NativeFunction,
    NativeModule,
    Value,
    build,
    call_with_flags,
    const,
    i32,
    kept,
    ptr,
    select,
)
from vc4lab.v3d.state.tile_context import MAX_VARYINGS, STATUS_DEOPT, VERTICES, FragmentKey

_THOROUGH = " thorough"

INVALID_OR_OVERFLOW = 1 | 8
"""Sticky floating-point flags that make the fast engine give up."""


@dataclass(frozen=True)
class Pipeline:
    """A compiled draw state. `address` is the native `draw(context, params, list) -> status`.

    `thorough`: there is no better code for it.
    """

    key: FragmentKey
    program: Program
    module: NativeModule
    thorough: bool = True

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


def draw_function(key: FragmentKey) -> Function:
    """The native function of a pipeline, not yet compiled."""
    program = key.whole_program

    def body(context: Value, params: Value, address: Value) -> Value:
        from vc4lab.v3d.fragment.draw_list import draw_list  # only when something is compiled

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
    return hashlib.sha256(f"{key!r}{' recording' * key.recording}".encode()).hexdigest()


@lru_cache(maxsize=1024)
def fragment_pipeline(key: FragmentKey, target: Any = None) -> Pipeline:
    """The compiled pipeline of a draw state.

    Raises `Unsupported` (with a diagnostic code) for a program that does what this simulator does
    not, and for frame modes it does not draw yet.
    """
    check_supported(key)
    functions = {"draw": draw_function(key)}
    program = key.whole_program
    refined = is_refined(key)
    if refined:
        found = kept("fragment", functions, key=cache_key(key) + _THOROUGH, target=target)
        if found is not None:
            return Pipeline(key, program, found)
    branches = program.has_branches
    module = build(
        "fragment", functions, target=target, key=cache_key(key), combine=branches, quick=True
    )
    return Pipeline(key, program, module, thorough=not refined)


@lru_cache(maxsize=1024)
def thorough_pipeline(key: FragmentKey, target: Any = None) -> Pipeline:
    """The same, compiled thoroughly: for draw states that come again and again."""
    functions = {"draw": draw_function(key)}
    name = cache_key(key) + _THOROUGH
    module = build("fragment", functions, target=target, key=name, thorough=True)
    return Pipeline(key, key.whole_program, module)


def is_refined(key: FragmentKey) -> bool:
    """Whether the code of a draw state is replaced by thorough one when it comes again."""
    return key.engine == "fast" and not key.recording and THOROUGH_BUILDS.serves()


def check_supported(key: FragmentKey) -> None:
    """Raises `Unsupported` for what no pipeline can be made for yet."""
    if key.primitive not in VERTICES or (key.primitive == "points" and key.index_bits == 32):
        raise Unsupported("FRG-006", f"{key.primitive} with x/y coordinates: no such list exists")
    if key.n_varyings > MAX_VARYINGS:
        raise Unsupported("FRG-007", f"{key.n_varyings} varyings, at most {MAX_VARYINGS} fit")

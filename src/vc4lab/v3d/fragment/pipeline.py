"""Fragment pipelines: one native function per draw state, from compressed list to tile buffer.

`fragment_pipeline(key)` compiles (or finds) the function `draw(context, params, list) -> status`.
It walks the list, sets primitives up and runs the fragment program, inlined, on every 4x4 block
with coverage. Three engines share all of it: "fast" (floating-point shortcuts that notice when they
were wrong), "exact", and "interpreter" (blocks go to the reference interpreter in Python).
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from vc4lab.optimisations import THOROUGH_BUILDS
from vc4lab.qpu.program.program import Program
from vc4lab.qpu.run.environment import Unsupported
from vc4lab.simd.floatmode import call_with_flags
from vc4lab.simd.kernel import Function
from vc4lab.simd.members import i32, ptr
from vc4lab.simd.native import NativeFunction, NativeModule, build, kept, place, thorough_image
from vc4lab.simd.value import Value, const, select
from vc4lab.v3d.state.tile_context import MAX_VARYINGS, STATUS_DEOPT, VERTICES, FragmentKey

MAX_PIPELINES = 1024
"""Pipelines that are remembered; the one asked for longest ago is forgotten first."""
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


def draw_function(key: FragmentKey) -> Function[Any]:
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


class _Pipelines:
    """Keeps what was compiled, by key and target; for several threads.

    A key has one pipeline: a thorough build takes the place of the first one, whose code is given
    back as soon as no V3D draws with it any more.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[tuple[FragmentKey, Any], Pipeline] = {}

    def find(self, key: FragmentKey, target: Any) -> Pipeline | None:
        """The pipeline of a key; None if it was not compiled, or long ago."""
        with self._lock:
            found = self._known.pop((key, target), None)
            if found is not None:
                self._known[key, target] = found  # the last one now
            return found

    def keep(self, pipeline: Pipeline, target: Any) -> Pipeline:
        """The pipeline of its key from now on."""
        key = pipeline.key, target
        with self._lock:
            first = key
            if key not in self._known and len(self._known) >= MAX_PIPELINES:
                first = next(iter(self._known))
            before = self._known.pop(first, None)
            self._known[key] = pipeline
        del before  # not under the lock: giving back code waits for what is being compiled
        return pipeline

    def clear(self) -> None:
        """Forgets all."""
        with self._lock:
            known, self._known = self._known, {}
        known.clear()


PIPELINES = _Pipelines()
"""Those of all V3Ds."""


def fragment_pipeline(key: FragmentKey, target: Any = None) -> Pipeline:
    """The compiled pipeline of a draw state.

    Raises `Unsupported` (with a diagnostic code) for a program that does what this simulator does
    not, and for frame modes it does not draw yet.
    """
    found = PIPELINES.find(key, target)
    return found if found is not None else PIPELINES.keep(_first(key, target), target)


def _first(key: FragmentKey, target: Any) -> Pipeline:
    """Compiled while a frame waits, or thoroughly if the disk cache has it."""
    check_supported(key)
    functions = {"draw": draw_function(key)}
    program = key.whole_program
    refined = is_refined(key)
    if refined:
        found = kept("fragment", functions, key=cache_key(key) + _THOROUGH, target=target)
        if found is not None:
            return Pipeline(key, program, found)
    branches = program.has_branches
    module = build("fragment", functions, target=target, key=cache_key(key), combine=branches, quick=True)
    return Pipeline(key, program, module, thorough=not refined)


def thorough_object(key: FragmentKey) -> bytes:
    """The object code of a draw state that comes again and again, compiled thoroughly."""
    return thorough_image({"draw": draw_function(key)})


def thorough_pipeline(
    key: FragmentKey, compiled: Callable[[FragmentKey], bytes] = thorough_object
) -> Pipeline:
    """As `fragment_pipeline`, with what `compiled` makes, if the disk cache has it not."""
    found = PIPELINES.find(key, None)
    if found is not None and found.thorough:
        return found  # another V3D asked first
    functions = {"draw": draw_function(key)}
    name = cache_key(key) + _THOROUGH
    module = kept("fragment", functions, key=name)
    if module is None:
        module = place("fragment", functions, compiled(key), key=name)
    return PIPELINES.keep(Pipeline(key, key.whole_program, module), None)


def is_refined(key: FragmentKey) -> bool:
    """Whether the code of a draw state is replaced by thorough one when it comes again."""
    return key.engine == "fast" and not key.recording and THOROUGH_BUILDS.serves()


def check_supported(key: FragmentKey) -> None:
    """Raises `Unsupported` for what no pipeline can be made for yet."""
    if key.primitive not in VERTICES or (key.primitive == "points" and key.index_bits == 32):
        raise Unsupported("FRG-006", f"{key.primitive} with x/y coordinates: no such list exists")
    if key.n_varyings > MAX_VARYINGS:
        raise Unsupported("FRG-007", f"{key.n_varyings} varyings, at most {MAX_VARYINGS} fit")

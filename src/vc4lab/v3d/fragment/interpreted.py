"""The golden engine's half of a block: the QPU interpreter on numpy words, native TLB and TMU.

The pipeline with engine "interpreter" writes each block to the `FragmentBatch` of its thread and
calls back here. Only QPU instructions are interpreted; depth test, colour writes and texture
samples are the staged functions of the compiled engines, built on their own, so they agree.
"""

from __future__ import annotations

import ctypes
import threading
from collections import deque
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from vc4lab.qpu.environment import Environment, Unsupported
from vc4lab.qpu.program import Program
from vc4lab.simd import Function, NativeModule, Value, build, i32, i32x16, load, ptr, store, var
from vc4lab.v3d.fragment import tlb
from vc4lab.v3d.fragment.shader import ALL_SAMPLES, texture_numbers
from vc4lab.v3d.fragment.tile_context import (
    STATUS_OK,
    STATUS_UNSUPPORTED,
    DrawParams,
    FragmentBatch,
    FragmentKey,
    TileContext,
)
from vc4lab.v3d.fragment.tmu import direct_lookup, sample

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from vc4lab.memory import GuestMemory
    from vc4lab.v3d.fragment.texture_state import TextureKind

    Words = NDArray[np.uint32]
    Lanes = NDArray[np.bool_]

_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)
_HIGHEST_ID = 1 << 30


class GoldenDraw:
    """What the interpreter must know about a draw; `DrawParams.callback_id` names it."""

    def __init__(self, key: FragmentKey, memory: GuestMemory) -> None:
        self.key = key
        self.memory = memory
        self.program = Program(key.program, key.code_address)
        self.requests = texture_numbers(self.program)
        self.failure: Unsupported | None = None


_draws: WeakValueDictionary[int, GoldenDraw] = WeakValueDictionary()
_lock = threading.Lock()
_next_id = 1


def register(draw: GoldenDraw) -> int:
    """Makes a draw known to the callback, as long as it lives; returns its id."""
    global _next_id
    with _lock:
        number = _next_id
        _next_id = _next_id % _HIGHEST_ID + 1
        _draws[number] = draw
        return number


def _run(context: int, params: int) -> int:
    number = ctypes.c_int32.from_address(params + DrawParams.offset("callback_id")).value
    draw = _draws.get(number)
    if draw is None:
        return STATUS_UNSUPPORTED
    from vc4lab.qpu.interpreter import Interpreter

    try:
        Interpreter(draw.program, NumpyFragmentEnvironment(draw, context, params)).run()
    except Unsupported as verdict:
        draw.failure = verdict
        return STATUS_UNSUPPORTED
    return STATUS_OK


_callback = _FUNCTION(_run)


def batch_callback() -> int:
    """Host address of the C function for `TileContext.callback`."""
    address = ctypes.cast(_callback, ctypes.c_void_p).value
    assert address is not None
    return address


class NumpyFragmentEnvironment(Environment):
    """One block as the interpreter sees it. Words are uint32 arrays of 16 lanes."""

    def __init__(self, draw: GoldenDraw, context: int, params: int) -> None:
        import numpy as np

        self.np = np
        self.draw = draw
        self.context = context
        self.params = params
        address = ctypes.c_uint64.from_address(context + TileContext.offset("batch")).value
        self.batch = address
        self.native = tlb_functions(draw.key.depth_function, draw.key.z_update)
        self.pointer = self._word("uniforms")
        self._array("stencil", 8)[:] = 0
        self._varying = 0
        self._pending: tuple[dict[str, Words], dict[str, Words]] = ({}, {})
        self._results: tuple[deque[Words], deque[Words]] = (deque(), deque())

    def _word(self, name: str) -> int:
        return ctypes.c_uint32.from_address(self.batch + FragmentBatch.offset(name)).value

    def _array(self, name: str, count: int = 16, start: int = 0) -> Words:
        place = self.batch + FragmentBatch.offset(name) + 4 * start
        words: Any = (ctypes.c_uint32 * count).from_address(place)
        return self.np.frombuffer(words, self.np.uint32)

    def _splat(self, word: int) -> Words:
        return self.np.full(16, word & 0xFFFFFFFF, self.np.uint32)

    def _lanes(self, mask: Lanes) -> Words:
        return self.np.ascontiguousarray(mask).astype(self.np.uint32)

    # -- inputs ------------------------------------------------------------------------------

    def initial_registers(self) -> dict[tuple[str, int], Words]:
        return {("a", 15): self._array("w").copy(), ("b", 15): self._array("z").copy()}

    def uniform(self) -> Words:
        word = self.draw.memory.u32(self.pointer)
        self.pointer = (self.pointer + 4) & 0xFFFFFFFF
        return self._splat(word)

    def uniforms_address(self, value: Words, relative: bool) -> None:
        base = self.pointer if relative else 0
        self.pointer = (base + int(value[0])) & 0xFFFFFFFF

    def varying(self) -> tuple[Words, Words]:
        number = self._varying
        self._varying += 1
        if number >= self._word("n_varyings"):
            return self._splat(0), self._splat(0)
        slopes = self._array("varyings_vp", 16, 16 * number).copy()
        return slopes, self._splat(int(self._array("varyings_c", 1, number)[0]))

    def x_coord(self) -> Words:
        return self._array("x").copy()

    def y_coord(self) -> Words:
        return self._array("y").copy()

    def element_number(self) -> Words:
        return self.np.arange(16, dtype=self.np.uint32)

    def qpu_number(self) -> Words:
        return self._splat(0)

    def ms_flags(self) -> Words:
        on = self._array("flags") != 0
        return self.np.where(on, ALL_SAMPLES, 0).astype(self.np.uint32)

    def rev_flag(self) -> Words:
        return self._splat(self._word("reverse"))

    def set_ms_flags(self, value: Words, mask: Lanes) -> None:
        flags = self._array("flags")
        flags[mask] = (value[mask] & ALL_SAMPLES) != 0

    def set_rev_flag(self, value: Words, mask: Lanes) -> None:
        if mask[0]:
            self._array("reverse", 1)[0] = int(value[0]) & 1

    # -- texture unit ------------------------------------------------------------------------

    def tmu_write(self, unit: int, register: str, value: Words, mask: Lanes, site: int) -> None:
        pending = self._pending[unit]
        memory = self.draw.memory.base
        if register == "s" and not pending:
            result = self._splat(0)
            words = self.np.ascontiguousarray(value)
            self.native["direct"](memory, words.ctypes.data, result.ctypes.data)
            self._results[unit].append(result)
            return
        self.pointer = (self.pointer + 4) & 0xFFFFFFFF
        pending[register] = value
        if register != "s":
            return
        number = self.draw.requests.get(site, -1)
        kinds = self.draw.key.textures
        if not 0 <= number < len(kinds):
            raise Unsupported("FRG-002", f"texture request {number} is not configured", site)
        zero = self._splat(0)
        inputs = self.np.concatenate([pending.get(name, zero) for name in "strb"])
        place = self.params + DrawParams.offset("textures") + 8 * number
        descriptor = ctypes.c_uint64.from_address(place).value
        outputs = self.np.zeros(32, self.np.uint32)
        native = sample_functions(kinds[number])
        native["sample"](memory, descriptor, inputs.ctypes.data, outputs.ctypes.data)
        self._results[unit].append(outputs[:16].copy())
        if kinds[number].result_words == 2:
            self._results[unit].append(outputs[16:].copy())
        pending.clear()

    def tmu_load(self, unit: int) -> Words:
        if not self._results[unit]:
            raise Unsupported("FRG-003", f"TMU{unit} result read, but no lookup was requested")
        return self._results[unit].popleft()

    def tmu_noswap(self, value: Words) -> None:
        pass

    # -- tile buffer -------------------------------------------------------------------------

    def _masked(self, name: str, value: Words, mask: Lanes) -> None:
        words, lanes = self.np.ascontiguousarray(value), self._lanes(mask)
        self.native[name](self.context, words.ctypes.data, lanes.ctypes.data)

    def tlb_z(self, value: Words, mask: Lanes) -> None:
        self._masked("z", value, mask)

    def tlb_colour(self, value: Words, mask: Lanes, all_samples: bool) -> None:
        self._masked("colour", value, mask)

    def tlb_colour_load(self) -> Words:
        result = self._splat(0)
        self.native["load"](self.context, result.ctypes.data)
        return result

    def tlb_stencil(self, value: Words) -> None:
        self.native["stencil"](self.context, ctypes.c_int32(int(value[0])).value)

    def scoreboard_wait(self) -> None:
        pass

    def scoreboard_unlock(self) -> None:
        pass

    def thread_switch(self, last: bool) -> None:
        pass


# -- the same staged functions, compiled on their own -------------------------------------------


def _lane_mask(pointer: Value) -> Value:
    return load(i32x16, pointer) != 0


def _stencil_cells(batch: Any) -> tlb.StencilState:
    place = batch.field_ptr("stencil")
    count = len(tlb.STENCIL_CELLS)
    return tlb.StencilState(*(var(i32, load(i32, place + 4 * k)) for k in range(count)))


def _z(function: int, z_update: bool) -> Callable[[Value, Value, Value], None]:
    def body(context_pointer: Value, value: Value, mask: Value) -> None:
        context: Any = TileContext.at(context_pointer)
        batch: Any = FragmentBatch.at(context.batch)
        flags = _lane_mask(batch.field_ptr("flags"))
        wanted = _lane_mask(mask)
        reverse = batch.reverse != 0
        passed = tlb.z_test(
            function, z_update, _stencil_cells(batch), reverse,
            context.field_ptr("zs") + batch.place, load(i32x16, value), flags & wanted,
        )  # fmt: skip
        store(batch.field_ptr("flags"), (passed | (flags & ~wanted)).zext(i32))

    return body


def _stencil(context_pointer: Value, word: Value) -> None:
    context: Any = TileContext.at(context_pointer)
    batch: Any = FragmentBatch.at(context.batch)
    state = _stencil_cells(batch)
    state.setup(word)
    for k, name in enumerate(tlb.STENCIL_CELLS):
        store(batch.field_ptr("stencil") + 4 * k, getattr(state, name).get())


def _colour(context_pointer: Value, value: Value, mask: Value) -> None:
    context: Any = TileContext.at(context_pointer)
    batch: Any = FragmentBatch.at(context.batch)
    active = _lane_mask(batch.field_ptr("flags")) & _lane_mask(mask)
    tlb.colour_write(context.field_ptr("colour") + batch.place, load(i32x16, value), active)


def _load(context_pointer: Value, result: Value) -> None:
    context: Any = TileContext.at(context_pointer)
    batch: Any = FragmentBatch.at(context.batch)
    store(result, tlb.colour_load(context.field_ptr("colour") + batch.place))


def _direct(memory: Value, addresses: Value, result: Value) -> None:
    store(result, direct_lookup(memory, load(i32x16, addresses)))


@lru_cache(maxsize=64)
def tlb_functions(function: int, z_update: bool) -> NativeModule:
    """Native `z`, `colour` (context, words, mask), `load`, `stencil` and `direct`."""
    three, two = (ptr, ptr, ptr), (ptr, ptr)

    functions = {
        "z": Function(args=three, body=_z(function, z_update)),
        "colour": Function(args=three, body=_colour),
        "load": Function(args=two, body=_load),
        "stencil": Function(args=(ptr, i32), body=_stencil),
        "direct": Function(args=three, body=_direct),
    }
    return build("tlb", functions, key=f"tlb-{function}-{z_update}")


@lru_cache(maxsize=256)
def sample_functions(kind: TextureKind) -> NativeModule:
    """Native `sample(memory, descriptor, s t r b, results)` for one texture kind."""

    def body(memory: Value, descriptor: Value, inputs: Value, results: Value) -> None:
        s, t, r, b = (load(i32x16, inputs + 64 * k) for k in range(4))
        words = sample(kind, descriptor, memory, s, t, r, b)
        for k, word in enumerate(words if isinstance(words, tuple) else (words,)):
            store(results + 64 * k, word)

    functions = {"sample": Function(args=(ptr, ptr, ptr, ptr), body=body)}
    return build("sample", functions, key=f"sample-{kind!r}")

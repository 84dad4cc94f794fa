"""Runs a program on bare registers with any engine.

The surroundings are as small as they can be: uniforms come from a list (0 after its end), VPM
reads from a list of vectors, VPM writes go to a log; synchronisation does nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from vc4lab.qpu.isa.ops import Mask, Word
from vc4lab.qpu.isa.qpu_unknowns import DEFAULTS, Settings
from vc4lab.qpu.jit.core import Final
from vc4lab.qpu.jit.emitter import emit_program
from vc4lab.qpu.program.program import Program
from vc4lab.qpu.run.environment import Environment, RegisterKey
from vc4lab.qpu.run.execute import ALL_FLAGS
from vc4lab.qpu.run.interpreter import Interpreter, TraceHook
from vc4lab.simd import (
    FP_INVALID,
    FP_OVERFLOW,
    Function,
    Target,
    Value,
    any_,
    build,
    call_with_flags,
    const,
    i32,
    i32x16,
    iota,
    load,
    mask_bits,
    ptr,
    select,
    splat,
    store,
    umin,
    var,
)

if TYPE_CHECKING:
    from collections.abc import Callable

KEYS: tuple[RegisterKey, ...] = (
    *(("a", n) for n in range(32)),
    *(("b", n) for n in range(32)),
    *(("r", n) for n in range(6)),
)
LOG_SIZE = 256
"""Vectors that the log of VPM writes holds; a program that writes more starts again at its
beginning.
"""

_WHY = ("end", "limit", "left")
_REGISTERS = 0
_FLAGS = _REGISTERS + 64 * len(KEYS)
_COUNTS = _FLAGS + 64
_LOG = _COUNTS + 64
_INPUTS = _LOG + 64 * LOG_SIZE


@dataclass
class Outcome:
    """What a run left: registers and flags by name, VPM writes, how it ended, and whether
    the fast build gave up.
    """

    registers: dict[RegisterKey, Any]
    flags: dict[str, Any]
    log: list[Any] = field(default_factory=list)
    why: str = "end"
    exact: bool = False

    def differences(self, other: Outcome) -> list[str]:
        """Names of everything that is not the same."""
        found = [] if self.why == other.why else ["why"]
        for key in KEYS:
            if not np.array_equal(self.registers[key], other.registers[key]):
                found.append(f"{key[0]}{key[1]}")
        for name in ALL_FLAGS:
            if not np.array_equal(self.flags[name], other.flags[name]):
                found.append(name)
        same = len(self.log) == len(other.log)
        if not same or any(not np.array_equal(a, b) for a, b in zip(self.log, other.log, strict=True)):
            found.append("log")
        return found


class _Quiet(Environment):
    """Synchronisation that does nothing."""

    def thread_switch(self, last: bool) -> None:
        pass

    def scoreboard_wait(self) -> None:
        pass

    def scoreboard_unlock(self) -> None:
        pass

    def mutex_release(self) -> None:
        pass

    def semaphore(self, number: int, decrement: bool) -> None:
        pass

    def host_interrupt(self, value: Word, mask: Mask) -> None:
        pass

    def tmu_noswap(self, value: Word) -> None:
        pass

    def vpm_setup(self, side: str, value: Word) -> None:
        pass


class ListEnvironment(_Quiet):
    """The interpreter's surroundings."""

    def __init__(self, uniforms: Sequence[int] = (), vectors: Sequence[Any] = ()) -> None:
        self.uniforms = [int(u) & 0xFFFFFFFF for u in uniforms]
        self.vectors = [np.asarray(v, np.uint32) for v in vectors]
        self.next_uniform = 0
        self.next_vector = 0
        self.log: list[Any] = []
        self.stopped = ""

    def uniform(self) -> Word:
        word = self.uniforms[self.next_uniform] if self.next_uniform < len(self.uniforms) else 0
        self.next_uniform = min(self.next_uniform + 1, len(self.uniforms))
        return np.full(16, word, np.uint32)

    def uniforms_address(self, value: Word, relative: bool, mask: Mask) -> None:
        """The list lies at address 0."""
        if not mask[0]:
            return
        words = int(value[0]) >> 2
        if relative:
            words += self.next_uniform
        self.next_uniform = min(words, len(self.uniforms))

    def vpm_read(self) -> Word:
        if self.next_vector >= len(self.vectors):
            return np.zeros(16, np.uint32)
        self.next_vector += 1
        return self.vectors[self.next_vector - 1]

    def vpm_write(self, value: Word, mask: Mask) -> None:
        self.log.append(np.where(mask, value, 0).astype(np.uint32))

    def element_number(self) -> Word:
        return np.arange(16, dtype=np.uint32)

    def qpu_number(self) -> Word:
        return np.zeros(16, np.uint32)

    def x_coord(self) -> Word:
        return np.arange(16, dtype=np.uint32) & 1

    def y_coord(self) -> Word:
        return np.arange(16, dtype=np.uint32) >> 1 & 1

    def loop_limit(self) -> None:
        self.stopped = "limit"

    def left_program(self, target: Any) -> None:
        self.stopped = "left"


class StagedEnvironment(_Quiet):
    """The same surroundings for the JIT. base: the state block; counts: (uniforms, vectors)."""

    def __init__(self, base: Value, counts: tuple[int, int], registers: Any) -> None:
        self.base = base
        self.registers = registers
        self.uniform_count, self.vector_count = counts
        self.next_uniform = var(i32, 0)
        self.next_vector = var(i32, 0)
        self.logged = var(i32, 0)
        self.why = var(i32, 0)

    def initial_registers(self) -> dict[RegisterKey, Word]:
        return {key: load(i32x16, self.base + 64 * KEYS.index(key), 64) for key in self.registers}

    def uniform(self) -> Word:
        index = self.next_uniform.get()
        self.next_uniform.set(umin(index + 1, const(i32, self.uniform_count)))
        return splat(load(i32, self.base + (_INPUTS + 64 * self.vector_count) + index * 4, 4))

    def uniforms_address(self, value: Word, relative: bool, mask: Mask) -> None:
        words, here = value[0].shr(2), self.next_uniform.get()
        if relative:
            words = words + here
        words = umin(words, const(i32, self.uniform_count))
        self.next_uniform.set(select(mask[0], words, here))

    def vpm_read(self) -> Word:
        index = self.next_vector.get()
        some = index < self.vector_count
        self.next_vector.set(select(some, index + 1, index))
        word = load(i32x16, self.base + _INPUTS + index * 64, 64)
        return select(some, word, const(i32x16, 0))

    def vpm_write(self, value: Word, mask: Mask) -> None:
        count = self.logged.get()
        self.logged.set(count + 1)
        word = select(mask, value, const(i32x16, 0))
        store(self.base + _LOG + (count & (LOG_SIZE - 1)) * 64, word, 64)

    def element_number(self) -> Word:
        return iota()

    def qpu_number(self) -> Word:
        return const(i32x16, 0)

    def x_coord(self) -> Word:
        return iota() & 1

    def y_coord(self) -> Word:
        return iota().shr(1) & 1

    def loop_limit(self) -> None:
        self.why.set(1)

    def left_program(self, target: Any) -> None:
        self.why.set(2)


def compile_program(
    program: Program,
    *,
    fast: bool,
    registers: Sequence[RegisterKey] = (),
    uniforms: int = 0,
    vectors: int = 0,
    settings: Settings = DEFAULTS,
    budget: int = 1 << 16,
    target: Target | None = None,
) -> Callable[[int], int]:
    """A native function (state block address) -> 0, or why the result is not to be trusted."""

    def body(base: Value) -> Value:
        env = StagedEnvironment(base, (uniforms, vectors), registers)
        final = emit_program(program, env, exact=not fast, budget=budget, settings=settings, observe=True)
        _store(base, final)
        store(base + _COUNTS, env.logged.get())
        store(base + _COUNTS + 4, env.why.get())
        return select(any_(env.wild.get()), 16, 0) if fast else const(i32, 0)

    inner = Function((ptr,), i32, body, "program")

    def entry(base: Value) -> Value:
        wild, flags = call_with_flags(inner, base)
        return wild | (flags & (FP_INVALID | FP_OVERFLOW))

    outer = Function((ptr,), i32, entry, "run")
    return build("qpu program", {"run": outer}, target=target, quick=True)["run"]


def _store(base: Value, final: Final) -> None:
    for index, key in enumerate(KEYS):
        store(base + (_REGISTERS + 64 * index), final.read(key), 64)
    for index, name in enumerate(ALL_FLAGS):
        store(base + (_FLAGS + 4 * index), mask_bits(final.flag(name)))


class Runner:
    """A program ready to be run many times by one engine.

    engine: "interpreter", "exact" (JIT with reference semantics), "fast" (JIT, whatever comes out), or
    "jit" (fast, and exact if the fast build noticed that it could not be). budget: instructions
    (JIT: those in loops). trace: interpreter only, see `Interpreter`.
    """

    def __init__(
        self,
        words: Sequence[int],
        engine: str = "interpreter",
        *,
        settings: Settings = DEFAULTS,
        budget: int = 1 << 16,
        target: Target | None = None,
        trace: TraceHook | None = None,
    ) -> None:
        if engine not in ("interpreter", "exact", "fast", "jit"):
            raise ValueError(f"there is no engine {engine!r}")
        self.program = Program(tuple(words))
        self.engine, self.settings, self.budget = engine, settings, budget
        self.target, self.trace = target, trace
        self._built: dict[tuple[object, ...], Callable[[int], int]] = {}

    def _native(self, fast: bool, *shape: Any) -> Callable[[int], int]:
        key = (fast, *shape)
        if key not in self._built:
            registers, uniforms, vectors = shape
            self._built[key] = compile_program(
                self.program,
                fast=fast,
                registers=registers,
                uniforms=uniforms,
                vectors=vectors,
                settings=self.settings,
                budget=self.budget,
                target=self.target,
            )
        return self._built[key]

    def run(
        self,
        registers: Mapping[RegisterKey, Any] | None = None,
        uniforms: Sequence[int] = (),
        vectors: Sequence[Any] = (),
    ) -> Outcome:
        """Run once; see `run_program`."""
        initial = {key: np.broadcast_to(_lanes(v), 16) for key, v in (registers or {}).items()}
        if self.engine == "interpreter":
            env = ListEnvironment(uniforms, vectors)
            machine = Interpreter(self.program, env, initial, settings=self.settings, trace=self.trace)
            why = machine.run(self.budget)
            values = {key: np.array(machine.read(key)) for key in KEYS}
            flags = {name: np.array(machine.flag(name)) for name in ALL_FLAGS}
            return Outcome(values, flags, env.log, why, True)
        shape = tuple(initial), len(uniforms), len(vectors)
        exact = self.engine == "exact"
        block = _state(initial, uniforms, vectors)
        status = self._native(not exact, *shape)(block.ctypes.data)
        if self.engine == "jit" and status:
            exact = True
            block = _state(initial, uniforms, vectors)
            self._native(False, *shape)(block.ctypes.data)
        return _outcome(block, exact)


def run_program(
    words: Sequence[int],
    registers: Mapping[RegisterKey, Any] | None = None,
    *,
    engine: str = "interpreter",
    uniforms: Sequence[int] = (),
    vectors: Sequence[Any] = (),
    settings: Settings = DEFAULTS,
    budget: int = 1 << 16,
    target: Target | None = None,
    trace: TraceHook | None = None,
) -> Outcome:
    """Run instruction words from the first one on.

    Args:
        registers: initial values by ("a"|"b"|"r", n): a number for all lanes, or 16.
        uniforms: words of the uniform stream; vectors: what VPM reads deliver.
        engine, settings, budget, target, trace: see `Runner`.
    Raises Unsupported.
    """
    runner = Runner(words, engine, settings=settings, budget=budget, target=target, trace=trace)
    return runner.run(registers, uniforms, vectors)


def _lanes(value: Any) -> Any:
    return np.asarray(value & 0xFFFFFFFF if isinstance(value, int) else value).astype(np.uint32)


def _state(initial: Mapping[RegisterKey, Any], uniforms: Sequence[int], vectors: Any) -> Any:
    """The zeroed state block with its inputs, 64-byte aligned."""
    size = _INPUTS + 64 * len(vectors) + 4 * len(uniforms) + 4 + 64
    raw = np.zeros(size // 4 + 32, np.uint32)
    skip = -raw.ctypes.data % 64 // 4
    block = raw[skip:]
    for key, value in initial.items():
        index = KEYS.index(key) * 16
        block[index : index + 16] = value
    for n, vector in enumerate(vectors):
        block[_INPUTS // 4 + 16 * n : _INPUTS // 4 + 16 * n + 16] = vector
    start = _INPUTS // 4 + 16 * len(vectors)
    block[start : start + len(uniforms)] = [int(u) & 0xFFFFFFFF for u in uniforms]
    return block


def _outcome(block: Any, exact: bool) -> Outcome:
    values = {key: block[16 * n : 16 * n + 16].copy() for n, key in enumerate(KEYS)}
    lanes = np.arange(16)
    flags = {
        name: (int(block[_FLAGS // 4 + n]) >> lanes & 1).astype(bool) for n, name in enumerate(ALL_FLAGS)
    }
    count, why = int(block[_COUNTS // 4]), int(block[_COUNTS // 4 + 1])
    log = [block[_LOG // 4 + 16 * n : _LOG // 4 + 16 * n + 16].copy() for n in range(min(count, LOG_SIZE))]
    return Outcome(values, flags, log, _WHY[why], exact)

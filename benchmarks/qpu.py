"""How fast QPU programs run: the fast JIT over many batches of 16 lanes, one core, per instruction
set level.

The program is shaped like a lit and textured fragment shader (185 instructions, mostly fmul and
fadd in both ALUs, some moves, minima, packs, conversions and special functions), and every result
is used, so that nothing can be optimised away. `G lane-op/s` counts ALU operations that are not
NOP, times 16 lanes. A VideoCore IV at 250 MHz peaks at 24.
"""

from __future__ import annotations

import random
import time
from typing import Any

from vc4lab.qpu.isa.encoding import NOP, AddOp, Alu, Mux, Pack
from vc4lab.qpu.jit.emitter import emit_interleaved
from vc4lab.qpu.program.program import Program
from vc4lab.qpu.run.environment import Environment
from vc4lab.simd import (
    FP_INVALID,
    FP_OVERFLOW,
    Function,
    Target,
    any_,
    build,
    call_with_flags,
    const,
    f32,
    f32x16,
    i1,
    i32,
    i32x16,
    is_nan,
    kernel,
    load,
    mask16,
    ptr,
    select,
    splat,
    staged,
    store,
    targets,
    var,
)

INSTRUCTIONS = 185
VARYINGS = 8
UNIFORMS = 48
BATCHES = 64


class _Writer:
    """Makes a random program in which every value is read before it is overwritten."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.words: list[int] = []
        self.operations = 0
        self.floats = [0, 1, 2, 3]  # accumulators that hold floats near 1
        self.unread: set[int] = set()

    def emit(self, **fields: Any) -> None:
        self.words.append(Alu(NOP.value).replace(**fields).encode())
        self.operations += bool(fields.get("op_add")) + bool(fields.get("op_mul"))

    def operand(self) -> Mux:
        """An accumulator, unread ones first."""
        pick = sorted(self.unread) or self.floats
        number = self.random.choice(pick)
        self.unread.discard(number)
        return Mux(number)

    def pair(self, *, uniform: bool) -> None:
        """fmul and fadd, sometimes with a minimum, maximum or move instead of the sum."""
        r = self.random
        kind = r.random()
        op = AddOp.FADD if kind < 0.62 else AddOp.FSUB if kind < 0.75 else AddOp.FMAX
        op = AddOp.FMIN if 0.82 < kind < 0.88 else AddOp.OR if kind >= 0.88 else op
        register = r.randrange(2, 14)
        mul_a = Mux.B if uniform else Mux.A
        add_a = self.operand()
        fields: dict[str, Any] = {"raddr_a": register, "add_a": add_a, "mul_a": mul_a}
        fields["add_b"] = add_a if op == AddOp.OR else self.operand()
        fields["mul_b"] = self.operand()
        if uniform:
            fields["raddr_b"] = 32
        target, other = r.sample(range(4), 2)
        self.emit(
            op_add=op,
            op_mul=1,
            cond_add=1,
            cond_mul=1,
            waddr_add=32 + target if r.random() < 0.8 else register,
            waddr_mul=32 + other,
            **fields,
        )
        self.unread |= {target, other}


def shader(seed: int = 1) -> tuple[Program, int]:
    """(program, ALU operations that are not NOP)."""
    w = _Writer(seed)
    for index in range(VARYINGS):  # value = slope * W + C, as Mesa writes it
        w.emit(op_mul=1, cond_mul=1, raddr_a=15, raddr_b=35, mul_a=6, mul_b=7, waddr_mul=32)
        w.emit(op_add=1, cond_add=1, add_a=0, add_b=5, waddr_add=2 + index)
    for index in range(4):
        w.emit(op_add=21, cond_add=1, raddr_a=2 + index, add_a=6, add_b=6, waddr_add=32 + index)
    uniforms = 0
    tail = 13 + 3
    while len(w.words) < INSTRUCTIONS - tail:
        place = len(w.words)
        if place % 40 == 39:  # a special function and its latency
            special = (52, 53, 55)[place // 40 % 3]
            w.emit(op_add=6, cond_add=1, add_a=0, add_b=7, waddr_add=special, signal=13, raddr_b=32)
            w.pair(uniform=False)
            w.pair(uniform=False)
            w.emit(op_mul=1, cond_mul=1, mul_a=4, mul_b=1, waddr_mul=33)
        elif place % 50 == 25:
            w.emit(op_add=7, cond_add=1, add_a=2, add_b=2, waddr_add=32)
            w.emit(op_add=8, cond_add=1, add_a=0, add_b=0, waddr_add=34)
        else:
            w.pair(uniform=w.random.random() < 0.5 and uniforms < UNIFORMS)
            uniforms += w.words[-1] >> 12 & 63 == 32
    for index in range(8):  # use what is still in the register file
        w.emit(op_add=1, cond_add=1, raddr_a=2 + index, add_a=6, add_b=index & 3, waddr_add=32 + (index & 3))
    for index in range(4):  # float to colour bytes
        w.emit(op_mul=4, cond_mul=1, mul_a=index, mul_b=index, waddr_mul=32, pm=1, pack=Pack.B8A + index)
    w.emit(op_add=21, cond_add=1, add_a=0, add_b=0, waddr_add=46)
    w.words += [NOP.replace(signal=3).encode(), NOP.value, NOP.value]
    return Program(tuple(w.words)), w.operations


class _Fragment(Environment):
    """Varyings and uniforms from memory, the colour into memory."""

    nan_free = frozenset({"varying", "uniform"})  # `has_nan` looks at the uniforms, once per call

    def __init__(self, inputs: Any, uniforms: Any, output: Any, wild: Any) -> None:
        self.inputs, self.uniforms, self.output = inputs, uniforms, output
        self.wild = wild
        self.varyings = self.reads = 0

    def initial_registers(self) -> dict[tuple[str, int], Any]:
        return {("a", 15): load(f32x16, self.inputs, 64)}

    def varying(self) -> tuple[Any, Any]:
        self.varyings += 1
        return load(f32x16, self.inputs + 64 * self.varyings, 64), splat(
            load(i32, self.uniforms + 4 * (UNIFORMS + self.varyings))
        )

    def uniform(self) -> Any:
        self.reads += 1
        return splat(load(i32, self.uniforms + 4 * (self.reads - 1)))

    def tlb_colour(self, value: Any, mask: Any, all_samples: bool) -> None:
        store(self.output, select(mask, value, const(i32x16, 0)), 64)


def has_nan(uniforms: Any) -> Any:
    """Whether a uniform is NaN (a mask for `wild`)."""
    found = const(i1, False)
    for index in range(UNIFORMS):
        found = found | is_nan(load(f32, uniforms + 4 * index))
    return splat(found)


def compile_loop(program: Program, target: Target | None, together: int = 1) -> Any:
    """Native function (inputs, uniforms, outputs, repetitions) -> 0 if the fast path could do it.

    together: batches whose instructions are interleaved.
    """

    def fragment(batch: Any, inputs: Any, uniforms: Any, outputs: Any, wild: Any) -> _Fragment:
        at = inputs + batch * (64 * (VARYINGS + 1))
        return _Fragment(at, uniforms, outputs + batch * 64, wild)

    def emit(first: Any, *places: Any) -> None:
        envs = [fragment(first + n, *places) for n in range(together)]
        emit_interleaved(program, envs)

    @staged
    def body(inputs: Any, uniforms: Any, outputs: Any, count: Any) -> Any:
        wild = var(mask16, has_nan(uniforms))
        for _ in range(count):
            for turn in range(BATCHES // together):
                emit(turn * together, inputs, uniforms, outputs, wild)
        return select(any_(wild.get()), 16, 0)

    inner = Function((ptr, ptr, ptr, i32), i32, body, "batches")

    @kernel(args=(ptr, ptr, ptr, i32), returns=i32)
    def entry(inputs: Any, uniforms: Any, outputs: Any, count: Any) -> Any:
        wild, flags = call_with_flags(inner, inputs, uniforms, outputs, count)
        return wild | (flags & (FP_INVALID | FP_OVERFLOW))

    return build("qpu benchmark", {"run": entry}, target=target, quick=True)["run"]


def _memory() -> tuple[Any, Any, Any]:
    import numpy as np

    generator = np.random.default_rng(7)

    def aligned(words: int) -> Any:
        raw = np.zeros(words + 16, np.float32)
        return raw[-raw.ctypes.data % 64 // 4 :][:words]

    inputs = aligned(16 * (VARYINGS + 1) * BATCHES)
    inputs[:] = generator.uniform(0.5, 1.0, inputs.size)
    uniforms = aligned(UNIFORMS + VARYINGS + 8)
    uniforms[:] = generator.uniform(-1.0, 1.0, uniforms.size)
    return inputs, uniforms, aligned(16 * BATCHES)


def run() -> list[dict[str, Any]]:
    """Measure: one row per level with name, value, unit; best of several."""
    program, operations = shader()
    inputs, uniforms, outputs = _memory()
    addresses = inputs.ctypes.data, uniforms.ctypes.data, outputs.ctypes.data
    rows: list[dict[str, Any]] = []
    for target, together in ((t, n) for t in targets() for n in (1, 2)):
        start = time.perf_counter()
        function = compile_loop(program, target, together)
        built = time.perf_counter() - start
        status = function(*addresses, 1)
        count = 50
        best = 1e9
        for _ in range(15):
            start = time.perf_counter()
            function(*addresses, count)
            best = min(best, time.perf_counter() - start)
        rate = operations * 16 * BATCHES * count / best / 1e9
        pair = ", two batches interleaved" if together == 2 else ""
        rows.append(
            {
                "name": f"qpu {len(program)} instructions, {target.level}{pair}",
                "value": round(rate, 1),
                "unit": "G lane-op/s",
                "operations": operations,
                "build_seconds": round(built, 3),
                "deopt": bool(status),
            }
        )
    return rows


if __name__ == "__main__":
    for row in run():
        print(row)

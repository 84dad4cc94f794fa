"""A vertex or coordinate shader compiled into the native loop over batches of 16 vertices."""

from __future__ import annotations

from typing import Any

from vc4lab.memory import PAD
from vc4lab.qpu.environment import Environment, Unsupported
from vc4lab.qpu.jit import emit_program
from vc4lab.qpu.program import Program
from vc4lab.simd import (
    FP_INVALID,
    FP_OVERFLOW,
    Value,
    alloca,
    any_,
    call_with_flags,
    const,
    i32,
    i32x16,
    i64,
    iota,
    kernel,
    load,
    mask16,
    min_,
    ptr,
    select,
    splat,
    staged,
    store,
    unroll,
    var,
)
from vc4lab.v3d.geometry.primitive_decoder import host
from vc4lab.v3d.geometry.vertex_context import CHUNK, DEOPT, DONE, ENDLESS, VertexContext, VertexKey
from vc4lab.v3d.geometry.vertex_fetch import batch_mask, fetch_rows, lane_indices
from vc4lab.v3d.geometry.vpm import (
    ROW_BYTES,
    WINDOW_ROWS,
    NeedsCells,
    RowWindow,
    check_setup,
)

BUDGET = 1 << 14
"""Trips around loops one vertex shader may make."""


class _VertexEnvironment(Environment):
    """What both kinds of vertex environment share: uniforms, lanes, and what does nothing here."""

    def __init__(self, context: Value, program: Program) -> None:
        self.context: Any = VertexContext.at(context)
        self.stopped = var(i32, 0)
        self.branchy = program.has_branches
        self.uniforms: Any = self.context.uniforms
        self.stream = var(i32, 0)  # byte offset, for programs with branches
        self.taken = 0  # the same in straight-line programs

    def uniform(self) -> Value:
        memory = self.context.memory
        if self.branchy:
            running = self.stream.get()
            self.stream.set(running + 4)
            return splat(load(i32, host(memory, self.uniforms + running)))
        position = self.taken
        self.taken += 4
        if position < PAD // 2:
            return splat(load(i32, host(memory, self.uniforms) + position))
        return splat(load(i32, host(memory, self.uniforms + position)))

    def uniforms_address(self, value: Value, relative: bool) -> None:
        if relative:
            self.refuse("a relative uniforms address")
        if self.branchy:
            self.stream.set(value[0] - self.uniforms)
        else:
            self.uniforms = value[0]
            self.taken = 0

    def element_number(self) -> Value:
        return iota(16)

    def qpu_number(self) -> Value:
        return splat(const(i32, 0))

    def thread_switch(self, last: bool) -> None:
        """One thread per batch: switching is invisible."""

    def loop_limit(self) -> None:
        self.stopped.set(1)

    def left_program(self) -> None:
        self.stopped.set(1)

    def refuse(self, what: str) -> Any:
        raise Unsupported("VTX-002", f"{what} in a vertex shader", self.site)


class RowEnvironment(_VertexEnvironment):
    """VPM rows as values: for straight-line programs whose setup words are constants."""

    def __init__(self, context: Value, program: Program, rows: list[Value], key: VertexKey) -> None:
        super().__init__(context, program)
        self.rows = rows
        self.window = RowWindow(len(rows), key.rows)
        self.written: dict[int, Value] = {}

    def vpm_setup(self, side: str, value: Value) -> None:
        word = value[0].constant
        if word is None:
            raise NeedsCells
        self.window.setup(side, int(word) & 0xFFFFFFFF, self.site)

    def vpm_read(self) -> Value:
        row = self.window.next_read()
        return splat(const(i32, 0)) if row is None else self.rows[row]

    def vpm_write(self, value: Value, mask: Value) -> None:
        row = self.window.next_write()
        if row is not None:
            old = self.written.get(row, splat(const(i32, 0)))
            self.written[row] = select(mask, _word(value), old)

    def finish(self, target: Value, rows: int) -> None:
        """Store the output rows; rows never written are 0."""
        for row in unroll(rows):
            store(target + row * ROW_BYTES, self.written.get(row, splat(const(i32, 0))), align=64)


class CellEnvironment(_VertexEnvironment):
    """VPM rows in memory, addressed at run time: for programs with branches or computed setups.

    The number of vectors in a read setup is not counted, and a setup word is trusted to ask for
    whole rows unless it is a constant that says otherwise.
    """

    def __init__(self, context: Value, program: Program, rows: list[Value], key: VertexKey) -> None:
        super().__init__(context, program)
        self.inputs = alloca(WINDOW_ROWS * ROW_BYTES)
        self.outputs = alloca(WINDOW_ROWS * ROW_BYTES)
        for row in unroll(WINDOW_ROWS):
            word = rows[row] if row < len(rows) else splat(const(i32, 0))
            store(self.inputs + row * ROW_BYTES, word)
            store(self.outputs + row * ROW_BYTES, splat(const(i32, 0)))
        self.position = {side: var(i32, 0) for side in ("read", "write")}
        self.step = {side: var(i32, 1) for side in ("read", "write")}

    def vpm_setup(self, side: str, value: Value) -> None:
        word = value[0]
        if word.constant is not None:
            check_setup(int(word.constant) & 0xFFFFFFFF, self.site)
        self.position[side].set(word & (WINDOW_ROWS - 1))
        self.step[side].set((word >> 12) & (WINDOW_ROWS - 1))

    def _next(self, side: str) -> Value:
        row = self.position[side].get()
        self.position[side].set((row + self.step[side].get()) & (WINDOW_ROWS - 1))
        return row * ROW_BYTES

    def vpm_read(self) -> Value:
        return load(i32x16, self.inputs + self._next("read"))

    def vpm_write(self, value: Value, mask: Value) -> None:
        place = self.outputs + self._next("write")
        store(place, select(mask, _word(value), load(i32x16, place)))

    def finish(self, target: Value, rows: int) -> None:
        """Copy the output rows."""
        for row in unroll(rows):
            store(target + row * ROW_BYTES, load(i32x16, self.outputs + row * ROW_BYTES))


def _word(value: Value) -> Value:
    """A word as i32 lanes."""
    return value if value.type is i32x16 else value.bitcast(i32x16)


def shade_kernel(key: VertexKey, program: Program, exact: bool, cells: bool) -> Any:
    """Kernel (context) that shades up to CHUNK batches from `next_batch` on; a status."""
    environment = CellEnvironment if cells else RowEnvironment

    @staged
    def run_batch(context: Value, batch: Value, wild: Any) -> None:
        c: Any = VertexContext.at(context)
        wanted = batch_mask(c, batch)
        if any_(wanted) & (c.stopped == 0):
            rows = fetch_rows(key, context, lane_indices(wanted, batch))
            env = environment(context, program, rows, key)
            env.wild = wild
            emit_program(program, env, exact=exact, budget=BUDGET, settings=key.unknowns)
            target = c.output + batch.sext(i64) * key.pitch
            env.finish(target, key.rows)
            c.stopped = c.stopped | env.stopped.get()
            c.batches = c.batches + 1

    @kernel(args=(ptr, i32, i32), returns=None)
    def run(context: Value, start: Any, end: Any) -> None:
        c: Any = VertexContext.at(context)
        wild = var(mask16, False)
        for batch in range(start, end):
            run_batch(context, batch, wild)
        c.wild = select(any_(wild.get()), const(i32, 1), const(i32, 0))

    @kernel(args=(ptr,), returns=i32)
    def shade(context: Value) -> Value:
        c: Any = VertexContext.at(context)
        start = c.next_batch
        end = min_(start + CHUNK, (c.last >> 4) + 1)
        status = const(i32, DONE)
        _, flags = call_with_flags(run, context, start, end)
        if exact:
            c.next_batch = end
        elif (c.wild != 0) | ((flags & (FP_INVALID | FP_OVERFLOW)) != 0):
            status = const(i32, DEOPT)
        else:
            c.next_batch = end
        if c.stopped != 0:
            status = const(i32, ENDLESS)
        return status

    return shade

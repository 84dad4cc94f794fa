"""A vertex or coordinate shader compiled for batches of 16 vertices (see `driver.py`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

from vc4lab.memory import PAD
from vc4lab.memory.native import host
from vc4lab.qpu.jit.emitter import emit_program
from vc4lab.qpu.program.program import Program
from vc4lab.qpu.run.environment import Noted, Unsupported
from vc4lab.simd.control import unroll
from vc4lab.simd.floatmode import address_of, call_pointer, imported
from vc4lab.simd.kernel import call, kernel
from vc4lab.simd.members import i8, i32, i32x16, ptr
from vc4lab.simd.memory import alloca, load, store, table, var
from vc4lab.simd.types import mask16
from vc4lab.simd.value import Value, const, select, splat
from vc4lab.simd.vector import any_, iota, mask_bits
from vc4lab.v3d.tmu.requests import Requests, TexturingEnvironment, texture_numbers
from vc4lab.v3d.vertex.context import ENDLESS, LEFT, REFUSED, STARVES, VertexContext, VertexKey
from vc4lab.v3d.vertex.driver import BATCH_ARGS, SHADE, description
from vc4lab.v3d.vertex.fetch import FetchedRows
from vc4lab.v3d.vpm.access import (
    Reads,
    first_address,
    next_address,
    one_was_read,
    read_row,
    reader,
    take_setup,
    write_row,
    writer,
)
from vc4lab.v3d.vpm.shader_rows import (
    ROW_BYTES,
    WHOLE_ROWS,
    WINDOW_ROWS,
    NeedsCells,
    RowWindow,
    check_setup,
    only_whole_rows,
)


class _VertexEnvironment(TexturingEnvironment):
    """Shared by both kinds of vertex environment: uniforms, lanes, and what does nothing here."""

    ftoi_fits = True  # coordinates on the screen; a branch would cost an eighth of compile time

    def __init__(self, context: Value, program: Program, key: VertexKey) -> None:
        self.context = VertexContext.at(context)
        self.key = key
        self.program = program
        self.stopped = var(i32, 0)
        self.branchy = program.has_branches
        self.uniforms: Value = self.context.uniforms
        self.stream = var(i32, 0)  # byte offset, for programs with branches
        self.taken: int = 0  # the same in straight-line programs
        self.checked: set[int] = set()  # words of the stream that must not be NaN
        self.moved = False  # the program has set the uniforms' address
        self.requests = self._texture_units()

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

    def uniform_check(self) -> Any:
        """All batches have the same uniforms: the driver looks once."""
        position = self.taken // 4 - 1
        if self.branchy or self.moved or position >= PAD // 8:
            return None
        return partial(self.checked.add, position)

    def uniforms_address(self, value: Value, relative: bool, mask: Value) -> None:
        written = mask[0]
        if self.branchy:
            here = self.stream.get()
            base = -here if relative else self.uniforms
            self.stream.set(select(written, value[0] - base, here))
        else:
            here = self.uniforms + self.taken
            self.uniforms = select(written, value[0] + here if relative else value[0], here)
            self.taken = 0
            self.moved = True

    def noted(self) -> Noted:
        return self.requests.noted()

    def recall(self, noted: Noted) -> None:
        self.requests.recall(noted)

    def _texture_units(self) -> Requests[Value]:
        return Requests(
            texture_numbers(self.program),
            len(self.key.textures),
            sample=self._sample,
            lookup=self._lookup,
            take_uniform=self.take_parameter,
            zero=lambda: const(i32x16, 0),
        )

    def _sample(self, number: int, coordinates: list[Value], parameters: list[Value]) -> tuple[Value, ...]:
        from vc4lab.v3d.tmu.late_textures import sample_late
        from vc4lab.v3d.tmu.sampler import sample

        kinds = self.key.textures
        kind = kinds[number]
        words = [_word(value) for value in coordinates]
        if kind is None:
            return (sample_late(self.context.late, words, parameters),)
        descriptor = load(ptr, self.context.textures + 8 * number)
        shared = kinds.count(kind) > 1
        memory = self.context.memory  # here and not once for all: this may be in a branch
        found = sample(kind, descriptor, memory, *words, shared=shared)
        return found if isinstance(found, tuple) else (found,)

    def _lookup(self, addresses: Value) -> Value:
        from vc4lab.v3d.tmu.sampler import direct_lookup

        return direct_lookup(self.context.memory, _word(addresses))

    def take_parameter(self) -> Value | None:
        """The texture unit takes a word of the stream; what it is if that is not known before."""
        if None in self.key.textures:
            return self.uniform()[0]
        if self.branchy:
            self.stream.set(self.stream.get() + 4)
        else:
            self.taken += 4
        return None

    def element_number(self) -> Value:
        return iota(16)

    def qpu_number(self) -> Value:
        return splat(const(i32, 0))

    def host_interrupt(self, value: Value, mask: Value) -> None:
        place, asked = self.context.interrupts, any_((_word(value) != 0) & mask)
        store(place, select(asked, const(i8, 1), load(i8, place)))

    def stop_unless(self, condition: Value, status: int) -> None:
        """Let what is shaded not count if an i1 is false."""
        self.stopped.set(select(condition, self.stopped.get(), const(i32, status)))

    def loop_limit(self) -> None:
        before = self.stopped.get()
        self.stopped.set(select(before == STARVES, before, const(i32, ENDLESS)))

    def left_program(self, target: Value) -> None:
        self.stopped.set(LEFT)
        self.context.left = target

    def refuse(self, what: str) -> NoReturn:
        raise Unsupported("VTX-002", f"{what} in a vertex shader", self.site)


class RowEnvironment(_VertexEnvironment):
    """VPM rows as values: for straight-line programs whose setup words are constants."""

    def __init__(self, context: Value, program: Program, rows: FetchedRows, key: VertexKey) -> None:
        super().__init__(context, program, key)
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
    """VPM rows in memory, addressed at run time: for programs with branches, computed setups or
    accesses other than whole rows.
    """

    def __init__(self, context: Value, program: Program, rows: Any, key: VertexKey) -> None:
        super().__init__(context, program, key)
        self.inputs = alloca(WINDOW_ROWS * ROW_BYTES)
        self.outputs = alloca(WINDOW_ROWS * ROW_BYTES)
        self.fill(rows)
        self.whole_rows = only_whole_rows(program)
        self.reads = Reads.at(alloca(Reads.size))
        for name in Reads.fields:
            setattr(self.reads, name, 0)
        self.write_setup, self.write_address = var(i32, WHOLE_ROWS), var(i32, 0)

    def fill(self, rows: Any) -> None:
        """Before the program begins: attributes, and nothing that it wrote."""
        zero = splat(const(i32, 0))
        for row in unroll(WINDOW_ROWS):
            store(self.inputs + row * ROW_BYTES, rows[row] if row < len(rows) else zero)
            store(self.outputs + row * ROW_BYTES, zero)

    def vpm_setup(self, side: str, value: Value) -> None:
        word = value[0]
        if word.constant is not None:
            check_setup(int(word.constant) & 0xFFFFFFFF, self.site)
        else:
            self.stop_unless(word.shr(30) == 0, REFUSED)
        if side == "read":
            take_setup(self.reads, word)
        else:
            self.write_setup.set(word)
            self.write_address.set(first_address(word))

    def vpm_read(self) -> Value:
        reads = self.reads
        asked = reads.left != 0
        if not self.key.forgiving:
            self.stop_unless(asked, STARVES)
        word, address = reads.setup, reads.vector
        if self.whole_rows:
            found = read_row(self.inputs, address)
        else:
            extension = self.key.unknowns["vpm_read_extension"]
            found = call(reader(extension), self.inputs, word, address)
        one_was_read(reads)
        return select(splat(asked), found, splat(const(i32, 0)))

    def vpm_write(self, value: Value, mask: Value) -> None:
        word, address = self.write_setup.get(), self.write_address.get()
        if self.whole_rows:
            write_row(self.outputs, address, _word(value), mask)
        else:
            call(writer(), self.outputs, word, address, _word(value), mask)
        self.write_address.set(next_address(word, address))

    def finish(self, target: Value, rows: int) -> None:
        """Copy the output rows."""
        for row in unroll(rows):
            store(target + row * ROW_BYTES, load(i32x16, self.outputs + row * ROW_BYTES))


def _word(value: Value) -> Value:
    """A word as i32 lanes."""
    return value if value.type is i32x16 else value.bitcast(i32x16)


def shade_entry(
    key: VertexKey, program: Program, exact: bool, cells: bool
) -> Callable[[Value, Value], Value]:
    """Hand the program for one batch to the driver, as `vertex_driver.ENTRY` describes it."""
    environment = CellEnvironment if cells else RowEnvironment
    made: list[Any] = []

    @kernel(args=BATCH_ARGS, returns=i32)
    def batch(context: Value, target: Value) -> Value:
        c = VertexContext.at(context)
        wild = var(mask16, False)
        env = environment(context, program, FetchedRows(key, context), key)
        env.wild = wild
        made.append(env)
        learned = program.targets
        emit_program(program, env, exact=exact, settings=key.unknowns, learned=learned)
        env.finish(target, key.rows)
        c.stopped = env.stopped.get()
        return mask_bits(wild.get())

    def shade(context: Value, exact_entry: Value) -> Value:
        function = address_of(batch)  # traced here: `made` has its environment from now on
        numbers = table(i32, description(key, exact, made[-1].checked))
        types = (ptr, ptr, ptr, ptr)
        arguments = (context, exact_entry, function, numbers)
        shared = imported(SHADE, i32, types)
        return call_pointer(shared, i32, types, *arguments, float_mode="keep")

    return shade

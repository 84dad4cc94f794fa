"""The reference interpreter of vertex shading: native attribute fetch, the QPU interpreter on many batches.

All batches of 16 vertices run side by side in wide words (`qpu/run/wide.py`). If they want
different things of the VPM or of the uniforms they are run one by one instead.
"""

from __future__ import annotations

import copy
import ctypes
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from vc4lab.qpu.run.environment import PROVEN_BUDGET, UNPROVEN_BUDGET, Noted, Unsupported, uncompiled_budget
from vc4lab.qpu.run.staged import EagerWideEnvironment, EagerWideInterpreter, part_of
from vc4lab.qpu.run.wide import run_wide
from vc4lab.simd import Cell, build, const, i32, i32x16, load, ptr
from vc4lab.simd.eager import Eager, running
from vc4lab.simd.eager_wide import Diverged, WideEager
from vc4lab.simd.value import Lanes, Value, const_bits
from vc4lab.v3d.vertex.context import DONE, ENDLESS, LEFT, VertexContext, VertexKey
from vc4lab.v3d.vertex.fetch import fetch_kernel
from vc4lab.v3d.vertex.shader import CellEnvironment
from vc4lab.v3d.vpm.shader_rows import LANES, ROW_BYTES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vc4lab.qpu.program.program import Program
    from vc4lab.qpu.run.wide import Words

MAX_WIDE_BATCHES = 256
"""Batches that are run together."""


class Ended(Exception):  # noqa: N818 - a verdict on the program
    """The program does not end, or leaves its code. status: of the job."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class InterpretedVertices(CellEnvironment, EagerWideEnvironment):
    """VPM and uniforms of some batches, side by side.

    inputs: rows of attributes, of shape (batches, rows, 16).
    """

    def __init__(self, of: VertexInterpreter, context: VertexContext, inputs: Words) -> None:
        self.blocks = len(inputs)
        self.run = self.eager()
        self.late, self.memory = context.late, context.memory
        with running(self.run):
            super().__init__(const(ptr, context.address), of.program, inputs, of.key)

    def eager(self) -> WideEager:
        """Return what carries out the environment's operations."""
        return WideEager("default", np.arange(self.blocks))

    def fill(self, rows: Words) -> None:
        data = np.ascontiguousarray(rows).view(np.uint8).reshape(self.blocks, -1)
        self._window(self.inputs)[:, : data.shape[1]] = data

    def select(self, rows: NDArray[np.intp]) -> InterpretedVertices:
        new = copy.copy(self)
        for name, value in vars(self).items():
            if isinstance(value, Cell):
                setattr(new, name, copy.copy(value))
        new.blocks, new.run = len(rows), self.run.some(rows)
        new.requests = new._texture_units()
        shape, values = self.requests.noted()
        new.requests.recall(Noted(shape, tuple(part_of(value, rows) for value in values)))
        return new

    def _window(self, place: Value) -> NDArray[np.uint8]:
        """The bytes of a VPM, for each batch."""
        found = self.run.bytes_at(place)
        assert found is not None
        return found[0]

    def written(self) -> NDArray[np.uint8]:
        """The VPM after the program, for each batch."""
        return self._window(self.outputs)

    def stop_unless(self, condition: Value, status: int) -> None:
        if not condition.constant:
            raise Ended(status)

    def loop_limit(self) -> None:
        raise Ended(ENDLESS)

    def left_program(self, target: Any) -> None:
        super().left_program(const_bits(i32, target))
        raise Ended(LEFT)

    def _sample(self, number: int, coordinates: list[Value], parameters: list[Value]) -> tuple[Value, ...]:
        from vc4lab.v3d.tmu.kernels import sample_many
        from vc4lab.v3d.tmu.late_textures import late_textures_at

        kind, words = self.key.textures[number], [Eager.words(value) for value in coordinates]
        if kind is None:
            given = [Eager.words(value) for value in parameters]
            found = late_textures_at(self.late).sample(self.memory, words, given, self.blocks)
        else:
            descriptor = load(ptr, self.context.textures + 8 * number).constant
            found = sample_many(kind, descriptor, self.memory, words, self.blocks)
        return tuple(Lanes(i32x16, "", word) for word in found)

    def _lookup(self, addresses: Value) -> Value:
        from vc4lab.v3d.tmu.kernels import lookup_at

        return Lanes(i32x16, "", lookup_at(self.memory, Eager.words(addresses)))


class VertexInterpreter:
    """Shades batches with the interpreter; same results as the native pipelines."""

    def __init__(self, key: VertexKey, program: Program, pipeline: Callable[[VertexKey], Any]) -> None:
        self.key = key
        self.pipeline = pipeline
        """Compiles a stage."""
        self.program = program
        self.alone = key.engine != "interpreter"
        """Whether there is no compiled code to find out if the program ends."""
        layout = f"{key.attributes} {key.total_size}"
        self.fetch = build("fetch", {"fetch": fetch_kernel(key)}, key=layout)["fetch"]

    def shade(self, context: VertexContext) -> int:
        """Shade the used vertices of a job; a status."""
        budget = uncompiled_budget(len(self.program)) if self.alone else UNPROVEN_BUDGET
        status = self._shade_all(context, budget)
        if status != ENDLESS or self.alone:
            return status
        if self._is_endless(context):
            return ENDLESS
        budget = uncompiled_budget(len(self.program)) if self.alone else PROVEN_BUDGET
        return self._shade_all(context, budget)

    def _is_endless(self, context: VertexContext) -> bool:
        """Whether compiled code uses up its budget. What it writes will be written again."""
        try:
            pipeline = self.pipeline(replace(self.key, engine="exact"))
        except Unsupported:
            self.alone = True
            return False
        batches = context.batches
        try:
            found: bool = pipeline.shade(context) == ENDLESS
            return found
        except Unsupported:  # the interpreter raises it, too
            return False
        finally:
            context.batches = batches

    def _shade_all(self, context: VertexContext, budget: int) -> int:
        batches = context.batches
        begin, end = context.first >> 4, (context.last >> 4) + 1
        for first in range(begin, end, MAX_WIDE_BATCHES):
            status = self._shade(context, first, min(first + MAX_WIDE_BATCHES, end), budget)
            if status != DONE:
                context.batches = batches
                return status
        return DONE

    def _shade(self, context: VertexContext, first: int, end: int, budget: int) -> int:
        """Shade the used vertices of the batches `first` … `end` - 1."""
        rows_in = self.key.rows_in
        inputs = np.zeros((end - first, max(rows_in, 1), LANES), np.uint32)
        used = [
            batch for batch in range(first, end)
            if self.fetch(context.address, batch, inputs[batch - first].ctypes.data)
        ]  # fmt: skip
        if not used:
            return DONE
        inputs = inputs[np.array(used) - first, :rows_in]
        try:
            try:
                outputs = [self._run(context, inputs, budget)]
            except Diverged:
                outputs = [self._run(context, inputs[k : k + 1], budget) for k in range(len(used))]
        except Ended as verdict:
            return verdict.status
        size = self.key.rows * ROW_BYTES
        for found in outputs:
            for vertices in found:
                target = context.output + used.pop(0) * self.key.pitch
                ctypes.memmove(target, vertices.ctypes.data, size)
                context.batches += 1
        return DONE

    def _run(self, context: VertexContext, inputs: Words, budget: int) -> NDArray[np.uint8]:
        """The VPM after the program, for each batch."""
        env = InterpretedVertices(self, context, inputs)
        settings = self.key.unknowns
        run_wide(self.program, env, settings=settings, budget=budget, kind=EagerWideInterpreter)
        return env.written()

"""The golden path of vertex shading: native attribute fetch, the QPU interpreter on many batches.

All batches of 16 vertices run side by side in wide words (`qpu/run/wide.py`). If they want
different things of the VPM or of the uniforms they are run one by one instead.
"""

from __future__ import annotations

import copy
import ctypes
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from vc4lab.bits import signed32
from vc4lab.memory import MEMORY_MASK
from vc4lab.qpu.run.environment import (
    PROVEN_BUDGET,
    UNPROVEN_BUDGET,
    Noted,
    Unsupported,
    uncompiled_budget,
)
from vc4lab.qpu.run.wide import Diverged, WideEnvironment, rows_of, run_wide
from vc4lab.simd import build
from vc4lab.v3d.tmu.requests import Requests, TexturingEnvironment, texture_numbers
from vc4lab.v3d.vertex.context import DONE, ENDLESS, LEFT, STARVES, VertexContext, VertexKey
from vc4lab.v3d.vertex.fetch import fetch_kernel
from vc4lab.v3d.vpm import golden as vpm
from vc4lab.v3d.vpm.shader_rows import (
    LANES,
    ROW_BYTES,
    WHOLE_ROWS,
    WINDOW_ROWS,
    GenericSetup,
    ReadQueue,
    check_setup,
    first_address,
    next_address,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vc4lab.qpu.program.program import Program
    from vc4lab.v3d.vpm.golden import Lanes, Words

MAX_WIDE_BATCHES = 256
"""Batches that are run together."""


_ZERO = np.zeros(1, np.uint32)


class _Ended(Exception):  # noqa: N818 - a verdict on the program
    """The program does not end, or leaves its code. status: of the job."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class InterpretedVertices(TexturingEnvironment, WideEnvironment):
    """VPM and uniforms of some batches; words are numpy arrays as `WideOps` has them.

    inputs: rows of attributes, shape (batches, rows, 16); outputs: the VPM of all batches, shape
    (all batches, bytes), of which `places` belong to these.
    """

    def __init__(self, of: VertexInterpreter, context: VertexContext, inputs: Words) -> None:
        self.of, self.context = of, context
        self.blocks = len(inputs)
        self.places = np.arange(self.blocks)
        self.inputs = np.zeros((self.blocks, WINDOW_ROWS * ROW_BYTES), np.uint8)
        rows = np.ascontiguousarray(inputs).view(np.uint8).reshape(self.blocks, -1)
        self.inputs[:, : rows.shape[1]] = rows
        self.outputs = np.zeros((self.blocks, WINDOW_ROWS * ROW_BYTES), np.uint8)
        self.stream = int(context.uniforms)
        self.reads = ReadQueue()
        self.write_setup, self.write_address = GenericSetup(WHOLE_ROWS), 0
        self.requests = self._new_requests()

    def select(self, rows: NDArray[np.intp]) -> InterpretedVertices:
        new = copy.copy(self)
        new.blocks, new.places, new.inputs = len(rows), self.places[rows], self.inputs[rows]
        new.reads = copy.deepcopy(self.reads)
        new.requests = new._new_requests()
        shape, values = self.requests.noted()
        new.requests.recall(Noted(shape, tuple(rows_of(value, rows) for value in values)))
        return new

    def uniform(self) -> Words:
        place = self.context.memory + (self.stream & MEMORY_MASK)
        self.stream += 4
        return np.array([ctypes.c_uint32.from_address(place).value], np.uint32)

    def uniforms_address(self, value: Words, relative: bool, mask: Lanes) -> None:
        if _one(mask):
            self.stream = _one(value) + (self.stream if relative else 0)

    def vpm_setup(self, side: str, value: Words) -> None:
        word = _one(value)
        setup = check_setup(word, self.site)
        if side == "read":
            self.reads.setup(word)
        else:
            self.write_setup, self.write_address = setup, first_address(setup)

    def vpm_read(self) -> Words:
        found = self.reads.next()
        if found is None:
            if not self.of.key.forgiving:
                raise _Ended(STARVES)
            return _ZERO
        return vpm.read(self.inputs, *found, self.of.key.unknowns["vpm_read_extension"])

    def vpm_write(self, value: Words, mask: Lanes) -> None:
        offsets, size = vpm.places(self.write_setup, self.write_address)
        places = self.places[:, None]
        for byte in range(size):
            there = places, offsets + byte
            part = (value >> np.uint32(8 * byte)).astype(np.uint8)
            self.outputs[there] = part if mask.all() else np.where(mask, part, self.outputs[there])
        self.write_address = next_address(self.write_setup, self.write_address)

    def _new_requests(self) -> Requests[Words]:
        return Requests(
            self.of.numbers,
            len(self.of.key.textures),
            sample=self._sample,
            lookup=self._lookup,
            take_uniform=self.uniform,
            zero=lambda: _ZERO,
        )

    def _sample(
        self, number: int, coordinates: list[Words], parameters: list[Words]
    ) -> list[Words]:
        from vc4lab.v3d.tmu.kernels import sample_many
        from vc4lab.v3d.tmu.late_textures import late_textures_at

        kind, context = self.of.key.textures[number], self.context
        if kind is None:
            table = late_textures_at(context.late)
            return table.sample(context.memory, coordinates, parameters, self.blocks)
        descriptor = context.textures[number]
        return sample_many(kind, descriptor, context.memory, coordinates, self.blocks)

    def _lookup(self, addresses: Words) -> Words:
        from vc4lab.v3d.tmu.kernels import lookup_at

        return lookup_at(self.context.memory, addresses)

    def tmu_write(self, unit: int, register: str, value: Words, mask: Lanes, site: int) -> None:
        super().tmu_write(unit, register, np.array(value, np.uint32), mask, site)

    def element_number(self) -> Words:
        return np.arange(LANES, dtype=np.uint32)

    def qpu_number(self) -> Words:
        return _ZERO

    def host_interrupt(self, value: Words, mask: Lanes) -> None:
        if bool(np.any((value != 0) & mask)):
            ctypes.c_uint8.from_address(self.context.interrupts).value = 1

    def loop_limit(self) -> None:
        raise _Ended(ENDLESS)

    def left_program(self, target: int) -> None:
        self.context.left = signed32(target)
        raise _Ended(LEFT)

    def refuse(self, what: str) -> NoReturn:
        raise Unsupported("VTX-002", f"{what} in a vertex shader", self.site)


def _one(value: Words | Lanes) -> int:
    """Lane 0, if it is the same in all batches. Raises Diverged."""
    first = value[..., 0]
    if (first != first.flat[0]).any():
        raise Diverged
    return int(first.flat[0])


class VertexInterpreter:
    """Shades batches with the interpreter; same results as the native pipelines."""

    def __init__(
        self, key: VertexKey, program: Program, pipeline: Callable[[VertexKey], Any]
    ) -> None:
        self.key = key
        self.pipeline = pipeline
        """Compiles a stage."""
        self.program = program
        self.alone = key.engine != "interpreter"
        """Whether there is no compiled code to find out if the program ends."""
        self.numbers = texture_numbers(program)
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
        except _Ended as verdict:
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
        run_wide(self.program, env, settings=self.key.unknowns, budget=budget)
        return env.outputs

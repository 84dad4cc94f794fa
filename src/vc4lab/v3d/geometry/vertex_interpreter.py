"""The golden path of vertex shading: native attribute fetch, the QPU interpreter per batch."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

from vc4lab.memory import MEMORY_MASK
from vc4lab.qpu.environment import Environment, Unsupported
from vc4lab.qpu.interpreter import Interpreter
from vc4lab.simd import build
from vc4lab.v3d.geometry.vertex_context import DONE, ENDLESS, VertexContext, VertexKey
from vc4lab.v3d.geometry.vertex_fetch import fetch_kernel
from vc4lab.v3d.geometry.vpm import LANES, WINDOW_ROWS, RowWindow

if TYPE_CHECKING:
    from vc4lab.qpu.program import Program

BUDGET = 1 << 17
"""Instructions one batch may execute."""


class InterpretedVertices(Environment):
    """VPM rows and uniforms of one batch as numpy words."""

    def __init__(self, memory: int, uniforms: int, rows: Any, rows_out: int) -> None:
        self.memory = memory
        self.stream = uniforms
        self.rows = rows
        self.output = np.zeros((WINDOW_ROWS, LANES), np.uint32)
        self.window = RowWindow(len(rows), rows_out)
        self.stopped = False

    def uniform(self) -> Any:
        place = self.memory + (self.stream & MEMORY_MASK)
        self.stream += 4
        return np.full(LANES, ctypes.c_uint32.from_address(place).value, np.uint32)

    def uniforms_address(self, value: Any, relative: bool) -> None:
        if relative:
            self.refuse("a relative uniforms address")
        self.stream = int(value[0])

    def vpm_setup(self, side: str, value: Any) -> None:
        self.window.setup(side, int(value[0]), self.site)

    def vpm_read(self) -> Any:
        row = self.window.next_read()
        return np.zeros(LANES, np.uint32) if row is None else self.rows[row].copy()

    def vpm_write(self, value: Any, mask: Any) -> None:
        row = self.window.next_write()
        if row is not None:
            self.output[row] = np.where(mask, value, self.output[row])

    def element_number(self) -> Any:
        return np.arange(LANES, dtype=np.uint32)

    def qpu_number(self) -> Any:
        return np.zeros(LANES, np.uint32)

    def thread_switch(self, last: bool) -> None:
        """One thread per batch: switching is invisible."""

    def loop_limit(self) -> None:
        self.stopped = True

    def left_program(self) -> None:
        self.stopped = True

    def refuse(self, what: str) -> Any:
        raise Unsupported("VTX-002", f"{what} in a vertex shader", self.site)


class VertexInterpreter:
    """Shades batches with the interpreter; same results as the native pipelines."""

    def __init__(self, key: VertexKey, program: Program) -> None:
        self.key = key
        self.program = program
        layout = f"{key.attributes} {key.total_size}"
        self.fetch = build("fetch", {"fetch": fetch_kernel(key)}, key=layout)["fetch"]

    def shade(self, context: VertexContext) -> int:
        """Shade the used vertices of a job; a status."""
        rows_in, rows = self.key.rows_in, self.key.rows
        inputs = np.zeros((max(rows_in, 1), LANES), np.uint32)
        for batch in range(context.first >> 4, (context.last >> 4) + 1):
            if not self.fetch(context.address, batch, inputs.ctypes.data):
                continue
            env = InterpretedVertices(context.memory, context.uniforms, inputs[:rows_in], rows)
            settings = self.key.unknowns
            Interpreter(self.program, env, settings=settings).run(BUDGET)
            if env.stopped:
                return ENDLESS
            target = context.output + batch * self.key.pitch
            ctypes.memmove(target, env.output[:rows].tobytes(), rows * 4 * LANES)
            context.batches += 1
        return DONE

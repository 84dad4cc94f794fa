"""The golden path of vertex shading: native attribute fetch, the QPU interpreter per batch."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from vc4lab.memory import MEMORY_MASK
from vc4lab.qpu.environment import Environment, Unsupported
from vc4lab.qpu.interpreter import Interpreter
from vc4lab.simd import build
from vc4lab.v3d.fragment.tmu_requests import Requests, texture_numbers
from vc4lab.v3d.geometry import vpm_golden as vpm
from vc4lab.v3d.geometry.vertex_context import DONE, ENDLESS, VertexContext, VertexKey
from vc4lab.v3d.geometry.vertex_fetch import fetch_kernel
from vc4lab.v3d.geometry.vpm import (
    LANES,
    ROW_BYTES,
    WHOLE_ROWS,
    WINDOW_ROWS,
    GenericSetup,
    check_setup,
)

if TYPE_CHECKING:
    from vc4lab.qpu.program import Program


class InterpretedVertices(Environment):
    """VPM and uniforms of one batch; words are numpy arrays of 16 lanes."""

    def __init__(
        self,
        memory: int,
        uniforms: int,
        rows: Any,
        requests: Callable[[Any], Requests],
        extension: str,
    ) -> None:
        self.memory = memory
        self.stream = uniforms
        self.extension = extension
        self.inputs = np.zeros(WINDOW_ROWS * ROW_BYTES, np.uint8)
        self.inputs[: rows.nbytes] = rows.view(np.uint8).reshape(-1)
        self.outputs = np.zeros(WINDOW_ROWS * ROW_BYTES, np.uint8)
        self.reads = vpm.ReadQueue()
        self.write_setup, self.write_address = GenericSetup(WHOLE_ROWS), 0
        self.requests = requests(self)
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
        setup = check_setup(int(value[0]), self.site)
        if side == "read":
            self.reads.setup(int(value[0]))
        else:
            self.write_setup, self.write_address = setup, vpm.first(setup)

    def vpm_read(self) -> Any:
        found = self.reads.next()
        if found is None:
            return np.zeros(LANES, np.uint32)
        return vpm.read(self.inputs, *found, self.extension)

    def vpm_write(self, value: Any, mask: Any) -> None:
        vpm.write(self.outputs, self.write_setup, self.write_address, value, mask)
        self.write_address = vpm.advance(self.write_setup, self.write_address)

    def skip_uniform(self) -> None:
        """The texture unit took a word of the stream."""
        self.stream += 4

    def tmu_write(self, unit: int, register: str, value: Any, mask: Any, site: int) -> None:
        self.requests.write(unit, register, np.array(value, np.uint32), site)

    def tmu_load(self, unit: int) -> Any:
        return self.requests.load(unit)

    def tmu_noswap(self, value: Any) -> None:
        """Both units give the same results."""

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
            settings = self.key.unknowns
            requests = partial(self._requests, context)
            extension = settings["vpm_read_extension"]
            env = InterpretedVertices(
                context.memory, context.uniforms, inputs[:rows_in], requests, extension
            )
            Interpreter(self.program, env, settings=settings).run()
            if env.stopped:
                return ENDLESS
            target = context.output + batch * self.key.pitch
            ctypes.memmove(target, env.outputs.tobytes(), rows * ROW_BYTES)
            context.batches += 1
        return DONE

    def _requests(self, context: VertexContext, env: InterpretedVertices) -> Requests:
        kinds = self.key.textures

        def sample(number: int, coordinates: list[Any]) -> list[Any]:
            from vc4lab.v3d.fragment.tmu_kernels import sampler_module

            words = np.concatenate(coordinates)
            found = np.zeros(2 * LANES, np.uint32)
            entry = sampler_module(kinds[number])["sample"]
            entry(context.textures[number], context.memory, words.ctypes.data, found.ctypes.data)
            return [found[:LANES], found[LANES:]][: kinds[number].result_words]

        def lookup(addresses: Any) -> Any:
            from vc4lab.v3d.fragment.tmu_kernels import lookup_at

            return lookup_at(context.memory, addresses)

        return Requests(
            texture_numbers(self.program),
            len(kinds),
            sample=sample,
            lookup=lookup,
            skip_uniform=env.skip_uniform,
            zero=lambda: np.zeros(LANES, np.uint32),
        )

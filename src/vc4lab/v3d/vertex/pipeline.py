"""Vertex pipelines: what is fixed for a stage becomes native code that shades batches of vertices.

`vertex_pipeline(key)` compiles (or finds) the pipeline of a coordinate or vertex shader;
`VertexPipeline.shade(context)` runs it. The fast build notices special floats (Inf, NaN, overflow);
the batches concerned are shaded again by the exact build, so every engine gives the same bits.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Any

from vc4lab.qpu.program.program import Program
from vc4lab.qpu.run.environment import Unsupported
from vc4lab.simd import Function, NativeFunction, Value, build, i32
from vc4lab.v3d.vertex.context import (
    DEOPT,
    DONE,
    REFUSED,
    VertexContext,
    VertexKey,
    buffer_bytes,
)
from vc4lab.v3d.vertex.driver import ENTRY, SHADE, driver
from vc4lab.v3d.vpm.shader_rows import NeedsCells, check_program

__all__ = ["VertexContext", "VertexKey", "VertexPipeline", "buffer_bytes", "vertex_pipeline"]


class VertexPipeline:
    """A compiled stage. `warnings` are (code, text) findings about the program itself.

    Raises Unsupported (qpu.environment) when the program does what this stage cannot.
    """

    def __init__(self, key: VertexKey) -> None:
        self.key = key
        program = Program(key.words, key.code_address).laid_out(key.code_layout)
        self.program = program.under(key.unknowns)
        self.warnings = check_program(self.program, key.rows_in, key.rows)
        self.deopts = 0
        self._cells = self.program.has_branches
        self._exact: NativeFunction | None = None
        self._interpreter: Any = None
        if key.engine in ("interpreter", "uncompiled"):
            from vc4lab.v3d.vertex.golden import VertexInterpreter

            self._interpreter = VertexInterpreter(key, self.program, vertex_pipeline)
        else:
            self._first = self._build(exact=key.engine == "exact")

    def _build(self, exact: bool) -> NativeFunction:
        if not self._cells:
            try:
                return self._build_kind(exact)
            except NeedsCells:
                self._cells = True
        return self._build_kind(exact)

    def _build_kind(self, exact: bool) -> NativeFunction:
        cells = self._cells

        def body(context: Value, exact_entry: Value) -> Value:
            from vc4lab.v3d.vertex.shader import shade_entry  # only when it is compiled

            return shade_entry(self.key, self.program, exact, cells)(context, exact_entry)

        entry = Function(ENTRY, i32, body, "shade")
        key = f"{key_digest(self.key)} {exact} {self._cells}"
        module = build(
            "vertex",
            {"shade": entry},
            float_mode="caller",
            key=key,
            imports={SHADE: driver()},
            combine=self.program.has_branches,
            quick=True,
        )
        return module["shade"]

    def shade(self, context: VertexContext) -> int:
        """Shade the used vertices of `context.first`..`context.last`; DONE, ENDLESS or LEFT.

        Raises Unsupported for a VPM setup, computed by the program, that starts a DMA.
        """
        context.next_batch, context.until = context.first >> 4, (context.last >> 4) + 1
        context.stopped = context.deopts = 0
        if context.last < context.first:
            return DONE
        if self._interpreter is not None:
            return int(self._interpreter.shade(context))
        status = int(self._first(context.address, self.exact_address))
        if status == DEOPT:
            status = int(self._first(context.address, self.exact.address))
        self.deopts += context.deopts
        if status == REFUSED:
            raise Unsupported("VTX-002", "a VPM setup starts a DMA or is reserved")
        return status

    @property
    def native(self) -> NativeFunction | None:
        """The build that shades first, `(context, exact address)`; None in the interpreter."""
        return None if self._interpreter is not None else self._first

    @property
    def exact_address(self) -> int:
        """Where the exact build is; 0 as long as it was not needed."""
        return self._exact.address if self._exact is not None else 0

    @property
    def exact(self) -> NativeFunction:
        """The exact build, compiled when first needed."""
        if self._exact is None:
            exact = self.key.engine == "exact"
            self._exact = self._first if exact else self._build(exact=True)
        return self._exact


@lru_cache(maxsize=256)
def vertex_pipeline(key: VertexKey) -> VertexPipeline:
    """The pipeline of a key, compiled once. Raises Unsupported."""
    return VertexPipeline(key)


def key_digest(key: VertexKey) -> str:
    """Stable text for object caches: equal for equal keys in every process."""
    unknowns = key.unknowns.digest()
    parts = (
        key.words,
        key.code_address,
        key.code_layout,
        key.attributes,
        key.total_size,
        key.rows,
        key.textures,
        unknowns,
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()

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
from vc4lab.v3d.vertex.context import DEOPT, DONE, REFUSED, STARVES, VertexContext, VertexKey, buffer_bytes
from vc4lab.v3d.vertex.driver import ENTRY, SHADE, driver
from vc4lab.v3d.vpm.row_checks import ERRORS, FINDINGS, STARVED, check_rows
from vc4lab.v3d.vpm.shader_rows import NeedsCells

__all__ = ["VertexContext", "VertexKey", "VertexPipeline", "buffer_bytes", "vertex_pipeline"]


class VertexPipeline:
    """A compiled stage.

    `warnings` and `findings` are (code, text) about the program itself, the first to be reported
    for each draw; `starved` says why it stops at a read for which no set-up asked ("": it does
    not, or is not checked).

    Raises Unsupported (qpu.environment) when the program does what this stage cannot.
    """

    def __init__(self, key: VertexKey) -> None:
        self.key = key
        program = Program(key.words, key.code_address).laid_out(key.code_layout)
        self.program = program.under(key.unknowns)
        found = check_rows(self.program, key.rows_in, key.rows, key.attributes)
        self.warnings = [(code, text) for code, text in found if code in ERRORS]
        self.findings = [(code, text) for code, text in found if code in FINDINGS]
        self.starved = "" if key.forgiving else dict(found).get(STARVED, "")
        self.deopts = 0
        self._cells = self.program.has_branches
        self._exact: NativeFunction | None = None
        self._interpreter: Any = None
        if key.engine in ("interpreter", "uncompiled"):
            from vc4lab.v3d.vertex.reference import VertexInterpreter

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

        Raises Unsupported for a VPM setup, computed by the program, that starts a DMA, and for a
        read without a set-up.
        """
        context.next_batch, context.until = context.first >> 4, (context.last >> 4) + 1
        context.stopped = context.deopts = 0
        if self.starved:
            raise Unsupported(STARVED, self.starved)
        if context.last < context.first:
            return DONE
        if self._interpreter is not None:
            status = int(self._interpreter.shade(context))
        else:
            status = int(self._first(context.address, self.exact_address))
            if status == DEOPT:
                status = int(self._first(context.address, self.exact.address))
            self.deopts += context.deopts
        if status == STARVES:
            raise Unsupported(STARVED, "the shader reads a row that no VPM read set-up asks for")
        if status == REFUSED:
            raise Unsupported("VTX-002", "a VPM setup starts a DMA or is reserved")
        return status

    @property
    def native(self) -> NativeFunction | None:
        """The build that shades first, `(context, exact address)`; None in the interpreter."""
        return None if self._interpreter is not None else self._first

    @property
    def exact_address(self) -> int:
        """The address of the exact build; 0 as long as it was not needed."""
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
        key.forgiving,
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()

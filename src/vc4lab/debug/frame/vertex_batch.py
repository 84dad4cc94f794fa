"""Sets up the coordinate or vertex program of a draw for one batch of vertices, as it was fetched."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from vc4lab.v3d.vertex.context import VertexContext
from vc4lab.v3d.vertex.pipeline import vertex_pipeline
from vc4lab.v3d.vertex.reference import InterpretedVertices, VertexInterpreter
from vc4lab.v3d.vpm.shader_rows import LANES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vc4lab.records.shader import GlShader
    from vc4lab.v3d.tmu.texture_state import TextureDescriptor
    from vc4lab.v3d.vertex.context import VertexKey
    from vc4lab.v3d.vertex.shading import VertexStage


@dataclass(frozen=True)
class FetchedAttribute:
    """An attribute array as a program gets it: guest address of the vertex's data, their bytes."""

    number: int
    address: int
    data: bytes


class VertexBatch:
    """The vertices `first` … `last`, all of one batch of 16, and the program for them.

    Attributes
    ----------
    code, uniforms
        Guest addresses.
    inputs
        Rows of the VPM before the program, of shape (1, rows, 16); the last one is unused if none is.
    context, textures
        What the program's environment reads.
    """

    def __init__(
        self, stage: VertexStage, shader: GlShader, rows: int, first: int, last: int, *, vertex: bool
    ) -> None:
        record = shader.record
        self.rows, self.first, self.last = rows, first, last
        self.code = int(record.vs_code if vertex else record.cs_code)
        self.uniforms = int(record.vs_uniforms if vertex else record.cs_uniforms)
        self._bits = int(record.vs_attributes if vertex else record.cs_attributes)
        memory = self._memory = stage.programs.memory
        self._arrays = shader.attributes
        self.key: VertexKey
        self.textures: Sequence[TextureDescriptor | None]
        program, self.key, self.textures = stage.key_of(shader, self.code, rows)
        context: Any = VertexContext()
        context.memory, context.uniforms = memory.base, self.uniforms
        context.first, context.last = first, last
        for number, one in enumerate(shader.attributes):
            context.bases[number], context.strides[number] = one.address, one.stride
        for number, texture in enumerate(self.textures):
            context.textures[number] = 0 if texture is None else texture.address
        self._interrupt = ctypes.c_uint8()
        context.interrupts = ctypes.addressof(self._interrupt)
        self.interpreter = VertexInterpreter(self.key, program.under(self.key.unknowns), vertex_pipeline)
        self.inputs = np.zeros((1, max(self.key.rows_in, 1), LANES), np.uint32)
        self.interpreter.fetch(context.address, first // LANES, self.inputs.ctypes.data)
        if None in self.textures:
            stage.late.begin()
            context.late = stage.late.table.address
        self.context = context

    def fetched(self, index: int) -> tuple[FetchedAttribute, ...]:
        """Return the attributes that are fetched for a vertex."""
        return tuple(
            FetchedAttribute(number, place, self._memory.read(place, one.size))
            for number, one in enumerate(self._arrays)
            if self._bits >> number & 1
            for place in (one.address + one.stride * index & 0xFFFFFFFF,)
        )

    def environment(self, kind: type[InterpretedVertices] = InterpretedVertices) -> InterpretedVertices:
        """The environment of the program, which has not begun."""
        return kind(self.interpreter, self.context, self.inputs[:, : self.key.rows_in])

    def written(self, environment: InterpretedVertices) -> Any:
        """Rows of the VPM that the program has written, of shape (rows, 16)."""
        return environment.written()[0].view(np.uint32).reshape(-1, LANES)[: self.rows]

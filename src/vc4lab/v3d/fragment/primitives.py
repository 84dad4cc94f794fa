"""Draws one decoded primitive: finds its vertices and traces what its type asks for.

Triangles are set up in groups (`triangle_batch.py`), except those of paths.
"""

from __future__ import annotations

from collections.abc import Sequence

from vc4lab.simd import (
    Value,
    const,
    i32,
    staged,
)
from vc4lab.v3d.fragment.block import BlockShader
from vc4lab.v3d.fragment.lines_and_points import draw_line, draw_point
from vc4lab.v3d.fragment.primitive_tracer import PrimitiveTracer
from vc4lab.v3d.fragment.trapezoid import draw_trapezoid
from vc4lab.v3d.pse.coverage_pipe import draw_path_triangle
from vc4lab.v3d.pse.setup import (
    POINT_SIZE,
    Vertex,
    fetch,
)
from vc4lab.v3d.state.tile_context import VERTICES
from vc4lab.v3d.tile_lists.primitive_decoder import Decoder

_PRIMITIVE_COUNTS = ("primitives_reversed", "quads_valid")
"""Counters that say what became of a primitive."""


def draw_primitive(tracer: PrimitiveTracer, decoder: Decoder) -> None:
    """Traces one primitive whose indices are in `decoder`."""
    count = VERTICES[tracer.key.primitive]
    end = tracer.key.first_varying + tracer.key.n_varyings
    words, flat_words = fetch(
        tracer.source, tracer.shader.constants.memory, decoder, count, (POINT_SIZE, end),
        tracer.key.unknowns["clip_weights"],
    )  # fmt: skip
    vertices = [tracer.source.vertex(pointer) for pointer in words]
    if tracer.shader.recorder is not None:
        tracer.shader.recorder.next_primitive()
    if tracer.key.counting:
        before = [tracer.shader.counted(name) for name in _PRIMITIVE_COUNTS]
        draw_kind(tracer, vertices, flat_words)
        count_primitive(tracer.shader, before)
    else:
        draw_kind(tracer, vertices, flat_words)


def draw_kind(tracer: PrimitiveTracer, vertices: list[Vertex], flat_words: Value) -> None:
    """Traces one primitive of the draw's type."""
    if tracer.key.primitive == "lines":
        draw_line(tracer, vertices, flat_words)
    elif tracer.key.primitive == "rht":
        draw_trapezoid(tracer, vertices, flat_words)
    elif tracer.key.primitive == "triangles":
        draw_path_triangle(tracer, vertices)  # the others come in batches
    else:
        draw_point(tracer, vertices[0])


@staged
def count_primitive(shader: BlockShader, before: Sequence[Value]) -> None:
    """A primitive that was not discarded for its facing is valid; perhaps it has no pixels."""
    turned, quads = (shader.counted(name) for name in _PRIMITIVE_COUNTS)
    if turned == before[0]:
        shader.count("primitives_valid", const(i32, 1))
        if quads == before[1]:
            shader.count("primitives_empty", const(i32, 1))

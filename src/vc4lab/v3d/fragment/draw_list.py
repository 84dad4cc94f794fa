"""One compressed list drawn into a tile, as traced code: the body of every fragment pipeline.

Triangles are set up in groups (`triangle_batch.py`), except those of paths; of other primitives
each is drawn as it is decoded.
"""

from __future__ import annotations

from collections.abc import Sequence

from vc4lab.qpu.program.program import Program
from vc4lab.simd import Value, any_, const, i1, i32, select, staged
from vc4lab.v3d.fragment.block import BlockShader, run_queue
from vc4lab.v3d.fragment.other_primitives import PrimitiveTracer, draw_line, draw_point, draw_trapezoid
from vc4lab.v3d.fragment.packed_quads import draw_packed, packs_quads
from vc4lab.v3d.fragment.shader import DrawConstants
from vc4lab.v3d.fragment.triangle_batch import TriangleTracer, draw_triangles
from vc4lab.v3d.pse.coverage_pipe import draw_path_triangle
from vc4lab.v3d.pse.setup import POINT_SIZE, PositionSource, Vertex, VertexSource, fetch, window
from vc4lab.v3d.pse.triangle_setup import INDEX_CODES
from vc4lab.v3d.state import tile_context as tc
from vc4lab.v3d.state.tile_context import DrawParams, FragmentKey, TileContext
from vc4lab.v3d.tile_lists.primitive_decoder import ENDED, EXHAUSTED, MALFORMED, Decoder

_PRIMITIVE_COUNTS = ("primitives_reversed", "quads_valid")
"""Counters that say what became of a primitive."""


@staged
def draw_list(
    key: FragmentKey, program: Program, context_pointer: Value, params_pointer: Value, address: Value
) -> Value:
    """Draws one compressed list into the tile; returns a status."""
    context = TileContext.at(context_pointer)
    params = DrawParams.at(params_pointer)
    memory = context.memory
    constants = DrawConstants.load(key, program, context, params)
    shader = BlockShader(constants, context, params)
    has_vertices = const(i1, True) if key.index_bits == 32 else params.vertex_count > 0
    ended = const(i32, ENDED)
    draw = draw_packed if packs_quads(key, program) else draw_triangles
    if key.primitive == "triangles" and not key.coverage:
        if has_vertices:
            ended = draw(TriangleTracer(shader), address)
    else:
        source = vertex_source(key, context, params)
        tracer = PrimitiveTracer(shader, source, window(context, params))
        lists = select(params.lists != 0, params.lists, memory)
        decoder = Decoder(lists, tc.PRIMITIVES.index(key.primitive), INDEX_CODES[key.index_bits])
        decoder.open(address)
        while has_vertices & decoder.next():
            draw_primitive(tracer, decoder)
            going = shader.running()
            if going is not None:
                if ~going:
                    break
        ended = decoder.status.get()
    status = shader.status.get()
    if key.engine == "interpreter":
        if status == tc.STATUS_OK:
            status = run_queue(context, params, 1)
    if (ended == EXHAUSTED) | (ended == MALFORMED):
        status = const(i32, tc.STATUS_BAD_LIST)
    if key.engine == "fast":
        if any_(shader.wild.get()):
            status = const(i32, tc.STATUS_DEOPT)
    return status


def vertex_source(key: FragmentKey, context: TileContext, params: DrawParams) -> VertexSource:
    """The shaded vertex buffer, or the list itself for x/y lists."""
    if key.index_bits == 32:
        rows = key.first_varying + key.n_varyings
        return PositionSource.open(context, params, max(rows, POINT_SIZE + 1))
    return VertexSource.load(context, params)


def draw_primitive(tracer: PrimitiveTracer, decoder: Decoder) -> None:
    """Traces one primitive whose indices are in `decoder`."""
    count = tc.VERTICES[tracer.key.primitive]
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

"""Notes of executed records, for listeners for uses of memory."""

from __future__ import annotations

from vc4lab.records.declarations import TileBinningMode
from vc4lab.simd import Value, const, i32, select, staged
from vc4lab.v3d.cle import binning_context as bc
from vc4lab.v3d.state.draw_input import INDEX_8, INDEX_ARRAY
from vc4lab.v3d.state.render_state import RenderState


def _note(w: bc.BinningContext, op: Value) -> bc.Note:
    """A new `Note` of the record at hand; there is room for it."""
    made = bc.Note.at(w.notes + w.note_count * bc.Note.size)
    w.note_count = w.note_count + 1
    made.record, made.op = w.here, op
    return made


@staged
def note_draw(
    w: bc.BinningContext, op: Value, s: RenderState, source: Value, start: Value, length: Value
) -> None:
    """The draw at hand, whose vertices are known, and will be drawn."""
    made = _note(w, op)
    made.shader_kind, made.shader_word = s.shader_kind, s.shader_word
    made.first, made.last = w.first, w.last
    made.place = start
    made.byte_count = select(source == INDEX_ARRAY, const(i32, 0), length << (source - INDEX_8))


@staged
def note_mode(
    w: bc.BinningContext, address: Value, size: Value, state: Value, tiles: Value
) -> None:
    """The record 112 at hand, which is executed."""
    made = _note(w, const(i32, TileBinningMode.id))
    made.place, made.byte_count = address, size
    made.state, made.tiles = state, tiles

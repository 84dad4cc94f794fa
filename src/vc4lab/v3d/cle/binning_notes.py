"""Notes of executed records, for listeners for uses of memory and for what draws took."""

from __future__ import annotations

from vc4lab.memory.streams import append
from vc4lab.records.declarations import TileBinningMode
from vc4lab.records.states import RenderState
from vc4lab.simd import Value, const, i32, i64, load, select, staged, store
from vc4lab.v3d.cle import binning_context as bc
from vc4lab.v3d.ptb.context import COUNTERS, BinnerContext
from vc4lab.v3d.state.draw_input import INDEX_8, INDEX_ARRAY


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
def note_mode(w: bc.BinningContext, address: Value, size: Value, state: Value, tiles: Value) -> None:
    """The record 112 at hand, which is executed."""
    made = _note(w, const(i32, TileBinningMode.id))
    made.place, made.byte_count = address, size
    made.state, made.tiles = state, tiles


class DrawMark:
    """What the binner had counted before a draw."""

    def __init__(self, c: BinnerContext) -> None:
        self.totals = [
            load(i32, c.field_ptr(name)).zext(i64) + load(i64, c.earlier + 8 * number)
            for number, name in enumerate(COUNTERS)
        ]

    def finish(self, w: bc.BinningContext, c: BinnerContext, op: Value) -> None:
        """The draw, which is the record at hand, was executed."""
        made = bc.DrawBinned.at(append(w.binned, bc.DrawBinned.size))
        for number, total in enumerate(self.totals):
            store(made.before + 8 * number, total)
        state = RenderState.at(c.state)
        made.record, made.op = w.here, op
        made.mode, made.length, made.index_type = c.mode, c.length, c.index_type
        made.place = select(c.index_type == INDEX_ARRAY, c.first_index, c.index_address)
        made.first, made.last = w.first, w.last
        made.shader_kind, made.shader_word = state.shader_kind, state.shader_word
        made.config, made.reserved = state.config, const(i32, 0)

"""The memory named by records that native code has executed, for listeners."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from vc4lab.records.declarations import TileBinningMode
from vc4lab.v3d.checks.hints import TILE_STATE_BYTES
from vc4lab.v3d.memory_uses import Use
from vc4lab.v3d.state.shader_record import read_shader_record

if TYPE_CHECKING:
    from vc4lab.v3d.checks.draw_ranges import DrawRanges
    from vc4lab.v3d.state.shader_record import ProgramCache

_WORD = 0xFFFFFFFF


def name_noted(notes: Iterable[Any], ranges: DrawRanges, programs: ProgramCache) -> None:
    """Reports the memory of `binning_context.Note`s, in order."""
    name = ranges.check.name
    for note in notes:
        record, place, size = (word & _WORD for word in (note.record, note.place, note.byte_count))
        if note.op == TileBinningMode.id:
            name(Use.TILE_MEMORY, place, size, record)
            name(Use.TILE_STATE, note.state & _WORD, TILE_STATE_BYTES * note.tiles, record)
            continue
        if size:
            name(Use.INDICES, place, size, record)
        kind = note.shader_kind
        shader = read_shader_record(programs.memory, kind, note.shader_word & _WORD)
        ranges.announce(shader, kind, programs, note.first, note.last, binning=True)

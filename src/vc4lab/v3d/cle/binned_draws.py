"""What the draws of a binning list took, for listeners: `events.ListBinned`.

Native code notes records 32 and 33 (`binning_notes.py`), Python those of vector graphics. Each note
has what the binner had counted before, so that a draw which stopped for memory needs nothing more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vc4lab.bits import signed32
from vc4lab.memory.streams import Stream, StreamMemory
from vc4lab.v3d.cle.binning_context import DrawBinned
from vc4lab.v3d.events import ListBinned
from vc4lab.v3d.state.draw_input import INDEX_ARRAY
from vc4lab.v3d.state.shader_record import ShaderRecord, read_shader_record

if TYPE_CHECKING:
    from vc4lab.v3d.ptb.binner import Binner

ROOM = 1 << 27
"""Bytes for the notes of one list."""


class BinnedDraws:
    """The notes of the list at hand, in a stream that native code appends to."""

    def __init__(self, stream: Stream) -> None:
        self._memory = StreamMemory(stream, ROOM)

    def add_vg(self, binner: Binner, address: int, kind: int, start: int, length: int) -> None:
        """A list of vector graphics is to be drawn."""
        stream = self._memory.stream
        if stream.used + DrawBinned.size > stream.room:
            return
        made = DrawBinned.python.from_address(stream.base + stream.used)
        made.before = binner.totals.values()
        made.record, made.op = signed32(address), binner.memory.read(address, 1)[0]
        made.mode, made.length, made.index_type = kind, length, INDEX_ARRAY
        made.place, made.first, made.last = signed32(start), 0, -1
        made.shader_kind, made.shader_word = binner.state.shader_kind, binner.state.shader_word
        made.config, made.reserved = binner.state.config, 0
        stream.used += DrawBinned.size

    def take(self, binner: Binner) -> ListBinned:
        """The event for the draws up to a flush."""
        draws = self._memory.content
        self._memory.clear()
        shaders: dict[tuple[int, int], ShaderRecord] = {}
        kind: Any = DrawBinned.python
        for place in range(0, len(draws), DrawBinned.size):
            made = kind.from_buffer_copy(draws, place)
            named = int(made.shader_kind), int(made.shader_word) & 0xFFFFFFFF
            if named not in shaders:
                shader = read_shader_record(binner.memory, *named)
                if shader is not None:
                    shaders[named] = shader
        c = binner.context
        return ListBinned(
            draws,
            shaders,
            tuple(binner.totals.values()),
            (int(c.width), int(c.height)),
            int(c.initial_bytes),
            int(c.block_bytes),
        )

"""A captured frame's jobs and draws, found by running it once.

A *job* is a rendering list with what was binned for it. A *draw* is a primitive record of a binning
list that was executed; both are numbered from 1 on in each frame.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from vc4lab.memory import MEMORY_MASK
from vc4lab.records.codes import PrimitiveMode
from vc4lab.records.control import RECORDS, STATE_SLOTS, ids_of
from vc4lab.records.payload import BinnerState
from vc4lab.v3d.cle.binning_context import DrawBinned
from vc4lab.v3d.ptb.context import COUNTERS
from vc4lab.v3d.state.frame_mode import COLOUR
from vc4lab.v3d.state.render_state import INDEX_8, INDEX_ARRAY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vc4lab.v3d.events import ListBinned, RecordsNoted
    from vc4lab.v3d.state.frame_mode import FrameMode, Surface
    from vc4lab.v3d.state.render_state import ShaderRecord

_WORD = 0xFFFFFFFF
VG_MODE = "vector graphics"


@dataclass(frozen=True, repr=False)
class FrameDraw:
    """A draw.

    Attributes
    ----------
    number, job
        From 1 on in the frame.
    binning
        Which of the frame's binning lists has it, from 1 on; 0: it is of tile lists that no binner wrote.
    address, record
        Of its primitive record: guest address, id.
    mode
        Kind of primitive in words.
    length
        Vertices; words of a list of vector graphics.
    index_bits, place
        8 or 16 with indices, which lie at this guest address; 0 without: `place` is the first vertex.
    first, last
        Lowest and highest vertex that is used.
    config
        Record 96.
    shader
        What records 64 to 67 name; None if there is no such thing.
    counts
        What became of its primitives, by the names in `ptb.context.COUNTERS`: left out (rejected: all
        vertices beyond a plane; degenerate; outside of all tiles), clipped, entries in tile lists.
    records
        Guest address and id of each record of state in force.
    lists
        Guest address and bytes of its lists in tiles, if no binner wrote them.
    """

    number: int
    job: int
    binning: int
    address: int
    record: int
    mode: str
    length: int
    index_bits: int
    place: int
    first: int
    last: int
    config: int
    shader: ShaderRecord | None
    counts: Mapping[str, int] = field(default_factory=dict)
    records: tuple[tuple[int, int], ...] = ()
    lists: tuple[tuple[int, int], ...] = ()

    def where(self, record: int) -> int | None:
        """The guest address of the record of state with an id that is in force; None: there is none."""
        return next((address for address, identity in self.records if identity == record), None)

    def __repr__(self) -> str:
        return f"<{self.text()}>"

    @property
    def binned(self) -> str:
        """Return in words how its primitives were binned."""
        counts = (f"{count} {name}" for name, count in self.counts.items() if count and name != "blocks")
        return ", ".join(counts) or "nothing"

    def text(self) -> str:
        """The draw in one line."""
        where = f"indices of {self.index_bits} bits at 0x{self.place:08x}"
        if not self.index_bits:
            where = f"from vertex {self.place} on"
        shader = "no shader record" if self.shader is None else f"shader record 0x{self.shader.address:08x}"
        title = RECORDS[self.record].title
        if self.lists:
            return f"draw {self.number}: {self.length} vertices, {self.mode}, {shader}" + (
                f"; in {len(self.lists)} lists  [job {self.job}, first at 0x{self.address:08x}]"
            )
        return f"draw {self.number}: {self.length} vertices, {self.mode}, {where}, {shader}" + (
            f"; binned: {self.binned}  [job {self.job}, record 0x{self.address:08x} {title}]"
        )

    def as_dict(self) -> dict[str, Any]:
        """The draw as JSON has it."""
        return {
            "draw": self.number,
            "job": self.job,
            "address": self.address,
            "record": RECORDS[self.record].title,
            "mode": self.mode,
            "vertices": self.length,
            "index_bits": self.index_bits,
            "place": self.place,
            "shader_record": None if self.shader is None else self.shader.address,
            "config": self.config,
            "counts": dict(self.counts),
        }


@dataclass
class FrameJob:
    """A job.

    Attributes
    ----------
    number, name
        From 1 on in the frame; what the front calls it, or "".
    mode, grid
        Of the frame (record 113); the tiles of what was binned, (0, 0) if nothing was.
    colour
        The colour surface that its tiles are stored to last; None: none.
    surfaces
        All that it loads and stores.
    full
        Addresses of tiles in full resolution that it loads or stores, with every sample.
    draws
        What was binned for it.
    begun, place
        Of the events in the frame in which its binning began and its tiles were stored.
    stored
        Address and bytes of tiles in full resolution that it loads or stores.
    """

    number: int
    name: str
    mode: FrameMode
    grid: tuple[int, int] = (0, 0)
    colour: Surface | None = None
    surfaces: tuple[Surface, ...] = ()
    full: frozenset[int] = frozenset()
    draws: list[FrameDraw] = field(default_factory=list)
    begun: int = 0
    place: int = 0
    stored: frozenset[tuple[int, int]] = frozenset()

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of what it draws, in pixels."""
        if self.colour is not None:
            return self.colour.width, self.colour.height
        return self.mode.width, self.mode.height

    @property
    def draws_colours(self) -> bool:
        """Whether it stores colours anywhere."""
        return self.colour is not None or bool(self.full)

    def moves(self, address: int) -> bool:
        """Whether its colour surface, or a tile in full resolution, is at an address."""
        place = address & MEMORY_MASK
        if self.colour is not None and self.colour.address & MEMORY_MASK == place:
            return True
        return place in self.full


def shown_surface(surfaces: tuple[Surface, ...]) -> Surface | None:
    """The colour surface among those of a frame."""
    for one in surfaces:
        if one.buffer == COLOUR and one.address and one.width and one.height:
            return one
    return None


class States:
    """Which records of state are in force while binning lists are executed."""

    def __init__(self) -> None:
        self._notes: list[bytes] = []
        self._known: dict[int, tuple[int, int]] = {}
        """By kind of state."""

    def note(self, event: RecordsNoted) -> None:
        """Records were executed."""
        if not event.thread:
            self._notes.append(event.notes)

    def of(self, draws: list[FrameDraw]) -> list[FrameDraw]:
        """The draws of a flush with the records that were in force; notes before it are used up."""
        executed = struct.unpack(f"<{len(data) // 4}I", data) if (data := b"".join(self._notes)) else ()
        self._notes.clear()
        found, waiting = [], list(reversed(draws))
        for address, identity in zip(executed[::2], executed[1::2], strict=True):
            slot = _SLOT_OF.get(identity)
            if slot is not None:
                self._known[slot] = address, identity
            elif waiting and (address, identity) == (waiting[-1].address, waiting[-1].record):
                found.append(replace(waiting.pop(), records=tuple(sorted(self._known.values()))))
        return found + waiting[::-1]


_SLOTS = (*STATE_SLOTS, *((identity,) for identity in ids_of(BinnerState)))
_SLOT_OF = {identity: slot for slot, identities in enumerate(_SLOTS) for identity in identities}
"""Kinds of state, those that only the binner uses included."""


def draws_of(event: ListBinned, binning: int, first: int) -> list[FrameDraw]:
    """Return the draws that a flush has binned, numbered from `first` on; jobs are not known yet (0)."""
    kind: Any = DrawBinned.python
    rows = [
        kind.from_buffer_copy(event.draws, place) for place in range(0, len(event.draws), DrawBinned.size)
    ]
    before = [list(raw.before) for raw in rows] + [list(event.totals)]
    found: list[FrameDraw] = []
    for number, raw in enumerate(rows):
        counts = {
            name: after - count
            for name, count, after in zip(COUNTERS, before[number], before[number + 1], strict=True)
        }
        found.append(_draw(raw, event.shaders, binning, first + number, counts))
    return found


def cursors_of(event: ListBinned) -> list[int]:
    """Return for each draw of a flush the address at which the watched tile's list went on before it."""
    kind: Any = DrawBinned.python
    return [
        kind.from_buffer_copy(event.draws, place).cursor & _WORD
        for place in range(0, len(event.draws), DrawBinned.size)
    ]


def _draw(
    raw: Any, shaders: Mapping[tuple[int, int], Any], binning: int, number: int, counts: Mapping[str, int]
) -> FrameDraw:
    mode = int(raw.mode)
    is_vg = RECORDS[int(raw.op)].title.startswith("VG")
    known = mode in PrimitiveMode._value2member_map_ and not is_vg
    named = int(raw.shader_kind), int(raw.shader_word) & _WORD
    index = int(raw.index_type)
    return FrameDraw(
        number,
        0,
        binning,
        int(raw.record) & _WORD,
        int(raw.op),
        PrimitiveMode(mode).name.lower().replace("_", " ") if known else VG_MODE,
        int(raw.length) & _WORD,
        0 if index == INDEX_ARRAY else 8 << (index - INDEX_8),
        int(raw.place) & _WORD,
        int(raw.first),
        int(raw.last),
        int(raw.config) & _WORD,
        shaders.get(named),
        counts,
    )

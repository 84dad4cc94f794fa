"""Captured jobs → CLIF, a text for each job with the memory that it uses.

Pages are written as they are when the job uses them first: records of its lists and GL shader
records by their fields, all else as bytes. Tile lists are the binner's, and are made again.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from vc4lab.capture.pages import PAGE
from vc4lab.jobs.dumps.clif_fields import RECORD_NAMES, values_of, word_of
from vc4lab.jobs.dumps.memory_dump import ListRange
from vc4lab.jobs.model import BufferNamed, Filled, PagesLoaded, Zeroed
from vc4lab.jobs.player import FrameResult, JobsPlayer
from vc4lab.jobs.walk import list_ranges, surface_bytes, tile_state
from vc4lab.memory import MEMORY_MASK, MEMORY_SIZE
from vc4lab.records.control import Record, parse_list
from vc4lab.records.declarations import Branch, BranchToSublist, LoadFull, LoadGeneral, TileBinningMode
from vc4lab.records.shader import AttributeRecord, GlShaderRecord, attribute_count
from vc4lab.records.states import GlShaderState
from vc4lab.v3d.events import Use

if TYPE_CHECKING:
    from vc4lab.bits import Layout
    from vc4lab.jobs.model import Event, JobsCapture, JobsFrame
    from vc4lab.v3d.core import V3D
    from vc4lab.v3d.events import FrameTiles, JobStarted, MemoryUse

MOST_RECORDS = 1 << 16
WORDS = 8
"""Words of bytes in a line."""
SHORTEST_BLANK = 64
"""Zeros in a row that are written as their count."""
_ZEROS = re.compile(rb"\0{%d,}" % SHORTEST_BLANK)


class _Range(NamedTuple):
    """A buffer: name, first byte, content."""

    name: str
    start: int
    data: bytes

    @property
    def end(self) -> int:
        """The address after it."""
        return self.start + len(self.data)


class _Piece(NamedTuple):
    """A part of memory whose meaning is known: format, its lines, first byte, end."""

    format: str
    lines: tuple[str, ...]
    start: int
    end: int


def clif_files(capture: JobsCapture) -> Iterator[tuple[str, bytes]]:
    """The files of all jobs with their names. Raises CaptureError."""
    jobs = _Jobs(capture)
    for frame in capture.frames:
        for number, data in enumerate(jobs.of(frame), 1):
            yield f"frame-{frame.number}-job-{number}.clif", data


class _Jobs:
    """Plays a capture, and writes each job with the memory that it uses, as it is at its first use."""

    def __init__(self, capture: JobsCapture) -> None:
        self._player = JobsPlayer(capture, on_v3d=self._listen)
        self._known: set[int] = set()
        """Pages that hold anything: programs may look there."""
        self._names: dict[int, tuple[int, str]] = {}
        """Bytes and label of buffers by their addresses."""
        self._lists: list[ListRange] = []
        """The lists of the job at hand, `_content` has the pages that it uses."""
        self._content: dict[int, bytes] = {}
        self._loads = False
        """Whether its rendering list loads tiles: then it uses what its surfaces hold."""
        self._done: list[bytes] = []

    def of(self, frame: JobsFrame) -> list[bytes]:
        """The jobs of the next frame."""
        self._done = []
        if frame.start is not None:
            self._player.begin(frame)
            self._known.clear()
        for place, event in enumerate(frame.events):
            self._follow(event)
            self._player.step(frame, place, FrameResult())
        self._end()
        return self._done

    def _follow(self, event: Event) -> None:
        match event:
            case PagesLoaded() | Zeroed() | Filled():
                first = event.address // PAGE
                self._known.update(range(first, first + event.pages))
            case BufferNamed(address, size, text):
                self._names[address & MEMORY_MASK] = size, text
            case _:
                pass

    # -- what the V3D does -------------------------------------------------------------------------

    def _listen(self, v3d: V3D) -> None:
        v3d.listeners.job_started.subscribe(self._started)
        v3d.listeners.memory_used.subscribe(self._memory_used)
        v3d.listeners.frame_tiles.subscribe(self._tiles)

    def _started(self, event: JobStarted) -> None:
        if not event.thread or (self._lists and self._lists[-1].thread):
            self._end()
        self._lists.append(ListRange(event.thread, event.address, event.end))
        read = self._player.memory.read
        self._use_list(event.address, event.end)
        if not event.thread:
            self._use(*(tile_state(read, event.address, event.end) or (0, 0)))
        for record in parse_list(read, event.address, event.end, limit=MOST_RECORDS):
            self._loads |= isinstance(record.payload, LoadGeneral | LoadFull)

    def _memory_used(self, event: MemoryUse) -> None:
        if event.use is Use.LIST and event.size == 1:
            self._use_list(event.address, None)
        elif event.use is Use.LOOKUPS:
            self._take(self._known)
        elif event.use.is_read:
            self._use(event.address, event.size)

    def _tiles(self, event: FrameTiles) -> None:
        surfaces = [(one.address, surface_bytes(one)) for one in event.surfaces if one.address]
        ranges = [*surfaces, *event.full]
        if event.over:
            for address, size in ranges:
                self._known.update(_pages(address, size))
            return
        for start, end in event.pieces:
            if end is not None or len(self._lists) < 2:  # without a binning list nothing makes tile lists
                self._use_list(start, end)
        for address, size in ranges if self._loads else ():
            self._use(address, size)

    def _use_list(self, start: int, end: int | None) -> None:
        for address, size in list_ranges(self._player.memory.read, start, end):
            self._use(address, size)

    def _use(self, address: int, size: int) -> None:
        self._take(_pages(address, size))

    def _take(self, pages: Iterable[int]) -> None:
        for page in pages:
            if page not in self._content:
                self._content[page] = self._player.memory.read(page * PAGE, PAGE)

    # -- the text ----------------------------------------------------------------------------------

    def _end(self) -> None:
        """Write the lists that have started."""
        lists, content = self._lists, self._content
        self._lists, self._content, self._loads = [], {}, False
        if lists:
            self._done.append(_Job(list(self._ranges(content)), lists).text().encode())

    def _ranges(self, content: dict[int, bytes]) -> Iterator[_Range]:
        """Pages in a row, cut where a buffer with a name begins or ends."""
        labels = {at // PAGE: text for at, (size, text) in self._names.items() if size and not at % PAGE}
        cuts = {*labels, *(-(-(at + size) // PAGE) for at, (size, _text) in self._names.items() if size)}
        run: list[int] = []
        for page in [*sorted(content), -1]:
            if run and (page != run[-1] + 1 or page in cuts):
                text = labels.get(run[0], "memory")
                data = b"".join(content[one] for one in run)
                yield _Range(_buffer_name(text, run[0] * PAGE), run[0] * PAGE, data)
                run = []
            run.append(page)


def _pages(address: int, size: int) -> range:
    """The pages of a range of bus addresses; none of what leaves memory."""
    start = address & MEMORY_MASK
    return range(start // PAGE, -(-min(start + max(size, 0), MEMORY_SIZE) // PAGE))


def _buffer_name(text: str, address: int) -> str:
    """A name without spaces, which says where the buffer lies."""
    plain = "".join(one if one.isalnum() and one.isascii() else "_" for one in text).strip("_")
    place = f"_0x{address:08x}"
    return f"{plain.removesuffix(place)[:40] or 'buffer'}{place}"


class _Job:
    """A job as text."""

    def __init__(self, ranges: list[_Range], lists: list[ListRange]) -> None:
        self._ranges = ranges
        self._starts = [one.start for one in ranges]
        self._places = {one.name: one.start for one in ranges}
        self._pieces: dict[int, _Piece] = {}
        self._lists = lists
        self._tiles = 0, 0
        """First byte and end of tile memory."""
        for _thread, start, end in lists:
            self._walk(start, end)

    # -- what lies there ---------------------------------------------------------------------------

    def _at(self, address: int) -> _Range | None:
        address &= MEMORY_MASK
        place = bisect_right(self._starts, address) - 1
        found = self._ranges[place] if place >= 0 else None
        return found if found is not None and address < found.end else None

    def read(self, address: int, size: int) -> bytes:
        """Bytes of the buffers, as they were when the job began; fewer at the end of one."""
        one = self._at(address)
        if one is None:
            return b""
        place = (address & MEMORY_MASK) - one.start
        return one.data[place : place + size]

    def address_text(self, address: int) -> tuple[str, str]:
        """An address as CLIF has it, and a comment."""
        if not address:
            return "[null]", ""
        one = self._at(address)
        number = f"0x{address:08x}"
        if one is None or address & ~MEMORY_MASK:
            return number, "in no buffer"
        return f"[{one.name}+0x{(address & MEMORY_MASK) - one.start:08x}]", number

    def _walk(self, start: int, end: int | None) -> None:
        """Note the records of a list, and of what it branches to."""
        waiting = [(start, end)]
        seen = set()
        budget = MOST_RECORDS
        while waiting and budget > 0:
            start, end = waiting.pop()
            if start in seen:
                continue
            seen.add(start)
            for record in parse_list(self.read, start, end, limit=budget):
                budget -= 1
                if record.payload is None:
                    break
                payload = record.payload
                if isinstance(payload, TileBinningMode):
                    self._tiles = payload.address, payload.address + payload.memory_size
                elif isinstance(payload, Branch | BranchToSublist):
                    if not self._tiles[0] <= payload.address < self._tiles[1]:
                        waiting.append((payload.address, None))
                elif isinstance(payload, GlShaderState):
                    self._shader(payload)
                self._record(record)

    def _record(self, record: Record) -> None:
        """Note a record, if its fields say all of its bits."""
        payload, name = record.payload, RECORD_NAMES.get(record.id)
        if payload is not None and name is not None:
            self._note("ctrllist", name, type(payload), payload.value, record.address, 1)

    def _shader(self, state: GlShaderState) -> None:
        address = int(state.address)
        size, array = GlShaderRecord.bit_width // 8, AttributeRecord.bit_width // 8
        self._struct("shadrec_gl_main", GlShaderRecord, address)
        for number in range(attribute_count(state)):
            self._struct("shadrec_gl_attr", AttributeRecord, address + size + array * number)

    def _struct(self, form: str, kind: type[Layout], address: int) -> None:
        size = kind.bit_width // 8
        data = self.read(address, size)
        if len(data) == size:
            self._note(form, "", kind, int.from_bytes(data, "little"), address, 0)

    def _note(self, form: str, name: str, kind: type[Layout], word: int, address: int, head: int) -> None:
        values, start = values_of(kind, word, self.address_text), address & MEMORY_MASK
        try:
            if word_of(kind, [one.text for one in values], self._resolve) != word:
                return  # a field that CLIF does not have
        except ValueError:
            return
        lines = tuple(one.line for one in values)
        end = start + head + kind.bit_width // 8
        self._pieces[start] = _Piece(form, (name, *lines) if name else lines, start, end)

    def _resolve(self, text: str) -> int:
        name, _, offset = text.strip("[]").partition("+")
        return self._places[name] + int(offset, 16) if offset else 0

    # -- text --------------------------------------------------------------------------------------

    def text(self) -> str:
        """All of it."""
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        for one in self._ranges:
            yield f"@createbuf_aligned {PAGE} {one.name}"
        for one in self._ranges:
            yield ""
            yield f"@buffer {one.name}"
            yield from self._buffer(one)
        yield ""
        for thread, start, end in self._lists:
            last = " ".join(("[null]",) if thread else ("[null]", "0", "[null]"))
            places = " ".join(self.address_text(at)[0] for at in (start, end))
            yield f"@add_render 0 {places} {last}" if thread else f"@add_bin 0 {places} {last}"
            yield "@wait_render_all_cores" if thread else "@wait_bin_all_cores"

    def _buffer(self, one: _Range) -> Iterator[str]:
        place, form = one.start, ""
        inside = [piece for piece in self._pieces.values() if one.start <= piece.start < one.end]
        for piece in sorted(inside, key=lambda piece: piece.start):
            if piece.start < place or piece.end > one.end:
                continue
            if piece.start > place:
                yield from _bytes(one.data[place - one.start : piece.start - one.start])
                form = ""
            if piece.format != form or piece.format != "ctrllist":
                yield f"@format {piece.format}"
            yield from piece.lines
            place, form = piece.end, piece.format
        yield from _bytes(one.data[place - one.start :])


def _bytes(data: bytes) -> Iterator[str]:
    """Bytes without a known meaning: words, and zeros by their count."""
    for is_blank, part in _parts(data):
        if is_blank:
            yield f"@format blank {len(part)}"
            continue
        yield "@format binary"
        whole = len(part) & ~3
        words = [f"0x{int.from_bytes(part[at : at + 4], 'little'):08x}" for at in range(0, whole, 4)]
        words += [f"0x{byte:02x}" for byte in part[whole:]]
        yield from (" ".join(words[at : at + WORDS]) for at in range(0, len(words), WORDS))


def _parts(data: bytes) -> Iterable[tuple[bool, bytes]]:
    """Runs of zeros, and what is between them."""
    place = 0
    for found in _ZEROS.finditer(data):
        if found.start() > place:
            yield False, data[place : found.start()]
        yield True, found.group()
        place = found.end()
    if place < len(data):
        yield False, data[place:]

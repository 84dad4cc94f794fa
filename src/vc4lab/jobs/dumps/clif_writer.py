"""Captured jobs → CLIF, a text for each job with the memory that was captured.

What lies in memory when a job's rendering list starts is written as buffers: records of its lists
and GL shader records by their fields, all else as bytes. Tile lists are the binner's, and are made
again.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from vc4lab.capture.pages import PAGE
from vc4lab.jobs.dumps.clif_fields import RECORD_NAMES, values_of, word_of
from vc4lab.jobs.model import BufferNamed, Filled, PagesLoaded, Zeroed
from vc4lab.jobs.player import FrameResult, JobsPlayer
from vc4lab.jobs.walk import surface_bytes
from vc4lab.memory import MEMORY_MASK
from vc4lab.records.control import Record, parse_list
from vc4lab.records.declarations import Branch, BranchToSublist, TileBinningMode
from vc4lab.records.shader import AttributeRecord, GlShaderRecord, attribute_count
from vc4lab.records.states import GlShaderState

if TYPE_CHECKING:
    from vc4lab.bits import Layout
    from vc4lab.jobs.model import Event, JobsCapture, JobsFrame
    from vc4lab.memory import GuestMemory
    from vc4lab.v3d.core import V3D
    from vc4lab.v3d.events import FrameTiles, JobStarted

MOST_RECORDS = 1 << 16
WORDS = 8
"""Words of bytes in a line."""
SHORTEST_BLANK = 64
"""Zeros in a row that are written as their count."""
_ZEROS = re.compile(rb"\0{%d,}" % SHORTEST_BLANK)


class _Range(NamedTuple):
    """A buffer: name, first byte, end."""

    name: str
    start: int
    end: int


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
    """Plays a capture, and writes each job as memory is when its first list starts."""

    def __init__(self, capture: JobsCapture) -> None:
        self._player = JobsPlayer(capture, on_v3d=self._listen)
        self._pages: set[int] = set()
        self._names: dict[int, tuple[int, str]] = {}
        """Bytes and label of buffers by their addresses."""
        self._lists: list[tuple[int, int, int]] = []
        """Thread, first byte and end of the lists of the job at hand."""
        self._done: list[bytes] = []

    def of(self, frame: JobsFrame) -> list[bytes]:
        """The jobs of the next frame."""
        self._done = []
        if frame.start is not None:
            self._player.begin(frame)
            self._pages.clear()
        for place, event in enumerate(frame.events):
            self._follow(event)
            self._player.step(frame, place, FrameResult())
        self._end()
        return self._done

    def _follow(self, event: Event) -> None:
        match event:
            case PagesLoaded() | Zeroed() | Filled():
                first = event.address // PAGE
                self._pages.update(range(first, first + event.pages))
            case BufferNamed(address, size, text):
                self._names[address & MEMORY_MASK] = size, text
            case _:
                pass

    def _listen(self, v3d: V3D) -> None:
        v3d.listeners.job_started.subscribe(self._started)
        v3d.listeners.frame_tiles.subscribe(self._tiles)

    def _tiles(self, event: FrameTiles) -> None:
        """A frame stores what later ones may need."""
        if event.over:
            surfaces = [(one.address, surface_bytes(one)) for one in event.surfaces if one.address]
            for address, size in (*surfaces, *event.full):
                start = address & MEMORY_MASK
                self._pages.update(range(start // PAGE, -(-(start + size) // PAGE)))

    def _started(self, event: JobStarted) -> None:
        if not event.thread:
            self._end()
        self._lists.append((event.thread, event.address, event.end))
        if event.thread:
            self._end()

    def _end(self) -> None:
        """Write the lists that have started: a job ends with its rendering list."""
        lists, self._lists = self._lists, []
        if lists:
            job = _Job(self._player.memory, list(self._ranges()), lists)
            self._done.append(job.text().encode())

    def _ranges(self) -> Iterator[_Range]:
        """The memory that was captured so far: buffers with names, the rest in runs of pages."""
        left = set(self._pages)
        for address, (size, text) in sorted(self._names.items()):
            pages = range(address // PAGE, -(-(address + size) // PAGE))
            if size and not address % PAGE and left.issuperset(pages):
                left.difference_update(pages)
                yield _Range(_buffer_name(text, address), address, pages.stop * PAGE)
        run: list[int] = []
        for page in [*sorted(left), -1]:
            if run and page != run[-1] + 1:
                start = run[0] * PAGE
                yield _Range(_buffer_name("memory", start), start, (run[-1] + 1) * PAGE)
                run = []
            run.append(page)


def _buffer_name(text: str, address: int) -> str:
    """A name without spaces, which says where the buffer lies."""
    plain = "".join(one if one.isalnum() and one.isascii() else "_" for one in text).strip("_")
    place = f"_0x{address:08x}"
    return f"{plain.removesuffix(place)[:40] or 'buffer'}{place}"


class _Job:
    """A job as text, with memory as it is now."""

    def __init__(self, memory: GuestMemory, ranges: list[_Range], lists: list[tuple[int, int, int]]) -> None:
        self._ranges = sorted(ranges, key=lambda one: one.start)
        self._starts = [one.start for one in self._ranges]
        self._places = {one.name: one.start for one in ranges}
        self._content = {one.start: memory.read(one.start, one.end - one.start) for one in ranges}
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
        return self._content[one.start][place : place + size]

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
                yield from _bytes(self._content[one.start][place - one.start : piece.start - one.start])
                form = ""
            if piece.format != form or piece.format != "ctrllist":
                yield f"@format {piece.format}"
            yield from piece.lines
            place, form = piece.end, piece.format
        yield from _bytes(self._content[one.start][place - one.start :])


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

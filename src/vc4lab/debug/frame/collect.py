"""Runs a frame and collects its facts: what its lists, draws and programs say, without addresses."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from vc4lab.capture.pages import PAGE
from vc4lab.debug.frame.facts import (
    ContentFact,
    Contents,
    DrawFact,
    FrameFact,
    JobFact,
    ProgramFact,
    RecordFact,
    TextureFact,
    UniformFact,
    fields_of,
    without_addresses,
)
from vc4lab.images.pixels import FULL_RES_TILE
from vc4lab.jobs.model import Filled, PagesLoaded, Stored, Zeroed
from vc4lab.jobs.uniforms import uniform_uses
from vc4lab.jobs.walk import surface_bytes
from vc4lab.memory import MEMORY_MASK
from vc4lab.qpu.program.reader import program_at
from vc4lab.records.control import RECORDS, parse_list, parse_record
from vc4lab.records.payload import BinnerState, Compressed, Primitives, State
from vc4lab.v3d.checks.draw_ranges import texture_range
from vc4lab.v3d.state.frame_mode import COLOUR, MASK

if TYPE_CHECKING:
    from vc4lab.bits import Layout
    from vc4lab.debug.frame.index import FrameDraw, FrameJob
    from vc4lab.debug.frame.runs import FrameRuns
    from vc4lab.jobs.uniforms import UniformUse
    from vc4lab.records.control import Record
    from vc4lab.v3d.events import JobStarted, ProgramStarted
    from vc4lab.v3d.state.frame_mode import Surface

MAX_PROGRAM = 4096
"""Instructions of a program that are compared."""
MAX_RECORDS = 1 << 16
"""Records of a list that are compared."""
MAX_VERTICES = 1 << 22
TARGET = 256
"""Bytes that are compared of what a uniform points to."""
FAILURE = "cannot be read: "
_THREADS = "binning list", "rendering list"


def facts_of(frame: FrameRuns) -> FrameFact:
    """Run a frame and collect its facts. Raises CaptureError."""
    return _Collector(frame).collect()


class _Collector:
    """Listens to a frame that runs."""

    def __init__(self, frame: FrameRuns) -> None:
        self._frame, self._stage = frame, frame.stage
        self._contents = Contents()
        self._jobs: list[JobFact] = []
        self._programs: list[ProgramFact] = []
        self._lists: list[tuple[str, tuple[RecordFact, ...]]] = []
        self._draws: tuple[DrawFact, ...] = ()
        self._digests: dict[tuple[int, ...], ContentFact] = {}
        """Content of memory since it was changed last."""
        self._known: dict[tuple[Any, ...], ProgramFact] = {}
        self._pages: set[int] | None = None

    def collect(self) -> FrameFact:
        stage = self._stage
        stage.on_tiles, stage.on_list, stage.on_program = self._tiles, self._list, self._program_started
        try:
            stage.run()
        finally:
            stage.on_tiles = stage.on_list = stage.on_program = None
        memory: list[ContentFact] = []
        if self._programs:
            self._forget()
            stored = [one for one in self._frame.source.events if isinstance(one, Stored)]
            memory = [
                self._content(f"stored memory {n}", one.address, one.size) for n, one in enumerate(stored, 1)
            ]
        return FrameFact(
            self._frame.number, tuple(self._jobs), tuple(self._programs), tuple(memory), self._contents
        )

    def _forget(self) -> None:
        self._digests.clear()
        self._known.clear()

    # -- what the stage says ------------------------------------------------------------------------

    def _list(self, event: JobStarted) -> None:
        """A list starts."""
        found = []
        for record in parse_list(self._stage.memory.read, event.address, event.end, limit=MAX_RECORDS):
            if event.thread or not _is_state_or_draw(record):
                found.append(_record(record))
        self._lists.append((_THREADS[event.thread], tuple(found)))

    def _program_started(self, event: ProgramStarted) -> None:
        """A user program starts."""
        self._forget()
        self._programs.append(self._program("user", event.address, event.uniforms))

    def _tiles(self, number: int, over: bool) -> None:
        """The tiles of a job are about to be drawn, or stored."""
        job = self._stage.jobs[number - 1]
        self._forget()
        if not over:
            self._draws = tuple(self._draw(one) for one in job.draws)
            return
        surfaces = [self._surface(one) for one in dict.fromkeys(job.surfaces) if surface_bytes(one)]
        if job.full:
            surfaces.append(self._samples(job))
        self._jobs.append(JobFact(job, tuple(self._lists), self._draws, tuple(surfaces)))
        self._lists, self._draws = [], ()

    # -- facts --------------------------------------------------------------------------------------

    def _content(self, name: str, address: int, size: int, row: int = 1, first: int = 0) -> ContentFact:
        """Content of memory, each range looked at once."""
        key = address, size, row, first
        found = self._digests.get(key)
        if found is None or found.name != name:
            digest = found.digest if found else self._contents.keep(self._stage.memory.read(address, size))
            found = ContentFact(name, digest, size, address, row, first)
            self._digests[key] = found
        return found

    def _surface(self, surface: Surface) -> ContentFact:
        data = self._stage.memory.read(surface.address, surface_bytes(surface))
        kind = {COLOUR: "colours", MASK: "mask"}.get(surface.buffer, "depth and stencil")
        name = f"{kind}, {surface.width}x{surface.height}, {surface.bits} bits"
        digest = self._contents.keep(data)
        return ContentFact(name, digest, len(data), surface.address, max(surface.bits // 8, 1))

    def _samples(self, job: FrameJob) -> ContentFact:
        data = b"".join(self._stage.memory.read(one, FULL_RES_TILE) for one in sorted(job.full))
        return ContentFact("samples", self._contents.keep(data), len(data), min(job.full), 4)

    def _draw(self, draw: FrameDraw) -> DrawFact:
        read = self._stage.memory.read
        states = tuple(_record(parse_record(read, address)) for address, _identity in draw.records)
        shader, programs, contents = self._shader(draw)
        if draw.index_bits:
            size = draw.index_bits // 8
            count = min(draw.length, MAX_VERTICES)
            contents = (*contents, self._content("indices", draw.place, count * size, size))
        return DrawFact(draw, _record(parse_record(read, draw.address)), states, shader, programs, contents)

    def _shader(
        self, draw: FrameDraw
    ) -> tuple[tuple[RecordFact, ...], tuple[ProgramFact, ...], tuple[ContentFact, ...]]:
        """The shader record with its arrays, the programs, the vertices."""
        shader = draw.shader
        if shader is None:
            return (), (), ()
        fragment = self._program("fragment", shader.code, shader.uniforms)
        if shader.gl is not None:
            record = shader.gl.record
            facts = [_layout("GL shader record", record, shader.address)]
            contents = []
            for number, array in enumerate(shader.gl.attributes):
                fields = (
                    ("size", str(array.size)), ("stride", str(array.stride)),
                    ("vs_offset", str(array.vs_offset)), ("cs_offset", str(array.cs_offset)),
                )  # fmt: skip
                facts.append(RecordFact(f"attribute array {number}", fields, array.address))
                if (int(record.vs_attributes) | int(record.cs_attributes)) >> number & 1:
                    name = f"attribute {number}"
                    contents.append(self._rows(name, draw, array.address, array.stride, array.size))
            programs = (
                fragment,
                self._program("vertex", int(record.vs_code), int(record.vs_uniforms)),
                self._program("coordinate", int(record.cs_code), int(record.cs_uniforms)),
            )
            return tuple(facts), programs, tuple(contents)
        if shader.nv is not None:
            stride = int(shader.nv.stride)
            vertices = self._rows("vertices", draw, int(shader.nv.vertices), stride, stride)
            return (_layout("NV shader record", shader.nv, shader.address),), (fragment,), (vertices,)
        return (), (fragment,), ()

    def _rows(self, name: str, draw: FrameDraw, address: int, stride: int, size: int) -> ContentFact:
        """The vertices of an array that a draw uses."""
        first, count = max(draw.first, 0), min(max(draw.last - draw.first + 1, 0), MAX_VERTICES)
        if not stride:
            count = min(count, 1)
        start = address + first * stride & MEMORY_MASK
        if stride == size or count <= 1:
            return self._content(name, start, count * size, size, first)
        key = start, count, stride, size
        found = self._digests.get(key)
        if found is None or found.name != name:
            data = self._stage.memory.array(start, max(count - 1, 0) * stride + size)
            rows = np.lib.stride_tricks.as_strided(data, (count, size), (stride, 1), writeable=False)
            digest = self._contents.keep(rows.tobytes())
            found = self._digests[key] = ContentFact(name, digest, count * size, start, size, first)
        return found

    def _program(self, kind: str, code: int, uniforms: int) -> ProgramFact:
        """A program with what it reads."""
        key = kind, code, uniforms
        if key in self._known:
            return self._known[key]
        memory = self._stage.memory
        program = program_at(memory, code, limit=MAX_PROGRAM)
        uses = uniform_uses(memory, program, uniforms)
        looks_up = kind == "user" or any(one.is_direct for one in program.texture_requests)
        requests = [one for one in uses if one.texture is not None and len(one.request) > 1]
        textures = [self._texture(number, one) for number, one in enumerate(requests)]
        of_textures = {number for one in requests for number in one.request}
        plain = []
        for one, site in zip(uses, program.uniform_sites, strict=True):
            if one.number in of_textures:
                continue
            purpose = f"read by instruction {site.instruction_index}" if one.is_plain else one.what
            target = self._target(one.word) if looks_up else None
            plain.append(UniformFact(one.number, purpose, one.word, target, uniforms + 4 * one.number))
        made = ProgramFact(kind, tuple(program.words), tuple(plain), tuple(textures), code)
        self._known[key] = made
        return made

    def _texture(self, number: int, use: UniformUse) -> TextureFact:
        assert use.texture is not None
        content = self._content(f"texture {number}", *texture_range(use.parameters))
        return TextureFact(number, use.texture, without_addresses(use.texture), content)

    def _target(self, word: int) -> str | None:
        """A digest of what lies at an address that a uniform may be; None: nothing was ever put there."""
        if self._pages is None:
            self._pages = set()
            for frame in self._stage.frames:
                for event in frame.events:
                    self._pages.update(_pages(event))
        if (word & MEMORY_MASK) // PAGE not in self._pages:
            return None
        return self._content("what a uniform points to", word, TARGET).digest


def _pages(event: object) -> range:
    """The pages that an event puts something into, or says something of."""
    match event:
        case PagesLoaded(address, _, count) | Filled(address, _, count) | Zeroed(address, count):
            return range(address // PAGE, address // PAGE + count)
        case Stored(address, size, _):
            return range((address & MEMORY_MASK) // PAGE, -(-((address & MEMORY_MASK) + size) // PAGE))
    return range(0)


def _is_state_or_draw(record: Record) -> bool:
    """Whether a record of a binning list counts with its draws."""
    return isinstance(record.payload, State | BinnerState | Primitives | Compressed)


def _record(record: Record) -> RecordFact:
    if record.problem is not None or record.payload is None:
        return RecordFact(FAILURE + str(record.problem), (), record.address)
    return RecordFact(*_named(record.id, record.payload.value), record.address)


@lru_cache(maxsize=1 << 14)
def _named(number: int, value: int) -> tuple[str, tuple[tuple[str, str], ...]]:
    kind = RECORDS[number]
    return f"record {number} {kind.title}", fields_of(kind(value))


def _layout(title: str, found: Layout, address: int) -> RecordFact:
    return RecordFact(title, fields_of(found), address)

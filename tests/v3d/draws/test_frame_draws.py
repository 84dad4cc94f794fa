"""Draws that were met before and draws that are new: the same pictures, whatever has changed."""

import struct
from collections.abc import Callable
from ctypes import memset
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from tests.support.frames import GREEN, RED, Frame, inside, solid
from tests.support.jobs import VARYING_COLOURS, nv_vertex, viewport

from vc4lab.diagnostics import Reporter
from vc4lab.drm.kernel.built_job import BuiltJob
from vc4lab.drm.kernel.hardware import run_job
from vc4lab.drm.recorded.jobs import RecordedRun
from vc4lab.memory import GuestMemory
from vc4lab.qpu.program.reader import program_at
from vc4lab.qpu.program.uniform_stream import stream_layout
from vc4lab.qpu.text.assembler import assemble
from vc4lab.records.control import build, parse_list
from vc4lab.records.shader import GlShader, parse_gl_state
from vc4lab.records.texture import TextureConfig
from vc4lab.v3d.core import V3D
from vc4lab.v3d.draws.pipeline_table import parameter_places
from vc4lab.v3d.state.render_state import ProgramCache
from vc4lab.v3d.unknowns import DEFAULT_UNKNOWNS
from vc4lab.v3d.vertex.shading import Arena

JOBS = Path(__file__).parents[2] / "data" / "vc4-jobs"
TEXTURED, PLAIN = "glmark2_texture_texture-filter_nearest", "tri_arm64"


class Run:
    """The last job of a recorded run, and how many pipelines native code asked for."""

    def __init__(self, name: str) -> None:
        self.reporter = Reporter()
        run = RecordedRun(JOBS / name)
        self.memory: GuestMemory = run.memory
        self.v3d = V3D(run.memory, self.reporter, threads=1)
        for job in run.jobs:
            self.job: BuiltJob = job.build(run.memory)
        self.pictures: list[bytes] = []
        self.changed: list[tuple[int, bytes]] = []
        self.requests = 0
        preparer = self.v3d.frames.preparer
        find = preparer.find

        def counted(use):  # type: ignore[no-untyped-def]
            self.requests += 1
            return find(use)

        preparer.find = counted  # type: ignore[method-assign]

    @property
    def shaders(self) -> list[tuple[int, GlShader]]:
        """Address and content of the job's shader records."""
        found = []
        for record in parse_list(self.memory.read, self.job.bin_start, self.job.bin_end):
            if record.id == 64 and record.payload is not None:
                found.append((record.payload.address, parse_gl_state(self.memory.read, record.payload)))
        return found

    def poke(self, address: int, data: bytes) -> None:
        """Changes memory until `undo`."""
        self.changed.append((address, self.memory.read(address, len(data))))
        self.memory.write(address, data)

    def poke_word(self, address: int, word: int) -> None:
        """`poke` of 32 bits."""
        self.poke(address, word.to_bytes(4, "little"))

    def undo(self) -> None:
        """Memory as it was."""
        for address, data in reversed(self.changed):
            self.memory.write(address, data)

    def frame(self) -> None:
        """Draws the job."""
        self.pictures.append(self.picture(self.v3d))

    def picture(self, v3d: V3D) -> bytes:
        """What a V3D makes of the job."""
        surface = self.job.colour
        assert surface is not None
        size = 4 * surface.width * surface.height
        self.memory.fill(surface.address, size, 0x55)
        run_job(v3d, self.job)
        return self.memory.read(surface.address, size)


def texture_parameters(run: Run, change: Callable[[list[int]], list[int]]) -> None:
    """Rewrites the parameters of all textures."""
    for _, shader in run.shaders:
        program = program_at(run.memory, shader.record.fs_code)
        start = shader.record.fs_uniforms
        found = parameter_places(program, stream_layout(program, run.memory.u32, start))
        assert found is not None
        places = [start + place for place in found]
        words = change([run.memory.u32(place) for place in places])
        for place, word in zip(places, words, strict=True):
            run.poke_word(place, word)


def another_wrap(run: Run) -> None:
    texture_parameters(run, lambda words: [w ^ (0xF if k % 2 else 0) for k, w in enumerate(words)])


def another_image(run: Run) -> None:
    texture_parameters(run, lambda words: [w ^ (0 if k % 2 else 0x4000) for k, w in enumerate(words)])


def another_program(run: Run) -> None:
    for _, shader in run.shaders:
        run.poke(shader.record.fs_code, assemble(solid(GREEN)).bytes)


def no_attributes(run: Run) -> None:
    for address, _ in run.shaders:
        run.poke(address + 14, b"\0")


def wild_vertices(run: Run) -> None:
    for _, shader in run.shaders:
        for array in shader.attributes:
            for number in range(0, 60, 7):
                run.poke_word(array.address + array.stride * number, 0x7F800000)


def far_away(run: Run) -> None:
    for address, _ in run.shaders:
        run.poke_word(address + 36, 0x7E00_0000)


def odd_uniforms(run: Run) -> None:
    for address, shader in run.shaders:
        run.poke_word(address + 8, shader.record.fs_uniforms + 1)
        run.poke_word(address + 20, shader.record.vs_uniforms + 4)


CHANGES: dict[Callable[[Run], None], dict[str, dict[str, int]]] = {
    another_wrap: {},
    another_image: {},
    another_program: {},
    no_attributes: {name: {"CLE-033": 2, "VTX-009": 1} for name in (TEXTURED, PLAIN)},
    wild_vertices: {},
    far_away: {TEXTURED: {"MEM-001": 1}, PLAIN: {"MEM-001": 1}},
    odd_uniforms: {TEXTURED: {"MEM-002": 2, "TMU-006": 1}},
}
"""What is changed, and the messages (with their number) in two frames with it, by run."""


@pytest.mark.parametrize("name", [TEXTURED, PLAIN])
@pytest.mark.parametrize("change", CHANGES)
def test_changes_between_frames(name: str, change: Callable[[Run], None]) -> None:
    """What was met before is drawn as by a V3D that meets it for the first time."""
    run = Run(name)
    run.frame()
    run.frame()
    known = run.requests
    change(run)
    run.frame()
    run.frame()
    new = Reporter()
    anew = run.picture(V3D(run.memory, new, threads=1))
    run.undo()
    run.frame()
    assert run.pictures[2] == run.pictures[3] == anew
    assert run.pictures[0] == run.pictures[1] == run.pictures[4]
    assert 0 < known <= 2, "in the second frame everything is known"
    assert run.reporter.counts == CHANGES[change].get(name, {})
    assert {item.code for item in run.reporter.items} == {item.code for item in new.items}


def test_nothing_changes_and_nothing_is_requested() -> None:
    run = Run(TEXTURED)
    run.frame()
    first = run.requests
    for _ in range(3):
        run.frame()
    assert run.requests == first > 0
    assert len(set(run.pictures)) == 1
    draws = run.v3d.frames.preparer._draws
    assert len(draws) == first
    for draw in draws:
        assert draw.function
        assert draw.fallback is not None
        assert draw.fallback(1.0)


def test_vertices_alone_are_requested() -> None:
    """The fast build gives up at uniforms that are no numbers; Python makes the exact one, once."""
    run = Run(TEXTURED)
    run.frame()
    known, shaded = run.requests, []
    preparer = run.v3d.frames.preparer
    shade = preparer.shade
    preparer.shade = lambda *a: (shaded.append(a), shade(*a))[1]  # type: ignore[method-assign]
    for _, shader in run.shaders:
        for word in range(16):
            run.poke_word(shader.record.vs_uniforms + 4 * word, 0x7FC00000)
    for _ in range(3):
        run.frame()
    assert run.requests == known
    assert len(shaded) == 1


@pytest.mark.parametrize("address", [0x3FFFFFF0, 0x3FFFFFF8])
def test_a_shader_record_at_the_end_of_memory(address: int) -> None:
    """It may go on at address 0."""
    frame = Frame()
    corners = ((3.0, 3.0), (90.0, 5.0), (40.0, 100.0))
    vertices = b"".join(nv_vertex(*corner, 0.5, 1.0) for corner in corners)
    record = frame.nv_shader(solid(RED), vertices)
    elsewhere = int.from_bytes(record[1:], "little")
    frame.job.memory.write(address, frame.job.memory.read(elsewhere, 16))
    body = viewport(frame.job) + build(65, address=address) + build(33, mode=4, length=3, first=0)
    for _ in range(2):
        assert ((frame.bin(body) == RED) == inside(frame, corners)).all()


TWO = ((3.0, 3.0), (60.0, 5.0), (20.0, 50.0)), ((90.0, 90.0), (30.0, 100.0), (95.0, 40.0))


def test_draws_have_shader_records_of_their_own() -> None:
    """They differ in nothing else; in the first frame Python has seen to each."""
    frame = Frame()
    body = viewport(frame.job)
    for corners, colour in zip(TWO, (RED, GREEN), strict=True):
        vertices = b"".join(nv_vertex(*corner, 0.5, 1.0) for corner in corners)
        body += frame.nv_shader(solid(colour), vertices) + build(33, mode=4, length=3, first=0)
    for _ in range(2):
        picture = frame.bin(body)
        for corners, colour in zip(TWO, (RED, GREEN), strict=True):
            assert ((picture == colour) == inside(frame, corners)).all()


@pytest.mark.parametrize("missing", [0, 1, 64])
def test_room_for_vertices_is_used_to_its_end_and_no_further(missing: int) -> None:
    frame = Frame()
    vertices = b"".join(nv_vertex(*corner, 0.5, 1.0) for corner in TWO[0])
    body = viewport(frame.job) + frame.nv_shader(solid(RED), vertices)
    body += build(33, mode=4, length=3, first=0)
    frame.bin(body)
    preparer = frame.v3d.frames.preparer
    arena, needed = preparer.vertices.arena, preparer._draws._context.needed
    (start, _end), buffer = arena._blocks[0]
    arena._blocks[0] = (start, start + needed - missing), buffer
    picture = frame.bin(body)
    assert ((picture == RED) == inside(frame, TWO[0])).all()
    assert len(arena._blocks) == (2 if missing else 1)


def test_nothing_is_left_of_a_draw_that_is_left_out() -> None:
    """Its pipeline was found, its vertices could not be shaded; the next one has another."""
    whole, run = Run("glmark2_ideas"), Run("glmark2_ideas")
    preparer = run.v3d.frames.preparer
    shade, asked = preparer.shade, []

    def refused(*arguments):  # type: ignore[no-untyped-def]
        asked.append(arguments)
        return len(asked) > 1 and shade(*arguments)

    preparer.shade = refused  # type: ignore[method-assign]
    whole.frame()
    run.frame()
    due = [draw.function for draw in whole.v3d.frames.preparer._draws]
    found = [draw.function for draw in preparer._draws]
    assert due[0] != due[1]
    assert found == [0, *due[1:]]


def triangles(count: int) -> bytes:
    """Triangles with three varyings."""
    data = b""
    for k in range(count):
        x, y = 3.0 + k % 100, 3.0 + k // 50
        for corner, colour in (((x, y), 0.25), ((x + 3, y), 0.5), ((x, y + 3), 0.75)):
            data += nv_vertex(*corner, 0.5, 1.0, colour, 1 - colour, k % 7 / 7)
    return data


def test_many_vertices_in_many_draws() -> None:
    """Ready vertices: more than fit into the room there is at first."""

    frame = Frame()
    count = 5000
    body = viewport(frame.job)
    shader = frame.nv_shader(VARYING_COLOURS + COLOUR_OUT, triangles(count), 3)
    for k in range(4):
        body += build(99, line_width=1.0 + k) + shader
        body += build(33, mode=4, length=3 * count, first=0)
    pictures = [frame.bin(body) for _ in range(3)]
    assert not frame.reporter.items, frame.reporter.summary()
    assert (pictures[0] == pictures[1]).all()
    assert (pictures[0] == pictures[2]).all()
    assert len(np.unique(pictures[0])) == 4
    assert len(frame.v3d.frames.preparer._draws) >= 4


COLOUR_OUT = """
    mov tlbc, r0 ; nop ; thrend
    nop
    nop ; nop ; sbdone
"""


def test_many_states() -> None:
    """More draws than the arrays hold at first, each with its own line width."""
    frame = Frame()
    body = viewport(frame.job)
    corners = ((3.0, 3.0), (90.0, 5.0), (40.0, 100.0))
    vertices = b"".join(nv_vertex(*corner, 0.5, 1.0) for corner in corners)
    shader = frame.nv_shader(solid(RED), vertices)
    for k in range(300):
        body += build(99, line_width=float(k)) + shader + build(33, mode=4, length=3, first=0)
    for _ in range(3):
        picture = frame.bin(body)
        assert ((picture == RED) == inside(frame, corners)).all()
    assert len(frame.v3d.frames.preparer._draws) == 300


def test_hash_is_the_native_one() -> None:
    """Entries are found where Python puts them: a frame of known draws prepares none in Python."""
    frame = Frame()
    vertices = struct.pack("<hhff", 16, 16, 0.5, 1.0) * 3
    body = viewport(frame.job)
    for colour in range(40):
        body += frame.nv_shader(solid(0xFF000000 | colour), vertices)
        body += build(33, mode=4, length=3, first=0)
    frame.bin(body)
    frame.v3d.frames.preparer.find = None  # type: ignore[method-assign, assignment]
    frame.bin(body)


def test_room_for_vertices_becomes_one_block() -> None:
    def take(size: int) -> int:
        """As native code takes it."""
        arena.reserve(size)
        place = arena.window[0]
        arena.take_up_to(place + size)
        return place

    arena = Arena()
    sizes = (100, 3 << 20, 64, 2 << 20, 1)
    for _ in range(3):
        arena.gather()
        places = [take(size) for size in sizes]
        ends = [place + size for place, size in zip(places, sizes, strict=True)]
        assert all(place % 64 == 0 for place in places)
        ranges = sorted(zip(places, ends, strict=True))
        assert all(end <= start for (_, end), (start, _) in pairwise(ranges))
        for place, size in zip(places, sizes, strict=True):
            memset(place, 0xAA, size)
    assert len(arena._blocks) == 1
    assert places == sorted(places)
    arena.reset()
    assert take(8) == places[0]
    arena.reserve(1 << 24)
    assert arena.window[1] - arena.window[0] >= 1 << 24


def test_texture_parameters_at_an_address_of_the_program() -> None:
    """The uniforms are elsewhere in the next frame, and there the old parameters lie as far on."""
    frame = Frame(64, 64, threads=1)
    job = frame.job
    texels = [job.put(struct.pack("<16I", *[colour] * 16), 4096) for colour in (RED, GREEN)]
    old, new = (
        struct.pack("<2I", *TextureConfig(base=at, width=4, height=4).parameters()[:2]) for at in texels
    )
    there, uniforms = job.room(4096), job.room(4096)
    program = f"""
        ldi unif_addr, 0x{there:x}
        ldi r0, 0.5
        nop
        mov t0t, r0
        mov t0s, r0
        nop ; nop ; ldtmu0
        sbwait
        mov tlbc, r4 ; nop ; thrend
        nop
        nop ; nop ; sbdone
    """
    code, vertices = (
        job.program(program),
        job.put(b"".join(nv_vertex(x, y, 0.5, 1.0) for x, y in ((0, 0), (0, 64), (64, 0)))),
    )
    state = build(33, mode=4, length=3)
    for moved, words, colour in ((0, old, RED), (64, new, GREEN)):
        job.memory.write(there, words)
        job.memory.write(there + 64, old)
        data = struct.pack("<BBBBIII", 1, 12, 0, 0, code, uniforms + moved, vertices)
        record = build(65, address=job.put(data))
        assert frame.bin(viewport(job) + record + state)[8, 8] == colour


def test_programs_that_take_turns_at_one_place_are_the_same_objects() -> None:
    memory, reporter = GuestMemory(), Reporter()
    programs = ProgramCache(memory, reporter, DEFAULT_UNKNOWNS)
    codes = [assemble(solid(colour)).bytes for colour in (RED, GREEN)]
    met = []
    for code in codes * 3:
        memory.write(0x1000, bytes(64))
        memory.write(0x1000, code)
        met.append(programs.get(0x1000))
    assert met[0] != met[1]
    assert all(met[n] is met[n % 2] for n in range(6))

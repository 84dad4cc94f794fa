"""Draws prepared natively and in Python: the same pictures and messages, whatever has changed."""

from __future__ import annotations

import struct
from collections.abc import Callable
from ctypes import memset
from itertools import pairwise
from pathlib import Path

import pytest
from tests.support.frames import GREEN, RED, Frame, inside, solid
from tests.support.golden_lists import in_python
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
from vc4lab.v3d.core import V3D
from vc4lab.v3d.draws.pipeline_table import parameter_places
from vc4lab.v3d.state.shader_state import ProgramCache
from vc4lab.v3d.state.tile_context import DrawParams
from vc4lab.v3d.unknowns import DEFAULT_UNKNOWNS
from vc4lab.v3d.vertex.shading import Arena

JOBS = Path(__file__).parents[2] / "data" / "vc4-jobs"
TEXTURED, PLAIN = "glmark2_texture_texture-filter_nearest", "tri_arm64"


def all_in_python(v3d: V3D) -> None:
    """Every draw is prepared and binned in Python."""
    in_python(v3d)
    draws = v3d.frames.preparer._draws
    fill = draws.fill
    draws.fill = lambda *a, **o: fill(*a, **(o | {"native": False}))  # type: ignore[method-assign]


class Run:
    """The last job of a recorded run, and how many draws Python prepared."""

    def __init__(self, name: str, native: bool) -> None:
        self.reporter = Reporter()
        run = RecordedRun(JOBS / name)
        self.memory: GuestMemory = run.memory
        self.v3d = V3D(run.memory, self.reporter, threads=1)
        if not native:
            all_in_python(self.v3d)
        for job in run.jobs:
            self.job: BuiltJob = job.build(run.memory)
        self.pictures: list[bytes] = []
        self.changed: list[tuple[int, bytes]] = []
        self.python = 0
        draws = self.v3d.frames.preparer._draws
        prepare = draws._prepare

        def counted(use):  # type: ignore[no-untyped-def]
            self.python += 1
            return prepare(use)

        draws._prepare = counted

    @property
    def shaders(self) -> list[tuple[int, GlShader]]:
        """Address and content of the job's shader records."""
        found = []
        for record in parse_list(self.memory.read, self.job.bin_start, self.job.bin_end):
            if record.id == 64 and record.payload is not None:
                found.append(
                    (record.payload.address, parse_gl_state(self.memory.read, record.payload))
                )
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
        run_job(self.v3d, self.job)
        surface = self.job.colour
        assert surface is not None
        self.pictures.append(self.memory.read(surface.address, 4 * surface.width * surface.height))


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
    texture_parameters(
        run, lambda words: [w ^ (0 if k % 2 else 0x4000) for k, w in enumerate(words)]
    )


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


CHANGES = (
    another_wrap,
    another_image,
    another_program,
    no_attributes,
    wild_vertices,
    far_away,
    odd_uniforms,
)


@pytest.mark.parametrize("name", [TEXTURED, PLAIN])
@pytest.mark.parametrize("change", CHANGES)
def test_changes_between_frames(name: str, change: Callable[[Run], None]) -> None:
    golden, fast = Run(name, False), Run(name, True)
    for run in (golden, fast):
        run.frame()
        run.frame()
        known = run.python
        change(run)
        run.frame()
        run.frame()
        run.undo()
        run.frame()
    assert golden.pictures == fast.pictures
    assert golden.reporter.items == fast.reporter.items
    assert golden.reporter.counts == fast.reporter.counts
    assert fast.pictures[0] == fast.pictures[1] == fast.pictures[4]
    assert 0 < known <= 2, "in the second frame everything is known"


def test_nothing_changes_and_python_sees_nothing() -> None:
    run = Run(TEXTURED, True)
    run.frame()
    first = run.python
    for _ in range(3):
        run.frame()
    assert run.python == first > 0
    assert len(set(run.pictures)) == 1
    draws = run.v3d.frames.preparer._draws
    assert len(draws) == first
    for draw in draws:
        assert draw.function
        assert draw.fallback is not None
        assert draw.fallback(1.0)


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

    def picture(native: bool) -> tuple[bytes, int]:
        frame = Frame()
        if not native:
            all_in_python(frame.v3d)
        count = 5000
        body = viewport(frame.job)
        shader = frame.nv_shader(VARYING_COLOURS + COLOUR_OUT, triangles(count), 3)
        for k in range(4):
            body += build(99, line_width=1.0 + k) + shader
            body += build(33, mode=4, length=3 * count, first=0)
        for _ in range(2):
            pixels = frame.bin(body)
        assert not frame.reporter.items, frame.reporter.summary()
        return pixels.tobytes(), len(frame.v3d.frames.preparer._draws)

    golden, fast = picture(False), picture(True)
    assert golden == fast
    assert fast[1] >= 4


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
    preparer = frame.v3d.frames.preparer
    preparer._draws._prepare = None  # type: ignore[assignment]
    frame.bin(body)


@pytest.mark.parametrize("name", [TEXTURED, PLAIN])
def test_parameters_are_the_same(name: str) -> None:
    """Every member of `DrawParams` but for addresses, which differ from process to process."""
    found = []
    for native in (False, True):
        run = Run(name, native)
        for _ in range(2):
            run.frame()
        draws = run.v3d.frames.preparer._draws
        blocks = [DrawParams.python.from_address(draw.params) for draw in draws]
        members = [member for member, kind in DrawParams.fields.items() if kind.scalar]
        members = [m for m in members if m != "vertices"]
        found.append([[getattr(block, m) for m in members] for block in blocks])
        assert all(block.vertices for block in blocks)
        assert any(block.textures[0] for block in blocks) == (name == TEXTURED)
    assert found[0] == found[1]
    assert found[0]


def test_room_for_vertices_becomes_one_block() -> None:
    arena = Arena()
    sizes = (100, 3 << 20, 64, 2 << 20, 1)
    for _ in range(3):
        arena.gather()
        places = [arena.take(size) for size in sizes]
        ends = [place + size for place, size in zip(places, sizes, strict=True)]
        assert all(place % 64 == 0 for place in places)
        ranges = sorted(zip(places, ends, strict=True))
        assert all(end <= start for (_, end), (start, _) in pairwise(ranges))
        for place, size in zip(places, sizes, strict=True):
            memset(place, 0xAA, size)
    assert len(arena._blocks) == 1
    assert places == sorted(places)
    arena.reset()
    assert arena.take(8) == places[0]
    arena.reserve(1 << 24)
    assert arena.window[1] - arena.window[0] >= 1 << 24


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


def test_few_vertex_contexts_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest one goes: a device that runs for hours does not grow, and draws the same."""
    expected = Run("glmark2_ideas", native=False)
    expected.frame()
    monkeypatch.setattr("vc4lab.v3d.vertex.shading._MAX_JOBS", 3)
    run = Run("glmark2_ideas", native=False)
    vertices = run.v3d.frames.preparer.vertices
    for _ in range(2):
        run.frame()
        assert len(vertices._jobs) == 3
    assert run.pictures[0] == run.pictures[1] == expected.pictures[0]

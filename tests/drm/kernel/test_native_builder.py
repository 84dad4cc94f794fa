"""Compiled builder against the one in words: the same bytes, and not one job that it refuses."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from vc4lab.diagnostics import Reporter
from vc4lab.drm.kernel.built_job import BuiltJob, Workspace
from vc4lab.drm.kernel.jobs import build_submit
from vc4lab.drm.kernel.native.jobs import build_known
from vc4lab.drm.kernel.native.texture_check import is_bad_texture
from vc4lab.drm.kernel.shaders import KnownShaders
from vc4lab.drm.kernel.texture_rules import texture_problem
from vc4lab.drm.recorded.jobs import RecordedJob, RecordedRun
from vc4lab.drm.uapi.submit import NO_BUFFER, Buffer, JobError, Submit, Surface
from vc4lab.memory import GuestMemory
from vc4lab.qpu.text.assembler import assemble
from vc4lab.records import declarations as d
from vc4lab.records.control import build, parse_list
from vc4lab.records.shader import Attribute, GlShader, GlShaderRecord
from vc4lab.records.texture import TextureConfig, TextureType
from vc4lab.simd import build as compile_kernels

DATA = Path(__file__).parents[2] / "data"
RUNS = [
    path
    for folder in ("vc4-jobs", "vc4-conformance")
    for path in sorted((DATA / folder).iterdir())
    if any(path.glob("job*"))
]
SIZE = 1 << 20


class Pair:
    """A job's buffers in memory, to be built in both ways."""

    def __init__(self, memory: GuestMemory, known: KnownShaders, place: int) -> None:
        self.memory = memory
        self.known = known
        self.workspace = Workspace.at(place)

    @classmethod
    def of(cls, job: RecordedJob) -> Pair:
        run = job.run
        assert job.submit is not None
        assert run.workspace is not None
        run.contents.load(job.submit.buffers, run.memory)
        return cls(run.memory, run.known, run.workspace)

    def build(self, submit: Submit, native: bool) -> tuple[BuiltJob | None, bytes, list[str]]:
        """What is built, its bytes with zeros around, and what was reported."""
        lists = self.workspace.lists
        self.memory.fill(lists, SIZE)
        reporter = Reporter()
        built: BuiltJob | None = None
        try:
            built = build_submit(
                submit, self.memory, self.workspace, reporter, self.known, native=native
            )
        except JobError:
            return None, b"", [str(item) for item in reporter.items]
        assert built.render_end - lists < SIZE
        return built, self.memory.read(lists, SIZE), [str(item) for item in reporter.items]

    def compare(self, submit: Submit) -> bool:
        """Build it in both ways; whether it is accepted."""
        golden = self.build(submit, native=False)
        assert self.build(submit, native=True) == golden
        return golden[0] is not None

    def is_native(self, submit: Submit) -> bool:
        """Whether compiled code builds it."""
        return build_known(submit, self.memory, self.workspace, self.known) is not None


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.name)
def test_recorded_jobs(path: Path) -> None:
    for job in RecordedRun(path).jobs:
        assert job.submit is not None
        pair = Pair.of(job)
        assert pair.compare(job.submit)
        assert pair.is_native(job.submit), "known shaders, nothing to report"


# -- damaged jobs ----------------------------------------------------------------------------------


def _number(choose: random.Random, size: int) -> int:
    near = [0, 1, 2, 3, 4, 15, 16, 255, 256, 4095, 4096, 65535, 65536, 1 << 31, (1 << 32) - 1]
    value = choose.choice([*near, choose.getrandbits(32), choose.getrandbits(12)])
    return value & ((1 << 8 * size) - 1)


def damage(submit: Submit, choose: random.Random) -> Submit:
    """The job with a few changes, most of them near the limits of what is accepted."""
    streams = {name: bytearray(getattr(submit, name)) for name in STREAMS}
    changes: dict[str, Any] = {}
    for _ in range(choose.choice((1, 1, 1, 2, 3))):
        kind = choose.randrange(12)
        name = choose.choice(STREAMS)
        data = streams[name]
        if kind < 5 and data:
            size = choose.choice((1, 1, 2, 4, 4))
            place = choose.randrange(len(data))
            place -= place % size if name != "bin_cl" else 0
            data[place : place + size] = _number(choose, size).to_bytes(size, "little")
        elif kind == 5 and data:
            data[choose.randrange(len(data))] ^= 1 << choose.randrange(8)
        elif kind == 6 and data:
            place = choose.randrange(len(data))
            del data[place : place + choose.choice((1, 4, 5, 9, 1 << 20))]
        elif kind == 7 and data:
            place = choose.randrange(len(data))
            data[place:place] = data[: choose.randrange(64)]
        elif kind == 8:
            name = choose.choice(("shader_rec_count", "width", "height", "flags", "padding"))
            changes[name] = choose.choice((0, 1, 2, 8, 14, 15, 64, 4096, 4097, 65535))
        elif kind == 9:
            name = choose.choice(("min_x_tile", "min_y_tile", "max_x_tile", "max_y_tile"))
            changes[name] = min(255, max(0, getattr(submit, name) + choose.randrange(-2, 3)))
        elif kind == 10:
            changes["surfaces"] = damaged_surfaces(submit, choose)
        elif submit.buffers:
            buffers = list(submit.buffers)
            index = choose.randrange(len(buffers))
            size = max(1, buffers[index].size + choose.choice((-1, 1, -4096, 4096, -(1 << 20))))
            buffers[index] = choose.choice(
                (replace(buffers[index], size=size), replace(buffers[index], shader=False))
            )
            changes["buffers"] = tuple(buffers[: choose.choice((len(buffers), index))])
    return replace(submit, **changes, **{name: bytes(data) for name, data in streams.items()})


STREAMS = ("bin_cl", "shader_rec", "uniforms")
SURFACES = (
    "color_read", "color_write", "zs_read", "zs_write", "msaa_color_write", "msaa_zs_write",
)  # fmt: skip


def damaged_surfaces(submit: Submit, choose: random.Random) -> dict[str, Surface]:
    """Other surfaces, some of them good."""
    surfaces = dict(submit.surfaces)
    name = choose.choice(SURFACES)
    surfaces[name] = Surface(
        choose.randrange(len(submit.buffers) + 1),
        choose.choice((0, 16, 8, 4096, 1 << 31)),
        choose.choice((0, 1, 2, 4, 0x11, 0x12, 0x44, 0x104, choose.getrandbits(16))),
        choose.choice((0, 0, 0, 1, 2)) if name.endswith("read") else choose.choice((0, 0, 1)),
    )
    return surfaces


def compare_damaged(path: Path, rounds: int, seed: int) -> tuple[int, int]:
    """How many damaged jobs were still accepted, and how many of these by compiled code."""
    choose = random.Random(f"{path.name} {seed}")
    jobs = RecordedRun(path).jobs
    accepted = compiled = 0
    for _ in range(rounds):
        job = choose.choice(jobs)
        assert job.submit is not None
        pair = Pair.of(job)
        submit = damage(job.submit, choose)
        if pair.compare(submit):
            accepted += 1
            compiled += pair.is_native(submit)
    return accepted, compiled


DAMAGED = (
    "glmark2_ideas", "glmark2_texture_texture-filter_mipmap", "kmscube_smooth", "sdl_testdraw2",
    "cube_mip", "alpha_to_coverage_4x", "budget_4095_loop", "point_limit",
)  # fmt: skip


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_jobs(name: str) -> None:
    path = next(path for path in RUNS if path.name == name)
    accepted, compiled = compare_damaged(path, 60, 1)
    assert 0 < accepted < 60
    assert compiled


# -- what recorded jobs lack -----------------------------------------------------------------------

NOTHING = "nop ; nop ; thrend\nnop\nnop\n"
LOOKUP = "max r0, r0, 0 ; nop\nmin r1, r0, unif ; nop\nadd t0s, r1, unif ; nop\n"
CUBE = "mov t0b, r0 ; nop\nmov t0r, r0 ; nop\nmov t0t, r0 ; nop\nmov t0s, r0 ; nop\n"
RESET = "ldi r0, 4\nadd unif_addr, r0, unif ; nop\nmov r1, unif ; nop\n"
SWITCH = "nop ; nop ; thrsw\nnop\nnop\n"
BUFFERS, PAGE = 0x10000000, 4096


class Maker:
    """Jobs made by hand: shaders and one buffer for everything else."""

    def __init__(self) -> None:
        self.memory = GuestMemory()
        self.pair = Pair(self.memory, KnownShaders(self.memory), 1 << 20)
        run = RecordedRun(DATA / "vc4-jobs" / "tri_arm64")
        assert run.jobs[0].submit is not None
        self.model = run.jobs[0].submit
        self.buffers = [replace(self.model.buffers[0], address=BUFFERS, size=SIZE, shader=False)]

    def shader(self, text: str) -> int:
        """The index of a buffer with that program."""
        address = BUFFERS + SIZE + PAGE * len(self.buffers)
        code = b"".join(word.to_bytes(8, "little") for word in assemble(text + NOTHING).words)
        self.memory.write(address, code)
        self.buffers.append(replace(self.buffers[0], address=address, size=PAGE, shader=True))
        return len(self.buffers) - 1

    def job(
        self, shaders: list[int], uniforms: list[int], count: int = 1, extended: bool = False,
        stride: int = 16, highest: int = 9, **fields: Any,
    ) -> Submit:  # fmt: skip
        """A job of one draw with `count` arrays."""
        single = self.single
        record = GlShader(
            GlShaderRecord.make(fs_single_threaded=single),
            tuple(Attribute(16 * n, 12, stride, n, n) for n in range(count)),
            extended,
        )
        indices = [*shaders, *[0] * count]
        records = b"".join(index.to_bytes(4, "little") for index in indices) + record.to_bytes()
        body = build(d.TileBinningMode, tiles_x=1, tiles_y=1) + build(d.StartTileBinning)
        body += build(d.GlShaderState, attributes=count & 7, extended=extended)
        body += build(d.GemHandles)
        body += build(d.IndexedPrimitives, index_type=1, length=6, address=32, maximum_index=3)
        body += build(d.VertexArrayPrimitives, length=highest + 1)
        body += build(d.IncrementSemaphore) + build(d.Flush)
        base: dict[str, Any] = {
            "bin_cl": body, "shader_rec": records, "buffers": tuple(self.buffers),
            "uniforms": b"".join(word.to_bytes(4, "little") for word in uniforms),
            "shader_rec_count": 1, "width": 64, "height": 64, "min_x_tile": 0, "min_y_tile": 0,
            "max_x_tile": 0, "max_y_tile": 0, "surfaces": {"color_write": Surface(0, 0, 4, 0)},
        }  # fmt: skip
        return replace(self.model, **(base | fields))

    single = 1


@pytest.fixture
def maker() -> Maker:
    return Maker()


def accepted(pair: Pair, submit: Submit) -> None:
    """Both ways build it, the second time by compiled code alone."""
    assert pair.compare(submit)
    assert pair.is_native(submit)


@pytest.mark.parametrize("extended", [False, True])
@pytest.mark.parametrize("count", [1, 7, 8])
def test_attributes(maker: Maker, count: int, extended: bool) -> None:
    shader = maker.shader("")
    stride = 0x1234 if extended else 255
    job = maker.job([shader] * 3, [], count, extended, stride)
    accepted(maker.pair, job)
    room = (SIZE - 16 * (count - 1) - 12) // stride
    highest = min(room, 0xFFFF)
    accepted(maker.pair, maker.job([shader] * 3, [], count, extended, stride, highest))
    if highest < 0xFFFF:
        assert not maker.pair.compare(
            maker.job([shader] * 3, [], count, extended, stride, highest + 1)
        )
    else:
        over = maker.job([shader] * 3, [], count, extended, 1, 0x10000)
        assert maker.pair.compare(over), "reported (CLE-015), not refused"
        assert not maker.pair.is_native(over)


def test_lookups_and_resets(maker: Maker) -> None:
    plain, fragment = maker.shader(""), maker.shader(LOOKUP + RESET.replace("4", "12", 1))
    for clamp, good in ((SIZE - 4, True), (SIZE - 3, False)):
        job = maker.job([fragment, plain, plain], [0, clamp, 0, 7, 8])
        assert maker.pair.compare(job) == good
    accepted(maker.pair, maker.job([fragment, plain, plain], [0, SIZE - 20, 16, 7, 8]))


@pytest.mark.parametrize("single", [0, 1])
def test_threads(maker: Maker, single: int) -> None:
    maker.single = single
    plain, switching = maker.shader(""), maker.shader(SWITCH)
    assert maker.pair.compare(maker.job([plain, plain, plain], [])) == bool(single)
    assert maker.pair.compare(maker.job([switching, plain, plain], [])) == (not single)
    assert not maker.pair.compare(maker.job([plain, switching, plain], []))


def test_cube_maps(maker: Maker) -> None:
    plain, fragment = maker.shader(""), maker.shader(CUBE)
    stride = 64 * 64 * 4
    config = TextureConfig(width=64, height=64, cube=True, cube_stride=stride)
    accepted(maker.pair, maker.job([fragment, plain, plain], [0, *config.parameters()]))
    p0, p1, p2, p3 = config.parameters()
    assert not maker.pair.compare(maker.job([fragment, plain, plain], [0, p0, p1, p2, p2]))
    assert not maker.pair.compare(maker.job([fragment, plain, plain], [0, p0, p1, p3, p3]))


@pytest.mark.parametrize("flags", range(16))
def test_order_of_tiles(maker: Maker, flags: int) -> None:
    surfaces = {
        "color_read": Surface(0, 0, 0, 1), "zs_read": Surface(0, 1 << 18, 1, 0),
        "zs_write": Surface(0, 1 << 18, 1, 0), "color_write": Surface(0, 0, 4, 0),
        "msaa_color_write": Surface(0, 1 << 19, 0, 0), "msaa_zs_write": Surface(0, 1 << 18, 0, 0),
    }  # fmt: skip
    for names in (SURFACES, SURFACES[1:4], SURFACES[4:]):
        chosen = {name: surfaces[name] for name in names}
        for columns, rows in ((0, 0), (1, 0), (0, 1), (2, 2)):
            fields = {"max_x_tile": columns, "max_y_tile": rows, "width": 96, "height": 96}
            job = maker.job([], [], bin_cl=b"", surfaces=chosen, flags=flags, **fields)
            job = replace(job, clear_color=(1, 0xFFFFFFFF), clear_z=0x12345678, clear_s=255)
            accepted(maker.pair, job)


def test_bits_of_an_absent_surface(maker: Maker) -> None:
    """color_write without a buffer still says how many samples the frame has."""
    samples = {"msaa_color_write": Surface(0, 0, 0, 0)}
    for bits in (0, 0x11, 0):
        surfaces = {"color_write": Surface(NO_BUFFER, 0, bits, 0), **samples}
        job = maker.job([], [], bin_cl=b"", surfaces=surfaces, width=64, height=64)
        accepted(maker.pair, job)
        built = maker.pair.build(job, native=True)[0]
        assert built is not None
        read = maker.pair.memory.read
        records = parse_list(read, built.render_start, built.render_end)
        (mode,) = (record.payload for record in records if record.id == 113)
        assert isinstance(mode, d.TileRenderingMode)
        assert mode.multisample == bits & 1
    for name, wrong in (
        ("color_write", Surface(NO_BUFFER, 0, 2, 0)), ("color_write", Surface(NO_BUFFER, 0, 0, 1)),
        ("msaa_zs_write", Surface(NO_BUFFER, 0, 1, 0)), ("zs_read", Surface(NO_BUFFER, 0, 0, 2)),
    ):  # fmt: skip
        job = maker.job([], [], bin_cl=b"", surfaces={name: wrong, **samples})
        assert not maker.pair.compare(job)
        assert maker.pair.build(job, native=False)[0] is None


def test_a_shader_that_changes_is_checked_again(maker: Maker) -> None:
    shader = maker.shader("mov r0, r1 ; nop\n")
    job = maker.job([shader] * 3, [])
    accepted(maker.pair, job)
    bad = assemble("mov irq, 1 ; nop").words[0]
    maker.memory.set_u64(maker.buffers[shader].address, bad)
    assert not maker.pair.is_native(job)
    assert not maker.pair.compare(job)


def test_a_shader_is_checked_once(maker: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    import vc4lab.drm.kernel.shaders as module

    checks: list[int] = []
    check: Callable[..., Any] = module.check_shader

    def counted(words: list[int]) -> Any:
        checks.append(len(words))
        return check(words)

    monkeypatch.setattr(module, "check_shader", counted)
    job = maker.job([maker.shader("")] * 3, [])
    for native in (False, True, False):
        maker.pair.build(job, native)
    assert len(checks) == 1


def texture_words(choose: random.Random) -> Iterator[tuple[list[int], int]]:
    """Parameters and sizes of buffers at the edge of what is accepted."""
    for _ in range(4000):
        parameters = [choose.getrandbits(32) for _ in range(4)]
        if choose.random() < 0.8:  # plausible ones
            kind = choose.randrange(20)
            parameters[0] = choose.randrange(1 << 24) & ~0xFFF | (kind & 15) << 4
            parameters[0] |= choose.randrange(4) | choose.choice((0, 0, 1 << 9))
            parameters[1] &= ~(0x7FF << 8 | 0x7FF << 20 | 1 << 31)
            for shift in (8, 20):
                size = choose.choice((0, 1, 3, 4, 5, 31, 32, 33, 64, 65, choose.randrange(2048)))
                parameters[1] |= size << shift
            parameters[1] |= kind >> 4 << 31
        yield parameters[: choose.randrange(1, 5)], choose.randrange(1, 1 << 28)


def test_textures() -> None:
    native = compile_kernels("texture_check", {"bad": is_bad_texture}, float_mode="caller")["bad"]
    verdicts = []
    for parameters, size in texture_words(random.Random(7)):
        words = [*parameters, 0, 0, 0][:4]
        found = texture_problem(parameters, size)
        assert bool(native(*words, size)) == (found is not None), (parameters, size, found)
        if found is not None and found.startswith("level 0 ends at byte"):
            size = int(found.split()[5])  # where it just fits
            assert bool(native(*words, size)) == (texture_problem(parameters, size) is not None)
            assert native(*words, size - 1)
        verdicts.append(found is None)
    assert 100 < sum(verdicts) < len(verdicts) - 100
    assert len(TextureType) == 18


def test_an_end_that_is_missing_is_named_with_the_last_record(maker: Maker) -> None:
    job = maker.job([maker.shader("")] * 3, [])
    body = job.bin_cl[:-2] + build(d.LineWidth)
    _, _, found = maker.pair.build(replace(job, bin_cl=body), native=True)
    assert f"byte {len(body) - len(build(d.LineWidth))}: the list does not end" in found[0]


def test_a_shader_that_becomes_known_is_found_in_buffers_that_were_seen_before() -> None:
    known = KnownShaders()
    buffers = (Buffer(1, 0x1000, 4096),)
    assert known.table(buffers)[0] == [None]
    stream: Any = SimpleNamespace(table_address=0x7000, size=8)
    known.add(0x1000, stream)
    streams, rows = known.table(buffers)
    assert streams == [known.find(0x1000, 4096)] == [stream]
    assert rows == struct.pack("<IIQ", 0x1000, 4096, 0x7000)

"""What the kernel makes of a job: its bytes, and each reason to refuse it."""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from vc4lab.diagnostics import Reporter
from vc4lab.drm.kernel.built_job import BuiltJob, Workspace
from vc4lab.drm.kernel.jobs import build_submit
from vc4lab.drm.kernel.shaders import KnownShaders
from vc4lab.drm.recorded.jobs import RecordedJob, RecordedRun
from vc4lab.drm.uapi.submit import NO_BUFFER, Buffer, JobError, Submit, Surface
from vc4lab.memory import MEMORY_SIZE, GuestMemory
from vc4lab.qpu.text.assembler import assemble
from vc4lab.records import declarations as d
from vc4lab.records.control import build, parse_list
from vc4lab.records.shader import Attribute, GlShader, GlShaderRecord
from vc4lab.records.states import (
    GlShaderState,
    LineWidth,
    NvShaderState,
)
from vc4lab.records.texture import TextureConfig

DATA = Path(__file__).parents[2] / "data"
RUNS = [
    path
    for folder in ("vc4-jobs", "vc4-conformance")
    for path in sorted((DATA / folder).iterdir())
    if any(path.glob("job*"))
]
SIZE = 1 << 20


class Builder:
    """A job's buffers in memory."""

    def __init__(self, memory: GuestMemory, known: KnownShaders, place: int) -> None:
        self.memory = memory
        self.known = known
        self.workspace = Workspace.at(place)

    @classmethod
    def of(cls, job: RecordedJob) -> Builder:
        run = job.run
        assert job.submit is not None
        assert run.workspace is not None
        run.contents.load(job.submit.buffers, run.memory)
        return cls(run.memory, run.known, run.workspace)

    def build(self, submit: Submit) -> tuple[BuiltJob | None, bytes, list[str]]:
        """What is built, its bytes with zeros around, and what was reported."""
        lists = self.workspace.lists
        self.memory.fill(lists, SIZE)
        reporter = Reporter()
        built: BuiltJob | None = None
        try:
            built = build_submit(submit, self.memory, self.workspace, reporter, self.known)
        except JobError:
            return None, b"", [str(item) for item in reporter.items]
        assert built.render_end - lists < SIZE
        return built, self.memory.read(lists, SIZE), [str(item) for item in reporter.items]

    def accepts(self, submit: Submit) -> bool:
        return self.build(submit)[0] is not None


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.name)
def test_recorded_jobs(path: Path) -> None:
    for job in RecordedRun(path).jobs:
        assert job.submit is not None
        built, data, found = Builder.of(job).build(job.submit)
        assert built is not None
        assert not found
        again = Builder.of(job).build(job.submit)
        assert again == (built, data, found), "its shaders are known now"


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


def damaged(path: Path, rounds: int, seed: int) -> tuple[int, int]:
    """How many damaged jobs are still accepted; a checksum of bytes, and codes of messages."""
    choose = random.Random(f"{path.name} {seed}")
    jobs = RecordedRun(path).jobs
    accepted = checksum = 0
    for _ in range(rounds):
        job = choose.choice(jobs)
        assert job.submit is not None
        built, data, found = Builder.of(job).build(damage(job.submit, choose))
        accepted += built is not None
        assert (built is None) <= bool(found)
        codes = " ".join(text.split()[0] for text in found)
        checksum = zlib.crc32(data.rstrip(b"\0") + codes.encode(), checksum)
    return accepted, checksum


DAMAGED = {
    "glmark2_ideas": (63, 0xCEF46559),
    "glmark2_texture_texture-filter_mipmap": (78, 0xFCF106D5),
    "kmscube_smooth": (75, 0xD6513224),
    "sdl_testdraw2": (90, 0xC106FAF4),
    "cube_mip": (77, 0xD8AC8283),
    "alpha_to_coverage_4x": (67, 0xBA49D7E6),
    "budget_4095_loop": (59, 0xB1ADA02A),
    "point_limit": (75, 0xAD30FF51),
}
"""What an independent builder made of them, one written record by record in Python."""


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_jobs(name: str) -> None:
    path = next(path for path in RUNS if path.name == name)
    assert damaged(path, 200, 1) == DAMAGED[name]


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
        self.builder = Builder(self.memory, KnownShaders(self.memory), 1 << 20)
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
        body += build(GlShaderState, attributes=count & 7, extended=extended)
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


@pytest.mark.parametrize("extended", [False, True])
@pytest.mark.parametrize("count", [1, 7, 8])
def test_attributes(maker: Maker, count: int, extended: bool) -> None:
    shader = maker.shader("")
    stride = 0x1234 if extended else 255
    job = maker.job([shader] * 3, [], count, extended, stride)
    assert maker.builder.accepts(job)
    room = (SIZE - 16 * (count - 1) - 12) // stride
    highest = min(room, 0xFFFF)
    assert maker.builder.accepts(maker.job([shader] * 3, [], count, extended, stride, highest))
    if highest < 0xFFFF:
        assert not maker.builder.accepts(
            maker.job([shader] * 3, [], count, extended, stride, highest + 1)
        )
    else:
        over = maker.job([shader] * 3, [], count, extended, 1, 0x10000)
        assert maker.builder.accepts(over), "reported (CLE-015), not refused"


def test_lookups_and_resets(maker: Maker) -> None:
    plain, fragment = maker.shader(""), maker.shader(LOOKUP + RESET.replace("4", "12", 1))
    for clamp, good in ((SIZE - 4, True), (SIZE - 3, False)):
        job = maker.job([fragment, plain, plain], [0, clamp, 0, 7, 8])
        assert maker.builder.accepts(job) == good
    assert maker.builder.accepts(maker.job([fragment, plain, plain], [0, SIZE - 20, 16, 7, 8]))


@pytest.mark.parametrize("single", [0, 1])
def test_threads(maker: Maker, single: int) -> None:
    maker.single = single
    plain, switching = maker.shader(""), maker.shader(SWITCH)
    assert maker.builder.accepts(maker.job([plain, plain, plain], [])) == bool(single)
    assert maker.builder.accepts(maker.job([switching, plain, plain], [])) == (not single)
    assert not maker.builder.accepts(maker.job([plain, switching, plain], []))


def test_cube_maps(maker: Maker) -> None:
    plain, fragment = maker.shader(""), maker.shader(CUBE)
    stride = 64 * 64 * 4
    config = TextureConfig(width=64, height=64, cube=True, cube_stride=stride)
    assert maker.builder.accepts(maker.job([fragment, plain, plain], [0, *config.parameters()]))
    p0, p1, p2, p3 = config.parameters()
    assert not maker.builder.accepts(maker.job([fragment, plain, plain], [0, p0, p1, p2, p2]))
    assert not maker.builder.accepts(maker.job([fragment, plain, plain], [0, p0, p1, p3, p3]))


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
            assert maker.builder.accepts(job)


def test_bits_of_an_absent_surface(maker: Maker) -> None:
    """color_write without a buffer still says how many samples the frame has."""
    samples = {"msaa_color_write": Surface(0, 0, 0, 0)}
    for bits in (0, 0x11, 0):
        surfaces = {"color_write": Surface(NO_BUFFER, 0, bits, 0), **samples}
        job = maker.job([], [], bin_cl=b"", surfaces=surfaces, width=64, height=64)
        assert maker.builder.accepts(job)
        built = maker.builder.build(job)[0]
        assert built is not None
        read = maker.builder.memory.read
        records = parse_list(read, built.render_start, built.render_end)
        (mode,) = (record.payload for record in records if record.id == 113)
        assert isinstance(mode, d.TileRenderingMode)
        assert mode.multisample == bits & 1
    for name, wrong in (
        ("color_write", Surface(NO_BUFFER, 0, 2, 0)), ("color_write", Surface(NO_BUFFER, 0, 0, 1)),
        ("msaa_zs_write", Surface(NO_BUFFER, 0, 1, 0)), ("zs_read", Surface(NO_BUFFER, 0, 0, 2)),
    ):  # fmt: skip
        job = maker.job([], [], bin_cl=b"", surfaces={name: wrong, **samples})
        assert not maker.builder.accepts(job)


def test_a_shader_that_changes_is_checked_again(maker: Maker) -> None:
    shader = maker.shader("mov r0, r1 ; nop\n")
    job = maker.job([shader] * 3, [])
    assert maker.builder.accepts(job)
    bad = assemble("mov irq, 1 ; nop").words[0]
    maker.memory.set_u64(maker.buffers[shader].address, bad)
    assert not maker.builder.accepts(job)


def test_a_shader_is_checked_once(maker: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    import vc4lab.drm.kernel.findings as module

    checks: list[int] = []
    check: Callable[..., Any] = module.check_shader

    def counted(words: list[int]) -> Any:
        checks.append(len(words))
        return check(words)

    monkeypatch.setattr(module, "check_shader", counted)
    job = maker.job([maker.shader("")] * 3, [])
    for _ in range(3):
        maker.builder.build(job)
    assert len(checks) == 1


def test_an_end_that_is_missing_is_named_with_the_last_record(maker: Maker) -> None:
    job = maker.job([maker.shader("")] * 3, [])
    body = job.bin_cl[:-2] + build(LineWidth)
    _, _, found = maker.builder.build(replace(job, bin_cl=body))
    assert f"byte {len(body) - len(build(LineWidth))}: the list does not end" in found[0]


def test_a_shader_that_becomes_known_is_found_in_buffers_that_were_seen_before() -> None:
    known = KnownShaders()
    buffers = (Buffer(1, 0x1000, 4096),)
    assert known.table(buffers)[0] == [None]
    stream: Any = SimpleNamespace(table_address=0x7000, size=8)
    known.add(0x1000, stream)
    streams, rows = known.table(buffers)
    assert streams == [known.find(0x1000, 4096)] == [stream]
    assert rows == struct.pack("<IIQ", 0x1000, 4096, 0x7000)


# -- reasons ---------------------------------------------------------------------------------------

MODE, START = build(d.TileBinningMode, tiles_x=1, tiles_y=1), build(d.StartTileBinning)
STATE, END = build(GlShaderState, attributes=1), build(d.IncrementSemaphore) + build(d.Flush)
INDEXED = build(d.GemHandles) + build(d.IndexedPrimitives, index_type=1, length=6, maximum_index=3)
ARRAY = build(d.VertexArrayPrimitives, length=10)


@pytest.mark.parametrize(
    ("body", "code", "text"),
    [
        (MODE + START + b"\x7F" + END, "DRM-006", "byte 17: reserved id 0x7f"),
        (MODE + START + build(NvShaderState) + END, "DRM-006", "(65) is not accepted"),
        (MODE + START + build(d.ClearColours) + END, "DRM-006", "(114) is not accepted"),
        (MODE + START + build(LineWidth)[:-1], "DRM-006", "byte 17: Line width: cut off"),
        (MODE + END, "DRM-007", "byte 17: the list never starts"),
        (MODE + START + build(d.Halt) + END, "DRM-007", "byte 17: the list does not end"),
        (MODE + build(d.Halt) + START + END, "DRM-007", "byte 16: the list never starts"),
        (MODE + START + build(d.IncrementSemaphore), "DRM-007", "(7) is not at the list's end"),
        (MODE + START + build(d.Flush), "DRM-007", "byte 17: the list does not end"),
        (MODE + START + build(d.Flush) + END, "DRM-007", "byte 17: Flush (4) is not at"),
        (MODE + MODE + START + END, "DRM-007", "byte 16: record 112 twice"),
        (build(d.TileBinningMode) + START + END, "DRM-007", "byte 0: an empty tile grid"),
        (MODE[:-1] + b"\x02" + START + END, "DRM-006", "byte 0: double buffer or 64-bit"),
        (START + MODE + END, "DRM-007", "byte 0: record 6 twice, or before"),
        (MODE + START + START + END, "DRM-007", "byte 17: record 6 twice, or before"),
        (MODE + START + STATE + STATE + END, "DRM-008", "byte 22: more shader states than the 1"),
        (MODE + START + b"\x40\x21\0\0\0" + END, "DRM-008", "contains an address (0x20)"),
        (MODE + START + ARRAY + END, "DRM-007", "byte 17: a draw before any shader state"),
        (MODE + START + INDEXED + END, "DRM-007", "byte 26: a draw before any shader state"),
        (
            MODE + START + STATE + build(d.GemHandles, index0=9) + INDEXED[9:] + END,
            "DRM-005", "byte 31: index buffer: buffer index 9 of a list of 2 (rule 9.2)",
        ),
        (
            MODE + START + STATE + INDEXED[:9]
            + build(d.IndexedPrimitives, index_type=1, length=1, address=SIZE - 1) + END,
            "DRM-012", f"1 indices of 2 bytes at offset {SIZE - 1} of a buffer of {SIZE} bytes",
        ),
        (
            MODE + START + STATE + build(d.VertexArrayPrimitives, length=2, first=2**32 - 2) + END,
            "DRM-012", "byte 22: 2 vertices from 4294967294 on",
        ),
    ],
)  # fmt: skip
def test_binning_lists_that_are_refused(maker: Maker, body: bytes, code: str, text: str) -> None:
    job = maker.job([maker.shader("")] * 3, [], bin_cl=body)
    built, _, found = maker.builder.build(job)
    assert built is None
    (message,) = found
    assert code in message
    assert text in message


def refusal(maker: Maker, job: Submit) -> str:
    built, _, found = maker.builder.build(job)
    assert built is None
    assert "byte 17: " in found[-1], "where record 64 stands"
    return found[-1]


def test_records_that_are_refused(maker: Maker) -> None:
    plain = maker.shader("")
    job = maker.job([plain] * 3, [])
    short = replace(job, shader_rec=job.shader_rec[:-1])
    size = len(job.shader_rec)
    text = f"the stream has {size - 1} bytes left, a record with 1 attributes needs {size}"
    assert text in refusal(maker, short)
    for number, name in enumerate(("fragment", "vertex", "coordinate")):
        shaders = [plain] * 3
        shaders[number] = 7
        text = f"{name} shader: buffer index 7 of a list of 2 (rule 9.3)"
        assert text in refusal(maker, maker.job(shaders, []))
        shaders[number] = 0
        text = f"{name} shader: its buffer is not a shader buffer (rule 9.3)"
        assert text in refusal(maker, maker.job(shaders, []))
        record = bytearray(job.shader_rec)
        record[4 * 4 + (4, 16, 28)[number]] = 8
        text = f"{name} shader: code not at a buffer's start (rule 9.3)"
        assert text in refusal(maker, replace(job, shader_rec=bytes(record)))
    record = bytearray(job.shader_rec)
    record[12] = 5
    text = "attribute 0: buffer index 5 of a list of 2 (rule 9.3)"
    assert text in refusal(maker, replace(job, shader_rec=bytes(record)))
    highest = SIZE // 255 + 1
    far = maker.job([plain] * 3, [], stride=255, highest=highest)
    text = f"attribute 0: vertex {highest} x 255 + 12 bytes in a buffer of {SIZE}"
    assert text in refusal(maker, far)


def test_uniforms_that_are_refused(maker: Maker) -> None:
    plain, fragment = maker.shader(""), maker.shader(LOOKUP)
    shaders = [fragment, plain, plain]
    text = "fragment shader needs 12 bytes, the uniform stream has 8 left (rule 9.3)"
    assert text in refusal(maker, maker.job(shaders, [0, 0]))
    text = "fragment shader's texture: buffer index 9 of a list of 3 (rule 9.4)"
    assert text in refusal(maker, maker.job(shaders, [9, 0, 0]))
    text = f"request 0 of TMU0: lookups up to offset 16 + {SIZE - 19} of a buffer of {SIZE} bytes"
    assert text in refusal(maker, maker.job(shaders, [0, SIZE - 19, 16]))
    text = f"lookups at offset {SIZE} of a buffer of {SIZE} bytes (rule 9.4)"
    assert text in refusal(maker, maker.job(shaders, [0, 0, SIZE]))


def test_threads_that_are_refused(maker: Maker) -> None:
    plain, switching = maker.shader(""), maker.shader(SWITCH)
    text = "a fragment shader switches threads, its record says single threaded"
    assert text in refusal(maker, maker.job([switching, plain, plain], []))
    assert "a vertex shader switches threads" in refusal(
        maker, maker.job([plain, switching, plain], [])
    )
    maker.single = 0
    text = "a fragment shader never switches threads, its record says multi-threaded"
    assert text in refusal(maker, maker.job([plain] * 3, []))


def test_a_job_goes_on_after_each_warning(maker: Maker) -> None:
    """Vertex numbers of more than 16 bits, in every draw, and a shader that is not known yet."""
    shader = maker.shader("")
    draws = build(d.VertexArrayPrimitives, length=0x10001) * 3
    body = MODE + START + (STATE + draws) * 2 + END
    job = maker.job([shader] * 3, [], stride=0, bin_cl=body, shader_rec_count=2)
    job = replace(job, shader_rec=job.shader_rec * 2)
    built, data, found = maker.builder.build(job)
    assert built is not None
    places = [22, 32, 42, 57, 67, 77]
    assert len(found) == 6
    for message, place in zip(found, places, strict=True):
        assert "CLE-015" in message
        assert f"byte {place}: vertex number 65536 does not fit in 16 bits" in message
    assert maker.builder.build(job)[:2] == (built, data)


@pytest.mark.parametrize("highest", [0x7FFFFFFF, 0xFFFFFFFE])
def test_the_largest_vertex_numbers(maker: Maker, highest: int) -> None:
    shader = maker.shader("")
    for stride in (1, 0xFFFFFFFF):
        job = maker.job([shader] * 3, [], 1, True, stride, highest)
        assert f"vertex {highest} x {stride} + 12 bytes" in refusal(maker, job)
    assert maker.builder.accepts(maker.job([shader] * 3, [], 1, True, 0, highest))


def test_a_refused_job_writes_only_where_its_streams_have_room(maker: Maker) -> None:
    """Shader states for which there are no records; the uniforms of the first one are written."""
    shader = maker.shader("mov r0, unif ; nop\n" * 16)
    job = maker.job([shader] * 3, [0x55555555] * 48)
    states = 50_000
    job = replace(job, bin_cl=MODE + START + STATE * states + END, shader_rec_count=states)
    room = 2 * len(job.bin_cl) + len(job.shader_rec) + len(job.uniforms) + 4 * PAGE
    lists, after = maker.builder.workspace.lists, 8 << 20
    maker.memory.fill(lists, after)
    assert "the stream has 0 bytes left" in maker.builder.build(job)[2][0]
    assert not any(maker.memory.read(lists + room, after - room))


def test_lists_that_have_no_room(maker: Maker) -> None:
    maker.builder.workspace = replace(maker.builder.workspace, lists=MEMORY_SIZE - 4 * PAGE)
    with pytest.raises(JobError, match="DRM-004"):
        build_submit(
            maker.job([maker.shader("")] * 3, []), maker.memory, maker.builder.workspace, Reporter()
        )

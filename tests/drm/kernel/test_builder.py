"""What the kernel makes of a job: recorded ones, damaged ones, and what recorded ones lack."""

import random
import struct
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.job_maker import CUBE, LOOKUP, RESET, RUNS, SIZE, SWITCH, Builder, Maker

from vc4lab.drm.kernel.shaders import KnownShaders
from vc4lab.drm.recorded.jobs import RecordedRun
from vc4lab.drm.uapi.submit import NO_BUFFER, Buffer, Submit, Surface
from vc4lab.qpu.text.assembler import assemble
from vc4lab.records import declarations as d
from vc4lab.records.control import build, parse_list
from vc4lab.records.states import LineWidth
from vc4lab.records.texture import TextureConfig


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.name)
def test_recorded_jobs(path: Path) -> None:
    for job in RecordedRun(path).jobs:
        assert job.submit is not None
        built, data, found = Builder.of(job).build(job.submit)
        assert built is not None
        assert not found
        again = Builder.of(job).build(job.submit)
        assert again == (built, data, found), "its shaders are known now"


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
        assert not maker.builder.accepts(maker.job([shader] * 3, [], count, extended, stride, highest + 1))
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
    import vc4lab.drm.kernel.shaders as module

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

"""Binning lists whose vertices native code or the interpreter shades: the same tile lists,
registers and messages."""

import random
import struct
from typing import Any

import pytest
from tests.support.binning_scene import LIST_BYTES, STRIDE, VERTICES, Scene, all_modes, both, copies
from tests.support.frames import RED, solid
from tests.support.jobs import nv_vertex

from vc4lab.qpu.text.assembler import assemble
from vc4lab.records.control import build


def test_every_kind_of_draw() -> None:
    def run(scene: Scene) -> None:
        body = scene.shader(scene.copy) + all_modes(scene)
        scene.bin(body)
        scene.first = scene.asked  # type: ignore[attr-defined]
        scene.bin(body)

    fast = both(run)
    assert fast.frame.v3d.binning.binner.totals["entries"] > 500
    assert fast.asked < 12, "modes and kinds of indices, once each"
    assert fast.asked == fast.first, "what is known is drawn natively"  # type: ignore[attr-defined]


def test_ready_vertices() -> None:
    def run(scene: Scene) -> None:
        rng = random.Random(5)
        job = scene.frame.job
        data = [nv_vertex(rng.randrange(-64, 64), rng.randrange(-64, 64), 0.5, 1.0) for _ in range(300)]
        plain = scene.frame.nv_shader(solid(RED), b"".join(data))
        clip = struct.pack("<BBBBIII", 0xD, STRIDE, 0, 0, scene.fragment, 0, scene.vertices)
        body = plain + all_modes(scene) + build(65, address=job.put(clip)) + all_modes(scene)
        scene.bin(body)
        scene.bin(body)

    assert both(run).asked < 12


def test_ready_vertices_without_a_clip_header_are_not_clipped() -> None:
    scene = Scene()
    vertices = b"".join(nv_vertex(x, y, 0.5, 1.0) for x, y in ((5, 5), (5, 60), (60, 5)))
    for clipping in (0, 4):
        place = scene.frame.job.put(vertices)
        record = struct.pack("<BBBBIII", 1 | clipping, 12, 0, 0, scene.fragment, 0, place)
        shader = build(65, address=scene.frame.job.put(record))
        scene.bin(shader + build(33, mode=4, length=3))
    totals = scene.frame.v3d.binning.binner.totals
    assert (totals["entries"], totals["rejected"], totals["clipped"]) == (2, 0, 0)


@pytest.mark.parametrize("header", [False, True])
@pytest.mark.parametrize(("size", "tiles"), [(1.0, 1), (100.0, 4)])
def test_sizes_of_points_come_from_their_vertices(size: float, tiles: int, header: bool) -> None:
    """Ready vertices, and those of a coordinate shader."""
    scene = Scene()
    job = scene.frame.job
    clip = struct.pack("<4f", -0.5, -0.5, 0.5, 1.0) if header else b""
    words = clip + nv_vertex(32, 32, 0.5, 1.0) + struct.pack("<f", size)
    place, flags = job.put(words), 3 | 12 * header
    record = struct.pack("<BBBBIII", flags, len(words), 0, 0, scene.fragment, 0, place)
    point = build(33, mode=0, length=1)
    scene.bin(build(65, address=job.put(record)) + point)
    binner = scene.frame.v3d.binning.binner
    assert binner.totals["entries"] == tiles
    if header:
        shader = struct.pack("<HBBII", 7, 0, 0, scene.fragment, 0)
        shader += struct.pack("<HBBII", 0, 1, 12, scene.vertex, 0)
        shader += struct.pack("<HBBII", 0, 1, len(words), job.program(copies(8)), 0)
        shader += struct.pack("<IBBBB", place, len(words) - 1, len(words), 0, 0)
        scene.bin(build(64, address=job.put(shader), attributes=1) + point)
        assert binner.totals["entries"] == 2 * tiles


def test_a_new_record_needs_no_python() -> None:
    """Addresses, strides and uniforms may differ; only another program or layout is unknown."""

    def run(scene: Scene) -> None:
        draw = scene.indexed(4, 99)
        body = b""
        for number in range(5):
            body += scene.shader(scene.copy, base=scene.vertices + STRIDE * number) + draw
            body += scene.shader(scene.copy, stride=2 * STRIDE) + draw
        other = scene.frame.job.program(copies(7))
        scene.bin(body + scene.shader(other) + draw + scene.shader(scene.copy) + draw)

    assert both(run).asked == 2


def test_changed_code() -> None:
    """The same address, another program: with the same key, and back again."""
    nothing, shifted = (assemble(copies(7, extra)).bytes for extra in ("nop ; nop\n", "mov r0, vpm ; nop\n"))
    counts = []

    def run(scene: Scene) -> None:
        memory = scene.frame.job.memory
        code = scene.frame.job.put(nothing, 8)
        body = scene.shader(code) + scene.indexed(4, 99)
        for program in (nothing, shifted, shifted, nothing):
            memory.write(code, program)
            scene.bin(body)
            counts.append(scene.frame.v3d.binning.binner.counters)

    fast = both(run)
    assert fast.asked == 3, "each change is noticed, nothing else"
    assert counts[0] == counts[3] != counts[1] == counts[2]


def test_special_floats() -> None:
    def run(scene: Scene) -> None:
        for number, word in enumerate((0x7F800000, 0xFFC00001, 0x7F7FFFFF, 1)):
            scene.frame.job.memory.set_u32(scene.vertices + STRIDE * (7 * number + 1), word)
        multiply = copies(7, "").replace("mov vpm, vpm ; nop\n", "fmul r0, vpm, 2.0\nmov vpm, r0 ; nop\n", 2)
        code = scene.frame.job.program(multiply)
        for _ in range(3):
            scene.bin(scene.shader(code) + scene.indexed(4, 300))

    assert both(run).asked <= 2, "the first draw, and one that needs the exact build"


def test_memory_is_named_once_if_python_is_asked_twice() -> None:
    """Its address needs a message, and then its numbers need the exact build."""
    heard: dict[str, list[Any]] = {}

    def run(scene: Scene) -> None:
        uses = heard[scene.engine] = []
        scene.frame.v3d.lint.addresses.used.subscribe(uses.append)
        doubled = copies(7, "nop ; nop\n").replace(
            "mov vpm, vpm ; nop\n", "fmul r0, vpm, 2.0\nmov vpm, r0 ; nop\n", 2
        )
        code = scene.frame.job.program(doubled)
        scene.bin(scene.shader(code) + scene.indexed(4, 30))
        scene.frame.job.memory.write(0x3E000000, struct.pack("<f", 3e38) * 7 * VERTICES)
        scene.bin(scene.shader(code, base=0x7E000000) + scene.indexed(4, 30))

    fast = both(run)
    assert fast.asked == 2
    assert fast.frame.reporter.counts["MEM-001"] == 1
    assert heard["jit"] == heard["interpreter"]


def test_extended_records_and_layouts() -> None:
    """Strides of 26 bits, several arrays, selections that are not all of them."""

    def run(scene: Scene) -> None:
        rng = random.Random(3)
        body = b""
        for number in range(12):
            count = 1 + number % 8
            data = struct.pack("<HBBII", 5, 0, 0, scene.fragment, 0)
            data += struct.pack("<HBBII", 0, 1, 12, scene.vertex, 0)
            chosen = rng.randrange(1, 1 << count)
            data += struct.pack("<HBBII", 0, chosen, STRIDE, scene.copy, 0)
            for _ in range(8):
                place, size = 4 * rng.randrange(7), 4 * rng.randrange(1, 8) - 1
                data += struct.pack("<IBBBB", scene.vertices, size, rng.randrange(256), 0, place)
            data += struct.pack("<8I", *(rng.randrange(1 << 12) & ~0xFF for _ in range(8)))
            extended = number % 2
            state = build(64, address=scene.frame.job.put(data), attributes=count & 7, extended=extended)
            body += state + scene.indexed(4, 60)
        for _ in range(2):
            scene.bin(body)

    assert both(run).asked <= 12


@pytest.mark.parametrize("seed", range(12))
def test_random_lists(seed: int) -> None:
    def run(scene: Scene) -> None:
        rng = random.Random(seed)
        other = scene.frame.job.program(copies(7))
        shaders = [scene.shader(scene.copy), scene.shader(other, flags=1), scene.shader(scene.copy, stride=4)]
        for _ in range(3):
            body = shaders[0]
            for _ in range(60):
                first, width = rng.randrange(160), rng.randrange(140)
                data = rng.choice((
                    rng.choice(shaders),
                    scene.indexed(rng.randrange(8), rng.randrange(50), index_type=rng.randrange(2)),
                    build(33, mode=rng.randrange(8), length=rng.randrange(40), first=first),
                    build(99, line_width=rng.uniform(0, 9)),
                    build(98, point_size=rng.uniform(0, 9)),
                    build(102, left=rng.randrange(40), bottom=0, width=width, height=90),
                    build(103, x=rng.randrange(2000), y=rng.randrange(2000)), build(1), build(2),
                ))  # fmt: skip
                if rng.random() < 0.02:
                    data = bytes([rng.randrange(128)]) + data
                body += data
            scene.bin(body, memory=rng.choice((1024, LIST_BYTES)))

    both(run, seed=seed)

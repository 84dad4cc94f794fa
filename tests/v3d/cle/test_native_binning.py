"""Binning lists whose vertices native code or the interpreter shades: the same tile lists,
registers and messages."""

from __future__ import annotations

import ctypes
import random
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.support.frames import RED, Frame, solid
from tests.support.jobs import BFC, CT0CA, CT0EA, nv_vertex, viewport

from vc4lab.memory import MEMORY_SIZE
from vc4lab.qpu.text.assembler import assemble
from vc4lab.records.control import build
from vc4lab.v3d.registers import BY_NAME
from vc4lab.v3d.state.draw_input import MAX_LENGTH
from vc4lab.v3d.tile_lists.scan_context import MAX_VERTICES
from vc4lab.v3d.unknowns import DEFAULT_UNKNOWNS

VERTICES = 200
STRIDE = 28
LIST_BYTES = 1 << 16


def copies(words: int, extra: str = "") -> str:
    """A vertex program that copies its attributes."""
    text = f"ldi vr_setup, 0x{words << 20 | 0x1A00:x}\nldi vw_setup, 0x1a00\n"
    return (
        text
        + "nop ; nop\n" * 3
        + extra
        + "mov vpm, vpm ; nop\n" * words
        + "nop ; nop ; thrend\nnop\nnop"
    )


def vertex(rng: random.Random) -> bytes:
    """Clip coordinates, screen position in 1/16 pixels, Zs, 1/Wc; some need clipping."""
    x, y = rng.uniform(-1.4, 1.4), rng.uniform(-1.4, 1.4)
    z, w = rng.uniform(-1.2, 1.2), rng.choice((1.0, 1.0, 0.5, 2.0))
    screen = (int(x / w * 64 * 16), int(y / w * 64 * 16))
    return struct.pack("<4fhhff", x, y, z, w, *screen, 0.5, 1 / w)


@dataclass
class Scene:
    """A frame with vertices, indices and shaders; `asked` counts draws that Python had to shade."""

    engine: str = "jit"
    seed: int = 1
    choices: dict[str, str] = field(default_factory=dict)
    asked: int = 0

    def __post_init__(self) -> None:
        rng = random.Random(self.seed)
        self.frame = Frame(engine=self.engine, unknowns=DEFAULT_UNKNOWNS.with_(**self.choices))
        job = self.frame.job
        self.vertices = job.put(b"".join(vertex(rng) for _ in range(VERTICES)))
        data = [rng.randrange(VERTICES) for _ in range(400)]
        self.shorts = job.put(struct.pack("<400H", *data))
        self.bytes = job.put(bytes(data))
        self.fragment = job.program(solid(RED))
        self.copy = job.program(copies(7))
        self.vertex = job.program(copies(3))
        stage: Any = self.frame.v3d.binning.coordinates
        shade = stage.shade

        def counted(*arguments: Any) -> None:
            self.asked += 1
            shade(*arguments)

        stage.shade = counted

    def record(self, coordinate: int, stride: int = STRIDE, flags: int = 5, base: int = 0) -> bytes:
        """A GL shader record."""
        data = struct.pack("<HBBII", flags, 0, 0, self.fragment, 0)
        data += struct.pack("<HBBII", 0, 1, 12, self.vertex, 0)
        data += struct.pack("<HBBII", 0, 1, STRIDE, coordinate, 0)
        return data + struct.pack("<IBBBB", base or self.vertices, STRIDE - 1, stride, 0, 0)

    def shader(self, coordinate: int, **options: int) -> bytes:
        """A record 64 with a GL shader record."""
        return build(
            64, address=self.frame.job.put(self.record(coordinate, **options)), attributes=1
        )

    def indexed(self, mode: int, length: int, **fields: int) -> bytes:
        """A record 32."""
        kind = fields.get("index_type", 1)
        values = {"index_type": kind, "address": self.shorts if kind else self.bytes}
        return build(32, mode=mode, length=length, **(values | {"maximum_index": 0xFFFF} | fields))

    def bin(self, body: bytes, memory: int = LIST_BYTES, start: int | None = None) -> None:
        """Runs a binning list, supplying memory as long as the binner asks for it."""
        job, v3d = self.frame.job, self.frame.v3d
        columns, rows = job.tiles
        self.lists = job.room(LIST_BYTES)
        data = build(112, address=self.lists, memory_size=memory, tiles_x=columns, tiles_y=rows)
        data += build(6) + viewport(job) + build(105, x=1024.0, y=1024.0)
        data += body + build(4)
        if start is None:
            start = job.put(data)
        else:
            job.memory.write(start, data)
        v3d.write(CT0CA, start)
        v3d.write(CT0EA, (start + len(data)) & 0xFFFFFFFF)
        for _ in range(20):
            if v3d.binning.out_of_memory:
                v3d.write(BY_NAME["BPOA"].offset, job.room(LIST_BYTES))
                v3d.write(BY_NAME["BPOS"].offset, 4096)

    def result(self) -> tuple[object, ...]:
        """Everything a program can see."""
        frame, binning = self.frame, self.frame.v3d.binning
        memory = frame.job.memory.read(self.lists, frame.job.top - self.lists)
        names = (BFC, *(BY_NAME[name].offset for name in ("CT0CS", "CT0CA", "BPCA", "BPCS", "PCS")))
        registers = [frame.v3d.read(offset) for offset in names]
        report = frame.reporter
        errors = frame.v3d.read(BY_NAME["ERRSTAT"].offset)
        return memory, registers, binning.binner.totals, report.items, report.counts, errors


def both(run: Callable[[Scene], None], *, messages: bool = True, **options: Any) -> Scene:
    """Runs the same in the interpreter and natively, compares, returns the native scene."""
    golden, fast = (Scene(engine, **options) for engine in ("interpreter", "jit"))
    for scene in (golden, fast):
        run(scene)
    compared = None if messages else 3
    assert golden.result()[:compared] == fast.result()[:compared]
    return fast


def all_modes(scene: Scene) -> bytes:
    """Draws of every mode with indices of every kind, and state between them."""
    body = b""
    for number, mode in enumerate((0, 1, 2, 3, 4, 5, 6) * 3):
        length = 3 + 7 * number
        body += build(97, flags=number) if number % 3 == 0 else build(1)
        body += (
            scene.indexed(mode, length, index_type=0),
            scene.indexed(mode, length, address=scene.shorts + 2 * number),
            build(33, mode=mode, length=length, first=number),
        )[number % 3]
    return body


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
        data = [
            nv_vertex(rng.randrange(-64, 64), rng.randrange(-64, 64), 0.5, 1.0) for _ in range(300)
        ]
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
    nothing, shifted = (
        assemble(copies(7, extra)).bytes for extra in ("nop ; nop\n", "mov r0, vpm ; nop\n")
    )
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
        multiply = copies(7, "").replace(
            "mov vpm, vpm ; nop\n", "fmul r0, vpm, 2.0\nmov vpm, r0 ; nop\n", 2
        )
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


def test_memory_that_runs_out() -> None:
    def run(scene: Scene) -> None:
        body = scene.shader(scene.copy) + all_modes(scene)
        scene.bin(body)
        scene.bin(body, memory=2048)

    fast = both(run)
    assert fast.frame.reporter.has("CLE-028")


@pytest.mark.parametrize("choice", ["stop", "skip"])
def test_an_index_above_the_maximum(choice: str) -> None:
    def run(scene: Scene) -> None:
        scene.bin(scene.shader(scene.copy) + scene.indexed(4, 99))
        scene.bin(
            scene.shader(scene.copy) + scene.indexed(4, 99, maximum_index=90) + all_modes(scene)
        )

    fast = both(run, choices={"index_error": choice})
    assert fast.frame.reporter.has("CLE-014")


ODD_DRAWS = (
    {"length": 0},
    {"length": 1},
    {"length": 0xFFFFFFFF},
    {"length": MAX_LENGTH - 10},
    {"length": 0x80000000},
    {"mode": 7},
    {"mode": 15},
    {"index_type": 2},
    {"index_type": 15},
    {"address": MEMORY_SIZE - 3},
    {"address": 0xFFFFFFFF, "index_type": 0},
    {"address": 0x7E000000},
)


@pytest.mark.parametrize("fields", ODD_DRAWS)
def test_absurd_draws(fields: dict[str, int]) -> None:
    def run(scene: Scene) -> None:
        draw = scene.indexed(4, 30)
        odd = scene.indexed(**({"mode": 5, "length": 12} | fields))
        scene.bin(scene.shader(scene.copy) + draw + odd + draw + odd)

    both(run)


@pytest.mark.parametrize(
    ("first", "length"), [(0, 0x10000), (0xFFFF, 1), (0xFFF0, 15), (5, 0), (0xFFFFFFFF, 9)]
)
def test_arrays_at_the_limit(first: int, length: int) -> None:
    def run(scene: Scene) -> None:
        body = scene.shader(scene.copy, stride=0) + build(33, mode=4, length=9, first=0)
        scene.bin(body + 3 * build(33, mode=4, length=length, first=first))

    both(run)


@pytest.mark.parametrize(
    ("first", "length", "reported"),
    [(0, 0xFFFF, 0), (0, 0x10000, 1), (0xFFFE, 1, 0), (0xFFFF, 1, 1)],
)
def test_arrays_beyond_the_limit_are_reported(first: int, length: int, reported: int) -> None:
    scene = Scene()
    scene.bin(scene.shader(scene.copy, stride=0) + build(33, mode=4, length=length, first=first))
    assert scene.frame.reporter.counts.get("CLE-015", 0) == reported


def test_ranges_that_end_outside_the_memory_are_reported() -> None:
    """Though native code knows the page where they begin."""
    scene = Scene()
    counts = scene.frame.reporter.counts
    indices, vertices = MEMORY_SIZE - 64, MEMORY_SIZE - 40
    shader = scene.shader(scene.copy)
    scene.bin(shader + scene.indexed(4, 30, address=indices))
    assert counts.get("MEM-001", 0) == 0
    scene.bin(shader + scene.indexed(4, 48, address=indices))
    assert counts["MEM-001"] == 1
    ready = struct.pack("<BBBBIII", 1, 12, 0, 0, scene.fragment, 0, vertices)
    ready = build(65, address=scene.frame.job.put(ready))
    scene.bin(ready + build(33, mode=4, length=3))
    assert counts["MEM-001"] == 1
    scene.bin(ready + build(33, mode=4, length=4))
    assert counts["MEM-001"] == 2


def test_draws_of_a_list_have_a_limit_together() -> None:
    scene, zeros = Scene(), 0x8000000
    draws = scene.indexed(5, MAX_LENGTH - 30, address=zeros) + scene.indexed(4, 30)
    scene.bin(scene.shader(scene.copy) + draws)
    assert not scene.frame.reporter.has("VTX-001")
    scene.bin(scene.shader(scene.copy) + draws + 2 * scene.indexed(4, 3))
    assert scene.frame.reporter.counts["VTX-001"] == 2


def test_nothing_is_left_in_the_map_of_used_vertices() -> None:
    scene = Scene()
    scene.bin(scene.shader(scene.copy) + all_modes(scene))
    used = scene.frame.v3d.binning.native.context.used
    assert ctypes.string_at(used, MAX_VERTICES) == bytes(MAX_VERTICES)


def test_draws_out_of_order() -> None:
    """Before a shader, with a VG shader, after the flush, before record 6."""

    def run(scene: Scene) -> None:
        draw = scene.indexed(4, 30)
        shader = scene.shader(scene.copy)
        job = scene.frame.job
        scene.bin(draw + shader + draw + scene.frame.vg_shader(solid(RED)) + draw)
        scene.bin(shader + draw + build(4) + draw)
        start = job.put(shader + draw + build(4))
        scene.frame.v3d.write(CT0CA, start)
        scene.frame.v3d.write(CT0EA, job.top)

    fast = both(run)
    assert {"CLE-038", "CLE-021"} <= set(fast.frame.reporter.counts)


def test_each_primitive_record_says_that_the_window_is_empty() -> None:
    """Those that Python executes, too, in any order."""

    def run(scene: Scene) -> None:
        words = scene.frame.job.put(struct.pack("<3I", 0, 0x10, 0x100000))
        vg = scene.frame.vg_shader(solid(RED)) + build(41, type=4, length=3, address=words)
        draw = scene.shader(scene.copy) + scene.indexed(4, 30)
        scene.bin(
            build(102, left=9, bottom=9, width=0, height=9) + draw + vg + scene.indexed(4, 9) + vg
        )

    assert both(run).frame.reporter.counts["CLE-026"] == 4


@pytest.mark.parametrize("left", range(0, 240, 9))
def test_a_list_across_the_end_of_memory(left: int) -> None:
    def run(scene: Scene) -> None:
        body = scene.shader(scene.copy) + scene.indexed(4, 30)
        scene.bin(body)
        scene.bin(body * 4, start=MEMORY_SIZE - left)

    both(run, messages=False)  # of a record cut in two, whose program may be any word


@pytest.mark.parametrize("what", ["record", "code", "vertices"])
def test_shaders_at_the_end_of_memory(what: str) -> None:
    def run(scene: Scene) -> None:
        memory = scene.frame.job.memory
        code = assemble(copies(7)).bytes
        address, base = scene.copy, scene.vertices
        if what == "code":
            address = MEMORY_SIZE - 40
            memory.write(address, code)
        if what == "vertices":
            base = MEMORY_SIZE - 500
        record = scene.record(address, base=base)
        place = MEMORY_SIZE - 32 if what == "record" else scene.frame.job.put(record)
        memory.write(place, record)
        for _ in range(2):
            scene.bin(build(64, address=place, attributes=1) + scene.indexed(4, 60))

    both(run)


@pytest.mark.parametrize("base", [0x7E20_0000, MEMORY_SIZE - 3000, 0xC000_0000, 0])
def test_addresses_worth_a_message(base: int) -> None:
    """A known program with arrays in the registers, across the end, by another alias."""

    def run(scene: Scene) -> None:
        draw = scene.indexed(4, 30)
        there = base | scene.vertices if base == 0xC000_0000 else base
        scene.bin(scene.shader(scene.copy) + draw)
        scene.bin(scene.shader(scene.copy, base=there or scene.vertices) + draw * 2)

    assert bool(both(run).frame.reporter.items) == bool(base)


def test_long_lists() -> None:
    """More records than one native call executes, and more vertices than a list may have."""

    def run(scene: Scene) -> None:
        draw = scene.indexed(4, 30)
        scene.bin(scene.shader(scene.copy) + draw + build(1) * ((1 << 20) + 5) + draw)
        huge = scene.indexed(4, (1 << 22) + 1, address=0x2000_0000)
        scene.bin(scene.shader(scene.copy) + 6 * huge)

    assert both(run).frame.reporter.has("VTX-001")


def test_an_endless_list() -> None:
    def run(scene: Scene) -> None:
        job = scene.frame.job
        body = scene.shader(scene.copy) + scene.indexed(4, 30)
        scene.bin(body)
        start = job.room(64)
        job.memory.write(start, body * 2 + build(16, address=start))
        scene.frame.v3d.write(CT0CA, start)
        scene.frame.v3d.write(CT0EA, start + 4096)

    assert both(run).frame.reporter.has("CLE-006")


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
            state = build(
                64, address=scene.frame.job.put(data), attributes=count & 7, extended=extended
            )
            body += state + scene.indexed(4, 60)
        for _ in range(2):
            scene.bin(body)

    assert both(run).asked <= 12


@pytest.mark.parametrize("seed", range(12))
def test_random_lists(seed: int) -> None:
    def run(scene: Scene) -> None:
        rng = random.Random(seed)
        other = scene.frame.job.program(copies(7))
        shaders = [
            scene.shader(scene.copy),
            scene.shader(other, flags=1),
            scene.shader(scene.copy, stride=4),
        ]
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

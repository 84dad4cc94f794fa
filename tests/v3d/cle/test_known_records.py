"""Records that begin and end a frame: native code executes them alone once they are known.

Who listens has everything named again, by Python: memory, registers and messages are the same.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.support.frames import BLUE, GREEN, RED, Frame, solid
from tests.support.jobs import BFC, CT0CA, CT0EA, CT1CA, CT1EA, RFC, nv_vertex, viewport

from vc4lab.records.control import build
from vc4lab.v3d.cle.thread import ThreadControl
from vc4lab.v3d.registers import BY_NAME, BinnerDebug
from vc4lab.v3d.unknowns import DEFAULT_UNKNOWNS

SIZE = 0x8000
RESET = 1 << 15
REGISTERS = (
    *("CT0CS", "CT1CS", "CT0CA", "CT1CA", "CT0LC", "CT1LC", "PCS", "BFC", "RFC", "INTCTL"),
    *("BPCA", "BPCS", "BPOS", "CT0PC", "ERRSTAT"),
)


def offset(name: str) -> int:
    return BY_NAME[name].offset


@dataclass
class Scene:
    """A V3D, lists that are written where the last ones were, and what came of them."""

    heard: bool
    frame: Frame = field(default_factory=Frame)
    seen: list[object] = field(default_factory=list)
    modes: int = 0

    def __post_init__(self) -> None:
        job = self.frame.job
        if self.heard:
            self.frame.v3d.listeners.memory_used.subscribe(lambda _: None)
        corners = ((3.0, 3.0), (120.0, 9.0), (40.0, 110.0))
        vertices = b"".join(nv_vertex(*corner, 0.5, 1.0) for corner in corners)
        self.shaders = {c: self.frame.nv_shader(solid(c), vertices) for c in (RED, GREEN, BLUE)}
        self.lists, self.state = job.room(SIZE), job.room(SIZE)
        self.bin_at, self.render_at = job.room(SIZE), job.room(SIZE)
        self.surfaces = self.frame.surface, job.room(SIZE * 4)
        lint: Any = self.frame.v3d.lint
        for name in ("binning_mode", "rendering_mode"):
            setattr(lint, name, self._counted(getattr(lint, name)))

    def _counted(self, function: Callable[..., object]) -> Callable[..., object]:
        def counted(*arguments: object) -> object:
            self.modes += 1
            return function(*arguments)

        return counted

    def grid(self, **fields: int) -> bytes:
        """A record 112."""
        columns, rows = self.frame.job.tiles
        values = {"address": self.lists, "memory_size": SIZE, "state_address": self.state}
        return build(112, **(values | {"tiles_x": columns, "tiles_y": rows} | fields))

    def mode(self, **fields: int) -> bytes:
        """A record 113."""
        job = self.frame.job
        values = {"address": self.surfaces[0], "width": job.width, "height": job.height}
        return build(113, **(values | {"format": 1} | fields))

    def triangle(self, colour: int = RED) -> bytes:
        """State, shader, and a draw."""
        draw = build(33, mode=4, length=3, first=0)
        return viewport(self.frame.job) + self.shaders[colour] + draw

    def tiles(self, columns: int = 2, rows: int = 2, wait: bytes = b"") -> bytes:
        """Records of a rendering list after the mode."""
        data = build(115) + build(28) + wait
        for tile in range(columns * rows):
            data += build(115, column=tile % columns, row=tile // columns)
            data += build(17, address=self.lists + 32 * tile)
            data += build(25 if tile == columns * rows - 1 else 24)
        return data

    def start(self, thread: int, data: bytes) -> None:
        """Runs a list in the place of the one before, and looks at everything."""
        memory, v3d = self.frame.job.memory, self.frame.v3d
        place = self.render_at if thread else self.bin_at
        memory.write(place, data)
        current, end = ((CT0CA, CT0EA), (CT1CA, CT1EA))[thread]
        v3d.write(current, place)
        v3d.write(end, place + len(data))
        self.look()

    def look(self) -> None:
        """Notes what a program can see."""
        memory, v3d = self.frame.job.memory, self.frame.v3d
        registers = [v3d.read(offset(name)) for name in REGISTERS]
        ranges = ((self.lists, SIZE), (self.surfaces[0], 0x10000), (self.surfaces[1], 0x10000))
        self.seen.append((registers, [hash(memory.read(*item)) for item in ranges]))
        self.seen.append((list(v3d.lint.grids), v3d.waiting, v3d.binning.binner.totals))

    def draw(
        self,
        colour: int = RED,
        binning: bytes | None = None,
        mode: bytes | None = None,
    ) -> None:
        """A frame, with semaphores as drivers use them."""
        head = self.grid() if binning is None else binning
        self.start(0, head + build(6) + self.triangle(colour) + build(7) + build(4))
        after = self.mode() if mode is None else mode
        clear = build(114, colour=0xFF402010, colour_high=0xFF402010, z=0xFFFFFF)
        self.start(1, clear + after + self.tiles(wait=build(8)))

    def reset(self) -> None:
        """Both threads."""
        for name in ("CT0CS", "CT1CS"):
            self.frame.v3d.write(offset(name), RESET)
        self.look()


def both(run: Callable[[Scene], None], **options: object) -> Scene:
    """Runs the same with a listener and without, compares, returns the scene without."""
    named, known = (Scene(heard, Frame(threads=1, **options)) for heard in (True, False))  # type: ignore[arg-type]
    for scene in (named, known):
        run(scene)
    for there, here in zip(named.seen, known.seen, strict=True):
        assert there == here
    assert named.modes >= known.modes
    assert named.frame.reporter.items == known.frame.reporter.items
    assert named.frame.reporter.counts == known.frame.reporter.counts
    return known


def test_known_frames_need_no_python() -> None:
    def run(scene: Scene) -> None:
        for colour in (RED, GREEN, BLUE, RED):
            scene.draw(colour)

    fast = both(run)
    assert fast.modes == 2, "one of each, once"
    assert not fast.frame.reporter.items
    pixels = fast.frame.pixels()
    assert {int(word) for word in pixels.ravel()} == {RED, 0xFF402010}
    assert [fast.frame.v3d.read(name) for name in (BFC, RFC)] == [4, 4]


def test_a_loaded_state_has_no_tiles_yet() -> None:
    """It says that there was a grid; the tiles themselves are not kept from frame to frame."""

    def run(scene: Scene) -> None:
        scene.frame.v3d.binning.configured = True
        for _ in range(3):
            scene.start(0, build(6) + scene.triangle() + build(4))
        scene.draw()

    assert both(run).frame.reporter.counts == {"CLE-010": 3}


def test_a_changed_mode_is_seen() -> None:
    """Another surface, size or format in the same place, and back again."""

    def run(scene: Scene) -> None:
        changes: tuple[dict[str, int], ...] = (
            {"address": scene.surfaces[1]},
            {"width": 100, "height": 70},
            {"format": 2},
            {"tiling": 1},
            {"decimate": 1},
            {"early_z_disable": 1},
        )
        for fields in ({}, *changes, {}):
            scene.draw(RED)
            scene.draw(GREEN, mode=scene.mode(**fields))
            scene.draw(BLUE, mode=scene.mode(**fields))

    assert both(run).modes > 10


def test_a_changed_grid_is_seen() -> None:
    """Another size of the first block, of the grid, of tiles, another place; each twice."""

    def run(scene: Scene) -> None:
        changes: tuple[dict[str, int], ...] = (
            {"initial_block": 2},
            {"block": 3},
            {"tiles_x": 1, "tiles_y": 1},
            {"tiles_x": 5, "tiles_y": 9},
            {"multisample": 1},
            {"colour64": 1},
            {"double_buffer": 1},
            {"multisample": 1, "double_buffer": 1, "colour64": 1},
            {"address": scene.lists + 0x1000},
            {"memory_size": 0x1000},
        )
        for fields in changes:
            for _ in range(2):
                scene.start(0, scene.grid(**fields) + build(6) + scene.triangle() + build(4))

    both(run)
    both(run, unknowns=DEFAULT_UNKNOWNS.with_(double_buffer_tile="full"))


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"address": 0x200010}, "CLE-009"),
        ({"state_address": 0x200004}, "CLE-009"),
        ({"memory_size": 16}, "CLE-027"),
        ({"tiles_x": 0}, "CLE-032"),
        ({"address": 0x7E000000}, "CLE-003"),
        ({"state_address": 0xFFFFFFF0}, "CLE-023"),
    ],
)
def test_grids_with_something_to_say(fields: dict[str, int], code: str) -> None:
    def run(scene: Scene) -> None:
        scene.draw()
        if code == "CLE-023":
            fields["state_address"] = scene.state | 0xC0000000
        for _ in range(2):
            scene.start(0, scene.grid(**fields) + build(6) + scene.triangle() + build(4))
            scene.draw(GREEN)

    fast = both(run)
    assert fast.frame.reporter.has(code)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"format": 3}, "CLE-007"),
        ({"coverage": 1}, "CLE-031"),
        ({"width": 0}, "CLE-030"),
        ({"width": 1000}, "CLE-024"),
    ],
)
def test_modes_with_something_to_say(fields: dict[str, int], code: str) -> None:
    """Each frame says it, although the one before did."""

    def run(scene: Scene) -> None:
        for _ in range(2):
            scene.draw()
            scene.draw(GREEN, mode=scene.mode(**fields))
            scene.draw(BLUE, mode=scene.mode(**fields))

    fast = both(run)
    assert fast.frame.reporter.counts[code] >= 4


def test_errors_and_then_a_good_frame() -> None:
    def run(scene: Scene) -> None:
        for bad in (b"\x7f", build(0), build(17, address=scene.bin_at), b"\x70\0"):
            scene.draw()
            scene.start(0, scene.grid() + build(6) + scene.triangle() + bad + build(4))
            scene.reset()
            scene.draw(GREEN)
            scene.start(1, scene.mode() + build(115) + build(24) + bad + scene.tiles())
            scene.reset()
            scene.draw(BLUE)

    assert both(run).frame.reporter.has("CLE-001")


def test_records_out_of_order() -> None:
    """No record 6 or 112, two of them, two flushes, draws after the flush, cut-off records."""

    def run(scene: Scene) -> None:
        body, grid = scene.triangle(), scene.grid()
        other = scene.grid(tiles_x=1)
        scene.start(0, build(6) + body + build(4))
        scene.draw()
        for data in (
            grid + body + build(4),
            build(6) + body + build(4),
            grid + other + build(6) + body + build(4),
            grid + build(6) + body + other + build(6) + body + build(4),
            grid + build(6) + body + build(4) + body + build(4),
            grid + build(6) + body + build(4) + grid + build(6) + body + build(5),
            grid + build(6) + build(6) + body + build(7) + build(7) + build(4) + build(7),
            grid + build(6) + body,
            grid[:7],
            grid + build(6) + body + build(5),
            build(4),
        ):
            scene.start(0, data)
            scene.draw(GREEN)

    fast = both(run)
    assert {"CLE-010", "CLE-012", "CLE-021"} <= set(fast.frame.reporter.counts)


def test_semaphores() -> None:
    """Waits in vain, waits that are over, more increments than a semaphore holds."""

    def run(scene: Scene) -> None:
        empty = scene.grid() + build(6) + scene.triangle() + build(7) + build(4)
        for _ in range(2):
            scene.draw()
            for _ in range(9):
                scene.start(0, empty)
            scene.start(1, scene.mode() + 9 * build(8) + scene.tiles())
            scene.start(0, empty)
            scene.start(0, empty)
            scene.start(1, scene.mode() + build(7) + scene.tiles())
            scene.start(0, scene.grid() + build(8) + build(6) + scene.triangle() + build(4))
            scene.start(0, scene.grid() + build(8) + build(6) + scene.triangle() + build(4))
            scene.reset()
            scene.start(0, scene.grid() + build(6) + scene.triangle() + build(4))
            scene.start(1, scene.mode() + build(8) + scene.tiles())
            scene.reset()

    assert {"CLE-022", "CLE-035"} <= set(both(run).frame.reporter.counts)


def test_memory_that_runs_out() -> None:
    """In a draw and in the flush; the block comes late, or the thread is reset before."""

    def run(scene: Scene) -> None:
        v3d = scene.frame.v3d
        spill = scene.frame.job.room(SIZE)
        body = b"".join(
            build(99, line_width=float(k)) + scene.triangle(colour)
            for k, colour in enumerate((RED, GREEN, BLUE) * 8)
        )
        for flush in (4, 5):
            for size in (128, 192, 256, 320, 352, 384, 512, 1024):
                scene.draw()
                grid = scene.grid(memory_size=size)
                scene.start(0, grid + build(6) + body + build(7) + build(flush))
                v3d.write(offset("BPOA"), spill)
                v3d.write(offset("BPOS"), 4096)
                scene.look()
                v3d.write(offset("INTCTL"), 0xF)
                scene.start(0, grid + build(6) + body + build(flush))
                scene.reset()
                scene.start(0, scene.grid() + build(6))
                v3d.write(offset("BPOS"), 4096)
                scene.look()
                scene.draw(BLUE)
                begin = scene.grid() + build(6)  # in the same list: the block was used before
                for first in (grid, scene.grid(memory_size=size, address=scene.lists + 16)):
                    v3d.write(offset("BPOS"), 4096)
                    v3d.write(offset("INTCTL"), 0xF)
                    scene.start(0, first + build(6) + body + begin + body + build(flush))
                v3d.write(offset("BPOS"), 0)

    fast = both(run)
    assert fast.frame.reporter.has("CLE-028")


def test_a_flush_that_was_given_up() -> None:
    """Memory ran out in it and the thread was reset: the next list has one flush, not two."""

    def run(scene: Scene) -> None:
        v3d = scene.frame.v3d
        body = build(97, flags=1) + scene.triangle()
        small = scene.grid(memory_size=4 << 6, initial_block=1)
        for head in (build(6), scene.grid() + build(6)):
            scene.draw()
            scene.start(0, small + build(6) + body + build(5))
            assert v3d.binning.out_of_memory
            assert v3d.read(offset("CT0CA")) == scene.bin_at + len(small + build(6) + body) + 1
            scene.reset()
            before = v3d.read(BFC)
            scene.start(0, head + body + build(4))
            assert v3d.read(BFC) == before + v3d.threads[0].closed
            scene.reset()
            scene.draw()

    both(run)


@pytest.mark.parametrize("what", ["grid", "triangle", "path"])
def test_nothing_is_left_of_a_flush_that_was_given_up(what: str) -> None:
    """A block that comes after the next list has begun is for that list alone."""
    scene = Scene(False, Frame(threads=1))
    v3d, job = scene.frame.v3d, scene.frame.job
    triangle = scene.triangle()
    after = {"grid": scene.grid(), "triangle": build(6) + triangle, "path": build(6) + path(scene)}
    small = scene.grid(memory_size=4 << 6, initial_block=1)
    scene.start(0, small + build(6) + build(97, flags=1) + triangle + build(5))
    assert v3d.binning.out_of_memory
    scene.reset()
    before = v3d.read(BFC)
    scene.start(0, after[what])
    lists = job.memory.read(scene.lists, SIZE)
    v3d.write(offset("BPOA"), job.room(4096))
    v3d.write(offset("BPOS"), 4096)
    assert v3d.read(BFC) == before
    drawn = what != "grid"  # the block is for that draw
    assert (job.memory.read(scene.lists, SIZE) != lists) == drawn
    scene.draw()
    assert v3d.read(BFC) == before + 1


def path(scene: Scene) -> bytes:
    """State, shader and a triangle of vector graphics."""
    points = scene.frame.job.put(struct.pack("<6h", 160, 160, 160, 640, 640, 160))
    state = viewport(scene.frame.job) + scene.frame.vg_shader(solid(RED))
    return state + build(41, type=4, length=3, address=points)


def test_what_record_6_and_7_leave() -> None:
    """CTMODE until binning begins; a list that signalled is not blamed for a second wait."""
    scene = Scene(False, Frame(threads=1))

    def prefixing() -> bool:
        return bool(scene.frame.v3d.read(offset("CT0CS")) & ThreadControl.CTMODE.mask)

    for _ in range(2):
        scene.start(0, scene.grid() + viewport(scene.frame.job))
        assert prefixing()
        scene.start(0, build(6) + scene.triangle() + build(7) + build(4))
        assert not prefixing()
        scene.start(1, scene.mode() + build(8) + scene.tiles(wait=build(8)))
        assert "semaphore" in scene.frame.v3d.threads[1].stalled
        assert not scene.frame.reporter.has("CLE-022")
        scene.frame.v3d.write(offset("CT1CS"), RESET)


def test_a_path_without_a_flush_is_reported() -> None:
    scene = Scene(False, Frame(threads=1))
    scene.start(0, scene.grid() + build(6) + path(scene))
    assert scene.frame.reporter.has("CLE-012")


def test_a_listener_hears_of_every_mode() -> None:
    """Who wants to know every address gets them, also of records that were known before."""

    def run(scene: Scene) -> None:
        heard: list[object] = []
        scene.draw()
        scene.draw()
        with scene.frame.v3d.listeners.memory_used.subscribe(heard.append):
            scene.draw(GREEN)
            scene.draw(GREEN)
        scene.draw(BLUE)
        scene.seen.append(heard)
        assert len(heard) > 10

    both(run)


def test_clipping_may_be_switched_off() -> None:
    def run(scene: Scene) -> None:
        for value in (0, BinnerDebug.CLIPDISA.mask, 0):
            scene.frame.v3d.write(offset("BXCF"), value)
            scene.draw()

    both(run)


@pytest.mark.parametrize("seed", range(12))
def test_random_lists(seed: int) -> None:
    """System records in any order, frames between them."""

    def run(scene: Scene) -> None:
        rng = random.Random(seed)
        scene.draw()
        for _ in range(12):
            data = b""
            for _ in range(rng.randrange(1, 12)):
                data += rng.choice((
                    scene.grid(), scene.grid(tiles_x=rng.randrange(4)), build(6), build(6),
                    build(7), build(4), build(5), scene.triangle(), build(1), build(8),
                    build(99, line_width=2.0), scene.grid(memory_size=rng.randrange(400)),
                ))  # fmt: skip
            scene.start(0, data)
            data = b""
            for _ in range(rng.randrange(1, 9)):
                data += rng.choice((
                    scene.mode(), scene.mode(width=rng.randrange(130)), build(8), build(1),
                    scene.tiles(), build(115) + build(24), build(114, colour=rng.getrandbits(32)),
                    scene.mode(format=rng.randrange(4)), build(7), build(24), build(25),
                ))  # fmt: skip
            scene.start(1, data)
            if rng.random() < 0.5:
                scene.reset()
        scene.reset()
        scene.draw(GREEN)

    both(run)


def test_payload_bytes() -> None:
    """Every byte of both records: each change counts."""

    def run(scene: Scene) -> None:
        scene.draw()
        for at in range(1, 11):
            mode = bytearray(scene.mode())
            mode[at] ^= 1 if at != 4 else 0x40
            scene.draw(GREEN, mode=bytes(mode))
        for at in range(1, 16):
            grid = bytearray(scene.grid())
            grid[at] ^= 1 if at not in (4, 8, 12) else 0x40
            scene.start(0, bytes(grid) + build(6) + scene.triangle() + build(4))
            assert struct.unpack_from("<B", grid)[0] == 112
        scene.draw(BLUE)

    both(run)

"""Records that begin and end a frame: native code executes them alone once they are known.

Who listens has everything named again, by Python: memory, registers and messages are the same.
"""

import random
import struct

import pytest
from tests.support.frames import BLUE, GREEN, RED
from tests.support.jobs import BFC, RFC
from tests.support.known_scene import Scene, both, offset

from vc4lab.records.control import build
from vc4lab.v3d.registers import BinnerDebug
from vc4lab.v3d.unknowns import DEFAULT_UNKNOWNS


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

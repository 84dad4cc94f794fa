"""Flushes and semaphores of frames that come again: memory that runs out, flushes given up."""

import struct

import pytest
from tests.support.frames import BLUE, GREEN, RED, Frame, solid
from tests.support.jobs import BFC, viewport
from tests.support.known_scene import RESET, SIZE, Scene, both, offset

from vc4lab.records.control import build
from vc4lab.v3d.cle.thread import ThreadControl


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

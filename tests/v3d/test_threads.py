"""Worker threads end with the V3D that started them."""

from tests.support.frames import ARRAY, CORNERS, RED, Frame, inside, solid, triangle
from tests.support.jobs import viewport
from tests.support.threads import left_of, simulator_threads


def draws(frame: Frame) -> bool:
    shader = frame.nv_shader(solid(RED), triangle(*CORNERS), 0)
    picture = frame.bin(viewport(frame.job) + shader + ARRAY)
    return bool(((picture == RED) == inside(frame, CORNERS)).all())


def test_threads_end_when_the_last_reference_to_their_v3d_goes() -> None:
    before = simulator_threads()
    frames = [Frame(threads=3) for _ in range(4)]
    assert all(draws(frame) for frame in frames)
    started = simulator_threads() - before
    assert len(started) == 2 * 4
    frame = frames.pop()
    assert len(left_of(started, 0.2)) == 8  # all are still held
    frames.clear()
    assert len(left_of(started, held=2)) == 2
    assert len(left_of(started, 0.2)) == 2
    assert draws(frame)  # what is left goes on
    del frame
    assert not left_of(started)


def test_after_close_a_frame_starts_new_threads() -> None:
    before = simulator_threads()
    frame = Frame(threads=3)
    assert draws(frame)
    frame.v3d.frames.tile_threads.close()
    assert not left_of(simulator_threads() - before)
    assert draws(frame)
    assert len(simulator_threads() - before) == 2

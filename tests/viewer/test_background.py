"""Recording in a thread of its own."""

import threading
from pathlib import Path

from PIL import Image

from vc4lab.viewer.background import BACKLOG, BackgroundRecorder
from vc4lab.viewer.recorder import Recorder

MS = 1_000_000


def frame(shade: int) -> Image.Image:
    return Image.new("RGB", (8, 8), (shade, 0, 0))


def test_frames_arrive_in_their_order_and_only_those_that_are_wanted(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "a.png")
    background = BackgroundRecorder(recorder, may_drop=False)
    for number in range(100):
        if background.wants(5 * MS * number):
            assert background.add(lambda number=number: frame(number), 5 * MS * number)  # type: ignore[misc]
    background.finish()
    assert background.dropped == 0
    assert len(recorder) == 25  # every 20 ms: 16 are the least
    assert recorder.save()
    with Image.open(tmp_path / "a.png") as film:
        film.seek(3)
        assert film.convert("RGB").getpixel((0, 0)) == (12, 0, 0)


def test_frames_that_come_too_quickly_are_left_out_if_the_program_must_not_wait(tmp_path: Path) -> None:
    go = threading.Event()

    def slow() -> Image.Image:
        go.wait(30)
        return frame(1)

    recorder = Recorder(tmp_path / "a.png")
    background = BackgroundRecorder(recorder, may_drop=True)
    taken = [background.add(slow, 100 * MS * number) for number in range(BACKLOG + 10)]
    go.set()
    background.finish()
    assert taken[:BACKLOG] == [True] * BACKLOG
    assert not taken[-1]
    assert background.dropped == taken.count(False)
    assert len(recorder) == taken.count(True)

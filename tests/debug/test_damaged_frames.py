"""Captures with damaged or missing pages, looked into: sentences, and no harm."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from vc4lab.capture.errors import CaptureError
from vc4lab.capture.pages import Pages
from vc4lab.debug.frame.capture import Capture
from vc4lab.debug.frame.places import NoSuchPlace
from vc4lab.jobs.load import open_jobs

DATA = Path(__file__).parents[1] / "data"


class _Damaged:
    """Pages of a capture in which bytes are others."""

    def __init__(self, pages: Pages, seed: int) -> None:
        self._pages, self._choice = pages, random.Random(seed)
        self._changed = {
            (self._choice.randrange(len(pages)), self._choice.randrange(4096)): self._choice.randrange(256)
            for _ in range(self._choice.choice((4, 40, 400)))
        }

    def __len__(self) -> int:
        return len(self._pages)

    def page(self, number: int) -> bytes:
        data = bytearray(self._pages.page(number))
        used = [place for place, byte in enumerate(data) if byte] or [0]
        for (page, place), byte in self._changed.items():
            if page == number:
                data[used[place % len(used)]] = byte
        return bytes(data)


@pytest.mark.parametrize("seed", range(6))
def test_damaged_frames_are_looked_into_without_harm(seed: int) -> None:
    capture = open_jobs(DATA / "captures" / "tri.vc4cap")
    assert capture.pages is not None
    capture.pages = _Damaged(capture.pages, seed)
    frame, answers = Capture(capture).frame(), list[object]()
    for ask in (
        lambda: frame.picture_after(len(frame.draws)),
        lambda: frame.pixel(32, 32, program=True),
        lambda: frame.vertex(1, 0),
        lambda: frame.state(1),
        lambda: frame.overlay("primitives"),
    ):
        try:
            answers.append(ask())
        except NoSuchPlace as answer:
            answers.append(str(answer))
    assert len(answers) == 5
    assert any(answers)


def test_a_missing_page_is_named_with_its_line() -> None:
    class Gone:
        def __len__(self) -> int:
            return 9

        def page(self, number: int) -> bytes:
            raise CaptureError("CAP-010", f"page {number} is missing", "pages/0.bin")

    capture = open_jobs(DATA / "captures" / "tri.vc4cap")
    capture.pages = Gone()
    with pytest.raises(CaptureError, match=r"CAP-010: jobs/1/events.txt:\d+: page \d is missing"):
        Capture(capture).frame().picture_after(1)

"""Compares captures frame by frame: what they hold by meaning, and what they draw.

found = compare(Capture("yesterday.vc4cap"), Capture("today.vc4cap"))
found.is_equal
for line in found.lines():
    print(line)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from vc4lab.debug.compare.align import aligned
from vc4lab.debug.compare.differences import (
    SURFACE,
    Sides,
    draw_differences,
    job_differences,
    memory_differences,
    program_differences,
)
from vc4lab.debug.compare.pairs import DrawPair, FramePair, JobPair
from vc4lab.debug.compare.pictures import find_makers, pixels_of
from vc4lab.debug.compare.texts import comparison_lines, frame_dict, picture_of
from vc4lab.debug.frame.collect import facts_of
from vc4lab.images.pixels import png_bytes

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from PIL.Image import Image

    from vc4lab.debug.compare.pictures import Pixels, Step
    from vc4lab.debug.frame.capture import Capture, CapturedFrame
    from vc4lab.debug.frame.facts import DrawFact, FrameFact, JobFact
    from vc4lab.debug.frame.index import FrameJob


@dataclass(repr=False)
class Comparison:
    """The frames of two captures beside each other."""

    frames: list[FramePair]

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def _repr_png_(self) -> bytes | None:
        """The difference picture, in a notebook."""
        return png_bytes(self.picture())

    @property
    def is_equal(self) -> bool:
        """Whether all frames mean and draw the same."""
        return all(one.is_equal for one in self.frames)

    def lines(self, rows: int = 100) -> Iterator[str]:
        """The differences as text; rows: of each frame at most."""
        return comparison_lines(self.frames, rows)

    def as_dict(self) -> dict[str, Any]:
        """The differences as JSON has them."""
        return {"equal": self.is_equal, "frames": [frame_dict(one) for one in self.frames]}

    def picture(self) -> Image | None:
        """Return the picture of the first frame that differs, with the pixels that do in red.

        The frame's own picture, if it differs, or else that of its first job that does. None: none does.
        """
        return picture_of(self.frames)


def compare(one: Capture, two: Capture) -> Comparison:
    """Compare all frames of two captures. Raises CaptureError."""
    return Comparison([compare_frames(a, b) for a, b in _frame_pairs(one.frames, two.frames)])


def _frame_pairs(
    one: Sequence[CapturedFrame], two: Sequence[CapturedFrame]
) -> list[tuple[CapturedFrame | None, CapturedFrame | None]]:
    """Frames with the same numbers belong together; else those which mean the same."""
    numbers = [frame.number for frame in one], [frame.number for frame in two]
    if numbers[0] == numbers[1]:
        return list(zip(one, two, strict=True))
    keys = [hash(facts_of(frame).key) for frame in one], [hash(facts_of(frame).key) for frame in two]
    pairs = aligned(keys, numbers)
    return [(None if a is None else one[a], None if b is None else two[b]) for a, b in pairs]


def compare_frames(one: CapturedFrame | None, two: CapturedFrame | None) -> FramePair:
    """Compare two frames; None: there is no such frame. Raises CaptureError."""
    pair = FramePair(one, two)
    if one is None or two is None:
        return pair
    a, b = facts_of(one), facts_of(two)
    sides = Sides(a.contents, b.contents)
    for programs in zip_longest(a.programs, b.programs):
        pair.differences += program_differences(*programs, sides)
    pair.differences += memory_differences(a.memory, b.memory, sides)
    places = aligned(
        ([j.key for j in a.jobs], [j.key for j in b.jobs]),
        ([j.coarse for j in a.jobs], [j.coarse for j in b.jobs]),
    )
    pair.jobs = [_jobs(pair, a, b, first, second, sides) for first, second in places]
    return pair


def _jobs(
    pair: FramePair, a: FrameFact, b: FrameFact, first: int | None, second: int | None, sides: Sides
) -> JobPair:
    one = None if first is None else a.jobs[first]
    two = None if second is None else b.jobs[second]
    made = JobPair(one.job if one else None, two.job if two else None)
    if one is None or two is None:
        return made
    made.differences = job_differences(one, two, sides)
    places = aligned(
        ([d.key for d in one.draws], [d.key for d in two.draws]),
        ([d.coarse for d in one.draws], [d.coarse for d in two.draws]),
    )
    for x, y in places:
        before = None if x is None else one.draws[x]
        after = None if y is None else two.draws[y]
        draws = DrawPair(before.draw if before else None, after.draw if after else None)
        if before is not None and after is not None and before.key != after.key:
            draws.differences = draw_differences(before, after, sides)
        made.draws.append(draws)
    made.pixels = _pixels(pair, one, two, made.draws)
    if made.pixels is not None and one.job.colour is not None:
        address = one.job.colour.address
        made.differences = [d for d in made.differences if d.kind != SURFACE or d.places[0] != address]
    return made


def _pixels(pair: FramePair, one: JobFact, two: JobFact, draws: Sequence[DrawPair]) -> Pixels | None:
    """The pixels in which the pictures of two jobs differ, and whose draws made them."""
    if [fact.digest for fact in one.surfaces] == [fact.digest for fact in two.surfaces]:
        return None
    assert pair.a is not None
    assert pair.b is not None
    sides = (pair.a, one.job), (pair.b, two.job)
    whole = [frame.words_of(job) for frame, job in sides]
    if whole[0] is None or whole[1] is None:
        return None
    found = pixels_of(whole[0], whole[1])
    if found is not None and found.count:
        find_makers(found, _steps(one.draws, two.draws, draws), lambda step: _after(sides, step))
    return found


def _after(sides: Sequence[tuple[CapturedFrame, FrameJob]], step: Step) -> tuple[NDArray[Any], NDArray[Any]]:
    found = [frame.words_of(job, keep) for (frame, job), keep in zip(sides, step, strict=True)]
    assert found[0] is not None
    assert found[1] is not None
    return found[0], found[1]


def _steps(one: Sequence[DrawFact], two: Sequence[DrawFact], draws: Sequence[DrawPair]) -> list[Step]:
    """How many draws of each frame are kept, from those before the jobs to all of theirs."""
    a, b = (side[0].draw.number - 1 if side else 0 for side in (one, two))
    found = [(a, b)]
    for pair in draws:
        a = a if pair.a is None else pair.a.number
        b = b if pair.b is None else pair.b.number
        found.append((a, b))
    return found

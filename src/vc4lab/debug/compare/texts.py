"""Comparisons as lines of text, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from vc4lab.jobs.pictures import difference_picture

if TYPE_CHECKING:
    from PIL.Image import Image

    from vc4lab.debug.compare.differences import Difference
    from vc4lab.debug.compare.pairs import DrawPair, FramePair, JobPair

MOST_RANGES = 8
"""Ranges of draws that are named of a difference."""
MOST_ALIKE = 5
"""Differences of a program, or record, in the same draws that are printed."""


def comparison_lines(frames: Sequence[FramePair], rows: int) -> Iterator[str]:
    """A comparison as text; rows: lines of each frame at most."""
    equal = sum(one.is_equal for one in frames)
    for pair in frames:
        if pair.is_equal:
            continue
        lines = list(_frame_lines(pair))
        yield from lines[: rows + 1]
        if len(lines) > rows + 1:
            yield f"  … {len(lines) - rows - 1} more lines"
    count = len(frames)
    if equal == count:
        yield f"equal: {count} frame{'s' * (count != 1)}"
    else:
        yield f"{count - equal} of {count} frame{'s' * (count != 1)} differ{'s' * (count - equal == 1)}"


def _frame_lines(pair: FramePair) -> Iterator[str]:
    if pair.a is None or pair.b is None:
        there, side = (pair.b, "B") if pair.a is None else (pair.a, "A")
        assert there is not None
        yield f"frame {there.number}: only in {side}"
        return
    name = _name("frame", pair.a.number, pair.b.number)
    draws = [one for job in pair.jobs for one in job.draws]
    different = sum(not one.is_equal for one in draws)
    shown = pair.shown
    pixels = shown.pixels if shown is not None else None
    picture = "the same picture"
    if pixels is not None:
        picture = pixels.text()
    elif shown is None:
        picture = "no picture"
    yield f"{name}: {different} of {len(draws)} draws differ{'s' * (different == 1)}, {picture}"
    first = first_difference(pair)
    if first:
        yield f"  first: {first}"
    for difference in pair.differences:
        yield f"  {difference.text()}"
    for job in pair.jobs:
        yield from _job_lines(job, several=len(pair.jobs) > 1)


def _name(what: str, a: int, b: int) -> str:
    return f"{what} {a}" if a == b else f"{what} {a} of A, {b} of B"


def _job_lines(job: JobPair, *, several: bool) -> Iterator[str]:
    if job.is_equal:
        return
    pad = "  "
    if job.a is None or job.b is None:
        there, side = (job.b, "B") if job.a is None else (job.a, "A")
        assert there is not None
        yield f"{pad}job {there.number}: only in {side}, {len(there.draws)} draws"
        return
    if several:
        yield f"{pad}{_name('job', job.a.number, job.b.number)}"
        pad += "  "
    yield from (f"{pad}{line}" for line in _draws_lines(job.draws))
    for difference in job.differences:
        yield f"{pad}{difference.text()}"
    if job.pixels is not None:
        yield f"{pad}{job.pixels.text()}"
        for maker in job.pixels.makers:
            yield f"{pad}  {maker.text()}: {maker.count} pixels, the first at {maker.x},{maker.y}"


def _draws_lines(draws: Sequence[DrawPair]) -> Iterator[str]:
    """The differences of draws; those that draws have in common once, and of many alike the first few."""
    groups: dict[tuple[Any, ...], tuple[Difference, list[DrawPair]]] = {}
    for pair in draws:
        for difference in pair.differences:
            key = difference.what, difference.where, difference.a, difference.b
            groups.setdefault(key, (difference, []))[1].append(pair)
    lines: dict[tuple[str, str, str], list[str]] = {}
    """By kind, program or record, and draws."""
    alone: list[str] = []
    for pair in draws:
        if pair.a is None or pair.b is None:
            there, side = (pair.b, "B") if pair.a is None else (pair.a, "A")
            assert there is not None
            if not alone or not alone[0].startswith(f"only in {side}"):
                alone = lines["draw", side, f"from draw {there.number} on"] = []
            alone.append(f"only in {side}: {there.text()}")
            continue
        alone = []
        for difference in pair.differences:
            key = difference.what, difference.where, difference.a, difference.b
            first, pairs = groups[key]
            if first is difference:
                text = draws_text(pairs)
                alike = lines.setdefault((first.kind, first.what, text), [])
                alike.append(f"{text}: {first.text()}")
    for (kind, what, text), found in lines.items():
        yield from found[:MOST_ALIKE]
        left = len(found) - MOST_ALIKE
        if left > 0 and kind == "draw":
            yield f"only in {what}: {left} more draws after these"
        elif left > 0:
            yield f"{text}: {left} more of this kind ({kind}, {what})"


def draws_text(pairs: Sequence[DrawPair]) -> str:
    """The numbers of draws as ranges, those of both frames where they differ."""
    ranges: list[list[int]] = []
    for pair in pairs:
        assert pair.a is not None
        assert pair.b is not None
        a, b = pair.a.number, pair.b.number
        if ranges and (a, b) == (ranges[-1][1] + 1, ranges[-1][3] + 1):
            ranges[-1][1], ranges[-1][3] = a, b
        else:
            ranges.append([a, a, b, b])
    texts = []
    for a, a_end, b, b_end in ranges[:MOST_RANGES]:
        one, two = (str(x) if x == y else f"{x}-{y}" for x, y in ((a, a_end), (b, b_end)))
        texts.append(one if one == two else f"{one} (B: {two})")
    more = f" and {len(ranges) - MOST_RANGES} more ranges" if len(ranges) > MOST_RANGES else ""
    several = len(pairs) > 1
    return f"draw{'s' * several} {', '.join(texts)}{more}"


def first_difference(pair: FramePair) -> str:
    """Say where frames begin to differ, in the order of time; "": nowhere."""
    for job in pair.jobs:
        if job.a is None or job.b is None:
            there, side = (job.b, "B") if job.a is None else (job.a, "A")
            assert there is not None
            return f"job {there.number}, which is only in {side}"
        for draws in job.draws:
            if draws.is_equal:
                continue
            if draws.a is None or draws.b is None:
                alone, side = (draws.b, "B") if draws.a is None else (draws.a, "A")
                assert alone is not None
                return f"draw {alone.number}, which is only in {side}"
            return f"{_name('draw', draws.a.number, draws.b.number)}, {draws.differences[0].text()}"
        if job.differences and not (job.pixels is not None and job.pixels.makers):
            return f"{_name('job', job.a.number, job.b.number)}, {job.differences[0].text()}"
        if job.pixels is not None:
            makers = job.pixels.makers
            whose = f"{makers[0].text()}: " if makers else ""
            return f"{_name('job', job.a.number, job.b.number)}, {whose}{job.pixels.text()}"
    return pair.differences[0].text() if pair.differences else ""


def frame_dict(pair: FramePair) -> dict[str, Any]:
    """A pair of frames as JSON has it: jobs and draws that differ."""
    return {
        "a": None if pair.a is None else pair.a.number,
        "b": None if pair.b is None else pair.b.number,
        "equal": pair.is_equal,
        "first": first_difference(pair),
        "differences": [one.as_dict() for one in pair.differences],
        "jobs": [_job_dict(one) for one in pair.jobs if not one.is_equal],
    }


def _job_dict(job: JobPair) -> dict[str, Any]:
    return {
        "a": None if job.a is None else job.a.number,
        "b": None if job.b is None else job.b.number,
        "draws": [
            {
                "a": None if one.a is None else one.a.number,
                "b": None if one.b is None else one.b.number,
                "differences": [difference.as_dict() for difference in one.differences],
            }
            for one in job.draws
            if not one.is_equal
        ],
        "differences": [one.as_dict() for one in job.differences],
        "pixels": None if job.pixels is None else job.pixels.as_dict(),
    }


def picture_of(frames: Sequence[FramePair]) -> Image | None:
    """Return the difference picture, as `Comparison.picture` describes it."""
    for pair in frames:
        jobs = [pair.shown, *pair.jobs]
        for job in jobs:
            if (
                job is None
                or pair.a is None
                or job.a is None
                or job.pixels is None
                or job.pixels.mask is None
            ):
                continue
            image = pair.a.picture_of(job.a)
            if image is not None:
                return difference_picture(image, job.pixels.mask)
    return None

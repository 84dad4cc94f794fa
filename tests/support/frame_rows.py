"""Published measurements of frames that jobs of our own can repeat, and what the model says.

`docs/timing.md` has them as a table, written by `python -m tests.support.frame_rows`.
"""

from dataclasses import dataclass
from functools import cache

from tests.support import frame_jobs as jobs
from tests.support.timing_rows import FITTED, KEPT, PRINTED, Row, as_table

from vc4lab.timing.boards import BoardSpeed
from vc4lab.timing.chip import load_chip
from vc4lab.timing.frames.frame import Frame
from vc4lab.timing.graphics.model import FrameModel
from vc4lab.timing.graphics.result import FrameTiming

HERTZ = 250e6
"""Clock of the board, a Pi Zero W."""
SPEED = BoardSpeed(HERTZ, 3.6e9)
BM = "bm project, Pi Zero W, 250 MHz"
PIXELS = jobs.WIDTH * jobs.HEIGHT
LAYERS = 2, 6


@dataclass(frozen=True)
class Range(Row):
    """A measurement that is given as a range, `least` to `most`; `measured` is between them."""

    least: float = 0
    most: float = 0

    @property
    def error(self) -> float:
        """How far the model is outside of the range."""
        value = self.model()
        nearest = min(max(value, self.least), self.most)
        return abs(value - nearest) / nearest


@cache
def timed(make: str, **options: int) -> FrameTiming:
    """A job of `frame_jobs`, alone."""
    frame: Frame = getattr(jobs, make)(**options)
    return next(iter(FrameModel(load_chip("videocore4"), SPEED).run([frame])))


def microseconds(clocks: float) -> float:
    return clocks / HERTZ * 1e6


def rate(make: str = "fill", **options: int) -> float:
    """Pixels a clock: of frames with more layers than others have."""
    few, many = (timed(make, layers=count, **options).rendering for count in LAYERS)
    return (LAYERS[1] - LAYERS[0]) * PIXELS / (many - few)


def megapixels(**options: int) -> float:
    return rate("texture_fill", **options) * HERTZ / 1e6


@cache
def flat_shared() -> float:
    few, many = (
        next(
            iter(
                FrameModel(load_chip("videocore4"), SPEED).run(
                    [jobs.fill(count, jobs.flat(switches=True), 2)]
                )
            )
        ).rendering
        for count in LAYERS
    )
    return (LAYERS[1] - LAYERS[0]) * PIXELS / (many - few)


ROWS = (
    Row(
        "clear of 60 tiles of RGB565", 211, "us", BM, "A", FITTED,
        lambda: microseconds(timed("clear").rendering),
    ),
    Row(
        "one triangle: binning", 3, "us", BM, "A", FITTED,
        lambda: microseconds(timed("triangle").binning),
    ),
    Row(
        "one triangle (over a third of the frame; bm does not say): rendering", 296, "us", BM, "B",
        KEPT, lambda: microseconds(timed("triangle").rendering),
    ),
    Row(
        "20,000 tiny triangles, NV: binning of each", 34, "clocks", BM, "A", FITTED,
        lambda: timed("tiny").binning / 20_000,
    ),
    Row(
        "20,000 tiny triangles, NV: rendering of each", 51, "clocks", BM, "A", FITTED,
        lambda: timed("tiny").rendering / 20_000,
    ),
    Row("flat fill", 3.24, "pixels a clock", BM, "A", FITTED, rate),
    Row(
        "tiny triangles through vertex shaders: rendering of each", 53, "clocks", BM, "B", KEPT,
        lambda: timed("tiny_gl").rendering / 20_000,
    ),
    Range(
        "texture in T format, one thread", 401, "Mpixel/s", BM, "B", KEPT, megapixels,
        384, 418,
    ),
    Row(
        "texture in T format, two threads", 511, "Mpixel/s", BM, "B", KEPT,
        lambda: megapixels(threads=2),
    ),
    Row(
        "texture in raster format", 97, "Mpixel/s", BM, "B", FITTED, lambda: megapixels(raster=True)
    ),
    Row(
        "flat fill with two threads: of the rate with one", 0.955, "", BM, "B", FITTED,
        lambda: flat_shared() / rate(),
    ),
    Range(
        "texture, scoreboard taken early: of the time", 3, "", BM, "C", PRINTED,
        lambda: megapixels() / megapixels(early=True), 2, 4,
    ),
)  # fmt: skip


def table() -> str:
    """The rows as a table of Markdown."""
    return as_table(ROWS)


if __name__ == "__main__":
    print(table())

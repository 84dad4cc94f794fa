"""A capture as an object to look into: frames, their draws, pictures after each of them, pixels.

capture = Capture("run.vc4cap")
frame = capture.frames[-1]
frame.picture_after(3).save("three.png")
for touch in frame.pixel(200, 150).touches:
    print(touch.text())
"""

from __future__ import annotations

from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vc4lab.debug.frame.collect import facts_of
from vc4lab.debug.frame.draw import CapturedDraw, draw_table
from vc4lab.debug.frame.overlays import overlay_picture
from vc4lab.debug.frame.pixel import followed, loaded_by, pixel_history
from vc4lab.debug.frame.places import NoSuchPlace, Position
from vc4lab.debug.frame.runs import FrameRuns
from vc4lab.debug.frame.shown import ShownPixel, ShownVertex
from vc4lab.debug.frame.tables import Table
from vc4lab.debug.frame.vertex import vertex_history
from vc4lab.images.pixels import png_bytes
from vc4lab.jobs.load import open_jobs
from vc4lab.jobs.store import picture_bytes

if TYPE_CHECKING:
    from PIL.Image import Image

    from vc4lab.debug.frame.copies import TextureSource
    from vc4lab.debug.frame.facts import FrameFact
    from vc4lab.debug.frame.index import FrameDraw
    from vc4lab.debug.frame.pixel import PixelHistory
    from vc4lab.jobs.model import JobsCapture
    from vc4lab.options import GpuOptions


class Capture:
    """A capture of jobs.

    Parameters
    ----------
    source
        An archive, a folder, or jobs that are open.

    Raises CaptureError, also later where a frame is looked into.
    """

    def __init__(self, source: str | Path | JobsCapture, *, gpu: GpuOptions | None = None) -> None:
        self.jobs: JobsCapture = open_jobs(source) if isinstance(source, str | Path) else source
        self.frames: list[CapturedFrame] = []
        self.frames += [CapturedFrame(self.jobs, one, self.frames, gpu) for one in self.jobs.frames]

    def frame(self, number: int | None = None) -> CapturedFrame:
        """The frame with a number; None: the last one that has jobs. Raises NoSuchPlace."""
        found = [one for one in self.frames if number in (None, one.number)]
        if number is None:
            found = [one for one in found if one.source.has_jobs] or found
        if not found:
            numbers = ", ".join(str(one.number) for one in self.frames[:20])
            raise NoSuchPlace(f"it has no frame {number}, but {numbers or 'none'}")
        return found[-1]

    def at(self, link: str) -> tuple[CapturedFrame, Position]:
        """The frame that a link names, such as `#f3/d14`, and the position. Raises NoSuchPlace."""
        position = Position.parse(link)
        frame = self.frame(position.frame)
        if position.draw > len(frame.draws):
            raise NoSuchPlace(f"frame {frame.number} has no draw {position.draw}: it has {len(frame.draws)}")
        if position.job > len(frame.jobs):
            raise NoSuchPlace(f"frame {frame.number} has no job {position.job}: it has {len(frame.jobs)}")
        return frame, position

    def __repr__(self) -> str:
        return f"<Capture of {self.jobs.front} {self.jobs.program}, {len(self.frames)} frames>"

    @property
    def table(self) -> Table[CapturedFrame]:
        """The frames, with the pictures that were captured."""
        return Table(self.frames, ("frame", "picture"), _frame_cells, repr(self)[1:-1])

    def _repr_html_(self) -> str:
        """The table, in a notebook."""
        return self.table._repr_html_()


SMALL = 160
"""Edge of the pictures in a table of frames, in pixels."""


def _frame_cells(frame: CapturedFrame) -> tuple[Any, ...]:
    """Number and picture of a frame, as far as that was captured."""
    return frame.number, small_picture(picture_bytes(frame.source)) or ""


def small_picture(png: bytes | None) -> bytes | None:
    """A PNG file, made small; None: it is none."""
    from PIL import Image as Pictures

    if png is None:
        return None
    try:
        with Pictures.open(BytesIO(png), formats=("PNG",)) as found:
            image = found.convert("RGB")
    except (OSError, ValueError, SyntaxError, Pictures.DecompressionBombError):
        return None
    image.thumbnail((SMALL, SMALL))
    return png_bytes(image)


class CapturedFrame(FrameRuns):
    """A frame of a capture, with all that can be asked of it."""

    @cached_property
    def draws(self) -> Table[FrameDraw]:
        """Its draws, in order, as a table; draw 1 is the first."""
        return draw_table(self.stage.draws)

    @cached_property
    def facts(self) -> FrameFact:
        """Return the meaning of its lists, programs and draws, without addresses. Raises CaptureError."""
        return facts_of(self)

    def draw(self, number: int) -> CapturedDraw:
        """Return a draw with its pictures, state, textures and mesh. Raises NoSuchPlace."""
        if not 1 <= number <= len(self.draws):
            raise NoSuchPlace(f"frame {self.number} has no draw {number}: it has {len(self.draws)}")
        return CapturedDraw(self, self.draws[number - 1], self.facts)

    def _repr_png_(self) -> bytes | None:
        """The picture, in a notebook; None: it has none."""
        try:
            return png_bytes(self.picture)
        except NoSuchPlace:
            return None

    def overlay(self, name: str, draw: int | None = None) -> Image:
        """How the frame was drawn, as a picture: see `overlays.OVERLAYS`. Raises NoSuchPlace."""
        return overlay_picture(self, name, draw)

    def pixel(self, x: int, y: int, *, program: bool = False) -> ShownPixel:
        """Return the history of a pixel of the picture, counted from its top left corner.

        program: with the runs of the programs, instruction by instruction. Raises NoSuchPlace.
        """
        return ShownPixel(**vars(pixel_history(self, x, y, program=program)))

    def vertex(self, draw: int, index: int) -> ShownVertex:
        """Return the history of a vertex of a draw, as indices name it. Raises NoSuchPlace."""
        return ShownVertex(**vars(vertex_history(self, draw, index)))

    def follow(self, history: PixelHistory, source: TextureSource) -> PixelHistory | None:
        """The history of a texel that a touch sampled; None: no captured job drew it."""
        return followed(self, history, source)

    def loaded_by(self, history: PixelHistory) -> PixelHistory | None:
        """The pixel in the frame before that drew what its tile was loaded from; None: none did."""
        return loaded_by(self, history)

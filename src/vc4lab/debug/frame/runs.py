"""A captured frame: its jobs and draws, its picture after each draw, the state at each."""

from __future__ import annotations

from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from vc4lab.debug.frame.places import NoSuchPlace, surface_place
from vc4lab.debug.frame.stage import Stage
from vc4lab.debug.frame.tile_buffer import stored_instead
from vc4lab.jobs.pictures import exchanged, is_blue_first, surface_picture, surface_words
from vc4lab.records.control import parse_record
from vc4lab.v3d.state.frame_mode import COLOUR

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray
    from PIL.Image import Image

    from vc4lab.debug.frame.index import FrameDraw, FrameJob
    from vc4lab.jobs.model import JobsCapture, JobsFrame, Shown
    from vc4lab.options import GpuOptions
    from vc4lab.records.control import Record
    from vc4lab.v3d.state.frame_mode import Surface


class FrameRuns:
    """A frame of a capture; it runs when it is asked for something.

    Attributes
    ----------
    source
        The frame as it was captured.
    """

    def __init__(
        self, jobs: JobsCapture, source: JobsFrame, frames: Sequence[FrameRuns], gpu: GpuOptions | None = None
    ) -> None:
        self.source, self._capture, self._frames, self._gpu = source, jobs, frames, gpu

    def __repr__(self) -> str:
        if "stage" not in vars(self):  # which would have to run for the rest
            return f"<frame {self.number}>"
        return f"<frame {self.number}: {len(self.jobs)} jobs, {len(self.draws)} draws>"

    @property
    def number(self) -> int:
        """As the front counted it."""
        return self.source.number

    @property
    def before(self) -> Sequence[FrameRuns]:
        """The frames of the capture before it, in order."""
        return self._frames[: self._frames.index(self)]

    @cached_property
    def stage(self) -> Stage:
        """Return the stage that runs the frame. Raises CaptureError."""
        return Stage(self._capture, self.source, gpu=self._gpu)

    def give_stage(self) -> Stage:
        """Return the stage for another's use; the next question has another one. Raises CaptureError."""
        found = self.stage
        del self.stage
        return found

    def rest(self) -> None:
        """Give up the memory that running takes; it runs from the start when it is asked again."""
        self.__dict__.pop("stage", None)

    @property
    def jobs(self) -> Sequence[FrameJob]:
        """Its jobs, in order."""
        return self.stage.jobs

    @property
    def draws(self) -> Sequence[FrameDraw]:
        """Its draws, in order; draw 1 is the first."""
        return self.stage.draws

    @cached_property
    def shown(self) -> Shown | None:
        """Return the memory that was on the display; None: it is not known."""
        return self.stage.shown

    @cached_property
    def job(self) -> FrameJob:
        """The job that drew the picture: the last one with the surface that was shown.

        Raises NoSuchPlace.
        """
        colours = [one for one in self.jobs if one.colour is not None]
        shown = [one for one in colours if self._shows(one)]
        drawing = [one for one in self.jobs if one.draws_colours]
        found = next((group[-1] for group in (shown, colours, drawing) if group), None)
        if found is None:
            raise NoSuchPlace(f"frame {self.number} has no job that draws colours")
        return found

    def _shows(self, job: FrameJob) -> bool:
        """Whether what a job draws was shown, as far as it is known."""
        shown = self.shown
        return shown is None or (job.colour is not None and surface_place(job.colour, shown) is not None)

    @cached_property
    def picture(self) -> Image | None:
        """Return the frame's picture; None: its colours are 64 bits wide.

        Of a job that stores all samples it is the mean of each pixel's.

        Raises NoSuchPlace.
        """
        return self.picture_of(self.job)

    @cached_property
    def is_blue_first(self) -> bool:
        """Whether blue is in the lowest byte of its picture's colours."""
        image = self._drawn(self.job, len(self.draws))
        return image is not None and is_blue_first(image, self.source)

    def picture_of(self, job: FrameJob, *, keep: int | None = None) -> Image | None:
        """Return the picture that a job has drawn, of its draws those up to `keep`; None as for `picture`."""
        return self._picture(job, len(self.draws) if keep is None else keep)

    def picture_after(self, draw: int) -> Image | None:
        """The colours that a draw's job has drawn when the draws after it are left out.

        draw: its number; 0 is the picture before any. None: colours are 64 bits wide. Raises
        NoSuchPlace.
        """
        return self._picture(self.job_of(draw), draw)

    def job_of(self, draw: int) -> FrameJob:
        """The job with a draw; of 0 the first one that draws colours. Raises NoSuchPlace."""
        count = len(self.draws)
        if not 0 <= draw <= count:
            raise NoSuchPlace(f"frame {self.number} has no draw {draw}: it has {count}")
        drawing = (one for one in self.jobs if one.draws_colours)
        job = self.jobs[self.draws[draw - 1].job - 1] if draw else next(drawing, None)
        if job is None or not job.draws_colours:
            raise NoSuchPlace(f"the job of draw {draw} in frame {self.number} draws no colours")
        return job

    def _picture(self, job: FrameJob, draw: int) -> Image | None:
        is_blue_first = self.is_blue_first
        image = self._drawn(job, draw)
        return exchanged(image) if image is not None and is_blue_first else image

    def words_of(self, job: FrameJob, draw: int | None = None) -> NDArray[Any] | None:
        """Return the colours that a job has drawn, up to a draw or with all, as words (height, width).

        None: there are none, or they are 64 bits wide and all samples are stored.
        """
        with self._colours(job, len(self.draws) if draw is None else draw) as surface:
            return None if surface is None else surface_words(self.stage.memory, surface)

    def _drawn(self, job: FrameJob, draw: int) -> Image | None:
        """The colours that a job has drawn up to a draw, as the tile buffer has them: red first."""
        with self._colours(job, draw) as surface:
            return None if surface is None else surface_picture(self.stage.memory, surface)

    @contextmanager
    def _colours(self, job: FrameJob, draw: int) -> Iterator[Surface | None]:
        """The surface in memory with the colours that a job has drawn up to a draw; None: there is none."""
        if job.colour is not None:
            self.stage.run(job.number, keep=draw)
            yield job.colour
        elif not job.full or job.mode.wide_colour:
            yield None
        else:
            with stored_instead(self.stage, job, draw, COLOUR) as surface:
                yield surface

    def state(self, draw: int) -> list[Record]:
        """The records of state in force at a draw. Raises NoSuchPlace."""
        if not 1 <= draw <= len(self.draws):
            raise NoSuchPlace(f"frame {self.number} has no draw {draw}: it has {len(self.draws)}")
        one = self.draws[draw - 1]
        self.stage.run(one.job)
        return [parse_record(self.stage.memory.read, address) for address, _identity in one.records]

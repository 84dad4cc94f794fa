"""Captures what `vc4lab run` has the QPUs do: one frame, the program's memory before and after."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vc4lab.capture.pages import PAGE, PageKeeper, page_sum
from vc4lab.jobs.model import BufferNamed, JobsCapture, JobsFrame, PagesLoaded, Settled, Stored, Written
from vc4lab.v3d.user_programs.experiment import CODE, UNIFORM_SPACE, UNIFORMS

if TYPE_CHECKING:
    from vc4lab.v3d.events import ProgramsRun
    from vc4lab.v3d.user_programs.experiment import Experiment


class ExperimentCapture:
    """Listens to an experiment; `capture` has what its programs did when it has run.

    Raises Full when it runs, if its memory does not fit in `limit` bytes.
    """

    def __init__(self, experiment: Experiment, program: str, limit: int) -> None:
        self._experiment = experiment
        self._keeper = PageKeeper(limit)
        self.capture = JobsCapture("run", program, experiment.memory.ram_bytes)
        self.capture.unknowns = experiment.programs.options.unknowns.changed()
        self.capture.pages = self._keeper
        self._frame = JobsFrame(1, start={})
        self._subscription = experiment.programs.listeners.programs_run.subscribe(self._run)

    def _run(self, event: ProgramsRun) -> None:
        areas = [(one.name, one.address, one.size) for one in self._experiment.areas.values()]
        if not event.over:
            self._before(areas)
            return
        memory, events = self._experiment.memory, self._frame.events
        events += [
            Stored(address, size, page_sum(memory.view(address, size))) for _name, address, size in areas
        ]
        self.capture.frames = [self._frame]

    def _before(self, areas: list[tuple[str, int, int]]) -> None:
        events, programs = self._frame.events, self._experiment.programs
        requests = [one.request for one in programs.running.values()] + list(programs.queue)
        ranges = [(CODE, len(self._experiment.code))]
        ranges += [(UNIFORMS + UNIFORM_SPACE * place, UNIFORM_SPACE) for place in range(len(requests))]
        ranges += [(address, size) for _name, address, size in areas]
        pages: dict[int, None] = {}
        for address, size in ranges:
            pages.update(dict.fromkeys(range(address // PAGE, -(-(address + size) // PAGE))))
        for page in pages:
            data = self._experiment.memory.read(page * PAGE, PAGE)
            if any(data):
                events.append(PagesLoaded(page * PAGE, self._keeper.add(data), 1))
        events += [BufferNamed(address, size, name) for name, address, size in areas]
        for one in requests:
            events += [
                Written("SRQUA", one.uniforms),
                Written("SRQUL", one.length),
                Written("SRQPC", one.code),
            ]
        events.append(Settled())

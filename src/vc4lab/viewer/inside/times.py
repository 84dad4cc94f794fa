"""Counters of a frame's jobs, and the time that the chip takes for them, as documents of JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from vc4lab.diagnostics import Reporter
from vc4lab.jobs.player import JobsPlayer
from vc4lab.jobs.work import JobsWatch, JobWork
from vc4lab.options import GpuOptions
from vc4lab.timing.compute.model import NotTimed
from vc4lab.timing.frames.frame import named
from vc4lab.timing.profile.profiler import Profiler
from vc4lab.v3d.counters import SOURCES

if TYPE_CHECKING:
    from vc4lab.debug.frame.capture import Capture, CapturedFrame
    from vc4lab.timing.profile.result import FrameProfile

MOST_JOBS = 16
"""Jobs of a frame that are timed: the first ones."""
MOST_DRAWS = 200
MOST_SHADERS = 8


def _work(capture: Capture, frame: CapturedFrame, *, work: bool) -> list[JobWork]:
    """The jobs of a frame, after the frames before it have run. Raises CaptureError."""
    found: list[JobWork] = []
    with JobsWatch(work=work, counters=True) as watch:
        gpu = GpuOptions(threads=1)
        player = JobsPlayer(capture.jobs, gpu=gpu, reporter=Reporter(), on_v3d=watch.listen)
        for one in capture.jobs.frames:
            player.run(one)
            found = watch.take(one.number)
            if one is frame.source:
                break
    return found


def counters_document(capture: Capture, frame: CapturedFrame) -> dict[str, Any]:
    """Return what the performance counters of each job count. Raises CaptureError."""
    jobs = _work(capture, frame, work=False)
    return {
        "jobs": [one.name for one in jobs],
        "rows": [
            [source.id, source.unit, source.text, [one.counted.get(source.id, 0) for one in jobs]]
            for source in SOURCES
            if source.modelled
        ],
        "not_modelled": [f"{source.unit}: {source.text}" for source in SOURCES if not source.modelled],
    }


def timing_document(capture: Capture, frame: CapturedFrame) -> dict[str, Any]:
    """Return the clocks of a frame's jobs, module by module and draw by draw. Raises CaptureError."""
    profiler = Profiler(ask=False)
    jobs: list[dict[str, Any]] = []
    notes: list[str] = []
    work = _work(capture, frame, work=True)
    for job in work[:MOST_JOBS]:
        for name, one in named(job.name, job.frames):
            try:
                jobs.append(_profile(profiler.add(name, one)))
            except (NotTimed, ValueError) as error:
                notes.append(f"{name}: not timed: {error}")
    if len(work) > MOST_JOBS:
        notes.append(f"{len(work) - MOST_JOBS} more jobs are left out")
    timer = profiler.timer
    return {"chip": timer.chip.name, "board": timer.board, "hertz": timer.hertz, "jobs": jobs, "notes": notes}


def _profile(one: FrameProfile) -> dict[str, Any]:
    timing = one.timing
    longest = sorted(timing.draws, key=lambda draw: -draw.clocks)[:MOST_DRAWS]
    return {
        "name": one.name,
        "width": one.width,
        "height": one.height,
        "clocks": timing.clocks,
        "binning": timing.binning,
        "rendering": timing.rendering,
        "critical": one.critical,
        "boards": [[board.board, board.milliseconds, board.rate] for board in one.boards],
        "shares": [asdict(share) for share in one.shares],
        "timeline": None
        if one.timeline is None
        else {"clocks": list(one.timeline.clocks), "modules": one.timeline.modules},
        "draws": [asdict(draw) for draw in sorted(longest, key=lambda draw: draw.draw)],
        "hints": [str(hint) for hint in one.hints],
        "shaders": [
            {
                "kind": shader.kind,
                "draw": shader.draw,
                "clocks": shader.clocks,
                "instructions": shader.instructions,
                "stalls": dict(shader.stalls),
            }
            for shader in sorted(timing.shaders, key=lambda shader: -shader.clocks)[:MOST_SHADERS]
        ],
        "notes": list(timing.notes),
    }

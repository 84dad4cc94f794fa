"""`vc4lab gl`: what the jobs of the V3D count and take, besides what they draw."""

from __future__ import annotations

import select
from typing import TYPE_CHECKING

from vc4lab.cli.drm_jobs import say_counters

if TYPE_CHECKING:
    from vc4lab.cli.live_timing import LiveTiming
    from vc4lab.driver.gl import Gl
    from vc4lab.driver.queue.events import JobDrawn
    from vc4lab.mesa.server.program import Program


def print_counters(gl: Gl, live: LiveTiming | None) -> None:
    """Print each job's performance counters, named by its frame and draws."""
    from vc4lab.v3d.counters import counts

    v3d = gl.screen.runner.v3d
    before = counts(v3d.events())

    def show(event: JobDrawn) -> None:
        after = counts(v3d.events())
        say_counters(_name(event), {n: after[n] - before[n] for n in after}, live)
        before.update(after)

    v3d.counters.everything = True
    gl.screen.listeners.job.subscribe(show)


def time_jobs(gl: Gl, live: LiveTiming) -> None:
    """Time what the program draws; what came before a picture was for it."""
    live.attach(gl.screen.runner.v3d)
    gl.screen.listeners.frame.subscribe(lambda event: live.picture_shown(event.number))
    clock = live.clock
    if clock is not None:
        gl.screen.listeners.done.subscribe(lambda event: clock.finish(event.begun))


def wait_with(live: LiveTiming, program: Program) -> None:
    """Waits for the chip no longer than the program lives."""
    descriptor = program.descriptor
    if live.clock is not None:
        live.clock.wait = lambda seconds: bool(select.select([descriptor], [], [], seconds)[0])


def _name(event: JobDrawn) -> str:
    draws = event.draws
    if not draws:
        return f"frame {event.frame}"
    last = f"-{draws[-1]}" if len(draws) > 1 else ""
    return f"frame {event.frame}, draw{'s' if last else ''} {draws[0]}{last}"

"""Profiles frames: times them, asks what would change, and looks for hints.

::

    profiler = Profiler("videocore4", "pi3")
    for name, frame in recorded:
        profiler.add(name, frame)
    print(profiler.profile("run").frames[0].critical)
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

from vc4lab.timing.boards import BoardSpeed
from vc4lab.timing.chip import Chip
from vc4lab.timing.frame_times import FrameTimer, model_of, steady_timing
from vc4lab.timing.profile.hints import Facts, Question, facts_of, hints_of, run_hints
from vc4lab.timing.profile.result import FrameProfile, Profile, WhatIf, shares_of
from vc4lab.timing.profile.timeline import Sampler
from vc4lab.timing.profile.what_if import what_ifs

if TYPE_CHECKING:
    from vc4lab.timing.frames.frame import Frame

IDLE = 0.02
"""A module with a smaller share of clocks at work is not asked about."""


class Profiler:
    """Profiles frames one by one.

    ask: whether the model is run again with each module free, and for hints. Raises BadChip,
    ValueError, OSError; `add` also NotTimed.
    """

    def __init__(
        self,
        chip: Chip | str | os.PathLike[str] = "videocore4",
        board: str = "",
        *,
        ask: bool = True,
        timelines: bool = True,
    ) -> None:
        self.timer = FrameTimer(chip, board)
        self._ask, self._timelines = ask, timelines
        self._facts: list[Facts] = []
        self._profiles: list[FrameProfile] = []

    def add(self, name: str, frame: Frame) -> FrameProfile:
        """Times a frame."""
        timer = self.timer
        model = model_of(timer.chip, timer.speed)
        timeline = None
        if self._timelines:
            with Sampler(model.machine) as sampler:
                timing = steady_timing(model, frame)
            timeline = sampler.timeline(timing.clocks)
        else:
            timing = steady_timing(model, frame)
        clocks = {timer.speed: timing.clocks}
        others = [speed for speed in timer.speeds.distinct if speed != timer.speed]
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:  # the model is native code
            taken = pool.map(lambda speed: self._clocks(timer.chip, speed, frame), others)
            clocks.update(zip(others, taken, strict=True))
        found = FrameProfile(
            name,
            frame.width,
            frame.height,
            timing,
            timer.speeds.times(clocks),
            shares_of(timing),
            frame.totals(),
            timeline=timeline,
        )
        found = self._asked(found, frame)
        self._facts.append(facts_of(frame))
        self._profiles.append(found)
        return found

    @staticmethod
    def _clocks(chip: Chip, speed: BoardSpeed, frame: Frame) -> int:
        return steady_timing(model_of(chip, speed), frame).clocks

    def _asked(self, found: FrameProfile, frame: Frame) -> FrameProfile:
        timer, clocks = self.timer, found.timing.clocks
        question = Question(frame, clocks)
        what_if: tuple[WhatIf, ...] = ()
        if self._ask:
            modules = [one.module for one in found.shares if max(one.busy, one.most) >= IDLE]
            what_if = what_ifs(
                timer.chip, timer.speed, modules, clocks,
                lambda chip, speed: self._clocks(chip, speed, frame),
            )  # fmt: skip
            question = Question(frame, clocks, lambda other: self._clocks(timer.chip, timer.speed, other))
        return replace(found, what_if=what_if, hints=hints_of(question))

    def profile(self, run: str) -> Profile:
        """All of them."""
        timer = self.timer
        return Profile(
            run, timer.chip.name, timer.board, timer.hertz, tuple(self._profiles), run_hints(self._facts)
        )

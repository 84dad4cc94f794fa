"""Reports the programs of a frame: threads, clocks, and what their instructions waited for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vc4lab.timing.compute.kinds import Cause
from vc4lab.timing.frames.columns import Table
from vc4lab.timing.graphics.kinds import SHADER_CAUSE_TEXT
from vc4lab.timing.graphics.result import ShaderUse
from vc4lab.timing.graphics.shaders.tables import ShaderTables
from vc4lab.timing.program_use import by_cause, seen_instruction
from vc4lab.timing.result import HotInstruction

MAX_HOT = 8
"""Instructions of a program that are named."""


class SegmentCounts:
    """Keeps the segments' counts up to now."""

    def __init__(self, programs: ShaderTables) -> None:
        self.programs = programs
        self.executed = programs.segments["executed"].copy()
        self.stalls = programs.segments["stalls"].copy()

    def since(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return how often each segment was executed since, and its stalls by cause."""
        segments = self.programs.segments
        executed, stalls = segments["executed"].copy(), segments["stalls"].copy()
        executed[: len(self.executed)] -= self.executed
        stalls[: len(self.stalls)] -= self.stalls
        return executed, stalls


def shader_uses(
    before: SegmentCounts,
    shaders: Table,
    labels: Sequence[tuple[str, int]],
    slot: int,
    *,
    everything: bool = False,
) -> tuple[ShaderUse, ...]:
    """The programs of a frame that ran since `before`, those with the most clocks first.

    everything: `hot` has all instructions, in their order.

    shaders, labels: as `ShaderTables` had them when the frame's tables were made. A program that
    several draws use is named once, with the first of them.
    """
    executed, stalls = before.since()
    segments = before.programs.segments
    owners = np.array(before.programs.owners, np.int64)
    ran = (shaders["runs"] > 0).nonzero()[0]
    found = []
    for program in np.unique(shaders["program"][ran]).tolist():
        rows = ran[shaders["program"][ran] == program]
        mine = (owners == program).nonzero()[0]
        kind, draw = labels[int(rows[0])]
        code = int(shaders["code"][rows[0]]) & 0xFFFFFFFF
        words = before.programs.programs[program]
        instructions = int((executed[mine] * segments["slots"][mine]).sum())
        counted = segments[mine], executed[mine], stalls[mine], words, code, slot
        hot = _all(*counted) if everything else _hot(*counted)
        found.append(
            ShaderUse(
                kind,
                draw,
                code,
                int(shaders["runs"][rows].sum()),
                instructions,
                int(shaders["clocks"][rows].sum()),
                by_cause(stalls[mine].sum(axis=0), SHADER_CAUSE_TEXT),
                hot,
            )
        )
    return tuple(sorted(found, key=lambda use: (-use.clocks, use.code)))


def _hot(
    segments: Table,
    executed: NDArray[np.int64],
    stalls: NDArray[np.int64],
    words: Sequence[int],
    code: int,
    slot: int,
) -> tuple[HotInstruction, ...]:
    """First instructions of segments, those that waited longest first."""
    waited: dict[int, NDArray[Any]] = {}
    runs: dict[int, int] = {}
    for segment, count, clocks in zip(segments, executed, stalls, strict=True):
        first = int(segment["first"])
        waited[first] = waited.get(first, np.zeros(len(clocks), np.int64)) + clocks
        runs[first] = runs.get(first, 0) + int(count)
    order = sorted(waited, key=lambda first: (-int(waited[first].sum()), first))
    return tuple(
        _seen(words, code, first, runs[first], waited[first], slot)
        for first in order[:MAX_HOT]
        if waited[first][Cause.INSTRUCTIONS :].any()
    )


def _all(
    segments: Table,
    executed: NDArray[np.int64],
    stalls: NDArray[np.int64],
    words: Sequence[int],
    code: int,
    slot: int,
) -> tuple[HotInstruction, ...]:
    """All instructions in their order; what a segment waits for is its first one's."""
    runs = np.zeros(len(words), np.int64)
    waited = np.zeros((len(words), stalls.shape[1]), np.int64)
    for segment, count, clocks in zip(segments, executed, stalls, strict=True):
        first = int(segment["first"])
        runs[first : first + int(segment["slots"])] += count
        waited[first] += clocks
    return tuple(
        _seen(words, code, index, int(runs[index]), waited[index], slot) for index in range(len(words))
    )


def _seen(
    words: Sequence[int], code: int, index: int, runs: int, waited: NDArray[np.int64], slot: int
) -> HotInstruction:
    return seen_instruction(words[index], code + 8 * index, runs, waited, slot, SHADER_CAUSE_TEXT)

"""The performance counters that the functional core does not know: clocks, caches, early Z.

The same numbers and texts as `v3d/counters.py`, which has all the others. They count what the whole
chip did while a frame was rendered, with the binning of the frame after it. A QPU is idle when it
has no thread; what it does for coordinates and vertices is counted from the beginning to the end of
a thread, the rest of its clocks with a thread are fragment shading. Hits are counted as boards
count them: every instruction that was fetched; every uniform that was read and two words more for
each thread; 16 texels for each vector of a TMU, of which those that missed are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from vc4lab.timing.compute.kinds import CAUSES, Cause
from vc4lab.timing.graphics.shaders.tables import ShaderTables
from vc4lab.timing.graphics.state import TaskKind
from vc4lab.timing.machine import Machine
from vc4lab.v3d.counters import SOURCES

if TYPE_CHECKING:
    from vc4lab.timing.graphics.result import FrameTiming
    from vc4lab.timing.graphics.tables import Tables

EARLY_Z, IDLE, VERTICES, FRAGMENTS, EXECUTING, ON_TMU, ON_SCOREBOARD, ON_VARYINGS = (
    2, 13, 14, 15, 16, 17, 18, 19,
)  # fmt: skip
INSTRUCTION_HITS, INSTRUCTION_MISSES, UNIFORM_HITS, UNIFORM_MISSES, TEXTURE_MISSES = (
    20, 21, 22, 23, 25,
)  # fmt: skip
STORER_WAITS, ATTRIBUTES_WAIT, L2_HITS, L2_MISSES = 26, 27, 28, 29

TEXTS = {source.id: source.text for source in SOURCES}
"""By number."""

Numbers = dict[int, int]


def counters(timing: FrameTiming) -> Mapping[str, int]:
    """The counters of a frame, by their texts."""
    return {TEXTS[number]: value for number, value in sorted(timing.counters.items())}


class CounterTotals:
    """Performance counters of the frames drawn. programs: whose segments say what uniforms are read.

    slot: clocks of an instruction.
    """

    def __init__(self, machine: Machine, programs: ShaderTables, slot: int) -> None:
        self.machine, self.programs, self.slot = machine, programs, slot
        self.before = self._totals()

    def restart(self) -> None:
        """From here on."""
        self.before = self._totals()

    def take(self, tables: Tables, clocks: int) -> Numbers:
        """Return the counts of a frame that was rendered in so many clocks; the next one begins here."""
        now = self._totals()
        found = {number: now[number] - self.before[number] for number in now}
        self.before = now
        with_thread = found[FRAGMENTS]  # of all threads so far
        found[FRAGMENTS] = max(with_thread - found[VERTICES], 0)
        found[IDLE] = max(clocks * len(self.machine.states["qpu"]) - with_thread, 0)
        found[EARLY_Z] = _rejected(tables)
        return found

    def _totals(self) -> Numbers:
        """Up to now; FRAGMENTS: of all threads, so far."""
        states = self.machine.states
        found = dict.fromkeys((EARLY_Z, IDLE, STORER_WAITS), 0)
        shading, executing, threads = 0, 0, 0
        stalls = [0] * CAUSES
        for qpu in states["qpu"]:
            shading += qpu.spent[TaskKind.COORDINATES] + qpu.spent[TaskKind.VERTICES]
            executing += sum(qpu.busy)
            threads += sum(qpu.tasks)
            stalls = [sum(pair) for pair in zip(stalls, qpu.common.stalls, strict=True)]
        stalls[Cause.THREAD_SWITCH] = 0  # the other thread ran
        found[VERTICES], found[FRAGMENTS] = shading, executing + sum(stalls)
        found[EXECUTING] = executing
        found[ON_TMU] = stalls[Cause.TMU_RESULT] + stalls[Cause.TMU_ROOM]
        found[ON_SCOREBOARD], found[ON_VARYINGS] = stalls[Cause.SCOREBOARD], stalls[Cause.VARYINGS]
        found[INSTRUCTION_HITS] = executing // self.slot
        segments = self.programs.segments
        read = int((segments["executed"] * segments["uniforms"]).sum())
        found[UNIFORM_HITS] = read + self.programs.ahead * threads
        for number, name in (
            (INSTRUCTION_MISSES, "instruction_cache"),
            (UNIFORM_MISSES, "uniform_cache"),
            (TEXTURE_MISSES, "tmu"),
            (L2_MISSES, "l2"),
        ):
            found[number] = sum(int(cache.tags.misses) for cache in states[name])
        found[L2_HITS] = sum(int(cache.tags.hits) for cache in states["l2"])
        found[ATTRIBUTES_WAIT] = sum(
            int(cache.binning.waited + cache.rendering.waited) for cache in states["vertex_cache"]
        )
        return found


def _rejected(tables: Tables) -> int:
    """Quads that cover something and went to no vector."""
    covered = int(tables.rendered["draws"]["quads"].sum())
    return max(covered - len(tables.rendered["quads"]), 0)

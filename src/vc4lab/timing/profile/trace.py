"""A profile as a trace for Perfetto or chrome://tracing: the Trace Event Format of Chrome, JSON.

Tracks: frames, each thread of the list executor, draws, a track for each kind of module with
slices for times of like load; counters: pieces in the queues. Times are microseconds on the board
that is shown. The number of events is bounded: so many samples a frame, so many draws, so many
frames.
"""

from __future__ import annotations

import json
from typing import Any

from vc4lab.timing.profile.result import FrameProfile, Profile

MAX_DRAWS = 2000
"""Draws of a frame that get a slice of their own: the longest."""
MAX_FRAMES = 200
LEVELS = 10
"""Steps of load in which a module's slices are cut."""
PROCESS = 1
NANOSECONDS = 1000
"""Nanoseconds in a microsecond, the unit of the format; times are whole ones."""
FRAMES, BINNING, RENDERING, FIRST_DRAWS, FIRST_MODULE = 1, 2, 3, 10, 100
LANES = 40
"""Tracks of draws, which overlap; what finds no place there is left out."""


def trace(profile: Profile) -> dict[str, Any]:
    """The trace as one object for `json.dump`."""
    writer = _Writer(1e6 / profile.hertz)
    writer.name(0, "process_name", f"{profile.chip} on {profile.board}: {profile.run}")
    writer.name(FRAMES, "thread_name", "frames")
    writer.name(BINNING, "thread_name", "thread 0: binning")
    writer.name(RENDERING, "thread_name", "thread 1: rendering")
    for frame in profile.frames[:MAX_FRAMES]:
        _frame(writer, frame)
        writer.start += max(frame.timing.clocks, 1)
    return {
        "traceEvents": writer.events,
        "displayTimeUnit": "ms",
        "otherData": {
            "chip": profile.chip,
            "board": profile.board,
            "left out": f"{max(len(profile.frames) - MAX_FRAMES, 0)} frames",
        },
    }


def trace_json(profile: Profile) -> str:
    """The trace as text."""
    return json.dumps(trace(profile), ensure_ascii=True, separators=(",", ":"))


class _Writer:
    """Collects events. start: clocks before the frame at hand."""

    def __init__(self, microseconds: float) -> None:
        self.events: list[dict[str, Any]] = []
        self.start = 0
        self._unit = microseconds
        self._named: set[int] = set()

    def name(self, track: int, what: str, text: str) -> None:
        """Names a track, once, and says where it is among the others."""
        if track in self._named:
            return
        self._named.add(track)
        common = {"ph": "M", "pid": PROCESS, "tid": track, "ts": 0}
        self.events.append({"name": what, **common, "args": {"name": text}})
        if track:
            self.events.append({"name": "thread_sort_index", **common, "args": {"sort_index": track}})

    def slice(self, track: int, category: str, name: str, first: float, last: float, **args: Any) -> None:
        """Something that lasts from a clock of the frame to another.

        Slices of a track may follow one another or lie in each other; viewers drop those that
        overlap otherwise. So ends are rounded, not durations.
        """
        begin, end = self._time(first), self._time(max(last, first))
        self.events.append(
            {
                "name": name, "cat": category, "ph": "X", "pid": PROCESS, "tid": track,
                "ts": begin / NANOSECONDS, "dur": (end - begin) / NANOSECONDS, "args": args,
            }
        )  # fmt: skip

    def _time(self, clock: float) -> int:
        """Nanoseconds of a clock of the frame at hand."""
        return round((self.start + clock) * self._unit * NANOSECONDS)

    def counter(self, name: str, clock: float, **values: float) -> None:
        """Values from a clock on."""
        self.events.append(
            {
                "name": name, "ph": "C", "pid": PROCESS, "tid": 0,
                "ts": self._time(clock) / NANOSECONDS, "args": values,
            }
        )  # fmt: skip


def _frame(writer: _Writer, frame: FrameProfile) -> None:
    timing = frame.timing
    writer.slice(
        FRAMES, "frame", frame.name, 0, timing.clocks,
        clocks=timing.clocks, critical=frame.critical, **frame.totals,
    )  # fmt: skip
    writer.slice(BINNING, "thread", "binning of the next frame", 0, timing.binning)
    writer.slice(RENDERING, "thread", f"{frame.name} rendering", 0, timing.rendering)
    _draws(writer, frame)
    if frame.timeline is not None:
        _modules(writer, frame)
        for name, values in frame.timeline.queues.items():
            for clock, value in zip((0, *frame.timeline.clocks), (*values, 0), strict=True):
                writer.counter(f"queue {name}", clock, pieces=round(value, 2))


def _draws(writer: _Writer, frame: FrameProfile) -> None:
    """Draws overlap; each gets the first track that is free."""
    longest = sorted(frame.timing.draws, key=lambda draw: draw.first - draw.last)[:MAX_DRAWS]
    ends: list[int] = []
    for draw in sorted(longest, key=lambda draw: (draw.first, draw.draw)):
        lane = next((n for n, end in enumerate(ends) if end <= draw.first), len(ends))
        if lane == len(ends):
            if lane == LANES:
                continue
            ends.append(0)
        ends[lane] = draw.last
        writer.name(FIRST_DRAWS + lane, "thread_name", f"draws {lane}")
        writer.slice(
            FIRST_DRAWS + lane, "draw", f"draw {draw.draw}", draw.first, draw.last,
            record=f"0x{draw.record & 0xFFFFFFFF:08x}", quads=draw.quads, vectors=draw.vectors,
            primitives=draw.primitives, front_end_clocks=draw.clocks, setup_clocks=draw.setup,
        )  # fmt: skip


def _modules(writer: _Writer, frame: FrameProfile) -> None:
    """A slice for each stretch of like load; none where a module does nothing."""
    assert frame.timeline is not None
    ends = frame.timeline.clocks
    for number, (name, shares) in enumerate(frame.timeline.modules.items()):
        track = FIRST_MODULE + number
        writer.name(track, "thread_name", name)
        first, level, begin = 0, -1, 0
        for end, share in zip((*ends, ends[-1] if ends else 0), (*shares, -1.0), strict=True):
            now = int(share * LEVELS + 0.999) if share > 0 else (0 if share == 0 else -1)
            if now != level:
                if level > 0:
                    busy = f"{100 * level // LEVELS}%"
                    writer.slice(track, "module", f"{name} up to {busy}", first, begin)
                first, level = begin, now
            begin = end

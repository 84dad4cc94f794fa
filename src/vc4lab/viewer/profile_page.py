"""A profile as a page of HTML: tables, and plots of modules, draws and time."""

from __future__ import annotations

from collections.abc import Mapping

from vc4lab.timing.profile.result import FrameProfile, Profile, queue_kinds
from vc4lab.viewer.page import heading, hint, page, paragraph, table
from vc4lab.viewer.svg_plots import Bar, bars, strips

MAX_FRAMES = 24
"""Frames that have a section of their own: the longest."""
MAX_TABLE = 400
"""Frames in the table."""
MAX_DRAWS = 40
MAX_HOT = 12
LEGEND = ("at work", "no room for what it has done", "nothing to do")


def profile_page(profile: Profile) -> str:
    """The whole file."""
    frames = profile.frames
    parts = [
        paragraph(
            f"{profile.chip} on {profile.board}, {profile.hertz / 1e6:g} MHz. Frames (jobs of "
            f"the V3D): {len(frames)}, {profile.total(profile.board):.4g} ms together. Frames a "
            "second are those of a program that only waits for the GPU.",
            "faint",
        ),
        *(hint(str(one)) for one in profile.hints),
        heading("Frames"),
        _frame_table(profile),
    ]
    longest = sorted(frames, key=lambda frame: -frame.timing.clocks)[:MAX_FRAMES]
    for frame in frames:
        if any(frame is one for one in longest):
            parts += _frame(profile, frame)
    if len(frames) > MAX_FRAMES:
        parts.append(paragraph(f"The {MAX_FRAMES} longest frames are shown in detail.", "faint"))
    return page(f"Where the clocks go: {profile.run}", parts)


def _frame_table(profile: Profile) -> str:
    boards = [one.board for one in profile.frames[0].boards] if profile.frames else []
    rows = [
        (
            frame.name,
            frame.timing.clocks,
            *(one.milliseconds for one in frame.boards),
            frame.board(profile.board).rate,
            frame.critical,
        )
        for frame in profile.frames[:MAX_TABLE]
    ]
    head = ["frame", "clocks", *(f"{name} ms" for name in boards)]
    return table([*head, "frames/s", "bounded by"], rows)


def _frame(profile: Profile, frame: FrameProfile) -> list[str]:
    timing = frame.timing
    unit = 1e3 / profile.hertz
    parts = [
        heading(f"{frame.name}: {timing.clocks:,} clocks"),
        paragraph(
            f"{frame.width}x{frame.height}; binning {timing.binning:,} clocks, rendering "
            f"{timing.rendering:,}; bounded by {frame.critical}."
        ),
        *(hint(str(one)) for one in frame.hints),
        *(paragraph(note, "faint") for note in timing.notes),
        heading("Modules", 3),
        _modules(frame),
    ]
    if frame.what_if:
        parts += [heading("If a module were free", 3), _what_if(frame)]
    if frame.timeline is not None and frame.timeline.clocks:
        ends = [clock * unit for clock in frame.timeline.clocks]
        spans = [
            ("binning (the next)", 0.0, timing.binning * unit),
            ("rendering", 0.0, timing.rendering * unit),
        ]
        rows = list(frame.timeline.modules.items())
        total = max(ends[-1], timing.clocks * unit)
        parts += [heading("Time", 3), strips(ends, rows, total, "ms", spans)]
    if timing.draws:
        parts += [heading("Draws", 3), _draws(frame)]
    parts += [heading("Queues and caches", 3), _queues(frame), _caches(frame)]
    parts += _shaders(frame)
    return parts


def _modules(frame: FrameProfile) -> str:
    return bars(
        [
            Bar(
                f"{one.module} x{one.count}" if one.count > 1 else one.module,
                (one.busy, one.blocked, one.starved),
                f"{one.busy:.0%}" + (f", one {one.most:.0%}" if one.count > 1 else ""),
                f"{one.module}: at work {one.busy:.1%}, blocked {one.blocked:.1%}, "
                f"nothing to do {one.starved:.1%}",
            )
            for one in sorted(frame.shares, key=lambda share: -share.busy)
        ],
        1,
        LEGEND,
    )


def _what_if(frame: FrameProfile) -> str:
    rows = [Bar("as it is", (frame.timing.clocks,), f"{frame.timing.clocks:,}")]
    rows += [
        Bar(one.module, (one.clocks,), f"{one.clocks:,}, {one.speedup:.2f}x", one.changes)
        for one in frame.what_if
    ]
    return bars(rows)


def _draws(frame: FrameProfile) -> str:
    longest = sorted(frame.timing.draws, key=lambda draw: -draw.clocks)[:MAX_DRAWS]
    rows = [
        Bar(
            f"draw {one.draw}",
            (one.clocks,),
            f"{one.clocks:,}; {one.quads:,} quads",
            f"list 0x{one.record & 0xFFFFFFFF:08x}: {one.primitives} primitives, {one.vectors} "
            f"vectors, {one.setup} clocks of setup",
        )
        for one in sorted(longest, key=lambda draw: draw.draw)
    ]
    left = len(frame.timing.draws) - len(longest)
    return bars(rows) + (paragraph(f"{left} shorter draws are left out.", "faint") if left else "")


def _queues(frame: FrameProfile) -> str:
    clocks = max(frame.timing.clocks, 1)
    rows = [
        (one.queue, one.count, one.pieces, one.depth, one.peak, f"{one.mean:.2f}",
         f"{one.full / clocks:.0%}")
        for one in queue_kinds(frame.timing.queues)
    ]  # fmt: skip
    return table(["queue", "how many", "pieces", "depth", "most", "mean", "full"], rows)


def _caches(frame: FrameProfile) -> str:
    kinds: dict[str, list[int]] = {}
    for one in frame.timing.caches:
        row = kinds.setdefault(one.cache, [0, 0])
        row[0] += one.hits
        row[1] += one.misses
    rows = [
        (name, hits, misses, f"{hits / max(hits + misses, 1):.1%}") for name, (hits, misses) in kinds.items()
    ]
    text = table(["cache", "hits", "misses", "found"], rows)
    moved = list(frame.timing.memory_bytes.items())
    return text + (table(["memory", "bytes"], moved) if moved else "")


def _shaders(frame: FrameProfile) -> list[str]:
    parts = []
    for shader in frame.timing.shaders[:16]:
        if not shader.hot:
            continue
        parts.append(
            heading(
                f"{shader.kind} shader of draw {shader.draw} at 0x{shader.code & 0xFFFFFFFF:08x}: "
                f"{shader.clocks:,} clocks of QPUs",
                3,
            )
        )
        rows = [
            (
                f"0x{one.address:08x}",
                one.text,
                one.executed,
                one.clocks,
                ", ".join(f"{cause} {clocks:,}" for cause, clocks in _largest(one.stalls)),
            )
            for one in shader.hot[:MAX_HOT]
        ]
        parts.append(table(["address", "instruction", "times", "clocks", "waited"], rows, (0, 1)))
    return parts


def _largest(stalls: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(((c, n) for c, n in stalls.items() if n), key=lambda item: -item[1])

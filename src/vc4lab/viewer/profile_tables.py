"""A profile in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vc4lab.timing.profile.result import FrameProfile, Profile, queue_kinds

if TYPE_CHECKING:
    from rich.console import Console

WIDTH = 110
"""Columns where there is no terminal."""
MAX_DRAWS = 12
MAX_HOT = 8
MAX_QUEUES = 10
MAX_DETAILS = 4
"""Frames that are shown with all tables, if not all are asked for: the longest."""


def print_profile(profile: Profile, every: bool = False, console: Console | None = None) -> None:
    """Print a table of all frames, and the longest ones (or every one) in detail."""
    console = console or _console()
    frames = "1 frame" if len(profile.frames) == 1 else f"{len(profile.frames)} frames"
    _line(
        console,
        f"{profile.run}: {frames}, {profile.chip} on {profile.board} at "
        f"{profile.hertz / 1e6:g} MHz, {profile.total(profile.board):.4g} ms together",
    )
    boards = [one.board for one in profile.frames[0].boards] if profile.frames else []
    table = _table("frame", *[f"{name} ms" for name in boards], "clocks", "frames/s", "bounded by")
    for frame in profile.frames:
        table.add_row(
            frame.name,
            *[f"{one.milliseconds:.4g}" for one in frame.boards],
            f"{frame.timing.clocks}",
            f"{frame.board(profile.board).rate:.4g}",
            frame.critical,
        )
    console.print(table)
    for one in profile.hints:
        _line(console, str(one))
    longest = sorted(profile.frames, key=lambda frame: -frame.timing.clocks)
    chosen = profile.frames if every else longest[:MAX_DETAILS]
    for frame in profile.frames:
        if any(frame is one for one in chosen):
            _print_frame(console, frame)
    if len(chosen) < len(profile.frames):
        text = f"the {len(chosen)} longest frames in detail; --all shows every one, --job one job"
        _line(console, text)


def _console() -> Console:
    from rich.console import Console

    console = Console()
    return console if console.is_terminal else Console(width=WIDTH)


def _line(console: Console, text: str) -> None:
    """A line as it is; a terminal breaks it where it ends."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def _table(*columns: str) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for number, name in enumerate(columns):
        table.add_column(name, justify="left" if number == 0 else "right", overflow="fold")
    return table


def _print_frame(console: Console, frame: FrameProfile) -> None:
    timing = frame.timing

    def line(text: str) -> None:
        _line(console, text)

    line(
        f"\n{frame.name}: {timing.clocks} clocks, binning {timing.binning}, rendering "
        f"{timing.rendering}; bounded by {frame.critical}"
    )
    for note in timing.notes:
        line(note)
    what_if = {one.module: one for one in frame.what_if}
    table = _table("module", "busy", "busiest", "starved", "blocked", "if it were free", "")
    for share in sorted(frame.shares, key=lambda share: -share.busy):
        free = what_if.get(share.module)
        table.add_row(
            f"{share.module} x{share.count}" if share.count > 1 else share.module,
            *[f"{part:.1%}" for part in (share.busy, share.most, share.starved, share.blocked)],
            f"{free.clocks} clocks" if free else "",
            f"{free.speedup:.2f} times as fast" if free else "",
        )
    console.print(table)
    if timing.draws:
        _print_draws(console, frame)
    if timing.queues:
        _print_queues(console, frame)
    for shader in timing.shaders[:8]:
        if shader.hot:
            line(
                f"{shader.kind} shader of draw {shader.draw} at 0x{shader.code & 0xFFFFFFFF:08x}: "
                f"{shader.threads} threads, {shader.instructions} instructions, "
                f"{shader.clocks} clocks"
            )
        for one in shader.hot[:MAX_HOT]:
            why = ", ".join(
                f"{cause} {clocks}"
                for cause, clocks in sorted(one.stalls.items(), key=lambda item: -item[1])
                if clocks
            )
            line(
                f"  {one.clocks:>10} clocks, {one.executed} times, 0x{one.address:08x} "
                f"`{one.text}`" + (f": {why}" if why else "")
            )
    for hint in frame.hints:
        line(str(hint))


def _print_draws(console: Console, frame: FrameProfile) -> None:
    longest = sorted(frame.timing.draws, key=lambda draw: -draw.clocks)[:MAX_DRAWS]
    table = _table("draw", "list", "clocks", "setup", "primitives", "quads", "vectors")
    for draw in sorted(longest, key=lambda draw: draw.draw):
        counts = (draw.clocks, draw.setup, draw.primitives, draw.quads, draw.vectors)
        table.add_row(str(draw.draw), f"0x{draw.record & 0xFFFFFFFF:08x}", *map(str, counts))
    console.print(table)
    if len(longest) < len(frame.timing.draws):
        _line(console, f"{len(frame.timing.draws) - len(longest)} shorter draws")


def _print_queues(console: Console, frame: FrameProfile) -> None:
    clocks = max(frame.timing.clocks, 1)
    fullest = sorted(queue_kinds(frame.timing.queues), key=lambda queue: -queue.full)
    table = _table("queue", "pieces", "depth", "most", "mean", "full")
    for one in fullest[:MAX_QUEUES]:
        table.add_row(
            f"{one.queue} x{one.count}" if one.count > 1 else one.queue,
            *map(str, (one.pieces, one.depth, one.peak)),
            f"{one.mean:.2f}",
            f"{one.full / clocks:.1%}",
        )
    console.print(table)

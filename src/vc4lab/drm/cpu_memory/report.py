"""Prints the accounts."""

from __future__ import annotations

from vc4lab.drm.cpu_memory.accounts import CpuMemory, Frame, Use
from vc4lab.drm.cpu_memory.profiles import Attribute, Cost, cost_of, rate_with

EXAMPLE_RATES = (60.0,)
SHOWN_ROWS = 20
WORTH_A_RATE = 50e-6
"""Seconds a frame: less does not limit the frame rate."""


def frame_lines(frame: Frame) -> list[str]:
    """One frame's accounts, a line for each process and buffer."""
    return [
        f"frame {frame.number}: {process}, {buffer}, {attribute}: read {_bytes(use.read)}, "
        f"written {_bytes(use.written)}: {use.cost.seconds * 1e3:.2f} ms"
        for (process, buffer, attribute), use in frame.uses.items()
    ]


def report_lines(accounts: CpuMemory) -> list[str]:
    """All frames' accounts, averaged over the frames."""
    if accounts.failure and not accounts.totals:
        return [f"processor memory: programs cannot be observed: {accounts.failure}"]
    count = accounts.frame_count
    if not count:
        return ["processor memory: nothing to report, as no picture was handed to the display"]
    factor = accounts.profile.reread
    often = "once" if factor == 1 else f"{factor:g} times"
    lines = [
        f"processor memory on {accounts.profile.title}, {count} frames, per frame:",
        f"{'process':20} {'buffer':34} {'mapping':15} {'read':>9} {'written':>9} {'ms':>8}",
    ]
    rows = sorted(accounts.totals.items(), key=lambda row: -row[1].cost.seconds)
    for (process, buffer, attribute), use in rows[:SHOWN_ROWS]:
        lines.append(_row(process, buffer, attribute, use, count))
    rest = Use()
    for _, use in rows[SHOWN_ROWS:]:
        rest.add(use)
    if rest.read or rest.written:
        lines.append(_row(f"{len(rows) - SHOWN_ROWS} more", "", "", rest, count))
    now, cached = total_costs(accounts)
    lines.append(
        f"{'all':20} {'':34} {'':15} {'':9} {'':9} {now.seconds * 1e3:8.2f} "
        f"({now.least * 1e3:.2f} to {now.most * 1e3:.2f})"
    )
    if now.seconds > WORTH_A_RATE:
        lines.append(
            f"at most {_rate(1 / now.seconds)} frames a second "
            f"({_rate(1 / max(now.most, 1e-9))} to {_rate(1 / max(now.least, 1e-9))})"
        )
    if now.seconds > max(WORTH_A_RATE, cached.seconds * 1.01):
        for measured in EXAMPLE_RATES:
            rate, least, most = rate_with(measured, cached, now)
            lines.append(
                f"with every buffer cached {cached.seconds * 1e3:.2f} ms: a program that made "
                f"{measured:g} frames a second so would make {_rate(rate)} "
                f"({_rate(least)} to {_rate(most)})"
            )
    lines.append(
        f"The bytes are a lower bound: each touched page counts {often} a frame, and read-backs "
        "of what a program wrote itself are not seen."
    )
    return lines


def total_costs(accounts: CpuMemory) -> tuple[Cost, Cost]:
    """A frame's cost as it is, and with every buffer cached."""
    now, cached = Cost(), Cost()
    for use in accounts.totals.values():
        now += use.cost
        cached += cost_of(accounts.profile, Attribute.CACHED, use.read, use.written)
    return now.per(accounts.frame_count), cached.per(accounts.frame_count)


def _row(process: str, buffer: str, attribute: str, use: Use, count: int) -> str:
    return (
        f"{process[:20]:20} {buffer[:34]:34} {attribute:15} {_bytes(use.read / count):>9} "
        f"{_bytes(use.written / count):>9} {use.cost.seconds / count * 1e3:8.2f}"
    )


def _bytes(size: float) -> str:
    if size >= 1e5:
        return f"{size / 1e6:.2f} MB"
    return f"{size / 1e3:.1f} kB" if size else "-"


def _rate(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}"

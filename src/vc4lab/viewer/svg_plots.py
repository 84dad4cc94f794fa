"""Plots as SVG text, for pages that open without a network: bars, lines, strips over time.

Colours are those of CSS classes (`STYLE`), so that a page may be light or dark; a plot that is
saved alone has them inside (`alone`). Every text is escaped.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

STYLE = """
svg { font: 12px system-ui, sans-serif; max-width: 100%; height: auto; }
svg text { fill: var(--ink, #222); }
svg .faint { fill: var(--faint, #777); }
svg .axis { stroke: var(--rule, #ccc); stroke-width: 1; }
svg .s0 { fill: #2f6fb3; } svg .s1 { fill: #d9822b; } svg .s2 { fill: var(--rest, #d5dae0); }
svg .l0 { stroke: #2f6fb3; } svg .l1 { stroke: #d9822b; } svg .l2 { stroke: #3a8f5b; }
svg .l3 { stroke: #a1488f; } svg .l4 { stroke: #7a6a2d; } svg .l5 { stroke: #4a4f9c; }
svg .l6 { stroke: #b3413a; } svg .l7 { stroke: #3f8f99; }
svg .line { fill: none; stroke-width: 2; }
"""
COLOURS = 8
WIDTH = 860
LABEL = 170
ROW = 20
MAX_ROWS = 64
MAX_LINES = 12


@dataclass(frozen=True)
class Bar:
    """A row of bars: its label, the parts (in the order of the classes), and a text after them."""

    label: str
    parts: tuple[float, ...]
    text: str = ""
    title: str = ""


def bars(rows: Sequence[Bar], most: float = 0, legend: Sequence[str] = ()) -> str:
    """Horizontal bars, one below the other; `most`: what the whole width is worth."""
    shown = rows[:MAX_ROWS]
    most = most or max((sum(row.parts) for row in shown), default=0) or 1
    width = WIDTH - LABEL - 150
    top = 22 if legend else 2
    lines = [_legend(legend)] if legend else []
    for number, row in enumerate(shown):
        y = top + number * ROW
        lines.append(_text(LABEL - 8, y + 13, row.label, "end"))
        x = float(LABEL)
        for kind, part in enumerate(row.parts):
            length = max(part, 0) / most * width
            tip = f"<title>{escape(row.title)}</title>" if row.title else ""
            if length > 0.05:
                lines.append(
                    f'<rect class="s{kind % 3}" x="{x:.1f}" y="{y + 2}" width="{length:.1f}" '
                    f'height="{ROW - 5}">{tip}</rect>'
                )
            x += length
        if row.text:
            lines.append(_text(x + 6, y + 13, row.text, "start", "faint"))
    height = top + len(shown) * ROW + 4
    if len(rows) > MAX_ROWS:
        left = f"{len(rows) - MAX_ROWS} more are left out"
        lines.append(_text(LABEL, height + 12, left, "start", "faint"))
        height += 20
    return svg(WIDTH, height, lines)


@dataclass(frozen=True)
class Series:
    """A line: its name and points."""

    name: str
    points: tuple[tuple[float, float], ...]


def line_plot(series: Sequence[Series], x_label: str, y_label: str) -> str:
    """Lines over a common axis that begins at 0; their names are below, as many as `MAX_LINES`."""
    width, left, right, top, bottom, tall = 640, 64, 20, 30, 44, 250
    shown = series[:MAX_LINES]
    points = [point for one in shown for point in one.points]
    if not points:
        return ""
    low, high = min(x for x, _ in points), max(x for x, _ in points)
    most = nice(max(y for _, y in points))
    log = low > 0 and high / low >= 8
    inner, height = width - left - right, top + tall + bottom + 18 * len(shown)

    def place(x: float, y: float) -> tuple[float, float]:
        if high == low:
            part = 0.5
        elif log:
            part = math.log(x / low) / math.log(high / low)
        else:
            part = (x - low) / (high - low)
        return left + part * inner, top + (1 - y / most) * tall

    lines = [_text(4, 14, y_label, "start", "faint")]
    for step in range(5):
        value = most * step / 4
        y = place(low, value)[1]
        lines.append(_rule("axis", left, y, left + inner, y))
        lines.append(_text(left - 6, y + 4, number_text(value), "end", "faint"))
    marks = sorted({x for x, _ in points})
    for x in marks[:: max(1, len(marks) // 8)]:
        lines.append(_text(place(x, 0)[0], top + tall + 16, number_text(x), "middle", "faint"))
    lines.append(_text(left + inner / 2, top + tall + 34, x_label, "middle"))
    for number, one in enumerate(shown):
        kind = f"line l{number % COLOURS}"
        where = [place(x, y) for x, y in sorted(one.points)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in where)
        lines.append(f'<polyline class="{kind}" points="{path}"/>')
        lines += [f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="2.5"/>' for x, y in where]
        y = top + tall + bottom + 18 * number
        lines.append(_rule(kind, left, y + 4, left + 20, y + 4))
        lines.append(_text(left + 28, y + 8, one.name))
    return svg(width, height, lines)


def _rule(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def strips(ends: Sequence[float], rows: Sequence[tuple[str, Sequence[float]]], total: float,
           unit: str, spans: Sequence[tuple[str, float, float]] = ()) -> str:  # fmt: skip
    """Shares over time: a strip for each row, as high as the share; above them, named spans."""
    width, high = WIDTH - LABEL - 60, 26
    total = max(total, 1e-9)
    lines = []
    y = 4
    for name, first, last in spans[:8]:
        x, length = LABEL + first / total * width, max((last - first) / total * width, 0.5)
        lines.append(f'<rect class="s1" x="{x:.1f}" y="{y}" width="{length:.1f}" height="12"/>')
        lines.append(_text(LABEL - 8, y + 11, name, "end"))
        y += 18
    for name, shares in rows[:MAX_ROWS]:
        base = y + high - 4
        lines.append(_text(LABEL - 8, base - 6, name, "end"))
        lines.append(f'<line class="axis" x1="{LABEL}" x2="{LABEL + width}" y1="{base}" '
                     f'y2="{base}"/>')  # fmt: skip
        path = [f"M{LABEL},{base}"]
        for end, share in zip(ends, shares, strict=False):
            top = base - min(max(share, 0), 1) * (high - 6)
            path.append(f"V{top:.1f}H{LABEL + end / total * width:.1f}")
        path.append(f"V{base}Z")
        lines.append(f'<path class="s0" d="{"".join(path)}"><title>{escape(name)}</title></path>')
        y += high
    for step in range(5):
        x = LABEL + width * step / 4
        lines.append(_text(x, y + 14, number_text(total * step / 4), "middle", "faint"))
    lines.append(_text(LABEL + width + 26, y + 14, unit, "start", "faint"))
    return svg(WIDTH, y + 20, lines)


def svg(width: float, height: float, lines: Sequence[str]) -> str:
    """The picture."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}" role="img">'
    )
    return "\n".join([head, *lines, "</svg>"])


def alone(plot: str) -> str:
    """A plot as a file of its own: with its colours, on white."""
    head, _, rest = plot.partition(">")
    paper = '<rect width="100%" height="100%" fill="#fff"/>'
    style = re.sub(r"var\(--\w+, (#\w+)\)", r"\1", STYLE)  # not every viewer knows variables
    return f"{head}><style>{style}</style>{paper}{rest}\n"


def nice(value: float) -> float:
    """The next number above that is 1, 2, 2.5, 4, 5 or 8 times a power of ten."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 2.5, 4, 5, 8, 10, 20) if step * power >= value)


def number_text(value: float) -> str:
    """A number as short as can be: 65536 is 64k where that is exact."""
    if value >= 1024 and float(value).is_integer() and int(value) % 1024 == 0:
        whole = int(value)
        return f"{whole >> 20}M" if whole % (1 << 20) == 0 else f"{whole >> 10}k"
    return f"{value:.4g}"


def _legend(names: Sequence[str]) -> str:
    lines = []
    x = LABEL
    for kind, name in enumerate(names):
        lines.append(f'<rect class="s{kind % 3}" x="{x}" y="4" width="11" height="11"/>')
        lines.append(_text(x + 16, 14, name))
        x += 30 + 8 * len(name)
    return "\n".join(lines)


def _text(x: float, y: float, text: str, anchor: str = "start", kind: str = "") -> str:
    name = f' class="{kind}"' if kind else ""
    return f'<text{name} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text[:80])}</text>'

"""A page of HTML in one file: no network, no scripts; light or dark as the reader has it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from vc4lab.viewer.svg_plots import STYLE

_CSS = """
:root { color-scheme: light dark; --ink: #1c2128; --faint: #667; --rule: #d4d9df; --rest: #d5dae0;
  --paper: #fff; --band: #f4f6f8; }
@media (prefers-color-scheme: dark) { :root { --ink: #e3e6ea; --faint: #9aa3ad; --rule: #3a424b;
  --rest: #3a424b; --paper: #15191e; --band: #1d2329; } }
body { font: 15px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; }
h3 { font-size: 1rem; margin: 1.4rem 0 .4rem; }
table { border-collapse: collapse; margin: .6rem 0; font-size: .92rem; }
th, td { padding: .18rem .8rem .18rem 0; text-align: left; border-bottom: 1px solid var(--rule);
  vertical-align: top; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
code { font-family: ui-monospace, monospace; font-size: .88em; }
.hint { background: var(--band); border-left: 3px solid #d9822b; padding: .35rem .7rem;
  margin: .4rem 0; }
.faint { color: var(--faint); }
.wide { overflow-x: auto; }
"""
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""The page's content security policy: it loads nothing, and has its styles inside."""


def page(title: str, parts: Sequence[str], *, images: bool = False) -> str:
    """The whole file. images: it has pictures, inside."""
    policy = f"{POLICY}; img-src data:" if images else POLICY
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title>",
            f"<style>{_CSS}{STYLE}</style></head><body>",
            f"<h1>{escape(title)}</h1>",
            *parts,
            "</body></html>",
            "",
        ]
    )


def heading(text: str, level: int = 2) -> str:
    """A heading."""
    return f"<h{level}>{escape(text)}</h{level}>"


def paragraph(text: str, kind: str = "") -> str:
    """A paragraph; kind: a CSS class."""
    name = f' class="{kind}"' if kind else ""
    return f"<p{name}>{escape(text)}</p>"


def hint(text: str) -> str:
    """A hint."""
    return f'<div class="hint">{escape(text)}</div>'


def table(head: Sequence[str], rows: Sequence[Sequence[object]], code: Sequence[int] = ()) -> str:
    """A table; numbers are on the right; code: columns with code in them."""
    numeric = [all(isinstance(row[n], int | float) for row in rows) for n in range(len(head))]
    cells = [
        "<tr>" + "".join(
            f"<th{_right(numeric[n])}>{escape(name)}</th>" for n, name in enumerate(head)
        ) + "</tr>"
    ]  # fmt: skip
    for row in rows:
        line = []
        for n, value in enumerate(row):
            text = escape(f"{value:,.4g}" if isinstance(value, float) else _whole(value))
            line.append(f"<td{_right(numeric[n])}>{_code(text) if n in code else text}</td>")
        cells.append("<tr>" + "".join(line) + "</tr>")
    return '<div class="wide"><table>' + "\n".join(cells) + "</table></div>"


def _right(numeric: bool) -> str:
    return ' class="n"' if numeric else ""


def _code(text: str) -> str:
    return f"<code>{text}</code>"


def _whole(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)

"""Checked recordings as a page with pictures, and as JUnit's XML for CI."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING
from xml.sax.saxutils import quoteattr

from vc4lab.viewer.page import heading, page, paragraph

if TYPE_CHECKING:
    from vc4lab.recordings.check import Checked, FrameCheck

MOST_BYTES = 64 << 20
"""Bytes of all pictures of a page."""
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\xa0-\ud7ff\ue000-\ufffd]")
_STYLE = """<style>
.trio { display: flex; gap: .8rem; align-items: flex-start; }
.trio figure { margin: 0; flex: 1 1 0; min-width: 0; }
.trio img { width: 100%; image-rendering: pixelated; border: 1px solid var(--rule); }
figcaption { font-size: .85rem; color: var(--faint); }
</style>"""


def summary(found: Sequence[Checked]) -> str:
    """How many recordings and frames there are, and what became of them."""
    frames = [frame for one in found for frame in one.frames]
    count = {status: sum(frame.status == status for frame in frames) for status in ("same", "changed", "new")}
    broken = sum(bool(one.error) for one in found)
    parts = [f"{count['same']} the same", f"{count['changed']} changed"]
    parts += [f"{count['new']} with nothing to compare with"] * bool(count["new"])
    text = f"{_count(len(found), 'recording')}, {_count(len(frames), 'frame')}: {', '.join(parts)}"
    return text + f"; {_count(broken, 'recording')} cannot be drawn" * bool(broken)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def check_page(found: Sequence[Checked], title: str) -> str:
    """The page: each change with the picture that is held, the one of now, and the pixels that differ."""
    parts = [_STYLE, paragraph(summary(found), "faint")]
    left, hidden = MOST_BYTES, 0
    for one in found:
        changed = one.of("changed")
        if not changed and not one.error:
            continue
        parts.append(heading(one.path))
        if one.error:
            parts.append(paragraph(one.error))
        if one.accepted:
            parts.append(paragraph("accepted: the recording holds the new pictures now", "faint"))
        for frame in changed:
            parts += [heading(frame.name, 3), paragraph(frame.text())]
            size = sum(len(png) for png in _pictures(frame).values())
            if size > left:
                hidden += 1
                continue
            left -= size
            parts.append(_trio(frame))
    if hidden:
        parts.append(paragraph(f"the pictures of {hidden} more frames are left out: too many bytes", "faint"))
    return page(title, parts, images=True)


def _pictures(frame: FrameCheck) -> dict[str, bytes]:
    named = (("held", frame.before), ("now", frame.after), ("difference", frame.difference))
    return {name: png for name, png in named if png is not None}


def _trio(frame: FrameCheck) -> str:
    figures = [
        f'<figure><img alt="{name}" src="data:image/png;base64,{b64encode(png).decode()}">'
        f"<figcaption>{escape(name)}</figcaption></figure>"
        for name, png in _pictures(frame).items()
    ]
    return f'<div class="trio">{"".join(figures)}</div>' if figures else ""


def check_junit(found: Sequence[Checked], name: str) -> str:
    """JUnit's XML: a test case for each recording."""
    failures, errors = sum(one.is_changed for one in found), sum(bool(one.error) for one in found)
    seconds = sum(one.seconds for one in found)
    counts = f'tests="{len(found)}" failures="{failures}" errors="{errors}" time="{seconds:.3f}"'
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f"<testsuites {counts}>"]
    lines.append(f"  <testsuite name={_attribute(name)} {counts}>")
    for one in found:
        case = f'    <testcase classname="vc4lab.check" name={_attribute(one.path)} time="{one.seconds:.3f}"'
        if one.error:
            lines += [f"{case}>", f"      <error message={_attribute(one.error)}/>", "    </testcase>"]
        elif one.is_changed:
            texts = [f"{frame.name}: {frame.text()}" for frame in one.of("changed")]
            lines += [
                f"{case}>",
                f"      <failure message={_attribute(texts[0])}>{_text(chr(10).join(texts))}</failure>",
                "    </testcase>",
            ]
        else:
            lines.append(f"{case}/>")
    return "\n".join([*lines, "  </testsuite>", "</testsuites>", ""])


def _text(text: str) -> str:
    """A text as XML may have it."""
    return escape(_UNPRINTABLE.sub("?", text), quote=False)


def _attribute(text: str) -> str:
    return quoteattr(_UNPRINTABLE.sub("?", text))

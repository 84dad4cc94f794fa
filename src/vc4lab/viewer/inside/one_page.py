"""A frame as one page that opens from disk without a server: the page's files and answers, in one file.

The answers are those that a server would give, of some draws and some pixels; what is not in the page
it says itself.
"""

from __future__ import annotations

import base64
import hashlib
import json
from typing import TYPE_CHECKING, Any

from vc4lab.capture.errors import CaptureError
from vc4lab.debug.frame.overlays import OVERLAYS
from vc4lab.debug.frame.places import NoSuchPlace
from vc4lab.viewer.inside.questions import ask
from vc4lab.viewer.inside.server import JSON, SCRIPTS, page_file
from vc4lab.viewer.inside.session import Refused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vc4lab.viewer.inside.session import Session

MOST_BYTES = 12 << 20
"""Characters of a page, about."""
MOST_DRAWS = 40
"""Draws with pictures and state."""
GRID = 12, 9
"""Columns and rows of pixels with histories, over the picture."""
MOST_VIEWS = 24
"""Lists of a job."""
MOST_JOBS = 12
POLICY = "default-src 'none'; script-src 'sha256-{}'; style-src 'unsafe-inline'; img-src data:"


class _Answers:
    """Collects answers until there is no more room."""

    def __init__(self, session: Session, frame: int, room: int) -> None:
        self.session, self.frame, self.room = session, frame, room
        self.answers: dict[str, Any] = {}
        self.left_out = 0
        self._known: dict[bytes, str] = {}

    def add(self, question: str, **values: Any) -> Any:
        """Ask, and keep the answer: that, or None where there is none or no more room."""
        given = {"frame": self.frame, **values} if question != "capture" else {}
        pairs = "&".join(sorted(f"{name}={one}" for name, one in given.items()))
        key = f"{question}?{pairs}" if pairs else question
        if key in self.answers:
            return self.answers[key]
        try:
            answer = ask(self.session, question, {name: str(one) for name, one in given.items()})
        except (NoSuchPlace, Refused, CaptureError):
            return None
        is_json = answer.kind == JSON
        size = len(answer.data) if is_json else len(answer.data) * 4 // 3
        same = self._known.setdefault(hashlib.sha256(answer.data).digest(), key)
        if same != key:
            self.answers[key] = {"same": same}
        elif size > self.room:
            self.left_out += 1
            return None
        else:
            self.room -= size
            self.answers[key] = json.loads(answer.data) if is_json else base64.b64encode(answer.data).decode()
        return json.loads(answer.data) if is_json else True


def sampled(count: int, most: int, wanted: int = 0) -> list[int]:
    """Return some of the numbers 0 … count, the first, the last and `wanted` among them."""
    if count + 1 <= most:
        return list(range(count + 1))
    found = {round(count * place / (most - 1)) for place in range(most)}
    return sorted(found | {wanted})


def one_page(
    session: Session,
    frame: int,
    *,
    draw: int | None = None,
    pixel: tuple[int, int] | None = None,
    grid: tuple[int, int] = GRID,
    most: int = MOST_BYTES,
) -> str:
    """Return the page of a frame, `most` characters long, about.

    draw, pixel: what it shows first. grid: columns and rows of pixels with histories.
    Raises NoSuchPlace, CaptureError.
    """
    found = _Answers(session, frame, most)
    session.frame(frame)
    capture = found.add("capture")
    found.add("shown")
    whole = found.add("frame")
    if whole is None:
        raise NoSuchPlace(f"frame {frame} cannot be drawn, or its list is longer than {most} characters")
    total = len(whole["draws"])
    draws = sampled(total, MOST_DRAWS, min(draw or total, total))
    first = total if draw is None else min(draw, total)
    for number in [first, *(one for one in draws if one != first)]:
        _draw(found, whole, number)
    pixels = _pixels(found, whole, pixel, grid)
    for job in whole["jobs"][:MOST_JOBS]:
        found.add("target", job=job["job"])
    for name in OVERLAYS:
        for number in {first, total}:
            found.add("overlay", draw=number, name=name)
    found.add("counters")
    found.add("timing")
    _lists(found, whole["job"])
    notes = [
        f"Frame {frame} of {session.name}, as `vc4lab view --html` has saved it.",
        f"It has pictures and states at {len([one for one in draws if one])} of {total} draws,"
        f" and the histories of {len(pixels)} pixels.",
        "Of textures, lists and runs of programs those of these draws and pixels are in it, as far as there"
        f" was room{f'; {found.left_out} answers had none' if found.left_out else ''}.",
        "With the capture itself, `vc4lab view` shows all of it, and draws what is edited.",
    ]
    data = {
        "answers": found.answers,
        "draws": draws,
        "pixels": pixels,
        "notes": notes,
        "link": _link(frame, whole, first, pixel),
    }
    capture["frames"] = [one for one in capture["frames"] if one["number"] == frame]
    capture["chosen"] = frame
    found.answers["capture"] = capture
    return _file(data)


def _draw(found: _Answers, whole: dict[str, Any], number: int) -> None:
    """Add all that a page asks about a draw."""
    found.add("picture", draw=number)
    if not number:
        return
    found.add("state", draw=number)
    for stage in whole["draws"][number - 1]["programs"]:
        found.add("program", draw=number, stage=stage)
    found.add("mesh", draw=number)
    for place, texture in enumerate(found.add("textures", draw=number) or ()):
        for level in range(len(texture["levels"]) if texture["shows"] else 0):
            for channels in ("rgb", "alpha") if texture["alpha"] else ("rgb",):
                found.add("texture", draw=number, texture=place, level=level, channels=channels)


def _pixels(
    found: _Answers, whole: dict[str, Any], wanted: tuple[int, int] | None, grid: tuple[int, int]
) -> list[tuple[int, int, int]]:
    """Histories over the picture: job, column and row of each."""
    number = whole["job"]
    if not number:
        return []
    job = whole["jobs"][number - 1]
    width, height = job["width"], job["height"]
    places = [
        (width * (2 * column + 1) // (2 * grid[0]), height * (2 * row + 1) // (2 * grid[1]))
        for row in range(grid[1])
        for column in range(grid[0])
    ]
    kept = []
    for x, y in dict.fromkeys(([wanted] if wanted is not None else []) + places):
        history = found.add("pixel", job=number, x=x, y=y)
        if history is None:
            continue
        kept.append((number, x, y))
        for place, touch in enumerate(history["touches"]):
            if touch["outcome"] == "drawn" or (x, y) == wanted:
                found.add("run", job=number, x=x, y=y, touch=place)
    return kept


def _lists(found: _Answers, job: int) -> None:
    """The lists of the job that drew the picture."""
    views = found.add("views", job=job) if job else None
    for number in range(min(len(views or ()), MOST_VIEWS)):
        first, total = 0, 1
        while first < total:
            part = found.add("view", job=job, view=number, first=first)
            if part is None or not part["rows"]:
                break
            first, total = first + len(part["rows"]), part["total"]


def _link(frame: int, whole: dict[str, Any], draw: int, pixel: tuple[int, int] | None) -> str:
    parts = [f"#f{frame}", f"d{draw}"]
    if pixel is not None and whole["job"]:
        parts.append(f"p{pixel[0]},{pixel[1]}")
    return "/".join(parts)


def _file(data: dict[str, Any]) -> str:
    """The file: styles, scripts and answers inside."""
    script = "\n" + "\n".join(page_file(name) for name in SCRIPTS)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    # In a script nothing may look like the end of it.
    answers = json.dumps(data, separators=(",", ":"), ensure_ascii=True).replace("<", "\\u003c")
    parts: Sequence[tuple[str, str]] = (
        ("policy", f'<meta http-equiv="Content-Security-Policy" content="{POLICY.format(digest)}">'),
        ("style", f"<style>\n{page_file('style.css')}</style>"),
        ("data", f'<script id="answers" type="application/json">{answers}</script>'),
        ("scripts", f"<script>{script}</script>"),
    )
    text = page_file("index.html")
    for name, part in parts:
        head, found, tail = text.partition(f"<!-- {name} -->")
        assert found
        text = head + part + tail
    return text

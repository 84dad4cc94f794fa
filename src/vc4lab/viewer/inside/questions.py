"""The questions that a page may ask: one table, from which the server and the single page both take them.

answer = ask(session, "pixel", {"frame": "3", "job": "1", "x": "200", "y": "150"})
answer.kind, answer.data
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple

from vc4lab.capture.errors import CaptureError
from vc4lab.debug.frame.overlays import OVERLAYS
from vc4lab.debug.frame.places import NoSuchPlace
from vc4lab.viewer.inside import frames, histories, images, meshes, programs, times, views
from vc4lab.viewer.inside.server import JSON, Reply
from vc4lab.viewer.inside.session import MOST_EDITIONS, Refused, Session

if TYPE_CHECKING:
    from vc4lab.debug.frame.capture import CapturedFrame

PNG = "image/png"
MOST_TEXT = 4096
"""Characters of an edited line."""
MOST_PICTURE = 16 << 20
"""Bytes of an edited picture."""
_WORD = (1 << 32) - 1
_MOST = 1 << 30


class Answer(NamedTuple):
    """An answer: kind of media, and bytes."""

    kind: str
    data: bytes


class Bad(Exception):  # noqa: N818 - an answer to a question
    """A question that cannot be understood; the text says why."""


@dataclass(frozen=True)
class Asked:
    """A question with its values.

    Attributes
    ----------
    numbers, words
        By name.
    """

    session: Session
    numbers: Mapping[str, int]
    words: Mapping[str, str]

    @property
    def frame(self) -> CapturedFrame:
        """Return the frame that is asked about. Raises NoSuchPlace, CaptureError."""
        return self.session.frame(self.numbers["frame"], self.numbers["edition"])

    def word(self, name: str) -> str:
        """Return a word."""
        return self.words[name]

    def of(self, name: str) -> int:
        """Return a number."""
        return self.numbers[name]


@dataclass(frozen=True)
class Question:
    """A question: the values that it takes, and the function that answers it.

    Attributes
    ----------
    answer
        Gives a document, or bytes of a PNG file.
    numbers
        Lowest, highest of each; all are whole and wanted.
    words
        The choices for each.
    """

    answer: Callable[[Asked], Any]
    numbers: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


FRAME = {"frame": (0, _MOST), "edition": (0, MOST_EDITIONS)}
DRAW = {**FRAME, "draw": (0, _MOST)}
JOB = {**FRAME, "job": (1, _MOST)}
PIXEL = {**JOB, "x": (0, 4095), "y": (0, 4095)}


def _lists_at(asked: Asked) -> views.JobLists:
    """The lists of the job of the draw that is asked about."""
    frame = asked.frame
    return asked.session.lists(frame, programs.drawn(frame, asked.of("draw")).job)


def _program(asked: Asked) -> Any:
    lists = _lists_at(asked)
    known = asked.session.opened.programs
    return programs.program_document(asked.frame, asked.of("draw"), asked.word("stage"), lists, known)


def _view(asked: Asked) -> Any:
    view = asked.of("view")
    return views.view_document(
        asked.session.list_with(asked.frame, asked.of("job"), view), view, asked.of("first")
    )


def _texture(asked: Asked) -> bytes:
    place = asked.of("draw"), asked.of("texture"), asked.of("level")
    return images.texture_png(asked.frame, *place, asked.word("channels"))


def _vertex(asked: Asked) -> Any:
    return histories.vertex_document(asked.frame, asked.of("draw"), asked.of("vertex"))


QUESTIONS: dict[str, Question] = {
    "capture": Question(lambda a: frames.capture_document(a.session)),
    "frame": Question(lambda a: frames.frame_document(a.frame), FRAME),
    "shown": Question(lambda a: images.shown(a.frame), FRAME),
    "picture": Question(lambda a: images.png(a.frame.picture_after(a.of("draw"))), DRAW),
    "overlay": Question(
        lambda a: images.png(a.frame.overlay(a.word("name"), a.of("draw"))), DRAW, {"name": OVERLAYS}
    ),
    "target": Question(lambda a: images.png(images.target(a.frame, a.of("job"))), JOB),
    "state": Question(lambda a: frames.state_document(a.frame, a.of("draw"), _lists_at(a)), DRAW),
    "pixel": Question(lambda a: histories.pixel_document(a.frame, a.of("job"), a.of("x"), a.of("y")), PIXEL),
    "run": Question(
        lambda a: histories.run_document(a.frame, a.of("job"), a.of("x"), a.of("y"), a.of("touch")),
        {**PIXEL, "touch": (0, _MOST)},
    ),
    "vertex": Question(_vertex, {**DRAW, "vertex": (0, _WORD)}),
    "views": Question(lambda a: views.views_document(a.session.lists(a.frame, a.of("job"))), JOB),
    "view": Question(_view, {**JOB, "view": (0, _MOST), "first": (0, _MOST)}),
    "program": Question(_program, DRAW, {"stage": programs.STAGES}),
    "mesh": Question(lambda a: meshes.mesh_document(a.frame, a.of("draw")), DRAW),
    "textures": Question(lambda a: images.textures_document(a.frame, a.of("draw"), _lists_at(a)), DRAW),
    "texture": Question(
        _texture, {**DRAW, "texture": (0, 255), "level": (0, 15)}, {"channels": ("rgb", "alpha", "rgba")}
    ),
    "counters": Question(
        lambda a: times.counters_document(a.session.capture(a.of("edition")), a.frame), FRAME
    ),
    "timing": Question(lambda a: times.timing_document(a.session.capture(a.of("edition")), a.frame), FRAME),
}


def ask(session: Session, name: str, values: Mapping[str, str]) -> Answer:
    """Answer a question. Raises Bad, NoSuchPlace, Refused, CaptureError."""
    question = QUESTIONS.get(name)
    if question is None:
        raise Bad(f"there is no question {name[:40]!r}, but {', '.join(QUESTIONS)}")
    strange = set(values) - set(question.numbers) - set(question.words)
    if strange:
        raise Bad(f"{name} has no {min(strange)[:40]!r}")
    numbers = {key: _number(key, values.get(key), *limits) for key, limits in question.numbers.items()}
    words = {key: _word(key, values.get(key), choices) for key, choices in question.words.items()}
    with session.lock:
        found = question.answer(Asked(session, numbers, words))
    if isinstance(found, bytes):
        return Answer(PNG, found)
    return Answer(JSON, document(found))


def document(value: Any) -> bytes:
    """Return a value as JSON, which has no infinities: they are null."""
    return json.dumps(_finite(value), separators=(",", ":"), allow_nan=False).encode()


def _finite(value: Any) -> Any:
    """A value without what JSON lacks."""
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return value


def _number(name: str, text: str | None, least: int, most: int) -> int:
    if text is None:
        if name == "edition":
            return 0
        raise Bad(f"{name} is missing")
    if not (text.isascii() and text.isdigit() and len(text) <= 10 and least <= int(text) <= most):
        raise Bad(f"{name} is a number from {least} to {most}, not {text[:40]!r}")
    return int(text)


def _word(name: str, text: str | None, choices: tuple[str, ...]) -> str:
    if text not in choices:
        raise Bad(f"{name} is one of {', '.join(choices)}")
    return text


def edit(session: Session, wanted: Any) -> dict[str, Any]:
    """Make an edition with something changed: its number.

    wanted: an object with `frame`, `edition`, `job`, and `view`, `line`, `text` for a line, or `file`
    and `png` (base64) for a texture. Raises Bad, NoSuchPlace, Refused, CaptureError.
    """
    if not isinstance(wanted, dict):
        raise Bad("an edit is an object")
    frame, edition, job = (_member(wanted, name, 0, _MOST) for name in ("frame", "edition", "job"))
    with session.lock:
        found = session.frame(frame, edition)
        lists = session.lists(found, job)
        try:
            if "png" in wanted:
                changes = _texels(lists, wanted)
            else:
                text = wanted.get("text")
                if not isinstance(text, str) or len(text) > MOST_TEXT:
                    raise Bad(f"text is a line of at most {MOST_TEXT} characters")
                view, line = (_member(wanted, name, 0, _MOST) for name in ("view", "line"))
                changes = views.edited_line(session.list_with(found, job, view), view, line, text)
        except ValueError as error:
            raise Refused(str(error)) from None
        return {"edition": session.edit(frame, edition, changes)}


def _member(wanted: dict[str, Any], name: str, least: int, most: int) -> int:
    value = wanted.get(name)
    if type(value) is not int or not least <= value <= most:
        raise Bad(f"{name} is a number from {least} to {most}")
    return value


def _texels(lists: views.JobLists, wanted: dict[str, Any]) -> list[tuple[int, int, bytes]]:
    """The changes that an edited picture makes. Raises Bad, ValueError."""
    text, file = wanted["png"], wanted.get("file")
    if not isinstance(text, str) or len(text) > MOST_PICTURE or not isinstance(file, str):
        raise Bad("file and png are texts")
    if file not in lists.textures:
        raise Bad(f"the job has no texture {file[:40]!r} that is a picture")
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise Bad("png is no base64") from None
    view, place = lists.textures[file]
    return [(place, address, new) for address, new in view.edits(data)]


class Desk:
    """Answers anyone, whatever is asked: what is wrong is a sentence in JSON (`server.Answers`)."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def answer(self, name: str, values: Mapping[str, str]) -> Reply:
        """Answer a question."""
        return _replied(lambda: ask(self.session, name, values))

    def edit(self, wanted: Any) -> Reply:
        """Make an edition: its number."""
        return _replied(lambda: Answer(JSON, document(edit(self.session, wanted))))


def _replied(work: Callable[[], Answer]) -> Reply:
    try:
        return HTTPStatus.OK, *work()
    except (Bad, NoSuchPlace, Refused) as error:
        status, text = HTTPStatus.UNPROCESSABLE_ENTITY, str(error)
    except CaptureError as error:
        status, text = HTTPStatus.UNPROCESSABLE_ENTITY, f"{error} (vc4lab explain {error.code})"
    except Exception as error:
        said = " ".join(str(error).split())[:300]
        status, text = HTTPStatus.INTERNAL_SERVER_ERROR, f"CLI-003: {type(error).__name__}: {said}"
    return status, JSON, document({"error": text})

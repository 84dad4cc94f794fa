"""The points of a sweep, and the file with what came of them: one line of JSON a point.

A line is known by its key: the digest of the run, of every figure of the chip, of the board and of
the model's source, without docstrings and comments. So a sweep that was interrupted goes on where it
was, and what another version of the model said is not mixed in.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from vc4lab.files import read_file
from vc4lab.timing.changes import Change, changed, text_of
from vc4lab.timing.chip import Chip

MAX_RESULTS = 1 << 28
"""Bytes of a results file."""


@dataclass(frozen=True)
class Point:
    """A run on a chip. chip: with the changes made; key: see above."""

    run: str
    digest: str
    changes: Mapping[Change, float | bool]
    chip: Chip
    board: str

    @property
    def key(self) -> str:
        """The digest by which the point's line in a file of results is found."""
        figures = {s: {k: f.value for k, f in keys.items()} for s, keys in self.chip.figures.items()}
        parts = (self.digest, json.dumps(figures, sort_keys=True), self.board, model_digest())
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]

    @property
    def text(self) -> str:
        """Its changes in words."""
        return text_of(self.changes) or "as it is"


@dataclass(frozen=True)
class Outcome:
    """The result of a point: clocks of each frame, or why there are none."""

    key: str
    run: str
    chip: str
    board: str
    set: Mapping[str, float | bool]
    clocks: int
    milliseconds: float
    frames: Mapping[str, int] = field(default_factory=dict)
    error: str = ""

    def to_line(self) -> str:
        """A line of the file."""
        return json.dumps(asdict(self), ensure_ascii=True)


def points_of(
    runs: Iterable[tuple[str, str]], chip: Chip, grid: Iterable[Mapping[Change, float | bool]], board: str
) -> list[Point]:
    """Every run at every point, the chip as it is first. Raises BadChip.

    runs: path and digest.
    """
    runs = list(runs)
    found = [Point(run, digest, {}, chip, board) for run, digest in runs]
    for changes in grid:
        other = changed(chip, changes, "--set")
        found += [Point(run, digest, changes, other, board) for run, digest in runs]
    return found


def outcome(point: Point, frames: Mapping[str, int], error: str = "") -> Outcome:
    """Make the result of a point; frames: clocks of each."""
    clocks = sum(frames.values())
    return Outcome(
        point.key,
        point.run,
        point.chip.name,
        point.board,
        {f"{section}.{key}": value for (section, key), value in point.changes.items()},
        clocks,
        1000 * clocks / point.chip.real(f"boards.{point.board}", "clock"),
        dict(frames),
        error,
    )


def broken(point: Point, why: str) -> Outcome:
    """Make the result of a point that could not be timed; why: in words."""
    return outcome(point, {}, why)


def read_outcomes(path: Path) -> dict[str, Outcome]:
    """The points that a file has, by key; lines that are none (cut off) are left out.

    Raises OSError.
    """
    if not path.exists():
        return {}
    found = {}
    for line in read_file(path, MAX_RESULTS, plain=True).decode(errors="replace").splitlines():
        one = _outcome_of(line)
        if one is not None and not one.error:
            found[one.key] = one
    return found


def _outcome_of(line: str) -> Outcome | None:
    try:
        table = json.loads(line)
        return Outcome(
            key=_text(table["key"]),
            run=_text(table["run"]),
            chip=_text(table["chip"]),
            board=_text(table["board"]),
            set={_text(name): _number(value) for name, value in table["set"].items()},
            clocks=int(_number(table["clocks"])),
            milliseconds=float(_number(table["milliseconds"])),
            frames={_text(name): int(_number(n)) for name, n in table["frames"].items()},
            error=_text(table["error"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
        return None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _number(value: Any) -> float | bool:
    if not isinstance(value, int | float):
        raise TypeError
    return value


@cache
def model_digest() -> str:
    """Return the digest of the model's source, in hexadecimal."""
    return source_digest(Path(__file__).parents[1], "sweep", "profile")


def source_digest(folder: Path, *without: str) -> str:
    """Return the digest of what a folder's Python files do: comments, docstrings and layout are left out.

    without: names of folders that do not count. A file that cannot be parsed counts as it is.
    """
    sha = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        if path.parent.name not in without:
            name, text = path.relative_to(folder).as_posix(), path.read_bytes()
            sha.update(f"{name}\0{_undocumented(text)}\0".encode())
    return sha.hexdigest()[:16]


def _undocumented(text: bytes) -> str:
    """A module's source without its docstrings, those of attributes included, and without comments."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return text.decode(errors="replace")
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [one for one in body if not _is_text(one)]  # type: ignore[attr-defined]
    return ast.unparse(tree)


def _is_text(statement: ast.stmt) -> bool:
    """Whether a statement is nothing but a string."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )

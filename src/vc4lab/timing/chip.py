"""Reads a chip's file: every figure with its source, and whether it was fitted to measurements.

A user's file says which chip it is like, and only what is different; with `assumed = true` nothing
says that what it takes over is so, too::

    like = "videocore4"
    [tmu]
    per_slice = 4
"""

from __future__ import annotations

import difflib
import functools
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vc4lab.timing.figures import ALL_QUEUES, BOARD, MODULES, QUEUE, TMU_REQUESTS, Spec
from vc4lab.toml_files import NotToml, read_toml

FOLDER = Path(__file__).parent / "chips"
NAMES = ("videocore4", "cluster", "cluster-2", "cluster-4")
MAX_FILE = 1 << 18
_HEADER = re.compile(r"\s*\[\s*([^\[\]#]+?)\s*\]\s*(#.*)?$")
_KEY = re.compile(r"\s*([A-Za-z0-9_\-\".]+)\s*=")
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}$")


class BadChip(ValueError):  # noqa: N818 - said to the user as it is
    """A file that describes no chip; the text says where, why, and what would do."""


@dataclass(frozen=True)
class Figure:
    """A figure of a chip: where it comes from, whether it was fitted, where it stands."""

    value: float
    source: str
    fitted: bool
    place: str


@dataclass(frozen=True)
class Chip:
    """A chip: its figures by section and key, and the boards that have it."""

    name: str
    title: str
    figures: Mapping[str, Mapping[str, Figure]]

    def whole(self, section: str, key: str) -> int:
        """A figure without a fraction."""
        return int(self.figures[section][key].value)

    def real(self, section: str, key: str) -> float:
        """A figure."""
        return float(self.figures[section][key].value)

    @property
    def boards(self) -> tuple[str, ...]:
        """Names of the boards."""
        return tuple(s.removeprefix("boards.") for s in self.figures if s.startswith("boards."))

    def place(self, section: str, key: str) -> str:
        """Return a figure's place in the chip's file: file and line, section and key."""
        return self.figures[section][key].place

    def with_figures(self, figures: Mapping[str, Mapping[str, Figure]], name: str) -> Chip:
        """Return a copy with other figures. Raises BadChip for those that do not go together."""
        _check(figures)
        return Chip(name, self.title, figures)


class _File:
    """A file being read: knows its lines."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.lines: dict[tuple[str, str], int] = {}
        section = ""
        for number, line in enumerate(text.splitlines(), 1):
            header, key = _HEADER.match(line), _KEY.match(line)
            if header:
                section = header[1].replace('"', "").replace(" ", "")
                self.lines.setdefault((section, ""), number)
            elif key:
                self.lines.setdefault((section, key[1].replace('"', "")), number)

    def place(self, section: str, key: str = "") -> str:
        """FILE:LINE: [section] key."""
        line = self.lines.get((section, key)) or self.lines.get((section, "")) or 0
        where = f"{self.name}:{line}" if line else self.name
        what = f"[{section}] {key}".strip() if section else key
        return f"{where}: {what}"

    def bad(self, section: str, key: str, what: str) -> BadChip:
        """The error at a key."""
        return BadChip(f"{self.place(section, key)}: {what}")


def load_chip(name: str | os.PathLike[str]) -> Chip:
    """A chip of the package by name, or a file. Raises BadChip, OSError."""
    try:
        return _named(str(name), ())
    except FileNotFoundError:
        if not _NAME.match(str(name)):
            raise
        text = f"{name}: no chip and no file has this name{_near(str(name), NAMES)}"
        raise BadChip(text) from None


def _named(name: str, before: tuple[str, ...]) -> Chip:
    return _of_package(name) if name in NAMES else _load(Path(name), name, before)


@functools.cache
def _of_package(name: str) -> Chip:
    path = FOLDER / f"{name}.toml"
    return _load(path, path.name, ())


def _load(path: Path, shown: str, before: tuple[str, ...]) -> Chip:
    try:
        table, text = read_toml(path, MAX_FILE)
    except NotToml as error:
        raise BadChip(f"{shown}: {error}") from None
    file = _File(shown, text)
    like = table.pop("like", None)
    figures: dict[str, dict[str, Figure]] = {}
    title = ""
    if like is not None:
        if not isinstance(like, str):
            raise file.bad("", "like", "the name of a chip or of a file, as a text")
        if like not in NAMES and len(before) > 4:
            raise file.bad("", "like", "files that are like each other in a circle")
        try:
            base = _named(like if like in NAMES else str(path.parent / like), (*before, shown))
        except OSError as error:
            known = ", ".join(NAMES)
            raise file.bad(
                "", "like", f"{like[:60]!r} cannot be read ({error.strerror}); chips: {known}"
            ) from None
        title = base.title
        figures = {section: dict(keys) for section, keys in base.figures.items()}
    assumed = table.pop("assumed", False)
    if not isinstance(assumed, bool):
        raise file.bad("", "assumed", "whether what it takes over is assumed: true or false")
    if assumed:
        figures = {section: _assumed(keys, str(like)) for section, keys in figures.items()}
    found = table.pop("title", title)
    if not isinstance(found, str):
        raise file.bad("", "title", "a text")
    for section, key, value, spec in _entries(file, table):
        figures.setdefault(section, {})[key] = _figure(file, section, key, value, spec)
    _complete(file, figures)
    _check(figures)
    return Chip(path.stem, found, figures)


def _assumed(keys: Mapping[str, Figure], like: str) -> dict[str, Figure]:
    """The figures of another chip, which nothing says of this one."""
    return {key: replace(figure, source=f"assumed: as {like}", fitted=False) for key, figure in keys.items()}


def _entries(file: _File, table: dict[str, Any]) -> list[tuple[str, str, Any, Spec]]:
    """All figures of a file: section, key, value and what the value may be."""
    found = []
    for section, keys in table.items():
        if not isinstance(keys, dict):
            raise file.bad("", section, f"no section has this key{_near(section, MODULES)}")
        if section in ("queues", "boards"):
            for name, inner in keys.items():
                place = f"{section}.{name}"
                if section == "queues" and name not in ALL_QUEUES:
                    raise file.bad(place, "", f"there is no such queue{_near(name, ALL_QUEUES)}")
                if not _NAME.match(name):
                    raise file.bad(place, "", "names have small letters, digits, - and _")
                specs = QUEUE if section == "queues" else BOARD
                specs = TMU_REQUESTS if place == "queues.tmu_requests" else specs
                found += _keys(file, place, inner, specs)
        elif section in MODULES:
            found += _keys(file, section, keys, MODULES[section])
        else:
            raise file.bad(section, "", f"there is no such section{_near(section, MODULES)}")
    return found


def _keys(
    file: _File, section: str, keys: Any, specs: Mapping[str, Spec]
) -> list[tuple[str, str, Any, Spec]]:
    if not isinstance(keys, dict):
        raise file.bad(section, "", "a section with figures")
    for key in keys:
        if key not in specs:
            raise file.bad(section, key, f"there is no such figure{_near(key, specs)}")
    return [(section, key, value, specs[key]) for key, value in keys.items()]


def _near(word: str, known: Any) -> str:
    near = difflib.get_close_matches(word, list(known), 1)
    return f"; did you mean {near[0]}?" if near else f"; there are {', '.join(known)}"


def _figure(file: _File, section: str, key: str, value: Any, spec: Spec) -> Figure:
    source, fitted = f"{file.name}, no source given", False
    if isinstance(value, dict):
        extra = set(value) - {"value", "source", "fitted"}
        if extra or "value" not in value:
            what = f"it has {sorted(extra)[0]!r}" if extra else "the value is missing"
            raise file.bad(section, key, f"a figure has value, source and fitted; {what}")
        source, fitted, value = value.get("source", ""), value.get("fitted", False), value["value"]
        if not isinstance(source, str) or not source:
            raise file.bad(section, key, "source: a text that says where the value comes from")
        if not isinstance(fitted, bool):
            raise file.bad(section, key, "fitted: true or false")
    return Figure(_number(file, section, key, value, spec), source, fitted, file.place(section, key))


def _number(file: _File, section: str, key: str, value: Any, spec: Spec) -> float:
    if spec.flag:
        if not isinstance(value, bool):
            raise file.bad(section, key, f"{spec.text}: true or false")
        return float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise file.bad(section, key, f"{spec.text}: a number, not {str(value)[:40]!r}")
    whole = spec.whole or spec.power
    if isinstance(value, float) and (not math.isfinite(value) or (whole and value % 1)):
        raise file.bad(section, key, f"{spec.text}: {value} is not a whole number")
    unit = f" {spec.unit}" if spec.unit else ""
    if not spec.least <= value <= spec.most:
        range_ = f"from {spec.least:g} to {spec.most:g}{unit}"
        shown = str(value) if abs(value) < 1e18 else "so large a number"
        raise file.bad(section, key, f"{spec.text}: {range_}, not {shown}")
    if spec.power and int(value) & int(value) - 1:
        above = 1 << int(value).bit_length()
        text = f"{spec.text}: a power of two, such as {above // 2} or {above}, not {value}"
        raise file.bad(section, key, text)
    return value


def spec_of(chip: Chip, section: str, key: str, where: str) -> Spec:
    """Return what values a figure of a chip may have; where: names it. Raises BadChip if there is none."""
    file = _File(where, "")
    if section not in chip.figures:
        known = [name for name in chip.figures if name.startswith(section.split(".")[0] + ".")]
        text = _near(section, known or MODULES)
        raise file.bad("", section, f"there is no such section{text}")
    specs = MODULES.get(section, BOARD if section.startswith("boards.") else QUEUE)
    specs = TMU_REQUESTS if section == "queues.tmu_requests" else specs
    if key not in specs:
        raise file.bad(section, key, f"there is no such figure{_near(key, specs)}")
    return specs[key]


def changed_figure(chip: Chip, section: str, key: str, value: float | bool, where: str) -> Figure:
    """Another value for a figure. Raises BadChip, in the words of a chip's file."""
    spec, file = spec_of(chip, section, key, where), _File(where, "")
    return Figure(_number(file, section, key, value, spec), where, False, file.place(section, key))


def _complete(file: _File, figures: Mapping[str, Mapping[str, Figure]]) -> None:
    """Nothing may be missing."""
    wanted = [(s, k) for s, specs in MODULES.items() for k in specs]
    wanted += [(f"queues.{name}", key) for name in ALL_QUEUES for key in QUEUE]
    wanted += [(s, key) for s in figures if s.startswith("boards.") for key in BOARD]
    for section, key in wanted:
        if key not in figures.get(section, {}):
            raise file.bad(section, key, f'missing; `like = "{NAMES[0]}"` takes what a file does not say')
    if not any(section.startswith("boards.") for section in figures):
        raise file.bad("boards", "", "a chip is on one board at least: [boards.NAME]")


def _check(figures: Mapping[str, Mapping[str, Figure]]) -> None:
    """Figures that do not go together."""
    for section in ("instruction_cache", "uniform_cache", "tmu", "l2"):
        size, ways = figures[section]["bytes"], figures[section]["ways"]
        sets = int(size.value) // 64 // int(ways.value)
        if sets < 1 or sets & sets - 1 or int(size.value) != sets * int(ways.value) * 64:
            raise BadChip(
                f"{ways.place}: {ways.value:g} ways do not divide the {size.value:g} bytes "
                f"({size.place}) into a power of two of lines of 64 bytes"
            )

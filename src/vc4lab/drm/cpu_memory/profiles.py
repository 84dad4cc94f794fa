"""Profiles: bytes per second that a board's processor reads and writes, and what that costs.

A profile is a TOML file; those of the package lie in `data/cpu_memory` and can be copied from.
Every rate names where it was published, or says that it is assumed.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from vc4lab.toml_files import NotToml, read_toml

FOLDER = Path(__file__).parents[2] / "data" / "cpu_memory"
NAMES = ("ultra96", "pi3")
MAX_FILE = 1 << 16
SLOWEST, FASTEST = 1e3, 1e12
"""Bytes a second that a rate may be."""
MAX_READS = 1000.0
"""The largest re-read factor."""


class Attribute(StrEnum):
    """How a mapping goes through the processor's caches."""

    CACHED = "cached"
    WRITE_COMBINED = "write-combined"
    UNCACHED = "uncached"


class BadProfile(ValueError):  # noqa: N818 - said to the user as it is
    """A profile that cannot be used; the text says where and why."""


@dataclass(frozen=True)
class Rate:
    """Bytes a second, with the range that the sources leave."""

    rate: float
    low: float
    high: float
    source: str


@dataclass(frozen=True)
class Profile:
    """A board's processor and memory."""

    title: str
    read: Mapping[Attribute, Rate]
    write: Mapping[Attribute, Rate]
    clean: Rate
    """Writing dirty lines of the cache back."""
    invalidate: Rate
    """Forgetting lines of the cache."""
    reread: float = 1.0
    """How often a page is read once it is read at all."""

    def maintenance(self, read: float, written: float) -> float:
        """The cost of keeping cached pages right beside a device that does not see the cache."""
        return read / self.invalidate.rate + written / self.clean.rate


@dataclass(frozen=True)
class Cost:
    """Seconds of the processor: by the profile's own rates, and by the ends of their ranges."""

    seconds: float = 0.0
    least: float = 0.0
    most: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.seconds + other.seconds, self.least + other.least, self.most + other.most)

    def per(self, count: int) -> Cost:
        """The part of one of so many frames."""
        count = max(1, count)
        return Cost(self.seconds / count, self.least / count, self.most / count)


def cost_of(profile: Profile, attribute: Attribute, read: float, written: float) -> Cost:
    """Reading and writing so many bytes of touched pages."""
    reads, writes = profile.read[attribute], profile.write[attribute]
    read *= profile.reread
    return Cost(
        read / reads.rate + written / writes.rate,
        read / reads.high + written / writes.high,
        read / reads.low + written / writes.low,
    )


def rate_with(measured: float, before: Cost, now: Cost) -> tuple[float, float, float]:
    """Frames a second when a frame's accesses cost `now`, not `before` as when it was measured.

    By the profile's rates, then the least and the most that their ranges allow.
    """
    rest = 1.0 / measured
    return (
        1.0 / max(1e-9, rest - before.seconds + now.seconds),
        1.0 / max(1e-9, rest - before.least + now.most),
        1.0 / max(1e-9, rest - before.most + now.least),
    )


def load_profile(name: str | os.PathLike[str]) -> Profile:
    """A profile of the package by name, or a file. Raises BadProfile, OSError."""
    place = FOLDER / f"{name}.toml" if name in NAMES else Path(name)
    try:
        table, _text = read_toml(place, MAX_FILE)
    except NotToml as error:
        raise BadProfile(f"{name}: {error}") from None
    return parse_profile(table, str(name))


def parse_profile(table: dict[str, Any], name: str) -> Profile:
    """A profile from its tables. Raises BadProfile, with `name` as the place."""
    _only(table, name, ("title", "reread", "maintenance", *Attribute))
    title = table.get("title", name)
    if not isinstance(title, str):
        raise BadProfile(f"{name}: title is a text, not {_short(title)}")
    rates: dict[str, dict[str, Rate]] = {}
    parts = {attribute.value: ("read", "write") for attribute in Attribute}
    for part, kinds in (*parts.items(), ("maintenance", ("clean", "invalidate"))):
        section = _section(table, part, name)
        _only(section, f"{name}: [{part}]", kinds)
        rates[part] = {
            kind: _rate(_section(section, kind, f"{name}: [{part}]"), f"{name}: [{part}.{kind}]")
            for kind in kinds
        }
    return Profile(
        title,
        {attribute: rates[attribute]["read"] for attribute in Attribute},
        {attribute: rates[attribute]["write"] for attribute in Attribute},
        rates["maintenance"]["clean"],
        rates["maintenance"]["invalidate"],
        _number(table.get("reread", 1), f"{name}: reread", 1.0, MAX_READS),
    )


def _section(table: dict[str, Any], key: str, place: str) -> dict[str, Any]:
    found = table.get(key)
    if found is None:
        raise BadProfile(f"{place}: {key} is missing")
    if not isinstance(found, dict):
        raise BadProfile(f"{place}: {key} is a table, not {_short(found)}")
    return found


def _rate(table: dict[str, Any], place: str) -> Rate:
    _only(table, place, ("rate", "low", "high", "source"))
    if "rate" not in table:
        raise BadProfile(f"{place}: rate is missing (bytes a second)")
    rate = _number(table["rate"], f"{place} rate", SLOWEST, FASTEST)
    low = _number(table.get("low", rate), f"{place} low", SLOWEST, FASTEST)
    high = _number(table.get("high", rate), f"{place} high", SLOWEST, FASTEST)
    if not low <= rate <= high:
        raise BadProfile(f"{place}: low <= rate <= high is violated: {low:g}, {rate:g}, {high:g}")
    source = table.get("source", "")
    if not isinstance(source, str) or not source.strip():
        raise BadProfile(f"{place}: source is missing (where the rate was published)")
    return Rate(rate, low, high, source)


def _number(value: Any, place: str, least: float, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadProfile(f"{place} is a number, not {_short(value)}")
    if math.isnan(value) or not least <= value <= most:
        raise BadProfile(f"{place}: {value:g} is not from {least:g} to {most:g}")
    return float(value)


def _only(table: dict[str, Any], place: str, known: tuple[str, ...]) -> None:
    for key in table:
        if key not in known:
            raise BadProfile(f"{place}: unknown key {_short(key)}; the keys are {', '.join(known)}")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."

"""Changes of a chip's figures, as `vc4lab sweep --set` and questions like "what if" make them.

::

    setting = read_setting("slices.count=1..4")     # slices=1..4 and l2.size=64k mean the same
    for point in grid([setting], chip):
        chip_of_point = changed(chip, point)
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from vc4lab.timing.chip import BadChip, Chip, changed_figure, spec_of
from vc4lab.timing.figures import Spec

Change = tuple[str, str]
"""A section of a chip's file and a key in it."""

MAX_VALUES = 4096
"""Values of one setting."""
MAX_POINTS = 1 << 16
"""Points of a grid."""
MAX_TEXT = 1 << 16

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]+)?(?:[eE][0-9]{1,2})?)([kKmMgG]?)(?:i?[bB])?$")
_RANGE = re.compile(r"(.+?)\.\.(.+?)(?:([:*])(.+))?$")
_ALIASES = {"size": "bytes"}


@dataclass(frozen=True)
class Setting:
    """A figure and the values that it takes; text: as it was written."""

    section: str
    key: str
    values: tuple[float | bool, ...]
    text: str

    @property
    def name(self) -> str:
        """The figure, as tables name it."""
        return f"{self.section}.{self.key}"


def read_setting(text: str, chip: Chip) -> Setting:
    """`SECTION.KEY=VALUES`. Raises BadChip with a sentence.

    VALUES are separated by commas: numbers with k, M or G (of 1024), ranges `1..4`, `0..40:10` (a
    step) and `16k..256k*2` (a factor), true and false. All of them are checked.
    """
    shown = f"--set {text[:60]}"
    name, equals, values = text.partition("=")
    if not equals or not name.strip() or len(text) > MAX_TEXT:
        raise BadChip(f"{shown}: write SECTION.KEY=VALUES, such as slices.count=1..4")
    section, key = _figure_name(name.strip())
    spec = spec_of(chip, section, key, shown)
    found: list[float | bool] = []
    for part in values.split(","):
        found += _values(part.strip(), spec, shown)
        if len(found) > MAX_VALUES:
            raise BadChip(f"{shown}: more than {MAX_VALUES} values")
    for value in found:
        changed_figure(chip, section, key, value, shown)
    return Setting(section, key, tuple(dict.fromkeys(found)), text)


def _figure_name(name: str) -> Change:
    """Section and key; a section alone means how many there are (or how deep a queue is)."""
    section, dot, key = name.rpartition(".")
    if not dot:
        section, key = name, "count"
    elif section in ("queues", "boards"):
        section, key = name, "depth" if section == "queues" else "clock"
    key = _ALIASES.get(key, key)
    return section, key


def _values(text: str, spec: Spec, shown: str) -> list[float | bool]:
    if spec.flag:
        known = {"true": True, "false": False}
        if text not in known:
            raise BadChip(f"{shown}: {text[:20]!r}: true or false")
        return [known[text]]
    range_ = _RANGE.match(text)
    if not range_:
        return [_number(text, shown)]
    first, last = _number(range_[1], shown), _number(range_[2], shown)
    step = _number(range_[4], shown) if range_[4] else 1
    if last < first:
        raise BadChip(f"{shown}: the range {text[:40]} ends before it begins")
    times = range_[3] == "*" or (spec.power and range_[3] is None)
    if times:
        step = step if range_[3] else 2
        if step <= 1 or first <= 0:
            raise BadChip(f"{shown}: {text[:40]} never comes to its end; a factor is above 1")
        count = math.floor(math.log(last / first, step) + 1e-9) + 1
        values = [first * step**number for number in range(min(count, MAX_VALUES + 1))]
    else:
        if step <= 0:
            raise BadChip(f"{shown}: {text[:40]} never comes to its end; a step is above 0")
        count = math.floor((last - first) / step + 1e-9) + 1
        values = [first + step * number for number in range(min(count, MAX_VALUES + 1))]
    return [int(value) if float(value).is_integer() else value for value in values]


def _number(text: str, shown: str) -> float:
    found = _NUMBER.match(text.strip())
    if not found or len(text) > 64:
        raise BadChip(f"{shown}: {text[:20]!r} is no value; such as 4, 64k, 1..4, 0..40:10 or 16k..256k*2")
    value = float(found[1]) * _UNITS[found[2].lower()]
    return int(value) if value.is_integer() and value < 1e15 else value


def grid(settings: Sequence[Setting]) -> Iterator[dict[Change, float | bool]]:
    """Every combination, the last setting changing fastest. Raises BadChip."""
    names = [setting.name for setting in settings]
    for name in names:
        if names.count(name) > 1:
            raise BadChip(f"--set {name}: given twice; separate its values by commas")
    count = math.prod(len(setting.values) for setting in settings)
    if count > MAX_POINTS:
        raise BadChip(f"--set: {count} points; a grid has {MAX_POINTS} at most")
    keys = [(setting.section, setting.key) for setting in settings]
    for values in itertools.product(*(setting.values for setting in settings)):
        yield dict(zip(keys, values, strict=True))


def changed(
    chip: Chip, changes: Mapping[Change, float | bool], where: str = "changed", name: str = ""
) -> Chip:
    """A chip with other figures. Raises BadChip for what makes no chip."""
    figures = {section: dict(keys) for section, keys in chip.figures.items()}
    for (section, key), value in changes.items():
        figures[section][key] = changed_figure(chip, section, key, value, where)
    return chip.with_figures(figures, name or chip.name)


def text_of(changes: Mapping[Change, float | bool]) -> str:
    """Changes in one line."""
    return ", ".join(f"{s}.{k}={_shown(v)}" for (s, k), v in changes.items())


def _shown(value: float | bool) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if float(value).is_integer() else f"{value:g}"


def names_of(changes: Iterable[Change]) -> list[str]:
    """The figures, as tables name them."""
    return [f"{section}.{key}" for section, key in changes]

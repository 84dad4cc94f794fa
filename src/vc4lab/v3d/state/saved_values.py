"""Values of attributes that are state, as JSON holds them, and back, with checks.

Of saved machines and of captured jobs; neither is trusted.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

from vc4lab.v3d.state.power_on import set_all

MAX_ELEMENTS = 1 << 21
LARGEST_NUMBER = 1 << 70
LONGEST_TEXT = 1000


class BadValue(ValueError):  # noqa: N818 - becomes a sentence for the user
    """A value of a saved state does not fit where it belongs."""


@dataclass(frozen=True)
class Row:
    """Attributes of an object that are saved under `name`."""

    name: str
    target: Any
    attributes: tuple[str, ...]

    def snapshot(self) -> dict[str, Any]:
        """The values as JSON can hold them."""
        return {name: encode(getattr(self.target, name)) for name in self.attributes}

    def check(self, saved: Any) -> dict[str, Any]:
        """The values that `restore` will set. Raises BadValue."""
        if not isinstance(saved, dict) or set(saved) != set(self.attributes):
            raise BadValue(f"{self.name}: unexpected values")
        values = {}
        for attribute, value in saved.items():
            try:
                values[attribute] = decode(value, getattr(self.target, attribute))
            except (BadValue, TypeError, ValueError):
                raise BadValue(f"{self.name}.{attribute} is invalid") from None
        return values

    def restore(self, values: dict[str, Any]) -> None:
        """Set checked values; containers that others hold keep their identity."""
        set_all(self.target, values)


def encode(value: Any) -> Any:
    """A value as JSON can hold it."""
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).hex()
    if isinstance(value, dict):
        return [[key, encode(item)] for key, item in value.items()]
    if isinstance(value, set):
        return sorted(value)
    if isinstance(value, (list, tuple, deque)):
        return [encode(item) for item in value]
    return value


def decode(value: Any, present: Any) -> Any:
    """A saved value in the form of the present one. Raises BadValue, TypeError, ValueError."""
    if isinstance(present, (bytes, bytearray)):
        return bytes.fromhex(value)
    if isinstance(present, dict):
        found = {key: decode(item, present[key]) for key, item in value if key in present}
        if set(found) != set(present) or len(value) != len(present):
            raise BadValue
        return found
    if isinstance(present, (set, deque)):
        if len(value) > MAX_ELEMENTS:
            raise BadValue
        return [_number(item) for item in value]
    if isinstance(present, list):
        if len(value) != len(present):
            raise BadValue
        return [decode(item, old) for item, old in zip(value, present, strict=True)]
    if present is None:
        return None if value is None else _number(value)
    if isinstance(present, bool):
        if not isinstance(value, bool):
            raise BadValue
        return value
    if isinstance(present, int):
        return None if value is None else _number(value)
    if isinstance(present, str) and isinstance(value, str) and len(value) <= LONGEST_TEXT:
        return value
    raise BadValue


def _number(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > LARGEST_NUMBER:
        raise BadValue
    return value

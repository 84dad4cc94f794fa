"""The table of a capture, `capture.json`: JSON with a version, read with checks.

    table = read_table(files)             # a `Value`
    table["queue"]["frames"][0]["number"].whole(0, 1000)

A `Value` knows where it is in the file, so that what is wrong is named.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from vc4lab.capture.errors import CaptureError

if TYPE_CHECKING:
    from vc4lab.capture.files import Files

NAME = "capture.json"
FORMAT = "vc4lab capture"
VERSION = 2
"""1: frames of the command queue alone."""
TABLE_BYTES = 64 << 20


class Value:
    """A value of the table with its place."""

    def __init__(self, value: Any, place: str, file: str) -> None:
        self.value = value
        self.place = place
        self.file = file

    def wrong(self, text: str) -> CaptureError:
        """An error about it."""
        return CaptureError("CAP-004", f"{self.place}: {text}", self.file)

    def _of(self, kind: type[Any], name: str) -> Any:
        if not isinstance(self.value, kind) or (kind is int and isinstance(self.value, bool)):
            raise self.wrong(f"must be {name}")
        return self.value

    def whole(self, least: int, most: int) -> int:
        """A whole number."""
        number: int = self._of(int, "a whole number")
        if not least <= number <= most:
            raise self.wrong(f"must be from {least} to {most}")
        return number

    def text(self) -> str:
        """A string."""
        found: str = self._of(str, "a text")
        return found

    def flag(self) -> bool:
        """true or false."""
        found: bool = self._of(bool, "true or false")
        return found

    def __getitem__(self, key: str | int) -> Value:
        found = self.get(key)
        if found is None:
            raise self.wrong(f"there is no {key!r}")
        return found

    def get(self, key: str | int) -> Value | None:
        """A member of an object or of a list, None if there is none."""
        if isinstance(key, int):
            items = self._of(list, "a list")
            return Value(items[key], f"{self.place}[{key}]", self.file) if key < len(items) else None
        members = self._of(dict, "an object")
        place = f"{self.place}.{key}" if self.place else key
        return Value(members[key], place, self.file) if key in members else None

    def items(self) -> Iterator[tuple[str, Value]]:
        """The members of an object."""
        for key, value in self._of(dict, "an object").items():
            yield key, Value(value, f"{self.place}.{key[:40]}", self.file)

    def __iter__(self) -> Iterator[Value]:
        for number, value in enumerate(self._of(list, "a list")):
            yield Value(value, f"{self.place}[{number}]", self.file)


def read_table(files: Files) -> Value:
    """The table of a capture. Raises CaptureError."""
    where = f"{files.name}: {NAME}"
    data = files.read(NAME, TABLE_BYTES)
    try:
        found = json.loads(data.decode("utf-8"), parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise CaptureError("CAP-004", f"no JSON: {error.msg}", where, error.lineno) from None
    except (ValueError, RecursionError) as error:
        reason = "nested too deep" if isinstance(error, RecursionError) else str(error)[:200]
        raise CaptureError("CAP-004", f"no JSON: {reason}", where) from None
    table = Value(found, "", where)
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise CaptureError("CAP-004", f"its format is not {FORMAT!r}", where)
    version = table["version"].whole(1, 1 << 30)
    if version > VERSION:
        raise CaptureError("CAP-004", f"version {version}; {VERSION} and older are read", where)
    return table


def table_bytes(content: dict[str, Any]) -> bytes:
    """The table with its format and version."""
    version = VERSION if "jobs" in content else 1
    whole = {"format": FORMAT, "version": version, **content}
    return (json.dumps(whole, indent=1, ensure_ascii=True) + "\n").encode()


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is no number of JSON")

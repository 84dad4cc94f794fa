"""Reads the arguments of an editor's requests; what makes no sense is a Refused with a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Arguments = Mapping[str, Any]


class Refused(Exception):  # noqa: N818 - said to the user as it is
    """A request that cannot be carried out."""


def pixel_in(arguments: Arguments, name: str) -> tuple[int, int] | None:
    """Read a column and a row, `[200, 150]` or `"200,150"`; None without them. Raises Refused."""
    value = arguments.get(name)
    if value is None:
        return None
    parts = value.split(",") if isinstance(value, str) else value
    try:
        if isinstance(parts, list) and len(parts) == 2:
            column, row = (int(str(part)[:10]) for part in parts)
            if column >= 0 and row >= 0:
                return column, row
    except ValueError:
        pass
    raise Refused(f'"{name}" is a column and a row, such as "200,150"')


def address_in(text: object) -> int:
    """Read a guest address. Raises Refused."""
    try:
        found = int(str(text)[:20], 0)
    except ValueError:
        raise Refused(f"{str(text)[:20]!r} is no address") from None
    if not 0 <= found < 1 << 32:
        raise Refused(f"{str(text)[:20]!r} is no address")
    return found


def whole_in(arguments: Mapping[str, Any], name: str) -> int:
    """Read a whole number, 0 without one. Raises Refused."""
    value = arguments.get(name, 0)
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 1 << 32:
        raise Refused(f'"{name}" is no whole number')
    return value


def text_in(arguments: Arguments, name: str) -> str | None:
    """Read a text, None without one. Raises Refused."""
    value = arguments.get(name)
    if value is not None and not isinstance(value, str):
        raise Refused(f'"{name}" is a text')
    return value


def texts_in(arguments: Arguments, name: str) -> list[str]:
    """Read a list of texts. Raises Refused."""
    value = arguments.get(name, [])
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise Refused(f'"{name}" is a list of texts')
    return value

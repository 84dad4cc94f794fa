"""Text of records → bits: the inverse of what listings print of a `Layout`."""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Any

from vc4lab.bits import Bits, Layout
from vc4lab.records.payload import Fixed

PIXEL = "px"
SMALLEST = 2.0**-126
"""The smallest single that is no denormal: integers are below."""


def layout_from_text(kind: type[Layout], text: str) -> Layout:
    """The bits that a text of `name=value` pairs says. Raises ValueError, with a sentence.

    A field of one bit may be named alone: it is set. Fields that are not named are 0.
    """
    word = 0
    for part in text.split():
        name, equals, value = part.partition("=")
        bits = kind.layout_fields.get(name)
        if bits is None:
            known = ", ".join(kind.layout_fields) or "none"
            raise ValueError(f"there is no field {name[:40]!r} (known: {known})")
        if not equals and bits.width > 1:
            raise ValueError(f"{name}: a value is missing")
        try:
            word = bits.insert(word, _value(bits, value) if equals else 1)
        except OverflowError:
            raise ValueError(f"{name}: {value[:40]!r} is no such value") from None
    return kind(word)


def _value(bits: Bits, text: str) -> Any:
    """A field's value. Raises ValueError."""
    members = bits.enum
    if members is not None and issubclass(members, IntEnum):
        for member in members:
            if member.name.lower() == text.lower():
                return member
    if isinstance(bits, Fixed):
        return round(float(text.removesuffix(PIXEL)) * 16)
    try:
        return int(text, 0)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{bits.name}: {text[:40]!r} is no such value") from None


def word_text(word: int, least: float = 1e-6, most: float = 1e9) -> str:
    """A word as people edit it: a number that gives the same bits again, or the bits.

    least, most: magnitudes of numbers; what is outside of them is taken for an address or an integer.
    """
    (value,) = struct.unpack("<f", word.to_bytes(4, "little"))
    if word and (value != value or not least <= abs(value) < most):
        return f"0x{word:08x}"
    for digits in range(1, 10):
        text = f"{value:.{digits}g}"
        if float_word(text) == word:
            return text if any(c in text for c in ".en") else f"{text}.0"
    return f"0x{word:08x}"


def float_word(text: str) -> int:
    """The bits of a single. Raises ValueError, OverflowError."""
    found: int = struct.unpack("<I", struct.pack("<f", float(text)))[0]
    return found


def word_from_text(text: str) -> int:
    """A word: bits as 0x…, or a number, which is a single. Raises ValueError."""
    text = text.strip()
    try:
        if text.lower().startswith("0x"):
            found = int(text, 16)
            if found >> 32:
                raise ValueError(text)
            return found
        return float_word(text)
    except (ValueError, OverflowError):
        raise ValueError(f"{text[:40]!r} is neither a number nor 0x and the bits of a word") from None

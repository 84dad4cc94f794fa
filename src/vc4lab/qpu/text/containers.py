"""Instruction words out of what programs carry them in: ELF files, arrays of C, `.word` lines."""

from __future__ import annotations

import re
import struct
from typing import Final

ELF_MAGIC: Final = b"\x7fELF"
_SYMBOL_TABLES: Final = (2, 11)
_NO_DATA: Final = 8
_ABSOLUTE_SECTIONS: Final = 0xFF00

_ARRAY: Final = r"\b{name}\s*(?:\[[^]]*\]\s*)*(?:__attribute__\s*\(\([^;{{]*\)\)\s*)?=\s*\{{"
_TO_END_OF_LINE: Final = re.compile(r"//[^\n]*")
_TO_END_IN_ASSEMBLY: Final = re.compile(r"(?://|[@;#])[^\n]*")
_DIRECTIVE: Final = re.compile(r"\s*\.(word|long|int|4byte|quad|8byte|xword)\s+(.*)")
_LABEL: Final = re.compile(r"\s*([\w.$]+):(.*)")
_NUMBER: Final = re.compile(r"-?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)(?=[uUlL]*\s*(?:,|$))")


_HARMLESS: Final = (".global", ".globl", ".type", ".align", ".balign")


class NotFound(ValueError):  # noqa: N818 - said to the user as it is
    """There is no such code in the file."""


def elf_code(data: bytes, symbol: str | None) -> tuple[bytes, int]:
    """The bytes of a symbol of an ELF file, and its address; raises NotFound.

    A symbol without a size goes up to the next symbol of its section, or the section's end.
    """
    try:
        return _elf_code(data, symbol)
    except NotFound:
        raise
    except (struct.error, IndexError, ValueError):
        raise NotFound("this ELF file is damaged") from None


def _elf_code(data: bytes, symbol: str | None) -> tuple[bytes, int]:
    wide = data[4] == 2
    order = ">" if data[5] == 2 else "<"
    table, size, count = (
        (*struct.unpack_from(f"{order}Q", data, 40), *struct.unpack_from(f"{order}HH", data, 58))
        if wide
        else (*struct.unpack_from(f"{order}I", data, 32), *struct.unpack_from(f"{order}HH", data, 46))
    )
    head = f"{order}IIQQQQIIQQ" if wide else f"{order}10I"
    sections = [struct.unpack_from(head, data, table + size * n) for n in range(count)]
    found: list[tuple[str, int, int, int]] = []  # name, section, value, size
    entry = f"{order}IBBHQQ" if wide else f"{order}IIIBBH"
    for section in sections:
        if section[1] not in _SYMBOL_TABLES or not section[9]:
            continue
        names = sections[section[6]]
        for at in range(section[4], section[4] + section[5], struct.calcsize(entry)):
            fields = struct.unpack_from(entry, data, at)
            place, length = (fields[4], fields[5]) if wide else (fields[1], fields[2])
            number = fields[3] if wide else fields[5]
            start = names[4] + fields[0]
            name = data[start : data.index(b"\0", start)].decode("utf-8", "replace")
            if name and 0 < number < min(count, _ABSOLUTE_SECTIONS):
                found.append((name, number, place, length))
    if symbol is None:
        known = ", ".join(sorted({name for name, *_ in found})[:20]) or "none"
        raise NotFound(f"this is an ELF file: name a symbol with --symbol (known: {known})")
    for name, number, place, length in found:
        if name != symbol:
            continue
        section = sections[number]
        if section[1] == _NO_DATA:
            raise NotFound(f"the symbol {symbol!r} has no bytes in this file")
        base = section[3]
        stop = base + section[5]
        if not length:
            ends = [other[2] for other in found if other[1] == number and other[2] > place]
            length = min([*ends, stop]) - place
        begin = section[4] + place - base
        return data[begin : begin + min(length, stop - place)], place
    known = ", ".join(sorted({name for name, *_ in found})[:20]) or "none"
    raise NotFound(f"there is no symbol {symbol!r} in this ELF file (known: {known})")


def text_code(text: str, symbol: str) -> bytes:
    """The words of an array of C, or of the `.word` lines after a label; raises NotFound."""
    text = _without_blocks(text)
    code = _TO_END_OF_LINE.sub(" ", text)
    array = re.search(_ARRAY.format(name=re.escape(symbol)), code)
    if array:
        inside_braces = code[array.end() : code.find("}", array.end())].strip().rstrip(",")
        numbers = [int(number[0], 0) for number in _NUMBER.finditer(inside_braces)]
        wide = any(number >> 32 not in (0, -1) for number in numbers)
        return _packed(numbers, 8 if wide else 4)
    data = bytearray()
    inside = False
    for line in _TO_END_IN_ASSEMBLY.sub(" ", text).splitlines():
        label = _LABEL.match(line)
        if label:
            inside = inside or label[1] == symbol
            line = label[2]
        directive = _DIRECTIVE.match(line)
        if inside and directive:
            width = 8 if directive[1] in ("quad", "8byte", "xword") else 4
            data += _packed([int(n[0], 0) for n in _NUMBER.finditer(directive[2].strip())], width)
        elif inside and line.strip() and not line.strip().startswith((".global", ".type", ".align")):
            break
    if not data:
        raise NotFound(f"there is no array or label {symbol!r} with words")
    return bytes(data)


def _without_blocks(text: str) -> str:
    """A text without its /* */ comments; one that is not closed goes to the end."""
    pieces = []
    position = 0
    while (begin := text.find("/*", position)) >= 0:
        pieces.append(text[position:begin])
        end = text.find("*/", begin + 2)
        if end < 0:
            return " ".join(pieces)
        position = end + 2
    return " ".join([*pieces, text[position:]])


def _packed(numbers: list[int], width: int) -> bytes:
    mask = (1 << 8 * width) - 1
    return b"".join((number & mask).to_bytes(width, "little") for number in numbers)

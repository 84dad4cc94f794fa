"""An assembled program as an ELF object for the linker of ARM, with a line table for debuggers.

Source: System V ABI (ELF), ELF for the Arm Architecture, DWARF 4 section 6.2.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Final

from vc4lab.qpu.isa.encoding import INSTRUCTION_BYTES
from vc4lab.qpu.text.assembly import Assembly
from vc4lab.qpu.text.outputs import exported, identifier

_ARM: Final = 40
_EABI5: Final = 0x05000000
_PROGBITS, _SYMTAB, _STRTAB, _REL = 1, 2, 3, 9
_ALLOC: Final = 2
_ABS32: Final = 2
"""R_ARM_ABS32."""
_ABSOLUTE: Final = 0xFFF1
_GLOBAL, _LOCAL_SECTION, _OBJECT = 1 << 4, 3, 1 << 4 | 1
_CODE: Final = 1
"""Index of the section with the words, and of its symbol."""


class _Strings:
    """A string table."""

    def __init__(self) -> None:
        self.data = bytearray(b"\0")

    def add(self, text: str) -> int:
        place = len(self.data)
        self.data += text.encode("utf-8", "replace") + b"\0"
        return place


@dataclass
class _Section:
    name: str
    kind: int
    data: bytes
    flags: int = 0
    link: int = 0
    info: int = 0
    align: int = 1
    entry: int = 0
    at: int = field(default=0)


def _uleb(number: int) -> bytes:
    out = bytearray()
    while True:
        out.append(number & 127 | (128 if number > 127 else 0))
        number >>= 7
        if not number:
            return bytes(out)


def _sleb(number: int) -> bytes:
    out = bytearray()
    while True:
        low = number & 127
        number >>= 7
        if (number == 0 and not low & 64) or (number == -1 and low & 64):
            return bytes([*out, low])
        out.append(low | 128)


def _line_table(assembly: Assembly, source: str) -> tuple[bytes, int]:
    """`.debug_line`, and where in it the address of the section is to be put."""
    files = [source, *dict.fromkeys(file for file in assembly.files if file)]
    header = struct.pack("<BBBbBB", 1, 1, 1, -5, 14, 13)  # the usual opcode base, no special ones
    header += bytes([0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1]) + b"\0"
    header += b"".join(name.encode("utf-8", "replace") + b"\0\0\0\0" for name in files) + b"\0"
    program = bytearray(b"\0" + _uleb(5) + b"\x02")
    place = len(program)
    program += bytes(4)
    line, file, address = 1, 0, 0
    for index, (number, _) in enumerate(assembly.lines):
        name = files.index(assembly.file(index)) if assembly.file(index) else 0
        if name != file:
            program += b"\x04" + _uleb(name + 1)
            file = name
        step = INSTRUCTION_BYTES * index - address
        if step:
            program += b"\x02" + _uleb(step)
            address += step
        program += b"\x03" + _sleb(number - line) + b"\x01"
        line = number
    program += b"\x02" + _uleb(INSTRUCTION_BYTES * len(assembly.words) - address)
    program += b"\0" + _uleb(1) + b"\x01"
    start = struct.pack("<HI", 4, len(header))
    unit = start + header + program
    return struct.pack("<I", len(unit)) + unit, 4 + len(start) + len(header) + place


_ABBREVIATIONS: Final = bytes(
    [1, 0x11, 0, 0x03, 0x08, 0x25, 0x08, 0x10, 0x17, 0x11, 0x01, 0x12, 0x06, 0, 0, 0]
)
"""One entry: compile unit with name, producer, line table, first address and size."""


def _unit(source: str, size: int) -> tuple[bytes, int]:
    """`.debug_info`, and where in it the address of the section is to be put."""
    body = struct.pack("<HIB", 4, 0, 4) + b"\1"
    body += source.encode("utf-8", "replace") + b"\0vc4lab asm\0" + struct.pack("<I", 0)
    place = 4 + len(body)
    body += struct.pack("<II", 0, size)
    return struct.pack("<I", len(body)) + body, place


def elf_object(assembly: Assembly, name: str, source: str) -> bytes:
    """A relocatable object.

    Parameters
    ----------
    name
        Symbol of the first word; ``name_end``, ``name_size`` and ``name_LABEL`` are symbols too.
    source
        Name of the source file, for the line table.
    """
    code = assembly.bytes
    strings = _Strings()
    symbols = bytearray(16)
    symbols += struct.pack("<IIIBBH", 0, 0, 0, _LOCAL_SECTION, 0, _CODE)
    found = [(name, 0, len(code), _OBJECT, _CODE), (f"{name}_end", len(code), 0, _GLOBAL, _CODE)]
    found.append((f"{name}_size", len(code), 0, _GLOBAL, _ABSOLUTE))
    for label, offset in exported(assembly).items():
        found.append((identifier(f"{name}_{label}"), offset, 0, _GLOBAL, _CODE))
    for symbol, value, size, kind, section in dict.fromkeys(found):
        place = strings.add(symbol)
        symbols += struct.pack("<IIIBBH", place, value, size, kind, 0, section)
    lines, line_place = _line_table(assembly, source)
    info, info_place = _unit(source, len(code))
    sections = [
        _Section("", 0, b""),
        _Section(".rodata", _PROGBITS, code, _ALLOC, align=16),
        _Section(".debug_line", _PROGBITS, lines),
        _relocation("debug_line", line_place, 2),
        _Section(".debug_info", _PROGBITS, info),
        _relocation("debug_info", info_place, 4),
        _Section(".debug_abbrev", _PROGBITS, _ABBREVIATIONS),
        _Section(".symtab", _SYMTAB, bytes(symbols), 0, 8, 2, 4, 16),
        _Section(".strtab", _STRTAB, bytes(strings.data)),
    ]
    return _file(sections)


def _relocation(name: str, place: int, section: int) -> _Section:
    """The address of the words goes to a place of a debug section."""
    data = struct.pack("<II", place, _CODE << 8 | _ABS32)
    return _Section(f".rel.{name}", _REL, data, link=7, info=section, align=4, entry=8)


def _file(sections: list[_Section]) -> bytes:
    names = _Strings()
    places = [names.add(section.name) if section.name else 0 for section in sections]
    places.append(names.add(".shstrtab"))
    sections = [*sections, _Section(".shstrtab", _STRTAB, bytes(names.data))]
    body = bytearray(52)
    for section in sections[1:]:
        body += bytes(-len(body) % section.align)
        section.at = len(body)
        body += section.data
    body += bytes(-len(body) % 4)
    table = len(body)
    for place, s in zip(places, sections, strict=True):
        body += struct.pack(
            "<10I", place, s.kind, s.flags, 0, s.at, len(s.data), s.link, s.info, s.align, s.entry
        )
    ident = b"\x7fELF" + bytes([1, 1, 1]) + bytes(9)
    body[:52] = struct.pack(
        "<16sHHIIIIIHHHHHH", ident, 1, _ARM, 1, 0, 0, table, _EABI5, 52, 0, 0, 40,
        len(sections), len(sections) - 1,
    )  # fmt: skip
    return bytes(body)

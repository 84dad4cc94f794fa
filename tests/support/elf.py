"""Makes small ELF files for tests."""

import struct


def make_elf(symbols: dict[str, tuple[int, int]], segments: dict[int, bytes], *, wide: bool = False) -> bytes:
    """An ELF file: symbols as name → (address, size), segments as address → bytes."""
    names, table = b"\0", bytes(24 if wide else 16)
    for name, (address, size) in symbols.items():
        entry = (len(names), 0x12, 0, 1, address, size)
        if wide:
            table += struct.pack("<IBBHQQ", *entry)
        else:
            table += struct.pack("<IIIBBH", len(names), address, size, 0x12, 0, 1)
        names += name.encode() + b"\0"
    header, program, section = (64, 56, 64) if wide else (52, 32, 40)
    at = header + program * len(segments)
    programs = data = b""
    for address, content in segments.items():
        size = len(content)
        if wide:
            place = (1, 7, at + len(data), address, address, size, size, 4096)
            programs += struct.pack("<IIQQQQQQ", *place)
        else:
            place = (1, at + len(data), address, address, size, size, 7, 4096)
            programs += struct.pack("<8I", *place)
        data += content
    names_at = at + len(data)
    table_at = names_at + len(names)
    sections_at = table_at + len(table)
    form = "<IIQQQQIIQQ" if wide else "<10I"
    sections = bytes(section)
    sections += struct.pack(form, 0, 2, 0, 0, table_at, len(table), 2, 0, 4, len(table))
    sections += struct.pack(form, 0, 3, 0, 0, names_at, len(names), 0, 0, 1, 0)
    start = b"\x7fELF" + bytes((2 if wide else 1, 1, 1)) + bytes(9)
    entry = min(segments)
    counts = (header, program, len(segments), section, 3, 0)
    form = "<HHIQQQI6H" if wide else "<HHIIIII6H"
    start += struct.pack(form, 2, 40, 1, entry, header, sections_at, 0, *counts)
    return start + programs + data + names + table + sections

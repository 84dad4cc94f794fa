"""Words for traces: the tags of a property message."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vc4lab.soc.videocore.properties import HEADER, tag_table

if TYPE_CHECKING:
    from vc4lab.memory import GuestMemory

MAX_TAGS = 64
LONGEST_VALUE = 256
MAX_BYTES = 16


def describe_message(memory: GuestMemory, address: int, *, answered: bool) -> list[str]:
    """One text a tag of the property message at `address`: the request's or response's values."""
    table = tag_table()
    texts: list[str] = []
    if not memory.contains(address, HEADER):
        return texts
    end = address + min(memory.u32(address), 1 << 20)
    at = address + HEADER
    while at + 12 <= end and memory.contains(at, 12) and len(texts) < MAX_TAGS:
        number, room = memory.u32(at), memory.u32(at + 4)
        if number == 0 or room > end - at - 12:
            break
        value = memory.read(at + 12, min(room, LONGEST_VALUE))
        known = table.get(number)
        if not answered:
            name = known.name if known else "an unknown tag"
            texts.append(f"{number:08x} {name}{_values(known.request if known else '', value)}")
        elif memory.u32(at + 8) >> 31:
            texts.append(_values(known.response if known else "", value).strip() or "done")
        else:
            texts.append("not answered")
        at += 12 + (room + 3 & ~3)
    return texts


def _values(kinds: str, value: bytes) -> str:
    """ " (width=640, height=480)" by a tag's declaration."""
    parts = []
    at = 0
    for one in kinds.split(","):
        words = one.split()
        if not words:
            continue
        size = {"u64": 8, "bytes": len(value)}.get(words[0], 4)
        part = value[at : at + size]
        if words[0] == "bytes":
            shown = part[:MAX_BYTES].hex() + ("…" if len(part) > MAX_BYTES else "")
        else:
            number = int.from_bytes(part, "little")
            shown = str(number) if number < 100_000 else f"0x{number:x}"
        parts.append(f"{words[-1]}={shown}")
        at += size
    return f" ({', '.join(parts)})" if parts else ""

"""Code for the VPU from the table of forms: fields put into patterns."""

import struct

from vc4lab.soc.videocore.vpu.forms import ALWAYS, FORMS, SCALES, Form

RTS = "5a00"


def encode(kind: str, size: int = 0, **fields: int) -> bytes:
    """The first form of that kind (and size) which has just these fields (c: always)."""
    for form in FORMS:
        letters = {letter for letter, _parts, _bits in form.fields}
        if form.kind == kind and size in (0, form.size) and letters - {"c"} == set(fields) - {"c"}:
            return pack(form, {"c": ALWAYS, **fields})
    raise LookupError(f"{kind} with {sorted(fields)}")


def pack(form: Form, fields: dict[str, int]) -> bytes:
    """An instruction's bytes as they lie in memory."""
    word = form.match
    for letter, parts, bits in form.fields:
        scale = SCALES.get(letter, form.scale if letter == "o" else 1)
        value, rest = divmod(fields[letter], scale)
        assert rest == 0
        assert -(1 << bits) < value < 1 << bits, (letter, value)
        value &= (1 << bits) - 1
        for shift, count in parts:
            bits -= count
            word |= (value >> bits & (1 << count) - 1) << shift
    if form.size == 2:
        return struct.pack("<H", word)
    if form.size == 4:
        return struct.pack("<HH", word >> 16, word & 0xFFFF)
    return struct.pack("<HI", word >> 32, word & 0xFFFFFFFF)

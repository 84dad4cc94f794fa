"""`armstub=` of config.txt: the program's own code instead of the firmware's stub.

The stub is loaded to address 0, where every core of the ARM begins: in EL3 for an AArch64 kernel,
in secure supervisor mode otherwise. The firmware tells it where the kernel and the device tree (or
the tagged list) are: where it finds its mark, it writes both addresses after it, and clears the
mark, so that the place can serve as core 3's entry address.
Source: raspberrypi/documentation, config.txt, armstub; raspberrypi/tools, armstubs/armstub7.S and
armstub8.S.
"""

from __future__ import annotations

import struct

from vc4lab.diagnostics import Reporter
from vc4lab.files import size_text
from vc4lab.soc.boot.boot_plan import Piece
from vc4lab.soc.boot.config_txt import Config, printable
from vc4lab.soc.boot.foreign_file import foreign_file
from vc4lab.soc.media.card import Card

MARK, MARK_AT = 0x5AFE570B, 0xF0
LARGEST_STUB = 1 << 20


def armstub(card: Card, config: Config, described: int, entry: int, reporter: Reporter) -> Piece | None:
    """The stub that config.txt names, None if it names none, or none that there is.

    Parameters
    ----------
    described
        Address of the device tree or the tagged list; 0 if there is neither.
    entry
        Address of the kernel's first instruction.
    """
    name = config.get("armstub")
    if not name or config.flag("kernel_old"):  # which loads the kernel there instead
        return None
    why = _problem(card, name)
    if why is not None:
        text = f"armstub={printable(name)} {why}; the firmware's own stub is used"
        reporter.report("BOOT-013", text, block="firmware")
        return None
    data = bytearray(card.read(name, LARGEST_STUB))
    if data[MARK_AT : MARK_AT + 4] == MARK.to_bytes(4, "little") and len(data) >= MARK_AT + 16:
        struct.pack_into("<4I", data, MARK_AT, 0, 0, described, entry)
    return Piece("the ARM stub", 0, bytes(data))


def _problem(card: Card, name: str) -> str | None:
    """Why a file cannot be the stub."""
    if card.find(name) is None:
        return "is missing"
    size = card.size(name)
    if not size:
        return "is empty"
    if size > LARGEST_STUB:
        return f"has more than {size_text(LARGEST_STUB)}"
    return foreign_file(card.read(name, 256))

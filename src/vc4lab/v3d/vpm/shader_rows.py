"""The vertex pipe memory as a vertex shader sees it: setup words and the rows of one batch.

A batch has its own rows: attributes are read from row 0 of the input part, results written from
row 0 of the output part (AG100-R pp. 53-57). Every known driver uses whole rows (horizontal, 32
bit); programs with other accesses run on rows in memory (`access.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vc4lab.qpu.isa.encoding import LoadImmediate
from vc4lab.qpu.isa.registers import Write
from vc4lab.qpu.isa.vpm_setup import GenericSetup
from vc4lab.qpu.run.environment import Unsupported

if TYPE_CHECKING:
    from vc4lab.qpu.program.program import Program

WINDOW_ROWS = 64
LANES = 16
ROW_BYTES = 4 * LANES


MAX_READS = 16
"""Vectors of a read setup whose NUM is 0."""

PER_WORD = (4, 2, 1, 1)
"""Elements in a word by the setup's size; the reserved size 3 counts as 32 bit."""


def next_address(setup: GenericSetup, address: int) -> int:
    """The combined number of the next vector; it wraps in the width of its field."""
    stride = setup.stride or 64
    return int(address + stride) % (WINDOW_ROWS * PER_WORD[setup.size])


def first_address(setup: GenericSetup) -> int:
    """The combined number a setup starts with."""
    return int(setup.address) % (WINDOW_ROWS * PER_WORD[setup.size])


class ReadQueue:
    """Read setups in flight: vectors still to be read, at most two setups.

    A setup is taken while at most one vector of the earlier ones is outstanding, else ignored (as
    vc4asm measured).
    """

    def __init__(self) -> None:
        self.entries: list[tuple[GenericSetup, int, int]] = []  # (setup, address, vectors left)

    @property
    def outstanding(self) -> int:
        """Vectors that were asked for and not read."""
        return sum(left for _, _, left in self.entries)

    def setup(self, word: int) -> bool:
        """Take a setup; False if it is ignored."""
        if self.outstanding > 1:
            return False
        setup = GenericSetup(word)
        self.entries.append((setup, first_address(setup), int(setup.number) or MAX_READS))
        return True

    def next(self) -> tuple[GenericSetup, int] | None:
        """Setup and address of the next vector; None if nothing was asked for."""
        if not self.entries:
            return None
        setup, address, left = self.entries.pop(0)
        if left > 1:
            self.entries.insert(0, (setup, next_address(setup, address), left - 1))
        return setup, address


WHOLE_ROWS = 0x1A00
"""Setup word of a fresh program: horizontal, 32 bit, row 0, stride 1."""


class NeedsCells(Exception):  # noqa: N818 - a verdict: this program wants rows in memory
    """A setup word is not a constant or does not ask for whole rows."""


def check_setup(value: int, site: int) -> GenericSetup:
    """The setup word if it is a generic access, else Unsupported is raised."""
    setup = GenericSetup(value)
    if setup.kind != 0:
        raise Unsupported("VTX-002", f"VPM setup 0x{value:08x} starts a DMA or is reserved", site)
    return setup


def is_whole_rows(value: int) -> bool:
    """Whether a setup word asks for whole rows (the reserved size 3 counts as 32 bit)."""
    setup = GenericSetup(value)
    return bool(setup.horizontal) and setup.size >= 2


def only_whole_rows(program: Program) -> bool:
    """Whether all setups of a program are immediates that ask for whole rows."""
    for instruction in program.instructions:
        addresses = {address for _, address in instruction.write_addresses()}
        if Write.VPM_SETUP not in addresses:
            continue
        if not isinstance(instruction, LoadImmediate) or not is_whole_rows(instruction.lanes()[0]):
            return False
    return True


class RowWindow:
    """Row addresses while setups are constants: which row the next read or write touches."""

    def __init__(self, rows_in: int, rows_out: int) -> None:
        self.rows_in = rows_in
        self.rows_out = rows_out
        self.reads = ReadQueue()
        self.write_setup, self.write_row = GenericSetup(WHOLE_ROWS), 0

    def setup(self, side: str, value: int, site: int) -> None:
        """A setup word written by the instruction at `site`."""
        word = check_setup(value, site)
        if not is_whole_rows(value):
            raise NeedsCells
        if side == "write":
            self.write_setup, self.write_row = word, first_address(word)
        else:
            self.reads.setup(value)

    def next_read(self) -> int | None:
        """Row of the next read; None when the input part has no such row."""
        found = self.reads.next()
        return found[1] if found is not None and found[1] < self.rows_in else None

    def next_write(self) -> int | None:
        """Row of the next write; None when the output part has no such row."""
        row = self.write_row
        self.write_row = next_address(self.write_setup, row)
        return row if row < self.rows_out else None

"""What a straight-line vertex or coordinate shader does with the rows of its batch, at a glance.

The program is walked once, when it is compiled: which rows its set-ups deliver, which of them no
attribute fills, which rows of a shaded vertex it writes. Source: hardware reference 5.2, 5.7.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from vc4lab.qpu.isa.encoding import LoadImmediate
from vc4lab.qpu.isa.registers import Read, Write
from vc4lab.qpu.run.plan import plan
from vc4lab.v3d.vpm.shader_rows import (
    WHOLE_ROWS,
    WINDOW_ROWS,
    GenericSetup,
    ReadQueue,
    first_address,
    next_address,
    only_whole_rows,
)

if TYPE_CHECKING:
    from vc4lab.qpu.program.program import AnyInstruction, Program

STARVED = "VTX-007"
"""The code of a read for which no set-up asked: the shader goes no further."""
ERRORS = frozenset(("VTX-003", "VTX-004", "VTX-006"))
"""Codes of what ERRSTAT shows, or leaves words of vertices undefined: with each draw."""
FINDINGS = frozenset(("VTX-008", "VTX-009"))
"""Codes of what is reported once for a program, and not where all is forgiven."""


def filled_rows(attributes: Collection[tuple[int, int, int]]) -> set[int]:
    """Rows that arrays fill: (number, bytes, byte offset in the VPM column) each."""
    return {
        row
        for _, size, offset in attributes
        for row in range(offset // 4, offset // 4 + -(-size // 4))
    }


def check_rows(
    program: Program, rows_in: int, rows_out: int, attributes: Collection[tuple[int, int, int]]
) -> list[tuple[str, str]]:
    """What a shader's VPM accesses show at a glance: (diagnostic code, text).

    rows_in: of the record's total attribute size; attributes: see `filled_rows`. Nothing is said
    of programs with branches, and of those that access parts of rows.
    """
    if program.has_branches or not only_whole_rows(program):
        return []
    walk = _Walk(program)
    rows = [row for row in walk.read if row is not None]
    found = []
    if len(walk.read) > rows_in or max(rows, default=0) >= max(rows_in, 1):
        text = f"the shader reads {len(walk.read)} rows of {rows_in} attribute words"
        if len(walk.read) <= rows_in:
            text = f"the shader reads row {max(rows)}, there are {rows_in} attribute words"
        found.append(("VTX-003", text))
    if None in walk.read:
        text = (
            f"the shader reads {len(walk.read)} rows, but its VPM read set-ups ask for {len(rows)}"
        )
        found.append((STARVED, text))
    if walk.ignored:
        found.append(
            (
                "VTX-008",
                "a VPM read set-up is ignored, because more than one row of the set-up before it "
                "was not read yet",
            )
        )
    elif walk.unread:
        found.append(
            ("VTX-008", f"the shader leaves {walk.unread} rows unread that its set-ups ask for")
        )
    empty = sorted({row for row in rows if row < rows_in} - filled_rows(attributes))
    if empty:
        numbers = ", ".join(map(str, empty))
        found.append(("VTX-009", f"the shader reads row {numbers}, which no attribute array fills"))
    written = {row for row in walk.written if row < rows_out}
    if len(written) < len(set(walk.written)):
        text = f"the shader writes {len(walk.written)} words, a vertex has {rows_out}"
        found.append(("VTX-006", text))
    if len(written) < rows_out:
        text = f"the shader writes {len(walk.written)} words, a vertex has {rows_out}"
        if len(walk.written) >= rows_out:
            text = f"the shader writes {len(written)} of the {rows_out} words of a vertex"
        found.append(("VTX-004", text))
    return found


class _Walk:
    """Rows in the order in which a program reads and writes them.

    read: the row of each read, None if no set-up asked for one; written: the row of each write;
    unread: rows that are asked for and not read; ignored: whether a read set-up was.
    """

    def __init__(self, program: Program) -> None:
        self.read: list[int | None] = []
        self.written: list[int] = []
        self.ignored = False
        self._queue = ReadQueue()
        self._setup = GenericSetup(WHOLE_ROWS)
        self._row = 0
        for instruction, word in zip(program.instructions, program.words, strict=True):
            self._reads(instruction, program.reads_twice)
            self._writes(instruction, word)

    @property
    def unread(self) -> int:
        return self._queue.outstanding

    def _reads(self, instruction: AnyInstruction, twice: bool) -> None:
        count = sum(address == Read.VPM for _, address in instruction.read_addresses())
        for _ in range(count if twice else min(count, 1)):
            found = self._queue.next()
            self.read.append(None if found is None else found[1] % WINDOW_ROWS)

    def _writes(self, instruction: AnyInstruction, word: int) -> None:
        prepared = plan(word)
        for target in (prepared.add, prepared.mul):
            if not target.is_write:
                continue
            if target.address == Write.VPM:
                self.written.append(self._row)
                self._row = next_address(self._setup, self._row)
            elif target.address == Write.VPM_SETUP and isinstance(instruction, LoadImmediate):
                setup = instruction.lanes()[0] & 0xFFFFFFFF
                if target.file == "a":
                    self.ignored |= not self._queue.setup(setup)
                else:
                    self._setup = GenericSetup(setup)
                    self._row = first_address(self._setup)

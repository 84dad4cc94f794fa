"""Checks what a vertex or coordinate shader does with the rows of its batch, at a glance.

The program is walked once, when it is compiled: which rows its set-ups deliver, which of them no
attribute fills, which rows of a shaded vertex it writes. Where branches lead several ways, each is
walked, and only what is wrong on all of them is found: how often a loop runs is not known here.
Source: hardware reference 5.2, 5.7.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Final

from vc4lab.qpu.isa.encoding import Branch, LoadImmediate
from vc4lab.qpu.isa.registers import Read, Write
from vc4lab.qpu.isa.vpm_setup import GenericSetup
from vc4lab.qpu.run.plan import plan
from vc4lab.v3d.vpm.shader_rows import (
    WHOLE_ROWS,
    WINDOW_ROWS,
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
    return {row for _, size, offset in attributes for row in range(offset // 4, offset // 4 + -(-size // 4))}


def check_rows(
    program: Program, rows_in: int, rows_out: int, attributes: Collection[tuple[int, int, int]]
) -> list[tuple[str, str]]:
    """List what a shader's VPM accesses show at a glance: (diagnostic code, text).

    rows_in: of the record's total attribute size; attributes: see `filled_rows`. Nothing is said
    of programs that access parts of rows, and of those whose ways are not known or too many.
    """
    if not only_whole_rows(program):
        return []
    filled = filled_rows(attributes)
    kept: dict[str, str] | None = None
    for walk in _ends(program):
        if walk is None:
            return []
        found = dict(_findings(walk, rows_in, rows_out, filled))
        kept = found if kept is None else {code: kept[code] for code in kept if code in found}
        if not kept:
            break
    return list((kept or {}).items())


def _findings(walk: _Walk, rows_in: int, rows_out: int, filled: set[int]) -> Iterator[tuple[str, str]]:
    """Find what is wrong on one way through the program."""
    rows = [row for row in walk.read if row is not None]
    if len(walk.read) > rows_in or max(rows, default=0) >= max(rows_in, 1):
        text = f"the shader reads {len(walk.read)} rows of {rows_in} attribute words"
        if len(walk.read) <= rows_in:
            text = f"the shader reads row {max(rows)}, there are {rows_in} attribute words"
        yield "VTX-003", text
    if walk.starved:
        yield (
            STARVED,
            f"the shader reads {len(walk.read)} rows, but its VPM read set-ups ask for {len(rows)}",
        )
    if walk.ignored:
        yield (
            "VTX-008",
            "a VPM read set-up is ignored, because more than one row of the set-up before it "
            "was not read yet",
        )
    elif walk.unread:
        yield ("VTX-008", f"the shader leaves {walk.unread} rows unread that its set-ups ask for")
    empty = sorted({row for row in rows if row < rows_in} - filled)
    if empty:
        numbers = ", ".join(map(str, empty))
        yield "VTX-009", f"the shader reads row {numbers}, which no attribute array fills"
    written = {row for row in walk.written if row < rows_out}
    if len(written) < len(set(walk.written)):
        yield "VTX-006", f"the shader writes {len(walk.written)} words, a vertex has {rows_out}"
    if len(written) < rows_out and not walk.starved:
        text = f"the shader writes {len(walk.written)} words, a vertex has {rows_out}"
        if len(walk.written) >= rows_out:
            text = f"the shader writes {len(written)} of the {rows_out} words of a vertex"
        yield "VTX-004", text


_MOST_STATES: Final = 4096
"""Instructions, in different states, after which a program's ways count as too many."""


def _ends(program: Program) -> Iterator[_Walk | None]:
    """Follow what was read and written on each way to the program's end; None if a way is not known."""
    if not program.has_branches:
        walk = _Walk()
        for instruction, word in zip(program.instructions, program.words, strict=True):
            walk.step(instruction, word, program.reads_twice)
        yield walk
        return
    if program.pieces:
        yield None
        return
    from vc4lab.qpu.lint.parts import parts  # few vertex shaders have branches

    part = next(parts(program.words))
    seen: set[tuple[object, ...]] = set()
    todo = [(0, _Walk())]
    while todo:
        index, walk = todo.pop()
        while True:
            state = index, *walk.key
            if state in seen:
                break
            seen.add(state)
            instruction = program.instructions[index]
            if len(seen) > _MOST_STATES or not _is_known(instruction):
                yield None
                return
            walk.step(instruction, program.words[index], program.reads_twice)
            after = part.successors(index)
            if not after or walk.starved:
                yield walk
                break
            if part.stop in after:
                yield None
                return
            todo += [(other, walk.copy()) for other in after[1:]]
            index = after[0]


def _is_known(instruction: AnyInstruction) -> bool:
    """Whether the instruction itself says where execution goes on."""
    return not isinstance(instruction, Branch) or (instruction.relative and not instruction.register)


class _Walk:
    """Rows in the order in which a program reads and writes them.

    read: the row of each read, None if no set-up asked for one; written: the row of each write;
    unread: rows that are asked for and not read; ignored: whether a read set-up was.
    """

    def __init__(self) -> None:
        self.read: list[int | None] = []
        self.written: list[int] = []
        self.ignored = False
        self._queue = ReadQueue()
        self._setup = GenericSetup(WHOLE_ROWS)
        self._row = 0

    def step(self, instruction: AnyInstruction, word: int, twice: bool) -> None:
        """Takes note of one instruction. twice: reading a row by both files reads two."""
        self._reads(instruction, twice)
        self._writes(instruction, word)

    def copy(self) -> _Walk:
        """A copy of the walk so far, to go another way."""
        other = _Walk()
        other.read, other.written = [*self.read], [*self.written]
        other.ignored, other._setup, other._row = self.ignored, self._setup, self._row
        other._queue.entries = [*self._queue.entries]
        return other

    @property
    def key(self) -> tuple[object, ...]:
        """The part that later findings depend on."""
        entries = tuple((s.value, address, left) for s, address, left in self._queue.entries)
        rows = frozenset(self.read), frozenset(self.written)
        counts = min(len(self.read), WINDOW_ROWS + 1), min(len(self.written), WINDOW_ROWS + 1)
        return entries, self._setup.value, self._row, self.ignored, rows, counts

    @property
    def unread(self) -> int:
        return self._queue.outstanding

    @property
    def starved(self) -> bool:
        """Whether a read waits for ever."""
        return None in self.read

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

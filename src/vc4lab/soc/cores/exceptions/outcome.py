"""How a slice of a core ends, and storms: a core that only takes exceptions, one after the other.

A faulting instruction whose handler mends nothing, a vector that faults itself, an interrupt that
its handler never clears: a board then makes no progress, and executing it would take forever. An
exception costs a thousand times more here than an instruction.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from vc4lab.simd import Struct, i64
from vc4lab.soc.cores.exceptions.exceptions import ArmException
from vc4lab.soc.native import words_of

FAULTS = (ArmException.UNDEFINED, ArmException.PREFETCH_ABORT, ArmException.DATA_ABORT)
ABORTED = (ArmException.PREFETCH_ABORT, ArmException.DATA_ABORT)
"""Those that have the address of an access."""
FAULT_DISTANCE, INTERRUPT_DISTANCE = 32, 200
"""Exceptions with fewer instructions between them belong together."""
LONGEST_FAULTS, LONGEST_INTERRUPTS = 20_000, 20_000
"""So many in a row are a storm."""


class Outcome(Enum):
    """Why a slice ended."""

    LIMIT = "its time is used up"
    WAIT_FOR_INTERRUPT = "wfi"
    WAIT_FOR_EVENT = "wfe"
    BRANCH_TO_SELF = "a branch to itself"
    STORM = "a storm of exceptions"


class Taken(NamedTuple):
    """An exception that a core took at an instruction (an interrupt: before it).

    `status` is CPSR or PSTATE before it, `fault` the address of an access that was aborted.
    """

    exception: ArmException
    address: int
    vector: int
    status: int
    fault: int | None


INTERRUPT, EVENT = Outcome.WAIT_FOR_INTERRUPT.value, Outcome.WAIT_FOR_EVENT.value
SELF, STORM = Outcome.BRANCH_TO_SELF.value, Outcome.STORM.value
"""How a core is asleep after such an outcome; a member's value takes longer to read."""


class UnhandledException(Exception):  # noqa: N818 - an ARM exception, not a Python one
    """The guest ran into an exception and has no handler at its vector, or none that mends it."""

    def __init__(
        self, taken: Taken, first: Taken | None, storm: bool = False, why: tuple[str, str] | None = None
    ) -> None:
        super().__init__(taken, first)
        self.storm = storm
        """Whether it was taken again and again."""
        self.why = why
        """Code and sentence of another reason why the core makes no progress."""
        self.taken = taken
        same = first is None or (first.exception, first.address) == taken[:2]
        self.first = None if same else first
        """The first exception whose handler still runs, if that is another one."""

    @property
    def has_no_handler(self) -> bool:
        """Whether what stands at a vector is no handler, as the code there cannot be executed."""
        return not self.storm or (self.first is not None and self.taken.address == self.first.vector)


class ExceptionCounts(Struct):
    """Exceptions that a core has taken; faults in a row, and when the last one was."""

    taken = i64
    row = i64
    last = i64


TAKEN, LAST = ExceptionCounts.taken.offset // 8, ExceptionCounts.last.offset // 8
"""Members of the state, as `words_of` numbers them."""


class FaultStorm:
    """Counts the faults of a core that follow each other closely."""

    def __init__(self, counts: ExceptionCounts) -> None:
        self._counts = counts
        self._words = words_of(counts)

    def resume(self, count: int) -> None:
        """The core has its turn again; others have executed instructions since."""
        self._words[LAST] = count

    def grows(self, count: int, at_vector: bool) -> bool:
        """A fault was taken; `at_vector`: by the instruction at its own vector. Is it a storm?"""
        counts = self._counts
        near = count - counts.last < FAULT_DISTANCE
        counts.last = count
        counts.row = counts.row + 1 if near else 0
        return at_vector or bool(counts.row >= LONGEST_FAULTS)


class InterruptStorm:
    """Counts the interrupts of a core between which the interrupted program does not go on."""

    def __init__(self) -> None:
        self._row = 0
        self._at = (-1, -1)
        self._signs: tuple[int, ...] = ()

    def grows(self, pc: int, count: int, signs: tuple[int, ...]) -> bool:
        """An interrupt will be taken at `pc` as soon as another one has ended. Is it a storm?

        `signs` change when something happens that can be seen from outside.
        """
        before, then = self._at
        self._at = pc, count
        if pc != before or count - then > INTERRUPT_DISTANCE or signs != self._signs:
            self._row, self._signs = 0, signs
        self._row += 1
        return self._row >= LONGEST_INTERRUPTS

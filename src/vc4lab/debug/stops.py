"""Why a session stands, and what makes it stop: breakpoints of all kinds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from vc4lab.debug.expressions import Expression, State
from vc4lab.memory import MEMORY_MASK

if TYPE_CHECKING:
    from vc4lab.debug.stepped import Access
    from vc4lab.diagnostics import Diagnostic


class Cause(Enum):
    """Why a session stands."""

    START = "start"
    """Nothing was executed yet; or backwards: there is nothing before."""
    STEP = "step"
    BREAKPOINT = "breakpoint"
    """At an address or line, before the instruction."""
    BKPT = "bkpt"
    """Before an instruction with the signal `bkpt`."""
    WATCH = "watch"
    """A value has changed, or a condition has come to hold."""
    ACCESS = "access"
    """Memory was read or written."""
    MESSAGE = "message"
    FAULT = "fault"
    """A program was stopped by an error, or waits for what can never happen."""
    DEADLOCK = "deadlock"
    ENDED = "ended"
    """A program, or all of them, have ended."""
    PAUSED = "paused"
    LIMIT = "limit"
    """So many instructions were asked for."""


@dataclass(frozen=True)
class Stop:
    """A stop: why, which QPU it is about, in words, and the breakpoint if it is one."""

    cause: Cause
    qpu: int
    text: str = ""
    breakpoint: Breakpoint | None = None


@dataclass
class Breakpoint:
    """Describes what a session stops at.

    qpu: only on this one; None: on each. condition: and only where it holds. hits: how often it has
    stopped or been passed over; skip: how many of the next are passed over. temporary: it is deleted
    when it stops.
    """

    number: int
    text: str
    qpu: int | None = None
    condition: Expression | None = None
    enabled: bool = True
    temporary: bool = False
    hits: int = 0
    skip: int = 0

    def concerns(self, qpu: int) -> bool:
        """Whether what a QPU did may stop here."""
        return self.enabled and self.qpu in (None, qpu)


@dataclass
class AddressBreakpoint(Breakpoint):
    """Before one of these instructions is executed."""

    addresses: frozenset[int] = frozenset()


@dataclass
class WatchBreakpoint(Breakpoint):
    """A value has changed; `becomes`: a condition has come to hold.

    before: what it was, by QPU (None: of what is the same for all). form: how words of it are shown.
    """

    expression: Expression = field(default_factory=lambda: Expression("0"))
    becomes: bool = False
    before: dict[int | None, Any] = field(default_factory=dict)
    form: str = "int"

    def now(self, state: State) -> Any:
        """The value to compare: the bits of each lane, or whether the condition holds."""
        if self.becomes:
            return self.expression.holds(state)
        return tuple(self.expression.words(state))


@dataclass
class AccessBreakpoint(Breakpoint):
    """Bytes of guest memory are read or written."""

    address: int = 0
    size: int = 4
    reads: bool = False
    writes: bool = True

    def first(self, accesses: Iterable[Access]) -> Access | None:
        """The first access that counts."""
        start = self.address & MEMORY_MASK
        for access in accesses:
            counts = self.writes if access.is_write else self.reads
            if counts and access.address < start + self.size and start < access.address + access.size:
                return access
        return None


@dataclass
class MessageBreakpoint(Breakpoint):
    """A diagnostic is reported; code: only this one, "" any."""

    code: str = ""

    def counts(self, item: Diagnostic) -> bool:
        """Whether it stops for a diagnostic."""
        return not self.code or item.code == self.code

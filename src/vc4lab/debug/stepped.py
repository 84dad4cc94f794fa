"""A QPU that a session steps, whatever it runs; the accesses to guest memory of its last turn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from vc4lab.memory import MEMORY_SIZE
from vc4lab.memory.guest import PAD
from vc4lab.qpu.isa.encoding import LINK_OFFSET, Branch
from vc4lab.qpu.isa.operations import Signal
from vc4lab.qpu.isa.registers import ACCUMULATOR_WRITE, REGFILE_SIZE
from vc4lab.simd.eager import Eager
from vc4lab.v3d.user_programs.qpu import RunState

if TYPE_CHECKING:
    from vc4lab.qpu.program.program import Program
    from vc4lab.qpu.run.interpreter import Interpreter
    from vc4lab.simd import Value
    from vc4lab.simd.types import Type
    from vc4lab.v3d.user_programs.needs import Need

GOES_ON = (RunState.READY, RunState.WAITING)


def keeps_link(word: int) -> bool:
    """Whether an instruction is a branch that writes the address after it to a register: a call."""
    if word >> 60 != Signal.BRANCH:
        return False
    targets = Branch(word).write_addresses()
    return any(address < REGFILE_SIZE or address in ACCUMULATOR_WRITE for _, address in targets)


def is_return(word: int) -> bool:
    """Whether an instruction is a branch to a register that is no call."""
    return word >> 60 == Signal.BRANCH and bool(Branch(word).register) and not keeps_link(word)


class Access(NamedTuple):
    """Bytes of guest memory that an instruction has read or written."""

    is_write: bool
    address: int
    size: int


class Observer:
    """Notes each access to memory. before_write: called before the bytes change."""

    def __init__(self, base: int, before_write: Callable[[int, int], None]) -> None:
        self.base = base
        self.before_write = before_write
        self.accesses: list[Access] = []

    def read(self, place: int, size: int) -> None:
        offset = place - self.base
        if 0 <= offset < MEMORY_SIZE + PAD:
            self._add(Access(False, offset, size))

    def write(self, place: int, size: int) -> None:
        offset = place - self.base
        if 0 <= offset < MEMORY_SIZE + PAD:
            self.before_write(offset, size)
            self._add(Access(True, offset, size))

    def _add(self, access: Access) -> None:
        last = self.accesses[-1] if self.accesses else None
        if last and last.is_write == access.is_write and last.address + last.size == access.address:
            self.accesses[-1] = last._replace(size=last.size + access.size)
        else:
            self.accesses.append(access)


class ObservedEager(Eager):
    """An eager run whose accesses to guest memory are seen."""

    def __init__(self, observer: Observer) -> None:
        super().__init__("default", {})
        self.observer = observer

    def load(self, type_: Type, place: Value) -> Value:
        self.observer.read(place._bits or 0, type_.size)
        return super().load(type_, place)

    def store(self, place: Value, value: Value) -> None:
        if self.trace.block is not None:
            self.observer.write(place._bits or 0, value.type.size)
        super().store(place, value)

    def gather(self, type_: Type, base: Value, offsets: Value | None, mask: Value, default: Value) -> Value:
        size = type_.bits // 8
        for _, place in self._places(base, offsets, mask, size):
            self.observer.read(place, size)
        return super().gather(type_, base, offsets, mask, default)

    def scatter(self, base: Value, offsets: Value | None, value: Value, mask: Value) -> None:
        if self.trace.block is not None:
            size = value.type.bits // 8
            for _, place in self._places(base, offsets, mask, size):
                self.observer.write(place, size)
        super().scatter(base, offsets, value, mask)


class TmuState(NamedTuple):
    """A TMU as a QPU sees it.

    results: those that wait, the oldest first; parameters, coordinates: of the request that is being
    made; room: how many lookups it can still take.
    """

    results: list[list[int]]
    parameters: list[int]
    coordinates: dict[str, list[int]]
    room: int


class Stepped(ABC):
    """A QPU of a session: an instruction a turn, with its state to keep and to restore.

    Attributes
    ----------
    number, machine
        The QPU, and the interpreter that runs its program.
    run_state, need, site
        Its state; what it waits for; index of the instruction it stands at.
    program
        All code met so far.
    """

    number: int
    run_state: RunState
    need: Need | None
    site: int
    program: Program
    if TYPE_CHECKING:

        @property
        def machine(self) -> Interpreter: ...

    @property
    def address(self) -> int:
        """Return the address of the instruction it stands at."""
        return self.program.address_of(self.site)

    @property
    def alive(self) -> bool:
        """Whether it may still execute something."""
        return self.run_state in GOES_ON

    @abstractmethod
    def advance(self) -> bool:
        """Take a turn; whether an instruction was executed."""

    @abstractmethod
    def saved(self) -> Any:
        """Its state between two turns."""

    @abstractmethod
    def restore(self, saved: Any) -> None:
        """Back to a state."""

    @property
    @abstractmethod
    def uniform_address(self) -> int:
        """Return the address of the next word of its uniform stream."""

    @property
    @abstractmethod
    def waits(self) -> str:
        """Return what it waits for, or why it was stopped, in words."""

    @abstractmethod
    def text_of(self) -> str:
        """Describe it in one line: the QPU, its instruction, what it waits for."""

    @abstractmethod
    def tmu(self, number: int) -> TmuState:
        """One of its two TMUs."""

    def setups(self) -> dict[str, int]:
        """The VPM and DMA setup words that it has written."""
        return {}

    # -- where it is -------------------------------------------------------------------------------

    @property
    def next_address(self) -> int:
        """Return the address of the next instruction, or of the one at which it ended or stopped."""
        return self.machine.address if self.run_state in GOES_ON else self.address

    @property
    def next_index(self) -> int | None:
        """Return the index in `program` of the instruction at `next_address`; None: there is none."""
        if self.run_state not in GOES_ON:
            return self.site
        return self.machine.follow()

    @property
    def next_word(self) -> int | None:
        """The instruction itself."""
        index = self.next_index
        return None if index is None or index >= len(self.program.words) else self.program.words[index]

    @property
    def at_breakpoint(self) -> bool:
        """Whether the next instruction has the signal `bkpt`."""
        word = self.next_word
        return word is not None and word != 0 and word >> 60 == Signal.BREAKPOINT

    @property
    def call_return(self) -> int | None:
        """Return the address after a call, if one is next: a branch that keeps its link. None: none is."""
        word = self.next_word
        return self.next_address + LINK_OFFSET if word is not None and keeps_link(word) else None

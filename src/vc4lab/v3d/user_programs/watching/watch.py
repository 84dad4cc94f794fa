"""Watches a user program while it runs: broken restrictions, and memory it was not given.

`vc4lab run` knows what a program may touch: its uniforms and the named memories. Both engines
report to a `Watch` what may be wrong; it checks exactly and keeps a note. A program that runs
without it is compiled without any of this. On a booted board all memory is allowed, the lint has
read the program, and only its first starts are watched: for transfers that it does not wait for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from vc4lab.diagnostics.catalogue import severity_of
from vc4lab.diagnostics.entry import Severity
from vc4lab.memory import MEMORY_MASK
from vc4lab.qpu.isa.accesses import accesses
from vc4lab.qpu.isa.encoding import BRANCH_DELAY_SLOTS
from vc4lab.qpu.isa.hazards import CONSUMERS, MAX_DISTANCE, PRODUCERS
from vc4lab.qpu.isa.vpm_setup import LoadSetup, LoadStride, StoreSetup, StoreStride
from vc4lab.qpu.lint.lint import Finding, between, pairs, singles
from vc4lab.qpu.lint.parts import Part
from vc4lab.v3d.user_programs.watching.transfers import load_places, load_rows, store_rows
from vc4lab.v3d.vpm.access import vector_places

if TYPE_CHECKING:
    from vc4lab.qpu.program.program import Program
    from vc4lab.v3d.unknowns import Unknowns

MAX_COMPARED = 1 << 18
"""Instructions times register branches beyond which paths through these are not checked."""

MAX_FINDINGS = 4096
"""Findings of one program that are watched, at most."""

NOTES = 64
"""That a QPU keeps."""


class Memory(NamedTuple):
    """A piece of guest memory that a program may use."""

    name: str
    start: int
    size: int

    def holds(self, at: int, size: int) -> bool:
        return self.start <= at and at + size <= self.start + self.size


@dataclass
class Allowed:
    """Memory that the programs of a run may touch.

    memories: the named ones. uniforms: bytes of a list by its address. stops: whether a program
    stops at its first mistake.
    """

    memories: list[Memory] = field(default_factory=list)
    uniforms: dict[int, int] = field(default_factory=dict)
    stops: bool = False
    restrictions: bool = True
    """Whether instructions that break one are reported when they are executed."""


WATCHED_STARTS = 12
"""So many starts of a program are watched on a booted board: one for each QPU."""
LONGEST_WATCHED = 2048
"""Instructions of such a program, which is compiled twice."""


def everything() -> Allowed:
    """The memory that the programs of a booted board may touch."""
    return Allowed([Memory("memory", 0, MEMORY_MASK + 1)], restrictions=False)


class Note(NamedTuple):
    """A mistake: diagnostic code, instruction index, sentence."""

    code: str
    site: int
    message: str


@dataclass(frozen=True)
class Watched:
    """Mistakes in a program's instructions, reported as soon as they are executed.

    findings: all of them. alone: numbers of findings by the instruction at fault. after: (distance,
    instruction before, number of the finding) by the instruction that comes too early.
    """

    findings: tuple[Finding, ...]
    alone: Mapping[int, tuple[int, ...]]
    after: Mapping[int, tuple[tuple[int, int, int], ...]]

    @classmethod
    def of(cls, program: Program) -> Watched:
        """Look for mistakes by the rules of the lint, on all ways that execution may take."""
        touched = [accesses(word) for word in program.words]
        part = Part(program.instructions, touched, 0, len(touched))
        found = [pair for pair in pairs(part) if _counts(pair.hazard.code)]
        for before, distance in _tails(part):
            if touched[before].kinds & PRODUCERS:
                for after in part.indices():
                    if touched[after].kinds & CONSUMERS:
                        found += between(touched, before, after, distance)
        numbers: dict[Finding, int] = {}
        alone: dict[int, tuple[int, ...]] = {}
        after_: dict[int, dict[tuple[int, int, int], None]] = {}
        for finding in singles(part):
            if _counts(finding.code) and len(numbers) < MAX_FINDINGS:
                number = numbers.setdefault(finding, len(numbers))
                alone[finding.index] = (*alone.get(finding.index, ()), number)
        for pair in found:
            if _counts(pair.hazard.code) and len(numbers) < MAX_FINDINGS:
                number = numbers.setdefault(pair.finding, len(numbers))
                after_.setdefault(pair.after, {})[pair.distance, pair.before, number] = None
        return cls(tuple(numbers), alone, {site: tuple(rows) for site, rows in after_.items()})


UNRESTRICTED = Watched((), {}, {})
"""Nothing about the instructions themselves is watched."""


def _counts(code: str) -> bool:
    return severity_of(code) >= Severity.WARNING


def _tails(part: Part) -> Iterable[tuple[int, int]]:
    """(instruction, distance to what comes next) at the end of register branches' delay slots."""
    ends = [
        index + BRANCH_DELAY_SLOTS
        for index in part.indices()
        if getattr(part.all[index], "register", 0) and index + BRANCH_DELAY_SLOTS < part.stop
    ]
    if len(ends) * (part.stop - part.start) > MAX_COMPARED:
        return
    for end in ends:
        for distance in range(1, MAX_DISTANCE + 1):
            if end - distance + 1 >= part.start:
                yield end - distance + 1, distance


class Watch:
    """Checks what one QPU's program does. site: index of the instruction that does it."""

    def __init__(self, allowed: Allowed, uniforms: int, unknowns: Unknowns) -> None:
        self.allowed = allowed
        self.unknowns = unknowns
        size = allowed.uniforms.get(uniforms, 0)
        self.list = Memory("the uniforms", uniforms & MEMORY_MASK, size)
        self.moved = False  # whether the program reads uniforms elsewhere
        self.loads: set[int] = set()  # setup words of loads that were not waited for
        self._written: dict[int, frozenset[int]] = {}  # words of the VPM by a load's setup
        self.store: int | None = None  # instruction of a store that was not waited for
        self.notes: dict[tuple[str, int, str], Note] = {}
        self.last = ""  # the latest note's sentence
        self.stopped = False
        """Whether the program must not go on."""

    def take(self) -> list[Note]:
        """The notes since the last call."""
        notes = [note for note in self.notes.values() if note.message]
        self.notes = {key: note._replace(message="") for key, note in self.notes.items()}
        return notes

    def note(self, code: str, site: int, message: str, place: str = "") -> None:
        """Keep a mistake, the first time an instruction makes it."""
        key = code, site, place
        if key not in self.notes and len(self.notes) < NOTES:
            self.notes[key] = Note(code, site, message)
            self.last = message
        self.stopped |= self.allowed.stops

    # -- what the engines report ----------------------------------------------------------------

    def broken(self, finding: Finding) -> None:
        """An instruction was executed that breaks a restriction."""
        text = f"{finding.message} (see {finding.code})"
        self.note("QPU-061", finding.index, text, finding.code)

    def uniform(self, site: int, address: int) -> None:
        """A uniform is read."""
        at = address & MEMORY_MASK
        if self.list.holds(at, 4) or self._memory(at, 4):
            return
        if not self.moved and at >= self.list.start:
            number, given = (at - self.list.start) // 4 + 1, self.list.size // 4
            given_text = "1 was" if given == 1 else f"{given or 'none'} were"
            text = f"uniform {number} is read, but {given_text} given"
        else:
            text = f"a uniform is read {self._where(at, 4)}"
        self.note("QPU-062", site, text)

    def store_rows(self, site: int, setup: int, stride: int, address: int) -> None:
        """A transfer to memory begins."""
        rows = store_rows(StoreSetup(setup), StoreStride(stride), address, self.unknowns)
        self._rows(site, "store writes", rows)

    def load_rows(self, site: int, setup: int, stride: int, address: int) -> None:
        """A transfer to the VPM begins."""
        rows = load_rows(LoadSetup(setup), LoadStride(stride), address, self.unknowns)
        self._rows(site, "load reads", rows)

    def loading(self, setup: int) -> None:
        """A load writes to the VPM from now on."""
        if len(self.loads) < NOTES:
            self.loads.add(setup)

    def waited(self, side: str) -> None:
        """The program has waited for its transfers, or asked whether they run."""
        if side == "read":
            self.loads.clear()
        else:
            self.store = None

    def vpm_read(self, site: int, setup: int, address: int) -> None:
        """A vector is read from the VPM."""
        if not self.loads:
            return
        wanted = {offset >> 2 for offset in vector_places(setup, address)}
        if any(wanted & self._words(word) for word in self.loads):
            text = "the VPM is read where a DMA load may still write; read vr_wait first"
            self.note("QPU-065", site, text)

    def _words(self, setup: int) -> frozenset[int]:
        """The words of the VPM that a load writes."""
        found = self._written.get(setup)
        if found is None:
            rows = load_places(LoadSetup(setup), self.unknowns)
            found = self._written[setup] = frozenset(at >> 2 for row in rows for at in row)
        return found

    def lookup(self, site: int, addresses: Iterable[tuple[int, int]]) -> None:
        """The texture unit reads words: (lane, address) of each."""
        for lane, address in addresses:
            at = address & MEMORY_MASK & ~3
            if not self._memory(at, 4) and not self.list.holds(at, 4):
                self.note("QPU-064", site, f"lane {lane} looks up a word {self._where(at, 4)}")
                return

    def texture(self, site: int, parameter: int) -> None:
        """The texture unit reads a texture whose first parameter is this."""
        at = parameter & MEMORY_MASK & ~0xFFF
        if not self._memory(at, 1):
            self.note("QPU-064", site, f"a texture is read that begins {self._where(at)}")

    def ended(self) -> None:
        """The program has ended."""
        if self.store is not None:
            text = "the program ended without waiting for the DMA store it started here"
            self.note("QPU-066", self.store, text)

    # -- checking --------------------------------------------------------------------------------

    def _rows(self, site: int, what: str, rows: Iterable[tuple[int, int]]) -> None:
        for address, size in rows:
            at = address & MEMORY_MASK
            reads = what.endswith("reads") and self.list.holds(at, size)
            if not reads and not self._memory(at, size):
                text = f"a DMA {what} {size} bytes {self._where(at, size)}"
                self.note("QPU-063", site, text)
                return

    def _memory(self, at: int, size: int) -> bool:
        return any(memory.holds(at, size) for memory in self.allowed.memories)

    def _where(self, at: int, size: int = 1) -> str:
        """A place outside the memories, in words."""
        place = f"at 0x{at:08x}"
        below = [memory for memory in self.allowed.memories if memory.start <= at]
        if not below:
            return f"{place}, outside the named memory"
        nearest = max(below, key=lambda memory: memory.start)
        over = at + size - nearest.start - nearest.size
        inside = f"{nearest.size} bytes at 0x{nearest.start:08x}"
        return f"{place}, {over} bytes past the end of {nearest.name!r} ({inside})"

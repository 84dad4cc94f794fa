"""Holds the model's results: clocks, milliseconds on each board, who was busy, why QPUs waited."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class BoardTime:
    """A board: its V3D's clock in Hz, clocks and milliseconds."""

    board: str
    hertz: float
    clocks: int
    milliseconds: float

    @property
    def rate(self) -> float:
        """Frames a second, if this is a frame of a program that only waits for the GPU."""
        return 1000 / self.milliseconds if self.milliseconds else 0.0

    def to_json(self) -> dict[str, Any]:
        """Return it as plain values, with `rate`."""
        return {**asdict(self), "frames_per_second": self.rate}


@dataclass(frozen=True)
class QpuTime:
    """A QPU: clocks from which to which it had its program, and what it did in them.

    stalls: clocks by cause.
    """

    qpu: int
    started: int
    ended: int
    instructions: int
    busy: int
    stalls: Mapping[str, int]
    waits: str = ""
    """The reason why it waits, in words, if its program has not ended."""
    programs: int = 1
    """How many it had, one after the other."""


@dataclass(frozen=True)
class HotInstruction:
    """An instruction: how often it was executed, clocks in all, and those it waited, by cause."""

    address: int
    text: str
    executed: int
    clocks: int
    stalls: Mapping[str, int]


@dataclass(frozen=True)
class AluUse:
    """Instructions issued, and how many of them had an operation of each ALU, or of both.

    clocks: of QPUs, in all; slot: clocks of an instruction that does not wait.
    """

    issued: int
    add: int
    mul: int
    both: int
    clocks: int
    slot: int

    @property
    def of_peak(self) -> float:
        """Operations, as a share of both ALUs' in all clocks of the QPUs that had a program."""
        return self.slot * (self.add + self.mul) / (2 * self.clocks) if self.clocks else 0.0

    def text(self) -> str:
        """In a line."""
        if not self.issued:
            return "nothing was issued"
        shares = [f"{100 * part / self.issued:.1f} %" for part in (self.add, self.mul, self.both)]
        return (
            f"add {shares[0]}, mul {shares[1]}, both {shares[2]} of {self.issued} instructions; "
            f"{100 * self.of_peak:.1f} % of the peak of its QPUs"
        )


@dataclass(frozen=True)
class LoopUse:
    """A loop: from the target of a branch back to its last delay slot.

    rounds: how often it began anew; clocks: of all rounds on all QPUs, inner loops included.
    """

    first: int
    last: int
    rounds: int
    alus: AluUse

    @property
    def clocks(self) -> int:
        """Clocks of all rounds."""
        return self.alus.clocks


@dataclass(frozen=True)
class ModuleTime:
    """A module: clocks at work."""

    module: str
    number: int
    busy: int
    share: float


@dataclass(frozen=True)
class QueueUse:
    """A queue: pieces that went through it, the most and the mean that it held, clocks full."""

    queue: str
    number: int
    pieces: int
    depth: int
    peak: int
    mean: float
    full: int


@dataclass(frozen=True)
class CacheUse:
    """A cache: accesses that found their line, and lines that were missing."""

    cache: str
    number: int
    hits: int
    misses: int


@dataclass(frozen=True)
class Timing:
    """How long user programs take, on one board; `boards` has the others."""

    chip: str
    board: str
    clocks: int
    boards: tuple[BoardTime, ...]
    qpus: tuple[QpuTime, ...]
    hot: tuple[HotInstruction, ...]
    modules: tuple[ModuleTime, ...]
    queues: tuple[QueueUse, ...]
    caches: tuple[CacheUse, ...]
    memory_bytes: Mapping[str, int]
    notes: tuple[str, ...]
    alus: tuple[AluUse, ...] = ()
    """The use of the ALUs by each program."""
    loops: tuple[LoopUse, ...] = ()
    of_peak: float = 0.0
    """Operations of both ALUs, as a share of what all QPUs of the chip could do in these clocks."""

    @property
    def milliseconds(self) -> float:
        """On the board."""
        return next(one.milliseconds for one in self.boards if one.board == self.board)

    def to_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {"milliseconds": self.milliseconds, **asdict(self)}

    def text(self, hottest: int = 10, where: Callable[[int], str] = lambda address: "") -> str:
        """For people to read. where: an instruction's place in the source, by its address."""
        return "\n".join(_lines(self, hottest, where))


def _lines(timing: Timing, hottest: int, where: Callable[[int], str]) -> list[str]:
    lines = [f"{timing.clocks} clocks of the V3D ({timing.chip} on {timing.board})"]
    lines += [
        f"  {one.board}: {one.clocks} clocks at {one.hertz / 1e6:g} MHz, {one.milliseconds:.6g} ms"
        for one in timing.boards
    ]
    for qpu in timing.qpus:
        total = max(qpu.ended - qpu.started, 1)
        stalled = ", ".join(f"{cause} {_share(clocks, total)}" for cause, clocks in _largest(qpu.stalls))
        lines.append(
            f"QPU {qpu.qpu}: {_programs(qpu)}{qpu.instructions} instructions, "
            f"busy {_share(qpu.busy, total)}"
            + (f", {stalled}" if stalled else "")
            + (f"; {qpu.waits}" if qpu.waits else "")
        )
    lines += [f"ALUs: {one.text()}" for one in timing.alus]
    if timing.of_peak:
        lines.append(
            f"{100 * timing.of_peak:.1f} % of the operations that all QPUs of the chip could do meanwhile"
        )
    if timing.loops:
        lines.append("loops:")
    for loop in timing.loops[:hottest]:
        rounds = loop.rounds
        each = f"{loop.clocks / rounds:.1f} clocks and {loop.alus.issued / rounds:.1f} instructions"
        lines.append(
            f"  {loop.clocks:>10} clocks, {rounds} rounds of {each}, "
            f"{where(loop.first)}0x{loop.first:08x} to {where(loop.last)}0x{loop.last:08x}"
        )
        lines.append(f"{'':12}ALUs: {loop.alus.text()}")
    if timing.hot:
        lines.append("hot instructions:")
    for one in timing.hot[:hottest]:
        why = ", ".join(f"{cause} {clocks}" for cause, clocks in _largest(one.stalls))
        lines.append(
            f"  {one.clocks:>10} clocks, {one.executed} times, "
            f"{where(one.address)}0x{one.address:08x} `{one.text}`" + (f": {why}" if why else "")
        )
    for cache in timing.caches:
        if cache.hits or cache.misses:
            lines.append(f"{cache.cache} {cache.number}: {cache.hits} hits, {cache.misses} misses")
    busiest = sorted(timing.modules, key=lambda module: -module.share)[:5]
    shown = ", ".join(f"{m.module} {m.number} {m.share:.0%}" for m in busiest if m.share >= 0.005)
    if shown:
        lines.append(f"busy: {shown}")
    lines += timing.notes
    return lines


def _programs(qpu: QpuTime) -> str:
    return f"{qpu.programs} programs, " if qpu.programs > 1 else ""


def _largest(stalls: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(((c, n) for c, n in stalls.items() if n), key=lambda item: -item[1])


def _share(clocks: int, total: int) -> str:
    return f"{100 * clocks / total:.1f} %"

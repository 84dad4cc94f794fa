"""Two programs run on the same random inputs: whether they do the same outside their QPU.

What a program does there is written down in order: uniforms taken, words and set-ups for the VPM,
DMA, texture requests and results, mutex, semaphores, interrupts, tile buffer. Programs that do the
same things in the same order leave the same memory. Reads give random words, the same for both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from vc4lab.qpu.isa.ops import Mask, Word
from vc4lab.qpu.isa.qpu_unknowns import DEFAULTS, Settings
from vc4lab.qpu.program.program import Program
from vc4lab.qpu.run.environment import Environment, LeftProgram, RegisterKey, Unsupported
from vc4lab.qpu.run.interpreter import Interpreter

RUNS: Final = 6
BUDGET: Final = 4_000
"""Instructions of one run; what was done until then is compared."""
ADDRESS: Final = 0x1000
STREAMS: Final = {
    "uniforms": "uniforms", "varyings": "varyings", "vpm": "VPM and DMA", "tmu": "texture unit",
    "memory": "memory", "other": "mutex, semaphores, interrupts and tile buffer",
}  # fmt: skip
"""Streams whose order is kept, and their names in messages."""
_LANES = np.arange(16, dtype=np.uint32)


class Difference(NamedTuple):
    """Says where two programs part: the run, the stream, and after how many events of it."""

    run: int
    stream: str
    event: int

    def __str__(self) -> str:
        return f"random input {self.run}: {STREAMS[self.stream]} differ at access {self.event}"


class Checked(NamedTuple):
    """How a check went: runs, those that came to the program's end, instructions of the old and the
    new program in these, and the first difference.
    """

    runs: int
    ended: int
    before: int
    after: int
    difference: Difference | None


def check(
    old: Sequence[int],
    new: Sequence[int],
    entry: int = 0,
    new_entry: int = 0,
    *,
    runs: int = RUNS,
    budget: int = BUDGET,
    settings: Settings = DEFAULTS,
) -> Checked:
    """Run both, from an instruction of each; raises Unsupported if the old one cannot be run."""
    ended = before = after = 0
    for run in range(runs):
        first, one = _run(old, entry, run, budget, settings)
        second, other = _run(new, new_entry, run, budget, settings)
        found = _difference(run, first, second, one[0] == other[0] != "limit")
        if found is not None:
            return Checked(run + 1, ended, before, after, found)
        if one[0] != "limit":
            ended += 1
            before += one[1]
            after += other[1]
    return Checked(runs, ended, before, after, None)


def _difference(run: int, first: Inputs, second: Inputs, whole: bool) -> Difference | None:
    for stream in STREAMS:
        one, other = first.log[stream], second.log[stream]
        for event, (a, b) in enumerate(zip(one, other, strict=False)):
            if a != b:
                return Difference(run, stream, event)
        if whole and len(one) != len(other):
            return Difference(run, stream, min(len(one), len(other)))
    return None


def _run(
    words: Sequence[int], entry: int, run: int, budget: int, settings: Settings
) -> tuple[Inputs, tuple[str, int]]:
    inputs = Inputs(run)
    machine = Interpreter(Program(tuple(words), ADDRESS), inputs, settings=settings)
    machine.address = ADDRESS + 8 * entry
    try:
        why = machine.run(budget)
    except LeftProgram:
        why = "left"
    return inputs, (why, machine.count)


class Inputs(Environment):
    """Random inputs for a program, and what it does. number: which of them; even ones have small
    numbers as uniforms, so that loops end.
    """

    def __init__(self, number: int) -> None:
        self._random = np.random.default_rng(number)
        self._number = number
        self.log: dict[str, list[Any]] = {stream: [] for stream in STREAMS}
        self._counts = dict.fromkeys(("uniform", "varying", "vpm"), 0)
        self._pointer = 0
        self._coordinates: tuple[list[bytes], list[bytes]] = ([], [])
        self._results: tuple[list[Word], list[Word]] = ([], [])

    def _note(self, streams: Sequence[str], *event: Any) -> None:
        for stream in streams:
            self.log[stream].append(event)

    def _all(self, *event: Any) -> None:
        self._note(tuple(STREAMS), *event)

    def _words(self, kind: int, at: int) -> Word:
        """16 words that depend on where they are from."""
        return np.random.default_rng((self._number, kind, at)).integers(0, 1 << 32, 16, np.uint32)

    # ---------------------------------------------------------------- streams
    def uniform(self) -> Word:
        at = self._counts["uniform"]
        self._counts["uniform"] += 1
        values = np.random.default_rng((self._number, 1, self._pointer, at))
        kind = int(values.integers(0, 4))
        if kind < 3 and self._number % 2 == 0:
            word = int(values.integers(0, 9))
        elif kind < 2:
            word = int(np.float32(values.normal()).view(np.uint32))
        else:
            word = int(values.integers(0, 1 << 32))
        self._note(("uniforms",), word)
        return np.full(16, word, np.uint32)

    def uniforms_address(self, value: Word, relative: bool, mask: Mask) -> None:
        self._note(("uniforms", "memory"), *_seen(value, mask), relative)
        self._pointer = int(np.broadcast_to(value, 16)[0])
        self._counts["uniform"] = 0

    def varying(self) -> tuple[Word, Word]:
        at = self._counts["varying"]
        self._counts["varying"] += 1
        self._note(("varyings",), at)
        values = np.random.default_rng((self._number, 2, at)).normal(size=(2, 16)).astype(np.float32)
        first, second = values.view(np.uint32)
        return first, second

    def vpm_read(self) -> Word:
        at = self._counts["vpm"]
        self._counts["vpm"] += 1
        self._note(("vpm",), "read", at)
        return self._words(3, at)

    def vpm_write(self, value: Word, mask: Mask) -> None:
        self._note(("vpm",), "write", *_seen(value, mask))

    def vpm_setup(self, side: str, value: Word) -> None:
        self._note(("vpm",), side, *_seen(value))

    def dma_start(self, side: str, value: Word) -> None:
        self._note(("vpm", "memory"), "start", side, *_seen(value))

    def dma_wait(self, side: str) -> None:
        self._note(("vpm", "memory"), "wait", side)

    def dma_busy(self, side: str) -> Word:
        self._note(("vpm", "memory"), "busy", side)
        return np.zeros(16, np.uint32)

    def tmu_write(self, unit: int, register: str, value: Word, mask: Mask, site: int) -> None:
        seen = _seen(value, mask)
        self._note(("tmu", "memory"), unit, register, *seen)
        pending = self._coordinates[unit]
        if register != "s" or pending:
            self.uniform()
        pending.append(register.encode() + seen[0])
        if register == "s":
            digest = np.frombuffer(b"".join(pending)[:64].ljust(64), np.uint32)
            pending.clear()
            mixed = digest * np.uint32(2654435761) ^ np.uint32(self._number) * np.uint32(40503)
            self._results[unit].append((mixed >> np.uint32(9) | np.uint32(0x3F800000)) + _LANES)

    def tmu_load(self, unit: int) -> Word:
        self._note(("tmu",), "load", unit)
        waiting = self._results[unit]
        return waiting.pop(0) if waiting else np.zeros(16, np.uint32)

    def tmu_noswap(self, value: Word) -> None:
        self._note(("tmu",), "noswap", *_seen(value))

    # ---------------------------------------------------------------- what is the same everywhere
    def initial_registers(self) -> dict[RegisterKey, Word]:
        keys = [*((file, n) for file in "ab" for n in range(32)), *(("r", n) for n in range(6))]
        return {key: self._random.integers(0, 1 << 32, 16, np.uint32) for key in keys}

    def element_number(self) -> Word:
        return _LANES

    def qpu_number(self) -> Word:
        return np.full(16, self._number % 12, np.uint32)

    def x_coord(self) -> Word:
        return 64 + (_LANES >> np.uint32(2)) * np.uint32(2) + (_LANES & np.uint32(1))

    def y_coord(self) -> Word:
        return 32 + (_LANES >> np.uint32(1) & np.uint32(1))

    def ms_flags(self) -> Word:
        return np.full(16, 15, np.uint32)

    def rev_flag(self) -> Word:
        return np.zeros(16, np.uint32)

    def set_ms_flags(self, value: Word, mask: Mask) -> None:
        self._all("samples", *_seen(value, mask))

    def set_rev_flag(self, value: Word, mask: Mask) -> None:
        self._all("reverse", *_seen(value, mask))

    def set_quad(self, axis: str, value: Word, mask: Mask) -> None:
        self._all(axis, *_seen(value, mask))

    # ---------------------------------------------------------------- what keeps its place among all
    def tlb_z(self, value: Word, mask: Mask) -> None:
        self._all("z", *_seen(value, mask))

    def tlb_colour(self, value: Word, mask: Mask, all_samples: bool) -> None:
        self._all("colour", *_seen(value, mask), all_samples)

    def tlb_colour_load(self) -> Word:
        self._all("colour load")
        return self._words(4, len(self.log["other"]))

    def tlb_stencil(self, value: Word) -> None:
        self._all("stencil", *_seen(value))

    def tlb_alpha_mask(self, value: Word, mask: Mask) -> None:
        self._all("alpha", *_seen(value, mask))

    def tlb_alpha_load(self) -> Word:
        self._all("alpha load")
        return self._words(5, len(self.log["other"]))

    def tlb_coverage_load(self) -> Word:
        self._all("coverage load")
        return self._words(6, len(self.log["other"]))

    def scoreboard_wait(self) -> None:
        self._all("scoreboard wait")

    def scoreboard_unlock(self) -> None:
        self._all("scoreboard unlock")

    def mutex_acquire(self) -> Word:
        self._all("mutex")
        return np.zeros(16, np.uint32)

    def mutex_release(self) -> None:
        self._all("mutex release")

    def semaphore(self, number: int, decrement: bool) -> None:
        self._all("semaphore", number, decrement)

    def host_interrupt(self, value: Word, mask: Mask) -> None:
        self._all("interrupt")  # whatever the value

    def thread_switch(self, last: bool) -> None:
        self._all("switch", last)

    def breakpoint(self) -> None:
        self._all("breakpoint")

    def loop_limit(self) -> None:
        """Do nothing more: what was done until now is compared."""


def _seen(value: Word, mask: Mask | None = None) -> tuple[bytes, bytes]:
    """The lanes that count of a word that goes somewhere."""
    lanes = np.array(np.broadcast_to(value, 16), np.uint32)
    if mask is None:
        return lanes.tobytes(), b""
    taken = np.broadcast_to(mask, 16)
    lanes[~taken] = 0
    return lanes.tobytes(), taken.tobytes()


__all__ = ["BUDGET", "RUNS", "Checked", "Difference", "Inputs", "Unsupported", "check"]

"""The state of a QPU and of what all share, as plain values: what every face shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from vc4lab.debug.expressions import ExpressionError
from vc4lab.memory import MEMORY_SIZE
from vc4lab.qpu.run.environment import RegisterKey
from vc4lab.v3d.user_programs.needs import SEMAPHORES
from vc4lab.v3d.user_programs.qpu import RunState
from vc4lab.v3d.vpm.shader_rows import WINDOW_ROWS

if TYPE_CHECKING:
    from vc4lab.debug.stage import Stage
    from vc4lab.debug.stepped import Stepped, TmuState

REGISTERS: tuple[tuple[str, RegisterKey], ...] = (
    *((f"r{n}", ("r", n)) for n in range(6)),
    *((f"ra{n}", ("a", n)) for n in range(32)),
    *((f"rb{n}", ("b", n)) for n in range(32)),
)
"""Name of each register and its key, accumulators first."""

_STATES = {
    RunState.READY: "ready",
    RunState.WAITING: "waiting",
    RunState.STUCK: "stuck",
    RunState.STOPPED: "stopped",
    RunState.ENDED: "ended",
}


class Pending(NamedTuple):
    """A result on its way: the register, its words, instructions until it is there."""

    register: str
    words: list[int]
    instructions: int


class QpuView:
    """Gives expressions and user interfaces the state of a QPU."""

    def __init__(self, stage: Stage, qpu: Stepped) -> None:
        self.stage, self.qpu = stage, qpu

    # -- as expressions see it

    def register(self, key: RegisterKey) -> Any:
        """Its 16 words: the newest, which the next instruction may not see yet."""
        word = self.qpu.machine.core.values.get(key)
        return np.zeros(16, np.uint32) if word is None else lanes_of(word)

    def flag(self, name: str) -> Any:
        """Its 16 truth values."""
        return lanes_of(self.qpu.machine.flag(name))

    def number(self, name: str) -> int | None:
        """Return the value of a name; None: it has none."""
        qpu = self.qpu
        if name == "unif":
            return qpu.uniform_address
        if name == "pc":
            return qpu.next_address
        if name in ("qpu", "qpu_num"):
            return qpu.number
        if name == "instructions":
            return qpu.machine.count
        if name == "mutex":
            return None if self.stage.shared is None else int(self.stage.shared.mutex) - 1
        area = self.stage.areas.get(name)
        if area is not None:
            return area.address
        offset = self.stage.source.labels.get(name)
        return None if offset is None else self.stage.code_address(offset)

    def lanes(self, name: str) -> Any:
        """The 16 words of a name that only this kind of program has; None: there is no such name."""
        return self.stage.lanes(name)

    def word(self, address: int) -> int:
        """A word of guest memory."""
        if not -MEMORY_SIZE <= address < 1 << 32:
            raise ExpressionError(f"{address:#x} is no address")
        return self.stage.memory.u32(address)

    def vpm_row(self, row: int) -> Any:
        """Its 16 words."""
        if not 0 <= row < WINDOW_ROWS:
            raise ExpressionError(f"the VPM has rows 0 to {WINDOW_ROWS - 1}, not {row}")
        return self.stage.vpm_rows()[row]

    def semaphore(self, number: int) -> int:
        """Its value."""
        if not 0 <= number < SEMAPHORES:
            raise ExpressionError(f"semaphores are 0 to {SEMAPHORES - 1}, not {number}")
        if self.stage.shared is None:
            raise ExpressionError("shaders have no semaphores")
        return int(self.stage.shared.semaphores[number])

    # -- as people see it

    @property
    def state(self) -> str:
        """In a word."""
        return _STATES[self.qpu.run_state]

    @property
    def waits(self) -> str:
        """Return what it waits for, or why it stopped, in words; "" if it goes on."""
        if self.qpu.run_state in (RunState.READY, RunState.ENDED):
            return ""
        return self.qpu.waits

    def written(self) -> Iterator[tuple[str, Any]]:
        """Registers that were ever written, and their words."""
        for name, key in REGISTERS:
            if key in self.qpu.machine.core.values:
                yield name, self.register(key)

    def pending(self) -> list[Pending]:
        """Results of the SFU, and register writes that the next instruction does not see."""
        core = self.qpu.machine.core
        found = [Pending("r4", _words(word), left + 1) for left, word in core.sfu]
        found += [
            Pending(f"r{file}{number}", _words(core.values[file, number]), 1) for file, number in core.old
        ]
        return found

    def due(self) -> list[str]:
        """List what happens after delay slots, in words."""
        texts = {"branch": "the branch to 0x{0:x} is taken", "end": "the program ends"}
        found = []
        for event in self.qpu.machine.due:
            text = texts.get(event.kind, "threads switch").format(event.target or 0)
            found.append(f"{text} after {event.remaining} more instruction{'s'[: event.remaining > 1]}")
        return found

    def uniforms(self, count: int = 8) -> list[tuple[int, int]]:
        """(address, word) of the next words of the stream."""
        start = self.qpu.uniform_address
        return [(start + 4 * n, self.stage.memory.u32(start + 4 * n)) for n in range(count)]

    def tmu(self, number: int) -> TmuState:
        """One of its two TMUs."""
        return self.qpu.tmu(number)

    def setups(self) -> dict[str, int]:
        """The VPM and DMA setup words that it has written."""
        return self.qpu.setups()


def lanes_of(word: Any) -> Any:
    """The 16 lanes of a word or mask, of one block of pixels or vertices where it has those."""
    return np.broadcast_to(word, (*word.shape[:-1], 16)).reshape(-1, 16)[0]


def _words(word: Any) -> list[int]:
    return [int(one) for one in lanes_of(word)]

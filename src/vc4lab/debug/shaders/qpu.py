"""A QPU that runs a shader for one block of 16 pixels or vertices, an instruction a turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from vc4lab.debug.state import lanes_of
from vc4lab.debug.stepped import Stepped, TmuState
from vc4lab.qpu.run.environment import REFERENCE_BUDGET, Unsupported, left_text
from vc4lab.simd import Value
from vc4lab.simd.eager import Eager
from vc4lab.v3d.user_programs.qpu import RunState
from vc4lab.v3d.user_programs.state import LOOKUPS
from vc4lab.v3d.vertex.context import LEFT
from vc4lab.v3d.vertex.reference import Ended

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from vc4lab.qpu.run.environment import Noted
    from vc4lab.qpu.run.interpreter import SavedRun
    from vc4lab.qpu.run.wide import WideInterpreter
    from vc4lab.v3d.tmu.requests import Requests

_WORD = 0xFFFFFFFF


class ShaderRun(Protocol):
    """The environment of one block, as a session sees it."""

    requests: Requests[Any]

    @property
    def uniform_address(self) -> int:
        """Guest address of the next word of the stream."""

    def carrying_out(self) -> AbstractContextManager[Any]:
        """An instruction is executed inside of it."""

    def saved(self) -> Any:
        """Its state between two instructions."""

    def restore(self, saved: Any) -> None:
        """Back to a state."""

    def setups(self) -> dict[str, int]:
        """Setup words of the VPM."""


class SavedShader(NamedTuple):
    """All that a turn may change, guest memory excepted."""

    run: SavedRun
    environment: Any
    fields: tuple[Any, ...]


_FIELDS = ("run_state", "site", "code", "reason")


class ShaderQpu(Stepped):
    """The QPU of a session of a shader.

    code, reason: of the diagnostic if it was stopped, and in words.
    """

    machine: WideInterpreter

    def __init__(self, machine: WideInterpreter, environment: ShaderRun, budget: int) -> None:
        self.number, self.need = 0, None
        self.machine, self.environment = machine, environment
        self.program = machine.program
        self.run_state = RunState.READY
        self.site, self.code, self.reason = 0, "", ""
        self._budget = min(budget, REFERENCE_BUDGET)

    def advance(self) -> bool:
        machine = self.machine
        site = machine.follow()
        self.site = machine.program.left_by(machine.last) if site is None else site
        try:
            with self.environment.carrying_out():
                machine.step()
        except Unsupported as verdict:
            self._stop(verdict.code, verdict.message)
            return False
        except Ended as verdict:
            text = left_text(machine.address) if verdict.status == LEFT else _ENDED
            self._stop("QPU-042" if verdict.status == LEFT else "VTX-003", text)
            return False
        if machine.finished == "end":
            self.run_state = RunState.ENDED
        elif machine.count >= self._budget:
            self._stop("QPU-041", f"{machine.count} instructions without an end")
        return True

    def _stop(self, code: str, reason: str) -> None:
        self.run_state, self.code, self.reason = RunState.STOPPED, code, reason

    @property
    def waits(self) -> str:
        return f"was stopped: {self.reason}" if self.reason else ""

    def text_of(self) -> str:
        return f"the shader at 0x{self.address:08x} {self.waits}".rstrip()

    @property
    def uniform_address(self) -> int:
        return self.environment.uniform_address

    def tmu(self, number: int) -> TmuState:
        noted = self.environment.requests.noted()
        return tmu_state(noted, number)

    def setups(self) -> dict[str, int]:
        return self.environment.setups()

    def saved(self) -> SavedShader:
        fields = tuple(getattr(self, name) for name in _FIELDS)
        return SavedShader(self.machine.saved(), self.environment.saved(), fields)

    def restore(self, saved: SavedShader) -> None:
        self.machine.restore(saved.run)
        self.environment.restore(saved.environment)
        for name, value in zip(_FIELDS, saved.fields, strict=True):
            setattr(self, name, value)


_ENDED = "it reads a row of the VPM for which no set-up asked, or one that there is not"


def words_of(value: Any) -> list[int]:
    """The 16 words of an array or of a staged value of one block."""
    words = Eager.words(value) if isinstance(value, Value) else np.asarray(value)
    return [int(word) & _WORD for word in lanes_of(words)]


def tmu_state(noted: Noted, number: int) -> TmuState:
    """A texture unit's state, of what `Requests.noted` returns."""
    (names, counts), values = noted.shape, iter(noted.values)
    pending = [{name: words_of(next(values)) for name in unit} for unit in names]
    lists = [[words_of(next(values)) for _ in range(count)] for count in counts]
    parameters = [words[0] for words in lists[number]]
    results = lists[2 + number]
    return TmuState(results, parameters, pending[number], max(LOOKUPS - len(results), 0))

"""What scheduling gives: words and the streams that they read."""

from __future__ import annotations

from dataclasses import dataclass, field

from vc4lab.driver.compiler.machine.code import Op
from vc4lab.driver.compiler.result import Uniform
from vc4lab.qpu.isa.operations import BranchCondition, Condition

BRANCHES = {
    Condition.ZS: BranchCondition.ANY_ZS,
    Condition.ZC: BranchCondition.ANY_ZC,
    Condition.NS: BranchCondition.ANY_NS,
    Condition.NC: BranchCondition.ANY_NC,
    Condition.CS: BranchCondition.ANY_CS,
    Condition.CC: BranchCondition.ANY_CC,
}
"""What a loop's last instruction asks of all lanes to go back, by the lanes that go on."""


@dataclass
class Scheduled:
    """A program with order and registers: words, the uniforms in the order in which they are
    read, varyings likewise (as given by their operations), and what each instruction is made of.

    cost: its instructions, each `weight` times; the scheduler sets that for what comes next.
    """

    words: list[int] = field(default_factory=list)
    uniforms: list[Uniform] = field(default_factory=list)
    varyings: list[Op] = field(default_factory=list)
    ops: list[tuple[Op, ...]] = field(default_factory=list)
    cost: int = 0
    weight: int = 1

    def emit(self, word: int, ops: tuple[Op, ...] = (), uniform: Uniform | None = None) -> None:
        """One more instruction."""
        self.words.append(word)
        self.cost += self.weight
        self.ops.append(ops)
        if uniform is not None:
            self.uniforms.append(uniform)

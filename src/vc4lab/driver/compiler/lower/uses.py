"""What a flat shader does with each of its values: how often it is read, and where."""

from __future__ import annotations

from collections.abc import Sequence

from vc4lab.driver.compiler.ssa.optimise import walk
from vc4lab.driver.compiler.ssa.values import Block, Function, If, Jump, Loop, Value


class Uses:
    """The uses of a function's values."""

    def __init__(self, function: Function) -> None:
        self.count: dict[Value, int] = {}
        """How often each value is read."""
        self.crossing: dict[Block, list[Value]] = {}
        """The values of each block that other blocks read."""
        self.outputs: dict[tuple[int, int], Value] = {}
        """What each component of an output gets."""
        self.discarded: Value | None = None
        """Whether a pixel is left out."""
        self._made: dict[Value, Block] = {}
        self._elsewhere: dict[Value, None] = {}
        last: Block | None = None
        for node in walk(function.body):
            if isinstance(node, Block):
                last = node
                self._block(node)
            elif isinstance(node, If):
                self._read((node.condition,), last)
            elif isinstance(node, Loop):
                self._read(node.initial, last)
            elif isinstance(node, Jump):
                self._read(node.values, last)
        for value in self._elsewhere:
            if value.op not in ("constant", "uniform"):
                self.crossing.setdefault(self._made[value], []).append(value)

    def _block(self, block: Block) -> None:
        for value in block.values:
            self._made[value] = block
            self._read(value.args, block)
            if value.op == "output":
                self.outputs[value.attributes] = value.args[0]
            elif value.op == "discard_if":
                self.discarded = value.args[0]

    def _read(self, values: Sequence[Value], block: Block | None) -> None:
        for value in values:
            self.count[value] = self.count.get(value, 0) + 1
            if value in self._made and self._made[value] is not block:
                self._elsewhere[value] = None

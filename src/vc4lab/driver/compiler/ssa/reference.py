"""Executes a shader in SSA form, all lanes at once (numpy): what every later step must agree with.

Lanes are in quads: four in a row are the pixels (0 1 / 2 3) of a 2x2 square.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from vc4lab.driver.compiler.ssa.ops import OPS, Words, compute
from vc4lab.driver.compiler.ssa.values import Block, Function, If, Jump, Loop, Node, Value

Mask = NDArray[np.bool_]
Sampler = Callable[[str, str, int, list[Words]], list[Words]]
"""From operation, texture, sampler and coordinates to four components."""
BUDGET = 1 << 16
"""Turns of all loops together."""


class Endless(Exception):  # noqa: N818 - a fact about the shader
    """A loop was not left within the budget."""


@dataclass
class Inputs:
    """The words that a shader reads. An absent one is 0.

    Attributes
    ----------
    lanes
        How many; a multiple of 4.
    inputs, system
        Words of each lane by register and component.
    uniforms
        The words of each constant buffer, four to a register.
    """

    lanes: int
    inputs: Mapping[tuple[int, int], Words] = field(default_factory=dict)
    system: Mapping[tuple[int, int], Words] = field(default_factory=dict)
    uniforms: tuple[Words, ...] = ()
    sampler: Sampler | None = None
    budget: int = BUDGET

    def uniform(self, buffer: int, register: NDArray[np.int64], component: int) -> Words:
        """A word of a constant buffer for each lane; outside of it 0."""
        words = self.uniforms[buffer] if buffer < len(self.uniforms) else np.zeros(0, np.uint32)
        place = register * 4 + component
        inside = (place >= 0) & (place < len(words))
        padded = np.append(words, np.uint32(0))
        return padded[np.where(inside, place, len(words))]

    def sample(self, name: str, texture: str, unit: int, args: list[Words]) -> list[Words]:
        """Four components; without a sampler black."""
        if self.sampler is None:
            zero = np.zeros(self.lanes, np.uint32)
            return [zero, zero, zero, np.full(self.lanes, 0x3F800000, np.uint32)]
        return self.sampler(name, texture, unit, args)


@dataclass
class Outputs:
    """The words that a shader wrote, by register and component, and the lanes that it discarded."""

    outputs: dict[tuple[int, int], Words]
    discarded: Mask


def run(function: Function, inputs: Inputs) -> Outputs:
    """Execute a shader. Raises Endless."""
    return _Run(function, inputs).run()


class _Run:
    """The values of one execution, by their definitions."""

    def __init__(self, function: Function, inputs: Inputs) -> None:
        self._function = function
        self._inputs = inputs
        self._words: dict[Value, Words] = {}
        self._samples: dict[Value, list[Words]] = {}
        self._memory = {
            name: np.zeros((size, 4, inputs.lanes), np.uint32) for name, size in function.arrays.items()
        }
        self._left: dict[Loop, Mask] = {}
        self._again: dict[Loop, Mask] = {}
        self._turns = 0
        self._outputs = Outputs({}, np.zeros(inputs.lanes, np.bool_))

    def run(self) -> Outputs:
        self._nodes(self._function.body, np.ones(self._inputs.lanes, np.bool_))
        return self._outputs

    def _nodes(self, nodes: list[Node], mask: Mask) -> Mask:
        """Execute for the lanes of `mask`; those that come to the end."""
        for node in nodes:
            if not mask.any():
                break
            if isinstance(node, Block):
                for value in node.values:
                    self._value(value, mask)
            elif isinstance(node, If):
                mask = self._if(node, mask)
            elif isinstance(node, Loop):
                mask = self._loop(node, mask)
            else:
                mask = self._jump(node, mask)
        return mask

    def _if(self, node: If, mask: Mask) -> Mask:
        condition = self._words[node.condition] != 0
        first = self._nodes(node.then, mask & condition)
        self._give(node.parameters, node.then_values or (), first)
        second = self._nodes(node.otherwise, mask & ~condition)
        self._give(node.parameters, node.else_values or (), second)
        return first | second

    def _loop(self, node: Loop, mask: Mask) -> Mask:
        self._give(node.parameters, node.initial, mask)
        self._left[node] = np.zeros_like(mask)
        while mask.any():
            self._turns += 1
            if self._turns > self._inputs.budget:
                raise Endless(f"no end after {self._inputs.budget} turns")
            self._again[node] = np.zeros_like(mask)
            self._nodes(node.body, mask)
            mask = self._again[node]
        return self._left[node]

    def _jump(self, node: Jump, mask: Mask) -> Mask:
        is_break = node.kind == "break"
        names = node.loop.results if is_break else node.loop.parameters
        self._give(names, node.values, mask)
        into = self._left if is_break else self._again
        into[node.loop] |= mask
        return np.zeros_like(mask)

    def _give(self, names: tuple[Value, ...], values: tuple[Value, ...], mask: Mask) -> None:
        """Parameters get values in the lanes of `mask`, all at once."""
        new = [self._words.get(value) for value in values]
        for name, words in zip(names, new, strict=False):
            old = self._words.get(name)
            if words is None:  # of a way that no lane took
                continue
            self._words[name] = words if old is None else np.where(mask, words, old)

    def _value(self, value: Value, mask: Mask) -> None:
        op = OPS[value.op]
        if op.compute is not None:
            self._words[value] = compute(op, [self._words[arg] for arg in value.args])
        else:
            handler = getattr(self, f"_{value.op}")
            handler(value, mask)

    def _constant(self, value: Value, _mask: Mask) -> None:
        self._words[value] = np.full(self._inputs.lanes, value.attributes[0], np.uint32)

    def _input(self, value: Value, _mask: Mask) -> None:
        self._words[value] = self._of_lanes(self._inputs.inputs, value)

    def _system(self, value: Value, _mask: Mask) -> None:
        self._words[value] = self._of_lanes(self._inputs.system, value)

    def _of_lanes(self, table: Mapping[tuple[int, int], Words], value: Value) -> Words:
        number, component = value.attributes
        found = table.get((number, component))
        return np.zeros(self._inputs.lanes, np.uint32) if found is None else found

    def _uniform(self, value: Value, _mask: Mask) -> None:
        buffer, register, component = value.attributes
        registers = np.full(self._inputs.lanes, register, np.int64)
        self._words[value] = self._inputs.uniform(buffer, registers, component)

    def _uniform_at(self, value: Value, _mask: Mask) -> None:
        buffer, first, component = value.attributes
        registers = self._words[value.args[0]].view(np.int32).astype(np.int64) + first
        self._words[value] = self._inputs.uniform(buffer, registers, component)

    def _place(self, value: Value) -> tuple[NDArray[np.uint32], NDArray[np.int64], Mask]:
        """An array's component, the registers that are meant, and which of them there are."""
        name, first, component = value.attributes
        memory = self._memory[name][:, component]
        registers = self._words[value.args[0]].view(np.int32).astype(np.int64) + first
        return memory, registers, (registers >= 0) & (registers < len(memory))

    def _load(self, value: Value, _mask: Mask) -> None:
        memory, registers, inside = self._place(value)
        lanes = np.arange(self._inputs.lanes)
        words = memory[np.where(inside, registers, 0), lanes]
        self._words[value] = np.where(inside, words, np.uint32(0))

    def _store(self, value: Value, mask: Mask) -> None:
        memory, registers, inside = self._place(value)
        lanes = np.flatnonzero(mask & inside)
        memory[registers[lanes], lanes] = self._words[value.args[1]][lanes]

    def _sample(self, value: Value, _mask: Mask) -> None:
        name, texture, unit = value.attributes
        args = [self._words[arg] for arg in value.args]
        self._samples[value] = self._inputs.sample(name, texture, unit, args)

    def _component(self, value: Value, _mask: Mask) -> None:
        self._words[value] = self._samples[value.args[0]][value.attributes[0]]

    def _output(self, value: Value, mask: Mask) -> None:
        number, component = value.attributes
        old = self._outputs.outputs.get((number, component), np.zeros(len(mask), np.uint32))
        self._outputs.outputs[number, component] = np.where(mask, self._words[value.args[0]], old)

    def _discard_if(self, value: Value, mask: Mask) -> None:
        self._outputs.discarded |= mask & (self._words[value.args[0]] != 0)

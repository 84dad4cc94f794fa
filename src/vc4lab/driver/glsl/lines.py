"""Which line of GLSL made each value of a shader: found by comparing it with its probes.

Values are known by what they are made of: operation, operands, and theirs in turn (`shape_of`), whatever
register holds them. A value belongs to the statement that is executed first of those that need it to have
what they assign. A probe counts only if the shader itself is in it unchanged. What no probe needs has no
line.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from vc4lab.driver.compiler.ssa.from_tgsi import to_ssa
from vc4lab.driver.compiler.ssa.values import Block, Function, If, Jump, Loop, Node, Value
from vc4lab.driver.compiler.tgsi.parser import parse
from vc4lab.driver.compiler.tgsi.program import File, Program, TgsiError
from vc4lab.driver.glsl.probes import MARK, Statement

ROUNDS = 4
"""How often a loop's values are followed round."""
GLSL_SHIFT = 20
"""In `Value.line`: the line of TGSI below, that of GLSL above."""
LEAVES = frozenset(("constant", "uniform"))
CONVERSIONS = frozenset(("i2f", "b2f", "u2f", "and", "select"))
"""By which Mesa makes floats of integers and truth values."""
_MARK_WORD = 0x42F60000
assert MARK == 123.0


class Shape(NamedTuple):
    """A function with what is known of its values.

    Attributes
    ----------
    numbers
        A number for each value: equal for values, also of other functions, made in the same way.
    needs
        The values that each parameter, load and plain value is made of.
    outputs
        By register and component.
    """

    numbers: dict[Value, int]
    needs: dict[Value, tuple[Value, ...]]
    outputs: dict[tuple[int, int], Value]


def shape_of(function: Function) -> Shape:
    """Return the structure of a function's values: what each is made of."""
    needs: dict[Value, tuple[Value, ...]] = {}
    kinds: dict[Value, tuple[object, ...]] = {}
    order: list[Value] = []
    stores: dict[str, list[Value]] = defaultdict(list)
    outputs: dict[tuple[int, int], Value] = {}
    given: dict[Loop, dict[str, list[tuple[tuple[Value, ...], tuple[Value, ...]]]]] = {}

    def walk(nodes: list[Node], conditions: tuple[Value, ...]) -> None:
        for node in nodes:
            if isinstance(node, Block):
                for value in node.values:
                    order.append(value)
                    needs[value] = value.args
                    kinds[value] = (value.op, value.attributes)
                    if value.op == "store":
                        stores[str(value.attributes[0])].append(value)
                    if value.op == "output":
                        register, component = value.attributes
                        outputs[register, component] = value
            elif isinstance(node, If):
                walk(node.then, (*conditions, node.condition))
                walk(node.otherwise, (*conditions, node.condition))
                for number, name in enumerate(node.parameters):
                    ways = [one[number] for one in (node.then_values, node.else_values) if one is not None]
                    add(name, "if", (node.condition, *ways))
            elif isinstance(node, Loop):
                for name, value in zip(node.parameters, node.initial, strict=True):
                    add(name, "loop", (value,))
                given[node] = {"break": [], "continue": []}
                walk(node.body, ())
                for number, name in enumerate(node.parameters):
                    values = [one[number] for one, _ in given[node]["continue"]]
                    needs[name] = (*needs[name], *values)
                for number, name in enumerate(node.results):
                    found: list[Value] = []
                    for values_, why in given[node]["break"]:
                        found += [values_[number], *why]
                    add(name, "result", tuple(found))
            elif isinstance(node, Jump):
                given[node.loop][node.kind].append((node.values, conditions))

    def add(name: Value, kind: str, values: tuple[Value, ...]) -> None:
        order.append(name)
        needs[name] = values
        kinds[name] = (kind,)

    walk(function.body, ())
    for value in order:
        if value.op == "load":
            needs[value] = (*value.args, *stores[str(value.attributes[0])])
    numbers = dict.fromkeys(order, 0)
    for _ in range(ROUNDS):
        for value in order:
            numbers[value] = hash((kinds[value], tuple(numbers.get(one, 0) for one in needs[value])))
    return Shape(numbers, needs, outputs)


def cone(shape: Shape, roots: Iterable[Value]) -> Iterator[Value]:
    """The values that roots are made of, themselves among them, without constants and uniforms."""
    waiting, seen = list(roots), set[Value]()
    while waiting:
        value = waiting.pop()
        if value in seen or value.op in LEAVES:
            continue
        seen.add(value)
        yield value
        waiting += shape.needs.get(value, ())


class Lines:
    """The lines of a shader's values.

    Parameters
    ----------
    program
        The shader as Mesa gives it.
    output
        The register that colour or position are in; None: no statement can be shown.
    """

    def __init__(self, program: Program) -> None:
        self._shape = shape_of(to_ssa(program))
        self._register = _shown_register(program)
        self._lines: dict[int, int] = {}
        self._outputs: dict[tuple[int, int], tuple[bool, int]] = {}
        self.probes = 0
        """Probes that count."""

    def add(self, statement: Statement, text: str, output: str) -> bool:
        """Take in what the next probe shows, in the order of `probes_of`.

        False: it does not count, as the shader in it is another.
        text: TGSI of the probe; output: the built-in variable in whose place it is.
        """
        try:
            shown = self._shown(shape_of(to_ssa(parse(text))))
        except TgsiError:
            return False
        if shown is None:
            return False
        shape, roots = shown
        self.probes += 1
        for value in cone(shape, roots.values()):
            self._lines.setdefault(shape.numbers[value], statement.line)
        self._add_outputs(statement, output, {c: shape.numbers[value] for c, value in roots.items()})
        return True

    def _add_outputs(self, statement: Statement, output: str, roots: dict[int, int]) -> None:
        """The statement that has assigned what an output is at the end."""
        found = set(roots.values())
        base = statement.target.replace(" ", "").partition("[")[0].partition(".")[0]
        if not base:
            return
        is_shown = base == output.partition("[")[0]
        for place, value in self._shape.outputs.items():
            source = value.args[0]
            if self._shape.numbers.get(source) in found and (
                is_shown if place[0] == self._register else not is_shown
            ):
                self._outputs[place] = True, statement.line

    def _shown(self, shape: Shape) -> tuple[Shape, dict[int, Value]] | None:
        """The values that a probe shows, by component; None if the shader is not in it."""
        roots: dict[int, Value] = {}
        if shape.outputs.keys() != self._shape.outputs.keys():
            return None
        for place, value in shape.outputs.items():
            mine = self._shape.numbers.get(self._shape.outputs[place].args[0], 0)
            other = value.args[0]
            if place[0] != self._register or shape.numbers.get(other) == mine:
                if shape.numbers.get(other) != mine:
                    return None
                if place[0] == self._register:
                    roots[place[1]] = other
                continue
            if other.op != "select" or mine not in (shape.numbers.get(one) for one in other.args[1:]):
                return None
            first, second = other.args[1:]
            roots[place[1]] = second if shape.numbers.get(first) == mine else first
        last = roots.get(3)
        if last is not None and last.op == "constant" and last.attributes[0] == _MARK_WORD:
            del roots[3]
            for component, value in roots.items():
                if value.op in CONVERSIONS:
                    inner = [one for one in value.args if one.op not in LEAVES]
                    roots[component] = inner[0] if inner else value
        return shape, roots

    def mark(self, function: Function) -> None:
        """Put the lines into the values of the shader as `to_ssa` gives it, beside those of TGSI."""
        shape = shape_of(function)
        for value in shape.numbers:
            line = self._line_of(value, shape)
            if line:
                value.line |= line << GLSL_SHIFT

    def _line_of(self, value: Value, shape: Shape) -> int:
        if value.op == "output":
            register, component = value.attributes
            return self._outputs.get((register, component), (False, 0))[1]
        if value.op == "discard_if":
            # The conversions between a condition and what is done for it.
            lines = [self._lines.get(shape.numbers[one], 0) for one in cone(shape, value.args)]
            return max(lines, default=0)
        return self._lines.get(shape.numbers[value], 0)


def split_lines(lines: Sequence[tuple[int, ...]]) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The lines of TGSI and of GLSL of each instruction, of a program that was marked."""
    mask = (1 << GLSL_SHIFT) - 1
    return [
        (
            tuple(sorted({one & mask for one in row} - {0})),
            tuple(sorted({one >> GLSL_SHIFT for one in row} - {0})),
        )
        for row in lines
    ]


def _shown_register(program: Program) -> int | None:
    """The register of the colour or the position."""
    name = "COLOR" if program.stage == "FRAG" else "POSITION"
    for one in program.declarations:
        if one.file is File.OUT and one.semantic is not None:
            if (one.semantic.name, one.semantic.index) == (name, 0):
                return one.first
    return None

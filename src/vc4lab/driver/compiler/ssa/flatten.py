"""Control flow as a vector machine has it: no conditions, and loops that all lanes leave together.

Each way of a condition is executed for all lanes, and selects take what counts. A loop keeps
a mask of the lanes that are still in it; its variables stay as they are in lanes that have left.
Its body ends with one condition: lanes of the mask go on, the others leave. Arrays become
values, one for each component of each register; an index selects among them.

The result is a function of the same kind, so that the reference executes it, and the rules of
`optimise.py` hold. What the shape promises: `If` stands at the end of loops only, with a "continue"
and a "break"; both have the same values, which are frozen in lanes that have left.
"""

from __future__ import annotations

from vc4lab.driver.compiler.ssa.optimise import walk
from vc4lab.driver.compiler.ssa.values import Block, Function, If, Jump, Loop, Node, Value, parameter
from vc4lab.driver.compiler.tgsi.program import TgsiError

ALL = 0xFFFFFFFF
BOOLEAN = frozenset(("feq", "fne", "flt", "fge", "ieq", "ine", "ilt", "ige", "ult", "uge"))
"""Operations that give all bits or none."""
LOGIC = frozenset(("and", "or", "xor", "not"))
MOST_VALUES = 1 << 16
"""That a shader has after this: a small one whose arrays are large may have many."""

Element = tuple[str, int, int]
"""An array's name, a register in it, a component."""


def flatten(function: Function) -> Function:
    """Makes a shader without conditions and arrays. Raises TgsiError if it is too large."""
    return _Flattening(function).run()


def is_boolean(value: Value) -> bool:
    """Whether a value is known to have all bits or none in each lane."""
    if value.op in BOOLEAN or (value.op == "constant" and value.attributes[0] in (0, ALL)):
        return True
    return value.op in LOGIC and all(is_boolean(arg) for arg in value.args)


class _LoopState:
    """A loop whose body is being flattened: who goes on and who leaves, with which values."""

    def __init__(self, node: Loop) -> None:
        self.node = node
        self.ways: dict[str, list[tuple[Value, tuple[Value, ...]]]] = {"continue": [], "break": []}


class _Flattening:
    """A function on its way. A mask of None: all lanes."""

    def __init__(self, function: Function) -> None:
        self._old = function
        self._function = Function(function.stage)
        self._nodes = self._function.body
        self._block = Block()
        self._nodes.append(self._block)
        self._first = self._block
        self._constants: dict[int, Value] = {}
        self._new: dict[Value, Value] = {}
        self._count = 0
        zero = self._constant(0)
        self._elements: dict[Element, Value] = {
            (name, number, component): zero
            for name, component in _stored(function)
            for number in range(function.arrays[name])
        }
        self._discarded: Value | None = None
        self._outputs: dict[tuple[int, int], Value] = {}
        self._line = self._discard_line = 0
        self._output_lines: dict[tuple[int, int], int] = {}
        self._loops: list[_LoopState] = []

    def run(self) -> Function:
        self._walk(self._old.body, None)
        if self._discarded is not None:
            self._make("discard_if", self._discarded, line=self._discard_line)
        for place, value in self._outputs.items():
            self._make("output", value, attributes=place, line=self._output_lines[place])
        return self._function

    # -- values ------------------------------------------------------------------------------------

    def _make(self, op: str, *args: Value, attributes: tuple[object, ...] = (), line: int = 0) -> Value:
        self._count += 1
        if self._count > MOST_VALUES:
            raise TgsiError("TGSI-006", "too many values once its arrays are taken apart", line)
        value = Value(op, args, attributes, line or self._line)
        self._block.values.append(value)
        return value

    def _constant(self, word: int) -> Value:
        if word not in self._constants:
            value = Value("constant", (), (word,))
            self._constants[word] = value
            self._first.values.insert(0, value)
        return self._constants[word]

    def _select(self, condition: Value, first: Value, second: Value) -> Value:
        return first if first is second else self._make("select", condition, first, second)

    def _masked(self, mask: Value | None, new: Value, old: Value) -> Value:
        return new if mask is None else self._select(mask, new, old)

    def _and(self, mask: Value | None, condition: Value) -> Value:
        return condition if mask is None else self._make("and", mask, condition)

    def _or(self, values: list[Value]) -> Value:
        result = values[0]
        for value in values[1:]:
            result = self._make("or", result, value)
        return result

    def _boolean(self, value: Value) -> Value:
        return value if is_boolean(value) else self._make("ine", value, self._constant(0))

    # -- nodes -------------------------------------------------------------------------------------

    def _walk(self, nodes: list[Node], mask: Value | None) -> Value | None:
        """Flatten; the mask of the lanes that come to the end (None: all)."""
        for node in nodes:
            if isinstance(node, Block):
                for value in node.values:
                    self._value(value, mask)
            elif isinstance(node, If):
                mask = self._if(node, mask)
            elif isinstance(node, Loop):
                self._loop(node, mask)
            else:
                mask = self._jump(node, mask)
        return mask

    def _value(self, value: Value, mask: Value | None) -> None:
        if value.op == "constant":
            self._new[value] = self._constant(value.attributes[0])
            return
        self._line = value.line
        args = tuple(self._new[arg] for arg in value.args)
        if value.op == "load":
            self._new[value] = self._load(value, args[0])
        elif value.op == "store":
            self._store(value, args, mask)
        elif value.op == "discard_if":
            condition = self._and(mask, self._boolean(args[0]))
            old = self._discarded
            self._discarded = condition if old is None else self._make("or", old, condition)
            self._discard_line = value.line
        elif value.op == "output":
            old = self._outputs.get(value.attributes)
            new = args[0] if old is None else self._masked(mask, args[0], old)
            self._outputs[value.attributes] = new
            self._output_lines[value.attributes] = value.line
        else:
            new = self._make(value.op, *args, attributes=value.attributes, line=value.line)
            self._new[value] = new

    def _if(self, node: If, mask: Value | None) -> Value | None:
        condition = self._boolean(self._new[node.condition])
        then_mask = self._and(mask, condition)
        first = self._walk(node.then, then_mask)
        second: Value | None = None
        jumps = first is not then_mask
        else_mask = None
        if node.otherwise and any(not isinstance(one, Block) or one.values for one in node.otherwise):
            else_mask = self._and(mask, self._make("not", condition))
            second = self._walk(node.otherwise, else_mask)
            jumps |= second is not else_mask
        thens, elses = node.then_values, node.else_values
        for place, name in enumerate(node.parameters):
            self._line = name.line
            if thens is None or elses is None:
                ways = elses if thens is None else thens
                self._new[name] = self._constant(0) if ways is None else self._new[ways[place]]
            else:
                self._new[name] = self._select(condition, self._new[thens[place]], self._new[elses[place]])
        if not jumps:
            return mask
        if else_mask is None:
            second = self._and(mask, self._make("not", condition))
        assert first is not None
        assert second is not None
        return self._or([first, second])

    def _jump(self, node: Jump, mask: Value | None) -> Value:
        state = next(one for one in reversed(self._loops) if one.node is node.loop)
        values = tuple(self._new[value] for value in node.values)
        state.ways[node.kind].append((self._constant(ALL) if mask is None else mask, values))
        return self._constant(0)

    def _loop(self, node: Loop, mask: Value | None) -> None:
        """Variables of the flat loop: the mask, the old loop's parameters and results, and the
        elements of arrays and the discarded lanes that its body changes.
        """
        state = _LoopState(node)
        elements = [one for one in self._elements if one[0::2] in _stored_in(node)]
        discards = any(
            value.op == "discard_if"
            for inner in walk(node.body)
            if isinstance(inner, Block)
            for value in inner.values
        )
        zero = self._constant(0)
        initial = [self._constant(ALL) if mask is None else mask]
        initial += [self._new[value] for value in node.initial]
        initial += [zero] * len(node.results)
        initial += [self._elements[one] for one in elements]
        if discards:
            initial.append(self._discarded or zero)
        names = [parameter("lanes")]
        names += [parameter(value.attributes[0], value.line) for value in node.parameters]
        names += [parameter(value.attributes[0], value.line) for value in node.results]
        names += [parameter(f"{name}[{number}].{c}") for name, number, c in elements]
        names += [parameter("discarded")] * discards
        flat = Loop([], tuple(names), tuple(initial))
        outer, self._nodes = self._nodes, flat.body
        outer.append(flat)
        self._block = Block()
        self._nodes.append(self._block)
        active, *rest = names
        first, second = len(node.parameters), len(node.parameters) + len(node.results)
        self._new.update(zip(node.parameters, rest[:first], strict=True))
        self._elements.update(zip(elements, rest[second:], strict=False))
        if discards:
            self._discarded = names[-1]
        self._loops.append(state)
        self._walk(node.body, active)
        self._loops.pop()
        again = state.ways["continue"]
        mask_again = self._or([one for one, _ in again]) if again else zero
        values = [mask_again]
        for place, old in enumerate(rest[:first]):
            values.append(self._merged(again, place, old))
        for place, old in enumerate(rest[first:second]):
            values.append(self._merged(state.ways["break"], place, old))
        values += [self._elements[one] for one in elements]
        if discards:
            assert self._discarded is not None
            values.append(self._discarded)
        results = tuple(parameter(value.attributes[0], value.line) for value in names)
        flat.results = results
        given = tuple(values)
        self._nodes.append(
            If(mask_again, [Jump("continue", flat, given)], [Jump("break", flat, given)], (), None, None)
        )
        self._nodes = outer
        self._block = Block()
        self._nodes.append(self._block)
        for place, name in enumerate(node.results):
            self._new[name] = results[1 + self._result(state, place, rest[:first], first)]
        self._elements.update(zip(elements, results[1 + second :], strict=False))
        if discards:
            self._discarded = results[-1]

    def _result(self, state: _LoopState, place: int, parameters: list[Value], first: int) -> int:
        """Which variable of the flat loop an old result is.

        A lane that leaves with what a parameter was at the beginning of its last turn finds it
        there: parameters stay as they are in lanes that leave.
        """
        given = {values[place] for _, values in state.ways["break"]}
        if len(given) == 1 and (value := given.pop()) in parameters:
            return parameters.index(value)
        return first + place

    def _merged(self, ways: list[tuple[Value, tuple[Value, ...]]], place: int, old: Value) -> Value:
        """A variable at the end of a turn: what the lanes of each way give it, else as it was."""
        result = old
        for mask, values in ways:
            result = self._select(mask, values[place], result)
        return result

    # -- arrays ------------------------------------------------------------------------------------

    def _load(self, value: Value, index: Value) -> Value:
        """Return the element that an index names; 0 outside of the array."""
        name, first, component = value.attributes
        size = self._old.arrays[name]
        zero = self._constant(0)
        if index.op == "constant":
            number = _signed(index.attributes[0]) + first
            return self._elements.get((name, number, component), zero)
        result = zero
        for number in range(size):
            element = self._elements.get((name, number, component), zero)
            same = self._make("ieq", index, self._constant((number - first) & ALL))
            result = self._select(same, element, result)
        return result

    def _store(self, value: Value, args: tuple[Value, ...], mask: Value | None) -> None:
        name, first, component = value.attributes
        index, new = args
        if index.op == "constant":
            place = name, _signed(index.attributes[0]) + first, component
            if place in self._elements:
                self._elements[place] = self._masked(mask, new, self._elements[place])
            return
        for number in range(self._old.arrays[name]):
            same = self._make("ieq", index, self._constant((number - first) & ALL))
            place = name, number, component
            chosen = self._and(mask, same)
            self._elements[place] = self._select(chosen, new, self._elements[place])


def _signed(word: int) -> int:
    return word - (1 << 32) if word >> 31 else word


def _stored(function: Function) -> set[tuple[str, int]]:
    """Arrays and their components that are written anywhere."""
    return {one.attributes[0::2] for one in function.values() if one.op == "store"}


def _stored_in(node: Loop) -> set[tuple[str, int]]:
    return {
        value.attributes[0::2]
        for inner in walk(node.body)
        if isinstance(inner, Block)
        for value in inner.values
        if value.op == "store"
    }

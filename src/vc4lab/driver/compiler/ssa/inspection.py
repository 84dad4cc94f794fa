"""A look at functions in SSA form: what they must keep, which the tests of every step ask, and listings."""

from __future__ import annotations

from vc4lab.driver.compiler.ssa.ops import OPS
from vc4lab.driver.compiler.ssa.values import Block, Function, If, Jump, Loop, Node, Value


def check_ssa(function: Function) -> None:
    """Every value is made once, before it is used, and not inside of a block that has ended.

    Raises AssertionError with a sentence.
    """
    made: set[Value] = set()
    _check_nodes(function.body, frozenset(), made, ())


def _check_nodes(
    nodes: list[Node], outside: frozenset[Value], made: set[Value], loops: tuple[Loop, ...]
) -> frozenset[Value]:
    """Check nodes that see the values of `outside`; all that are seen at their end."""
    seen = set(outside)

    def use(values: tuple[Value, ...] | None, what: object) -> None:
        for value in values or ():
            assert value in seen, f"{value} is used by {what} but is not seen there"

    def make(values: tuple[Value, ...]) -> None:
        for value in values:
            assert value not in made, f"{value} is made twice"
            made.add(value)
            seen.add(value)

    for number, node in enumerate(nodes):
        if isinstance(node, Block):
            for value in node.values:
                op = OPS[value.op]
                counts = len(op.takes) == len(value.args) or op.takes.endswith("*")
                assert counts, f"{value} has {len(value.args)} operands"
                use(value.args, value)
                make((value,))
        elif isinstance(node, If):
            use((node.condition,), "a condition")
            ways = ((node.then, node.then_values), (node.otherwise, node.else_values))
            for body, values in ways:
                inner = _check_nodes(body, frozenset(seen), made, loops)
                assert values is None or len(values) == len(node.parameters)
                missing = [one for one in values or () if one not in inner]
                assert not missing, f"{missing} is not seen at the end of a way"
            make(node.parameters)
        elif isinstance(node, Loop):
            use(node.initial, "a loop")
            assert len(node.initial) == len(node.parameters)
            for value in node.parameters:
                assert value not in made, f"{value} is made twice"
                made.add(value)
            inside = frozenset(seen) | frozenset(node.parameters)
            _check_nodes(node.body, inside, made, (*loops, node))
            make(node.results)
        else:
            assert isinstance(node, Jump)
            assert node.loop in loops, "a jump is outside of its loop"
            names = node.loop.results if node.kind == "break" else node.loop.parameters
            # Results are named when the loop is through.
            assert len(node.values) == len(names)
            use(node.values, "a jump")
            assert number == len(nodes) - 1 or all(
                isinstance(one, Block) and not one.values for one in nodes[number + 1 :]
            ), "something follows a jump"
    return frozenset(seen)


def print_ssa(function: Function) -> str:
    """The listing, ending in a newline."""
    return _Listing(function).text()


class _Listing:
    """A listing on its way."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self._numbers: dict[Value, int] = {}
        self._lines: list[str] = []

    def text(self) -> str:
        function = self._function
        self._lines.append(function.stage)
        for name, size in function.arrays.items():
            self._lines.append(f"  array {name}: {size} registers")
        self._nodes(function.body, 1)
        return "\n".join(self._lines) + "\n"

    def _name(self, value: Value) -> str:
        if value.op == "constant":
            return f"0x{value.attributes[0]:x}"
        return f"%{self._numbers.setdefault(value, len(self._numbers))}"

    def _names(self, values: tuple[Value, ...]) -> str:
        return ", ".join(self._name(value) for value in values)

    def _line(self, depth: int, text: str) -> None:
        self._lines.append("  " * depth + text)

    def _nodes(self, nodes: list[Node], depth: int) -> None:
        for node in nodes:
            if isinstance(node, Block):
                for value in node.values:
                    if value.op != "constant":
                        self._line(depth, self._value(value))
            elif isinstance(node, If):
                self._if(node, depth)
            elif isinstance(node, Loop):
                self._loop(node, depth)
            else:
                self._line(depth, f"{node.kind} {self._names(node.values)}".rstrip())

    def _value(self, value: Value) -> str:
        words = [str(one) for one in value.attributes]
        operands = [self._name(arg) for arg in value.args]
        text = f"{value.op} {', '.join([*words, *operands])}".rstrip()
        if value.op in ("output", "store", "discard_if"):
            return text
        return f"{self._name(value)} = {text}"

    def _if(self, node: If, depth: int) -> None:
        self._line(depth, f"if {self._name(node.condition)}")
        self._nodes(node.then, depth + 1)
        if node.then_values:
            self._line(depth + 1, f"give {self._names(node.then_values)}")
        self._line(depth, "else")
        self._nodes(node.otherwise, depth + 1)
        if node.else_values:
            self._line(depth + 1, f"give {self._names(node.else_values)}")
        self._line(depth, self._end("end", node.parameters))

    def _loop(self, node: Loop, depth: int) -> None:
        starts = [
            f"{self._name(name)}:{name.attributes[0]} = {self._name(value)}"
            for name, value in zip(node.parameters, node.initial, strict=True)
        ]
        self._line(depth, f"loop {', '.join(starts)}".rstrip())
        self._nodes(node.body, depth + 1)
        self._line(depth, self._end("end", node.results))

    def _end(self, word: str, names: tuple[Value, ...]) -> str:
        given = ", ".join(f"{self._name(name)}:{name.attributes[0]}" for name in names)
        return f"{word} {given}".rstrip()

"""What a function in SSA form must keep; the tests of every step ask."""

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

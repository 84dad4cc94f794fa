"""Takes out of loops what is the same in each turn.

In a flat function (`flatten.py`) everything is executed anyway, so that nothing is lost by doing it
before. What a pixel's or vertex's inputs give must be outside: they come once.
"""

from __future__ import annotations

from vc4lab.driver.compiler.ssa.values import Block, Function, Loop, Node, Value

_STAYS = frozenset(("constant", "uniform", "load", "store", "output", "discard_if"))
"""What costs nothing, or has an effect."""


def hoist(function: Function) -> Function:
    """The same flat function; it is changed in place."""
    _nodes(function.body)
    return function


def _nodes(nodes: list[Node]) -> None:
    """Hoist out of each loop of a body into the block before it, the inner loops first."""
    last: Block | None = None
    for node in nodes:
        if isinstance(node, Block):
            last = node
        elif isinstance(node, Loop):
            _nodes(node.body)
            assert last is not None, "a flat loop comes after a block"
            last.values += _invariant(node)


def _invariant(loop: Loop) -> list[Value]:
    """Remove from a loop's own blocks what depends on nothing that changes in it."""
    inside: set[Value] = set(loop.parameters)
    found: list[Value] = []
    for node in loop.body:
        if isinstance(node, Block):
            kept = []
            for value in node.values:
                if value.op in _STAYS or not inside.isdisjoint(value.args):
                    kept.append(value)
                    if value.op not in ("constant", "uniform"):
                        inside.add(value)
                else:
                    found.append(value)
            node.values = kept
        elif isinstance(node, Loop):
            inside.update(node.results)
    return found

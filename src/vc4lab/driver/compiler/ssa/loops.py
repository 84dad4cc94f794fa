"""Loops whose turns are known become their turns; of others, what each turn repeats goes outside.

A turn is copied with what its variables are then. As long as each condition on which a jump
depends comes out as a constant, the next turn is known, too. A loop where one does not, or that
would become too large, stays as it is.

In a flat function (`flatten.py`) everything is executed anyway, so that nothing is lost by doing it
before. What a pixel's or vertex's inputs give must be outside: they come once.
"""

from __future__ import annotations

from vc4lab.driver.compiler.ssa.optimise import simplify, walk
from vc4lab.driver.compiler.ssa.values import Block, Function, If, Jump, Loop, Node, Value, parameter
from vc4lab.v3d.tmu.requests import MAX_REQUESTS

MOST_TURNS = 32
MOST_VALUES = 512
"""Values of all turns of a loop together, once known ones have been removed."""
REQUESTS = ("sample", "uniform_at")
"""Requests to the texture unit; a program may have `MAX_REQUESTS` of them, with all of its turns."""


def unroll(function: Function) -> Function:
    """Unrolls loops in place, and returns the function."""
    if any(isinstance(node, Loop) for node in walk(function.body)):
        _Unroller(function).run()
    return function


class _NotKnown(Exception):  # noqa: N818 - a fact about the loop
    """A jump depends on what is no constant, or there are too many turns, values or requests."""


class _Unroller:
    """A walk through a function, in which results of loops are replaced by what they are."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self.requests = _requests(function.body)
        first = function.body[0]
        assert isinstance(first, Block)
        self._first = first
        self._constants = {one.attributes[0]: one for one in first.values if one.op == "constant"}
        self._made: list[Value] = []
        self._new: dict[Value, Value] = {}

    def run(self) -> None:
        self._function.body = self._nodes(self._function.body)
        self._first.values[:0] = self._made

    def constant(self, word: int) -> Value:
        if word not in self._constants:
            made = Value("constant", (), (word,))
            self._constants[word] = made
            self._made.append(made)
        return self._constants[word]

    def of(self, value: Value) -> Value:
        """Return the value that takes a value's place now."""
        while value in self._new:
            value = self._new[value]
        return value

    def _all(self, values: tuple[Value, ...]) -> tuple[Value, ...]:
        return tuple(self.of(value) for value in values)

    def _nodes(self, nodes: list[Node]) -> list[Node]:
        made: list[Node] = []
        for node in nodes:
            if isinstance(node, Block):
                for value in node.values:
                    value.args = self._all(value.args)
            elif isinstance(node, If):
                node.condition = self.of(node.condition)
                node.then, node.otherwise = self._nodes(node.then), self._nodes(node.otherwise)
                if node.then_values is not None:
                    node.then_values = self._all(node.then_values)
                if node.else_values is not None:
                    node.else_values = self._all(node.else_values)
            elif isinstance(node, Jump):
                node.values = self._all(node.values)
            else:
                node.initial = self._all(node.initial)
                try:
                    turns, values = _Turns(self, node).run()
                    self._count(node, turns)
                except _NotKnown:
                    node.body = self._nodes(node.body)
                else:
                    self._new.update(zip(node.results, values, strict=True))
                    made += self._nodes(turns)  # with loops whose turns are known only now
                    continue
            made.append(node)
        return made

    def _count(self, loop: Loop, turns: list[Node]) -> None:
        """Count a loop's requests as those of its turns. Raises _NotKnown: they are too many."""
        requests = self.requests - _requests(loop.body) + _requests(turns)
        if requests > max(MAX_REQUESTS, self.requests):
            raise _NotKnown
        self.requests = requests


def _requests(nodes: list[Node]) -> int:
    blocks = (one for one in walk(nodes) if isinstance(one, Block))
    return sum(value.op in REQUESTS for block in blocks for value in block.values)


class _Turns:
    """The turns of one loop."""

    def __init__(self, unroller: _Unroller, loop: Loop) -> None:
        self._unroller = unroller
        self._loop = loop
        self._now: dict[Value, Value] = {}
        """Values in this turn, by those of the loop."""
        self._loops: dict[Loop, Loop] = {}
        """Loops inside, and their copies."""
        self._count = 0

    def run(self) -> tuple[list[Node], tuple[Value, ...]]:
        """Nodes of all turns, and the loop's results. Raises _NotKnown."""
        nodes: list[Node] = [Block()]
        values = self._loop.initial
        for _ in range(MOST_TURNS + 1):
            self._now.update(zip(self._loop.parameters, values, strict=True))
            jump = self._copy(self._loop.body, nodes)
            if jump is None:
                break  # a loop without an end of its own turn
            values = self._all(jump.values)
            if jump.kind == "break":
                return nodes, values
        raise _NotKnown

    def _of(self, value: Value) -> Value:
        found = self._now.get(value)
        return self._unroller.of(value) if found is None else found

    def _all(self, values: tuple[Value, ...]) -> tuple[Value, ...]:
        return tuple(self._of(value) for value in values)

    def _copy(self, nodes: list[Node], to: list[Node]) -> Jump | None:
        """Copy nodes as they are in this turn, up to a jump that is taken; None: there is none."""
        for node in nodes:
            if isinstance(node, Block):
                self._block(node, to)
            elif isinstance(node, If):
                jump = self._if(node, to)
                if jump is not None:
                    return jump
            elif isinstance(node, Loop):
                self._inner(node, to)
            else:
                if node.loop is not self._loop:
                    to.append(Jump(node.kind, self._loops[node.loop], self._all(node.values)))
                return node
        return None

    def _block(self, node: Block, to: list[Node]) -> None:
        last = to[-1] if to else None
        if not isinstance(last, Block):
            last = Block()
            to.append(last)
        for value in node.values:
            if value.op == "constant":
                continue
            made = Value(value.op, self._all(value.args), value.attributes, value.line)
            new = simplify(made, self._unroller.constant)
            self._now[value] = new
            if new is made:
                last.values.append(made)
                self._count += 1
                if self._count > MOST_VALUES:
                    raise _NotKnown

    def _if(self, node: If, to: list[Node]) -> Jump | None:
        condition = self._of(node.condition)
        if condition.op == "constant":
            is_taken = condition.attributes[0] != 0
            way, values = (node.then, node.then_values) if is_taken else (node.otherwise, node.else_values)
            jump = self._copy(way, to)
            if jump is None and values is not None:
                self._now.update(zip(node.parameters, self._all(values), strict=True))
            return jump
        if any(
            isinstance(one, Jump) and one.loop is self._loop for one in walk([*node.then, *node.otherwise])
        ):
            raise _NotKnown
        made = If(condition, then_values=None, else_values=None)
        to.append(made)
        jumped = self._copy(node.then, made.then)
        if node.then_values is not None and jumped is None:
            made.then_values = self._all(node.then_values)
        jumped = self._copy(node.otherwise, made.otherwise)
        if node.else_values is not None and jumped is None:
            made.else_values = self._all(node.else_values)
        made.parameters = self._named(node.parameters)
        to.append(Block())
        return None

    def _inner(self, node: Loop, to: list[Node]) -> None:
        made = Loop(initial=self._all(node.initial))
        self._loops[node] = made
        made.parameters = self._named(node.parameters)
        to.append(made)
        self._copy(node.body, made.body)
        made.results = self._named(node.results)
        to.append(Block())

    def _named(self, names: tuple[Value, ...]) -> tuple[Value, ...]:
        made = tuple(parameter(one.attributes[0], one.line) for one in names)
        self._now.update(zip(names, made, strict=True))
        return made


_STAYS = frozenset(("constant", "uniform", "load", "store", "output", "discard_if"))
"""Operations that cost nothing, or have an effect."""


def hoist(function: Function) -> Function:
    """Moves operations out of loops in place, and returns the flat function."""
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

"""Makes a function in SSA form smaller: nothing twice, nothing that is known, nothing for nothing.

`optimise` repeats three things until none finds more: values are simplified and
equal ones made once; parameters that have one value become it; what no effect depends on is
removed. What the function computes stays the same, to the bit.

A rule that would change the sign of a zero or the payload of a NaN is no rule here; what later
steps may round otherwise is for them to say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from vc4lab.driver.compiler.ssa.ops import OPS, compute
from vc4lab.driver.compiler.ssa.values import Block, Function, If, Jump, Loop, Node, Value

ONE, MINUS_ZERO, ALL = 0x3F800000, 0x80000000, 0xFFFFFFFF
APPROXIMATE = frozenset(
    ("fdiv", "frcp", "frsq", "fsqrt", "fexp2", "flog2", "fpow", "fsin", "fcos", "ddx", "ddy")
)
"""Operations that the hardware approximates: of these, no constants are made here."""
MOST_REGISTERS = 1 << 12
"""Registers of a constant buffer that a known index may name."""
Constant = Callable[[int], Value]
"""Makes the value of a word."""


def simplify(value: Value, constant: Constant) -> Value:
    """The value itself, or an older or simpler one that is always the same."""
    op, args = OPS[value.op], value.args
    known = [arg.attributes[0] if arg.op == "constant" else None for arg in args]
    if value.op == "uniform_at":
        _find_uniform(value, known[0])
        return value
    if op.compute is not None and args and None not in known and value.op not in APPROXIMATE:
        words = [np.array([word], np.uint32) for word in known]
        return constant(int(compute(op, words)[0]))
    rule = _RULES.get(value.op)
    found = None if rule is None else rule(args, known, constant)
    return value if found is None else found


def _find_uniform(value: Value, index: int | None) -> None:
    """A uniform at an index becomes a plain one if the index is known.

    Of the same buffer and component: streams have it, where the other is looked up in memory.
    """
    if index is None:
        return
    buffer, first, component = value.attributes
    register = first + index - ((index >> 31) << 32)
    if 0 <= register < MOST_REGISTERS:
        value.op, value.args, value.attributes = "uniform", (), (buffer, register, component)


Rule = Callable[[tuple[Value, ...], list[int | None], Constant], Value | None]


def _neutral(word: int) -> Rule:
    """Return the rule for a word that leaves the other of two exchangeable operands as it is."""

    def rule(args: tuple[Value, ...], known: list[int | None], _new: Constant) -> Value | None:
        if known[1] == word:
            return args[0]
        return args[1] if known[0] == word else None

    return rule


def _logic(neutral: int, absorbing: int) -> Rule:
    """And, or: also of one value with itself."""
    plain = _neutral(neutral)

    def rule(args: tuple[Value, ...], known: list[int | None], new: Constant) -> Value | None:
        if args[0] is args[1]:
            return args[0]
        return new(absorbing) if absorbing in known else plain(args, known, new)

    return rule


def _select(args: tuple[Value, ...], known: list[int | None], _new: Constant) -> Value | None:
    if args[1] is args[2]:
        return args[1]
    return None if known[0] is None else args[1 if known[0] else 2]


def _negate(args: tuple[Value, ...], _known: list[int | None], _new: Constant) -> Value | None:
    return args[0].args[0] if args[0].op == "fneg" else None


def _absolute(args: tuple[Value, ...], _known: list[int | None], _new: Constant) -> Value | None:
    return args[0] if args[0].op == "fabs" else None


def _by(word: int) -> Rule:
    """The second operand leaves the first as it is."""
    return lambda args, known, _new: args[0] if known[1] == word else None


def _same(word: int) -> Rule:
    """Return the rule that two equal operands give the word."""
    return lambda args, _known, new: new(word) if args[0] is args[1] else None


def _not(args: tuple[Value, ...], _known: list[int | None], _new: Constant) -> Value | None:
    return args[0].args[0] if args[0].op == "not" else None


_RULES: dict[str, Rule] = {
    "fmul": _neutral(ONE),
    "fadd": _neutral(MINUS_ZERO),
    "iadd": _neutral(0),
    "imul": _neutral(1),
    "and": _logic(ALL, 0),
    "or": _logic(0, ALL),
    "xor": _neutral(0),
    "shl": _by(0),
    "shr": _by(0),
    "asr": _by(0),
    "select": _select,
    "fneg": _negate,
    "fabs": _absolute,
    "not": _not,
    "ieq": _same(ALL),
    "ine": _same(0),
    "ult": _same(0),
    "ilt": _same(0),
    "uge": _same(ALL),
    "ige": _same(ALL),
}


ROUNDS = 20
_UNIQUE = frozenset(("load", "store", "output", "discard_if"))
"""Operations that memory or an effect makes different each time."""


def optimise(function: Function) -> Function:
    """Makes a function smaller, in place, and returns it."""
    for _ in range(ROUNDS):
        changed = _Simplifier(function).run()
        changed |= _remove_unused(function)
        if not changed:
            break
    return function


def walk(nodes: list[Node]) -> Iterator[Node]:
    """All nodes, the outer ones first."""
    waiting = nodes[::-1]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, If):
            waiting += [*node.otherwise[::-1], *node.then[::-1]]
        elif isinstance(node, Loop):
            waiting += node.body[::-1]


def jumps_of(function: Function) -> dict[tuple[Loop, str], list[Jump]]:
    """The jumps of each loop by their kind."""
    found: dict[tuple[Loop, str], list[Jump]] = {}
    for node in walk(function.body):
        if isinstance(node, Jump):
            found.setdefault((node.loop, node.kind), []).append(node)
    return found


class _Scope:
    """The known values in a body and around it: by what they compute, and those seen."""

    __slots__ = ("_outer", "_values", "seen")

    def __init__(self, outer: _Scope | None) -> None:
        self._outer = outer
        self._values: dict[Any, Value] = {}
        self.seen: set[Value] = set()

    def same(self, value: Value) -> Value:
        """An older value that computes the same, or this one from now on."""
        key = value.op, value.args, value.attributes
        scope: _Scope | None = self
        while scope is not None:
            found = scope._values.get(key)
            if found is not None:
                return found
            scope = scope._outer
        self._values[key] = value
        return value

    def sees(self, value: Value) -> bool:
        """Whether the value may be used here."""
        scope: _Scope | None = self
        while scope is not None:
            if value in scope.seen:
                return True
            scope = scope._outer
        return value.op == "constant"


class _Simplifier:
    """One walk through a function, with the values that are seen at each place."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self._new: dict[Value, Value] = {}
        """Values that others have replaced."""
        self._jumps = jumps_of(function)
        first = function.body[0]
        assert isinstance(first, Block)
        self._first = first
        self._constants = {one.attributes[0]: one for one in first.values if one.op == "constant"}
        self._made: list[Value] = []
        self._changed = False

    def run(self) -> bool:
        """Whether anything became simpler."""
        self._nodes(self._function.body, _Scope(None))
        self._first.values[:0] = self._made
        for node in walk(self._function.body):  # jumps name values of loops that came later
            if isinstance(node, Jump):
                node.values = self._now(node.values)
        return self._changed

    def _constant(self, word: int) -> Value:
        if word not in self._constants:
            made = Value("constant", (), (word,))
            self._constants[word] = made
            self._made.append(made)
        return self._constants[word]

    def _of(self, value: Value) -> Value:
        """Return the value that takes a value's place now."""
        while value in self._new:
            value = self._new[value]
        return value

    def _now(self, values: tuple[Value, ...]) -> tuple[Value, ...]:
        return tuple(self._of(value) for value in values)

    def _replace(self, value: Value, new: Value) -> None:
        self._new[value] = new
        self._changed = True

    def _nodes(self, nodes: list[Node], scope: _Scope) -> None:
        for node in nodes:
            if isinstance(node, Block):
                self._block(node, scope)
            elif isinstance(node, If):
                self._if(node, scope)
            elif isinstance(node, Loop):
                self._loop(node, scope)
            else:
                node.values = self._now(node.values)

    def _block(self, node: Block, scope: _Scope) -> None:
        kept = []
        for value in node.values:
            value.args = self._now(value.args)
            new = simplify(value, self._constant)
            if new is value and value.op not in _UNIQUE:
                new = scope.same(value)
            if new is not value:
                self._replace(value, new)
                continue
            kept.append(value)
            scope.seen.add(value)
        node.values = kept

    def _if(self, node: If, scope: _Scope) -> None:
        node.condition = self._of(node.condition)
        self._nodes(node.then, _Scope(scope))
        self._nodes(node.otherwise, _Scope(scope))
        ways = [way for way in (node.then_values, node.else_values) if way is not None]
        ways = [self._now(way) for way in ways]
        single = self._single(node.parameters, ways, scope)
        if node.then_values is not None:
            node.then_values = _without(self._now(node.then_values), single)
        if node.else_values is not None:
            node.else_values = _without(self._now(node.else_values), single)
        node.parameters = _without(node.parameters, single)
        scope.seen.update(node.parameters)

    def _loop(self, node: Loop, scope: _Scope) -> None:
        node.initial = self._now(node.initial)
        again = self._jumps.get((node, "continue"), [])
        ways = [node.initial, *(self._now(jump.values) for jump in again)]
        single = self._single(node.parameters, ways, scope)
        for jump in again:
            jump.values = _without(jump.values, single)
        node.initial = _without(node.initial, single)
        node.parameters = _without(node.parameters, single)
        inner = _Scope(scope)
        inner.seen.update(node.parameters)
        self._nodes(node.body, inner)
        out = self._jumps.get((node, "break"), [])
        single = self._single(node.results, [self._now(jump.values) for jump in out], scope)
        for jump in out:
            jump.values = _without(jump.values, single)
        node.results = _without(node.results, single)
        scope.seen.update(node.results)

    def _single(self, names: tuple[Value, ...], ways: list[tuple[Value, ...]], scope: _Scope) -> set[int]:
        """The places of parameters that have one value, seen outside; they become it."""
        single = set()
        for place, name in enumerate(names):
            values = {way[place] for way in ways} - {name}
            if len(values) == 1:
                (value,) = values
                if scope.sees(value):
                    self._replace(name, value)
                    single.add(place)
        return single


def _without(values: tuple[Value, ...], places: set[int]) -> tuple[Value, ...]:
    return tuple(value for place, value in enumerate(values) if place not in places)


def _remove_unused(function: Function) -> bool:
    """Remove values and parameters on which no effect depends; whether there were any."""
    jumps = jumps_of(function)
    sources: dict[Value, list[Value]] = {}
    waiting: list[Value] = []
    for node in walk(function.body):
        if isinstance(node, Block):
            waiting += [one for one in node.values if OPS[one.op].has_effect]
        elif isinstance(node, If):
            waiting.append(node.condition)
            for way in (node.then_values, node.else_values):
                for name, value in zip(node.parameters, way or (), strict=False):
                    sources.setdefault(name, []).append(value)
        elif isinstance(node, Loop):
            again = [jump.values for jump in jumps.get((node, "continue"), [])]
            out = [jump.values for jump in jumps.get((node, "break"), [])]
            for place, name in enumerate(node.parameters):
                sources[name] = [way[place] for way in (node.initial, *again)]
            for place, name in enumerate(node.results):
                sources[name] = [way[place] for way in out]
    used: set[Value] = set()
    while waiting:
        value = waiting.pop()
        if value not in used:
            used.add(value)
            waiting += value.args
            waiting += sources.get(value, [])
    return _keep(function, used, jumps)


def _keep(function: Function, used: set[Value], jumps: dict[tuple[Loop, str], list[Jump]]) -> bool:
    changed = False
    for node in walk(function.body):
        if isinstance(node, Block):
            kept = [one for one in node.values if one in used]
            changed |= len(kept) < len(node.values)
            node.values = kept
        elif isinstance(node, If):
            unused = _unused(node.parameters, used)
            changed |= bool(unused)
            if node.then_values is not None:
                node.then_values = _without(node.then_values, unused)
            if node.else_values is not None:
                node.else_values = _without(node.else_values, unused)
            node.parameters = _without(node.parameters, unused)
        elif isinstance(node, Loop):
            unused = _unused(node.parameters, used)
            changed |= bool(unused)
            for jump in jumps.get((node, "continue"), []):
                jump.values = _without(jump.values, unused)
            node.initial = _without(node.initial, unused)
            node.parameters = _without(node.parameters, unused)
            unused = _unused(node.results, used)
            changed |= bool(unused)
            for jump in jumps.get((node, "break"), []):
                jump.values = _without(jump.values, unused)
            node.results = _without(node.results, unused)
    return changed


def _unused(names: tuple[Value, ...], used: set[Value]) -> set[int]:
    return {place for place, name in enumerate(names) if name not in used}

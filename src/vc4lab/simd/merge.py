"""Joining the Python variables of two paths of staged control flow into one set of variables."""

from __future__ import annotations

import copy
from typing import Any, NoReturn

from vc4lab.simd.trace import Edge, FunctionTrace, staged_error, user_place
from vc4lab.simd.types import Type, f32, i1, i32
from vc4lab.simd.value import Value, coerce, const


class Unbound:
    """Stands for a variable without a usable value; any use raises the reason."""

    def __init__(self, name: str, reason: str = "") -> None:
        self.__dict__["_why"] = reason or f"'{name}' is not assigned on every path to here"

    def _fail(self, *args: Any) -> NoReturn:
        raise staged_error(self.__dict__["_why"])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._fail()

    def __repr__(self) -> str:
        return f"<unbound: {self.__dict__['_why']}>"

    __bool__ = __call__ = __iter__ = __len__ = __getitem__ = __setitem__ = _fail
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = _fail
    __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __and__ = __rand__ = _fail
    __or__ = __ror__ = __xor__ = __rxor__ = __lshift__ = __rlshift__ = __rshift__ = _fail
    __rrshift__ = __neg__ = __invert__ = __lt__ = __le__ = __gt__ = __ge__ = __index__ = _fail


def parts_of(value: Any) -> tuple[Any, ...] | None:
    """The members of a composite that merges member by member, None for anything else.

    Composites are tuples, named tuples, dataclasses and objects with `__staged_parts__()` and
    `__staged_merge__(parts)`.
    """
    kind = type(value)
    if kind is Value:
        return None
    if kind is tuple or (isinstance(value, tuple) and hasattr(kind, "_make")):
        return tuple(value)
    if hasattr(kind, "__staged_parts__"):
        return tuple(value.__staged_parts__())
    if hasattr(kind, "__dataclass_fields__"):
        members = tuple(getattr(value, f) for f in kind.__dataclass_fields__)
        return members if _any_staged(members) else None
    return None


def _any_staged(members: tuple[Any, ...]) -> bool:
    return any(isinstance(m, Value) or _any_staged(parts_of(m) or ()) for m in members)


def rebuild(value: Any, parts: tuple[Any, ...]) -> Any:
    """A composite like `value` with other members."""
    kind = type(value)
    if kind is tuple:
        return parts
    if isinstance(value, tuple):
        return kind._make(parts)
    if hasattr(kind, "__staged_merge__"):
        return value.__staged_merge__(parts)
    made = copy.copy(value)
    for name, part in zip(kind.__dataclass_fields__, parts, strict=True):
        object.__setattr__(made, name, part)
    return made


class Saved:
    """A list or dict as it was: the object itself and its contents at that moment."""

    __slots__ = ("contents", "target")

    def __init__(self, target: Any, contents: Any) -> None:
        self.target = target
        self.contents = contents


def capture(value: Any) -> Any:
    """A snapshot of a variable that later changes to lists and dicts cannot touch."""
    if isinstance(value, Value):
        return value
    if type(value) is tuple:
        return tuple(capture(v) for v in value)  # other composites are taken as immutable
    if type(value) is list:
        return Saved(value, [capture(v) for v in value])
    if type(value) is dict:
        return Saved(value, {k: capture(v) for k, v in value.items()})
    return value


def restore(saved: Any) -> Any:
    """The variable of a snapshot; lists and dicts get their contents back in place."""
    if isinstance(saved, Saved):
        if type(saved.target) is list:
            saved.target[:] = [restore(v) for v in saved.contents]
        else:
            saved.target.clear()
            saved.target.update((k, restore(v)) for k, v in saved.contents.items())
        return saved.target
    if type(saved) is tuple:
        return tuple(restore(v) for v in saved)
    return saved


def promoted_type(value: Any) -> Type | None:
    """The staged type a plain Python number takes in staged flow."""
    if isinstance(value, Value):
        return value.type
    if isinstance(value, bool):
        return i1
    if isinstance(value, int):
        return i32
    if isinstance(value, float):
        return f32
    return None


def merge_value(name: str, trace: FunctionTrace, edges: list[Edge], values: list[Any]) -> Any:
    """One variable from its snapshots on each incoming edge, by a phi where they differ."""
    first = values[0]
    if all(v is first for v in values):
        return first
    for v in values:
        if isinstance(v, Unbound):
            return v
    if all(isinstance(v, Saved) for v in values):
        return _merge_saved(name, trace, edges, values)
    if all(type(v) is type(first) for v in values):
        members = [parts_of(v) for v in values]
        if None not in members:
            if len({len(m or ()) for m in members}) > 1:
                return Unbound(name, f"'{name}' has a different length on each path ({user_place()})")
            columns = zip(*(m or () for m in members), strict=True)
            return rebuild(
                first,
                tuple(merge_value(f"{name}[{i}]", trace, edges, list(c)) for i, c in enumerate(columns)),
            )
    return _merge_numbers(name, trace, edges, values)


def _merge_saved(name: str, trace: FunctionTrace, edges: list[Edge], values: list[Any]) -> Any:
    first = values[0]
    kinds = {type(v.contents) for v in values}
    if kinds == {list} and len({len(v.contents) for v in values}) == 1:
        columns = enumerate(zip(*(v.contents for v in values), strict=True))
        merged: Any = [merge_value(f"{name}[{i}]", trace, edges, list(c)) for i, c in columns]
    elif kinds == {dict}:
        keys = [k for k in first.contents if all(k in v.contents for v in values)]
        merged = {
            k: merge_value(f"{name}[{k!r}]", trace, edges, [v.contents[k] for v in values]) for k in keys
        }
    else:
        return Unbound(name, f"'{name}' has a different length on each path ({user_place()})")
    same = all(v.target is first.target for v in values)
    return Saved(first.target if same else type(merged)(), merged)


def _merge_numbers(name: str, trace: FunctionTrace, edges: list[Edge], values: list[Any]) -> Any:
    first = values[0]
    staged = [v.type for v in values if isinstance(v, Value)]
    types = {promoted_type(v) for v in values}
    if None in types:
        try:
            if not staged and all(bool(v == first) for v in values):
                return first
        except Exception:
            pass
        shown = " and ".join(dict.fromkeys(describe(v) for v in values))
        return Unbound(name, f"'{name}' is {shown} on different paths ({user_place()})")
    if staged:
        type_ = staged[0]
        if any(t is not type_ for t in staged):
            shown = " and ".join(dict.fromkeys(str(t) for t in staged))
            return Unbound(name, f"'{name}' is {shown} on different paths ({user_place()})")
    elif all(type(v) is type(first) and v == first for v in values):
        return first
    else:
        type_ = f32 if f32 in types else i32 if i32 in types else i1
    try:
        operands = [coerce(v, type_) if not isinstance(v, Value) else v for v in values]
    except TypeError as error:
        return Unbound(name, f"'{name}': {error}")
    head = operands[0]
    if all(o.text == head.text for o in operands):
        return head
    sources = ", ".join(f"[ {o.text}, %{e.block} ]" for o, e in zip(operands, edges, strict=True))
    return Value(type_, trace.assign(f"phi {type_.text} {sources}"))


def describe(value: Any) -> str:
    return str(value.type) if isinstance(value, Value) else f"the Python {value!r}"


def join(trace: FunctionTrace, names: tuple[str, ...], edges: list[Edge]) -> tuple[Any, ...] | None:
    """Makes `edges` meet here and returns the variables; None (and a dead place) without edges."""
    if not edges:
        return None
    if len(edges) == 1:
        edge = edges[0]
        if edge.line == len(trace.lines) - 1 and trace.block is None:
            trace.lines.pop()
            trace.block = edge.block
        else:
            label = trace.new_label("m")
            trace.connect(edge, label)
            trace.start(label)
        return tuple(restore(v) for v in edge.state)
    label = trace.new_label("m")
    for edge in edges:
        trace.connect(edge, label)
    trace.start(label)
    columns = list(zip(*(edge.state for edge in edges), strict=True)) if edges[0].state else []
    merged = [merge_value(n, trace, edges, list(c)) for n, c in zip(names, columns, strict=True)]
    return tuple(restore(v) for v in merged)


class LoopVariable:
    """A variable around a native loop: a phi whose back-edge operand is filled in at the end."""

    def __init__(self, trace: FunctionTrace, type_: Type, entry: Value) -> None:
        self.type = type_
        self.entry = entry
        self.line = len(trace.lines)
        self.value = Value(type_, trace.assign("phi"))


class LoopState:
    """All variables of a native loop, as phis at its header."""

    def __init__(
        self, trace: FunctionTrace, names: tuple[str, ...], carried: tuple[str, ...], entry: Edge
    ) -> None:
        self.trace = trace
        self.names = names
        self.carried = carried
        self.entry = entry
        self.label = trace.new_label("loop")
        self.phis: list[LoopVariable] = []
        trace.connect(entry, self.label)
        trace.start(self.label)
        self.header = [self._open(v) for v in entry.state]
        self.lost: dict[int, Unbound] = {}

    def _open(self, saved: Any) -> Any:
        """The snapshot with a phi for every number in it."""
        if isinstance(saved, Saved):
            contents = saved.contents
            if type(contents) is list:
                return Saved(saved.target, [self._open(v) for v in contents])
            return Saved(saved.target, {k: self._open(v) for k, v in contents.items()})
        parts = parts_of(saved)
        if parts is not None:
            return rebuild(saved, tuple(self._open(v) for v in parts))
        type_ = promoted_type(saved)
        if type_ is None:
            return saved
        entry = saved if isinstance(saved, Value) else const(type_, saved)
        phi = LoopVariable(self.trace, type_, entry)
        self.phis.append(phi)
        return phi.value

    def variables(self) -> tuple[Any, ...]:
        return tuple(restore(v) for v in self.header)

    def close(self, back: Edge | None) -> None:
        """Fills in the phis from the variables at the back edge (None: it never loops)."""
        operands: dict[str, Value] = {}
        if back is not None:
            for index, name in enumerate(self.names):
                reason = self._match(name, self.header[index], back.state[index], operands)
                if reason and name in self.carried:
                    raise staged_error(reason)
                if reason:  # a temporary: every turn assigns it before reading it
                    self.lost[index] = Unbound(name, reason)
        for phi in self.phis:
            sources = f"[ {phi.entry.text}, %{self.entry.block} ]"
            if back is not None:
                operand = operands.get(phi.value.text)
                if operand is None:
                    operand = phi.value
                sources += f", [ {operand.text}, %{back.block} ]"
            line = f"{phi.value.text} = phi {phi.type.text} {sources}"
            self.trace.lines[phi.line] = line
        if back is not None:
            self.trace.connect(back, self.label)

    def _match(self, name: str, head: Any, tail: Any, operands: dict[str, Value]) -> str:
        """Pairs header phis with back-edge values; returns why that is impossible, or ''."""
        if isinstance(head, Unbound):
            return ""
        if isinstance(head, Saved) and isinstance(tail, Saved):
            if type(head.contents) is list and type(tail.contents) is list:
                pairs = list(zip(head.contents, tail.contents, strict=False))
                same = len(head.contents) == len(tail.contents)
            elif type(head.contents) is dict and type(tail.contents) is dict:
                pairs = [(v, tail.contents.get(k)) for k, v in head.contents.items()]
                same = all(k in tail.contents for k in head.contents)
            else:
                return f"'{name}' changes its kind in the loop ({user_place()})"
            if not same:
                return f"'{name}' changes its length in the loop ({user_place()})"
            return next(filter(None, (self._match(name, a, b, operands) for a, b in pairs)), "")
        if type(head) is type(tail):
            mine, theirs = parts_of(head), parts_of(tail)
            if mine is not None and theirs is not None and len(mine) == len(theirs):
                pairs = list(zip(mine, theirs, strict=True))
                return next(filter(None, (self._match(name, a, b, operands) for a, b in pairs)), "")
        if not isinstance(head, Value):
            try:
                if head is tail or bool(head == tail):
                    return ""
            except Exception:
                pass
            return (
                f"'{name}' is {describe(head)} before the loop and {describe(tail)} after its body "
                f"({user_place()})"
            )
        fits = tail.type is head.type if isinstance(tail, Value) else promoted_type(tail) is not None
        if not fits or isinstance(tail, Unbound):
            return (
                f"'{name}' enters the loop as {head.type} and leaves its body as {describe(tail)} "
                f"({user_place()})"
            )
        try:
            operands[head.text] = coerce(tail, head.type)
        except TypeError as error:
            return f"'{name}': {error}"
        return ""

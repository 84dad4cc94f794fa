"""Variables of kernels where ways meet: what each way leaves, and the register that it writes over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vc4lab.kernels.python.trace import Trace, current
from vc4lab.kernels.python.values import Vector, vector_of
from vc4lab.qpu.machine.code import Const, Op, Operand, Reg, Wants


class Unbound:
    """Stands for a variable that has no value here; any use says why."""

    def __init__(self, name: str, reason: str = "") -> None:
        self.__dict__["_why"] = reason or f"'{name}' is not assigned on every way to here"

    def _fail(self, *_: Any) -> Any:
        current().fail(self.__dict__["_why"])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._fail()

    __bool__ = __call__ = __iter__ = __len__ = __getitem__ = __setitem__ = __index__ = _fail
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _fail
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __lshift__ = __rshift__ = _fail
    __neg__ = __invert__ = __lt__ = __le__ = __gt__ = __ge__ = _fail


class Variables:
    """The variables that a statement assigns, the items of lists among them one by one."""

    def __init__(self, names: Sequence[str], state: Sequence[Any]) -> None:
        self.values = list(state)
        self.places: list[tuple[str, list[Any], int]] = []
        seen: set[int] = set()
        for number, name in enumerate(names):
            self._add(name, self.values, number, seen)

    def _add(self, name: str, container: list[Any], key: int, seen: set[int]) -> None:
        value = container[key]
        if isinstance(value, list):
            if id(value) not in seen:
                seen.add(id(value))
                for number in range(len(value)):
                    self._add(f"{name}[{number}]", value, number, seen)
        else:
            self.places.append((name, container, key))

    def get(self) -> list[Any]:
        return [container[key] for _, container, key in self.places]

    def put(self, values: Sequence[Any]) -> tuple[Any, ...]:
        for (_, container, key), value in zip(self.places, values, strict=True):
            container[key] = value
        return tuple(self.values)


def of_one_type(name: str, first: Any, second: Any) -> Vector:
    """The second of two values of one variable as a vector of the first one's type."""
    old, new = vector_of(first), vector_of(second)
    if old is None or new is None:
        kind = type(second if new is None else first).__name__
        current().fail(f"'{name}' cannot be changed by a loop or branch of the kernel: it is a {kind}")
    if not old.is_like(new):
        if isinstance(second, int) and old.kind == "float":
            return old.like(type(old)._from(second))
        if {old.kind, new.kind} == {"int", "uint"}:
            return old.like(new.operand)
        current().fail(f"'{name}' is {_a(old)} on one way and {_a(new)} on the other")
    return new


def _a(value: Vector) -> str:
    name = type(value).__name__
    return f"an {name}" if name[0] in "AEIOU" else f"a {name}"


def write_over(trace: Trace, home: Reg, value: Vector) -> Reg:
    """An operation at the end of the block at hand puts a value where a variable is."""
    op = trace.op("mov", value.operand)
    op.tied = home
    end = trace.code.add(op, Wants.FILE)
    assert end is not None
    end.block = home.block
    end.uses += 1
    home.is_home = True
    trace.variables |= {home, end}
    return end


def change_in_place(trace: Trace, home: Reg, new: Vector, others: set[Reg]) -> Reg | None:
    """The operations that make a value of a variable write over the variable itself; None: they cannot.

    Those are the last one, and before it those whose results only the next one reads, back to one that
    reads the variable. others: variables that are written over as well.
    """
    end = new.operand
    place = {op: number for number, op in enumerate(trace.code.block.ops)}
    ops: list[Op] = []
    result: Operand = end
    uses = 0
    while True:
        if not isinstance(result, Reg) or result.uses != uses:
            break
        op = _plain(result, place)
        if op is None or others & set(op.reads):
            break
        ops.insert(0, op)
        before = [one for one in op.reads if one is home]
        if before:
            break
        earlier = [one for one in op.reads if one.uses == 1 and _plain(one, place) is not None]
        result, uses = (earlier[0] if earlier else Const(0)), 1
    readers = [place[op] for op in home.readers if op in place]
    while ops and any(at > place[ops[0]] for at in readers):
        del ops[0]
    if not ops or not isinstance(end, Reg):
        return None
    old = home
    for op in ops:
        assert isinstance(op.target, Reg)
        op.tied = old
        old.uses += 1
        op.target.wants, op.target.block = Wants.FILE, home.block
        trace.variables.add(op.target)
        old = op.target
    end.uses += 1
    home.is_home = True
    return end


def _plain(reg: Reg, place: dict[Op, int]) -> Op | None:
    """The plain ALU operation of this block that makes a register."""
    op = reg.op
    if op is None or op not in place or op.target is not reg or reg.wants not in (Wants.ANY, Wants.FILE):
        return None
    plain = op.tied is None and op.flags is None and op.sets is None and op.second is None
    if not plain or op.pack or op.rotate or op.signal is not None or op.after or op.loads is not None:
        return None
    return op

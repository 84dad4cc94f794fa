"""Control flow of kernels: what rewritten ones call for branches and loops, and explicit basic blocks."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Iterator
from typing import Any

from vc4lab.simd.merge import LoopState, Unbound, capture, join, restore
from vc4lab.simd.operators import Operand
from vc4lab.simd.trace import Edge, FunctionTrace, current, staged_error
from vc4lab.simd.types import i1, i32
from vc4lab.simd.value import Value, coerce, compare, const, inverted, is_staged, select


def alive() -> bool:
    """Can the place being traced be reached?"""
    return current().block is not None


def truth(value: Any) -> Any:
    """A condition: staged integers and pointers count as `!= 0`."""
    if isinstance(value, Value) and value.type.elem is not i1:
        if value.type.is_float:
            raise staged_error(f"a {value.type} is not a condition; compare it with something")
        return compare("ne", "", value, 0)
    return value


def _branch_condition(value: Any) -> Any:
    condition = truth(value)
    if isinstance(condition, Value) and condition.type is not i1:
        raise staged_error(f"a {condition.type} cannot decide a branch: use any_(), all_() or select()")
    return condition


def _branch(condition: Value, yes: str, no: str) -> tuple[str, str]:
    """A jump to `yes` if `condition` (i1) holds, else to `no`, written in two ways.

    The first is for a place where `yes` follows, the second for one where `no` does: code is made
    without a detour if the block jumped to on the condition is not the next one.
    """
    plain = f"br i1 {condition.text}, label %{yes}, label %{no}"
    other = inverted(condition)
    return plain if other is None else f"br i1 {other.text}, label %{no}, label %{yes}", plain


class CallFrame:
    """One call of a rewritten function: collects its returns."""

    def __init__(self) -> None:
        self.trace = current()
        self.returns: list[Edge] = []

    def return_(self, value: Any = None) -> None:
        edge = self.trace.leave((capture(value),))
        if edge:
            self.returns.append(edge)

    def finish(self) -> Any:
        self.return_()
        result = join(self.trace, ("return value",), self.returns)
        if result is None:
            return None
        value = result[0]
        if isinstance(value, Unbound):
            value._fail()
        return value


class If:
    """An if statement; on a plain Python condition only the chosen side runs."""

    def __init__(self, condition: Any, names: tuple[str, ...], state: tuple[Any, ...]) -> None:
        condition = _branch_condition(condition)
        self.staged = isinstance(condition, Value)
        if self.staged and condition.constant is not None:
            self.staged, condition = False, bool(condition.constant)
        self.names = names
        self.edges: list[Edge] = []
        if not self.staged:
            self.then = bool(condition)
            self.otherwise = not self.then
            return
        self.then = self.otherwise = True
        self.trace = trace = current()
        self.base = capture(state)
        self.dead = trace.block is None
        yes, self.no = trace.new_label("then"), trace.new_label("else")
        jump, self._jump_over = _branch(condition, yes, self.no)
        self._line = len(trace.lines)
        trace.terminate(jump)
        if not self.dead:
            self.known = trace.knowledge()
            trace.start(yes, self.known)

    def end(self, state: tuple[Any, ...]) -> None:
        """The end of either side."""
        if self.staged:
            edge = self.trace.leave(capture(state))
            if edge:
                self.edges.append(edge)

    def begin_else(self, state: tuple[Any, ...]) -> tuple[Any, ...]:
        if not self.staged:
            return state
        if not self.dead:
            lines = self.trace.lines
            if len(lines) == self._line + 3:  # the branch, a label, a jump: `if …: break`
                lines[self._line] = self._jump_over
            self.trace.start(self.no, self.known)
        result = restore(self.base)
        assert isinstance(result, tuple)
        return result

    def merge(self, state: tuple[Any, ...]) -> tuple[Any, ...]:
        if not self.staged:
            return state
        merged = join(self.trace, self.names, self.edges)
        return state if merged is None else merged


class _Loop:
    """Common to while and for: exits, continues, the header of a native loop."""

    def __init__(self, names: tuple[str, ...], carried: tuple[str, ...]) -> None:
        self.trace: FunctionTrace = current()
        self.names = names
        self.carried = carried  # those an iteration reads from the one before
        self.exits: list[Edge] = []
        self.continues: list[Edge] = []
        self.state: LoopState | None = None
        self.done = False

    def header(self, state: tuple[Any, ...]) -> tuple[Any, ...]:
        """Starts a native loop here; returns the variables as seen in it."""
        entry = self.trace.leave(capture(state))
        if entry is None:
            return state
        self.state = LoopState(self.trace, self.names, self.carried, entry)
        return self.state.variables()

    def break_(self, state: tuple[Any, ...]) -> None:
        edge = self.trace.leave(capture(state))
        if edge:
            self.exits.append(edge)

    def continue_(self, state: tuple[Any, ...]) -> None:
        edge = self.trace.leave(capture(state))
        if edge:
            self.continues.append(edge)

    def leave_if_not(self, condition: Value, state: tuple[Any, ...] | None = None) -> None:
        """The test of a native loop at its header; `state` after it if it assigns anything."""
        assert self.state is not None
        trace = self.trace
        body, out = trace.new_label("body"), trace.new_label("out")
        trace.terminate(_branch(condition, body, out)[0])
        known = trace.knowledge()
        trace.start(out)
        edge = trace.leave(tuple(self.state.header) if state is None else capture(state))
        assert edge is not None
        self.exits.append(edge)
        self.test_exit = edge
        trace.start(body, known)

    def next(self, state: tuple[Any, ...]) -> tuple[Any, ...]:
        """The end of the body: jumps back (native) or starts the next iteration (unrolled)."""
        if self.state is None and not self.continues:
            self.done = self.trace.block is None
            return state
        self.continue_(state)
        merged = join(self.trace, self.names, self.continues)
        self.continues = []
        if merged is not None:
            state = merged
        if self.state is None:
            self.done = merged is None
            return state
        self.done = True
        self.step()
        back = self.trace.leave(capture(state)) if merged is not None else None
        self.state.close(back)
        for edge in self.exits:
            if edge is getattr(self, "test_exit", None):
                header = list(edge.state)
                for index, lost in self.state.lost.items():
                    header[index] = lost
                edge.state = tuple(header)
        return state

    def step(self) -> None:
        """Carry out what a native loop does before it jumps back."""

    def end(self, state: tuple[Any, ...]) -> tuple[Any, ...]:
        if not self.exits:
            return state
        self.break_(state)
        merged = join(self.trace, self.names, self.exits)
        return state if merged is None else merged


class While(_Loop):
    """A while loop: unrolled while its condition is plain Python, native once it is staged."""

    def __init__(self, names: tuple[str, ...], carried: tuple[str, ...], forever: bool) -> None:
        super().__init__(names, carried)
        self.forever = forever

    def mark(self) -> None:
        self._mark = self.trace.mark()

    def is_staged(self, condition: Any) -> bool:
        """True: discards the first evaluation of the condition and makes a native loop."""
        if self.trace.block is None:
            return False
        condition = _branch_condition(condition)
        if self.trace.eager:
            return False
        staged = self.forever or (isinstance(condition, Value) and condition.constant is None)
        if staged:
            self.trace.roll_back(self._mark)
        return staged

    def turn(self, condition: Any, state: tuple[Any, ...]) -> bool:
        if self.trace.block is None:
            return False
        condition = _branch_condition(condition)
        if self.state is None:
            if isinstance(condition, Value):
                return bool(condition.constant)
            return bool(condition)
        if not self.forever:
            self.leave_if_not(coerce(condition, i1), state)  # it may assign with :=
        return True


class StagedRange:
    """`range(...)` in a kernel: a native loop."""

    def __init__(self, start: Any, stop: Any, step: Any) -> None:
        values = [v for v in (start, stop, step) if isinstance(v, Value)]
        self.type = values[0].type if values else i32
        if not self.type.is_int or self.type.lanes:
            raise staged_error(f"range() wants scalar integers, not {self.type}")
        if isinstance(step, int) and step == 0:
            raise staged_error("range() with step 0")
        self.down = isinstance(step, int) and step < 0
        self.start, self.stop, self.step = (coerce(v, self.type) for v in (start, stop, step))

    def known(self) -> Iterator[Value]:
        """Yield the values that it counts through, in an eager run."""
        start, stop, step = (v.constant for v in (self.start, self.stop, self.step))
        return (const(self.type, n) for n in range(start, stop, step))

    def __iter__(self) -> Iterator[Any]:
        raise staged_error("a native range() is only for `for` statements; use unroll()")


def range_(function: Any, *args: Any) -> Any:
    """`range` inside a for statement of a kernel (unless the name means something else)."""
    if function is not builtins.range:
        return function(*args)
    if len(args) == 1:
        return StagedRange(0, args[0], 1)
    if len(args) == 2:
        return StagedRange(args[0], args[1], 1)
    return StagedRange(*args)


def unroll(*args: int) -> range:
    """A plain Python range: the loop over it is unrolled while tracing."""
    return range(*(int(operator.index(a)) for a in args))


class For(_Loop):
    """A for loop: native over range(), unrolled over anything else."""

    def __init__(self, iterable: Any, names: tuple[str, ...], carried: tuple[str, ...]) -> None:
        super().__init__(names, carried)
        self.staged = isinstance(iterable, StagedRange) and self.trace.block is not None
        self.item: Any = None
        self.iterator: Iterator[Any] = iter(())
        if isinstance(iterable, StagedRange) and self.trace.eager:
            self.staged, self.iterator = False, iterable.known()
        elif isinstance(iterable, StagedRange):
            self.range = iterable
        else:
            self.iterator = iter(iterable)

    def header(self, state: tuple[Any, ...]) -> tuple[Any, ...]:
        entry = self.trace.block
        variables = super().header(state)
        self._phi = len(self.trace.lines)
        self._entry = entry
        self.counter = Value(self.range.type, self.trace.assign("phi"))
        self.item = self.counter
        return variables

    def turn(self) -> bool:
        if self.trace.block is None:
            return False
        if not self.staged:
            for item in self.iterator:
                self.item = item
                return True
            return False
        stop = self.range.stop
        self.leave_if_not(self.counter > stop if self.range.down else self.counter < stop)
        return True

    def step(self) -> None:
        trace = self.trace
        start = self.range.start.text
        sources = f"[ {start}, %{self._entry} ]"
        if trace.block is not None:
            following = self.counter + self.range.step
            sources += f", [ {following.text}, %{trace.block} ]"
        trace.lines[self._phi] = f"{self.counter.text} = phi {self.range.type.text} {sources}"


# -- expressions


def ternary(condition: Any, yes: Callable[[], Any], no: Callable[[], Any]) -> Any:
    """`a if c else b`: one side only for plain Python, a select for a staged condition."""
    condition = truth(condition)
    if not isinstance(condition, Value):
        return yes() if condition else no()
    if condition.constant is not None:
        return yes() if condition.constant else no()
    return _choose(condition, yes(), no())


def _choose(condition: Value, a: Any, b: Any) -> Any:
    if a is b:
        return a
    if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
        return tuple(_choose(condition, x, y) for x, y in zip(a, b, strict=True))
    return select(condition, a, b)


def and_(a: Any, b: Callable[[], Any]) -> Any:
    """`a and b`; both sides are evaluated if `a` is staged."""
    if not is_staged(a):
        return a and b()
    return truth(a) & _logical(b())


def or_(a: Any, b: Callable[[], Any]) -> Any:
    """`a or b`; both sides are evaluated if `a` is staged."""
    if not is_staged(a):
        return a or b()
    return truth(a) | _logical(b())


def _logical(value: Any) -> Any:
    return truth(value) if is_staged(value) else bool(value)


def not_(a: Any) -> Any:
    return ~truth(a) if is_staged(a) else not a


_OPERATORS: dict[str, Any] = {
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Is": operator.is_,
    "IsNot": operator.is_not,
    "In": lambda a, b: a in b,
    "NotIn": lambda a, b: a not in b,
}


def chain(operators: tuple[str, ...], *operands: Any) -> Any:
    """`a < b < c`: all operands are evaluated, the comparisons are joined with and."""
    result: Any = True
    for name, left, right in zip(operators, operands, operands[1:], strict=False):
        outcome = _OPERATORS[name](left, right)
        if is_staged(result):
            result = result & _logical(outcome)
        elif not result:
            return result
        else:
            result = outcome
    return result


class BasicBlock:
    """A basic block of the function being traced. Carry values between blocks in var() cells."""

    __slots__ = ("entered", "label")

    def __init__(self, label: str) -> None:
        self.label = label
        self.entered = False


def new_block() -> BasicBlock:
    """A block to be filled later by enter()."""
    if current().eager:
        raise staged_error("basic blocks are for compiled code only")
    return BasicBlock(current().new_label("block"))


def jump(block: BasicBlock) -> None:
    """Ends the current block; until the next enter() the place is dead."""
    current().terminate(f"br label %{block.label}")


def jump_if(condition: Operand, yes: BasicBlock, no: BasicBlock) -> None:
    """Ends the current block with a two-way branch on an i1."""
    c = coerce(truth(condition), i1)
    current().terminate(f"br i1 {c.text}, label %{yes.label}, label %{no.label}")


def enter(block: BasicBlock) -> None:
    """Continues tracing in `block` (falling into it if the place before is alive)."""
    if block.entered:
        raise staged_error("a block can be entered once")
    block.entered = True
    trace = current()
    jump(block)
    trace.start(block.label)


def terminated() -> bool:
    """Has the current block ended?"""
    return current().block is None

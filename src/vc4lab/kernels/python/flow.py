"""Control flow of kernels: what `if`, `for`, `while` and the rest of a rewritten function call.

A test of all lanes (`any_`, `all_`) becomes a branch, a condition on lanes becomes a selection of the
variables that the two sides assign, and what Python knows is decided while the kernel is traced.
`range()` is a loop of the QPU; other iterables are unrolled. A variable that a loop or a branch
assigns has one place, its home, over which each way writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from vc4lab.kernels.python.choices import and_ as and_
from vc4lab.kernels.python.choices import chain as chain
from vc4lab.kernels.python.choices import not_ as not_
from vc4lab.kernels.python.choices import or_ as or_
from vc4lab.kernels.python.choices import ternary as ternary
from vc4lab.kernels.python.memory import Array
from vc4lab.kernels.python.trace import Trace, current
from vc4lab.kernels.python.values import Bool, Int, Range, Test, Vector, select_operand, vector_of
from vc4lab.kernels.python.values import range_ as range_
from vc4lab.kernels.python.variables import Unbound, Variables, change_in_place, of_one_type, write_over
from vc4lab.qpu.isa.operations import BranchCondition
from vc4lab.qpu.machine.builder import BRANCHES, EVERY
from vc4lab.qpu.machine.code import Block, Branch, Flags, Op, Reg, Wants

MOST_TURNS = 100_000
"""Turns of all unrolled loops of a kernel, at most."""


def _ask(trace: Trace, test: Test, invert: bool = False) -> Branch:
    """The branch that is taken if the test holds (or does not); flags are set last in the block."""
    trace.code.line = trace.line()
    asked = ~test if invert else test
    op, lanes = asked.lanes.setter()
    flags = trace.code.flags(op)
    _last(trace, flags)
    return Branch((EVERY if asked.every else BRANCHES)[lanes], flags)


def _last(trace: Trace, flags: Flags) -> None:
    """These flags are those that a branch finds: all others come before."""
    setter = flags.setter
    setter.together += [
        op for op in trace.code.block.ops if op is not setter and (op.flags or op.sets) is not None
    ]
    flags.users.append(Op("branch"))


def _deeper(trace: Trace, what: str) -> None:
    if trace.lanes:
        trace.fail(f"{what} inside an `if` on lanes: all lanes take part; use any_() or all_() there")
    trace.depth += 1


def alive() -> bool:
    """Can the place being traced be reached?"""
    return current().alive


class CallFrame:
    """One call of a rewritten function."""

    def __init__(self) -> None:
        self.trace = current()
        self.depth = self.trace.depth, self.trace.lanes
        self.value: Any = None

    def return_(self, value: Any = None) -> None:
        if not self.trace.alive:
            return
        if (self.trace.depth, self.trace.lanes) != self.depth:
            self.trace.fail("a return inside a loop or condition of the kernel: let it end at its end")
        self.value = value
        self.trace.alive = False

    def finish(self) -> Any:
        self.trace.alive = True
        return self.value


class If:
    """An if statement."""

    def __init__(self, condition: Any, names: tuple[str, ...], state: tuple[Any, ...]) -> None:
        self.trace = trace = current()
        self.names = names
        self.then = self.otherwise = True
        self.condition: Bool | None = None
        self.is_branch = isinstance(condition, Test)
        self.gathers = trace.outstanding
        if isinstance(condition, Bool):
            self.condition = condition
            trace.lanes += 1
        elif isinstance(condition, Test):
            _deeper(trace, "a branch")
            self.before = trace.code.block
            self.before.branch = _ask(trace, condition, invert=True)
            trace.begin_block(trace.loops)
        else:
            self.then = bool(condition)
            self.otherwise = not self.then
            return
        self.variables = Variables(names, state)
        self.base = self.variables.get()
        self.sides: list[list[Any]] = []
        self.ends: list[Block] = []
        self.counts: list[int] = []

    def end(self, state: tuple[Any, ...]) -> None:
        """The end of either side."""
        if self.condition is None and not self.is_branch:
            return
        self.variables.values[:] = state
        self.sides.append(self.variables.get())
        self.ends.append(self.trace.code.block)
        self.counts.append(self.trace.outstanding)

    def begin_else(self, state: tuple[Any, ...]) -> tuple[Any, ...]:
        if self.condition is None and not self.is_branch:
            return state
        if self.is_branch:
            block = self.trace.begin_block(self.trace.loops)
            block.is_target = True
            self.before.skips = block.number
        self.trace.outstanding = self.gathers
        return self.variables.put(self.base)

    def merge(self, state: tuple[Any, ...]) -> tuple[Any, ...]:
        trace = self.trace
        if self.condition is None and not self.is_branch:
            return state
        if self.counts[0] != self.counts[1]:
            trace.fail("the two sides of an `if` gather() and receive() differently often")
        rows = list(zip((name for name, _, _ in self.variables.places), self.base, *self.sides, strict=True))
        if self.condition is not None:
            trace.lanes -= 1
            return self.variables.put([self._selected(*row) for row in rows])
        trace.depth -= 1
        last = self.ends[1]
        has_else = bool(last.ops) or last is not trace.code.blocks[self.before.skips or 0]
        has_else |= any(base is not other for _, base, _, other in rows)
        merged = [self._joined(*row) for row in rows]
        if has_else:
            join = trace.begin_block(trace.loops)
            join.is_target = True
            self.ends[0].skips, self.ends[0].branch = join.number, Branch(BranchCondition.ALWAYS, None)
        return self.variables.put(merged)

    def _selected(self, name: str, base: Any, then: Any, other: Any) -> Any:
        assert self.condition is not None
        if then is other:
            return then
        if isinstance(then, Unbound) or isinstance(other, Unbound):
            return Unbound(name)
        first = vector_of(then)
        second = of_one_type(name, then, other)
        if first is None:
            self.trace.fail(f"'{name}' cannot be chosen lane by lane")
        return first.like(select_operand(self.condition, first.operand, second.operand))

    def _joined(self, name: str, base: Any, then: Any, other: Any) -> Any:
        """One variable after both sides."""
        trace = self.trace
        if then is other:
            return then
        if isinstance(then, Unbound) or isinstance(other, Unbound):
            return Unbound(name)
        first = vector_of(then if then is not base else other)
        if first is None:
            trace.fail(f"'{name}' cannot be changed by a branch of the kernel: it is a {type(then).__name__}")
        started = None if isinstance(base, Unbound) else base
        if started is None:
            with trace.inside(self.ends[0]):
                home = trace.code.move(trace.operand(first.operand), Wants.FILE)
            ways = [(self.ends[1], other)]
        else:
            with trace.inside(self.before):
                home = trace.code.move(trace.operand(of_one_type(name, first, base).operand), Wants.FILE)
            ways = [
                (block, value)
                for block, value in zip(self.ends, (then, other), strict=True)
                if value is not base
            ]
        ends = []
        for block, value in ways:
            with trace.inside(block):
                ends.append(write_over(trace, home, of_one_type(name, first, value)))
        for end in ends[:-1]:
            end.is_home = True
        self.ends[1].variables.append(ends[-1])
        return first.like(ends[-1])


class _Loop:
    """Loops of the QPU and unrolled ones share this."""

    def __init__(self, names: tuple[str, ...], carried: tuple[str, ...]) -> None:
        self.trace = current()
        self.names, self.carried = names, carried
        self.is_native = False
        self.done = self.is_left = False

    def begin(self, state: tuple[Any, ...]) -> tuple[Any, ...]:
        """A loop of the QPU begins: its variables get homes; they are seen from inside of it."""
        trace = self.trace
        self.is_native = True
        self.variables = Variables(self.names, state)
        self.gathers = trace.outstanding
        self.homes: list[Vector | None] = []
        for name, container, key in self.variables.places:
            value = container[key]
            found = None if isinstance(value, Unbound | Array) else vector_of(value)
            if found is None and name in self.carried and not isinstance(value, Unbound | Vector):
                if not callable(value) and value is not None:
                    trace.fail(
                        f"'{name}' cannot be changed by a loop of the kernel: it is a {type(value).__name__}"
                    )
            self.homes.append(None if found is None else self._home(found))
        self.started = self.variables.get()
        self.outer = trace.loops
        self.before = trace.code.block
        return self.variables.put(
            [old if home is None else home for home, old in zip(self.homes, self.started, strict=True)]
        )

    def _home(self, value: Vector) -> Vector:
        self.trace.code.line = self.trace.line()
        home = self.trace.code.move(self.trace.operand(value.operand), Wants.FILE)
        self.trace.variables.add(home)
        return value.like(home)

    def enter(self) -> None:
        """The block to which the loop goes back."""
        trace = self.trace
        trace.loops = (*self.outer, len(trace.code.blocks))
        self.first = trace.begin_block(trace.loops)
        self.first.is_target = True

    def carry(self, state: tuple[Any, ...]) -> list[Reg]:
        """At the end of a turn the variables' values go home; the registers that they are then."""
        trace = self.trace
        self.variables.values[:] = state
        if trace.outstanding != self.gathers:
            trace.fail(
                f"a turn of the loop leaves {trace.outstanding - self.gathers:+} requests of gather(): "
                "receive() as many as it asks for"
            )
        changed: list[tuple[int, Reg, Vector]] = []
        for number, ((name, _, _), home, value) in enumerate(
            zip(self.variables.places, self.homes, self.variables.get(), strict=True)
        ):
            if home is None and isinstance(self.started[number], Array) and value is not self.started[number]:
                trace.fail(f"'{name}' begins as an array: let it be a pointer, {name} = array + 0")
            if home is None or value is home:
                continue
            if isinstance(value, Unbound):
                trace.fail(value.__dict__["_why"])
            new = of_one_type(name, home, value)
            assert isinstance(home.operand, Reg)
            if new.operand is not home.operand:
                changed.append((number, home.operand, new))
        regs = {reg for _, reg, _ in changed}
        given = [
            new.like(trace.code.move(new.operand)) if new.operand in regs else new for _, _, new in changed
        ]
        ends: list[Reg] = []
        used: set[int] = set()
        for (number, place, _), new in zip(changed, given, strict=True):
            end = change_in_place(trace, place, new, regs - {place}) if id(new.operand) not in used else None
            used.add(id(new.operand))
            if end is None:
                end = write_over(trace, place, new)
            ends.append(end)
            self.homes[number] = new.like(end)
        return ends

    def close(self, ends: list[Reg], branch: Branch) -> None:
        """The branch back; what follows is after the loop."""
        last = self.trace.code.block
        last.variables += ends
        last.repeats, last.branch = self.first.number, branch
        self.trace.loops = self.outer
        self.after = self.trace.begin_block(self.outer)
        self.trace.depth -= 1
        self.done = True

    def results(self) -> tuple[Any, ...]:
        found = []
        for (name, _, _), home, old in zip(self.variables.places, self.homes, self.started, strict=True):
            lost = Unbound(name, f"'{name}' is only assigned inside the loop: give it a value before")
            found.append(old if isinstance(old, Array) else lost if home is None else home)
        return self.variables.put(found)

    def break_(self, state: tuple[Any, ...]) -> None:
        self._leave("break")
        self.is_left = True

    def continue_(self, state: tuple[Any, ...]) -> None:
        self._leave("continue")

    def _leave(self, word: str) -> None:
        if self.is_native:
            self.trace.fail(f"`{word}` in a loop of the QPU: put the condition into `while any_(…)`")
        if (self.trace.depth, self.trace.lanes) != self.depth:
            self.trace.fail(f"`{word}` that depends on what only the running kernel knows")
        self.trace.alive = False

    def start(self) -> None:
        self.depth = self.trace.depth, self.trace.lanes

    def unrolled(self, state: tuple[Any, ...]) -> tuple[Any, ...]:
        """The end of a turn that is unrolled."""
        self.trace.turns += 1
        if self.trace.turns > MOST_TURNS:
            self.trace.fail(f"more than {MOST_TURNS} turns of unrolled loops: is there one without an end?")
        self.done = self.is_left
        if not self.is_left or self.trace.alive is False:
            self.trace.alive = True
        return state


class For(_Loop):
    """A for loop: over range() one of the QPU, over anything else unrolled."""

    def __init__(self, iterable: Any, names: tuple[str, ...], carried: tuple[str, ...]) -> None:
        super().__init__(names, carried)
        self.staged = isinstance(iterable, Range)
        self.item: Any = None
        self.is_begun = False
        self.start()
        self.range = iterable
        if not self.staged:
            if isinstance(iterable, Vector):
                iterable._refuse()
            self.iterator: Iterator[Any] = iter(iterable)

    def header(self, state: tuple[Any, ...]) -> tuple[Any, ...]:
        trace, given = self.trace, self.range
        _deeper(trace, "a loop")
        state = self.begin(state)
        self.counter = self._home(Int(given.start))
        if given.may_be_empty:
            test = Test(given.goes_on(Int(given.start)), every=False)
            self.before.branch = _ask(trace, test, invert=True)
        self.stop, self.step_ = Int(given.stop), Int(given.step)
        self.enter()
        self.item = self.counter
        return state

    def turn(self) -> bool:
        if self.staged:
            return True
        for item in self.iterator:
            self.item = item
            return True
        return False

    def next(self, state: tuple[Any, ...]) -> tuple[Any, ...]:
        if not self.staged:
            return self.unrolled(state)
        trace, given = self.trace, self.range
        ends = self.carry(state)
        assert isinstance(self.counter.operand, Reg)
        following = self.counter + self.step_
        counted = change_in_place(trace, self.counter.operand, following, set())
        if counted is None:
            counted = write_over(trace, self.counter.operand, following)
        branch = _ask(trace, Test(given.goes_on(Int.of(counted)), every=False))
        self.close([*ends, counted], branch)
        if given.may_be_empty:
            self.before.skips = self.after.number
            self.after.is_target = True
        return state

    def end(self, state: tuple[Any, ...]) -> tuple[Any, ...]:
        return self.results() if self.staged else state


class While(_Loop):
    """A while loop: of the QPU if its condition is a test of all lanes."""

    def __init__(self, names: tuple[str, ...], carried: tuple[str, ...], forever: bool) -> None:
        super().__init__(names, carried)
        self.forever = forever
        self.start()

    def mark(self) -> None:
        self._mark = self.trace.mark()

    def is_staged(self, condition: Any) -> bool:
        if isinstance(condition, Bool):
            self.trace.fail("the lanes of a `while` may differ: write any_() or all_() of the condition")
        if isinstance(condition, Test):
            self.trace.roll_back(self._mark)
            return True
        return False

    def header(self, state: tuple[Any, ...]) -> tuple[Any, ...]:
        _deeper(self.trace, "a loop")
        state = self.begin(state)
        self.enter()
        return state

    def turn(self, condition: Any, state: tuple[Any, ...]) -> bool:
        if not self.is_native:
            return bool(condition)
        self.test = self.trace.code.block
        self.test.branch = _ask(self.trace, condition, invert=True)
        self.trace.begin_block(self.trace.loops)
        return True

    def next(self, state: tuple[Any, ...]) -> tuple[Any, ...]:
        if not self.is_native:
            return self.unrolled(state)
        ends = self.carry(state)
        self.close(ends, Branch(BranchCondition.ALWAYS, None))
        self.test.skips = self.after.number
        self.after.is_target = True
        return state

    def end(self, state: tuple[Any, ...]) -> tuple[Any, ...]:
        return self.results() if self.is_native else state

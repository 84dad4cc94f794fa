"""Lowers each value of a flat shader to an operand, and knows how often and where it is read.

Values are lowered when something asks for them, so that what nothing asks for is not. Those that
other blocks read are asked for at the end of their block.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from vc4lab.driver.compiler.interface import Uniform, UniformKind
from vc4lab.driver.compiler.ssa.optimise import walk
from vc4lab.driver.compiler.ssa.values import Block, Function, If, Jump, Loop, Value
from vc4lab.driver.compiler.tgsi.window import CLIP_PLANES
from vc4lab.qpu.isa.operations import Condition
from vc4lab.qpu.machine.builder import ALL, BRANCHES, COMPARISONS, ONE, OPPOSITE, ZERO, Builder
from vc4lab.qpu.machine.code import Branch, Const, Flags, Op, Operand, Reg, Wants


class Uses:
    """The uses of a function's values."""

    def __init__(self, function: Function) -> None:
        self.count: dict[Value, int] = {}
        """How often each value is read."""
        self.crossing: dict[Block, list[Value]] = {}
        """The values of each block that other blocks read."""
        self.outputs: dict[tuple[int, int], Value] = {}
        """The value of each component of an output."""
        self.discarded: Value | None = None
        """Whether a pixel is left out."""
        self.output_lines: dict[tuple[int, int], int] = {}
        self.discard_line = 0
        """The line of the text that discards, for listings."""
        self._made: dict[Value, Block] = {}
        self._elsewhere: dict[Value, None] = {}
        last: Block | None = None
        for node in walk(function.body):
            if isinstance(node, Block):
                last = node
                self._block(node)
            elif isinstance(node, If):
                self._read((node.condition,), last)
            elif isinstance(node, Loop):
                self._read(node.initial, last)
            elif isinstance(node, Jump):
                self._read(node.values, last)
        for value in self._elsewhere:
            if value.op not in ("constant", "uniform"):
                self.crossing.setdefault(self._made[value], []).append(value)

    def _block(self, block: Block) -> None:
        for value in block.values:
            self._made[value] = block
            self._read(value.args, block)
            if value.op == "output":
                self.outputs[value.attributes] = value.args[0]
                self.output_lines[value.attributes] = value.line
            elif value.op == "discard_if":
                self.discarded, self.discard_line = value.args[0], value.line

    def _read(self, values: Sequence[Value], block: Block | None) -> None:
        for value in values:
            self.count[value] = self.count.get(value, 0) + 1
            if value in self._made and self._made[value] is not block:
                self._elsewhere[value] = None


SIMPLE = {
    **{"and": "and", "or": "or", "xor": "xor", "not": "not"},
    **{"shl": "shl", "shr": "shr", "asr": "asr", "iadd": "add", "imin": "min", "imax": "max"},
    **{"f2i": "ftoi", "i2f": "itof"},
}


class Values:
    """A function on its way to operations: its blocks and loops, which values are asked for, and
    conditions. Arithmetic, samples, inputs and outputs are added by the classes above it."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.code = Builder()
        self._operands: dict[Value, Operand] = {}
        self._shared: set[Reg] = set()
        """Registers that are more than one value: nothing may be written over them."""
        self._conditions: dict[Value, list[tuple[Flags, Condition, bool, int]]] = {}
        self.reach = 1 << 30
        """How many operations after flags were set others may share them: all that do must be ready
        together, which takes registers."""
        self.has_words = False
        """Whether conditions that only choose are words, too."""
        self._set_at: dict[Flags, int] = {}
        self._loops: tuple[int, ...] = ()
        self._around: list[Loop] = []
        uses = Uses(function)
        self._uses, self._crossing = uses.count, uses.crossing
        self.outputs, self.discarded = uses.outputs, uses.discarded
        self._output_lines, self._discard_line = uses.output_lines, uses.discard_line

    # ---------------------------------------------------------------- the function

    def body(self) -> None:
        """Lower all nodes; afterwards outputs can be asked for."""
        self._nodes(self.function.body)

    def _nodes(self, nodes: Sequence[object]) -> None:
        for node in nodes:
            if isinstance(node, Block):
                for value in self._crossing.get(node, ()):
                    self._settle(value)
            elif isinstance(node, Loop):
                self._loop(node)

    def _settle(self, value: Value) -> None:
        """A value that other blocks read: in a register of a file."""
        operand = self.get(value)
        if not isinstance(operand, Reg) or operand.wants in (Wants.R4, Wants.R5):
            self._operands[value] = self.code.move(operand, Wants.FILE)
        elif operand.wants is Wants.ANY:
            operand.wants = Wants.FILE

    def _loop(self, node: Loop) -> None:
        code = self.code
        tail = node.body[-1]
        assert isinstance(tail, If)
        again, out = tail.then[0], tail.otherwise[0]
        assert isinstance(again, Jump)
        assert isinstance(out, Jump)
        homes = []
        lent = self._lent_by_the_outer_loop(node)
        for name, initial in zip(node.parameters, node.initial, strict=True):
            home = self.get(initial) if name in lent else code.move(self.get(initial), Wants.FILE)
            assert isinstance(home, Reg)
            home.is_home = True
            homes.append(home)
            self._operands[name] = home
            self._shared.add(home)
        outer, self._around = self._loops, [*self._around, node]
        start = code.begin_block((*outer, len(code.blocks)))
        start.is_target = True
        self._loops = start.loops
        self._conditions = {}
        self._nodes(node.body[:-1])
        for value in dict.fromkeys(out.values):
            if value.op not in ("constant", "uniform") and value not in again.values:
                self._settle(value)
        ends = self._carry(node, homes, again.values)
        for name, end in zip(node.parameters, ends, strict=True):
            end.is_home = name in lent
        flags, condition = self._repeat_flags(tail.condition, ends)
        code.block.variables = ends
        code.block.repeats = start.number
        code.block.branch = Branch(BRANCHES[condition], flags)
        self._loops = outer
        self._around.pop()
        self._conditions = {}
        by_value = dict(zip(again.values, ends, strict=True))
        for name, value in zip(node.results, out.values, strict=True):
            found = by_value.get(value)
            self._operands[name] = self.get(value) if found is None else found
            if found is not None:
                self._shared.add(found)
        code.begin_block(outer)

    def _lent_by_the_outer_loop(self, node: Loop) -> set[Value]:
        """The variables of a loop that are those of the loop around it, which has nothing else to
        do with them: they have one place.
        """
        if not self._around:
            return set()
        outer = self._around[-1]
        tail = outer.body[-1]
        assert isinstance(tail, If)
        again = tail.then[0]
        assert isinstance(again, Jump)
        places = {name: place for place, name in enumerate(outer.parameters)}
        inner = node.body[-1]
        assert isinstance(inner, If)
        out = inner.otherwise[0]
        assert isinstance(out, Jump)
        carried = inner.then[0]
        assert isinstance(carried, Jump)
        results = dict(zip(out.values, node.results, strict=True))
        found = set()
        for number, (name, initial) in enumerate(zip(node.parameters, node.initial, strict=True)):
            place = places.get(initial)
            if place is not None and self._uses.get(initial) == 1:
                result = results.get(carried.values[number])
                if result is not None and again.values[place] is result:
                    found.add(name)
        return found

    def _carry(self, node: Loop, homes: list[Reg], values: Sequence[Value]) -> list[Reg]:
        """At the end of a turn variables get what the next one has; the registers they are then."""
        code = self.code
        parameters = set(node.parameters)
        new: list[tuple[Operand, Value | None, bool]] = []
        for name, value in zip(node.parameters, values, strict=True):
            if value.op == "select" and value not in self._operands and value.args[2] is name:
                operand, condition, holds = self.get(value.args[1]), value.args[0], True
                source = value.args[1]
            elif value.op == "select" and value not in self._operands and value.args[1] is name:
                operand, condition, holds = self.get(value.args[2]), value.args[0], False
                source = value.args[2]
            else:
                operand, condition, holds, source = self.get(value), None, True, value
            if source in parameters and source is not name:
                operand = code.move(operand)
            new.append((operand, condition, holds))
        ends = []
        for home, (operand, condition, holds) in zip(homes, new, strict=True):
            op = code.op("mov", operand)
            if condition is None:
                op.tied = home
                end = code.add(op)
            else:
                flags, lanes = self._condition(condition, operand, home, late=True)
                end = code.conditional(op, flags, lanes if holds else OPPOSITE[lanes], home)
            assert end is not None
            end.wants = Wants.FILE
            end.block = home.block
            end.uses += 1
            ends.append(end)
        return ends

    def _repeat_flags(self, condition: Value, ends: list[Reg]) -> tuple[Flags, Condition]:
        """The flags by which the loop goes on, set after everything else."""
        block = self.code.block
        known = self._conditions.get(condition, [])
        flags = next((one for one, _, late, at in known if late and at == block.number), None)
        if flags is None:
            flags = self.code.flags(self.code.op("mov", self.get(condition)))
            flags.setter.together = [one.op for one in ends if one.op is not None]
            lanes = Condition.ZC
        else:
            lanes = next(one for other, one, _, _ in known if other is flags)
        flags.setter.together += [
            one for one in block.ops if one.flags is not None and one.flags is not flags
        ]
        flags.users.append(Op("branch"))
        return flags, lanes

    # ---------------------------------------------------------------- values

    def output_of(self, place: tuple[int, int]) -> Operand | None:
        """The operand that an output gets, None if it gets nothing; what follows is for its line."""
        value = self.outputs.get(place)
        found = None if value is None else self.get(value)
        self.code.line = self._output_lines.get(place, 0)
        return found

    def get(self, value: Value) -> Operand:
        """The operand that a value is."""
        found = self._operands.get(value)
        if found is not None:
            return found
        if value.op == "constant":
            return Const(value.attributes[0])
        if value.op == "uniform":
            buffer, register, component = value.attributes
            if buffer == CLIP_PLANES:
                return Uniform(UniformKind.CLIP_PLANE, register, component)
            return Uniform(UniformKind.CONSTANT, buffer, 4 * register + component)
        self._lower(value)
        return self._operands[value]

    def _lower(self, value: Value) -> None:
        """A value and all that it needs, the deepest first, without recursion."""
        waiting = [value]
        while waiting:
            top = waiting[-1]
            if top in self._operands:
                waiting.pop()
                continue
            missing = [
                arg
                for arg in self._needed(top)
                if arg not in self._operands and arg.op not in ("constant", "uniform")
            ]
            if missing:
                waiting += missing[::-1]
                continue
            self.code.line = top.line
            self._operands[top] = self._make(top)
            waiting.pop()

    def _needed(self, value: Value) -> list[Value]:
        """Return the values to lower before: operands, or those of signs and bytes that are folded in."""
        if value.op in ("select", "b2f"):
            return [*self._tested(value.args[0]), *value.args[1:]]
        if value.op not in ("fadd", "fmul", "fmin", "fmax"):
            return list(value.args)
        found = []
        for arg in value.args:
            inner = arg
            if value.op == "fadd" and inner.op == "fneg" and inner not in self._operands:
                inner = inner.args[0]
            if inner.op == "component" and self._uses.get(inner) == 1:
                inner = inner.args[0]
            found.append(inner)
        return found

    def _tested(self, condition: Value) -> Sequence[Value]:
        """Return the values that set the flags: a condition that nothing else reads needs no word."""
        if self.has_words:
            return (condition,)
        while condition.op == "not" and condition not in self._operands:
            condition = condition.args[0]
        if condition.op in (*COMPARISONS, "and", "or", "xor") and condition not in self._operands:
            return condition.args
        return (condition,)

    def _make(self, value: Value) -> Operand:
        op, code = value.op, self.code
        if op in COMPARISONS:
            return self._boolean(value)
        if op in SIMPLE:
            return code.make(SIMPLE[op], *(self.get(arg) for arg in value.args))
        handler: Callable[[Value], Operand] = getattr(self, f"_{op}")
        return handler(value)

    def _arg(self, value: Value, number: int = 0) -> Operand:
        return self.get(value.args[number])

    # ---------------------------------------------------------------- conditions

    def _condition(
        self, value: Value, *operands: Operand | None, late: bool = False
    ) -> tuple[Flags, Condition]:
        """Flags that say whether a value holds, for an operation with these operands. late: they
        are set after all that the block has.
        """
        known = self._conditions.setdefault(value, [])
        block = self.code.block.number
        for flags, condition, is_late, where in known:
            if is_late != late or where != block:
                continue
            is_near = len(self.code.block.ops) - self._set_at[flags] <= self.reach
            if is_near and self.code.may_use(flags, *operands):
                return flags, condition
        if value.op == "not" and value not in self._operands:
            flags, condition = self._condition(value.args[0], *operands, late=late)
            return flags, OPPOSITE[condition]
        line = self.code.line
        op, condition = self._setter(value)
        self.code.line = value.line or line
        flags = self.code.flags(op)
        self.code.line = line
        known.append((flags, condition, late, block))
        self._set_at[flags] = len(self.code.block.ops)
        return flags, condition

    def _setter(self, value: Value) -> tuple[Op, Condition]:
        """The operation whose flags say whether a value holds."""
        code = self.code
        if value.op in COMPARISONS and value not in self._operands:
            name, swapped, condition = COMPARISONS[value.op]
            args = [self.get(arg) for arg in value.args]
            if value.op in ("ieq", "ine") and value.args[1].op == "constant":
                if value.args[1].attributes[0] == 0:
                    return code.op("mov", args[0]), condition
            return code.op(name, *(args[::-1] if swapped else args)), condition
        if value.op in ("and", "or", "xor") and value not in self._operands:
            return code.op(value.op, *(self.get(arg) for arg in value.args)), Condition.ZC
        return code.op("mov", self.get(value)), Condition.ZC

    def _boolean(self, value: Value) -> Operand:
        """A comparison as a word."""
        op, condition = self._setter(value)
        return self._word(op, condition)

    def _word(self, op: Op, condition: Condition) -> Reg:
        """All bits in the lanes of a condition."""
        flags = self.code.flags(op)
        base = self.code.move(ZERO)
        return self.code.conditional(self.code.op("mov", ALL), flags, condition, base)

    def _b2f(self, value: Value) -> Operand:
        return self._choose(value.args[0], ONE, ZERO, False, False)

    def _select(self, value: Value) -> Operand:
        condition, first, second = value.args
        return self._choose(
            condition, self.get(first), self.get(second), self._is_free(first), self._is_free(second)
        )

    def _is_free(self, value: Value) -> bool:
        """Whether a value's register may be written over by the one that reads it."""
        operand = self._operands.get(value)
        return (
            self._uses.get(value) == 1
            and isinstance(operand, Reg)
            and operand not in self._shared
            and operand.block == self.code.block.number
            and operand.wants in (Wants.ANY, Wants.FILE)
            and operand.uses == 0
        )

    def _choose(
        self, condition: Value, first: Operand, second: Operand, first_free: bool, second_free: bool
    ) -> Reg:
        """`first` where the condition holds, else `second`."""
        code = self.code
        first_op = code.may_change(first) if first_free else None
        second_op = code.may_change(second) if second_free else None
        if second_free:
            assert isinstance(second, Reg)
            return self._put_over(condition, first, first_op, second, True)
        if first_free and second_op is None:
            assert isinstance(first, Reg)
            return self._put_over(condition, second, second_op, first, False)
        return self._put_over(condition, first, first_op, code.move(second), True)

    def _put_over(self, condition: Value, new: Operand, maker: Op | None, old: Reg, holds: bool) -> Reg:
        """`new` over `old` in the lanes where the condition holds or does not; what makes it can
        do that itself if nothing else reads it.
        """
        code = self.code
        operands = [new, old] if maker is None else [*maker.args, old]
        flags, lanes = self._condition(condition, *operands)
        lanes = lanes if holds else OPPOSITE[lanes]
        if maker is None or code.may_change(new) is None:
            return code.conditional(code.op("mov", new), flags, lanes, old)
        return code.in_lanes(maker, flags, lanes, old)

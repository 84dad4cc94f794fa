"""TGSI → SSA: vector registers become scalar values, one for each component that is written.

Registers that are indexed stay memory: arrays with `load` and `store`. All others disappear. At the
end of a condition, values that its two ways made differently get a new name; in a loop those that
its body writes. What a register holds before it is written is 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from vc4lab.driver.compiler.ssa.expand import expand
from vc4lab.driver.compiler.ssa.values import Block, Function, If, Jump, Loop, Node, Value, parameter
from vc4lab.driver.compiler.tgsi.operations import Kind, Shape
from vc4lab.driver.compiler.tgsi.program import (
    COMPONENTS,
    File,
    Instruction,
    Program,
    Register,
    Source,
    TgsiError,
)

Variable = tuple[File, int, int]
"""A component of a register that is no memory: file, number, component."""


@dataclass(eq=False)
class OpenIf:
    """A condition whose end is not reached."""

    node: If
    outer: list[Node]
    old: dict[Variable, Value | None] = field(default_factory=dict)
    """Values that the variables had before the branch at hand wrote them."""
    then: dict[Variable, Value] | None = None
    """Values of the first branch's variables; None: it jumped away, or is at hand."""
    then_jumped: bool = False


@dataclass(eq=False)
class OpenLoop:
    """A loop whose end is not reached; `written`: the variables of its body, in order."""

    node: Loop
    outer: list[Node]
    written: tuple[Variable, ...]
    is_left: bool = False


def named(variable: Variable) -> str:
    """Its name in listings."""
    file, number, component = variable
    return f"{file.value}[{number}].{COMPONENTS[component]}"


MOST_NAMES = 1 << 18
"""Parameters of all conditions and loops together, and the values that jumps give them."""


def to_ssa(program: Program) -> Function:
    """The program in SSA form. Raises TgsiError if it is too large."""
    return _Translation(program).function()


class _Translation:
    """A program on its way."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._function = Function(program.stage)
        self._nodes: list[Node] = self._function.body
        self._block = self._new_block()
        self._values: dict[Variable, Value] = {}
        self._written_at: dict[Variable, int] = {}
        """The line that has written an output last."""
        self._open: list[OpenIf | OpenLoop] = []
        self._is_dead = False
        """Whether nothing comes here: after a jump, up to the end of its block."""
        self._dead_blocks = 0
        """Blocks that began since then."""
        self._constants: dict[int, Value] = {}
        self._names = 0
        self._line = 0
        self._firsts = {(one.file, one.array): one.first for one in program.declarations if one.array}
        self._arrays = self._indexed_arrays()
        self._immediates = [one.words + (0,) * 4 for one in program.immediates]

    def function(self) -> Function:
        instructions = self._program.instructions
        for number, instruction in enumerate(instructions):
            self._line = instruction.line
            if self._is_dead and not self._ends_here(instruction):
                continue
            operation = instruction.operation
            if operation.shape in (Shape.FLOW, Shape.KILL):
                getattr(self, f"_{operation.name.lower()}")(instruction, number)
            else:
                expand(self, instruction)
        if not self._is_dead:
            self._outputs()
        return self._function

    def _ends_here(self, instruction: Instruction) -> bool:
        """Report whether an unreachable instruction ends the block that is unreachable."""
        operation = instruction.operation
        if operation.closes and not self._dead_blocks:
            return True
        if operation.name != "ELSE":
            self._dead_blocks += operation.opens - operation.closes
        return False

    # -- what instructions are made of -------------------------------------------------------------

    def make(self, op: str, *args: Value, attributes: tuple[object, ...] = ()) -> Value:
        """A new value at the end of the block."""
        value = Value(op, args, attributes, self._line)
        self._block.values.append(value)
        return value

    def constant(self, word: int) -> Value:
        """A word that is the same in all lanes; made once, at the beginning."""
        value = self._constants.get(word)
        if value is None:
            value = Value("constant", (), (word,))
            self._constants[word] = value
            first = self._function.body[0]
            assert isinstance(first, Block)
            first.values.insert(len(self._constants) - 1, value)
        return value

    def source(self, source: Source, component: int, kind: Kind) -> Value:
        """Return the value that an instruction reads as its component, with its sign."""
        letter = COMPONENTS.index(source.swizzle[component])
        value = self._read(source.register, letter)
        is_integer = kind in (Kind.INT, Kind.UINT)
        if source.absolute:
            value = self.make("iabs" if is_integer else "fabs", value)
        if source.negate:
            value = self.make("ineg" if is_integer else "fneg", value)
        return value

    def write(self, instruction: Instruction, values: dict[int, Value]) -> None:
        """The result of an instruction, by component."""
        (target,) = instruction.targets
        for component, value in values.items():
            result = self.make("fsat", value) if instruction.saturate else value
            self._write(target.register, component, result)

    def _read(self, register: Register, component: int) -> Value:
        file, number = register.file, register.number
        if file is File.IMM:
            if register.index is not None:
                raise TgsiError("TGSI-003", "immediates cannot be indexed", self._line)
            return self.constant(self._immediates[number][component])
        if file is File.CONST:
            place = register.dimension or 0, number, component
            if register.index is None:
                return self.make("uniform", attributes=place)
            return self.make("uniform_at", self.index(register), attributes=place)
        if file in (File.IN, File.SV):
            if register.index is not None:
                raise TgsiError("TGSI-003", "inputs cannot be indexed", self._line)
            op = "input" if file is File.IN else "system"
            return self.make(op, attributes=(number, component))
        array = self._array(register)
        if array is not None:
            name, first = array
            return self.make("load", self.index(register), attributes=(name, first, component))
        return self._values.get((file, number, component)) or self.constant(0)

    def _write(self, register: Register, component: int, value: Value) -> None:
        array = self._array(register)
        if array is not None:
            name, first = array
            place = name, first, component
            self.make("store", self.index(register), value, attributes=place)
            return
        self._set((register.file, register.number, component), value)

    def samplers(self) -> int:
        """How many samplers there are, up to the last that is declared."""
        lasts = [one.last for one in self._program.declarations if one.file is File.SAMP]
        return max(lasts, default=0) + 1

    def index(self, register: Register) -> Value:
        """The number that a register's index adds to its own; of a fixed one 0."""
        index = register.index
        if index is None:
            return self.constant(0)
        return self._read(Register(index.file, index.number), COMPONENTS.index(index.component))

    def _set(self, variable: Variable, value: Value) -> None:
        if self._open and isinstance(self._open[-1], OpenIf):
            self._open[-1].old.setdefault(variable, self._values.get(variable))
        self._values[variable] = value
        if variable[0] is File.OUT:
            self._written_at[variable] = self._line

    # -- arrays ------------------------------------------------------------------------------------

    def _indexed_arrays(self) -> dict[tuple[File, int], tuple[str, int]]:
        """Each register that is memory: its array's name, and its number in it."""
        ranges: dict[tuple[File, int], range] = {}
        declared = {
            (one.file, one.array): range(one.first, one.last + 1)
            for one in self._program.declarations
            if one.array
        }
        for instruction in self._program.instructions:
            used = [one.register for one in instruction.targets]
            used += [one.register for one in instruction.sources]
            for register in used:
                if register.index is None or register.file not in (File.TEMP, File.OUT):
                    continue
                key = register.file, register.index.array
                if key not in ranges:
                    ranges[key] = declared[key] if key[1] else self._all_of(register.file)
        found: dict[tuple[File, int], tuple[str, int]] = {}
        for (file, number), registers in sorted(
            ranges.items(), key=lambda item: (item[0][0].value, item[0][1])
        ):
            # Without a named array an index may reach all of them: they are one array then.
            name = f"{file.value}({number})" if (file, 0) not in ranges else file.value
            if (file, 0) in ranges:
                registers = self._all_of(file)
            self._function.arrays[name] = len(registers)
            found |= {(file, one): (name, one - registers.start) for one in registers}
        return found

    def _all_of(self, file: File) -> range:
        """From 0 to the last declared register of a file."""
        lasts = [one.last for one in self._program.declarations if one.file is file]
        return range(max(lasts, default=-1) + 1)

    def _array(self, register: Register) -> tuple[str, int] | None:
        """The array of a register, and its first number there; None if it is no memory."""
        number = register.number
        index = register.index
        if index is not None and index.array:
            first = self._firsts[register.file, index.array]
            found = self._arrays[register.file, first]
            return found[0], found[1] + number - first
        if index is not None:
            return self._arrays[register.file, 0][0], number
        return self._arrays.get((register.file, number))

    # -- control flow ------------------------------------------------------------------------------

    def _new_block(self) -> Block:
        block = Block()
        self._nodes.append(block)
        return block

    def _enter(self, nodes: list[Node]) -> None:
        self._nodes = nodes
        self._block = self._new_block()

    def _name(self, count: int) -> None:
        self._names += count
        if self._names > MOST_NAMES:
            raise TgsiError("TGSI-006", "too many values meet in its loops", self._line)

    def _jumped(self) -> bool:
        """Whether nothing comes to the end of the block at hand; the next is reached."""
        dead, self._is_dead = self._is_dead, False
        return dead

    def _uif(self, instruction: Instruction, _number: int) -> None:
        condition = self.source(instruction.sources[0], 0, instruction.operation.takes)
        if instruction.operation.name == "IF":
            condition = self.make("fne", condition, self.constant(0))
        node = If(condition)
        self._nodes.append(node)
        self._open.append(OpenIf(node, self._nodes))
        self._enter(node.then)

    _if = _uif

    def _else(self, _instruction: Instruction, _number: int) -> None:
        top = self._open[-1]
        assert isinstance(top, OpenIf)
        top.then, top.then_jumped = self._way_of(top), self._jumped()
        self._enter(top.node.otherwise)

    def _endif(self, _instruction: Instruction, _number: int) -> None:
        top = self._open[-1]
        assert isinstance(top, OpenIf)
        made, jumped = self._way_of(top), self._jumped()
        self._open.pop()
        if top.then is None:  # there was no ELSE
            top.then, top.then_jumped, made, jumped = made, jumped, {}, False
        node = top.node
        variables = dict.fromkeys([*top.then, *made])
        olds = {one: self._values.get(one) or self.constant(0) for one in variables}
        thens = tuple(top.then.get(one, olds[one]) for one in variables)
        elses = tuple(made.get(one, olds[one]) for one in variables)
        self._name(len(variables))
        node.parameters = tuple(parameter(named(one), self._line) for one in variables)
        node.then_values = None if top.then_jumped else thens
        node.else_values = None if jumped else elses
        self._nodes = top.outer
        self._block = self._new_block()
        for variable, value in zip(variables, node.parameters, strict=True):
            self._set(variable, value)
        self._is_dead = top.then_jumped and jumped

    def _way_of(self, top: OpenIf) -> dict[Variable, Value]:
        """Return the values that a branch has made; the variables are again as before it."""
        made = {variable: self._values[variable] for variable in top.old}
        for variable, old in top.old.items():
            if old is None:
                del self._values[variable]
            else:
                self._values[variable] = old
        top.old = {}
        return made

    def _bgnloop(self, _instruction: Instruction, number: int) -> None:
        written = self._written_in(number)
        initial = tuple(self._values.get(one) or self.constant(0) for one in written)
        self._name(len(written))
        node = Loop([], tuple(parameter(named(one), self._line) for one in written), initial)
        self._nodes.append(node)
        for variable, value in zip(written, node.parameters, strict=True):
            self._set(variable, value)
        self._open.append(OpenLoop(node, self._nodes, written))
        self._enter(node.body)

    def _endloop(self, _instruction: Instruction, _number: int) -> None:
        top = self._open[-1]
        assert isinstance(top, OpenLoop)
        if not self._jumped():
            self._jump("continue")
        self._open.pop()
        names = tuple(parameter(named(one), self._line) for one in top.written)
        top.node.results = names
        self._nodes = top.outer
        self._block = self._new_block()
        for variable, value in zip(top.written, names, strict=True):
            self._set(variable, value)
        self._is_dead = not top.is_left

    def _brk(self, _instruction: Instruction, _number: int) -> None:
        self._jump("break").is_left = True

    def _cont(self, _instruction: Instruction, _number: int) -> None:
        self._jump("continue")

    def _jump(self, kind: str) -> OpenLoop:
        loop = next(one for one in reversed(self._open) if isinstance(one, OpenLoop))
        values = tuple(self._values[one] for one in loop.written)
        self._name(len(values))
        self._nodes.append(Jump(kind, loop.node, values))
        self._is_dead = True
        return loop

    def _written_in(self, start: int) -> tuple[Variable, ...]:
        """The variables that the loop's body writes, in the order of their numbers."""
        found: set[Variable] = set()
        depth = 0
        instructions = self._program.instructions
        for at in range(start, len(instructions)):
            instruction = instructions[at]
            depth += instruction.operation.name == "BGNLOOP"
            depth -= instruction.operation.name == "ENDLOOP"
            if not depth:
                break
            for target in instruction.targets:
                if self._array(target.register) is None:
                    place = target.register.file, target.register.number
                    found |= {(*place, COMPONENTS.index(letter)) for letter in target.mask}
        return tuple(sorted(found, key=lambda one: (one[0].value, one[1:])))

    def _kill(self, _instruction: Instruction, _number: int) -> None:
        self.make("discard_if", self.constant(0xFFFFFFFF))

    def _kill_if(self, instruction: Instruction, _number: int) -> None:
        """If any of the four is below 0."""
        zero = self.constant(0)
        source = instruction.sources[0]
        letters = {source.swizzle[component]: component for component in range(4)}
        parts = [
            self.make("flt", self.source(source, component, Kind.FLOAT), zero)
            for component in sorted(letters.values())
        ]
        condition = parts[0]
        for part in parts[1:]:
            condition = self.make("or", condition, part)
        self.make("discard_if", condition)

    def _nop(self, _instruction: Instruction, _number: int) -> None:
        pass

    _end = _nop

    def _outputs(self) -> None:
        """Make the values of the outputs at the end."""
        for declared in self._program.declarations:
            if declared.file is File.OUT:
                for number in range(declared.first, declared.last + 1):
                    for letter in declared.mask:
                        component = COMPONENTS.index(letter)
                        value = self._read(Register(File.OUT, number), component)
                        self._line = self._written_at.get((File.OUT, number, component), 0)
                        self.make("output", value, attributes=(number, component))

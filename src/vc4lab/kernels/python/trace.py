"""A kernel on its way to operations: blocks, constants, what has an order, where a line is from."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NoReturn

from vc4lab.qpu.isa.builder import SMALL_IMMEDIATE_CODES
from vc4lab.qpu.machine.builder import Builder
from vc4lab.qpu.machine.code import Block, Const, Op, Operand, Read, Reg, StreamWord, Wants

_OWN = os.path.dirname(__file__), os.path.dirname(sys.modules[Builder.__module__].__file__ or "")
HOISTED = 10
"""Constants of loops that are kept in registers; further ones come from the uniform stream."""
REACH = 24
"""Operations after which a result is made again rather than kept: registers are few."""
MOST_OPERATIONS = 100_000
"""Operations of one kernel, at most."""
UNIFORM = Read("unif", 32, 32)
VPM = Read("vpm", 48, 48)
ELEMENT = Read("elem_num", 38, -1)
QPU_NUMBER = Read("qpu_num", -1, 38)
LOAD_WAIT = Read("vr_wait", 50, -1)
STORE_WAIT = Read("vw_wait", -1, 50)
MUTEX = Read("mutex", 51, 51)


class KernelSourceError(ValueError):
    """A mistake in a kernel that is written in Python: file, line, and what is wrong."""

    def __init__(self, message: str, file: str = "", line: int = 0) -> None:
        where = f"{file}:{line}: " if line else ""
        super().__init__(where + message)
        self.file, self.line, self.message = file, line, message


class NeedsPointer(Exception):  # noqa: N818 - a fact about the kernel
    """The kernel moves its uniform pointer, which was not known before."""


@dataclass(frozen=True)
class Expression(StreamWord):
    """A uniform that the caller computes, as the interface of kernels writes it."""

    text: str


class Trace:
    """Records what a function has done so far.

    file: of the function; has_pointer: whether it reads a uniform stream of its own, so that constants
    cannot come from there; is_sparing: few values are kept, because registers do not suffice otherwise.
    """

    def __init__(self, file: str, has_pointer: bool = False, is_sparing: bool = False) -> None:
        self.file = file
        self.has_pointer = has_pointer
        self._hoisted, self._reach = (0, 4) if is_sparing else (HOISTED, REACH)
        self._streams = is_sparing
        """Whether uniforms are read where they are used, not kept in registers."""
        self.base: Reg | None = None
        """The address of the stream of arguments, if the kernel moves its pointer and must find it again."""
        self._own: Block | None = None
        """The block at hand, if it reads a stream of its own."""
        self.code = Builder()
        self.loops: tuple[int, ...] = ()
        self.alive = True
        """Whether the place being traced can be reached (after a `return` it cannot)."""
        self.depth = 0
        """Loops and branches around it."""
        self.lanes = 0
        """Conditions on lanes around it."""
        self.turns = 0
        """Number of turns of unrolled loops so far."""
        self.outstanding = 0
        self.gathered_in = 0
        """The line of the last `gather`."""
        """Requests of `gather` that are not received."""
        self._uniforms: dict[str, Reg] = {}
        self._expressions: dict[str, Expression] = {}
        self._constants: dict[int, Reg] = {}
        self._known: dict[object, tuple[Reg, int]] = {}
        """Results by what makes them, and when they were last wanted."""
        self._kept: list[tuple[Operand, ...]] = []
        self._settled: dict[Reg, Reg] = {}
        self._invariant: dict[object, Reg] = {}
        self.variables: set[Reg] = set()
        """Registers that loops and branches write over."""
        self._order: dict[str, Op] = {}
        self._loads: list[tuple[str, Op]] = []
        self._stores: list[tuple[str, Op]] = []
        self._count = 0

    # ---------------------------------------------------------------- lines and mistakes

    def line(self) -> int:
        """The line of the kernel's own file that is being executed."""
        frame = sys._getframe(1)
        found = 0
        while frame is not None:
            name = frame.f_code.co_filename
            if name == self.file:
                return frame.f_lineno
            frame = frame.f_back  # type: ignore[assignment]
        return found

    def fail(self, message: str) -> NoReturn:
        raise KernelSourceError(message, self.file, self.line())

    # ---------------------------------------------------------------- blocks

    def begin_block(self, loops: tuple[int, ...]) -> Block:
        """Another block after all others."""
        self._known.clear()
        self._order.clear()
        self._loads, self._stores = [], []
        return self.code.begin_block(loops)

    @contextmanager
    def inside(self, block: Block) -> Iterator[None]:
        """Operations that are made here go to the end of an older block."""
        here, self.code.block = self.code.block, block
        try:
            yield
        finally:
            self.code.block = here

    # ---------------------------------------------------------------- operands

    def uniform(self, text: str) -> Operand:
        """A word that the caller computes."""
        found = self._expressions.setdefault(text, Expression(text))
        return found if self._streams else self._register(found)

    def _register(self, word: Expression) -> Reg:
        """The word in a register from the beginning on."""
        if word.text not in self._uniforms:
            with self.inside(self.code.blocks[0]):
                self._uniforms[word.text] = self.code.move(word)
        return self._uniforms[word.text]

    def own_stream(self) -> None:
        """The kernel reads a uniform stream of its own in this block, or in another one from here on."""
        block = self.code.block
        if self._own is not block:
            if block.ops or block.number == 0:
                block = self.begin_block(self.loops)
            self._own = block
            if self._streams and self.base is None:
                self.base = self._register(Expression("uniforms"))
                self.base.wants = Wants.FILE
                self.base.is_home = True  # it is read to the end
                self.base.uses += 1

    def special(self, read: Read) -> Reg:
        """Return a register, set at the beginning, with what is read by an address and never changes."""
        if read.name not in self._uniforms:
            with self.inside(self.code.blocks[0]):
                self._uniforms[read.name] = self.code.move(read)
        return self._uniforms[read.name]

    def operand(self, value: Operand) -> Operand:
        """A value as an operand of this block."""
        if isinstance(value, Reg):
            return self._settle(value)
        is_own = self._own is self.code.block
        if isinstance(value, Expression) and is_own:
            return self._register(value)
        if isinstance(value, Const) and value.word not in SMALL_IMMEDIATE_CODES:
            if self.code.block.number == 0 or (self._streams and not is_own):
                return value
            if value.word in self._constants:
                return self._constants[value.word]
            if self.loops and len(self._constants) < self._hoisted:
                with self.inside(self.code.blocks[0]):
                    self._constants[value.word] = self.code.move(value)
                return self._constants[value.word]
            if self.has_pointer:
                return self._loaded(value.word)
        return value

    def _operands(self, args: tuple[Operand, ...]) -> tuple[Operand, ...]:
        """Values as operands of one operation: of two constants, one is in a register."""
        found = [self.operand(one) for one in args]
        if len(found) == 2 and found[0] != found[1] and all(isinstance(one, Const) for one in found):
            found[0] = self.code.move(found[0])
        return tuple(found)

    def _loaded(self, word: int) -> Reg:
        """A constant by an instruction of its own."""
        key = "ldi", word
        found, since = self._known.get(key, (None, 0))
        if found is None or self._count - since > self._reach:
            op = Op("ldi", line=self.line())
            op.loads = word
            found = self.code.add(op)
            assert found is not None
        self._known[key] = found, self._count
        return found

    def _settle(self, reg: Reg) -> Reg:
        """A register of another block: r4 and r5 are copied there at once."""
        if reg.wants not in (Wants.R4, Wants.R5) or reg.block == self.code.block.number:
            return reg
        if reg not in self._settled:
            block = self.code.blocks[reg.block]
            with self.inside(block):
                copy = self.code.move(reg, Wants.FILE)
            assert reg.op is not None
            assert copy.op is not None
            block.ops.remove(copy.op)
            block.ops.insert(block.ops.index(reg.op) + 1, copy.op)
            self._settled[reg] = copy
        return self._settled[reg]

    # ---------------------------------------------------------------- operations

    def make(self, name: str, *args: Operand, wants: Wants = Wants.ANY) -> Reg:
        """An operation without effects; the same one is made once in a block."""
        args = self._operands(args)
        keeps = self._hoisted or self._own is self.code.block
        if self.loops and keeps and all(map(self._is_invariant, args)):
            return self._before_loops(name, args, wants)
        key = name, wants, *(one if isinstance(one, Const) else id(one) for one in args)
        found, since = self._known.get(key, (None, 0))
        if found is None or self._count - since > self._reach:
            self._begin()
            found = self.code.make(name, *args, wants=wants)
            self._kept.append(args)
        self._known[key] = found, self._count
        return found

    def _is_invariant(self, arg: Operand) -> bool:
        """Whether an operand is the same in all turns of all loops."""
        if isinstance(arg, Reg):
            return arg.block == 0 and arg not in self.variables and arg.wants not in (Wants.R4, Wants.R5)
        return isinstance(arg, Const) and (arg.word in SMALL_IMMEDIATE_CODES)

    def _before_loops(self, name: str, args: tuple[Operand, ...], wants: Wants) -> Reg:
        """An operation that gives the same in all turns is done once."""
        key = name, *(one if isinstance(one, Const) else id(one) for one in args)
        if key not in self._invariant:
            self._begin()
            with self.inside(self.code.blocks[0]):
                self._invariant[key] = self.code.make(name, *args, wants=wants)
            self._kept.append(args)
        return self._invariant[key]

    def _begin(self) -> None:
        self._count += 1
        if self._count > MOST_OPERATIONS:
            self.fail(f"the kernel has more than {MOST_OPERATIONS} operations")
        self.code.line = self.line()

    def op(self, name: str, *args: Operand) -> Op:
        """An operation that is not in the program yet."""
        self._begin()
        return self.code.op(name, *self._operands(args))

    def ordered(self, op: Op, *chains: str) -> Op:
        """An operation comes after all earlier ones of the block that have an order with it."""
        op.after = [self._order[chain] for chain in chains if chain in self._order]
        op.after = list(dict.fromkeys(op.after))
        for chain in chains:
            self._order[chain] = op
        return op

    def loads(self, array: str, request: Op, load: Op | None = None) -> None:
        """A request for memory of an array ("": of any) comes after what was stored there before.

        load: what gets it, which later stores come after; None: the request is enough.
        """
        request.after += [op for name, op in self._stores if not name or not array or name == array]
        self._loads.append((array, load or request))

    def stores(self, array: str, begins: Op, ends: Op) -> None:
        """A store into an array comes after what was loaded from there before."""
        begins.after += [op for name, op in self._loads if not name or not array or name == array]
        self._stores.append((array, ends))

    def write(self, address: int, value: Operand, *chains: str, file: str = "") -> Op:
        """A move to an address that is no register."""
        op = self.op("mov", value)
        op.target, op.target_file, op.peripheral = int(address), file, True
        self.ordered(op, *chains)
        self.code.add(op, None)
        return op

    def wait(self, read: Read, *chains: str) -> Op:
        """A read of an address that is no register, whose value is not wanted."""
        self.read(read, *chains, keeps=False)
        return self.code.block.ops[-1]

    def read(self, read: Read, *chains: str, keeps: bool = True) -> Reg | None:
        """A read of an address that is no register; keeps: its value."""
        self._begin()
        op = self.code.op("mov", read)
        op.peripheral = op.stays = True
        self.ordered(op, *chains)
        return self.code.add(op, Wants.ANY if keeps else None)

    def signal(self, signal: object, wants: Wants, *chains: str) -> Reg:
        """A signal whose result comes in r4."""
        self._begin()
        op = Op("load", line=self.code.line)
        op.signal, op.peripheral, op.stays = signal, True, True  # type: ignore[assignment]
        self.ordered(op, *chains)
        found = self.code.add(op, wants)
        assert found is not None
        return found

    def mark(self) -> tuple[Block, int]:
        """The place to which `roll_back` returns."""
        return self.code.block, len(self.code.block.ops)

    def roll_back(self, mark: tuple[Block, int]) -> None:
        """Forget the operations since."""
        block, length = mark
        assert block is self.code.block
        gone: Sequence[Op] = block.ops[length:]
        del block.ops[length:]
        for op in gone:
            for reg in op.reads:
                reg.uses -= 1
                reg.readers.remove(op)
            if op.tied is not None:
                op.tied.uses -= 1
            if op.flags is not None:
                op.flags.users.remove(op)
        self._known.clear()
        removed = set(gone)
        self._order = {name: op for name, op in self._order.items() if op not in removed}
        self._loads = [(name, op) for name, op in self._loads if op not in removed]


_current: list[Trace] = []


def current() -> Trace:
    """The kernel that is being traced. Raises KernelSourceError outside of kernels."""
    if not _current:
        raise KernelSourceError("this is for kernels: decorate the function with @vc4lab.qpu_kernel")
    return _current[-1]


@contextmanager
def tracing(trace: Trace) -> Iterator[Trace]:
    """Functions and operators write into a trace."""
    _current.append(trace)
    try:
        yield trace
    finally:
        _current.pop()

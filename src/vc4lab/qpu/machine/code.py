"""Operations of one ALU, or of a signal, on registers that have no place yet.

What `lower/` makes of a shader, and `schedule.py` puts into instructions. A register is written
once, except where an operation is *tied*: it writes over the register of an older one, in the lanes
or bytes that it means, and leaves the others as they were.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from vc4lab.qpu.isa.operations import AddOp, BranchCondition, Condition, MulOp, Signal


class Wants(Enum):
    """Says where a register may be."""

    ANY = "any"
    FILE = "file A or B"
    FILE_A = "file A"
    """Parts of it are read, or packed by its ALU: only file A does that."""
    ACCUMULATOR = "r0 to r3"
    R4 = "r4"
    R5 = "r5"


class Reg:
    """A value of 16 lanes on its way through a program.

    Attributes
    ----------
    op
        The operation that makes it; None if it is there at the beginning.
    uses
        How many operands it still is.
    place
        Where it is: 0-31 file A, 32-63 file B, 64-69 r0 to r5; None: nowhere yet, or no more.
    ready
        The first instruction that may read it.
    block
        Number of the block that makes it.
    avoid
        A file, 0 or 32, in which it must not be; -1: none.
    is_home
        Of the variable of a loop: its place belongs to what is written over it.
    """

    __slots__ = ("avoid", "block", "is_home", "op", "place", "readers", "ready", "uses", "wants")

    def __init__(self, op: Op | None = None, wants: Wants = Wants.ANY) -> None:
        self.op = op
        self.uses = 0
        self.readers: list[Op] = []
        self.place: int | None = None
        self.ready = 0
        self.wants = wants
        self.block = 0
        self.avoid = -1
        self.is_home = False


class StreamWord:
    """A word of the uniform stream that is not known yet: the base of those that a driver fills in."""

    __slots__ = ()


STREAM_ADDRESS = StreamWord()
"""The address of the stream itself; programs with branches find their place again by it."""


class Const(NamedTuple):
    """A word that is known: a small immediate if it is one, else a word of the uniform stream."""

    word: int


Streamed = StreamWord | Const
"""A word of the uniform stream of a scheduled program."""


class Read(NamedTuple):
    """A register address of file A or B (-1: not in this file) that is no register."""

    name: str
    a: int
    b: int


Operand = Reg | Const | StreamWord | Read

VARYING = Read("vary", 35, 35)
VPM = Read("vpm", 48, 48)
ELEMENT = Read("elem_num", 38, -1)
X_COORD = Read("x_coord", 41, -1)
Y_COORD = Read("y_coord", -1, 41)
MS_FLAGS = Read("ms_flags", 42, -1)
REV_FLAG = Read("rev_flag", -1, 42)


class Flags:
    """The flags that one operation sets, for those that depend on them."""

    __slots__ = ("number", "setter", "users")

    def __init__(self, setter: Op, number: int = 0) -> None:
        self.setter = setter
        self.users: list[Op] = []
        self.number = number


class Op:
    """One operation.

    Attributes
    ----------
    add, mul
        What it is in each ALU; None: that ALU cannot do it. Both None: only a signal.
    args
        One or two operands; of one, both inputs of the ALU are it.
    unpacks
        For each operand the unpack with which it is read.
    target
        A register, an address that is no register, or None.
    target_file
        Of an address that means different things: "a" or "b".
    second
        What it leaves in r5 besides: the C of a varying.
    tied
        The register over which it writes.
    condition, flags
        In which lanes it writes, and whose flags say so.
    sets
        The flags that it sets.
    pack, pm
        As in the instruction.
    takes
        The uniform that a write to the texture unit consumes by itself; which, the scheduler says.
    rotate
        Of a mul operation: how far its result moves up.
    after
        Operations that must be in earlier instructions; `together` if they may be in the same.
    first
        The first instruction in which it may stand.
    request
        Of a texture: which one it is part of.
    stays
        It takes a word of a stream, even if nothing reads the word.
    is_look_up
        It is an address of memory, for the texture unit.
    loads
        The word that it loads: an instruction of its own, a load immediate; else None.
    semaphore
        The semaphore that it waits for (0 to 15) or releases (~0 to ~15): an instruction of its own.
    is_clamp
        Its constant must be a small immediate: that is how the kernel knows a clamp.
    """

    __slots__ = (
        "add",
        "after",
        "args",
        "condition",
        "first",
        "flags",
        "height",
        "is_clamp",
        "is_done",
        "is_look_up",
        "is_unpack",
        "line",
        "loads",
        "mul",
        "name",
        "next",
        "number",
        "pack",
        "peripheral",
        "pm",
        "priority",
        "request",
        "rotate",
        "second",
        "semaphore",
        "sets",
        "signal",
        "soft",
        "stays",
        "takes",
        "target",
        "target_file",
        "tied",
        "together",
        "unpacks",
        "waiting",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        add: AddOp | None = None,
        mul: MulOp | None = None,
        args: Sequence[Operand] = (),
        line: int = 0,
    ) -> None:
        self.name = name
        self.add = None if add is None else int(add)
        self.mul = None if mul is None else int(mul)
        self.args: list[Operand] = list(args)
        self.unpacks: tuple[int, ...] = (0,) * len(args)
        self.target: Reg | int | None = None
        self.target_file = ""
        self.second: Reg | None = None
        self.tied: Reg | None = None
        self.condition = int(Condition.ALWAYS)
        self.flags: Flags | None = None
        self.sets: Flags | None = None
        self.pack = 0
        self.pm = False
        self.signal: Signal | None = None
        self.takes: StreamWord | None = None
        self.rotate = 0
        self.peripheral = False
        self.after: list[Op] = []
        self.together: list[Op] = []
        self.first = 0
        self.request: Request | None = None
        self.line = line
        self.is_unpack = False
        self.is_done = False
        self.stays = False
        self.loads: int | None = None
        self.semaphore: int | None = None
        self.is_clamp = False
        self.is_look_up = False
        # of the scheduler
        self.next: list[tuple[Op, int]] = []
        self.waiting = 0
        self.height = 0
        self.soft = 0
        self.number = 0
        self.priority = 0.0

    @property
    def reads(self) -> list[Reg]:
        """The registers among its operands."""
        return [one for one in self.args if isinstance(one, Reg)]

    def __repr__(self) -> str:
        return f"<{self.name}>"


class Request:
    """One request of the texture unit: its writes stand together, results come in order.

    Whatever the order of the writes, the first takes the first of the `parameters`; a memory
    look-up has none. `sent`: how many writes there were.
    """

    __slots__ = ("load", "parameters", "sent", "writes")

    def __init__(self, parameters: Sequence[StreamWord] = ()) -> None:
        self.writes: list[Op] = []
        self.load: Op | None = None
        self.parameters = parameters
        self.sent = 0


class Branch(NamedTuple):
    """The condition of a branch. flags: those that it asks; None: it is always taken."""

    condition: BranchCondition
    flags: Flags | None


@dataclass(eq=False)
class Block:
    """Operations in the order in which they were made, and where it goes on.

    Attributes
    ----------
    repeats
        Of the last block of a loop: number of the block where it begins.
    skips
        Of a block after which others may be left out: number of the block where it then goes on.
    branch
        When it does one of the two.
    is_target
        Whether branches come to its beginning.
    """

    number: int
    ops: list[Op] = field(default_factory=list)
    repeats: int | None = None
    skips: int | None = None
    branch: Branch | None = None
    is_target: bool = False
    loops: tuple[int, ...] = ()
    """The first blocks of the loops around it, the outer ones first."""
    switch: Signal | None = None
    """The signal by which a part of a program with two threads is left for the other thread."""
    follows_switch: bool = False
    variables: list[Reg] = field(default_factory=list)
    """Variables of the loop or condition whose last block this is: their places are kept up to here."""


class TooComplex(Exception):  # noqa: N818 - a fact about the shader
    """A shader that does not fit the QPU. code: a diagnostic; line: of the source, 0 if unknown."""

    def __init__(self, code: str, message: str, line: int = 0) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.line = line

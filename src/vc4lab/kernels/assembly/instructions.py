"""Instructions of kernels that are written one by one: each call is one, a method adds the other ALU.

    fadd(ra0, ra0, r0).fmul(r0, r4, uniform)
    jzc(L.loop)

As in py-videocore, operations of the add ALU set the flags unless `set_flags=False` is said (`mov` does
not), `cond` says in which lanes a result is written, and `sig` is the instruction's signal. Each
instruction becomes a line of the assembler.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from vc4lab.kernels.assembly.registers import REGISTERS, Register, _suffix
from vc4lab.kernels.python.trace import KernelSourceError

ADD = {
    "fadd": "fadd", "fsub": "fsub", "fmin": "fmin", "fmax": "fmax", "fminabs": "fminabs",
    "fmaxabs": "fmaxabs", "ftoi": "ftoi", "itof": "itof", "iadd": "add", "isub": "sub", "shr": "shr",
    "asr": "asr", "ror": "ror", "shl": "shl", "imin": "min", "imax": "max", "band": "and", "bor": "or",
    "bxor": "xor", "bnot": "not", "clz": "clz", "v8adds": "v8adds", "v8subs": "v8subs",
}  # fmt: skip
"""Operations of the add ALU → the assembler's."""
MUL = {
    "fmul": "fmul", "imul24": "mul24", "v8muld": "v8muld", "v8min": "v8min", "v8max": "v8max",
    "v8adds": "v8adds", "v8subs": "v8subs",
}  # fmt: skip
SIGNALS = {
    "no signal": "", "breakpoint": "bkpt", "thread switch": "thrsw", "thread end": "thrend",
    "wait scoreboard": "sbwait", "unlock scoreboard": "sbdone", "last thread switch": "lthrsw",
    "load coverage": "loadcv", "load color": "loadc", "load tmu0": "ldtmu0", "load tmu1": "ldtmu1",
    "load alpha": "loadam", "alu small imm": "",
}  # fmt: skip
BRANCHES = {
    "jmp": "brr", "jzs": "brr.allz", "jzc": "brr.allnz", "jzs_any": "brr.anyz", "jzc_any": "brr.anynz",
    "jns": "brr.alln", "jnc": "brr.allnn", "jns_any": "brr.anyn", "jnc_any": "brr.anynn",
    "jcs": "brr.allc", "jcc": "brr.allnc", "jcs_any": "brr.anyc", "jcc_any": "brr.anync",
}  # fmt: skip
CONDITIONS = ("never", "always", "zs", "zc", "ns", "nc", "cs", "cc")
_OWN = os.path.dirname(__file__)
MOST_INSTRUCTIONS = 1 << 17


class Label:
    """A place in the program. `L.name` on a line of its own puts it there; branches take it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_target_only = False


@dataclass
class Recorder:
    """The lines of a kernel so far: an instruction with the line of Python that makes it, or a label."""

    lines: list[tuple[Instruction | Label, int]] = field(default_factory=list)
    spaces: list[str] = field(default_factory=list)
    file: str = ""

    def line(self) -> int:
        """The line of the kernel's own file that is being executed."""
        frame: Any = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_filename == self.file:
                return int(frame.f_lineno)
            frame = frame.f_back
        return 0

    def fail(self, message: str) -> KernelSourceError:
        return KernelSourceError(message, self.file, self.line())

    def add(self, add: str = "", mul: str = "", signal: str = "") -> Instruction:
        if len(self.lines) >= MOST_INSTRUCTIONS:
            raise self.fail(f"more than {MOST_INSTRUCTIONS} instructions")
        made = Instruction(self, add, mul, signal)
        self.lines.append((made, self.line()))
        return made


_recorders: list[Recorder] = []


def recorder() -> Recorder:
    """The kernel that is being written. Raises KernelSourceError outside of one."""
    if not _recorders:
        raise KernelSourceError("an instruction outside of a kernel: decorate the function with @qpu")
    return _recorders[-1]


@contextmanager
def recording(made: Recorder) -> Iterator[Recorder]:
    """Instructions are those of a kernel."""
    _recorders.append(made)
    try:
        yield made
    finally:
        _recorders.pop()


class Instruction:
    """An instruction that was made; its methods say what the mul ALU does in it."""

    def __init__(self, owner: Recorder, add: str, mul: str, signal: str) -> None:
        self.owner, self.add, self.mul, self.signal = owner, add, mul, signal
        self.packs_registers = False

    def text(self) -> str:
        """It as a line of the assembler."""
        slots = [self.add or "nop", self.mul, self.signal]
        if self.signal and not self.mul:
            slots[1] = "nop"
        if self.packs_registers:
            slots.append("pm0")
        return "; ".join(slot for slot in slots if slot)

    def _and(self, name: str, args: Sequence[Any], options: dict[str, Any]) -> Instruction:
        if self.mul:
            raise self.owner.fail("the mul ALU of this instruction already does something")
        signal = _signal(self.owner, options)
        if signal and self.signal:
            raise self.owner.fail("an instruction has one signal")
        self.signal = self.signal or signal
        self.mul = _operation(self.owner, name, args, options, is_add=False)
        self.packs_registers = isinstance(args[0], Register) and args[0].is_packed
        return self

    def mov(self, target: Register, value: Any, **options: Any) -> Instruction:
        """A move by the mul ALU."""
        return self._and("mov", (target, value), options)

    def rotate(self, target: Register, value: Register, places: Any, **options: Any) -> Instruction:
        """A move by the mul ALU to lanes that are so many further."""
        return self._and("mov", (target, _rotated(value, places)), options)

    def fmul(self, target: Register, a: Any, b: Any, **options: Any) -> Instruction:
        """A product of floats."""
        return self._and("fmul", (target, a, b), options)

    def imul24(self, target: Register, a: Any, b: Any, **options: Any) -> Instruction:
        """A product of integers of 24 bits."""
        return self._and("mul24", (target, a, b), options)

    def v8muld(self, target: Register, a: Any, b: Any, **options: Any) -> Instruction:
        """Products of bytes."""
        return self._and("v8muld", (target, a, b), options)

    def v8min(self, target: Register, a: Any, b: Any, **options: Any) -> Instruction:
        """The smaller ones of bytes."""
        return self._and("v8min", (target, a, b), options)

    def v8max(self, target: Register, a: Any, b: Any, **options: Any) -> Instruction:
        """The larger ones of bytes."""
        return self._and("v8max", (target, a, b), options)

    def v8adds(self, target: Register, a: Any, b: Any, **options: Any) -> Instruction:
        """Sums of bytes, at most 255."""
        return self._and("v8adds", (target, a, b), options)

    def v8subs(self, target: Register, a: Any, b: Any, **options: Any) -> Instruction:
        """Differences of bytes, at least 0."""
        return self._and("v8subs", (target, a, b), options)


def _signal(owner: Recorder, options: dict[str, Any]) -> str:
    name = options.pop("sig", "no signal")
    if name not in SIGNALS:
        raise owner.fail(f"there is no signal {name!r} ({', '.join(SIGNALS)})")
    return SIGNALS[name]


def _operation(
    owner: Recorder,
    name: str,
    args: Sequence[Any],
    options: dict[str, Any],
    is_add: bool,
    flags: bool = False,
) -> str:
    """One ALU's part of an instruction, as text."""
    condition = options.pop("cond", "always")
    if condition not in CONDITIONS:
        raise owner.fail(f"there is no condition {condition!r} ({', '.join(CONDITIONS)})")
    if options.pop("set_flags", flags) and is_add:
        name += ".setf"
    if condition != "always":
        name += f".{condition}"
    packed = _suffix(options.pop("pack", "nop"))
    places = 0 if is_add else options.pop("rotate", 0)
    if options:
        raise owner.fail(f"an instruction has no option {min(options)}")
    target, *values = args
    if not isinstance(target, Register):
        raise owner.fail(f"{target!r} is no register that is written")
    if places:
        values = [_rotated(one, places) for one in values]
    return f"{name} {target}{packed}, " + ", ".join(_operand(owner, one) for one in values)


def _operand(owner: Recorder, value: Any) -> str:
    if isinstance(value, Register | str):
        return str(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise owner.fail(f"{value!r} is no operand: a register or a small number")
    return "0" if value == 0 else repr(value)


def _rotated(value: Register, places: Any) -> str:
    return f"{value} >> {places if isinstance(places, Register) else places % 16}"


def _add(name: str, operands: int) -> Callable[..., Instruction]:
    def make(target: Register, *values: Any, **options: Any) -> Instruction:
        owner = recorder()
        if len(values) != operands:
            raise owner.fail(f"{name} takes a target and {operands} operands")
        signal = _signal(owner, options)
        return owner.add(
            _operation(owner, ADD[name], (target, *values), options, is_add=True, flags=True), signal=signal
        )

    make.__name__, make.__doc__ = name, f"`{ADD[name]}` of the add ALU; it sets the flags."
    return make


def _mul(name: str) -> Callable[..., Instruction]:
    def make(target: Register, *values: Any, **options: Any) -> Instruction:
        made = recorder().add()
        return made._and(MUL[name], (target, *values), options)

    make.__name__, make.__doc__ = name, f"`{MUL[name]}` of the mul ALU."
    return make


def _branch(name: str) -> Callable[..., None]:
    def make(
        target: Label | int | None = None, reg: Register | None = None, absolute: bool = False,
        link: Register | None = None,
    ) -> None:  # fmt: skip
        owner = recorder()
        text = BRANCHES[name].replace("brr", "bra") if absolute else BRANCHES[name]
        if isinstance(target, Label):
            target.is_target_only = True
            place = target.name
            if reg is not None:
                raise owner.fail("a branch goes to a label, or to a register and a distance in bytes")
        else:
            place = f"{0 if target is None else target:+d}" if reg is None else f"{reg} + {target or 0}"
        owner.add(f"{text} {link or '-'}, {place}")

    make.__name__, make.__doc__ = name, f"`{BRANCHES[name]}`; three more instructions are executed."
    return make


ONE_OPERAND = ("ftoi", "itof", "bnot", "clz")
OPERATIONS: dict[str, Callable[..., Any]] = {
    **{name: _add(name, 1 if name in ONE_OPERAND else 2) for name in ADD},
    **{name: _mul(name) for name in MUL if name not in ADD},
    **{name: _branch(name) for name in BRANCHES},
}


class _Labels:
    """`L.name` puts a label here; as the target of a branch it only names one."""

    def __getitem__(self, name: str) -> Label:
        owner = recorder()
        made = Label("_".join([*owner.spaces, name]))
        owner.lines.append((made, owner.line()))
        return made

    def __getattr__(self, name: str) -> Label:
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name]


L = _Labels()


@contextmanager
def namespace(name: str) -> Iterator[None]:
    """Labels inside have names of their own."""
    spaces = recorder().spaces
    spaces.append(name)
    yield
    spaces.pop()


def nop(sig: str = "no signal") -> Instruction:
    """Nothing, and a signal."""
    owner = recorder()
    return owner.add(signal=_signal(owner, {"sig": sig}))


def mov(target: Register, value: Any, **options: Any) -> Instruction:
    """A move by the add ALU; it sets no flags unless `set_flags=True` is said."""
    owner = recorder()
    signal = _signal(owner, options)
    return owner.add(_operation(owner, "mov", (target, value), options, is_add=True), signal=signal)


def rotate(target: Register, value: Register, places: Any, **options: Any) -> Instruction:
    """A move by the mul ALU to lanes that are so many further; places: a number, or r5."""
    return recorder().add().rotate(target, value, places, **options)


def ldi(*args: Any, cond: str = "always", set_flags: bool = False) -> Instruction:
    """Load immediate: one or two registers, and a number or up to 16 small ones for the lanes."""
    owner = recorder()
    *targets, value = args
    if not 1 <= len(targets) <= 2:
        raise owner.fail("ldi takes one or two registers and a value")
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, list | tuple):
        text = f"[{', '.join(map(str, [*value, *[0] * (16 - len(value))]))}]"
    else:
        text = repr(value) if isinstance(value, float) else str(int(value))
    name = "ldi" + (".setf" if set_flags else "") + (f".{cond}" if cond != "always" else "")
    return owner.add("; ".join(f"{name} {target}, {text}" for target in targets))


def mutex_acquire() -> Instruction:
    """Wait until this QPU has the mutex."""
    return mov(REGISTERS["null"], REGISTERS["mutex"])


def mutex_release() -> Instruction:
    """Give it back."""
    return mov(REGISTERS["mutex"], REGISTERS["r0"])


def sema_up(number: int) -> Instruction:
    """Count a semaphore up."""
    return recorder().add(f"srel -, {number}")


def sema_down(number: int) -> Instruction:
    """Wait for a semaphore, and count it down."""
    return recorder().add(f"sacq -, {number}")


def interrupt() -> Instruction:
    """Interrupt the host."""
    return mov(REGISTERS["host_interrupt"], 1)


def exit(interrupt: bool = True) -> None:
    """The end of the program. interrupt: the host is interrupted before; nothing here waits for that."""
    if interrupt:
        mov(REGISTERS["host_interrupt"], 1)
    nop(sig="thread end")
    nop()
    nop()


def raw(low: int, high: int) -> Instruction:
    """An instruction by its two words."""
    return recorder().add(f".quad 0x{high & 0xFFFFFFFF:08x}{low & 0xFFFFFFFF:08x}")

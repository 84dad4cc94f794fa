"""A QPU's view of the outside: the protocol between a running program and the block that runs
it.

The interpreter and the JIT call the same methods. A *word* is 16 lanes of 32 bits (numpy uint32
array in the interpreter, `i32x16` value in the JIT), a *mask* 16 truth values (bool array or
`mask16`). In the JIT a method may also return an `f32x16` value: a promise that no lane is NaN or
denormal, and that a lane of -0 stands for +0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from vc4lab.qpu.isa.ops import Mask, Word

RegisterKey = tuple[str, int]
"""("a", 0..31), ("b", 0..31) or ("r", 0..5)."""

INSTRUCTION_BUDGET = 1 << 22
"""Instructions that one run of a shader may execute before it counts as endless: on a board its
pixels alone would take many seconds. The JIT counts only what lies in loops.
"""

REFERENCE_BUDGET = 3 << 17
"""The budget of the interpreter on its own, which takes one or two seconds for it; loops of 4,095
rounds of 90 instructions, which drivers' conformance tests have, fit in.
"""

UNPROVEN_BUDGET = 1 << 12
"""Instructions after which a draw's interpreter has compiled code find out, by
`INSTRUCTION_BUDGET`, whether the program ends: one of its instructions takes 4 to 30 us or more.
"""

PROVEN_BUDGET = 2 * INSTRUCTION_BUDGET
"""The budget of the interpreter where compiled code, which counts loops only, came to the end."""

UNCOMPILED_BUDGET = 1 << 15
"""The budget of the interpreter where the compiler refuses the program, which is rarely meant to run
and takes up to 0.2 ms an instruction. Four times the program's length, if that is more.
"""

COMPILER_ONLY_CODES = frozenset(("QPU-043", "QPU-044", "QPU-045", "QPU-046"))
"""Codes of what only compiled code cannot do: the interpreter runs such programs."""


def uncompiled_budget(length: int) -> int:
    """`UNCOMPILED_BUDGET` of a program with so many instructions."""
    return max(UNCOMPILED_BUDGET, 4 * length)


class Unsupported(Exception):  # noqa: N818 - it is a verdict on the program, not an error of ours
    """The program does something that this environment or engine cannot do.

    code: a diagnostic code; message: a sentence; site: index of the instruction at fault, if known;
    address: guest address of the program or instruction at fault, if known.
    """

    def __init__(self, code: str, message: str, site: int | None = None, address: int | None = None) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.site = site
        self.address = address


class LeftProgram(Unsupported):
    """Execution leaves the program for the address `target`."""

    def __init__(self, site: int, target: int) -> None:
        super().__init__("QPU-042", left_text(target), site)
        self.target = target & 0xFFFFFFFF


def left_text(target: int) -> str:
    """The text of LeftProgram."""
    return f"execution leaves the program for 0x{target & 0xFFFFFFFF:08x}"


class Noted(NamedTuple):
    """The state of a stage between two instructions while the JIT emits a program.

    shape: what must be the same on all paths, as the number of varyings read;
    values: staged values on their way, as texture results not yet fetched.
    """

    shape: Any = ()
    values: tuple[Any, ...] = ()


class Environment:
    """Base of all environments: what leaves a trace is unsupported until a stage overrides it.

    site: index of the instruction being executed (set by the engines, for messages).
    nan_free: JIT only; sources among "uniform", "vpm", "varying", "tmu", "tlb" whose words are
    known to hold no NaN (because the caller looked before), so that the fast build need not check
    them. wild: JIT only, a staged `var(mask16)` in which the fast build notes lanes whose unknown
    operands it cannot compute exactly; created by `emit_program` when None. If any lane of it is
    set, the caller runs the exact build instead. budget: JIT only; instructions in loops as a
    staged i32, in place of the constant that `emit_program` is given. ftoi_fits: JIT only; ftoi
    hardly ever meets numbers of 2^31 and more, so that the fast build leaves them to the exact one.
    """

    site: int = 0
    nan_free: frozenset[str] = frozenset()
    wild: Any = None
    budget: Any = None
    ftoi_fits: bool = False
    records_branches: bool = False

    def begin(self, site: int) -> None:
        """An instruction is executed (JIT: emitted) now."""
        self.site = site

    def refuse(self, what: str) -> NoReturn:
        """Raise the Unsupported verdict for a facility this stage does not have."""
        raise Unsupported("QPU-040", f"{what} is not available to this program", self.site)

    def initial_registers(self) -> dict[RegisterKey, Word]:
        """Registers that hold something at the start; all others read 0."""
        return {}

    # between blocks of a program with branches (JIT only)
    def noted(self) -> Noted:
        """The state of this stage now, to be restored on the other side of a branch."""
        return Noted()

    def recall(self, noted: Noted) -> None:
        """Restores the state of a stage."""

    # values streamed in
    def uniform(self) -> Word:
        self.refuse("a uniform read")

    def uniform_check(self) -> Callable[[], None] | None:
        """JIT only: what to call in place of code that looks whether the uniform just read is NaN.

        A stage that runs the program many times with the same uniforms looks once by itself.
        """
        return None

    def uniforms_address(self, value: Word, relative: bool, mask: Mask) -> None:
        self.refuse("a write of the uniforms address")

    def varying(self) -> tuple[Word, Word]:
        """(A*dx + B*dy per lane, C)."""
        self.refuse("a varying read")

    # vertex pipe memory and its DMA
    def vpm_read(self) -> Word:
        self.refuse("a VPM read")

    def vpm_write(self, value: Word, mask: Mask) -> None:
        self.refuse("a VPM write")

    def vpm_setup(self, side: str, value: Word) -> None:
        """side: "read" or "write"."""
        self.refuse("a VPM setup")

    def dma_start(self, side: str, value: Word) -> None:
        self.refuse("a VPM DMA")

    def dma_wait(self, side: str) -> None:
        self.refuse("a VPM DMA wait")

    def dma_busy(self, side: str) -> Word:
        self.refuse("a VPM DMA status read")

    # texture unit
    def tmu_write(self, unit: int, register: str, value: Word, mask: Mask, site: int) -> None:
        """register: "s" (starts the lookup), "t", "r" or "b"; site: instruction index."""
        self.refuse("a texture lookup")

    def tmu_load(self, unit: int) -> Word:
        self.refuse("a texture result")

    def tmu_noswap(self, value: Word) -> None:
        """Does nothing: both units give the same results."""

    # tile buffer
    def tlb_z(self, value: Word, mask: Mask) -> None:
        self.refuse("a TLB Z write")

    def tlb_colour(self, value: Word, mask: Mask, all_samples: bool) -> None:
        self.refuse("a TLB colour write")

    def tlb_colour_load(self) -> Word:
        self.refuse("a TLB colour load")

    def tlb_stencil(self, value: Word) -> None:
        self.refuse("a TLB stencil setup")

    def tlb_alpha_mask(self, value: Word, mask: Mask) -> None:
        self.refuse("a TLB alpha mask write")

    def tlb_alpha_load(self) -> Word:
        self.refuse("a TLB alpha mask load")

    def tlb_coverage_load(self) -> Word:
        self.refuse("a TLB coverage load")

    def scoreboard_wait(self) -> None:
        self.refuse("a scoreboard wait")

    def scoreboard_unlock(self) -> None:
        self.refuse("a scoreboard unlock")

    # identity and fragment state
    def element_number(self) -> Word:
        self.refuse("the element number")

    def qpu_number(self) -> Word:
        self.refuse("the QPU number")

    def x_coord(self) -> Word:
        self.refuse("the pixel coordinate")

    def y_coord(self) -> Word:
        self.refuse("the pixel coordinate")

    def ms_flags(self) -> Word:
        self.refuse("the multisample flags")

    def rev_flag(self) -> Word:
        self.refuse("the reverse flag")

    def set_ms_flags(self, value: Word, mask: Mask) -> None:
        self.refuse("a write of the multisample flags")

    def set_rev_flag(self, value: Word, mask: Mask) -> None:
        self.refuse("a write of the reverse flag")

    def set_quad(self, axis: str, value: Word, mask: Mask) -> None:
        """axis: "x" or "y"."""
        self.refuse("a write of the quad coordinates")

    # synchronisation and control
    def branched(self, site: int, target: Any) -> None:
        """A branch was executed: to an address (an int, in the JIT an i32), or None if it was not
        taken. JIT: only called if `records_branches`.
        """

    def mutex_acquire(self) -> Word:
        self.refuse("the mutex")

    def mutex_release(self) -> None:
        self.refuse("the mutex")

    def semaphore(self, number: int, decrement: bool) -> None:
        self.refuse("a semaphore")

    def host_interrupt(self, value: Word, mask: Mask) -> None:
        self.refuse("a host interrupt")

    def thread_switch(self, last: bool) -> None:
        """After the switch's delay slots. Does nothing: no stage runs two threads in turn."""

    def program_end(self) -> None:
        """After the end's delay slots; does nothing unless overridden."""

    def breakpoint(self) -> None:
        self.refuse("a breakpoint")

    def zeroed(self) -> None:
        """The word 0: a breakpoint, too, but rarely an intended one."""
        text = "execution runs past the program's last instruction into zeroed memory"
        if not self.site:
            text = "there is no program: the memory at its address is zero"
        raise Unsupported("QPU-047", text, self.site)

    def loop_limit(self) -> None:
        """The program's budget is used up; the engine stops it after this call."""
        raise Unsupported("QPU-041", "the program does not end within its budget", self.site)

    def left_program(self, target: Any) -> None:
        """Execution goes to an address where no word of the program is (an int, in the JIT an
        i32); the engine stops it after this call. site: the branch, or the last instruction.
        """
        raise LeftProgram(self.site, int(target))

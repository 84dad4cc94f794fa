"""The kernel's rules for shaders, checked instruction by instruction before they run.

Without an MMU a shader could read or write any memory; so uniforms must stay where the kernel can
count them, memory lookups must be clamped, and DMA is out. The rules are those of section 9.5 of
the hardware reference, in the kernel's order; the first one broken is reported.
Source: Linux vc4_validate_shaders.c.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from vc4lab.bits import signed32
from vc4lab.qpu.isa.encoding import (
    BRANCH_DELAY_SLOTS,
    END_DELAY_SLOTS,
    INSTRUCTION_BYTES,
    Alu,
    Branch,
    Instruction,
    LoadImmediate,
    Semaphore,
)
from vc4lab.qpu.isa.operations import AddOp, Condition, Mux, Signal
from vc4lab.qpu.isa.registers import REGFILE_SIZE, TMU_WRITES, Read, Write

ALLOWED_SIGNALS = frozenset(Signal) - {
    Signal.BREAKPOINT,
    Signal.LOAD_COVERAGE,
    Signal.LOAD_COLOUR_END,
    Signal.LOAD_ALPHA_MASK,
}
RESET_SIGNALS = frozenset(
    [Signal.NONE, Signal.SCOREBOARD_UNLOCK, Signal.LOAD_COLOUR, Signal.LOAD_TMU0, Signal.LOAD_TMU1]
)
THREAD_SWITCHES = frozenset([Signal.THREAD_SWITCH, Signal.LAST_THREAD_SWITCH])
FORBIDDEN_WRITES = {
    Write.HOST_INT: "HOST_INT",
    Write.TMU_NOSWAP: "TMU_NOSWAP",
    Write.TLB_ALPHA_MASK: "TLB_ALPHA_MASK",
    Write.MUTEX_RELEASE: "MUTEX_RELEASE",
    Write.VPM_DMA_ADDRESS: "a VPM DMA address",
}
MAX_PARAMETERS = 4
THREAD_SWITCH_SLOTS = 3
UPPER_HALF = range(16, 32)
"""Physical registers that belong to the other thread of a threaded shader."""

Writer = Alu | LoadImmediate | Semaphore
"""An instruction with results."""
Register = tuple[str, int]
"""("a", 0..31), ("b", 0..31) or ("r", 0..3): what a value can be followed in."""


class Violation(Exception):  # noqa: N818 - a verdict on the program
    """A rule is broken: ``code`` is the diagnostic, ``rule`` its number in section 9.5."""

    def __init__(self, code: str, rule: int, index: int, text: str) -> None:
        super().__init__(f"{text} (rule 9.5.{rule})")
        self.code = code
        self.rule = rule
        self.index = index


@dataclass
class CheckedShader:
    """Facts about an accepted shader. ``clamps``: for each direct lookup (by instruction
    index) the uniform that clamps its address, as an index into the stream.
    """

    length: int = 0
    threaded: bool = False
    clamps: dict[int, int] = field(default_factory=dict)


def check_shader(words: Sequence[int]) -> CheckedShader:
    """Check the program at the beginning of ``words`` (a whole buffer). Raises Violation."""
    return _Checker(words).run()


class _Checker:
    def __init__(self, words: Sequence[int]) -> None:
        self.words = words
        self.limit = len(words)
        self.targets: set[int] = set()
        self.result = CheckedShader()
        self.index = 0
        self.uniforms = 0  # words taken from the stream so far
        self.lost_uniforms = False
        self.parameters = [0, 0]
        self.upper_half: int | None = None
        self.forget()

    def forget(self) -> None:
        """Nothing is known of any register (a place with several ways to it)."""
        self.immediates: dict[Register, int] = {}
        self.not_negative: set[Register] = set()
        self.clamped: dict[Register, int] = {}

    def stop(self, code: str, rule: int, text: str) -> Violation:
        """The verdict at the current instruction."""
        return Violation(code, rule, self.index, text)

    def run(self) -> CheckedShader:
        self.check_branches()
        last_switch = -THREAD_SWITCH_SLOTS
        end: int | None = None
        for index in range(self.limit):
            self.index = index
            self.enter_target()
            if self.index == last_switch + THREAD_SWITCH_SLOTS:
                self.forget_accumulators()
            instruction = Instruction.decode(self.words[self.index])
            signal = instruction.signal
            if signal not in ALLOWED_SIGNALS:
                raise self.stop("DRM-018", 1, f"signal {Signal(signal).name.lower()} not allowed")
            if isinstance(instruction, Branch):
                if instruction.waddr_add != Write.NOP or instruction.waddr_mul != Write.NOP:
                    raise self.stop("DRM-021", 12, "a branch writes its link address")
                if self.index < last_switch + THREAD_SWITCH_SLOTS:
                    raise self.stop("DRM-021", 12, "a branch right after a thread switch")
            else:
                self.check_writes(instruction)
                if isinstance(instruction, Alu):
                    self.check_reads(instruction)
            if signal in THREAD_SWITCHES:
                if self.index < last_switch + THREAD_SWITCH_SLOTS:
                    raise self.stop("DRM-021", 14, "two thread switches are too close")
                self.result.threaded = True
                last_switch = self.index
            if signal == Signal.PROGRAM_END and end is None:
                end = self.index
            if end is not None and self.index == end + END_DELAY_SLOTS:
                self.result.length = self.index + 1
                break
        else:
            self.index = max(self.limit - 1, 0)
            raise self.stop("DRM-011", 2, "the shader does not end inside its buffer")
        if self.result.threaded and self.upper_half is not None:
            self.index = self.upper_half
            raise self.stop("DRM-022", 15, "a threaded shader uses a register of 16 to 31")
        return self.result

    # -- branches ----------------------------------------------------------------------------

    def check_branches(self) -> None:
        """Targets of all branches up to the first program end."""
        last_branch = -1 - BRANCH_DELAY_SLOTS
        furthest = 0
        limit = self.limit
        self.index = 0
        while self.index < limit:
            instruction = Instruction.decode(self.words[self.index])
            if instruction.signal == Signal.PROGRAM_END:
                limit = min(limit, self.index + 1 + END_DELAY_SLOTS)
            elif isinstance(instruction, Branch):
                if self.index - last_branch <= BRANCH_DELAY_SLOTS:
                    raise self.stop("DRM-021", 12, "a branch in the delay slots of another")
                last_branch = self.index
                furthest = max(furthest, self.check_target(instruction))
            self.index += 1
        if last_branch >= 0 and furthest > limit - 1 - END_DELAY_SLOTS:
            self.index = last_branch
            raise self.stop("DRM-021", 13, "a branch continues after the program end")

    def check_target(self, branch: Branch) -> int:
        """Notes where a branch leads; returns the place after its delay slots."""
        following = self.index + 1 + BRANCH_DELAY_SLOTS
        if branch.register:
            raise self.stop("DRM-021", 12, "a branch to a register")
        if not branch.relative:
            raise self.stop("DRM-021", 12, "an absolute branch")
        distance = signed32(branch.immediate)
        if distance % INSTRUCTION_BYTES:
            raise self.stop("DRM-021", 12, f"a branch of {distance} bytes: not a multiple of 8")
        target = following + distance // INSTRUCTION_BYTES
        if not 0 <= target < self.limit or following >= self.limit:
            raise self.stop("DRM-021", 12, "a branch leaves the shader")
        self.targets |= {target, following}
        return following

    def enter_target(self) -> None:
        """The current instruction may be reached from elsewhere."""
        if self.index not in self.targets:
            return
        if any(self.parameters):
            raise self.stop("DRM-020", 11, "a branch leads between the writes of a texture lookup")
        self.forget()
        self.lost_uniforms = True

    def forget_accumulators(self) -> None:
        """The other thread has used r0 to r3."""
        for register in [("r", number) for number in range(4)]:
            self.immediates.pop(register, None)
            self.not_negative.discard(register)
            self.clamped.pop(register, None)

    # -- reads and writes --------------------------------------------------------------------

    def check_reads(self, alu: Alu) -> None:
        """Uniform reads, and registers of the other thread."""
        addresses = [address for _, address in alu.read_addresses()]
        if Read.UNIFORM in addresses:
            if self.lost_uniforms:
                raise self.stop("DRM-019", 6, "a uniform is read after a branch before the address is reset")
            self.uniforms += 1
        if any(address in UPPER_HALF for address in addresses):
            self.note_upper_half()

    def note_upper_half(self) -> None:
        self.upper_half = self.index if self.upper_half is None else self.upper_half

    def check_writes(self, instruction: Writer) -> None:
        """Both results of an instruction."""
        (add_file, add), (mul_file, mul) = instruction.write_addresses()
        if add in TMU_WRITES and mul in TMU_WRITES:
            raise self.stop("DRM-020", 7, "both ALUs write texture registers")
        self.check_write(instruction, add_file, add, is_mul=False)
        self.check_write(instruction, mul_file, mul, is_mul=True)
        self.follow_clamps(instruction)

    def check_write(self, instruction: Writer, file: str, address: int, is_mul: bool) -> None:
        register = written(file, address)
        if register is not None:
            self.immediates.pop(register, None)
            if isinstance(instruction, LoadImmediate | Semaphore):
                self.immediates[register] = instruction.value & 0xFFFFFFFF
            if register[0] != "r" and register[1] in UPPER_HALF:
                self.note_upper_half()
        if address == Write.UNIFORMS_ADDRESS:
            if file == "b":
                raise self.stop("DRM-019", 4, "a relative write of the uniforms address")
            self.check_reset(instruction, is_mul)
        elif address in TMU_WRITES:
            self.check_texture_write(instruction, address, is_mul)
        elif address in FORBIDDEN_WRITES:
            name = FORBIDDEN_WRITES[Write(address)]
            raise self.stop("DRM-018", 3, f"a write to {name}")

    def check_reset(self, instruction: Writer, is_mul: bool) -> None:
        """UNIFORMS_ADDRESS = immediate + uniform, so that the stream goes on after the uniform."""

        def wrong(text: str) -> Violation:
            return self.stop("DRM-019", 5, f"write of the uniforms address: {text}")

        if instruction.signal not in RESET_SIGNALS or not isinstance(instruction, Alu):
            raise wrong("this signal is not allowed with it")
        if is_mul or instruction.op_add != AddOp.ADD:
            raise wrong("it must be an integer add of the add ALU")
        if instruction.cond_add != Condition.ALWAYS:
            raise wrong("it must be unconditional")
        if instruction.pack and not instruction.pm:
            raise wrong("no pack is allowed")
        source = operand_a(instruction)
        if source is None or source not in self.immediates:
            raise wrong("the first operand must be a loaded immediate")
        expected = 4 * (self.uniforms + 1)
        if self.immediates[source] != expected:
            raise wrong(f"offset {self.immediates[source]} instead of {expected}")
        if not operand_b_is_uniform(instruction):
            raise wrong("the second operand must be a uniform")
        self.lost_uniforms = False

    def check_texture_write(self, instruction: Writer, address: int, is_mul: bool) -> None:
        unit, coordinate = TMU_WRITES[address]
        direct = coordinate == "s" and not self.parameters[unit]
        if direct:
            self.check_direct(instruction, is_mul)
        elif reads_uniform(instruction):
            raise self.stop("DRM-020", 8, "a uniform is read where the texture unit takes one")
        if self.parameters[unit] >= MAX_PARAMETERS:
            raise self.stop("DRM-020", 9, f"TMU{unit} gets more than 4 parameters before S")
        self.parameters[unit] += 1
        if not direct:
            if self.lost_uniforms:
                raise self.stop(
                    "DRM-019", 6, "a texture is set up after a branch before the address is reset"
                )
            self.uniforms += 1
        if coordinate == "s":
            self.parameters[unit] = 0

    def check_direct(self, instruction: Writer, is_mul: bool) -> None:
        """S = clamped offset + uniform: the lookup cannot leave its buffer."""

        def wrong(text: str) -> Violation:
            return self.stop("DRM-020", 10, f"memory lookup: {text}")

        if is_mul or not isinstance(instruction, Alu) or instruction.op_add != AddOp.ADD:
            raise wrong("the address must be an integer add of the add ALU")
        if instruction.has_small_immediate:
            raise wrong("no small immediate is allowed")
        source = operand_a(instruction)
        if source is None or source not in self.clamped:
            raise wrong("the offset is not clamped by max(x, 0), then min(x, uniform)")
        if not operand_b_is_uniform(instruction):
            raise wrong("the second operand must be a uniform, the base address")
        self.result.clamps[self.index] = self.clamped[source]

    def follow_clamps(self, instruction: Writer) -> None:
        """Which registers hold max(x, 0) or min(max(x, 0), uniform) from here on."""
        source = operand_a(instruction) if isinstance(instruction, Alu) else None
        was_not_negative = source in self.not_negative
        (add_file, add), (mul_file, mul) = instruction.write_addresses()
        for register in (written(mul_file, mul), written(add_file, add)):
            if register is not None:
                self.not_negative.discard(register)
                self.clamped.pop(register, None)
        target = written(add_file, add)
        if target is None or not isinstance(instruction, Alu):
            return
        if instruction.cond_add != Condition.ALWAYS:
            return
        if instruction.op_add == AddOp.MAX:
            zero = instruction.has_small_immediate and instruction.raddr_b == 0
            if zero and Mux.B in (instruction.add_a, instruction.add_b):
                self.not_negative.add(target)
        elif instruction.op_add == AddOp.MIN and was_not_negative:
            if operand_b_is_uniform(instruction):
                self.clamped[target] = self.uniforms


def written(file: str, address: int) -> Register | None:
    """The register of a write address, None for peripherals and r5."""
    if address < REGFILE_SIZE:
        return file, address
    if Write.ACC0 <= address <= Write.ACC3:
        return "r", address - Write.ACC0
    return None


def operand_a(alu: Alu) -> Register | None:
    """The register that is the add ALU's first operand, None for everything else."""
    if alu.add_a == Mux.A:
        return ("a", alu.raddr_a) if alu.raddr_a < REGFILE_SIZE else None
    if alu.add_a == Mux.B:
        registers = not alu.has_small_immediate and alu.raddr_b < REGFILE_SIZE
        return ("b", alu.raddr_b) if registers else None
    return ("r", int(alu.add_a)) if alu.add_a <= Mux.R3 else None


def operand_b_is_uniform(alu: Alu) -> bool:
    """Whether the add ALU's second operand is a uniform."""
    if alu.add_b == Mux.A:
        return bool(alu.raddr_a == Read.UNIFORM)
    return bool(alu.add_b == Mux.B and not alu.has_small_immediate and alu.raddr_b == Read.UNIFORM)


def reads_uniform(instruction: Instruction) -> bool:
    """Whether an instruction takes a word of the stream by a register read."""
    return any(address == Read.UNIFORM for _, address in instruction.read_addresses())

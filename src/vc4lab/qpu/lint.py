"""Checks a QPU program against the instruction restrictions the hardware does not enforce.

    for finding in lint(words):
        print(finding.index, finding.code, finding.message)

Every rule is a function below and an entry in the catalogue (`vc4lab explain QPU-101`). Rules about
neighbours look along every way the program can go, branches included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from vc4lab.qpu.isa import (
    BRANCH_DELAY_SLOTS,
    END_DELAY_SLOTS,
    INSTRUCTION_BYTES,
    LOAD_R4_SIGNALS,
    REGFILE_SIZE,
    Alu,
    Branch,
    BranchCondition,
    Condition,
    Instruction,
    MulOp,
    Mux,
    Semaphore,
    Signal,
)
from vc4lab.qpu.operations import MUL_PACKS
from vc4lab.qpu.registers import (
    ACCUMULATOR_WRITE,
    SFU_WRITES,
    TLB_WRITES,
    TMU_WRITES,
    VPM_READS,
    VPM_WRITES,
    Read,
    Write,
)

_NO_WRITE: Final = 39
_TMU_S: Final = frozenset({Write.TMU0_S, Write.TMU1_S})
_TLB_LOADS: Final = LOAD_R4_SIGNALS - {Signal.LOAD_TMU0, Signal.LOAD_TMU1}


@dataclass(frozen=True)
class Finding:
    """A broken rule: diagnostic code, instruction index, sentence."""

    code: str
    index: int
    message: str


def lint(words: Sequence[int]) -> list[Finding]:
    """Findings of all programs in a sequence of words, ordered by instruction.

    A new program begins behind each program end's delay slots, as in a file that holds several
    shaders.
    """
    instructions = [Instruction.decode(word) for word in words]
    findings: list[Finding] = []
    for start, stop in _programs(instructions):
        part = _Part(instructions, start, stop)
        for rule in _RULES:
            findings += rule(part)
    return sorted(dict.fromkeys(findings), key=lambda f: (f.index, f.code))


def _programs(instructions: Sequence[Instruction]) -> Iterator[tuple[int, int]]:
    start = 0
    reach = 0  # a branch over an end shows that the program goes on behind it
    for index, instruction in enumerate(instructions):
        if isinstance(instruction, Branch) and instruction.relative and not instruction.register:
            target = instruction.target(index * INSTRUCTION_BYTES) // INSTRUCTION_BYTES
            reach = max(reach, target if target < len(instructions) else 0)
        stop = min(index + END_DELAY_SLOTS + 1, len(instructions))
        if instruction.ends_program and index >= start and reach < stop:
            yield start, stop
            start = stop
    if start < len(instructions):
        yield start, len(instructions)


class _Part:
    """One program: instructions ``start`` to ``stop`` of a sequence, and who follows whom."""

    def __init__(self, instructions: Sequence[Instruction], start: int, stop: int) -> None:
        self.all = instructions
        self.start = start
        self.stop = stop
        self.ends = [index for index in range(start, stop) if instructions[index].ends_program]

    def __iter__(self) -> Iterator[tuple[int, Instruction]]:
        for index in range(self.start, self.stop):
            yield index, self.all[index]

    def successors(self, index: int) -> Iterator[int]:
        """Indices of the instructions that may execute next."""
        source = index - BRANCH_DELAY_SLOTS
        branch = self.all[source] if source >= self.start else None
        falls_through = True
        if isinstance(branch, Branch):
            falls_through = branch.condition != BranchCondition.ALWAYS
            if branch.relative and not branch.register:
                address = branch.target(source * INSTRUCTION_BYTES)
                target = address // INSTRUCTION_BYTES
                if address % INSTRUCTION_BYTES == 0 and self.start <= target < self.stop:
                    yield target
        if index - END_DELAY_SLOTS in self.ends:
            return
        if falls_through and index + 1 < self.stop:
            yield index + 1

    def following(self, index: int, distance: int) -> Iterator[Instruction]:
        """Every instruction that may execute within ``distance`` steps after one."""
        level = {index}
        for _ in range(distance):
            level = {after for before in level for after in self.successors(before)}
            for after in level:
                yield self.all[after]

    def last_three(self) -> Iterator[tuple[int, Instruction]]:
        """The program-end instructions and their delay slots."""
        for end in self.ends:
            for index in range(end, min(end + END_DELAY_SLOTS + 1, self.stop)):
                yield index, self.all[index]


Rule = Callable[[_Part], Iterator[Finding]]


# What an instruction touches ---------------------------------------------------------------------


def _writes(instruction: Instruction) -> Iterator[tuple[str, int, int]]:
    """(address space, address, condition) of the results that go anywhere."""
    conditions = (
        (Condition.ALWAYS, Condition.ALWAYS)
        if isinstance(instruction, Branch)
        else (instruction.cond_add, instruction.cond_mul)  # type: ignore[attr-defined]
    )
    ops = (instruction.op_add, instruction.op_mul) if isinstance(instruction, Alu) else (1, 1)
    for (file, address), condition, op in zip(
        instruction.write_addresses(), conditions, ops, strict=True
    ):
        if address != _NO_WRITE and op and condition != Condition.NEVER:
            yield file, address, condition


def _written(instruction: Instruction) -> set[int]:
    return {address for _, address, _ in _writes(instruction)}


def _reads(instruction: Instruction) -> set[int]:
    """Read addresses with side effects or values, through either file."""
    return {address for _, address in instruction.read_addresses()}


def _register_reads(instruction: Instruction) -> set[tuple[str, int]]:
    """Physical registers whose value an operation uses."""
    if isinstance(instruction, Branch):
        return {("a", instruction.raddr_a)} if instruction.register else set()
    if not isinstance(instruction, Alu):
        return set()
    muxes = instruction.muxes()
    found = set()
    if Mux.A in muxes:
        found.add(("a", instruction.raddr_a))
    if (
        Mux.B in muxes
        and not instruction.has_small_immediate
        and instruction.raddr_b < REGFILE_SIZE
    ):
        found.add(("b", instruction.raddr_b))
    return found


def _uses_r4(instruction: Instruction) -> bool:
    return isinstance(instruction, Alu) and Mux.R4 in instruction.muxes()


def _uses_uniforms(instruction: Instruction) -> bool:
    return Read.UNIFORM in _reads(instruction)


def _uses_tile_buffer(instruction: Instruction) -> bool:
    return (
        bool(_written(instruction) & (TLB_WRITES - {Write.TLB_STENCIL_SETUP}))
        or instruction.signal in _TLB_LOADS
        or instruction.signal == Signal.SCOREBOARD_WAIT
    )


# Rules -------------------------------------------------------------------------------------------


def _read_after_write(part: _Part) -> Iterator[Finding]:
    for index, instruction in part:
        written = {(f, a) for f, a, _ in _writes(instruction) if a < REGFILE_SIZE}
        for after in part.successors(index):
            for file, address in written & _register_reads(part.all[after]):
                text = f"r{file}{address} is read, but was written by the instruction before"
                yield Finding("QPU-101", after, text)


def _sfu_latency(part: _Part) -> Iterator[Finding]:
    for index, instruction in part:
        if not _written(instruction) & set(SFU_WRITES):
            continue
        for later in part.following(index, 2):
            if _uses_r4(later):
                text = "the SFU result is in r4 only three instructions later"
                yield Finding("QPU-102", index, text)
            elif later.signal in LOAD_R4_SIGNALS or _written(later) & set(SFU_WRITES):
                text = "one of the next two instructions overwrites r4 before the result is there"
                yield Finding("QPU-102", index, text)


def _same_target(part: _Part) -> Iterator[Finding]:
    for index, instruction in part:
        targets = [(f if a < REGFILE_SIZE else "", a) for f, a, _ in _writes(instruction)]
        if len(targets) == 2 and targets[0] == targets[1]:
            text = f"add and mul both write {instruction.add_target}"
            yield Finding("QPU-103", index, text)


def _end_streams(part: _Part) -> Iterator[Finding]:
    for index, instruction in part.last_three():
        reads, written = _reads(instruction), _written(instruction)
        if reads & {Read.UNIFORM, Read.VARYING} or written & {Write.UNIFORMS_ADDRESS}:
            yield Finding("QPU-104", index, "uniform or varying access in the last three")
        elif reads & VPM_READS or written & VPM_WRITES:
            yield Finding("QPU-104", index, "VPM access in the last three instructions")


def _end_registers(part: _Part) -> Iterator[Finding]:
    for index, instruction in part.last_three():
        if instruction.ends_program and any(a < REGFILE_SIZE for a in _written(instruction)):
            yield Finding("QPU-105", index, "the program-end instruction writes a register")
        uses_14 = {a for _, a in _register_reads(instruction)} | _written(instruction)
        if 14 in uses_14:
            yield Finding("QPU-105", index, "register 14 is used in the last three instructions")


def _early_tile_buffer(part: _Part) -> Iterator[Finding]:
    for index in range(part.start, min(part.start + 2, part.stop)):
        if _uses_tile_buffer(part.all[index]):
            yield Finding("QPU-107", index, "tile buffer access in the first two instructions")


def _rotation(part: _Part) -> Iterator[Finding]:
    for index, instruction in part:
        accumulators = {ACCUMULATOR_WRITE[a] for a in _written(instruction) & {*ACCUMULATOR_WRITE}}
        for after in part.successors(index):
            later = part.all[after]
            if not isinstance(later, Alu) or later.rotation is None or later.op_mul == MulOp.NOP:
                continue
            turned = accumulators & {int(later.mul_a), int(later.mul_b)} & {0, 1, 2, 3}
            if turned:
                text = f"r{min(turned)} is rotated right after its write"
                yield Finding("QPU-108", after, text)
            if later.rotation == "r5" and 5 in accumulators:
                yield Finding("QPU-108", after, "rotation by r5 right after a write of r5")


def _one_access(part: _Part) -> Iterator[Finding]:
    for index, instruction in part:
        written = [a for _, a, _ in _writes(instruction)]
        names = [
            *("TMU write" for a in written if a in TMU_WRITES),
            *("SFU write" for a in written if a in SFU_WRITES),
            *("tile buffer write" for a in written if a in TLB_WRITES),
        ]
        if instruction.signal in (Signal.LOAD_TMU0, Signal.LOAD_TMU1):
            names.append("TMU load")
        if instruction.signal in _TLB_LOADS:
            colour = {Write.TLB_COLOUR_MS, Write.TLB_COLOUR_ALL}
            names = [n for n in names if n != "tile buffer write" or not colour & set(written)]
            names.append("tile buffer load")
        if Read.MUTEX_ACQUIRE in _reads(instruction):
            names.append("mutex")
        if isinstance(instruction, Semaphore):
            names.append("semaphore")
        if len(names) > 1:
            yield Finding("QPU-109", index, f"{' and '.join(names)} in one instruction")


def _uniform_address(part: _Part) -> Iterator[Finding]:
    for index, instruction in part:
        if Write.UNIFORMS_ADDRESS not in _written(instruction):
            continue
        if any(_uses_uniforms(later) for later in part.following(index, 2)):
            yield Finding("QPU-110", index, "a uniform is read within two instructions")


def _uniform_with_texture(part: _Part) -> Iterator[Finding]:
    pending = [False, False]
    for index, instruction in part:
        for address in _written(instruction):
            if address not in TMU_WRITES:
                continue
            unit, coordinate = TMU_WRITES[address]
            is_texture = coordinate != "s" or pending[unit]
            pending[unit] = coordinate != "s"
            if is_texture and _uses_uniforms(instruction):
                yield Finding("QPU-111", index, "the texture write takes the uniform itself")


def _branch_spacing(part: _Part) -> Iterator[Finding]:
    for index, instruction in part:
        if not isinstance(instruction, Branch):
            continue
        for slot in range(index + 1, min(index + 1 + BRANCH_DELAY_SLOTS, part.stop)):
            if isinstance(part.all[slot], Branch):
                yield Finding("QPU-112", slot, "branch in a delay slot of another")


def _switch_spacing(part: _Part) -> Iterator[Finding]:
    switches = (Signal.THREAD_SWITCH, Signal.LAST_THREAD_SWITCH)
    for index, instruction in part:
        close = any(later.signal in switches for later in part.following(index, 2))
        if instruction.signal in switches and close:
            yield Finding("QPU-113", index, "another thread switch follows too soon")


def _conditional_peripheral(part: _Part) -> Iterator[Finding]:
    for index, instruction in part:
        for _, address, condition in _writes(instruction):
            if condition != Condition.ALWAYS and (address in _TMU_S or address == Write.VPM):
                yield Finding("QPU-114", index, "a condition does not hold this write back")


def _tmu_swap(part: _Part) -> Iterator[Finding]:
    for index, instruction in part:
        if Write.TMU_NOSWAP not in _written(instruction):
            continue
        if any(_written(later) & set(TMU_WRITES) for later in part.following(index, 2)):
            yield Finding("QPU-115", index, "a TMU write follows within two instructions")


def _flags_of_nothing(part: _Part) -> Iterator[Finding]:
    for index, instruction in part:
        if not isinstance(instruction, Alu) or not instruction.op_add or not instruction.sf:
            continue
        if instruction.cond_add == Condition.NEVER:
            yield Finding("QPU-116", index, "the add operation never happens, so no flags are set")


def _packed_peripheral(part: _Part) -> Iterator[Finding]:
    for index, instruction in part:
        if not isinstance(instruction, Alu) or not instruction.pm or not instruction.op_mul:
            continue
        packs = instruction.pack != 0 and instruction.pack in MUL_PACKS
        if packs and instruction.waddr_mul not in {*range(REGFILE_SIZE), *ACCUMULATOR_WRITE, 39}:
            yield Finding("QPU-117", index, f"byte pack into {instruction.mul_target}")


def _depth_write(part: _Part) -> Iterator[Finding]:
    for index, instruction in part:
        if Write.TLB_Z not in _written(instruction):
            continue
        if index - END_DELAY_SLOTS in part.ends:
            yield Finding("QPU-119", index, "depth is written by the last instruction")
        for later in part.following(index, 2):
            if ("a", Read.FLAGS) in later.read_addresses():
                yield Finding("QPU-119", index, "sample flags are read within two instructions")


def _double_read(part: _Part) -> Iterator[Finding]:
    for index, instruction in part:
        addresses = [address for _, address in instruction.read_addresses()]
        if len(addresses) == 2 and addresses[0] == addresses[1]:
            if addresses[0] in (Read.UNIFORM, Read.VARYING, Read.VPM):
                yield Finding("QPU-120", index, "read through both files: one word, seen twice")


_RULES: Final[tuple[Rule, ...]] = (
    _read_after_write,
    _sfu_latency,
    _same_target,
    _end_streams,
    _end_registers,
    _early_tile_buffer,
    _rotation,
    _one_access,
    _uniform_address,
    _uniform_with_texture,
    _branch_spacing,
    _switch_spacing,
    _conditional_peripheral,
    _tmu_swap,
    _flags_of_nothing,
    _packed_peripheral,
    _depth_write,
    _double_read,
)

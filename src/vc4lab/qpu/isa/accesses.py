"""Says what one instruction touches, in the words that the rules of `hazards.py` use: registers, units,
streams.

touched = accesses(word)
touched.kinds & Kind.REGISTER_WRITE          # any of that kind?
touched.places[Kind.REGISTER_WRITE]          # which: {"ra3"}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntFlag, auto
from functools import lru_cache
from typing import Final

from vc4lab.qpu.isa.encoding import Alu, Branch, Instruction, Semaphore
from vc4lab.qpu.isa.operations import (
    LOAD_R4_SIGNALS,
    MUL_PACKS,
    BranchCondition,
    Condition,
    MulOp,
    Mux,
    Signal,
)
from vc4lab.qpu.isa.registers import (
    ACCUMULATOR_WRITE,
    READ_NAMES,
    REGFILE_SIZE,
    SFU_WRITES,
    TMU_WRITES,
    WRITE_NAMES,
    Read,
    Write,
)


class Kind(IntFlag):
    """One sort of access. Those in the first group have places: names of registers."""

    REGISTER_READ = auto()
    """Physical register, or a flag register that needs the same distance, as "ra3"."""
    REGISTER_WRITE = auto()
    ACCUMULATOR_READ = auto()
    ACCUMULATOR_WRITE = auto()
    ROTATED = auto()
    """Accumulator whose lanes a rotation moves."""
    ROTATION_AMOUNT = auto()
    CONDITIONAL_WRITE = auto()
    """Conditional write to a place that does not heed the condition."""
    PACKED_PERIPHERAL = auto()
    """Byte pack into a place that has no old bytes."""
    SAME_TARGET = auto()
    """Place that both ALUs write."""
    DOUBLE_READ = auto()
    """Stream read through both files."""

    R4_READ = auto()
    R4_LOAD = auto()
    FLAGS_READ = auto()
    FLAGS_WRITE = auto()
    FLAGS_OF_NOTHING = auto()
    """.setf on an add operation that never happens."""
    PARTIAL_ROTATION = auto()
    """Rotation of something that only rotates inside its quads."""
    SFU_WRITE = auto()
    UNIFORM_READ = auto()
    UNIFORM_ADDRESS = auto()
    VARYING_READ = auto()
    VPM_READ = auto()
    VPM_WRITE = auto()
    VPM_SETUP = auto()
    VPM_WAIT = auto()
    """Read of vr_wait, vw_wait, vr_busy or vw_busy."""
    DMA_START = auto()
    TMU_WRITE = auto()
    TMU_PARAMETER = auto()
    """TMU write that takes a uniform; only known from the instructions before."""
    TMU_LOAD = auto()
    TMU_SWAP = auto()
    SAMPLE_FLAGS_READ = auto()
    TLB_STENCIL = auto()
    TLB_Z_WRITE = auto()
    TLB_COLOUR_WRITE = auto()
    TLB_MASK_WRITE = auto()
    TLB_COLOUR_LOAD = auto()
    TLB_LOAD = auto()
    """A load of the coverage or alpha mask."""
    SCOREBOARD_WAIT = auto()
    SCOREBOARD_UNLOCK = auto()
    MUTEX = auto()
    SEMAPHORE = auto()
    BRANCH = auto()
    CONDITIONAL_BRANCH = auto()
    THREAD_SWITCH = auto()
    PROGRAM_END = auto()
    REGISTER_14 = auto()


TLB_WRITE: Final = Kind.TLB_STENCIL | Kind.TLB_Z_WRITE | Kind.TLB_COLOUR_WRITE | Kind.TLB_MASK_WRITE
TLB_LOADS: Final = Kind.TLB_COLOUR_LOAD | Kind.TLB_LOAD
TLB_ACCESS: Final = TLB_LOADS | TLB_WRITE & ~Kind.TLB_STENCIL
"""Kinds of accesses that wait for the scoreboard if the program has not done so."""
VPM_ACCESS: Final = Kind.VPM_READ | Kind.VPM_WRITE | Kind.VPM_SETUP | Kind.VPM_WAIT | Kind.DMA_START

NOTHING: Final[frozenset[str]] = frozenset()

_READ_KINDS: Final[Mapping[int, Kind]] = {
    Read.UNIFORM: Kind.UNIFORM_READ,
    Read.VARYING: Kind.VARYING_READ,
    Read.VPM: Kind.VPM_READ,
    Read.VPM_BUSY: Kind.VPM_WAIT,
    Read.VPM_WAIT: Kind.VPM_WAIT,
    Read.MUTEX_ACQUIRE: Kind.MUTEX,
}
CONSUMING_READS: Final = frozenset(_READ_KINDS)
"""Addresses that do something when they are read, also if no operation uses the word."""
_WRITE_KINDS: Final[Mapping[int, Kind]] = {
    Write.UNIFORMS_ADDRESS: Kind.UNIFORM_ADDRESS,
    Write.VPM: Kind.VPM_WRITE,
    Write.VPM_SETUP: Kind.VPM_SETUP,
    Write.VPM_DMA_ADDRESS: Kind.DMA_START,
    Write.TMU_NOSWAP: Kind.TMU_SWAP,
    Write.TLB_STENCIL_SETUP: Kind.TLB_STENCIL,
    Write.TLB_Z: Kind.TLB_Z_WRITE,
    Write.TLB_COLOUR_MS: Kind.TLB_COLOUR_WRITE,
    Write.TLB_COLOUR_ALL: Kind.TLB_COLOUR_WRITE,
    Write.TLB_ALPHA_MASK: Kind.TLB_MASK_WRITE,
    **dict.fromkeys(SFU_WRITES, Kind.SFU_WRITE),
    **dict.fromkeys(TMU_WRITES, Kind.TMU_WRITE),
}
_SIGNAL_KINDS: Final[Mapping[int, Kind]] = {
    Signal.THREAD_SWITCH: Kind.THREAD_SWITCH,
    Signal.LAST_THREAD_SWITCH: Kind.THREAD_SWITCH,
    Signal.PROGRAM_END: Kind.PROGRAM_END,
    Signal.SCOREBOARD_WAIT: Kind.SCOREBOARD_WAIT,
    Signal.SCOREBOARD_UNLOCK: Kind.SCOREBOARD_UNLOCK,
    Signal.LOAD_COVERAGE: Kind.TLB_LOAD,
    Signal.LOAD_ALPHA_MASK: Kind.TLB_LOAD,
    Signal.LOAD_COLOUR: Kind.TLB_COLOUR_LOAD,
    Signal.LOAD_COLOUR_END: Kind.TLB_COLOUR_LOAD | Kind.PROGRAM_END,
    Signal.LOAD_TMU0: Kind.TMU_LOAD,
    Signal.LOAD_TMU1: Kind.TMU_LOAD,
}
QUIET_WRITES: Final = frozenset(
    {*range(REGFILE_SIZE), *ACCUMULATOR_WRITE, *_WRITE_KINDS, Write.NOP, Write.FLAGS}
)
"""Addresses whose writes are wholly described by a kind; the others have effects of their own."""
_UNCONDITIONAL: Final = frozenset({Write.TMU0_S, Write.TMU1_S, Write.VPM})
"""Places that are written in all lanes whatever the condition says."""


@dataclass(frozen=True, slots=True)
class Accesses:
    """kinds: all of them; places: of the kinds that have any; units: the other kinds, one entry for
    each access.
    """

    kinds: Kind
    places: Mapping[Kind, frozenset[str]]
    units: tuple[Kind, ...]

    def at(self, kinds: Kind) -> frozenset[str]:
        """The places of some kinds."""
        found = [places for kind, places in self.places.items() if kind & kinds]
        return found[0].union(*found[1:]) if found else NOTHING


@lru_cache(maxsize=16384)
def accesses(word: int) -> Accesses:
    """List what the instruction touches."""
    instruction = Instruction.decode(word)
    found: list[tuple[Kind, str]] = [*_signal(instruction), *_writes(instruction)]
    if isinstance(instruction, Alu):
        found += _alu(instruction)
    elif isinstance(instruction, Branch):
        found.append((Kind.BRANCH, ""))
        if instruction.condition != BranchCondition.ALWAYS:
            found.append((Kind.CONDITIONAL_BRANCH, ""))
            found.append((Kind.FLAGS_READ, ""))
        if instruction.register:
            found.append((Kind.REGISTER_READ, f"ra{instruction.raddr_a}"))
    elif isinstance(instruction, Semaphore):
        found.append((Kind.SEMAPHORE, ""))
    kinds = Kind(0)
    places: dict[Kind, frozenset[str]] = {}
    for kind, place in found:
        kinds |= kind
        if place:
            places[kind] = places.get(kind, NOTHING) | {place}
    if {"ra14", "rb14"} & (places.get(Kind.REGISTER_READ, NOTHING) | _written(places)):
        kinds |= Kind.REGISTER_14
    return Accesses(kinds, places, tuple(kind for kind, place in found if not place))


def _written(places: Mapping[Kind, frozenset[str]]) -> frozenset[str]:
    return places.get(Kind.REGISTER_WRITE, NOTHING)


def _signal(instruction: Instruction) -> Iterator[tuple[Kind, str]]:
    kind = _SIGNAL_KINDS.get(instruction.signal)
    if kind is not None:
        yield kind, ""
    if instruction.signal in LOAD_R4_SIGNALS:
        yield Kind.R4_LOAD, ""


def _results(instruction: Instruction) -> Iterator[tuple[str, int, int]]:
    """(address space, address, condition) of the results that go anywhere."""
    conditions = (
        (Condition.ALWAYS, Condition.ALWAYS)
        if isinstance(instruction, Branch)
        else (instruction.cond_add, instruction.cond_mul)  # type: ignore[attr-defined]
    )
    ops = (instruction.op_add, instruction.op_mul) if isinstance(instruction, Alu) else (1, 1)
    for (file, address), condition, op in zip(instruction.write_addresses(), conditions, ops, strict=True):
        if address != Write.NOP and op and condition != Condition.NEVER:
            yield file, address, condition


def _writes(instruction: Instruction) -> Iterator[tuple[Kind, str]]:
    targets: list[tuple[str, int]] = []
    for file, address, condition in _results(instruction):
        name = WRITE_NAMES[file][address]
        if address < REGFILE_SIZE or address == Write.FLAGS:
            yield Kind.REGISTER_WRITE, name
        elif address in ACCUMULATOR_WRITE:
            name = f"r{ACCUMULATOR_WRITE[address]}"
            yield Kind.ACCUMULATOR_WRITE, name
        elif address in _WRITE_KINDS:
            yield _WRITE_KINDS[address], ""
        if condition != Condition.ALWAYS:
            yield Kind.FLAGS_READ, ""
            if address in _UNCONDITIONAL:
                yield Kind.CONDITIONAL_WRITE, name
        targets.append((name if address < REGFILE_SIZE else str(address), condition))
    if len(targets) == 2 and targets[0][0] == targets[1][0]:
        first, second = targets[0][1], targets[1][1]
        apart = first >= Condition.ZS and first ^ 1 == second  # each lane gets one of them
        if not apart and not _same_move(instruction):
            yield Kind.SAME_TARGET, instruction.add_target
    if getattr(instruction, "sf", 0):
        yield Kind.FLAGS_WRITE, ""


def _same_move(instruction: Instruction) -> bool:
    """Whether both ALUs give the same value."""
    if not isinstance(instruction, Alu):
        return not isinstance(instruction, Branch)
    moves = instruction.add_is_move and instruction.mul_is_move
    plain = not instruction.pack and instruction.rotation is None
    return moves and plain and instruction.add_a == instruction.mul_a


def _alu(alu: Alu) -> Iterator[tuple[Kind, str]]:
    muxes = alu.muxes()
    reads = alu.read_addresses()
    for file, address in reads:
        used = (Mux.A if file == "a" else Mux.B) in muxes
        if address < REGFILE_SIZE or address == Read.FLAGS:
            if used:
                yield Kind.REGISTER_READ, READ_NAMES[file][address]
            if file == "a" and address == Read.FLAGS:
                yield Kind.SAMPLE_FLAGS_READ, ""
    streams = {address for _, address in reads}
    for address in streams & _READ_KINDS.keys():
        yield _READ_KINDS[address], ""
    if len(reads) == 2 and len(streams) == 1:
        if streams & {Read.UNIFORM, Read.VARYING, Read.VPM}:
            yield Kind.DOUBLE_READ, READ_NAMES["a"][alu.raddr_a]
    for mux in muxes & {Mux.R0, Mux.R1, Mux.R2, Mux.R3, Mux.R5}:
        yield Kind.ACCUMULATOR_READ, f"r{int(mux)}"
    if Mux.R4 in muxes:
        yield Kind.R4_READ, ""
    if alu.op_add and alu.sf and alu.cond_add == Condition.NEVER:
        yield Kind.FLAGS_OF_NOTHING, ""
    if alu.rotation is not None and alu.op_mul != MulOp.NOP:
        yield from _rotation(alu)
    if alu.pm and alu.op_mul and alu.pack and alu.pack in MUL_PACKS:
        if alu.waddr_mul not in {*range(REGFILE_SIZE), *ACCUMULATOR_WRITE, Write.NOP}:
            yield Kind.PACKED_PERIPHERAL, alu.mul_target


def _rotation(alu: Alu) -> Iterator[tuple[Kind, str]]:
    sources = {alu.mul_a, alu.mul_b}
    for mux in sources & {Mux.R0, Mux.R1, Mux.R2, Mux.R3}:
        yield Kind.ROTATED, f"r{int(mux)}"
    if alu.rotation == "r5":
        yield Kind.ROTATION_AMOUNT, "r5"
    if max(sources) > Mux.R3:
        yield Kind.PARTIAL_ROTATION, ""

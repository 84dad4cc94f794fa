"""Decodes once from its word what each instruction of a program needs of the chip."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from vc4lab.qpu.isa.operations import END_SIGNALS, Signal
from vc4lab.qpu.isa.registers import SFU_WRITES, TMU_WRITES, Read, Write
from vc4lab.qpu.run.plan import Plan, Target, plan
from vc4lab.timing.compute.kinds import Flag

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vc4lab.qpu.program.program import Program


class Need(NamedTuple):
    """Flags, and the number of the semaphore."""

    flags: int
    semaphore: int = 0


_WRITES = {
    ("a", Write.VPM_SETUP): Flag.RECORDED | Flag.VPM_SETUP,
    ("a", Write.VPM_DMA_ADDRESS): Flag.LOAD_START | Flag.RECORDED,
    ("b", Write.VPM_DMA_ADDRESS): Flag.STORE_START | Flag.RECORDED,
}
_WRITES_BOTH = {
    Write.UNIFORMS_ADDRESS: Flag.RECORDED | Flag.MOVES_UNIFORMS,
    Write.TMU_NOSWAP: Flag.RECORDED,
    Write.VPM: Flag.VPM_WRITE,
    Write.MUTEX_RELEASE: Flag.RELEASE,
    Write.TMU0_S: Flag.LOOKUP0 | Flag.RECORDED,
    Write.TMU1_S: Flag.LOOKUP1 | Flag.RECORDED,
    Write.TLB_Z: Flag.TILE,
    Write.TLB_COLOUR_MS: Flag.TILE,
    Write.TLB_COLOUR_ALL: Flag.TILE,
    Write.TLB_ALPHA_MASK: Flag.TILE,
}
_SIGNALS = {
    Signal.LOAD_TMU0: Flag.RESULT0,
    Signal.LOAD_TMU1: Flag.RESULT1,
    Signal.THREAD_SWITCH: Flag.SWITCH,
    Signal.LAST_THREAD_SWITCH: Flag.LAST_SWITCH,
    Signal.SCOREBOARD_WAIT: Flag.LOCK,
    Signal.SCOREBOARD_UNLOCK: Flag.UNLOCK,
    Signal.LOAD_COVERAGE: Flag.TILE | Flag.TILE_LOAD,
    Signal.LOAD_COLOUR: Flag.TILE | Flag.TILE_LOAD,
    Signal.LOAD_COLOUR_END: Flag.TILE | Flag.TILE_LOAD,
    Signal.LOAD_ALPHA_MASK: Flag.TILE | Flag.TILE_LOAD,
}
_READS = {("a", Read.VPM_WAIT): Flag.LOAD_WAIT, ("b", Read.VPM_WAIT): Flag.STORE_WAIT}


def _write(target: Target) -> int:
    if not target.is_write or target.address < 32:
        return 0
    if target.address in SFU_WRITES:
        return Flag.SFU
    if target.address in TMU_WRITES and TMU_WRITES[target.address][1] != "s":
        return Flag.PARAMETER
    if target.address not in _KNOWN:
        return 0
    address = Write(target.address)
    return _WRITES_BOTH.get(address, _WRITES.get((target.file, address), 0))


_KNOWN = frozenset(int(write) for write in Write)


def _writes(p: Plan) -> Iterator[Target]:
    """Yield the targets that are really written."""
    if p.kind == "branch":
        return
    if p.kind != "alu" or p.add_op:
        yield p.add
    yield p.mul  # also without an operation: the last result is written


def _reads(p: Plan, reads_twice: bool) -> int:
    flags = 0
    ports = [("a", p.raddr_a), ("b", p.raddr_b)]
    words = sum(address == Read.UNIFORM for _, address in ports)
    if words:
        flags |= Flag.UNIFORM
        if words == 2 and reads_twice:
            flags |= Flag.SECOND_UNIFORM
    for file, address in ports:
        if address == Read.VPM:
            flags |= Flag.VPM_READ
        elif address == Read.VARYING:
            flags |= Flag.VARYING
        elif address == Read.MUTEX_ACQUIRE:
            flags |= Flag.ACQUIRE
        elif address == Read.VPM_WAIT:
            flags |= _READS[file, Read.VPM_WAIT]
    return flags


@lru_cache(maxsize=65536)
def need(word: int, reads_twice: bool = False) -> Need:
    """Decode the needs of an instruction word."""
    p = plan(word)
    flags = 0
    for target in _writes(p):
        flags |= _write(target)
    if p.kind == "branch":
        return Need(int(Flag.BRANCH))
    if p.kind == "semaphore":
        value = int(p.instruction.value)
        flags |= Flag.LOWER if value >> 4 & 1 else Flag.RAISE
        return Need(int(flags), value & 15)
    if p.kind == "alu":
        flags |= _reads(p, reads_twice)
        flags |= _SIGNALS.get(Signal(p.signal), 0)
        if p.signal in END_SIGNALS:
            flags |= Flag.END
    if p.kind == "load" and flags & Flag.VPM_SETUP and p.lanes[0] >> 30:
        flags &= ~Flag.VPM_SETUP  # of the DMA
    return Need(int(flags))


def needs(program: Program) -> list[Need]:
    """Return the needs of each instruction of a program, in its order."""
    return [need(word, program.reads_twice) for word in program.words]

"""A piece's registers replaced by others, where the instruction's form has room for them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from vc4lab.qpu.isa.encoding import Alu, Instruction, LoadImmediate
from vc4lab.qpu.isa.operations import ONE_OPERAND_ADD_OPS, MulOp, Mux, Signal
from vc4lab.qpu.isa.registers import ACCUMULATOR_WRITE, REGFILE_SIZE, Read, Write
from vc4lab.qpu.optimise.pieces import is_odd

ACCUMULATORS: Final = {"r0": Write.ACC0, "r1": Write.ACC1, "r2": Write.ACC2, "r3": Write.ACC3}
"""Those that a renamed value may be in, and where it is written to."""
_BY_ADDRESS: Final = {address: name for name, address in ACCUMULATORS.items()}


class Source(NamedTuple):
    """Says where an operand is from. kind: "mux" an accumulator, "a" or "b" a port with an address, "i" a
    small immediate with a code.
    """

    kind: str
    number: int


@lru_cache(maxsize=16384)
def can_rename(word: int) -> bool:
    """Whether a piece's registers can be others at all: it has one operation, or loads one register."""
    instruction = Instruction.decode(word)
    if isinstance(instruction, LoadImmediate):
        return bool(instruction.waddr_mul == Write.NOP) and not instruction.pack and not instruction.sf
    if not isinstance(instruction, Alu) or is_odd(word):
        return False
    return bool(instruction.op_add) != bool(instruction.op_mul)


def renamed(word: int, reads: Mapping[str, str], writes: Mapping[str, str]) -> int | None:
    """The word with other registers, by their names; None: it has no such form."""
    instruction = Instruction.decode(word)
    if isinstance(instruction, LoadImmediate):
        file, address = _target(instruction.add_file, instruction.waddr_add, writes)
        return instruction.replace(waddr_add=address, ws=int(file == "b")).encode()
    assert isinstance(instruction, Alu)
    changed = _with_sources(instruction, reads)
    if changed is None:
        return None
    return _with_target(changed, writes)


def _target(file: str, address: int, writes: Mapping[str, str]) -> tuple[str, int]:
    """Return the address space and address of a result after renaming."""
    name = _BY_ADDRESS[Write(address)] if address in _BY_ADDRESS else f"r{file}{address}"
    new = writes.get(name)
    if new is None or (address >= REGFILE_SIZE and name not in ACCUMULATORS):
        return file, address
    if new in ACCUMULATORS:
        return file, ACCUMULATORS[new]
    return new[1], int(new[2:])


def _with_target(alu: Alu, writes: Mapping[str, str]) -> int | None:
    is_add = bool(alu.op_add)
    file, address = (alu.add_file, alu.waddr_add) if is_add else (alu.mul_file, alu.waddr_mul)
    new_file, new = _target(file, int(address), writes)
    if alu.pack and (new_file, new >= REGFILE_SIZE) != (file, address >= REGFILE_SIZE):
        return None
    swap = int(new_file == "b") if is_add else int(new_file == "a")
    changed = {"waddr_add" if is_add else "waddr_mul": new, "ws": swap}
    return alu.replace(**changed).encode()


def _sources(alu: Alu) -> list[Source]:
    names = ["add_a", "add_b"] if alu.op_add else ["mul_a", "mul_b"]
    if alu.op_add in ONE_OPERAND_ADD_OPS:
        names.pop()
    found = []
    for name in names:
        mux = int(getattr(alu, name))
        if mux == Mux.A:
            found.append(Source("a", int(alu.raddr_a)))
        elif mux == Mux.B:
            found.append(Source("i" if alu.has_small_immediate else "b", int(alu.raddr_b)))
        else:
            found.append(Source("mux", mux))
    return found


def _name(source: Source) -> str:
    if source.kind == "mux":
        return f"r{source.number}"
    return f"r{source.kind}{source.number}" if source.number < REGFILE_SIZE and source.kind != "i" else ""


def _with_sources(alu: Alu, reads: Mapping[str, str]) -> Alu | None:
    """The instruction with other operands. Rotations, streams and unpacked operands keep theirs."""
    old = _sources(alu)
    new = [_source(reads[_name(one)]) if _name(one) in reads else one for one in old]
    if new == old:
        return alu
    rotates = alu.rotation is not None and alu.op_mul != MulOp.NOP
    if rotates and any(one.kind not in ("mux", "i") or one.number > Mux.R3 for one in new if one.kind != "i"):
        return None
    if alu.unpack:
        source = Source("mux", int(Mux.R4)) if alu.pm else None
        for before, after in zip(old, new, strict=True):
            if before != after and (source is None or Source.__eq__(before, source)):
                if before.kind == "a" and after.kind == "a":
                    continue
                return None
            if before != after and source is None and after.kind == "a":
                return None
    ports = {"a": int(alu.raddr_a), "b": int(alu.raddr_b)}
    for kind, port in (("a", "a"), ("b", "b")):
        if any(one.kind == kind and one.number < REGFILE_SIZE for one in old):
            ports[port] = int(Read.NOP)
    for one in new:
        if one.kind in ports:
            if one.kind == "b" and (alu.has_small_immediate or rotates):
                return None
            if ports[one.kind] not in (Read.NOP, one.number):
                return None
            ports[one.kind] = one.number
    muxes = [one.number if one.kind == "mux" else int(Mux.A if one.kind == "a" else Mux.B) for one in new]
    first, second = ("add_a", "add_b") if alu.op_add else ("mul_a", "mul_b")
    signal = alu.signal
    assert signal != Signal.SMALL_IMMEDIATE or ports["b"] == alu.raddr_b
    return alu.replace(raddr_a=ports["a"], raddr_b=ports["b"], **{first: muxes[0], second: muxes[-1]})


def _source(name: str) -> Source:
    if name in ACCUMULATORS:
        return Source("mux", int(name[1:]))
    return Source(name[1], int(name[2:]))


assert all(ACCUMULATOR_WRITE[address] == int(name[1:]) for name, address in ACCUMULATORS.items())

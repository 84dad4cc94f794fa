"""Our decoding against Mesa's independent reading of 1,635 recorded instruction words."""

import gzip
import json
import re
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vc4lab.qpu.isa.encoding import (
    ONE_OPERAND_ADD_OPS,
    SMALL_IMMEDIATES,
    AddOp,
    Alu,
    Branch,
    BranchCondition,
    Condition,
    Instruction,
    LoadImmediate,
    MulOp,
    Mux,
    Pack,
    Semaphore,
    Signal,
    Unpack,
)
from vc4lab.qpu.text.assembler import assemble
from vc4lab.qpu.text.disassembler import disassemble

DATA = Path(__file__).parents[1] / "data" / "qpu" / "mesa-disassembly.json.gz"
LINES: dict[str, str] = json.loads(gzip.decompress(DATA.read_bytes()))["lines"]

SIGNALS = {
    "": Signal.NONE,
    "sig_small_imm": Signal.SMALL_IMMEDIATE,
    "sig_end": Signal.PROGRAM_END,
    "sig_unlock_score": Signal.SCOREBOARD_UNLOCK,
    "sig_switch": Signal.THREAD_SWITCH,
    "sig_thread_switch": Signal.LAST_THREAD_SWITCH,
    "load_tmu0": Signal.LOAD_TMU0,
    "sig_load_tmu0": Signal.LOAD_TMU0,
    "sig_color_load": Signal.LOAD_COLOUR,
}
PACKS = {
    "16a": Pack.H16A, "16b": Pack.H16B, "8888": Pack.B8_ALL,
    "8a": Pack.B8A, "8b": Pack.B8B, "8c": Pack.B8C, "8d": Pack.B8D,
}  # fmt: skip
UNPACKS = {
    "16a": Unpack.H16A, "16b": Unpack.H16B,
    "8a": Unpack.B8A, "8b": Unpack.B8B, "8c": Unpack.B8C, "8d": Unpack.B8D,
}  # fmt: skip
READS = {
    "uni": {("a", 32), ("b", 32)},
    "vary": {("a", 35), ("b", 35)},
    "vpm_read": {("a", 48), ("b", 48)},
    "x_pix": {("a", 41)},
    "y_pix": {("b", 41)},
}
WRITES = {
    "nop": 39, "r0": 32, "r1": 33, "r2": 34, "r3": 35, "uniforms_addr": 40, "tlb_z": 44,
    "tlb_color_all": 46, "vpm": 48, "vr_setup": ("a", 49), "vw_setup": ("b", 49), "sfu_recip": 52,
    "sfu_recipsqrt": 53, "sfu_exp": 54, "sfu_log": 55, "tmu0_s": 56, "tmu0_t": 57, "tmu0_b": 59,
}  # fmt: skip


def check_destination(text: str, file: str, address: int) -> str:
    """Compares the register; returns the pack suffix."""
    name, _, pack = text.partition(".")
    if match := re.fullmatch(r"r([ab])(\d+)", name):
        assert (file, address) == (match[1], int(match[2]))
    else:
        expected = WRITES[name]
        assert expected in (address, (file, address)), text
    return pack


def check_source(text: str, alu: Alu, mux: Mux) -> None:
    if re.fullmatch(r"-?\d+(\.\d+)?", text):
        assert mux == Mux.B
        word = SMALL_IMMEDIATES[alu.raddr_b]
        if "." in text:
            assert struct.unpack("<f", struct.pack("<I", word))[0] == pytest.approx(float(text))
        else:
            assert word == int(text) & 0xFFFFFFFF
        return
    name, _, unpack = text.partition(".")
    read = {Mux.A: ("a", alu.raddr_a), Mux.B: ("b", alu.raddr_b)}.get(mux)
    if match := re.fullmatch(r"r([ab])(\d+)", name):
        assert read == (match[1], int(match[2]))
    elif match := re.fullmatch(r"r([0-5])", name):
        assert mux == int(match[1])
    else:
        assert read in READS[name]
    applies = alu.unpack != Unpack.NONE and mux == (Mux.R4 if alu.pm else Mux.A)
    assert applies == bool(unpack)
    if applies:
        assert alu.unpack == UNPACKS[unpack]


def check_operation(text: str, alu: Alu, is_mul: bool) -> None:
    op, *operands = text.replace(",", " ").split()
    name, *suffixes = op.split(".")
    muxes = (alu.mul_a, alu.mul_b) if is_mul else (alu.add_a, alu.add_b)
    code = alu.op_mul if is_mul else alu.op_add
    (add_file, add_address), (mul_file, mul_address) = alu.write_addresses()
    file, address = (mul_file, mul_address) if is_mul else (add_file, add_address)
    if name == "mov":
        assert code == (MulOp.V8MIN if is_mul else AddOp.OR)
        assert muxes[0] == muxes[1]
        operands.append(operands[1])
    else:
        assert code == (MulOp if is_mul else AddOp)[name.upper()]
    pack = check_destination(operands[0], file, address)
    if code:
        for operand, mux in zip(operands[1:], muxes, strict=True):
            check_source(operand, alu, mux)
        condition = alu.cond_mul if is_mul else alu.cond_add
        expected = [s for s in suffixes if s != "sf"]
        assert condition == (Condition[expected[0].upper()] if expected else Condition.ALWAYS)
        if not is_mul or alu.op_add == AddOp.NOP:
            assert bool(alu.sf) == ("sf" in suffixes)
    if pack:
        assert alu.pack == PACKS[pack]
        assert bool(alu.pm) == is_mul
    else:
        packs_here = alu.pack and (bool(alu.pm) == is_mul) and (alu.pm or file == "a")
        assert not packs_here


@pytest.mark.parametrize("part", range(8))
def test_agrees_with_mesa(part: int) -> None:
    for word, text in list(LINES.items())[part::8]:
        instruction = Instruction.decode(int(word, 16))
        assert instruction.encode() == int(word, 16)
        if text.startswith("load_imm"):
            assert isinstance(instruction, LoadImmediate)
            add, mul, value, _ = text.removeprefix("load_imm ").replace(",", "").split()
            check_destination(add, *instruction.write_addresses()[0])
            check_destination(mul, *instruction.write_addresses()[1])
            assert instruction.mode == 0
            assert instruction.immediate == int(value, 16)
            assert instruction.cond_add == Condition.ALWAYS
        elif text.startswith("branch"):
            assert isinstance(instruction, Branch)
            condition, offset = text.removeprefix("branch.").split()
            assert instruction.condition == BranchCondition[condition.upper()]
            assert instruction.relative
            assert not instruction.register
            assert instruction.target(0) == int(offset) + 32 & 0xFFFFFFFF
        else:
            assert isinstance(instruction, Alu)
            signal = re.match(r"(sig_\w+ |load_tmu0 )?", text)[0]
            assert instruction.signal == SIGNALS[signal.strip()]
            add, mul = text[len(signal) :].split(" ; ")
            check_operation(add, instruction, False)
            check_operation(mul, instruction, True)


def test_text_assembles_to_an_equivalent_word() -> None:
    for word in LINES:
        text = disassemble(int(word, 16))
        (again,) = assemble(text).words
        assert meaning(again) == meaning(int(word, 16)), text


@given(st.integers(0, (1 << 64) - 1))
def test_text_of_any_word_assembles_to_an_equivalent_word(word: int) -> None:
    (again,) = assemble(disassemble(word)).words
    assert meaning(again) == meaning(word)


def meaning(word: int) -> tuple[object, ...]:
    """What a word does, without the bits that have no effect."""
    instruction = Instruction.decode(word)
    if not isinstance(instruction, Alu):
        fields = instruction.as_dict()
        if isinstance(instruction, Branch):
            fields["unused"] = 0
            if not instruction.register:
                fields["raddr_a"] &= 1
        else:
            if not packs(instruction):
                fields["pack"] = fields["pm"] = 0
            for alu in ("add", "mul"):
                if fields[f"waddr_{alu}"] == 39 and not instruction.sf:
                    fields[f"cond_{alu}"] = 0
        add, mul = instruction.write_addresses()
        fields["ws"] = fields["waddr_add"] = fields["waddr_mul"] = 0
        return (*fields.items(), write_place(*add), write_place(*mul))
    alu = instruction
    add, mul = alu.write_addresses()
    # Rotating a constant changes nothing.
    rotates = alu.op_mul and {alu.mul_a, alu.mul_b} != {Mux.B}
    fields = {"signal": alu.signal, "sf": alu.sf, "rotation": alu.rotation if rotates else None}
    muxes = alu.muxes()
    unpacks = alu.unpack and (Mux.R4 if alu.pm else Mux.A) in muxes
    fields["pack"] = (alu.pack, alu.pm) if packs(alu) else 0
    fields["unpack"] = (alu.unpack, alu.pm) if unpacks else 0
    if fields["rotation"] is None and alu.signal == Signal.SMALL_IMMEDIATE and Mux.B not in muxes:
        fields["signal"] = Signal.NONE
    if alu.op_add:
        fields["add"] = alu.op_add, alu.cond_add, write_place(*add), source(alu, alu.add_a)
        if alu.op_add not in ONE_OPERAND_ADD_OPS:
            fields["add_b"] = source(alu, alu.add_b)
    if alu.op_mul:
        operands = source(alu, alu.mul_a), source(alu, alu.mul_b)
        fields["mul"] = alu.op_mul, alu.cond_mul, write_place(*mul), operands
    elif alu.cond_mul and mul[1] != 39:
        fields["mul"] = alu.cond_mul, write_place(*mul)
    reads = {read_place(f, a) for f, a in alu.read_addresses() if a in (32, 35, 48, 49, 50, 51)}
    return (*fields.items(), frozenset(reads))


def packs(word: Alu | LoadImmediate | Semaphore) -> bool:
    if not word.pack:
        return False
    if word.pm:
        works = word.pack in (3, 4, 5, 6, 7)
        return works and (bool(word.op_mul) if isinstance(word, Alu) else word.waddr_mul != 39)
    ops = (word.op_add, word.op_mul) if isinstance(word, Alu) else (1, 1)
    return any(op and f == "a" and w < 32 for op, (f, w) in zip(ops, word.write_addresses(), strict=True))


def source(alu: Alu, mux: Mux) -> object:
    if mux == Mux.A:
        return read_place("a", alu.raddr_a)
    if mux == Mux.B:
        immediate = alu.small_immediate
        return read_place("b", alu.raddr_b) if immediate is None else immediate
    return mux


SHARED_READS = {32, 35, 39, 48, 51}
SHARED_WRITES = set(range(32, 64)) - {37, 40, 41, 42, 49, 50}


def read_place(file: str, address: int) -> tuple[str, int]:
    return ("" if address in SHARED_READS else file, address)


def write_place(file: str, address: int) -> tuple[str, int]:
    return ("" if address in SHARED_WRITES else file, address)

"""Peripheral reads in disassembly: by their names, and assembled back to the same reads."""

from itertools import product

import pytest

from vc4lab.qpu.isa.encoding import NOP_WORD, Alu, Mux
from vc4lab.qpu.isa.operations import AddOp, Condition, MulOp
from vc4lab.qpu.isa.registers import READ_NAMES, Read
from vc4lab.qpu.text.assembler import assemble
from vc4lab.qpu.text.disassembler import disassemble

A, B = int(Mux.A), int(Mux.B)
CONSUMING = (Read.UNIFORM, Read.VARYING, Read.VPM, Read.VPM_BUSY, Read.VPM_WAIT, Read.MUTEX_ACQUIRE)
PLACES = (5, Read.ELEMENT_OR_QPU_NUMBER, Read.PIXEL_COORD, Read.FLAGS, *CONSUMING)
ADDS = ((), (A, B), (B, A), (A, A), (B, B), (A, 0), (B, 1))
MULS = ((), (A, B), (A, A), (B, B))


def word(raddr_a: int, raddr_b: int, add: tuple[int, ...] = (), mul: tuple[int, ...] = ()) -> int:
    fields: dict[str, int] = {"raddr_a": raddr_a, "raddr_b": raddr_b}
    for alu, op, operands in (("add", AddOp.ADD, add), ("mul", MulOp.MUL24, mul)):
        if operands:
            fields |= {f"op_{alu}": op, f"cond_{alu}": Condition.ALWAYS, f"waddr_{alu}": 0}
            fields |= {f"{alu}_a": operands[0], f"{alu}_b": operands[1]}
    return Alu(NOP_WORD).replace(**fields).encode()


@pytest.mark.parametrize(
    ("bits", "text"),
    [
        (word(39, 50), "nop; nop; read vw_wait"),
        (word(50, 39), "nop; nop; read vr_wait"),
        (word(50, 50), "nop; nop; read vr_wait; read vw_wait"),
        (word(5, 50, (A, 0)), "add ra0, ra5, r0; nop; read vw_wait"),
        (word(50, 50, (A, B)), "add ra0, vr_wait, vw_wait"),
        (word(38, 38, (A, B)), "add ra0, elem_num, qpu_num"),
        (word(41, 41, (B, A)), "add ra0, y_coord, x_coord"),
        (word(42, 42, (A, B)), "add ra0, ms_mask, rev_flag"),
        (word(32, 39), "nop; nop; read unif"),
        (word(5, 32, (A, 0)), "add ra0, ra5, r0; nop; read unif"),
        (word(32, 35), "nop; nop; read unif; read vary"),
        (word(39, 32), "nop; nop; read rb32  # unif"),
        (word(32, 32, (A, B)), "add ra0, ra32, rb32  # unif"),
        (word(32, 32, (B, 0)), "add ra0, rb32, r0; nop; read ra32  # unif"),
    ],
)
def test_registers_by_name(bits: int, text: str) -> None:
    assert disassemble(bits) == text


def operands_of(bits: int) -> tuple[object, ...]:
    """What each ALU gets, by file and address, and what else is read."""
    alu = Alu(bits)
    ports = {A: ("a", alu.raddr_a), B: ("b", alu.raddr_b)}
    muxes = [*((alu.add_a, alu.add_b) if alu.op_add else ()), *((alu.mul_a, alu.mul_b) if alu.op_mul else ())]
    named = [(READ_NAMES[p[0]][p[1]] if (p := ports.get(m)) else m) for m in muxes]
    unselected = [p for m, p in ports.items() if m not in muxes and p[1] in CONSUMING]
    both = {p for m, p in ports.items() if m in muxes}
    return tuple(named), sorted(unselected), len(both)


@pytest.mark.parametrize("raddr_a", PLACES)
def test_text_assembles_back_to_the_same_reads(raddr_a: int) -> None:
    for raddr_b, add, mul in product(PLACES, ADDS, MULS):
        bits = word(raddr_a, raddr_b, add, mul)
        text = disassemble(bits)
        (again,) = assemble(text).words
        assert operands_of(again) == operands_of(bits), text

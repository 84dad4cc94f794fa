"""Every 64-bit word decodes to fields that encode to the same word again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vc4lab.qpu.isa.encoding import (
    NOP,
    NOP_WORD,
    SMALL_IMMEDIATES,
    Alu,
    Branch,
    BranchCondition,
    Instruction,
    LoadImmediate,
    LoadMode,
    Mux,
    Semaphore,
    Signal,
)


@given(st.integers(0, (1 << 64) - 1), st.sampled_from([None, 13, 14, 15]))
def test_fields_of_any_word_encode_to_the_word(word: int, signal: int | None) -> None:
    if signal is not None:
        word = word & ~(15 << 60) | signal << 60
    instruction = Instruction.decode(word)
    assert instruction.encode() == word
    rebuilt = type(instruction).make(**instruction.as_dict())
    assert rebuilt == instruction
    assert rebuilt.encode() == word


@pytest.mark.parametrize("form", [Alu, LoadImmediate, Semaphore, Branch])
def test_fields_cover_all_bits_once(form: type[Instruction]) -> None:
    masks = [bits.mask for bits in form.layout_fields.values()]
    assert sum(masks) == (1 << 64) - 1
    union = 0
    for mask in masks:
        union |= mask
    assert union == (1 << 64) - 1


def test_forms() -> None:
    assert isinstance(Instruction.decode(0xF000000000000000), Branch)
    assert isinstance(Instruction.decode(0xE800000000000000), Semaphore)
    for mode in LoadMode:
        if mode != LoadMode.SEMAPHORE:
            decoded = Instruction.decode(0xE000000000000000 | mode << 57)
            assert isinstance(decoded, LoadImmediate)
            assert decoded.mode == mode
    assert isinstance(Instruction.decode(NOP_WORD), Alu)
    assert NOP.signal == Signal.NONE
    assert NOP.add_target == "-"
    assert NOP.mul_target == "-"
    assert not NOP.muxes()


def test_small_immediates() -> None:
    assert SMALL_IMMEDIATES[15] == 15
    assert SMALL_IMMEDIATES[16] == 0xFFFFFFF0
    assert SMALL_IMMEDIATES[31] == 0xFFFFFFFF
    assert SMALL_IMMEDIATES[32] == 0x3F800000
    assert SMALL_IMMEDIATES[39] == 0x43000000
    assert SMALL_IMMEDIATES[40] == 0x3B800000
    assert SMALL_IMMEDIATES[47] == 0x3F000000
    assert SMALL_IMMEDIATES[48:] == SMALL_IMMEDIATES[16:32]


def test_rotation() -> None:
    rotating = NOP.replace(signal=Signal.SMALL_IMMEDIATE, raddr_b=48)
    assert rotating.rotation == "r5"
    assert rotating.replace(raddr_b=63).rotation == 15
    assert rotating.replace(raddr_b=47).rotation is None
    assert NOP.rotation is None


def test_per_lane_load() -> None:
    load = LoadImmediate.make(signal=14, mode=1, immediate=0x8000_C000)
    assert load.lanes()[13:] == (0, 1, 0xFFFFFFFF)
    assert load.replace(mode=3).lanes()[13:] == (0, 1, 3)
    assert load.replace(mode=0).lanes() == (0x8000C000,) * 16


def test_branch_target_and_flags_bit() -> None:
    branch = Branch.make(signal=15, relative=1, immediate=0xFFFFFFF8, condition=15)
    assert branch.condition == BranchCondition.ALWAYS
    assert branch.target(0x1000) == 0x1018
    assert branch.replace(relative=0, register=1, raddr_a=3).target(0, 0x20) == 0x18
    assert branch.replace(raddr_a=3).sf == 1


def test_immutable_and_checked() -> None:
    with pytest.raises(AttributeError, match="immutable"):
        NOP.ws = 1
    with pytest.raises(ValueError, match="waddr_add: value 64 doesn't fit in 6 bits"):
        NOP.replace(waddr_add=64)
    with pytest.raises(ValueError, match="64-bit"):
        Alu(1 << 64)


def test_target_and_float_input() -> None:
    move = NOP.replace(op_add=1, raddr_a=35, add_a=Mux.A, add_b=Mux.R4, waddr_add=45)
    assert move.add_target == "tlbm"
    assert move.has_float_input
    assert not move.replace(add_a=Mux.R0).has_float_input

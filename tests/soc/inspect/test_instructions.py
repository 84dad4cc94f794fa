"""The instruction that a program ended at, in words."""

import struct
from pathlib import Path

import pytest

from vc4lab.soc.machine import Machine
from vc4lab.soc.result import Stop

TO_THUMB = 0xE28F0001, 0xE12FFF10
"""add r0, pc, #1; bx r0"""
FOREIGN = "an instruction of ARMv7"


@pytest.mark.parametrize(
    ("board", "words", "text", "foreign"),
    [
        ("zero", [0xE34E3DFE], "(movt r3, #0xedfe)", True),
        ("zero", [0xF57FF05F], "(dmb sy)", True),
        ("zero", [0xE7F000F0], "(udf #0)", False),
        ("pi2", [0xE7F000F0], "(udf #0)", False),
        ("zero", [*TO_THUMB, 0xDE00DE00], "(udf #0)", False),
        ("zero", [*TO_THUMB, 0x0301F2C0], "(movt r3, #1)", True),
        ("pi2", [0xEC000000], "(0xec000000)", False),
        ("pi2", [0xEEB00A40], "(vmov.f32 s0, s0)", False),
    ],
)
def test_an_undefined_instruction(
    tmp_path: Path, board: str, words: list[int], text: str, foreign: bool
) -> None:
    name = "kernel.img" if board == "zero" else "kernel7.img"
    (tmp_path / name).write_bytes(struct.pack(f"<{len(words)}I", *words))
    result = Machine(tmp_path, board=board).run()
    assert result.reason is Stop.CRASH
    assert f"undefined instruction at 0x{0x8000 + 4 * len(words) - 4:08x} {text}" in result.message
    assert (FOREIGN in result.message) == foreign


@pytest.mark.parametrize(("word", "text"), [(0xD4000001, "(svc #0)"), (0xFFFFFFFF, "(0xffffffff)"), (0, "")])
def test_in_64_bit_code(tmp_path: Path, word: int, text: str) -> None:
    (tmp_path / "kernel8.img").write_bytes(struct.pack("<2I", 0xD503201F, word))
    result = Machine(tmp_path, board="pi3").run()
    assert result.reason is Stop.CRASH
    assert text in result.message
    assert FOREIGN not in result.message

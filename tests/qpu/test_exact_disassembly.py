"""Disassembly in both dialects assembles to the same bits, whatever the words are."""

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vc4lab.qpu.dialects.blocks import blocks_of, program_text
from vc4lab.qpu.dialects.choose import assemble_source
from vc4lab.qpu.dialects.vc4asm.assembler import assemble as assemble_vc4asm
from vc4lab.qpu.dialects.vc4asm.disassembler import disassemble as vc4asm_text
from vc4lab.qpu.text.assembler import assemble
from vc4lab.qpu.text.exact import disassemble_exactly

DATA = Path(__file__).parents[1] / "data" / "qpu" / "mesa-disassembly.json.gz"
MESA = [int(word, 16) for word in json.loads(gzip.decompress(DATA.read_bytes()))["lines"]]
WORD = st.integers(0, (1 << 64) - 1)

LOOP = """
        mov ra1, unif
        mov r0, 0
again:  add r0, r0, 1
        sub.setf ra1, ra1, 1
        brr.anynz again
        mov t0t, unif
        nop
        mov t0s, r0
        nop; nop; ldtmu0
        mov irq, r4; nop; thrend
        nop
        nop
"""


def test_recorded_words() -> None:
    assert [assemble(disassemble_exactly(word)).words[0] for word in MESA] == MESA
    texts = [vc4asm_text(word) for word in MESA]
    assert list(assemble_vc4asm("\n".join(texts)).words) == MESA
    assert sum(text.startswith(".long") for text in texts) < 80  # bits without any effect


@settings(max_examples=150)
@given(WORD)
def test_any_word(word: int) -> None:
    assert assemble(disassemble_exactly(word)).words == (word,)
    assert assemble_vc4asm(vc4asm_text(word)).words == (word,)


def test_fields_by_name() -> None:
    (word,) = assemble("mov r0, r1; with ws=1, mul_a=3").words
    assert word ^ assemble("mov r0, r1").words[0] == 1 << 44 | 3 << 3
    for text, expected in (("with nows=1", "unknown field"), ("with ws=2", "ws has 1 bits")):
        with pytest.raises(ValueError, match=expected):
            assemble(f"mov r0, r1; {text}")


@pytest.mark.parametrize("dialect", ["qpuasm", "vc4asm"])
def test_a_program_with_labels_and_blocks(dialect: str) -> None:
    words = assemble(LOOP).words
    text = program_text(words, dialect)
    assert assemble_source(text, dialect=dialect).words == words
    assert "L1: from L0, L1; to L1, L2; takes r0 ra1; writes r0 ra1 r4" not in text
    assert "# L1: from L0, L1; to L1, L2; takes r0 ra1; writes r0 ra1" in text
    assert "uniform 2: parameter 0 of texture request 0 of TMU 0" in text
    assert "texture request 0 of TMU 0 starts" in text


def test_blocks_follow_branches_after_their_delay_slots() -> None:
    blocks = blocks_of(assemble(LOOP).words)
    assert [(block.start, block.stop, block.after) for block in blocks] == [
        (0, 2, [2]), (2, 8, [2, 8]), (8, 12, []),
    ]  # fmt: skip
    (first, *_) = blocks_of(assemble("bra -, ra5\nnop\nnop\nnop\nnop").words)
    assert first.outside

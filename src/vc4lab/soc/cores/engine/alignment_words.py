"""Which alignment an instruction's accesses to memory need: looked up while it is translated.

Sources: ARM ARM (ARMv7-A) A3.2.1 (table A3-1) and A3.2.2, (ARMv8-A) B2.5.2 and the pseudocode of
`AArch64.CheckAlignment`; ARM1176JZF-S TRM (DDI 0301H) 4.2.
"""

from __future__ import annotations

from vc4lab.simd import Value, const, i32, select, staged

FREE, CHECKED, BY_PAGE, LEGACY, NOTHING = 0, 1, 2, 3, 4
"""Checks of a translation regime: only what is always checked; everything (the MMU is off, or
SCTLR.A is set); everything, but accesses to Normal memory go on; everything, and unaligned accesses
do what an ARMv5 did (ARM1176, SCTLR.U = 0); nothing, as the engine has it (`--forgiving`)."""
SIZE, ALIGN_SHIFT, ALIGN = 3, 4, 7 << 4
"""In an access of the engine (QEMU's MemOp): log2 of its bytes; log2 of its alignment."""
QUAD = 4
"""log2 of the bytes of an AArch64 register of 128 bits, which the engine accesses in halves."""


@staged
def _is(word: Value, mask: int, match: int) -> Value:
    return (word & mask) == match


@staged
def _element(word: Value) -> Value:
    """log2 of an element's bytes in vld1..4 and vst1..4 (ARM: 1111 0100, Thumb: 1111 1001)."""
    multiple = _is(word, 1 << 23, 0)
    every_lane = _is(word, 0xC00, 0xC00)
    size = select(multiple | every_lane, word.shr(6) & 3, word.shr(10) & 3)
    return size


@staged
def bits_arm(word: Value, thumb: Value, size: Value) -> tuple[Value, Value]:
    """log2 of the alignment that an AArch32 access of 2**size bytes needs, and if in any memory.

    word: the instruction, a Thumb one of 32 bits with its first half above.
    """
    words = _is(word, 0x0C000000, 0x08000000) & (_is(word, 0x0E000000, 0x08000000))  # ldm, stm, rfe
    words = words | _is(word, 0x0E000000, 0x0C000000)  # vldr, vldm, ldc
    words = words | _is(word, 0x0E1000D0, 0x000000D0)  # ldrd, strd
    element = _is(word, 0xFF100000, 0xF4000000)
    thumb_words = _is(word, 0xFE400000, 0xE8000000)  # ldm, stm, push, pop, rfe, srs
    thumb_words = thumb_words | (_is(word, 0xFE400000, 0xE8400000) & (size == 2))  # ldrd, strd
    thumb_words = thumb_words | _is(word, 0xEE000000, 0xEC000000)
    thumb_words = thumb_words | _is(word, 0xFFFFF000, 0xC000) | _is(word, 0xFFFFF600, 0xB400)
    thumb_element = _is(word, 0xFF100000, 0xF9000000)
    words = select(thumb, thumb_words, words)
    element = select(thumb, thumb_element, element)
    plain = select(element, _element(word), size)
    return select(words, const(i32, 2), plain), words


@staged
def bits_wide(word: Value, number: Value, size: Value) -> Value:
    """log2 of the alignment that an AArch64 access of 2**size bytes needs where it is checked.

    number: how many of the instruction's accesses come before it.
    """
    structures = _is(word, 0xBF000000, 0x0C000000)  # ld1..4, st1..4 of whole registers
    pair = _is(word, 0xFC000000, 0xAC000000)  # ldp, stp
    single = _is(word, 0xFF000000, 0x3C000000) | _is(word, 0xFF000000, 0x3D000000)
    single = single & _is(word, 1 << 23, 1 << 23)
    literal = _is(word, 0xFF000000, 0x9C000000)
    quad = (pair | single | literal) & ((number & 1) == 0) & (size == 3)
    element = select(structures, word.shr(10) & 3, size)
    return select(quad, const(i32, QUAD), element)

"""Images whose code is for the other of a Pi 3's two instruction sets."""

from __future__ import annotations

LOOKED_AT = 256
"""Bytes of an image: its start-up code."""
LEAST_WORDS = 8
AARCH64_TOPS = frozenset(
    bytes.fromhex("10 11 12 14 17 18 1a 1b 2a 34 35 36 37 38 39 51 52 53 54 58 70 71 72 79 7a 8b"
    "90 91 92 93 94 97 9a a8 a9 aa b0 b4 b5 b8 b9 cb d1 d2 d3 d4 d5 d6 eb f1 f2 f8 f9")
)  # fmt: skip
"""Top bytes of usual instructions: branches, moves, arithmetic, loads and stores, system."""
MOSTLY = 0.75


def seems_wide(image: bytes) -> bool | None:
    """Whether an image begins with AArch64 code; None if that cannot be said.

    Most instructions of AArch32 are unconditional, with the top digit E, which is rare in AArch64.
    """
    head = image[: LOOKED_AT & ~3]
    tops = [head[at + 3] for at in range(0, len(head) - 3, 4) if any(head[at : at + 4])]
    if len(tops) < LEAST_WORDS:
        return None
    unconditional = sum(top >> 4 == 0xE for top in tops) / len(tops)
    usual = sum(top in AARCH64_TOPS for top in tops) / len(tops)
    if unconditional >= MOSTLY:
        return False
    return True if usual >= MOSTLY and unconditional < 1 - MOSTLY else None

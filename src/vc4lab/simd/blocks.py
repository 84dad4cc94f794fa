"""Explicit basic blocks, for code whose control flow is data (a QPU program)."""

from __future__ import annotations

from vc4lab.simd.control import truth
from vc4lab.simd.operators import Operand
from vc4lab.simd.trace import current, staged_error
from vc4lab.simd.types import i1
from vc4lab.simd.value import coerce


class BasicBlock:
    """A basic block of the function being traced. Carry values between blocks in var() cells."""

    __slots__ = ("entered", "label")

    def __init__(self, label: str) -> None:
        self.label = label
        self.entered = False


def new_block() -> BasicBlock:
    """A block to be filled later by enter()."""
    if current().eager:
        raise staged_error("basic blocks are for compiled code only")
    return BasicBlock(current().new_label("block"))


def jump(block: BasicBlock) -> None:
    """Ends the current block; until the next enter() the place is dead."""
    current().terminate(f"br label %{block.label}")


def jump_if(condition: Operand, yes: BasicBlock, no: BasicBlock) -> None:
    """Ends the current block with a two-way branch on an i1."""
    c = coerce(truth(condition), i1)
    current().terminate(f"br i1 {c.text}, label %{yes.label}, label %{no.label}")


def enter(block: BasicBlock) -> None:
    """Continues tracing in `block` (falling into it if the place before is alive)."""
    if block.entered:
        raise staged_error("a block can be entered once")
    block.entered = True
    trace = current()
    jump(block)
    trace.start(block.label)


def terminated() -> bool:
    """Has the current block ended?"""
    return current().block is None

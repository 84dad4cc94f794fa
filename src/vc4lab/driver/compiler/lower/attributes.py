"""Vertex formats: what is made of the words of an attribute."""

from __future__ import annotations

from typing import Protocol

from vc4lab.driver.compiler.lower.builder import Builder
from vc4lab.driver.compiler.lower.constants import ONE, ZERO, real
from vc4lab.driver.compiler.machine.code import Const, Op, Operand, Reg, TooComplex
from vc4lab.mesa.protocol.formats import Format, layout_of
from vc4lab.qpu.isa.operations import AddOp, MulOp, Unpack

LETTERS = {"R": 0, "G": 1, "B": 2, "A": 3}
BYTES = (Unpack.B8A, Unpack.B8B, Unpack.B8C, Unpack.B8D)
HALVES = (Unpack.H16A, Unpack.H16B)
KINDS = ("FLOAT", "UNORM", "SNORM", "USCALED", "SSCALED", "UINT", "SINT")


class Vertex(Protocol):
    """A vertex program that has its attributes in registers."""

    code: Builder

    def word(self, element: int, number: int) -> Reg: ...
    def from_unsigned(self, x: Reg) -> Reg: ...


def _channel(number: int, component: int) -> tuple[int, int, str] | None:
    """First bit, bits and kind of a component; None: the format has none. Raises TooComplex."""
    layout = layout_of(number)
    is_known = layout is not None and bool(layout.channels) and layout.kind in KINDS
    if layout is not None and layout.kind == "FLOAT":
        is_known &= all(bits in (16, 32) for _, bits in layout.channels)
    if layout is None or not is_known:
        name = Format._value2member_map_.get(number, number)
        raise TooComplex("TGSI-008", f"vertices cannot have the format {name}")
    at = 0
    for letter, bits in layout.channels:
        if LETTERS.get(letter) == component:
            return at, bits, layout.kind
        at += bits
    return None


def words_of(number: int, component: int) -> int:
    """How many words of an element there must be for a component; 0: none."""
    found = _channel(number, component)
    return 0 if found is None else (found[0] + found[1] + 31) // 32


def component_of(vertex: Vertex, number: int, element: int, component: int) -> Operand:
    """A component of an element as a float (or, of pure integers, a word)."""
    found = _channel(number, component)
    if found is None:
        return ONE if component == 3 else ZERO
    at, bits, kind = found
    word = vertex.word(element, at // 32)
    code = vertex.code
    if bits == 32 and kind in ("FLOAT", "UINT", "SINT"):
        return word
    if bits == 8 and kind == "UNORM":
        return _unpacked(vertex, word, BYTES[at % 32 // 8])
    if bits == 16 and kind == "FLOAT":
        return _unpacked(vertex, word, HALVES[at % 32 // 16])
    is_signed = kind in ("SNORM", "SSCALED", "SINT")
    whole = _bits(vertex, word, at % 32, bits, is_signed)
    if kind in ("UINT", "SINT"):
        return whole
    if bits == 32 and not is_signed:
        value: Reg = vertex.from_unsigned(whole)
    else:
        value = code.make("itof", whole)
    if kind == "UNORM":
        return code.make("fmul", value, real(1.0 / ((1 << bits) - 1)))
    if kind == "SNORM":
        # (2 c + 1) / (2^b - 1), as OpenGL ES 2.0 and OpenGL 2.0 have it
        scaled = code.make("fmul", value, real(2.0 / ((1 << bits) - 1)))
        return code.make("fadd", scaled, real(1.0 / ((1 << bits) - 1)))
    return value


def _unpacked(vertex: Vertex, word: Reg, unpack: Unpack) -> Reg:
    op = Op("unpack", AddOp.OR, MulOp.V8MIN, [word])
    op.is_unpack = True
    op.unpacks = (int(unpack),)
    result = vertex.code.add(op)
    assert result is not None
    return result


def _bits(vertex: Vertex, word: Reg, at: int, bits: int, is_signed: bool) -> Reg:
    """Some bits of a word, with or without their sign."""
    code = vertex.code
    if bits == 32:
        return word
    if at + bits < 32:
        word = code.make("shl", word, _count(32 - at - bits))
    return code.make("asr" if is_signed else "shr", word, _count(32 - bits))


def _count(number: int) -> Operand:
    """A shift count; those that are no small immediates have an equal one modulo 32."""
    return Const(number if number < 16 else number - 32 & 0xFFFFFFFF)

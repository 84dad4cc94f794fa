"""The kinds of field that control lists and state records have beside plain integers."""

from __future__ import annotations

import struct
from typing import Any

from vc4lab.bits import Bits


class Address(Bits):
    """A bus address whose low `shift` bits are not stored; reading gives the full address."""

    __slots__ = ("shift",)

    def __init__(self, hi: int, lo: int, shift: int = 0, *, doc: str = "") -> None:
        super().__init__(hi, lo, doc=doc)
        self.shift = shift

    def extract(self, word: int) -> int:
        return ((word & self.mask) >> self.lo) << self.shift

    def insert(self, word: int, value: Any) -> int:
        address = int(value)
        if address & ((1 << self.shift) - 1):
            raise ValueError(f"{self.name}: address 0x{address:x} is not a multiple of {1 << self.shift}")
        return super().insert(word, address >> self.shift)

    def text(self, word: int) -> str:
        return f"0x{self.extract(word):08x}"


class Flags(Bits):
    """A set of bits, printed in hex."""

    __slots__ = ()

    def text(self, word: int) -> str:
        return f"0x{self.extract(word):x}"


class Float(Bits):
    """An IEEE single; a field of 16 bits holds its upper half (1-8-7 bits)."""

    __slots__ = ()

    def __init__(self, hi: int, lo: int, *, doc: str = "") -> None:
        super().__init__(hi, lo, doc=doc)
        if self.width not in (16, 32):
            raise ValueError("a float field has 16 or 32 bits")

    def extract(self, word: int) -> float:
        raw = ((word & self.mask) >> self.lo) << (32 - self.width)
        value: float = struct.unpack("<f", struct.pack("<I", raw))[0]
        return value

    def insert(self, word: int, value: Any) -> int:
        try:
            raw: int = struct.unpack("<I", struct.pack("<f", float(value)))[0]
        except OverflowError:
            raise ValueError(f"{self.name}: {value} is beyond single precision") from None
        return (word & ~self.mask) | ((raw >> (32 - self.width)) << self.lo)

    def text(self, word: int) -> str:
        return f"{self.extract(word):.7g}"


class Fixed(Bits):
    """A signed 12.4 fixed point number of sixteenths of a pixel; its value is the raw integer."""

    __slots__ = ()

    def __init__(self, hi: int, lo: int, *, doc: str = "") -> None:
        super().__init__(hi, lo, signed=True, doc=doc)

    def text(self, word: int) -> str:
        return f"{self.extract(word) / 16:g}px"

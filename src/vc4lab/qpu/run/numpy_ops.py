"""The reference interpreter: words are numpy uint32 arrays, masks bool arrays; floats by exact double
arithmetic and truncation.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from vc4lab.qpu.isa.ops import FTOI_LIMIT, Mask, Ops, Word

_EXP64_BIAS = 1023 - 127
_LANES = np.arange(16)
_QUAD_BASE = _LANES & ~3
_ALWAYS = np.ones(1, bool)


@lru_cache(maxsize=4096)
def _splat(value: int, lanes: int) -> Any:
    word = np.full(lanes, value & 0xFFFFFFFF, np.uint32)
    word.setflags(write=False)
    return word


def _truncate(value: Any) -> Any:
    """Bits of the single float nearest to the doubles `value` toward zero; 0 below 2^-126, Inf from
    2^128 on.
    """
    bits = value.view(np.int64)
    exponent = ((bits >> 52) & 0x7FF) - _EXP64_BIAS
    sign = (bits >> 32) & 0x80000000
    single = sign | (exponent << 23) | ((bits >> 29) & 0x7FFFFF)
    single = np.where(exponent >= 255, sign | 0x7F800000, single)
    return np.where(exponent <= 0, sign, single).astype(np.uint32)


@lru_cache(maxsize=64)
def _table(values: tuple[int, ...]) -> Any:
    return np.array(values, np.uint32)


class NumpyOps(Ops):
    """Ops over numpy arrays of any length (lane operations need 16).

    See `WideOps` for many runs of a program side by side.
    """

    def __init__(self, lanes: int = 16) -> None:
        self.lanes = lanes

    def const(self, value: int | Sequence[int]) -> Word:
        if isinstance(value, int):
            return _splat(value, self.lanes)
        return np.array([v & 0xFFFFFFFF for v in value], np.uint32)

    def always(self) -> Mask:
        return np.ones(self.lanes, bool)

    def product_exceeds(self, a: Word, b: Word, limit: int) -> Mask:
        return a.astype(np.uint64) * b.astype(np.uint64) > np.uint64(limit)

    def not_(self, a: Word) -> Word:
        return ~a

    def shr(self, a: Word, n: Word) -> Word:
        return a >> n

    def sar(self, a: Word, n: Word) -> Word:
        return (a.view(np.int32) >> n.view(np.int32)).view(np.uint32)

    def clz(self, a: Word) -> Word:
        _, exponent = np.frexp(a.astype(np.float64))
        return (32 - exponent).astype(np.uint32)

    def _bytes(self, a: Word, b: Word) -> tuple[Any, Any]:
        wide = np.int32
        first, second = np.ascontiguousarray(a), np.ascontiguousarray(b)
        return first.view(np.uint8).astype(wide), second.view(np.uint8).astype(wide)

    @staticmethod
    def _from_bytes(x: Any) -> Word:
        return x.astype(np.uint8).view(np.uint32)

    def bytes_add(self, a: Word, b: Word) -> Word:
        x, y = self._bytes(a, b)
        return self._from_bytes(np.minimum(x + y, 255))

    def bytes_sub(self, a: Word, b: Word) -> Word:
        x, y = self._bytes(a, b)
        return self._from_bytes(np.maximum(x - y, 0))

    def bytes_min(self, a: Word, b: Word) -> Word:
        return self._from_bytes(np.minimum(*self._bytes(a, b)))

    def bytes_max(self, a: Word, b: Word) -> Word:
        return self._from_bytes(np.maximum(*self._bytes(a, b)))

    def bytes_mul(self, a: Word, b: Word) -> Word:
        x, y = self._bytes(a, b)
        return self._from_bytes((x * y + 127) // 255)

    def gt(self, a: Word, b: Word) -> Mask:
        return a.view(np.int32) > b.view(np.int32)

    def ugt(self, a: Word, b: Word) -> Mask:
        return a > b

    def select(self, m: Mask, a: Word, b: Word) -> Word:
        return np.where(m, a, b)

    def mask_to_word(self, m: Mask) -> Word:
        return m.astype(np.uint32)

    def fadd_rtz(self, a: Word, b: Word) -> Word:
        x, y = a.view(np.float32).astype(np.float64), b.view(np.float32).astype(np.float64)
        total = x + y
        # Knuth's two-sum: what the double addition itself rounded away. If it points toward zero,
        # the true sum lies just below |total|, so step one unit down before truncating.
        part = total - x
        error = (x - (total - part)) + (y - part)
        down = (error != 0) & ((error < 0) != (total < 0))
        return _truncate((total.view(np.int64) - down).view(np.float64))

    def fmul_rtz(self, a: Word, b: Word) -> Word:
        return _truncate(a.view(np.float32).astype(np.float64) * b.view(np.float32).astype(np.float64))

    def itof_rtz(self, a: Word) -> Word:
        return _truncate(a.view(np.int32).astype(np.float64))

    def ftoi_trunc(self, a: Word) -> Word:
        return a.view(np.float32).astype(np.int32).view(np.uint32)

    def ftoi_low(self, a: Word) -> Word:
        inside = np.where((a & np.uint32(0x7FFFFFFF)) < FTOI_LIMIT, a, np.uint32(0))
        return inside.view(np.float32).astype(np.int64).astype(np.uint32)

    def lookup16(self, index: Word, table: Sequence[int]) -> Word:
        return _table(tuple(table))[index]

    def permute(self, a: Word, sources: Sequence[int]) -> Word:
        return a[..., list(sources)]

    def rotate(self, a: Word, n: int | Word, full: bool) -> Word:
        amount = n if isinstance(n, int) else n[..., :1].astype(np.int64)
        index = (_LANES - amount) & 15 if full else _QUAD_BASE | ((_LANES - amount) & 3)
        if index.ndim == 1:
            return a[..., index]
        return np.take_along_axis(np.broadcast_to(a, index.shape), index, axis=-1)

    def permute_mask(self, m: Mask, sources: Sequence[int]) -> Mask:
        return m[..., list(sources)]


@lru_cache(maxsize=4096)
def _one(value: int) -> Any:
    return _splat(value, 1)


class WideOps(NumpyOps):
    """Ops over words of shape (blocks, 16): many runs of a program side by side (`wide.py`).

    A word of shape (16,) is the same in all blocks, one of shape (1,) in all lanes as well.
    """

    def const(self, value: int | Sequence[int]) -> Word:
        return _one(value) if isinstance(value, int) else super().const(value)

    def always(self) -> Mask:
        return _ALWAYS

    def _bytes(self, a: Word, b: Word) -> tuple[Any, Any]:
        return super()._bytes(*np.broadcast_arrays(a, b))

    def permute(self, a: Word, sources: Sequence[int]) -> Word:
        return super().permute(a, sources) if a.shape[-1] > 1 else a

    def rotate(self, a: Word, n: int | Word, full: bool) -> Word:
        return super().rotate(a, n, full) if a.shape[-1] > 1 else a

    def permute_mask(self, m: Mask, sources: Sequence[int]) -> Mask:
        return super().permute_mask(m, sources) if m.shape[-1] > 1 else m


def lane_of(word: Word, lane: int) -> Any:
    """One lane of a wide word: of each block, or of all."""
    return word[..., lane if word.shape[-1] > 1 else 0]

"""Eager runs of a kernel side by side: one pass through its source computes for all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from vc4lab.simd.eager import SIGNED, WORDS, Eager
from vc4lab.simd.types import Type, ptr
from vc4lab.simd.value import Lanes, Value, const_bits

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Diverged(Exception):  # noqa: N818 - not an error: the runs are done one by one
    """Runs want different things where only one can be done."""


class WideEager(Eager):
    """Carries out each operation for many runs.

    The words of a vector have shape (runs, lanes), or (lanes,) if all runs have the same; a scalar
    is the same in all. Of what `alloca` gives, each run has its own. Raises Diverged where runs
    differ in a scalar.

    rows: which of all runs these are.
    """

    def __init__(self, float_mode: str, rows: NDArray[np.intp]) -> None:
        super().__init__(float_mode, {})
        self.rows = rows
        self.memories: list[tuple[int, NDArray[np.uint8]]] = []
        """Address of each piece of memory that `alloca` gave, and the bytes of each run."""

    def some(self, rows: NDArray[np.intp]) -> WideEager:
        """For some of the runs; they go on with the memory they have."""
        new = WideEager(self.float_mode, self.rows[rows])
        new.memories = self.memories
        return new

    def alloca(self, size: int, align: int) -> Value:
        memory = np.zeros((len(self.rows), size), np.uint8)
        self.memories.append((memory.ctypes.data, memory))
        return const_bits(ptr, memory.ctypes.data)

    def bytes_at(self, place: Value) -> tuple[NDArray[np.uint8], int] | None:
        """The memory that each run has of its own at an address, and how far into it."""
        address = place._bits or 0
        for start, memory in self.memories:
            if start <= address < start + memory.shape[1]:
                return memory, address - start
        return None

    # -- what all runs have in common
    def value(self, type_: Type, words: Any) -> Value:  # type: ignore[override]
        if type_.lanes:
            return Lanes(type_, "", words)
        return const_bits(type_, int(_common(words)[0]))

    def common(self, value: Any) -> Any:
        """A value that is the same in all runs."""
        if isinstance(value, Lanes) and (words := self.words(value)).ndim > 1:
            return Lanes(value.type, "", _common(words))
        return value

    def lane(self, x: Value, index: Any) -> Value:
        number = (index.constant if isinstance(index, Value) else index) % x.type.lanes
        return const_bits(x.type.elem, int(_common(self.words(x)[..., number : number + 1])[0]))

    # -- memory
    def load(self, type_: Type, place: Value) -> Value:
        own = self.bytes_at(place)
        if own is None:
            return super().load(type_, place)
        memory, at = own
        return self.value(type_, memory[self.rows, at : at + type_.size].view(WORDS[type_.bits]))

    def store(self, place: Value, value: Value) -> None:
        own = self.bytes_at(place)
        if own is None:
            super().store(place, self.common(value))
        elif self.trace.block is not None:
            memory, at = own
            data = np.ascontiguousarray(self.words(value)).view(np.uint8)
            memory[self.rows, at : at + data.shape[-1]] = data

    def gather(self, type_: Type, base: Value, offsets: Value | None, mask: Value, default: Value) -> Value:
        own = self.bytes_at(base)
        if own is None:
            shared = (None if offsets is None else self.common(offsets), mask, default)
            return super().gather(type_, base, *map(self.common, shared))
        memory, at = own
        lanes, places = self._lanes(type_, at, offsets, mask)
        found = memory[self.rows[:, None, None], places].view(WORDS[type_.bits])[..., 0]
        return Lanes(type_, "", np.where(lanes, found, self.words(default)))

    def scatter(self, base: Value, offsets: Value | None, value: Value, mask: Value) -> None:
        own = self.bytes_at(base)
        if own is None:
            shared = (None if offsets is None else self.common(offsets), value, mask)
            super().scatter(base, *map(self.common, shared))
        elif self.trace.block is not None:
            memory, at = own
            lanes, places = self._lanes(value.type, at, offsets, mask)
            words = np.broadcast_to(self.words(value), lanes.shape)
            data = np.ascontiguousarray(words)[..., None].view(np.uint8)
            runs = np.broadcast_to(self.rows[:, None], lanes.shape)[lanes]
            memory[runs[:, None], places[lanes]] = data[lanes]

    def _lanes(self, type_: Type, at: int, offsets: Value | None, mask: Value) -> tuple[Any, Any]:
        """(lanes in the mask, offset of each byte of each lane), of all runs."""
        size, shape = type_.bits // 8, (len(self.rows), type_.lanes)
        lanes = np.broadcast_to(self.words(mask), shape)
        if offsets is None:
            steps = np.arange(type_.lanes) * size
        else:
            words = self.words(offsets)
            steps = words.view(SIGNED[words.dtype]).astype(np.int64)
        first = np.where(lanes, at + np.broadcast_to(steps, shape), 0)
        return lanes, first[..., None] + np.arange(size)


def _common(words: Any) -> Any:
    if words.ndim == 1:
        return words
    if (words != words[:1]).any():
        raise Diverged
    return words[0]


def _narrow(name: str) -> Any:
    """An operation that is only done for what all runs have in common."""
    method = getattr(Eager, name)
    return lambda self, *operands: method(self, *map(self.common, operands))


for _name in ("divide", "intrinsic", "insert", "shuffle", "permute", "mask_integer"):
    setattr(WideEager, _name, _narrow(_name))

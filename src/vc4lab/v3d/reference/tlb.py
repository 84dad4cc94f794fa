"""The tile buffer's side of a fragment program, compiled on its own for the reference interpreter.

What an access does is what the environment of compiled programs does with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from vc4lab.qpu.program.program import Program
from vc4lab.simd.kernel import Function, staged
from vc4lab.simd.members import i32, i32x16, ptr
from vc4lab.simd.memory import load, store, var
from vc4lab.simd.native import NativeFunction, build
from vc4lab.simd.struct import Struct
from vc4lab.simd.value import Value, const
from vc4lab.v3d.fragment.counting import CountingEnvironment
from vc4lab.v3d.fragment.shader import BlockInputs, DrawConstants, FragmentEnvironment, flags_part
from vc4lab.v3d.state.tile_context import FragmentBatch, FragmentKey, FragmentQueue, TileContext
from vc4lab.v3d.tlb.depth_stencil import STENCIL_CELLS, StencilState
from vc4lab.v3d.tlb.samples import flags_word, sample_masks

WRITE_Z, WRITE_COLOUR, WRITE_MASK, WRITE_STENCIL, WRITE_FLAGS, WRITE_REVERSE = range(6)
LOAD_COLOUR, LOAD_MASK, LOAD_COVERAGE = range(6, 9)
"""Kinds of `TileAccess`."""

EACH_SAMPLE = -1
"""`TileAccess.sample` of a write of all samples."""

_LANE_BYTES = 64


class TileAccess(Struct):
    """One access of a program to the tile buffer or to its pixels' flags, made by many blocks.

    `values` and `masks` point to 16 words for each block: what is written (or read) and, not 0,
    the lanes that take part. `sample` and `word`: which part of a pixel's colour is meant.
    """

    kind = i32
    sample = i32
    word = i32
    reserved = i32
    values = ptr
    masks = ptr


@lru_cache(maxsize=64)
def tile_accesses(key: FragmentKey, coverage: bool) -> NativeFunction:
    """Native `(context, queue, accesses, count, rows, first, end)`.

    Blocks `first` … `end` - 1 of `rows` (numbers of blocks of the queue; `values` and `masks` have
    their order) make their accesses one block after the other. key: `FragmentKey.accesses`;
    coverage: of a program that reads it.
    """

    def body(*arguments: Value) -> Any:
        return _all_blocks(key, coverage, *arguments)

    entry = Function((ptr, ptr, ptr, i32, ptr, i32, i32), None, body, name="accesses")
    return build("tlb", {"accesses": entry}, key=f"tlb-{key!r} {coverage}")["accesses"]


@staged
def _all_blocks(
    key: FragmentKey, coverage: bool, context_pointer: Value, queue: Value, accesses: Value,
    count: Value, rows: Value, first: Value, end: Value,
) -> None:  # fmt: skip
    context = TileContext.at(context_pointer)
    while first < end:
        row = load(i32, rows + first * 4)
        batch = FragmentBatch.at(queue + (row * FragmentBatch.size + FragmentQueue.size))
        number = const(i32, 0)
        while number < count:
            access = TileAccess.at(accesses + number * TileAccess.size)
            values, masks = access.values + first * _LANE_BYTES, access.masks + first * _LANE_BYTES
            _one(key, coverage, context, batch, access, values, masks)
            number = number + 1
        first = first + 1


@staged
def _one(
    key: FragmentKey, coverage: bool, context: TileContext, batch: FragmentBatch,
    access: TileAccess, values: Value, masks: Value,
) -> None:  # fmt: skip
    kind = access.kind
    block = _block(key, context, batch)
    single = _Access(access.sample, access.word)
    value, mask = load(i32x16, values), load(i32x16, masks) != 0
    if kind == WRITE_Z:
        block.tlb_z(value, mask)
        _keep_flags(block, batch)
    elif kind == WRITE_COLOUR:
        if access.sample == EACH_SAMPLE:
            block.accesses = _Access(None, access.word)
            block.tlb_colour(value, mask, True)
        else:
            block.accesses = single
            block.tlb_colour(value, mask, False)
    elif kind == LOAD_COLOUR:
        block.accesses = single
        store(values, block.tlb_colour_load())
    elif kind == WRITE_STENCIL:
        block.tlb_stencil(value)
        for k, name in enumerate(STENCIL_CELLS):
            store(batch.stencil + 4 * k, getattr(block.stencil, name).get())
    elif kind == WRITE_FLAGS:
        block.set_ms_flags(value, mask)
        _keep_flags(block, batch)
    elif kind == WRITE_REVERSE:
        block.set_rev_flag(value, mask)
        batch.reverse = block.reverse.get().zext(i32)
    elif key.vg_mask and kind == WRITE_MASK:
        block.tlb_alpha_mask(value, mask)
    elif key.vg_mask and kind == LOAD_MASK:
        store(values, block.tlb_alpha_load())
    elif coverage and kind == LOAD_COVERAGE:
        store(values, block.tlb_coverage_load())


@dataclass
class _Access:
    """In place of `ColourAccesses`: the program has counted."""

    sample: Value | None
    word: Value

    def load(self) -> tuple[Value | None, Value]:
        return self.sample, self.word

    def write(self, all_samples: bool) -> tuple[Value | None, Value]:
        return self.sample, self.word


def _block(key: FragmentKey, context: TileContext, batch: FragmentBatch) -> FragmentEnvironment:
    """The environment of a program as a block's accesses have left it."""
    nothing = const(i32x16, 0)

    def masks(name: str) -> list[Value]:
        return sample_masks(load(i32x16, batch.field_ptr(name)), key.layout.samples)

    def plane(name: str) -> Value:
        return context.field_ptr(name) + batch.place

    steps = [load(i32, batch.z_steps + 4 * k) for k in range(4)] if key.multisample else None
    inputs = BlockInputs(
        nothing, nothing, masks("flags"), batch.reverse != 0, nothing, nothing, [],
        plane("colour"), plane("zs"), plane("mask"), steps,
    )  # fmt: skip
    zero = const(i32, 0)
    constants = DrawConstants(key, Program(()), zero, zero, [])
    block: FragmentEnvironment
    if key.counting:
        block = counting = CountingEnvironment(constants, inputs, var(i32), context)
        counting.valid = batch.valid
    else:
        block = FragmentEnvironment(constants, inputs, var(i32))
    if flags_part(key.unknowns):
        block.asked = [var(mask.type, mask) for mask in masks("asked")]
    cells = (var(i32, load(i32, batch.stencil + 4 * k)) for k in range(len(STENCIL_CELLS)))
    block.stencil = StencilState(*cells)
    return block


def _keep_flags(block: FragmentEnvironment, batch: FragmentBatch) -> None:
    store(batch.flags, flags_word([cell.get() for cell in block.flags]))
    store(batch.asked, flags_word([cell.get() for cell in block.asked]))

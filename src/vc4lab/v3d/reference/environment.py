"""The view of a group of a queue's blocks in the reference interpreter; accesses it still has to make.

See `queue.py`.
"""

from __future__ import annotations

import copy
import ctypes
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from vc4lab.qpu.isa.operations import Mux, Signal
from vc4lab.qpu.isa.registers import Read, Write
from vc4lab.qpu.run.environment import Noted
from vc4lab.qpu.run.wide import WideEnvironment, rows_of
from vc4lab.simd.eager_wide import Diverged
from vc4lab.v3d.reference import tlb
from vc4lab.v3d.reference.tlb import TileAccess
from vc4lab.v3d.state.tile_context import DrawParams, TileContext
from vc4lab.v3d.tlb.samples import ColourAccesses
from vc4lab.v3d.tmu.kernels import lookup_at, sample_many
from vc4lab.v3d.tmu.late_textures import late_textures_at
from vc4lab.v3d.tmu.requests import Requests, TexturingEnvironment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from vc4lab.qpu.program.program import Program
    from vc4lab.qpu.run.plan import Plan
    from vc4lab.qpu.run.wide import Lanes, Words
    from vc4lab.v3d.reference.draw import ReferenceDraw
    from vc4lab.v3d.state.tile_context import FragmentKey

    Rows = NDArray[np.intp]


TILE_BUFFER_LOADS = frozenset(
    {Signal.LOAD_COVERAGE, Signal.LOAD_COLOUR, Signal.LOAD_COLOUR_END, Signal.LOAD_ALPHA_MASK}
)
"""Signals that bring something of the tile buffer."""


_ZERO = np.zeros(1, np.uint32)

_QUAD_BITS = np.array([0, 4, 8, 12], np.uint32)
"""Bits of `FragmentBatch.valid`."""


class PendingAccess(NamedTuple):
    """An access to the tile buffer that is still to be made, in the order of a group's blocks."""

    kind: int
    sample: int
    word: int
    values: Words
    masks: Lanes | None


class AccessTable(NamedTuple):
    """Noted accesses as native code takes them; `keep` are the arrays they point to."""

    accesses: Any
    length: int
    rows: NDArray[np.int32]
    keep: list[Any]


@dataclass(frozen=True)
class ProgramTraits:
    """Traits of a program that decide which of its blocks can run together.

    looks: it reads the tile buffer, or the flags that a depth test left.
    coverage: it reads coverage. moves_uniforms: it writes the uniforms address.
    whole_blocks: lanes without coverage may matter to others.
    """

    looks: bool
    coverage: bool
    moves_uniforms: bool
    parts_first: bool
    whole_blocks: bool


@lru_cache(maxsize=256)
def program_traits(program: Program) -> ProgramTraits:
    """The traits of a program."""
    signals = {word >> 60 for word in program.words}
    changes = program.writes(Write.TLB_Z) or program.writes(Write.FLAGS)
    looks = bool(signals & TILE_BUFFER_LOADS) or (changes and program.reads(Read.FLAGS))
    rotates = any(getattr(i, "rotation", None) is not None for i in program.instructions)
    return ProgramTraits(
        looks,
        Signal.LOAD_COVERAGE in signals,
        program.writes(Write.UNIFORMS_ADDRESS),
        looks and program.has_branches,
        program.has_branches or rotates or program.writes(Write.FLAGS),
    )


class SharedQueue(Protocol):
    """The common part of all groups of a queue, as one group sees it."""

    draw: ReferenceDraw
    key: FragmentKey
    context: int
    params: int
    traits: ProgramTraits
    texture_quads: int
    done: list[QueueEnvironment]

    def column(self, name: str, count: int = 16, start: int = 0) -> Words:
        """Words of a member of every block."""

    def groups(self, rows: Rows) -> list[Rows]:
        """Blocks in groups without common quads."""

    def call(self, table: AccessTable, first: int, end: int) -> None:
        """Makes all accesses of a table for some blocks."""


class QueueEnvironment(TexturingEnvironment, WideEnvironment):
    """A group of blocks. Words are uint32 arrays of shape (blocks, 16), or as `WideOps` says."""

    def __init__(self, shared: SharedQueue, rows: Rows) -> None:
        self.shared = shared
        self.rows = rows
        self.blocks = len(rows)
        self.alone = self.blocks == 1
        """Whether no block of the group overlaps another, and no other group is under way."""
        self.accesses = ColourAccesses(shared.key.layout)
        self.pointer = int(shared.column("uniforms", 1)[0, 0])
        self.pending: list[PendingAccess] = []
        self._parting = self._flags_changed = False
        self._varying = 0
        self.requests = self._new_requests()

    def _new_requests(self) -> Requests[Words]:
        return Requests(
            self.shared.draw.requests,
            len(self.shared.key.textures),
            sample=self._sample,
            lookup=lambda addresses: lookup_at(self.shared.draw.memory.base, addresses),
            take_uniform=self.uniform,
            zero=lambda: _ZERO,
        )

    # -- groups ------------------------------------------------------------------------------

    def partition(self, p: Plan) -> Sequence[Rows] | None:
        if self.alone or not (self.shared.traits.parts_first or self._looks(p)):
            return None
        groups = self.shared.groups(self.rows)
        if len(groups) == 1:
            self.alone = True
            return None
        self._parting = True
        return [np.searchsorted(self.rows, group) for group in groups]

    def _looks(self, p: Plan) -> bool:
        """Whether an instruction asks for what noted accesses might have changed."""
        if p.kind != "alu":
            return False
        if p.signal in TILE_BUFFER_LOADS:
            return True
        asks = (p.raddr_a == Read.FLAGS and Mux.A in p.muxes) or (
            p.raddr_b == Read.FLAGS and Mux.B in p.muxes
        )
        return asks and self._flags_changed

    def select(self, rows: Rows) -> QueueEnvironment:
        new = copy.copy(self)
        new.rows, new.blocks = self.rows[rows], len(rows)
        new.alone = self.alone or self._parting
        new._parting = False
        new.accesses = copy.copy(self.accesses)
        new.pending = [
            access._replace(
                values=rows_of(access.values, rows),
                masks=None if access.masks is None else rows_of(access.masks, rows),
            )
            for access in self.pending
        ]
        new.requests = new._new_requests()
        shape, values = self.requests.noted()
        new.requests.recall(Noted(shape, tuple(rows_of(value, rows) for value in values)))
        return new

    def program_end(self) -> None:
        if self.alone:
            self.make()
        else:
            self.shared.done.append(self)

    # -- inputs ------------------------------------------------------------------------------

    def _column(self, name: str, count: int = 16, start: int = 0) -> Words:
        return self.shared.column(name, count, start)[self.rows]

    def _lanes(self, column: Words) -> Words:
        """One word of each block, in all its lanes."""
        return np.repeat(column, 16, axis=1)

    def initial_registers(self) -> dict[tuple[str, int], Words]:
        return {("a", 15): self._column("w"), ("b", 15): self._column("z")}

    def uniform(self) -> Words:
        word = self.shared.draw.memory.u32(self.pointer)
        self.pointer = (self.pointer + 4) & 0xFFFFFFFF
        return np.array([word], np.uint32)

    def uniforms_address(self, value: Words, relative: bool, mask: Lanes) -> None:
        target, written = value[..., 0], mask[..., 0]
        if not written.any():
            return
        if not written.all() or (target != target.flat[0]).any():
            raise Diverged
        base = self.pointer if relative else 0
        self.pointer = (base + int(target.flat[0])) & 0xFFFFFFFF

    def varying(self) -> tuple[Words, Words]:
        number = self._varying
        self._varying += 1
        if number >= int(self.shared.column("n_varyings", 1)[0, 0]):
            return _ZERO, _ZERO
        slopes = self._column("varyings_vp", 16, 16 * number)
        return slopes, self._lanes(self._column("varyings_c", 1, number))

    def x_coord(self) -> Words:
        return self._column("x")

    def y_coord(self) -> Words:
        return self._column("y")

    def element_number(self) -> Words:
        return np.arange(16, dtype=np.uint32)

    def qpu_number(self) -> Words:
        return _ZERO

    def ms_flags(self) -> Words:
        if self._flags_changed:
            self.make()
        flags = self._column("asked")
        return flags & np.uint32(1) if self.shared.key.one_flag else flags

    def rev_flag(self) -> Words:
        if self._flags_changed:
            self.make()
        return self._lanes(self._column("reverse", 1))

    def set_ms_flags(self, value: Words, mask: Lanes) -> None:
        self._note(tlb.WRITE_FLAGS, value, mask)

    def set_rev_flag(self, value: Words, mask: Lanes) -> None:
        self._note(tlb.WRITE_REVERSE, value, mask)

    # -- texture unit ------------------------------------------------------------------------

    def tmu_write(self, unit: int, register: str, value: Words, mask: Lanes, site: int) -> None:
        if register == "s" and self.shared.key.counting:
            valid = self._column("valid", 1)
            self.shared.texture_quads += int((valid >> _QUAD_BITS & np.uint32(1)).sum())
        super().tmu_write(unit, register, value, mask, site)

    def _sample(self, number: int, coordinates: list[Words], parameters: list[Words]) -> list[Words]:
        kind, base = self.shared.key.textures[number], self.shared.draw.memory.base
        if kind is None:
            place = self.shared.params + DrawParams.late.offset
            table = late_textures_at(ctypes.c_uint64.from_address(place).value)
            return table.sample(base, coordinates, parameters, self.blocks)
        place = self.shared.params + DrawParams.textures.offset + 8 * number
        descriptor = ctypes.c_uint64.from_address(place).value
        return sample_many(kind, descriptor, base, coordinates, self.blocks)

    # -- tile buffer -------------------------------------------------------------------------

    def _note(
        self, kind: int, values: Words, masks: Lanes | None, place: tuple[int | None, int] = (0, 0)
    ) -> None:
        sample, word = place
        self._flags_changed |= kind in (tlb.WRITE_Z, tlb.WRITE_FLAGS, tlb.WRITE_REVERSE)
        self.pending.append(
            PendingAccess(kind, tlb.EACH_SAMPLE if sample is None else sample, word, values, masks)
        )

    def table(self) -> AccessTable:
        """The noted accesses as native code takes them."""
        shape = self.blocks, 16
        block: Any = TileAccess.python
        accesses = (block * len(self.pending))()
        keep: list[Any] = []
        for access, (kind, sample, word, values, masks) in zip(accesses, self.pending, strict=True):
            access.kind, access.sample, access.word = kind, sample, word
            lanes = np.empty(shape, np.uint32)
            lanes[...] = True if masks is None else masks
            words = values
            if kind < tlb.LOAD_COLOUR:
                words = np.empty(shape, np.uint32)
                words[...] = values
            access.values, access.masks = words.ctypes.data, lanes.ctypes.data
            keep += [words, lanes]
        return AccessTable(accesses, len(self.pending), self.rows.astype(np.int32), keep)

    def make(self) -> None:
        """Makes the noted accesses."""
        if self.pending:
            self.shared.call(self.table(), 0, self.blocks)
            self.pending.clear()

    def _load(self, kind: int, place: tuple[int, int] = (0, 0)) -> Words:
        result = np.zeros((self.blocks, 16), np.uint32)
        self._note(kind, result, None, place)
        self.make()
        return result

    def tlb_z(self, value: Words, mask: Lanes) -> None:
        self._note(tlb.WRITE_Z, value, mask)

    def tlb_stencil(self, value: Words) -> None:
        self._note(tlb.WRITE_STENCIL, value, None)

    def tlb_colour(self, value: Words, mask: Lanes, all_samples: bool) -> None:
        self._note(tlb.WRITE_COLOUR, value, mask, self.accesses.write(all_samples))

    def tlb_colour_load(self) -> Words:
        return self._load(tlb.LOAD_COLOUR, self.accesses.load())

    def tlb_alpha_mask(self, value: Words, mask: Lanes) -> None:
        if self.shared.key.vg_mask:
            self._note(tlb.WRITE_MASK, value, mask)

    def tlb_alpha_load(self) -> Words:
        return self._load(tlb.LOAD_MASK) if self.shared.key.vg_mask else _ZERO

    def tlb_coverage_load(self) -> Words:
        return self._load(tlb.LOAD_COVERAGE)

    def host_interrupt(self, value: Words, mask: Lanes) -> None:
        if bool(np.any((value != 0) & mask)):
            place = self.shared.context + TileContext.interrupts.offset
            ctypes.c_uint8.from_address(ctypes.c_uint64.from_address(place).value).value = 1

    def scoreboard_wait(self) -> None:
        pass

    def scoreboard_unlock(self) -> None:
        pass

"""The table in which native code finds compiled vertex pipelines (see `shader_lookup`)."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from vc4lab.memory import MEMORY_MASK, MEMORY_SIZE
from vc4lab.v3d.vertex.context import VertexContext
from vc4lab.v3d.vertex.shader_lookup import (
    OCCUPIED,
    ROWS_AT,
    SELECTED_AT,
    SIZE_AT,
    VERTEX_AT,
    ShaderEntry,
    ShaderLookup,
)
from vc4lab.v3d.vertex.shared_shading import Sharing

if TYPE_CHECKING:
    from vc4lab.simd.team import Team
    from vc4lab.v3d.checks.addresses import AddressCheck
    from vc4lab.v3d.vertex.pipeline import VertexPipeline

SLOTS = 2048
"""Places in the table."""

MAX_PIPELINES = SLOTS // 2
"""Pipelines kept; with one more the table is emptied."""

_WORD = (1 << 64) - 1
_MULTIPLIER = 0x61C8864680B583EB


def slot(key: int, sizes: int, offsets: int) -> int:
    """Where native code looks first (`shader_lookup.shader_slot`)."""
    mixed = ((key ^ sizes * 31 ^ offsets * 17) & _WORD) * _MULTIPLIER & _WORD
    return (mixed >> 40) & (SLOTS - 1)


class ShaderTable:
    """Compiled pipelines by the contents of their shader records."""

    def __init__(self, team: Team) -> None:
        self._entries = (ctypes.c_char * (SLOTS * ShaderEntry.size))()
        self._places: dict[tuple[int, int, int], int] = {}
        self._keep: dict[int, Any] = {}
        self.vertex = VertexContext()
        self.sharing = Sharing(team, self.vertex.address)
        self._context: ShaderLookup | None = None

    def attach(self, context: ShaderLookup, memory_base: int, addresses: AddressCheck) -> None:
        """Makes the table that of a native context (`ShaderLookup`)."""
        context.pages, context.ram_bytes = addresses.pages, addresses.ram_bytes
        context.memory = self.vertex.memory = memory_base
        context.shaders = ctypes.addressof(self._entries)
        context.shader_mask = SLOTS - 1
        context.vertex = self.vertex.address
        context.shared = self.sharing.state.address
        self._context = context

    @property
    def instructions(self) -> int:
        """Of the batches that native code has shaded by itself since the start."""
        return 0 if self._context is None else int(self._context.instructions)

    def enter(self, pipeline: VertexPipeline, address: int, *, vertex: bool) -> None:
        """Native code may use the pipeline of the program at `address` from now on.

        Left to Python are the interpreter, programs with findings to be reported, with textures,
        and what lies across the end of memory.
        """
        key, native = pipeline.key, pipeline.native
        code = b"".join(word.to_bytes(8, "little") for word in key.words)
        whole = (address & MEMORY_MASK) + len(code) <= MEMORY_SIZE
        whole &= not pipeline.program.pieces
        if native is None or pipeline.warnings or key.textures or not whole:
            return
        selected = sizes = offsets = 0
        for number, size, offset in key.attributes:
            selected |= 1 << number
            sizes |= (size - 1) << 8 * number
            offsets |= offset << 8 * number
        first = OCCUPIED | vertex << VERTEX_AT | key.rows << ROWS_AT | selected << SELECTED_AT
        first |= key.total_size << SIZE_AT | address & 0xFFFFFFFF
        entry = self._entry((first, sizes, offsets))
        copy = ctypes.create_string_buffer(code, len(code))
        entry.first, entry.exact = native.address, pipeline.exact_address
        entry.code, entry.code_bytes = ctypes.addressof(copy), len(code)
        entry.reads_uniforms = bool(pipeline.program.uniform_sites)
        self._keep[entry.address] = pipeline, copy

    def clear(self) -> None:
        """Empties the table; what is still used is entered again."""
        ctypes.memset(self._entries, 0, ctypes.sizeof(self._entries))
        self._places.clear()
        self._keep.clear()

    def _entry(self, words: tuple[int, int, int]) -> ShaderEntry:
        """The table's entry with this key, made if new."""
        place = self._places.get(words)
        size = ShaderEntry.size
        if place is None:
            if len(self._places) >= MAX_PIPELINES:
                self.clear()
            taken = set(self._places.values())
            place = slot(*words)
            while place in taken:
                place = (place + 1) & (SLOTS - 1)
            self._places[words] = place
        entry = ShaderEntry.python.from_buffer(self._entries, place * size)
        entry.key, entry.sizes, entry.offsets = words
        return entry

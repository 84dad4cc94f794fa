"""GPU memory as the driver divides it: buffers and textures for long, lists and queue for one frame.

A texture's levels lie as the texture unit expects them (`images/tiling.py`, `mip_chain`); faces of
a cube follow each other. What only is shown, and never sampled in place, is in raster order. What
has several samples lies as the tile buffer stores it as a whole, tile after tile (hardware
reference 7.11).
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

from vc4lab.images.tile_kernels import TEXEL_BITS, copy_box
from vc4lab.images.tiling import MipLevel, Tiling, mip_chain, round_up
from vc4lab.memory import MEMORY_SIZE, GuestMemory
from vc4lab.mesa.protocol.codes import Bind, Target
from vc4lab.mesa.protocol.formats import Format
from vc4lab.mesa.protocol.limits import SAMPLES
from vc4lab.mesa.store.resources import Box, Refused, Resource, mean_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vc4lab.mesa.protocol.messages import ResourceCreate, ResourceCreate2

MEBIBYTE = 1 << 20
TILE_MEMORY = MEBIBYTE
"""Memory for tile state and tile lists of a frame; it must not cross a boundary of 256 MiB."""
TILE_MEMORY_BYTES = 64 * MEBIBYTE
ARENA = TILE_MEMORY + TILE_MEMORY_BYTES
ARENA_BYTES = 144 * MEBIBYTE
STATES = ARENA + ARENA_BYTES
STATES_BYTES = 16 * MEBIBYTE
"""For blocks of state, which stay from frame to frame."""
HEAP = STATES + STATES_BYTES
ALIGNMENT = 64
"""Bytes; of allocations of a page and more, a page."""
PAGE = 4096
READ_AHEAD = 256
"""Bytes after each allocation that no other one has: fetches round up to words and utiles."""


class OutOfMemory(Exception):  # noqa: N818 - a fact about the memory
    """There is no room; the text says for how many bytes."""


class Heap:
    """Allocations that last until they are freed. Freed ranges are used again by their size."""

    def __init__(self, start: int, end: int) -> None:
        self.start = start
        self.end = end
        self._next = start
        self._free: dict[int, list[int]] = {}
        self._sizes: dict[int, int] = {}

    @property
    def used(self) -> int:
        """Bytes that are allocated."""
        return sum(self._sizes.values())

    def allocate(self, size: int) -> int:
        """The address of so many bytes, aligned to a page if it is one or more.

        Raises OutOfMemory.
        """
        unit = PAGE if size >= PAGE else ALIGNMENT
        size = round_up(max(size, 1) + READ_AHEAD, unit)
        kept = self._free.get(size)
        if kept:
            address = kept.pop()
        else:
            address = self._fresh(size, unit)
        self._sizes[address] = size
        return address

    def free(self, address: int) -> None:
        """Give an allocation back."""
        self._free.setdefault(self._sizes.pop(address), []).append(address)

    def _fresh(self, size: int, unit: int) -> int:
        address = round_up(self._next, unit)
        if address + size <= self.end:
            self._next = address + size
            return address
        return self._joined(size, unit)

    def _joined(self, size: int, unit: int) -> int:
        """From the first gap between allocations that is large enough; all free ranges anew."""
        end = self.start
        found = -1
        self._free.clear()
        for address, length in sorted([*self._sizes.items(), (self.end, 0)]):
            place = round_up(end, unit)
            if found < 0 and place + size <= address:
                found, place = place, place + size
            # What is left of a gap is used for allocations of its size only; the next search
            # finds it as a whole again.
            end = address + length
        if found < 0:
            raise OutOfMemory(f"no room for {size} bytes of GPU memory; {self.used} are used")
        return found


class Arena:
    """Allocations that all end together, when the work that uses them is done.

    Attributes
    ----------
    turn
        How often it was emptied.
    """

    def __init__(self, start: int, size: int) -> None:
        self.start = start
        self.end = start + size
        self.next = start
        self.turn = 0

    @property
    def left(self) -> int:
        """Bytes."""
        return self.end - self.next

    def allocate(self, size: int, alignment: int = 16) -> int:
        """The address of so many bytes. Raises OutOfMemory."""
        address = round_up(self.next, alignment)
        if address + size > self.end:
            raise OutOfMemory(f"a frame's lists and data need more than {self.end - self.start}")
        self.next = address + size
        return address

    def reset(self) -> None:
        """All of it is free again."""
        self.next = self.start
        self.turn += 1


class GpuMemory:
    """Guest memory of the V3D: its heap, the arena of a frame, and that of blocks of state."""

    def __init__(self) -> None:
        self.guest = GuestMemory()
        self.heap = Heap(HEAP, MEMORY_SIZE)
        self.arena = Arena(ARENA, ARENA_BYTES)
        self.states = Arena(STATES, STATES_BYTES)

    def keep(self, data: bytes, alignment: int = 16) -> int:
        """Bytes in the arena; their address. Raises OutOfMemory."""
        address = self.arena.allocate(len(data), alignment)
        self.guest.write(address, data)
        return address

    def keep_state(self, data: bytes) -> int:
        """Bytes of a block of state; their address. Raises OutOfMemory."""
        address = self.states.allocate(len(data))
        self.guest.write(address, data)
        return address

    def store(self, data: bytes) -> int:
        """Bytes in the heap; their address. Raises OutOfMemory."""
        address = self.heap.allocate(len(data))
        self.guest.write(address, data)
        return address

    def host(self, address: int) -> int:
        """The host's address of a place."""
        return self.guest.base + address


FLAT_TARGETS = (Target.TEXTURE_1D, Target.TEXTURE_2D, Target.TEXTURE_RECT)
TILE = 32
"""Pixels of a tile with several samples a pixel, each way; a quad is 2 x 2 of them."""
QUADS = TILE // 2
WORD = 4
TILE_BYTES = TILE * TILE * SAMPLES * WORD
RASTER_ROW = 16
"""Bytes; rows of a picture in raster order begin at multiples of it, where the tile buffer is
to find them."""


class GpuResource(Resource):
    """A buffer or texture in GPU memory, zero at first. Raises Refused.

    Attributes
    ----------
    number
        The driver's, which no other resource had or will have.
    address
        Guest address of a buffer's first byte, or of level 0 of the first face.
    chain
        Each level's place relative to level 0; empty for a buffer.
    layer_bytes
        From face to face.
    tiles
        Columns and rows of tiles of several samples.
    counter
        The cell in host memory that holds `changes`, for native code.
    stencil
        The value that the stencil of all samples has; None: not known, or there is none.
    used
        The bytes that waiting draws read of a buffer: the turn of the frames in which they do,
        the first byte, the end (`draws/placing.py` writes it).
    """

    def __init__(self, asked: ResourceCreate | ResourceCreate2, memory: GpuMemory, number: int) -> None:
        self.is_freed = True
        super().__init__(asked)
        self.number = number
        self._memory = memory
        self.counter = ctypes.c_int64()
        self.used = (ctypes.c_uint32 * 3)()
        self.stencil: int | None = None
        self.chain: tuple[MipLevel, ...] = ()
        self.layer_bytes = 0
        self.tiles = round_up(self.width, TILE) // TILE, round_up(self.height, TILE) // TILE
        below = 0
        total = self.size
        if not self.is_buffer:
            self._check_texture()
            self.chain = self._levels()
            if self.layout.has_depth and len(self.levels) == 1 and self.levels[0].layers == 1:
                self.stencil = 0
            below = round_up(-self.chain[-1].offset, PAGE)
            self.layer_bytes = round_up(below + self.chain[0].size, PAGE)
            total = self.layer_bytes * self.levels[0].layers
            below_first = below
        else:
            below_first = 0
        try:
            self._start = memory.heap.allocate(max(total, PAGE) if self.chain else total)
        except OutOfMemory as error:
            raise Refused("GL-006", f"{self}: {error}") from None
        self.address = self._start + below_first
        memory.guest.fill(self._start, total)
        self.is_freed = False

    def _check_texture(self) -> None:
        if self.target not in (*FLAT_TARGETS, Target.TEXTURE_CUBE) and (
            self.target != Target.TEXTURE_3D or self.depth > 1
        ):
            raise Refused("GL-007", f"{self}: the capabilities announce no such textures")
        if self.layout.block_bytes * 8 not in TEXEL_BITS:
            raise Refused("GL-007", f"{self}: the capabilities do not announce its format")
        if self.samples > 1 and self.layout.block_bytes != WORD:
            raise Refused("GL-007", f"{self}: only 32-bit formats have several samples")

    def _levels(self) -> tuple[MipLevel, ...]:
        layout = self.layout
        bits = layout.block_bytes * 8
        if self.samples > 1:
            columns, rows = self.tiles
            pitch = columns * TILE_BYTES
            return (MipLevel(self.width, self.height, Tiling.RASTER, pitch, 0, rows * pitch),)
        if self.is_raster:
            pitch = round_up(self.levels[0].row_bytes, RASTER_ROW)
            size = pitch * self.height
            return (MipLevel(self.width, self.height, Tiling.RASTER, pitch, 0, size),)
        return mip_chain(self.width, self.height, bits, len(self.levels), block=layout.block_width)

    @property
    def changes(self) -> int:
        """How often its content was changed; work that waits to be done counts when it is done."""
        return self.counter.value

    @changes.setter
    def changes(self, number: int) -> None:
        self.counter.value = number

    def is_used(self, turn: int, first: int, end: int) -> bool:
        """Whether draws of a turn read any of these bytes where they lie."""
        last_turn, low, high = self.used
        return bool(last_turn == turn and first < high and end > low)

    @property
    def is_buffer(self) -> bool:
        """Whether it is memory without a format."""
        return self.target == Target.BUFFER

    @property
    def is_raster(self) -> bool:
        """Whether its rows follow each other: it is shown, or only a place for copies."""
        shown = Bind.DISPLAY_TARGET | Bind.SCANOUT
        is_flat = self.last_level == 0 and self.target in FLAT_TARGETS
        return bool(self.bind & shown) and is_flat and self.samples == 1

    @property
    def bits(self) -> int:
        """Bits of a texel; of a block in compressed formats."""
        return self.layout.block_bytes * 8

    def place(self, level: int, layer: int) -> int:
        """The address of a level of a face."""
        return self.address + self.chain[level].offset + layer * self.layer_bytes

    def __del__(self) -> None:
        """When nothing refers to it: neither the client nor one of its objects."""
        if not self.is_freed:
            self.is_freed = True
            self._memory.heap.free(self._start)

    def get(self, number: int, box: Box) -> NDArray[np.uint8]:
        self.check(number, box)
        if self.samples > 1:
            return mean_of(self, number, box)
        if self.is_buffer:
            return self.bytes_of(box.x, box.width).reshape(1, 1, box.width)
        blocks = np.empty(self._shape_of(box), np.uint8)
        self._move(number, box, blocks, to_tiles=False)
        return _turned(blocks, -1) if self.format == Format.B5G5R5A1_UNORM else blocks

    def in_place(self, number: int, box: Box) -> NDArray[np.uint8]:
        """As `get`, but in GPU memory where rows follow each other."""
        self.check(number, box)
        if self.is_raster and box.depth == 1 and self.format != Format.B5G5R5A1_UNORM:
            _, rows, row_bytes = self._shape_of(box)
            return self._raster_part(number, box, box.z, rows, row_bytes)[np.newaxis]
        return self.get(number, box)

    def put(self, number: int, box: Box, blocks: NDArray[np.uint8]) -> None:
        self.check(number, box)
        if self.samples > 1:
            for sample in range(self.samples):
                self.put_sample(sample, number, box, blocks)
            return
        self.changes += 1
        self.stencil = None
        if self.is_buffer:
            self.bytes_of(box.x, box.width).reshape(1, 1, box.width)[...] = blocks
            return
        if self.format == Format.B5G5R5A1_UNORM:
            blocks = _turned(np.broadcast_to(blocks, self._shape_of(box)), 1)
        if blocks.strides[2] != 1 or blocks.shape != self._shape_of(box):
            blocks = np.ascontiguousarray(np.broadcast_to(blocks, self._shape_of(box)))
        self._move(number, box, blocks, to_tiles=True)

    def get_sample(self, sample: int, number: int, box: Box) -> NDArray[np.uint8]:
        self.check(number, box)
        part, top, left = self._sample_words(sample, box)
        words = np.ascontiguousarray(part).reshape(2 * QUADS * part.shape[0], -1)
        inside = words[top : top + box.height, left : left + box.width]
        return np.ascontiguousarray(inside).view(np.uint8)[np.newaxis]

    def put_sample(self, sample: int, number: int, box: Box, blocks: NDArray[np.uint8]) -> None:
        self.check(number, box)
        self.changes += 1
        self.stencil = None
        part, top, left = self._sample_words(sample, box)
        words = np.ascontiguousarray(part).reshape(2 * QUADS * part.shape[0], -1)
        rows = np.ascontiguousarray(np.broadcast_to(blocks, self._shape_of(box))[0])
        words[top : top + box.height, left : left + box.width] = rows.view(np.uint32)
        part[...] = words.reshape(part.shape)

    def _sample_words(self, sample: int, box: Box) -> tuple[NDArray[np.uint32], int, int]:
        """The tiles of a box: one sample's words, in place, as (row of tiles, row of quads, row,
        column of tiles, column of quads, column); where the box begins in them.
        """
        columns, rows = self.tiles
        data: Any = self._memory.guest.array(self.address, rows * columns * TILE_BYTES)
        shape = rows, columns, QUADS, QUADS, self.samples, 2, 2
        words = data.view(np.uint32).reshape(shape)[:, :, :, :, sample]
        top, left = box.y // TILE, box.x // TILE
        bottom = -(-(box.y + box.height) // TILE) if box.height else top
        right = -(-(box.x + box.width) // TILE) if box.width else left
        part = words[top:bottom, left:right].transpose(0, 2, 4, 1, 3, 5)
        return part, box.y - top * TILE, box.x - left * TILE

    def put_bytes(self, first: int, data: memoryview) -> None:
        """As `put`, of a buffer: bytes that are inside of it, from one on."""
        self.changes += 1
        self._memory.guest.write(self.address + first, data)

    def _shape_of(self, box: Box) -> tuple[int, int, int]:
        layout = self.layout
        return box.depth, layout.rows(box.height), layout.row_bytes(box.width)

    def bytes_of(self, first: int, count: int) -> NDArray[np.uint8]:
        """Bytes of a buffer, in place."""
        found: NDArray[np.uint8] = self._memory.guest.array(self.address + first, count)
        return found

    def _move(self, number: int, box: Box, blocks: NDArray[np.uint8], *, to_tiles: bool) -> None:
        layout, level = self.layout, self.chain[number]
        x, y = box.x // layout.block_width, box.y // layout.block_height
        _, rows, row_bytes = blocks.shape
        if not blocks.size:
            return
        for layer in range(box.depth):
            place = self.place(number, box.z + layer)
            if level.tiling is Tiling.RASTER:
                part = self._raster_part(number, box, box.z + layer, rows, row_bytes)
                if to_tiles:
                    part[...] = blocks[layer]
                else:
                    blocks[layer] = part
                continue
            copy_box(
                self._memory.host(place), self.bits, level.tiling, level.pitch,
                (x, y, row_bytes // layout.block_bytes, rows),
                blocks[layer].ctypes.data, blocks.strides[1], to_tiles=to_tiles,
            )  # fmt: skip

    def _raster_part(self, number: int, box: Box, layer: int, rows: int, row_bytes: int) -> NDArray[np.uint8]:
        """A box of a level in raster order, in place."""
        layout, level = self.layout, self.chain[number]
        x, y = box.x // layout.block_width, box.y // layout.block_height
        place = self.place(number, layer)
        area: Any = self._memory.guest.array(place, level.size).reshape(-1, level.pitch)
        first = x * layout.block_bytes
        part: NDArray[np.uint8] = area[y : y + rows, first : first + row_bytes]
        return part


def _turned(blocks: NDArray[np.uint8], places: int) -> NDArray[np.uint8]:
    """Texels of 16 bits, turned left: the texture unit has alpha in bit 0, Gallium in bit 15."""
    words = np.ascontiguousarray(blocks).view(np.uint16)
    turned = words << np.uint16(places % 16) | words >> np.uint16(-places % 16)
    return turned.view(np.uint8).reshape(blocks.shape)

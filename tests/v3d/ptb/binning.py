"""Helpers of the binner tests: a frame in guest memory, and its tile lists read back in Python."""

import ctypes
import struct
from dataclasses import dataclass, field

from tests.support.binning import BinnerByHand, Coordinates, IndexSource

from vc4lab.diagnostics import Reporter
from vc4lab.memory import GuestMemory
from vc4lab.records import control
from vc4lab.records.control import STATE_RECORD_BYTES
from vc4lab.records.declarations import TileBinningMode
from vc4lab.records.primitives import ListFormat, decode_compressed
from vc4lab.v3d.unknowns import Unknowns

BASE = 0xC0100000
SHADER = 0x00001230
INDICES = 0x00800000


@dataclass
class TileContent:
    """A tile list in Python: (primitive, flags, clip record address) and the state records."""

    primitives: list[tuple[tuple[int, ...], int, int]] = field(default_factory=list)
    records: list[bytes] = field(default_factory=list)
    blocks: int = 0


def read_tile(memory: GuestMemory, address: int) -> TileContent:
    """Parse a tile list with the reference decoder."""
    content, form = TileContent(), ListFormat(0)
    for _ in range(100000):
        identifier = memory.u8(address)
        if identifier == 18:
            return content
        if identifier == 16:
            address = memory.u32(address + 1)
            content.blocks += 1
        elif identifier in (48, 49):
            word = memory.u32(address + 1) if identifier == 49 else 0
            decoded = decode_compressed(memory.read, address + (5 if identifier == 49 else 1), form)
            assert decoded.problem is None
            for k, item in enumerate(decoded.items):
                flags = word & 7 if k == 0 else 0
                content.primitives.append((item, flags, word & ~7 if flags else 0))
            content.blocks += len(decoded.branches)
            address = decoded.next
        else:
            size = STATE_RECORD_BYTES[identifier]
            record = memory.read(address, size)
            content.records.append(record)
            if identifier == 56:
                form = ListFormat(record[1])
            address += size
    raise AssertionError("tile list without end")


class Frame:
    """A configured binner over its own memory."""

    def __init__(self, memory, tiles_x=8, tiles_y=6, pool=1 << 22, switches=None, **mode):
        self.memory = memory
        self.reporter = Reporter()
        self.binner = BinnerByHand(memory, self.reporter, Unknowns(switches))
        self.pool, self.mode = pool, mode
        self.initial = 32 << mode.get("initial_block", 0)
        self.configure(tiles_x, tiles_y)

    def configure(self, tiles_x, tiles_y):
        """Record 112."""
        self.tiles = (tiles_x, tiles_y)
        record = control.build(
            112, address=BASE, memory_size=self.pool, tiles_x=tiles_x, tiles_y=tiles_y, **self.mode
        )
        self.binner.configure(TileBinningMode(int.from_bytes(record[1:], "little")))

    def state(self, identifier, payload):
        self.binner.set_state(bytes([identifier]) + payload)

    def shader(self, word=SHADER):
        self.state(65, word.to_bytes(4, "little"))

    def start(self):
        self.binner.start()
        self.shader()

    def tile(self, x, y):
        return read_tile(self.memory, BASE + (y * self.tiles[0] + x) * self.initial)

    def all_tiles(self):
        return {(x, y): self.tile(x, y) for y in range(self.tiles[1]) for x in range(self.tiles[0])}


def coordinates(screen, clip=None, sizes=None):
    """Coordinates from (x, y) in 1/16 pixels per vertex and optional (Xc, Yc, Zc, Wc)."""
    rows = 8 if clip is not None else 4
    pitch = rows * 64
    data = bytearray(((len(screen) + 15) // 16) * pitch)

    def put(index, row, form, value):
        struct.pack_into(form, data, (index >> 4) * pitch + row * 64 + (index & 15) * 4, value)

    for k, (x, y) in enumerate(screen):
        first = rows - 4
        put(k, first, "<I", (x & 0xFFFF) | (y & 0xFFFF) << 16)
        put(k, first + 3, "<f", sizes[k] if sizes else 0.0)
        for row in range(first):
            put(k, row, "<f", clip[k][row])
    buffer = (ctypes.c_char * len(data)).from_buffer(data)
    return Coordinates(
        ctypes.addressof(buffer), pitch, 0, len(screen) - 1, clip is not None, bool(sizes), buffer
    )


def indexed(memory, indices, bits=16, **more):
    """Indices in guest memory."""
    memory.write(INDICES, struct.pack(f"<{len(indices)}{'H' if bits == 16 else 'B'}", *indices))
    return IndexSource(len(indices), address=INDICES, bits=bits, **more)

"""Builds whole frames in guest memory, byte for byte as a bare-metal program would."""

import struct
from dataclasses import dataclass, field

from vc4lab.memory import GuestMemory
from vc4lab.qpu.text.assembler import assemble
from vc4lab.records.control import build
from vc4lab.v3d.core import V3D

CT0CA, CT0EA, CT1CA, CT1EA = 0x110, 0x108, 0x114, 0x10C
BFC, RFC = 0x134, 0x138

VARYING_COLOURS = """
# three varyings are red, green and blue in 0..1
    sbwait
    mov r0, vary ; nop
    fmul r0, r0, ra15 ; nop
    nop
"""


@dataclass
class Job:
    """A bump allocator over guest memory and the two lists of a frame."""

    memory: GuestMemory = field(default_factory=GuestMemory)
    width: int = 128
    height: int = 128
    top: int = 0x10_0000
    tile: tuple[int, int] = (64, 64)

    def put(self, data: bytes, align: int = 16) -> int:
        """Copies data to fresh guest memory; returns its address."""
        address = self.room(len(data), align)
        self.memory.write(address, data)
        return address

    def room(self, size: int, align: int = 4096) -> int:
        """The address of ``size`` fresh bytes."""
        address = (self.top + align - 1) & -align
        self.top = address + size
        return address

    def program(self, text: str) -> int:
        """Assembles a QPU program into memory."""
        return self.put(assemble(text).bytes, 8)

    @property
    def tiles(self) -> tuple[int, int]:
        """Columns and rows of tiles."""
        return -(-self.width // self.tile[0]), -(-self.height // self.tile[1])

    def binning(self, body: bytes, flush: bytes | None = None, **mode: int) -> tuple[int, int, int]:
        """A binning list around ``body``: (start, end, address of the tile lists)."""
        columns, rows = self.tiles
        lists = self.room(columns * rows * 32 + 0x40000)
        state = self.room(columns * rows * 48, 16)
        data = build(
            112,
            address=lists,
            memory_size=columns * rows * 32 + 0x40000,
            state_address=state,
            tiles_x=columns,
            tiles_y=rows,
            auto_initialise=1,
            **mode,
        )
        data += build(6) + body + (flush if flush is not None else build(4))
        start = self.put(data)
        return start, start + len(data), lists

    def rendering(self, lists: int, surface: int, clear: int = 0xFF000000, **mode: int) -> tuple[int, int]:
        """A rendering list that draws every tile and stores it: (start, end)."""
        columns, rows = self.tiles
        options = {"format": 1} | mode
        data = build(114, colour=clear, colour_high=clear, z=0xFFFFFF)
        data += build(113, address=surface, width=self.width, height=self.height, **options)
        data += build(115) + build(28)
        for row in range(rows):
            for column in range(columns):
                last = row == rows - 1 and column == columns - 1
                data += build(115, column=column, row=row)
                data += build(17, address=lists + 32 * (row * columns + column))
                data += build(25 if last else 24)
        start = self.put(data)
        return start, start + len(data)

    def run(self, v3d: V3D, binning: tuple[int, int], rendering: tuple[int, int]) -> None:
        """Submits both lists through the registers."""
        for register, value in zip((CT0CA, CT0EA, CT1CA, CT1EA), (*binning, *rendering), strict=True):
            v3d.write(register, value)


def viewport(job: Job, config: int = 0x03) -> bytes:
    """State records for the whole frame: configuration, clip window, viewport at the corner."""
    return (
        bytes([96]) + config.to_bytes(3, "little")
        + build(102, left=0, bottom=0, width=job.width, height=job.height)
        + build(103, x=0, y=0)
    )  # fmt: skip


def nv_vertex(x: float, y: float, z: float, w: float, *varyings: float) -> bytes:
    """One NV vertex: 12.4 position in pixels, Zs, 1/Wc, varyings."""
    return struct.pack(f"<hhff{len(varyings)}f", int(x * 16), int(y * 16), z, w, *varyings)

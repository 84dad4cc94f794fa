"""The contents of RAM when the kernel starts, and how the cores enter it."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path

from vc4lab.diagnostics import Reporter
from vc4lab.memory import GuestMemory
from vc4lab.soc.board import MIB, Board
from vc4lab.soc.boot.config_txt import Config

ATAGS = 0x100
ATAG_NONE, ATAG_CORE, ATAG_MEM = 0, 0x54410001, 0x54410002
ATAG_INITRD2, ATAG_CMDLINE = 0x54420005, 0x54410009
DEFAULT_GPU_MEM, MIN_GPU_MEM, MAX_GPU_MEM = 64, 16, 512
"""MiB; boards with less RAM give three quarters of it at most."""


FIRST_FREE, PAGE = 0x8000, 4096
"""AArch32 kernels begin here: memory below belongs to the firmware at first."""
RAMDISK_NAME = "the RAM disk"


class HostFile:
    """A file of the host that is read straight into guest memory.

    A RAM disk may have hundreds of MiB, and the kernel unpacks it into as many again.
    """

    def __init__(self, path: Path) -> None:
        """Raises OSError."""
        self._path = path
        self._size = path.stat().st_size

    def __len__(self) -> int:
        return self._size

    def place(self, memory: GuestMemory, address: int) -> None:
        """Read it; what it has lost meanwhile is 0. Raises OSError."""
        memory.prefer_large_pages(0, memory.ram_bytes)
        with self._path.open("rb", buffering=0) as file:
            done = 0
            while count := file.readinto(memory.view(address + done, self._size - done)):
                done += count


@dataclass(frozen=True)
class Piece:
    """Bytes the firmware puts into RAM; `name` for messages."""

    name: str
    address: int
    data: bytes | HostFile = field(repr=False)


@dataclass(frozen=True)
class BootPlan:
    """Says what is loaded where, and how it is entered.

    Attributes
    ----------
    wide
        AArch64.
    entry
        Where the cores begin: the kernel's first instruction, or that of the program's own stub.
    level
        Exception level of the start (AArch64); 3 also in AArch32: no stub of the firmware has run.
    all_cores
        Every core enters the kernel (`kernel_old=1`) or the stub; else core 0 alone.
    room
        Bytes from `address` on that belong to the kernel while it starts.
    cleans_caches
        The kernel is known to keep caches in step with devices: it is Linux.
    """

    name: str
    image: bytes = field(repr=False)
    address: int
    config: Config
    entry_registers: tuple[int, ...]
    entry: int
    wide: bool = False
    level: int = 2
    all_cores: bool = False
    pieces: tuple[Piece, ...] = ()
    room: int = 0
    cleans_caches: bool = False

    def untouched(self, board: Board) -> tuple[int, int]:
        """Start and end of the RAM that the firmware has left as it was at power-on.

        Below its own stub and lists are; with an image there, nothing of the firmware is.
        """
        start = 0 if self.address < FIRST_FREE else FIRST_FREE
        return start, min(arm_memory(board, self.config), board.peripherals) & -PAGE

    def place(self, memory: GuestMemory, reporter: Reporter) -> None:
        """Write the image and what the firmware hands over into RAM. Raises OSError."""
        memory.write(self.address, self.image)
        placed = [(self.address, self.address + max(len(self.image), self.room), "the image")]
        for piece in self.pieces:
            end = piece.address + len(piece.data)
            for first, last, what in placed:
                if piece.address < last and end > first:
                    reporter.report(
                        "BOOT-021",
                        f"{piece.name} at 0x{piece.address:x} overwrites {what} loaded to 0x{first:x}",
                        address=piece.address,
                        block="firmware",
                    )
            if isinstance(piece.data, HostFile):
                piece.data.place(memory, piece.address)
            else:
                memory.write(piece.address, piece.data)
            placed.append((piece.address, end, piece.name))


def vc_memory(board: Board, config: Config) -> int:
    """Bytes of RAM that the VideoCore keeps: gpu_mem, or gpu_mem_512 and gpu_mem_1024."""
    ram = board.ram // MIB
    asked = config.integer(f"gpu_mem_{ram}", config.integer("gpu_mem", DEFAULT_GPU_MEM))
    return min(max(asked, MIN_GPU_MEM), MAX_GPU_MEM, ram * 3 // 4) * MIB


def arm_memory(board: Board, config: Config) -> int:
    """Bytes of RAM that the firmware leaves to the ARM.

    The last 16 MiB of a GiB are hidden by the peripherals; framebuffers must be where the ARM finds
    them, so it gets less with gpu_mem=16 (992 MiB, as 1008 with the 16 of the VideoCore).
    """
    visible = min(board.ram, board.peripherals)
    return min(board.ram - vc_memory(board, config), visible - MIN_GPU_MEM * MIB)


def atags(board: Board, config: Config, ramdisk: tuple[int, int] | None = None) -> bytes:
    """The tagged list at 0x100: core, memory, RAM disk, command line, end."""
    out = struct.pack("<5I", 5, ATAG_CORE, 0, 0, 0)
    out += struct.pack("<4I", 4, ATAG_MEM, arm_memory(board, config), 0)
    if ramdisk is not None:
        out += struct.pack("<4I", 4, ATAG_INITRD2, *ramdisk)
    line = config.command_line.encode("ascii", "replace") + b"\0"
    line += bytes(-len(line) % 4)
    out += struct.pack("<2I", 2 + len(line) // 4, ATAG_CMDLINE) + line
    return out + struct.pack("<2I", 0, ATAG_NONE)

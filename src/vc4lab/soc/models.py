"""Which core a board has, as the CPU engine knows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vc4lab.soc.arm32 import Arm32

if TYPE_CHECKING:
    from vc4lab.memory import GuestMemory
    from vc4lab.soc.board import Board
    from vc4lab.soc.cpu import Cpu
    from vc4lab.soc.native import SliceCounter
    from vc4lab.soc.traps import CoreLinks


def make_cpu(
    board: Board, memory: GuestMemory, counter: SliceCounter, links: CoreLinks, number: int
) -> Cpu:
    """Core `number` of a board."""
    cpu = Arm32(board.cpu, memory, board.peripherals, counter, links, number)
    cpu.affinity = board.affinity
    return cpu

"""Which core a board has, as the CPU engine knows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vc4lab.memory import GuestMemory
    from vc4lab.soc.board import Board
    from vc4lab.soc.board_unknowns import Unknowns
    from vc4lab.soc.boot.boot_plan import BootPlan
    from vc4lab.soc.cores.cpu import Cpu
    from vc4lab.soc.cores.traps import CoreLinks
    from vc4lab.soc.native import SliceCounter


def make_cpu(
    board: Board,
    plan: BootPlan,
    memory: GuestMemory,
    counter: SliceCounter,
    links: CoreLinks,
    number: int,
    unknowns: Unknowns,
) -> Cpu:
    """Core `number` of a board, in the state the kernel is made for."""
    if plan.wide and board.cpu64 is not None:
        from vc4lab.soc.cores.arm64 import Arm64

        wide = Arm64(board.cpu64, memory, board.peripherals, counter, links, number)
        wide.affinity, wide.start_level = board.affinity, plan.level
        return wide
    from vc4lab.soc.cores.arm32 import Arm32

    cpu = Arm32(board.cpu, memory, board.peripherals, counter, links, number)
    cpu.affinity, cpu.identity = board.affinity, board.midr
    if board.has_hyp:
        from vc4lab.soc.cores.hyp_core import HypCore

        has_stub = plan.level == 2 and unknowns["hyp_start"] == "hyp"
        calls_monitor = unknowns["monitor_call"] == "stub"
        cpu.hyp_core = HypCore(cpu, has_stub, calls_monitor, illegal_state=board.midr is not None)
    return cpu

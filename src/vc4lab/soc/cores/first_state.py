"""Which kind of core a board and its kernel take, and the state in which the kernel finds it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vc4lab.soc.cores.generic_timer import MICROSECONDS, WHOLE

if TYPE_CHECKING:
    from vc4lab.diagnostics.unknown import Unknowns
    from vc4lab.memory import GuestMemory
    from vc4lab.soc.board import Board
    from vc4lab.soc.boot.boot_plan import BootPlan
    from vc4lab.soc.cores.code.traps import CoreLinks
    from vc4lab.soc.cores.cpu import Cpu
    from vc4lab.soc.native import SliceCounter


def make_core(
    board: Board,
    plan: BootPlan,
    unknowns: Unknowns,
    memory: GuestMemory,
    counter: SliceCounter,
    links: CoreLinks,
    number: int,
) -> Cpu:
    """Core `number` (from 0 on) of a board, in the state that the kernel is made for."""
    common = memory, board.peripherals, counter, links, number
    if plan.wide and board.cpu64 is not None:
        from vc4lab.soc.cores.arm64 import Arm64

        wide = Arm64(board.cpu64, *common)
        wide.affinity, wide.start_level = board.affinity, plan.level
        wide.exclusives_abort = True
        return wide
    from vc4lab.soc.cores.arm32 import Arm32

    cpu = Arm32(board.cpu, *common)
    cpu.affinity, cpu.identity = board.affinity, board.midr
    aborts = unknowns["exclusive_without_monitor"] == "abort"
    cpu.exclusives_abort = aborts or board.cpu64 is not None
    cpu.starts_armv6 = unknowns["arm1176_unaligned"] == "armv6"
    if board.has_hyp:
        from vc4lab.soc.cores.hyp_core import HypCore

        has_stub = plan.level == 2 and unknowns["hyp_start"] == "hyp"
        calls_monitor = unknowns["monitor_call"] == "stub"
        illegal_state = board.midr is not None
        cpu.hyp_core = HypCore(cpu, has_stub, calls_monitor, illegal_state)
    return cpu


def first_prescaler(plan: BootPlan, unknowns: Unknowns) -> int:
    """The cores' timers' prescaler: the stub for AArch64 sets it, that for AArch32 does not."""
    if unknowns["timer_prescaler"] == "crystal":
        return WHOLE
    return WHOLE if plan.wide and not plan.all_cores else MICROSECONDS

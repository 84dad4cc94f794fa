"""The V3D's register map: an index of the registers that its blocks declare.

A register is declared in the block that gives it its behaviour. Source: hardware reference 2.
"""

from __future__ import annotations

from vc4lab.registers import Register
from vc4lab.v3d.cle.thread import ThreadControl
from vc4lab.v3d.counters import PerformanceCounters
from vc4lab.v3d.job_time import QPUS
from vc4lab.v3d.list_registers import BinnerDebug, ListCounters, ListRegisters, PipelineStatus
from vc4lab.v3d.program_registers import ProgramRegisters
from vc4lab.v3d.status_registers import DebugRegisters, Interrupts, StatusRegisters
from vc4lab.v3d.user_programs.scheduler import RequestQueue
from vc4lab.v3d.vpm.errors import Errors

__all__ = [
    "BLOCKS", "BY_NAME", "BY_OFFSET", "QPUS", "REGISTERS", "BinnerDebug", "Errors", "Interrupts",
    "ListCounters", "PipelineStatus", "Register", "RequestQueue", "ThreadControl",
]  # fmt: skip

BLOCKS = (StatusRegisters, ListRegisters, ProgramRegisters, PerformanceCounters, DebugRegisters)
_ROWS = (register for block in BLOCKS for register in block.registers.values())

REGISTERS: tuple[Register, ...] = tuple(
    row.single(index)
    for row in sorted(_ROWS, key=lambda register: register.offset)
    for index in range(row.count)
)
"""Each register, by offset; those of a row together."""

BY_OFFSET: dict[int, Register] = {register.offset: register for register in REGISTERS}
BY_NAME: dict[str, Register] = {register.name: register for register in REGISTERS}

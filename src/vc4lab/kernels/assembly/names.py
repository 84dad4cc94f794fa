"""All names of kernels that are written instruction by instruction, with what they mean."""

from __future__ import annotations

from typing import Any

from vc4lab.kernels.assembly import instructions, vpm
from vc4lab.kernels.assembly.instructions import OPERATIONS
from vc4lab.kernels.assembly.registers import REGISTERS

HELPERS = (
    "L", "exit", "interrupt", "ldi", "mov", "mutex_acquire", "mutex_release", "namespace", "nop", "raw",
    "rotate", "sema_down", "sema_up", "setup_dma_load", "setup_dma_load_stride", "setup_dma_store",
    "setup_dma_store_stride", "setup_vpm_read", "setup_vpm_write", "start_dma_load", "start_dma_store",
    "wait_dma_load", "wait_dma_store",
)  # fmt: skip
NAMES: dict[str, Any] = {
    "ra": [REGISTERS[f"ra{number}"] for number in range(32)],
    "rb": [REGISTERS[f"rb{number}"] for number in range(32)],
    **REGISTERS,
    **OPERATIONS,
    **{name: getattr(instructions, name, None) or getattr(vpm, name) for name in HELPERS},
}

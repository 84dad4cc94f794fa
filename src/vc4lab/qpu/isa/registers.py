"""The QPU register map: what each of the 64 addresses means for a read or a write, per file.

Source: VideoCore IV 3D Architecture Reference Guide, "QPU Register Address Map" (pp. 37-38);
read names that differ between files A and B are listed separately.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

REGFILE_SIZE: Final = 32
"""Addresses below this are the physical register file of their address space."""

ACCUMULATOR_WRITE: Final = {32: 0, 33: 1, 34: 2, 35: 3, 37: 5}
"""Write address -> accumulator number (r4 cannot be written by a program)."""


class Read(IntEnum):
    """Read addresses of peripherals and other special values (both files unless noted)."""

    UNIFORM = 32
    VARYING = 35
    ELEMENT_OR_QPU_NUMBER = 38  # A: element number, B: QPU number
    NOP = 39
    PIXEL_COORD = 41  # A: x, B: y
    FLAGS = 42  # A: MS_FLAGS, B: REV_FLAG
    VPM = 48
    VPM_BUSY = 49  # A: load (read DMA), B: store (write DMA)
    VPM_WAIT = 50  # A: load, B: store
    MUTEX_ACQUIRE = 51


class Write(IntEnum):
    """Write addresses outside the register files (both spaces unless noted)."""

    ACC0 = 32
    ACC1 = 33
    ACC2 = 34
    ACC3 = 35
    TMU_NOSWAP = 36
    ACC5 = 37  # A: per quad, B: replicate lane 0
    HOST_INT = 38
    NOP = 39
    UNIFORMS_ADDRESS = 40  # B: relative form
    QUAD = 41  # A: x, B: y
    FLAGS = 42  # A: MS_FLAGS, B: REV_FLAG
    TLB_STENCIL_SETUP = 43
    TLB_Z = 44
    TLB_COLOUR_MS = 45
    TLB_COLOUR_ALL = 46
    TLB_ALPHA_MASK = 47
    VPM = 48
    VPM_SETUP = 49  # A: read setup, B: write setup
    VPM_DMA_ADDRESS = 50  # A: load, B: store
    MUTEX_RELEASE = 51
    SFU_RECIP = 52
    SFU_RECIPSQRT = 53
    SFU_EXP = 54
    SFU_LOG = 55
    TMU0_S = 56
    TMU0_T = 57
    TMU0_R = 58
    TMU0_B = 59
    TMU1_S = 60
    TMU1_T = 61
    TMU1_R = 62
    TMU1_B = 63


TMU_WRITES: Final = {
    Write.TMU0_S + 4 * unit + index: (unit, coordinate)
    for unit in range(2)
    for index, coordinate in enumerate("strb")
}
"""Write address -> (TMU unit, coordinate "s", "t", "r" or "b")."""

SFU_WRITES: Final[dict[int, str]] = {
    Write.SFU_RECIP: "recip",
    Write.SFU_RECIPSQRT: "recipsqrt",
    Write.SFU_EXP: "exp",
    Write.SFU_LOG: "log",
}

_READ_COMMON: Final[dict[int, str]] = {
    Read.UNIFORM: "unif",
    Read.VARYING: "vary",
    Read.NOP: "-",
    Read.VPM: "vpm",
    Read.MUTEX_ACQUIRE: "mutex",
}
_READ_A: Final[dict[int, str]] = {
    Read.ELEMENT_OR_QPU_NUMBER: "elem_num",
    Read.PIXEL_COORD: "x_coord",
    Read.FLAGS: "ms_mask",
    Read.VPM_BUSY: "vr_busy",
    Read.VPM_WAIT: "vr_wait",
}
_READ_B: Final[dict[int, str]] = {
    Read.ELEMENT_OR_QPU_NUMBER: "qpu_num",
    Read.PIXEL_COORD: "y_coord",
    Read.FLAGS: "rev_flag",
    Read.VPM_BUSY: "vw_busy",
    Read.VPM_WAIT: "vw_wait",
}
_WRITE_COMMON: Final[dict[int, str]] = {
    Write.ACC0: "r0",
    Write.ACC1: "r1",
    Write.ACC2: "r2",
    Write.ACC3: "r3",
    Write.TMU_NOSWAP: "tmurs",
    Write.HOST_INT: "irq",
    Write.NOP: "-",
    Write.TLB_STENCIL_SETUP: "stencil",
    Write.TLB_Z: "tlbz",
    Write.TLB_COLOUR_MS: "tlbm",
    Write.TLB_COLOUR_ALL: "tlbc",
    Write.TLB_ALPHA_MASK: "tlbam",
    Write.VPM: "vpm",
    Write.MUTEX_RELEASE: "mutex",
    **SFU_WRITES,
    **{address: f"t{unit}{coordinate}" for address, (unit, coordinate) in TMU_WRITES.items()},
}
_WRITE_A: Final[dict[int, str]] = {
    Write.ACC5: "r5quad",
    Write.UNIFORMS_ADDRESS: "unif_addr",
    Write.QUAD: "x_coord",
    Write.FLAGS: "ms_mask",
    Write.VPM_SETUP: "vr_setup",
    Write.VPM_DMA_ADDRESS: "vr_addr",
}
_WRITE_B: Final[dict[int, str]] = {
    Write.ACC5: "r5rep",
    Write.UNIFORMS_ADDRESS: "unif_addr_rel",
    Write.QUAD: "y_coord",
    Write.FLAGS: "rev_flag",
    Write.VPM_SETUP: "vw_setup",
    Write.VPM_DMA_ADDRESS: "vw_addr",
}


def _names(file: str, special: dict[int, str]) -> tuple[str, ...]:
    return tuple(special.get(address, f"r{file}{address}") for address in range(64))


READ_NAMES: Final = {
    "a": _names("a", {**_READ_COMMON, **_READ_A}),
    "b": _names("b", {**_READ_COMMON, **_READ_B}),
}
"""Assembler name of each read address per file, as qpuasm.js spells them."""

WRITE_NAMES: Final = {
    "a": _names("a", {**_WRITE_COMMON, **_WRITE_A}),
    "b": _names("b", {**_WRITE_COMMON, **_WRITE_B}),
}
"""Assembler name of each write address per address space."""

ALIASES: Final = {
    "nop": "-",
    "w": "ra15",
    "z": "rb15",
    "host_int": "irq",
    "tmu_noswap": "tmurs",
    "ms_flags": "ms_mask",
    "tlb_stencil": "stencil",
    "tlb_z": "tlbz",
    "tlb_c": "tlbc",
    "tlb_m": "tlbm",
    "rsqrt": "recipsqrt",
    "uni": "unif",
    "quad_x": "x_coord",
    "quad_y": "y_coord",
}
"""Other names the assembler takes -> name in the tables above."""

"""The registers of an AArch64 core for a saved state: read and written one by one by name.

What the engine does not show is not saved: the stack pointer of EL3 after the program has left EL3,
and the exclusive monitor (a following store-exclusive fails, so the program tries again). Nor are
the Cortex-A53's own registers (`cores/a53_registers.py`), which have no effect.
"""

from __future__ import annotations

from unicorn import arm64_const as a64

from vc4lab.soc.cores.cpu import Cpu

LEVELS = ((1, 0), (2, 4), (3, 6))
"""Exception level and op1 of its registers."""
_PER_LEVEL = {
    "TTBR0": (2, 0, 0),
    "TCR": (2, 0, 2),
    "SPSR": (4, 0, 0),
    "ELR": (4, 0, 1),
    "ESR": (5, 2, 0),
    "FAR": (6, 0, 0),
    "MAIR": (10, 2, 0),
    "VBAR": (12, 0, 0),
}
"""CRn, CRm, op2."""
SYSTEM_REGISTERS: dict[str, tuple[int, int, int, int, int]] = {
    **{
        f"{name}_EL{level}": (crn, crm, 3, op1, op2)
        for name, (crn, crm, op2) in _PER_LEVEL.items()
        for level, op1 in LEVELS
    },
    "CPACR_EL1": (1, 0, 3, 0, 2),
    "TTBR1_EL1": (2, 0, 3, 0, 1),
    "PAR_EL1": (7, 4, 3, 0, 0),
    "CONTEXTIDR_EL1": (13, 0, 3, 0, 1),
    "TPIDR_EL0": (13, 0, 3, 3, 2),
    "TPIDRRO_EL0": (13, 0, 3, 3, 3),
    "TPIDR_EL1": (13, 0, 3, 0, 4),
    "TPIDR_EL2": (13, 0, 3, 4, 2),
    "TPIDR_EL3": (13, 0, 3, 6, 2),
    "MDSCR_EL1": (0, 2, 2, 0, 2),
    "CPTR_EL2": (1, 1, 3, 4, 2),
    "MDCR_EL2": (1, 1, 3, 4, 1),
    "HSTR_EL2": (1, 1, 3, 4, 3),
    "VTTBR_EL2": (2, 1, 3, 4, 0),
    "VTCR_EL2": (2, 1, 3, 4, 2),
    "HPFAR_EL2": (6, 0, 3, 4, 4),
    "VPIDR_EL2": (0, 0, 3, 4, 0),
    "VMPIDR_EL2": (0, 0, 3, 4, 5),
    "DACR32_EL2": (3, 0, 3, 4, 0),
    "IFSR32_EL2": (5, 0, 3, 4, 1),
    "FPEXC32_EL2": (5, 3, 3, 4, 0),
    "SPSR_irq": (4, 3, 3, 4, 0),
    "SPSR_abt": (4, 3, 3, 4, 1),
    "SPSR_und": (4, 3, 3, 4, 2),
    "SPSR_fiq": (4, 3, 3, 4, 3),
    "CPTR_EL3": (1, 1, 3, 6, 2),
    "SDER32_EL3": (1, 1, 3, 6, 1),
    "MDCR_EL3": (1, 3, 3, 6, 1),
    "CNTFRQ_EL0": (14, 0, 3, 3, 0),
    "CNTKCTL_EL1": (14, 1, 3, 0, 0),
    "CNTHCTL_EL2": (14, 1, 3, 4, 0),
    "PMCR_EL0": (9, 12, 3, 3, 0),
    "PMCNTENSET_EL0": (9, 12, 3, 3, 1),
    "PMSELR_EL0": (9, 12, 3, 3, 5),
    "PMUSERENR_EL0": (9, 14, 3, 3, 0),
    "PMINTENSET_EL1": (9, 14, 3, 0, 1),
    "PMCCFILTR_EL0": (14, 15, 3, 3, 7),
    "SP_EL0": (4, 1, 3, 0, 0),
    "SP_EL1": (4, 1, 3, 4, 0),
    "SP_EL2": (4, 1, 3, 6, 0),
    "SCR_EL3": (1, 1, 3, 6, 0),
    "HCR_EL2": (1, 1, 3, 4, 0),
    "SCTLR_EL3": (1, 0, 3, 6, 0),
    "SCTLR_EL2": (1, 0, 3, 4, 0),
    "SCTLR_EL1": (1, 0, 3, 0, 0),
}
"""CRn, CRm, op0, op1, op2, in the order of writing: the MMU is switched on last."""
PSTATE = frozenset(
    flags << 28 | masks << 6 | level
    for flags in range(16)
    for masks in range(16)
    for level in (0x0, 0x4, 0x5, 0x8, 0x9, 0xC, 0xD)
)
"""NZCV, DAIF, level and stack pointer: the values that a core of vc4lab can have."""
SINGLE_STEP = 1 << 21
WORD, LONG, QUAD = (1 << 32) - 1, (1 << 64) - 1, (1 << 128) - 1
NAMES: dict[str, tuple[int, int]] = {
    **{f"x{n}": (a64.UC_ARM64_REG_X0 + n, LONG) for n in range(29)},
    **{"x29": (a64.UC_ARM64_REG_X29, LONG), "x30": (a64.UC_ARM64_REG_X30, LONG)},
    **{"sp": (a64.UC_ARM64_REG_SP, LONG), "pc": (a64.UC_ARM64_REG_PC, LONG)},
    **{f"v{n}": (a64.UC_ARM64_REG_Q0 + n, QUAD) for n in range(32)},
    **{"fpcr": (a64.UC_ARM64_REG_FPCR, WORD), "fpsr": (a64.UC_ARM64_REG_FPSR, WORD)},
    "pstate": (a64.UC_ARM64_REG_PSTATE, WORD),
}
"""Engine's number and width; the stack pointer is that of the level in `pstate`."""


def snapshot_cpu(cpu: Cpu) -> dict[str, int]:
    """The registers of an AArch64 core by name."""
    saved = {name: cpu.system_register(key) for name, key in SYSTEM_REGISTERS.items()}
    for name, (number, _mask) in NAMES.items():
        saved[name] = int(cpu.engine.reg_read(number))
    saved["pstate"] &= ~SINGLE_STEP
    return saved


def restore_cpu(cpu: Cpu, saved: dict[str, int]) -> None:
    """Write the registers; values are masked to their width."""
    engine = cpu.engine
    for name, register in SYSTEM_REGISTERS.items():
        engine.reg_write(a64.UC_ARM64_REG_CP_REG, (*register, saved[name] & LONG))
    engine.reg_write(NAMES["pstate"][0], saved["pstate"])
    for name, (number, mask) in NAMES.items():
        if name not in ("pstate", "pc"):
            engine.reg_write(number, saved[name] & mask)
    # The engine looks at the new level when a system register is written.
    vector_base = SYSTEM_REGISTERS["VBAR_EL1"]
    engine.reg_write(a64.UC_ARM64_REG_CP_REG, (*vector_base, saved["VBAR_EL1"] & LONG))
    engine.reg_write(NAMES["pc"][0], saved["pc"] & LONG)
    cpu.control_restored()
    cpu.refresh()


def is_sane(saved: dict[str, int]) -> bool:
    """Whether these are the registers of an AArch64 core."""
    return set(saved) == set(NAMES) | set(SYSTEM_REGISTERS) and saved["pstate"] in PSTATE

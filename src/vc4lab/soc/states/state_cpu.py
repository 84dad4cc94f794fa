"""The registers of a core for a saved state: read and written one by one by name.

The engine could give its whole context as one block of bytes, but that holds pointers of the host:
a file from a stranger would then own the process. So: general registers with their banks, system
registers, floating point.
"""

from __future__ import annotations

from typing import Any

from unicorn import UcError
from unicorn import arm_const as arm

from vc4lab.soc.cores.arm32 import Arm32
from vc4lab.soc.cores.exceptions import hyp
from vc4lab.soc.cores.exceptions.exceptions import (
    ABORT,
    FIQ,
    HYP,
    IRQ,
    MODE_MASK,
    SUPERVISOR,
    SYSTEM,
    UNDEFINED,
)
from vc4lab.soc.cores.hyp_core import HypCore

NAMES: dict[str, int] = {
    **{f"r{n}": arm.UC_ARM_REG_R0 + n for n in range(8)},
    **{"pc": arm.UC_ARM_REG_PC, "cpsr": arm.UC_ARM_REG_CPSR},
    **{f"d{n}": arm.UC_ARM_REG_D0 + n for n in range(32)},
    **{"fpscr": arm.UC_ARM_REG_FPSCR, "fpexc": arm.UC_ARM_REG_FPEXC},
}


def _bank(mode: str, *, status: bool = True, low: bool = False) -> dict[str, int]:
    """Registers that are a mode's own; r8 to r12 belong to FIQ and to all the others."""
    bank = {f"sp_{mode}": arm.UC_ARM_REG_SP, f"lr_{mode}": arm.UC_ARM_REG_LR}
    if status:
        bank[f"spsr_{mode}"] = arm.UC_ARM_REG_SPSR
    if low:
        bank |= {f"r{n}_{mode}": arm.UC_ARM_REG_R0 + n for n in range(8, 13)}
    return bank


BANKS: dict[int, dict[str, int]] = {
    SYSTEM: _bank("system", status=False, low=True),
    IRQ: _bank("irq"),
    SUPERVISOR: _bank("supervisor"),
    ABORT: _bank("abort"),
    UNDEFINED: _bank("undefined"),
    FIQ: _bank("fiq", low=True),
}
MONITOR_BANK = _bank("mon")
HYP_BANK = {"sp_hyp": arm.UC_ARM_REG_SP, "spsr_hyp": arm.UC_ARM_REG_SPSR}
"""HYP mode shares its LR with system mode."""
SYSTEM_REGISTERS: dict[str, tuple[int, ...]] = {
    "CPACR": (15, 0, 0, 1, 0, 0, 2),
    "TTBCR": (15, 0, 0, 2, 0, 0, 2),
    "TTBR0": (15, 0, 0, 2, 0, 0, 0),
    "TTBR1": (15, 0, 0, 2, 0, 0, 1),
    "DACR": (15, 0, 0, 3, 0, 0, 0),
    "DFSR": (15, 0, 0, 5, 0, 0, 0),
    "IFSR": (15, 0, 0, 5, 0, 0, 1),
    "DFAR": (15, 0, 0, 6, 0, 0, 0),
    "IFAR": (15, 0, 0, 6, 0, 0, 2),
    "PRRR": (15, 0, 0, 10, 2, 0, 0),
    "NMRR": (15, 0, 0, 10, 2, 0, 1),
    "VBAR": (15, 0, 0, 12, 0, 0, 0),
    "CONTEXTIDR": (15, 0, 0, 13, 0, 0, 1),
    "TPIDRURW": (15, 0, 0, 13, 0, 0, 2),
    "TPIDRURO": (15, 0, 0, 13, 0, 0, 3),
    "TPIDRPRW": (15, 0, 0, 13, 0, 0, 4),
    "SCTLR": (15, 0, 0, 1, 0, 0, 0),
}
"""In the order of writing: the MMU is switched on last. ACTLR is a constant of the engine's models
(writing it would change r0)."""


def snapshot_cpu(cpu: Arm32) -> dict[str, int]:
    """The registers of an AArch32 core by name."""
    engine = cpu.engine
    saved = _read(engine, NAMES)
    saved["pc"] = cpu.pc
    for mode, bank in BANKS.items():
        _enter_mode(engine, saved["cpsr"], mode)
        saved |= _read(engine, bank)
    core = cpu.hyp_core
    if core is not None:
        saved |= _snapshot_hyp(cpu, core, saved["cpsr"])
    else:
        saved["mvbar"] = cpu.monitor_vectors
    _set_cpsr(cpu, saved["cpsr"])
    for name, register in SYSTEM_REGISTERS.items():
        try:
            saved[name] = cpu.system_register(register)
        except UcError:
            continue
    return saved


def restore_cpu(cpu: Arm32, saved: dict[str, int]) -> None:
    """Write the registers; values are masked to their width, unknown names are left out."""
    engine = cpu.engine
    cpsr = saved["cpsr"] & 0xFFFFFFFF
    for name, register in SYSTEM_REGISTERS.items():
        if name in saved:
            try:
                engine.reg_write(arm.UC_ARM_REG_CP_REG, (*register, saved[name] & 0xFFFFFFFF))
            except UcError:
                continue
    for name, number in NAMES.items():
        if name.startswith("d"):
            engine.reg_write(number, saved[name] & 0xFFFFFFFFFFFFFFFF)
        elif name not in ("cpsr", "pc"):
            engine.reg_write(number, saved[name] & 0xFFFFFFFF)
    for mode, bank in BANKS.items():
        _enter_mode(engine, cpsr, mode)
        _write(engine, bank, saved)
    core = cpu.hyp_core
    if core is not None:
        _restore_hyp(cpu, core, saved, cpsr)
    else:
        cpu.monitor_vectors = saved.get("mvbar", 0) & 0xFFFFFFE0
    _set_cpsr(cpu, cpsr)
    engine.reg_write(NAMES["pc"], saved["pc"] & 0xFFFFFFFE | (1 if cpsr & 1 << 5 else 0))
    cpu.control_restored()
    cpu.refresh()


def _read(engine: Any, names: dict[str, int]) -> dict[str, int]:
    return {name: int(engine.reg_read(number)) for name, number in names.items()}


def _write(engine: Any, names: dict[str, int], saved: dict[str, int]) -> None:
    """Write registers of 32 bits; 0 into those of HYP mode that older files lack."""
    for name, number in names.items():
        engine.reg_write(number, saved.get(name, 0) & 0xFFFFFFFF)


def _set_cpsr(cpu: Arm32, cpsr: int) -> None:
    mode = cpsr & MODE_MASK
    if cpu.hyp_core is not None and mode == HYP:
        hyp.enter_mode(cpu.engine, cpsr)
        return
    if cpu.hyp_core is not None and mode == hyp.MONITOR:
        hyp.enter_monitor(cpu.engine, cpsr)
    _enter_mode(cpu.engine, cpsr, mode)


def _snapshot_hyp(cpu: Arm32, core: HypCore, cpsr: int) -> dict[str, int]:
    """Read the registers that HYP and monitor mode have for themselves; HYP is the mode afterwards."""
    engine = cpu.engine
    hyp.enter_monitor(engine, cpsr)
    saved = _read(engine, MONITOR_BANK)
    hyp.enter_mode(engine, cpsr & ~MODE_MASK | HYP)
    saved |= {name: cpu.system_register(row) for name, row in hyp.REGISTERS.items()}
    saved |= _read(engine, HYP_BANK)
    return saved | {
        "elr_hyp": core.elr,
        "scr": core.scr,
        "mvbar": core.mvbar,
        "hvbar_set": int(core.vectors_set),
    }


def _restore_hyp(cpu: Arm32, core: HypCore, saved: dict[str, int], cpsr: int) -> None:
    engine = cpu.engine
    hyp.enter_monitor(engine, cpsr)
    _write(engine, MONITOR_BANK, saved)
    hyp.enter_mode(engine, cpsr & ~MODE_MASK | HYP)
    for name, register in hyp.REGISTERS.items():
        engine.reg_write(arm.UC_ARM_REG_CP_REG, (*register, saved.get(name, 0) & 0xFFFFFFFF))
    _write(engine, HYP_BANK, saved)
    core.elr = saved.get("elr_hyp", 0) & 0xFFFFFFFF
    core.scr = saved.get("scr", core.scr) & 0xFFFFFFFF
    core.mvbar = saved.get("mvbar", core.mvbar) & 0xFFFFFFE0
    core.vectors_set = bool(saved.get("hvbar_set", saved.get("HVBAR", 0)))


def is_sane(saved: dict[str, int]) -> bool:
    """Whether these are the registers of an AArch32 core."""
    return all(saved.keys() >= names.keys() for names in (NAMES, *BANKS.values()))


def _enter_mode(engine: Any, cpsr: int, mode: int) -> None:
    engine.reg_write(arm.UC_ARM_REG_CPSR, cpsr & ~MODE_MASK | mode)

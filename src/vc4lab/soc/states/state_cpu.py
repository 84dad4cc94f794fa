"""The registers of a core for a saved state: read and written one by one by name.

The engine could give its whole context as one block of bytes, but that holds pointers of the host:
a file from a stranger would then own the process. So: general registers with their banks, system
registers, floating point.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vc4lab.soc.cores import hyp
from vc4lab.soc.cores.arm32 import Arm32
from vc4lab.soc.cores.exceptions import (
    ABORT,
    FIQ,
    HYP,
    IRQ,
    MODE_MASK,
    SUPERVISOR,
    SYSTEM,
    UNDEFINED,
)

if TYPE_CHECKING:
    from vc4lab.soc.cores.cpu import Cpu
    from vc4lab.soc.cores.hyp_core import HypCore

MODES = {
    "system": SYSTEM,
    "irq": IRQ,
    "supervisor": SUPERVISOR,
    "abort": ABORT,
    "undefined": UNDEFINED,
    "fiq": FIQ,
}
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


def snapshot_cpu(cpu: Cpu) -> dict[str, int]:
    """The registers of an AArch32 core by name."""
    from unicorn import UcError

    engine = cpu.engine
    names = _names(32)
    saved = {name: int(engine.reg_read(number)) for name, number in names.items()}
    saved["pc"] = cpu.pc
    for mode, banked in _banks():
        _enter_mode(engine, saved["cpsr"], mode)
        for name, number in banked:
            saved[name] = int(engine.reg_read(number))
    core = _hyp_core(cpu)
    if core is not None:
        saved |= _snapshot_hyp(cpu, core, saved["cpsr"])
    elif isinstance(cpu, Arm32):
        saved["mvbar"] = cpu.monitor_vectors
    _set_cpsr(cpu, saved["cpsr"])
    for name, register in SYSTEM_REGISTERS.items():
        try:
            saved[name] = int(engine.reg_read(_cp(), register))
        except UcError:
            continue
    return saved


def restore_cpu(cpu: Cpu, saved: dict[str, int]) -> None:
    """Write the registers; values are masked to their width, unknown names are left out."""
    from unicorn import UcError

    engine = cpu.engine
    names = _names(32)
    cpsr = saved["cpsr"] & 0xFFFFFFFF
    for name, register in SYSTEM_REGISTERS.items():
        if name in saved:
            try:
                engine.reg_write(_cp(), (*register, saved[name] & 0xFFFFFFFF))
            except UcError:
                continue
    for name, number in names.items():
        if name.startswith("d"):
            engine.reg_write(number, saved[name] & 0xFFFFFFFFFFFFFFFF)
        elif name not in ("cpsr", "pc"):
            engine.reg_write(number, saved[name] & 0xFFFFFFFF)
    for mode, banked in _banks():
        _enter_mode(engine, cpsr, mode)
        for name, number in banked:
            engine.reg_write(number, saved[name] & 0xFFFFFFFF)
    core = _hyp_core(cpu)
    if core is not None:
        _restore_hyp(cpu, core, saved, cpsr)
    elif isinstance(cpu, Arm32):
        cpu.monitor_vectors = saved.get("mvbar", 0) & 0xFFFFFFE0
    _set_cpsr(cpu, cpsr)
    engine.reg_write(names["pc"], saved["pc"] & 0xFFFFFFFE | (1 if cpsr & 1 << 5 else 0))
    cpu.refresh()


def _hyp_core(cpu: Cpu) -> HypCore | None:
    return cpu.hyp_core if isinstance(cpu, Arm32) else None


def _set_cpsr(cpu: Cpu, cpsr: int) -> None:
    mode = cpsr & MODE_MASK
    if _hyp_core(cpu) is not None and mode == HYP:
        hyp.enter_mode(cpu.engine, cpsr)
        return
    if _hyp_core(cpu) is not None and mode == hyp.MONITOR:
        hyp.enter_monitor(cpu.engine, cpsr)
    _enter_mode(cpu.engine, cpsr, mode)


def _snapshot_hyp(cpu: Cpu, core: HypCore, cpsr: int) -> dict[str, int]:
    """What HYP and monitor mode have for themselves; HYP is the mode afterwards."""
    engine = cpu.engine
    hyp.enter_monitor(engine, cpsr)
    saved = {name: int(engine.reg_read(number)) for name, number in _hyp_banks("mon")}
    hyp.enter_mode(engine, cpsr & ~MODE_MASK | HYP)
    saved |= {name: int(engine.reg_read(_cp(), row)) for name, row in hyp.REGISTERS.items()}
    saved |= {name: int(engine.reg_read(number)) for name, number in _hyp_banks("hyp")}
    return saved | {
        "elr_hyp": core.elr,
        "scr": core.scr,
        "mvbar": core.mvbar,
        "hvbar_set": int(core.vectors_set),
    }


def _restore_hyp(cpu: Cpu, core: HypCore, saved: dict[str, int], cpsr: int) -> None:
    engine = cpu.engine
    hyp.enter_monitor(engine, cpsr)
    for name, number in _hyp_banks("mon"):
        engine.reg_write(number, saved.get(name, 0) & 0xFFFFFFFF)
    hyp.enter_mode(engine, cpsr & ~MODE_MASK | HYP)
    for name, register in hyp.REGISTERS.items():
        engine.reg_write(_cp(), (*register, saved.get(name, 0) & 0xFFFFFFFF))
    for name, number in _hyp_banks("hyp"):
        engine.reg_write(number, saved.get(name, 0) & 0xFFFFFFFF)
    core.elr = saved.get("elr_hyp", 0) & 0xFFFFFFFF
    core.scr = saved.get("scr", core.scr) & 0xFFFFFFFF
    core.mvbar = saved.get("mvbar", core.mvbar) & 0xFFFFFFE0
    core.vectors_set = bool(saved.get("hvbar_set", saved.get("HVBAR", 0)))


def _hyp_banks(mode: str) -> list[tuple[str, int]]:
    """HYP mode shares its LR with system mode."""
    from unicorn import arm_const as arm

    banked = [(f"sp_{mode}", arm.UC_ARM_REG_SP), (f"spsr_{mode}", arm.UC_ARM_REG_SPSR)]
    return banked if mode == "hyp" else [*banked, (f"lr_{mode}", arm.UC_ARM_REG_LR)]


def is_sane(saved: dict[str, int]) -> bool:
    """Whether these are the registers of an AArch32 core."""
    return frozenset(_names(32)) | {name for _mode, banks in _banks() for name, _ in banks} <= set(
        saved
    )


def _cp() -> int:
    from unicorn import arm_const as arm

    return int(arm.UC_ARM_REG_CP_REG)


def _names(doubles: int) -> dict[str, int]:
    from unicorn import arm_const as arm

    names = {f"r{n}": arm.UC_ARM_REG_R0 + n for n in range(8)}
    names |= {"pc": arm.UC_ARM_REG_PC, "cpsr": arm.UC_ARM_REG_CPSR}
    names |= {f"d{n}": arm.UC_ARM_REG_D0 + n for n in range(doubles)}
    names |= {"fpscr": arm.UC_ARM_REG_FPSCR, "fpexc": arm.UC_ARM_REG_FPEXC}
    return names


def _banks() -> list[tuple[int, list[tuple[str, int]]]]:
    """Mode → the registers that are its own; r8 to r12 belong to FIQ and to all the others."""
    from unicorn import arm_const as arm

    banks = []
    for name, mode in MODES.items():
        banked = [(f"sp_{name}", arm.UC_ARM_REG_SP), (f"lr_{name}", arm.UC_ARM_REG_LR)]
        if mode != SYSTEM:
            banked.append((f"spsr_{name}", arm.UC_ARM_REG_SPSR))
        if mode in (SYSTEM, FIQ):
            banked += [(f"r{n}_{name}", arm.UC_ARM_REG_R0 + n) for n in range(8, 13)]
        banks.append((mode, banked))
    return banks


def _enter_mode(engine: Any, cpsr: int, mode: int) -> None:
    from unicorn import arm_const as arm

    engine.reg_write(arm.UC_ARM_REG_CPSR, cpsr & ~MODE_MASK | mode)

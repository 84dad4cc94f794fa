"""The registers a debugger sees, and their description for GDB (target description XML).

GDB has no names for the system registers of ARM; an extra feature shows those that say where
exceptions go and come from (`info registers system`, `p $elr_hyp`). They are not written.

Source: the GDB manual, appendix G (Target Descriptions): the features org.gnu.gdb.arm.core,
org.gnu.gdb.arm.vfp, org.gnu.gdb.aarch64.core and org.gnu.gdb.aarch64.fpu with their register names
and sizes. The order of the table is the order of the `g` packet.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from unicorn import arm64_const as a64
from unicorn import arm_const as arm

from vc4lab.soc.cores.cpu import Cpu
from vc4lab.soc.cores.exceptions import hyp
from vc4lab.soc.cores.exceptions.exceptions import HYP, MODE_MASK, SCTLR, VBAR
from vc4lab.soc.cores.hyp_core import HypCore

ELR_HYP = "elr_hyp"
_SYSTEM = {
    "sctlr": SCTLR, "vbar": VBAR,
    "dfsr": (15, 0, 0, 5, 0, 0, 0), "dfar": (15, 0, 0, 6, 0, 0, 0),
    "ifsr": (15, 0, 0, 5, 0, 0, 1), "ifar": (15, 0, 0, 6, 0, 0, 2),
}  # fmt: skip
_SYSTEM_OF_HYP = {
    "hsctlr": hyp.HSCTLR, "hcr": hyp.HCR, "hvbar": hyp.HVBAR, "hsr": hyp.HSR, "hdfar": hyp.HDFAR,
    "hifar": hyp.HIFAR,
}  # fmt: skip


@dataclass(frozen=True)
class DebugRegister:
    """One row: GDB's name and type, size in bits, the engine's number.

    `system` is set for system registers: the engine's description of one of a coprocessor, or ().
    """

    name: str
    bits: int
    kind: str
    engine: int
    system: tuple[int, ...] | None = None

    @property
    def size(self) -> int:
        """Bytes."""
        return self.bits // 8


@dataclass(frozen=True)
class RegisterFile:
    """The registers of an architecture by feature."""

    architecture: str
    features: tuple[tuple[str, tuple[DebugRegister, ...]], ...]

    @property
    def registers(self) -> tuple[DebugRegister, ...]:
        """All of them in the order of their numbers."""
        return tuple(register for _name, group in self.features for register in group)

    def xml(self) -> str:
        """The target description."""
        lines = [
            '<?xml version="1.0"?>',
            '<!DOCTYPE target SYSTEM "gdb-target.dtd">',
            f'<target version="1.0"><architecture>{self.architecture}</architecture>',
        ]
        for name, group in self.features:
            lines.append(f'<feature name="{name}">')
            if name.endswith("aarch64.fpu"):
                lines += _VECTOR_TYPES
            lines += [_line(register) for register in group]
            lines.append("</feature>")
        return "\n".join([*lines, "</target>"])


def _line(register: DebugRegister) -> str:
    group = ' group="system" save-restore="no"' if register.system is not None else ""
    return f'<reg name="{register.name}" bitsize="{register.bits}" type="{register.kind}"{group}/>'


_VECTOR_TYPES = [
    '<vector id="v2d" type="ieee_double" count="2"/>',
    '<vector id="v2u" type="uint64" count="2"/>',
    '<union id="v128"><field name="d" type="v2d"/><field name="u" type="v2u"/></union>',
]


@cache
def arm_registers(doubles: int, with_hyp: bool = False) -> RegisterFile:
    """AArch32 with so many double-precision registers (16: VFPv2, 32: VFPv4 and NEON)."""
    core = [DebugRegister(f"r{n}", 32, "uint32", arm.UC_ARM_REG_R0 + n) for n in range(13)]
    core += [
        DebugRegister("sp", 32, "data_ptr", arm.UC_ARM_REG_SP),
        DebugRegister("lr", 32, "int", arm.UC_ARM_REG_LR),
        DebugRegister("pc", 32, "code_ptr", arm.UC_ARM_REG_PC),
        DebugRegister("cpsr", 32, "int", arm.UC_ARM_REG_CPSR),
    ]
    vfp = [DebugRegister(f"d{n}", 64, "ieee_double", arm.UC_ARM_REG_D0 + n) for n in range(doubles)]
    vfp.append(DebugRegister("fpscr", 32, "int", arm.UC_ARM_REG_FPSCR))
    names = _SYSTEM | (_SYSTEM_OF_HYP if with_hyp else {})
    system = [DebugRegister(name, 32, "uint32", arm.UC_ARM_REG_CP_REG, key) for name, key in names.items()]
    system.append(DebugRegister("spsr", 32, "uint32", arm.UC_ARM_REG_SPSR, ()))
    if with_hyp:
        system.append(DebugRegister(ELR_HYP, 32, "code_ptr", 0, ()))
    return RegisterFile(
        "arm",
        (
            ("org.gnu.gdb.arm.core", tuple(core)),
            ("org.gnu.gdb.arm.vfp", tuple(vfp)),
            ("org.vc4lab.arm.system", tuple(system)),
        ),
    )


@cache
def aarch64_registers() -> RegisterFile:
    """AArch64."""
    numbers = [a64.UC_ARM64_REG_X0 + n for n in range(29)]
    numbers += [a64.UC_ARM64_REG_X29, a64.UC_ARM64_REG_X30]
    core = [DebugRegister(f"x{n}", 64, "int", number) for n, number in enumerate(numbers)]
    core += [
        DebugRegister("sp", 64, "data_ptr", a64.UC_ARM64_REG_SP),
        DebugRegister("pc", 64, "code_ptr", a64.UC_ARM64_REG_PC),
        DebugRegister("cpsr", 32, "int", a64.UC_ARM64_REG_PSTATE),
    ]
    fpu = [DebugRegister(f"v{n}", 128, "v128", a64.UC_ARM64_REG_Q0 + n) for n in range(32)]
    fpu += [
        DebugRegister("fpsr", 32, "int", a64.UC_ARM64_REG_FPSR),
        DebugRegister("fpcr", 32, "int", a64.UC_ARM64_REG_FPCR),
    ]
    return RegisterFile(
        "aarch64", (("org.gnu.gdb.aarch64.core", tuple(core)), ("org.gnu.gdb.aarch64.fpu", tuple(fpu)))
    )


def register_file(cpu: Cpu) -> RegisterFile:
    """The registers of a core in the state it was started in."""
    if cpu.WIDE:
        return aarch64_registers()
    return arm_registers(16 if cpu.model == "1176" else 32, _hyp_core(cpu) is not None)


def _hyp_core(cpu: Cpu) -> HypCore | None:
    return getattr(cpu, "hyp_core", None)


def read_register(cpu: Cpu, register: DebugRegister) -> bytes:
    """The register's bytes, little endian."""
    value: Any
    if register.name == ELR_HYP:
        core = _hyp_core(cpu)
        value = 0 if core is None else core.elr
    elif register.system:
        value = cpu.system_register(register.system)
    else:
        value = cpu.engine.reg_read(register.engine)
    return (int(value) & ((1 << register.bits) - 1)).to_bytes(register.size, "little")


def write_register(cpu: Cpu, register: DebugRegister, data: bytes) -> None:
    """Set the register from its bytes; those of the system stay as they are."""
    if register.system is not None:
        return
    value = int.from_bytes(data[: register.size], "little")
    if register.name == "cpsr" and _hyp_core(cpu) is not None and value & MODE_MASK == HYP:
        hyp.enter_mode(cpu.engine, value)
    else:
        cpu.engine.reg_write(register.engine, value)
    cpu.refresh()

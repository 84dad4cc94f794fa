"""The registers a debugger sees, and their description for GDB (target description XML).

Source: the GDB manual, appendix G (Target Descriptions): the features org.gnu.gdb.arm.core,
org.gnu.gdb.arm.vfp, org.gnu.gdb.aarch64.core and org.gnu.gdb.aarch64.fpu with their register names
and sizes. The order of the table is the order of the `g` packet.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vc4lab.soc.cpu import Cpu


@dataclass(frozen=True)
class DebugRegister:
    """One row: GDB's name and type, size in bits, the engine's number."""

    name: str
    bits: int
    kind: str
    engine: int

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
            lines += [f'<reg name="{r.name}" bitsize="{r.bits}" type="{r.kind}"/>' for r in group]
            lines.append("</feature>")
        return "\n".join([*lines, "</target>"])


_VECTOR_TYPES = [
    '<vector id="v2d" type="ieee_double" count="2"/>',
    '<vector id="v2u" type="uint64" count="2"/>',
    '<union id="v128"><field name="d" type="v2d"/><field name="u" type="v2u"/></union>',
]


@cache
def arm_registers(doubles: int) -> RegisterFile:
    """AArch32 with so many double-precision registers (16: VFPv2, 32: VFPv4 and NEON)."""
    from unicorn import arm_const as arm

    core = [DebugRegister(f"r{n}", 32, "uint32", arm.UC_ARM_REG_R0 + n) for n in range(13)]
    core += [
        DebugRegister("sp", 32, "data_ptr", arm.UC_ARM_REG_SP),
        DebugRegister("lr", 32, "int", arm.UC_ARM_REG_LR),
        DebugRegister("pc", 32, "code_ptr", arm.UC_ARM_REG_PC),
        DebugRegister("cpsr", 32, "int", arm.UC_ARM_REG_CPSR),
    ]
    vfp = [DebugRegister(f"d{n}", 64, "ieee_double", arm.UC_ARM_REG_D0 + n) for n in range(doubles)]
    vfp.append(DebugRegister("fpscr", 32, "int", arm.UC_ARM_REG_FPSCR))
    return RegisterFile(
        "arm", (("org.gnu.gdb.arm.core", tuple(core)), ("org.gnu.gdb.arm.vfp", tuple(vfp)))
    )


@cache
def aarch64_registers() -> RegisterFile:
    """AArch64."""
    from unicorn import arm64_const as a64

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
        "aarch64",
        (("org.gnu.gdb.aarch64.core", tuple(core)), ("org.gnu.gdb.aarch64.fpu", tuple(fpu))),
    )


def register_file(cpu: Cpu) -> RegisterFile:
    """The registers of a core in the state it was started in."""
    from unicorn import UC_ARCH_ARM64

    if cpu.engine.ctl_get_arch() == UC_ARCH_ARM64:
        return aarch64_registers()
    return arm_registers(16 if cpu.model == "1176" else 32)


def read_register(cpu: Cpu, register: DebugRegister) -> bytes:
    """The register's bytes, little endian."""
    value: Any = cpu.engine.reg_read(register.engine)
    return (int(value) & ((1 << register.bits) - 1)).to_bytes(register.size, "little")


def write_register(cpu: Cpu, register: DebugRegister, data: bytes) -> None:
    """Set the register from its bytes."""
    cpu.engine.reg_write(register.engine, int.from_bytes(data[: register.size], "little"))
    cpu.refresh()

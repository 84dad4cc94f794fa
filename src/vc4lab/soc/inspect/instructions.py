"""ARM instructions as text, for messages."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vc4lab.soc.cores.cpu import Cpu

SINCE_ARMV7 = frozenset({"v6t2", "thumb2", "v7", "v8", "databarrier", "neon", "vfp3", "vfp4"})
"""Capstone's groups of instructions that an ARM1176 has not."""

LONGEST_LOOP = 128
"""Bytes of a loop that only waits."""
READERS = re.compile("(ld|pop|vld|swp|mr[cs]|mrrc|svc|hvc|smc|wf)|bl[xr]?$")
"""Instructions that may bring a loop something new, or wait by themselves."""
BRANCHES = re.compile("(b(eq|ne|cs|hs|cc|lo|mi|pl|vs|vc|hi|ls|ge|lt|gt|le)?|cbn?z|tbn?z)$")


def instruction_text(cpu: Cpu, address: int, thumb: bool | None = None) -> str:
    """The instruction that a core took an exception at: "movt r3, #0xedfe"; if there is none by
    these bits, the word; "" where nothing is mapped. `thumb`: the state, if not that in which the
    last exception was taken.
    """
    data = _code(cpu, address)
    found = _decoded(cpu, data, address, thumb)
    if found is not None:
        return f"{found.mnemonic} {found.op_str}".strip()
    return f"0x{int.from_bytes(data[:4], 'little'):08x}" if any(data) else ""


def is_missing(cpu: Cpu, address: int) -> bool:
    """Whether it is one that ARMv7 has and this core, an ARM1176, has not."""
    if cpu.model != "1176":
        return False
    found = _decoded(cpu, _code(cpu, address), address)
    return found is not None and any(found.group_name(g) in SINCE_ARMV7 for g in found.groups)


FLOAT_SWITCHES = (
    "give access to coprocessors 10 and 11 (CPACR bits 23:20, with HYP mode before it HCPTR), then "
    "set FPEXC.EN (vmsr fpexc, bit 30)"
)
FPEXC_ENABLE = 1 << 30


def float_is_off(cpu: Cpu, address: int) -> bool:
    """Whether it is an AArch32 floating-point or NEON instruction, and these are not enabled."""
    if cpu.WIDE:
        return False
    from unicorn.arm_const import UC_ARM_REG_FPEXC

    found = _decoded(cpu, _code(cpu, address), address)
    return (
        found is not None
        and found.mnemonic.startswith("v")
        and not found.mnemonic.startswith(("vmrs", "vmsr"))
        and not cpu.engine.reg_read(UC_ARM_REG_FPEXC) & FPEXC_ENABLE
    )


def _code(cpu: Cpu, address: int) -> bytes:
    halves = [cpu.fetch(address + 2 * n, 2) for n in range(2)]
    return b"".join(half.to_bytes(2, "little") for half in halves)


def _decoded(cpu: Cpu, data: bytes, address: int, thumb: bool | None = None) -> Any:
    state = cpu.interrupted_thumb if thumb is None else thumb
    return next(_decoder(cpu.WIDE, state).disasm(data, address, 1), None)


@cache
def _decoder(wide: bool, thumb: bool) -> Any:
    import capstone

    if wide:
        decoder = capstone.Cs(capstone.CS_ARCH_ARM64, capstone.CS_MODE_ARM)
    else:
        mode = capstone.CS_MODE_THUMB if thumb else capstone.CS_MODE_ARM
        decoder = capstone.Cs(capstone.CS_ARCH_ARM, mode | capstone.CS_MODE_V8)
    decoder.detail = True
    return decoder


def loops_without_load(cpu: Cpu, address: int) -> bool:
    """Whether the loop at an address reads nothing: neither memory nor a system register.

    From there to a branch back to it or before it; False if that is not found nearby.
    """
    decoder = _decoder(cpu.WIDE, cpu.executes_thumb)
    size = 2 if cpu.executes_thumb else 4
    code = b"".join(
        cpu.fetch(address + at, size).to_bytes(size, "little") for at in range(0, LONGEST_LOOP, size)
    )
    after = list(decoder.disasm(code, address))
    for number, one in enumerate(after, 1):
        target = _target(one)
        if target is not None and address - LONGEST_LOOP <= target <= address:
            before = b"".join(
                cpu.fetch(at, size).to_bytes(size, "little") for at in range(target, address, size)
            )
            whole = [*decoder.disasm(before, target), *after[:number]]
            return not any(READERS.match(other.mnemonic) for other in whole)
    return False


def _target(instruction: Any) -> int | None:
    """The address that a branch goes to whose target is in the instruction."""
    if BRANCHES.match(instruction.mnemonic.split(".")[0]) is None:
        return None
    text = instruction.op_str.rpartition("#")[2]
    try:
        return int(text, 0)
    except ValueError:
        return None

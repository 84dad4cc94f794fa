"""Code of an operating system: other instructions at a hooked address, pages of both halves."""

import struct

import pytest
from unicorn import arm64_const as a64

from vc4lab.soc.cores.exceptions.arm64_entry import ELR, SPSR, VBAR
from vc4lab.soc.machine import Machine, Stop
from vc4lab.soc.native import PAGES, page_index

IC_IALLU, NOP, ICIALLU = 0xD508751F, 0xD503201F, 0xEE070F15
HALT_64, HALT_32 = 0x14000000, 0xEAFFFFFE


def boot(tmp_path, words, file="kernel8.img", board="pi3"):
    (tmp_path / file).write_bytes(struct.pack(f"<{len(words)}I", *words))
    return Machine(tmp_path, board=board)


@pytest.mark.parametrize("trapped", [0xD53BE223, 0xD503205F, 0xD53B9D03], ids=["timer", "wfe", "cycles"])
def test_a_hook_leaves_other_instructions_alone_64(tmp_path, trapped):
    code = (
        0xD2800001,  # mov x1, #0
        0x10000082,  # adr x2, place
        0xD2800004,  # mov x4, #0
        0xD50320BF,  # again: sevl
        NOP,
        trapped,  # place
        0xF1000484,  # subs x4, x4, #1
        0x54000120,  # b.eq end
        0x18000003,  # ldr w3, new
        0xB9000043,  # str w3, [x2]
        0xD5033B9F,  # dsb ish
        IC_IALLU,
        0xD5033FDF,  # isb
        0xD2800024,  # mov x4, #1
        0x17FFFFF5,  # b again
        0x91000421,  # new: add x1, x1, #1
        HALT_64,  # end
    )
    code = (*code[:8], 0x180000E3, *code[9:])
    machine = boot(tmp_path, code)
    assert machine.run(seconds=0.01).reason is Stop.HALTED
    assert machine.cores[0].register(1) == 1


def test_a_hook_leaves_other_instructions_alone_32(tmp_path):
    code = (
        0xE3A01000,  # mov r1, #0
        0xE28F2004,  # adr r2, place
        0xE3A04000,  # mov r4, #0
        0xE1A00000,  # nop
        0xEE193F1D,  # place: mrc p15, 0, r3, c9, c13, 0
        0xE2544001,  # subs r4, r4, #1
        0x0A000005,  # beq end
        0xE59F300C,  # ldr r3, new
        0xE5823000,  # str r3, [r2]
        ICIALLU,
        0xE3A04001,  # mov r4, #1
        0xEAFFFFF7,  # b place
        0xE2811001,  # new: add r1, r1, #1
        HALT_32,  # end
    )
    machine = boot(tmp_path, code, "kernel7.img", "pi2")
    assert machine.run(seconds=0.01).reason is Stop.HALTED
    assert machine.cores[0].register(1) == 1


def test_pages_of_the_upper_half_are_not_those_of_the_lower():
    """A kernel's code may lie 2**63 above that of a program."""
    low, high = 0x0000_AAAA_0808_1000, 0xFFFF_8000_0808_1000
    assert page_index(low) != page_index(high)
    assert {page_index(low), page_index(high), page_index(high - (1 << 64))} < set(range(PAGES))
    assert page_index(high) == page_index(high - (1 << 64))


def test_code_is_looked_at_again_only_if_others_may_have_written(tmp_path):
    """What a core alone writes it notices by itself; Linux maintains its cache for each page."""
    machine = boot(tmp_path, (IC_IALLU, HALT_64))
    cpu, cores = machine.cores[0], machine.processors
    machine.run(seconds=0.001)
    cpu.stale = False
    cpu.links.code_changed()
    assert not cpu.stale
    machine.v3d_bridge.writes += 1
    cpu.links.code_changed()
    assert cpu.stale
    cpu.stale = False
    cpu.links.code_changed()
    assert not cpu.stale
    cores.release(1, 0x80000)
    cpu.stale = False
    cpu.links.code_changed()
    assert cpu.stale


def test_what_the_caller_writes_between_two_runs_is_executed(tmp_path):
    machine = boot(tmp_path, (0x91000421, 0x17FFFFFF))  # add x1, x1, #1; b .-4
    machine.run(seconds=0.001)
    machine.memory.write(0x80000, struct.pack("<I", 0x91000442))  # add x2, x2, #1
    before = machine.cores[0].register(1), machine.cores[0].register(2)
    machine.run(seconds=0.001)
    assert machine.cores[0].register(1) - before[0] <= 1
    assert machine.cores[0].register(2) > before[1]


def test_registers_read_and_written_together(tmp_path):
    cpu = boot(tmp_path, (HALT_64,)).cores[0]
    names = (ELR[1], a64.UC_ARM64_REG_X7, SPSR[1], VBAR[2])
    batch = cpu.calls.batch(cpu.SYSTEM, names)
    values = [0xFFFF_8000_1234_5678, 1 << 63, 0x3C5, 0x8800]
    batch.write(*values)
    assert batch.read() == values
    assert [cpu.system_register(names[n]) for n in (0, 2, 3)] == [values[n] for n in (0, 2, 3)]
    assert cpu.register(7) == 1 << 63

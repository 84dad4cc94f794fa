"""AArch64: levels, exceptions and their syndromes, the MMU, the spin table, timers, NEON."""

import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from tests.support.host_tools import needs

from vc4lab.soc.devices.serial.serial import SerialPort
from vc4lab.soc.machine import Machine, Stop

KERNELS = Path(__file__).parents[1] / "kernels64"


@pytest.fixture
def boot64(tmp_path):
    def make(name: str, config: str = "") -> Machine:
        shutil.copy(KERNELS / f"{name}.img", tmp_path / "kernel8.img")
        (tmp_path / "config.txt").write_text(config)
        forgiving = name == "cores"  # it uses ldaxr without a cache
        return Machine(tmp_path, board="pi3", serial=SerialPort(), forgiving=forgiving)

    return make


def test_levels_and_syndromes(boot64):
    machine = boot64("levels")
    result = machine.run()
    assert result.reason is Stop.HALTED
    x = machine.cores[0].register
    assert (x(19), x(20)) == (2 << 2, 1 << 2)
    assert x(21) == 0x15 << 26 | 1 << 25 | 7
    assert x(22) == 1 << 25
    assert x(25) == 0x16 << 26 | 1 << 25 | 3
    assert x(23) >> 26 == 0x25
    assert x(23) & 0x3C == 4, "a translation fault"
    assert x(23) >> 6 & 1 == 1, "a write"
    assert x(24) == 0x12345678
    assert x(28) == 4


def test_spin_table_timer_interrupts_and_floats(boot64):
    machine = boot64("cores")
    assert machine.run().reason is Stop.HALTED
    x = machine.cores[0].register
    assert machine.memory.u32(0x60000) == 3
    assert x(20) == 5
    assert x(12) == 2
    assert x(25) == 19_200_000
    assert x(22) - x(21) == pytest.approx(5 * 19200, abs=400)
    assert x(26) == 0x4008000000000000
    assert [machine.cores[n].register(20) for n in (1, 2, 3)] == [8, 8, 8]
    assert [machine.cores[n].register(9) for n in (1, 2, 3)] == [1, 2, 3]


def test_timer_of_el2_and_cntvoff(boot64):
    machine = boot64("el2_timer")
    assert machine.run(seconds=0.1).reason is Stop.HALTED
    x = machine.cores[0].register
    assert x(7) == 0x5_0000_3000
    assert 0 <= x(7) - x(4) < 10
    assert x(5) == 5
    assert x(6) == pytest.approx(20000, abs=100)


def test_kernel_old_starts_all_cores_at_el3(boot64):
    machine = boot64("cores", "kernel_old=1\ndisable_commandline_tags=1\n")
    machine.run(seconds=0.001)
    assert machine.memory.u32(0x60000) == 3
    assert machine.cores[1].register(20) == 3 << 2


def test_a_device_tree_is_handed_over(boot64):
    machine = boot64("levels")
    start = machine.cores[0].register(0)
    tree = machine.memory.read(start, 4096)
    assert tree[:4] == bytes.fromhex("d00dfeed")
    size = int.from_bytes(tree[4:8], "big")
    assert b"Raspberry Pi 3" in tree[:size]
    assert b"memory@0" in tree[:size]


@needs("aarch64-linux-gnu-as")
def test_rebuilding_gives_the_committed_images(tmp_path):
    for source in [*KERNELS.glob("*.s"), KERNELS / "Makefile"]:
        shutil.copy(source, tmp_path)
    subprocess.run(["make", "-s", "-j1"], cwd=tmp_path, check=True)
    committed = {p.name: p.read_bytes() for p in KERNELS.glob("*.img")}
    assert {p.name: p.read_bytes() for p in tmp_path.glob("*.img")} == committed


def _switches_on_the_mmu(tmp_path, *between: int) -> Machine:
    """At EL2, without tables: SCTLR_EL2.M, what is between, eret to EL1, which sets x5 = 7."""
    words = (
        0xD53C1000,  # mrs x0, sctlr_el2
        0xB2400000,  # orr x0, x0, #1
        0xD28078A1,  # mov x1, #0x3c5: EL1h
        0xD51C4001,  # msr spsr_el2, x1
        0x10000002 | (4 + len(between)) << 5,  # adr x2, 1f
        0xD51C1000,  # msr sctlr_el2, x0
        *between,
        0xD51C4022,  # msr elr_el2, x2
        0xD69F03E0,  # eret
        0xD28000E5,  # 1: mov x5, #7
        0x14000000,  # b .
    )
    (tmp_path / "kernel8.img").write_bytes(struct.pack(f"<{len(words)}I", *words))
    machine = Machine(tmp_path, board="pi3", serial=SerialPort())
    machine.run(seconds=0.01)
    return machine


def test_an_mmu_that_is_switched_on_just_before_eret_waits_for_it(tmp_path):
    core = _switches_on_the_mmu(tmp_path).cores[0]
    assert core.register(5) == 7
    assert core.level == 1
    assert core.system_register((1, 0, 3, 4, 0)) & 1, "SCTLR_EL2.M"


def test_an_mmu_that_is_switched_on_before_isb_takes_effect_there(tmp_path):
    isb = 0xD5033FDF
    assert _switches_on_the_mmu(tmp_path, isb).cores[0].register(5) == 0


def test_floats_are_trapped_until_they_are_allowed(boot64):
    machine = boot64("floats")
    assert machine.run().reason is Stop.HALTED
    x = machine.cores[0].register
    assert (x(20), x(21)) == (0x1FE00000, 2)
    assert x(24) == 7
    assert x(22) >> 26 == 0x22
    assert x(23) & 3 == 2
    assert machine.reporter.counts["SOC-059"] == 2


SEV, SEVL, WFE, STOP = 0xD503209F, 0xD50320BF, 0xD503205F, 0x14000000
COUNT = 0x91000694
"""add x20, x20, #1"""


@pytest.mark.parametrize(
    ("words", "count", "end"),
    [
        ((SEVL, WFE, COUNT, STOP), 1, "branch"),
        ((SEV, COUNT, WFE, COUNT, WFE, COUNT), 2, "wfe"),
        ((COUNT, WFE, COUNT), 1, "wfe"),
    ],
)
def test_an_event_that_was_sent_before_the_wfe(tmp_path, words, count, end):
    (tmp_path / "kernel8.img").write_bytes(struct.pack(f"<{len(words)}I", *words))
    machine = Machine(tmp_path, "pi3")
    result = machine.run()
    assert machine.cores[0].register(20) == count
    assert end in result.message

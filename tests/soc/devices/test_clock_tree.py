"""PLLs, clock generators, power switches, bridges and the temperature, as a driver finds them."""

import pytest

from vc4lab.soc.board import BOARDS
from vc4lab.soc.board_unknowns import Unknowns
from vc4lab.soc.devices.clock_manager import GENERATORS, PLLS

HALT = bytes.fromhex("feffffea")
PM, CM, A2W, ASB, TSENS = 0x100000, 0x101000, 0x102000, 0x00A000, 0x212000
PASSWORD = 0x5A000000
CRYSTAL = 19_200_000
LOCK, PLLD, PLLH = CM + 0x114, CM + 0x10C, CM + 0x110
PLLA_CTRL, POWERED_DOWN = A2W + 0x100, 1 << 16
PLLD_CTRL, PLLD_FRAC, PLLD_ANA1, PLLD_PER = (A2W + at for at in (0x140, 0x240, 0x054, 0x540))
PLLD_CORE, PLLC_CORE0 = A2W + 0x440, A2W + 0x620
PLLH_CTRL, PLLH_FRAC, PLLH_PIX = A2W + 0x160, A2W + 0x260, A2W + 0x560


@pytest.fixture
def registers(boot):
    return Registers(boot(HALT))


class Registers:
    def __init__(self, machine):
        self.machine = machine

    def __getitem__(self, at):
        return self.machine.bus.read(at, 4)

    def __setitem__(self, at, value):
        self.machine.bus.write(at, 4, PASSWORD | value)

    def pll(self, control, fraction, ana1, halved):
        """The rate that a driver computes."""
        value = self[control]
        steps = ((value & 0x3FF) << 20) + (self[fraction] & 0xFFFFF)
        steps <<= self[ana1] >> halved & 1
        return CRYSTAL * steps / (value >> 12 & 7) / (1 << 20)

    def generator(self, name, source):
        return source / (self[CM + GENERATORS[name] + 4] / 4096)


@pytest.mark.parametrize("name", BOARDS)
def test_the_rates_that_a_driver_computes(boot, tmp_path, name):
    board = BOARDS[name]
    (tmp_path / "kernel.img").write_bytes(HALT)
    registers = Registers(boot(HALT, board=name))
    plld = registers.pll(PLLD_CTRL, PLLD_FRAC, PLLD_ANA1, 14)
    assert plld == pytest.approx(2e9, abs=40)
    pllc = registers.pll(A2W + 0x120, A2W + 0x220, A2W + 0x034, 14)
    pllb = registers.pll(A2W + 0x1E0, A2W + 0x2E0, A2W + 0x0F4, 14)
    assert pllb / registers[A2W + 0x3E0] == pytest.approx(board.arm_clock, rel=1e-6)
    core = registers.generator("VPU", pllc / registers[PLLC_CORE0])
    assert core == pytest.approx(board.core_clock, rel=1e-3)
    assert registers[CM + GENERATORS["UART"]] & 0xFF == 0xD6
    uart = registers.generator("UART", plld / registers[PLLD_PER])
    assert uart == pytest.approx(board.uart_clock, rel=1e-3)
    assert registers.generator("TIMER", CRYSTAL) == pytest.approx(1e6, rel=1e-3)
    assert registers[LOCK] == 0x1F00


def test_the_rates_of_a_pi_3_are_those_that_linux_lists_on_boards(boot):
    """clk_summary of a Pi 3 B+: A. McDermond on linux-i2c, 28 May 2019. Linux rounds down."""
    registers = Registers(boot(HALT, board="pi3"))
    plla, pllc, plld = (
        registers.pll(A2W + 0x100 + at, A2W + 0x200 + at, A2W + 0x014 + at, 14) for at in (0, 0x20, 0x40)
    )
    assert [int(rate) for rate in (plla, pllc, plld)] == [2_400_000_000, 2_400_000_000, 2_000_000_024]
    core, gpu = pllc / registers[PLLC_CORE0], plla / registers[A2W + 0x400]
    assert core == gpu == 1_200_000_000
    assert registers.generator("VPU", core) == 400_000_000
    assert {registers.generator(name, gpu) for name in ("H264", "ISP", "V3D")} == {300_000_000}
    per = plld / registers[PLLD_PER]
    assert int(per) == int(plld / registers[PLLD_CORE]) == 500_000_006
    assert int(registers.generator("UART", per)) == 47_999_625
    assert int(registers.generator("HSM", per)) == 163_682_866
    assert int(registers.generator("SDC", per)) == 166_666_668


def test_the_firmware_sets_the_clocks_of_displays(boot):
    """Newer kernels ask it for them. PLLH serves HDMI, so does it in the registers."""
    machine = boot(HALT, board="pi3")
    videocore, valve = machine.videocore, machine.hardware.pixel_valves[1]
    for hertz in (25_175_000, 74_250_000, 139_770_000, 162_000_000):
        videocore.set_clock_rate(9, hertz)
        assert valve._hertz() == pytest.approx(hertz, abs=1000)
    for hertz in (1, 0xFFFFFFFF):
        videocore.set_clock_rate(9, hertz)
        assert valve._hertz() >= 0
    valve.CONTROL = 2 << 2
    videocore.set_clock_rate(15, 108_000_000)
    assert valve._hertz() == pytest.approx(13.5e6, rel=1e-5)


def test_a_pll_is_switched_off_and_on(registers):
    registers[A2W + 0x100] = registers[A2W + 0x100] | 1 << 16
    assert registers[LOCK] & 1 << 8 == 0
    registers[A2W + 0x100] = registers[A2W + 0x100] & ~(1 << 16)
    assert registers[LOCK] & 1 << 8
    registers[CM + 0x104] = 1 << 8
    assert not registers[LOCK] & 1 << 8
    registers[CM + 0x104] = 0
    assert registers[LOCK] & 1 << 8
    registers[A2W + 0x100] = registers[A2W + 0x100] | 1 << 16
    assert not registers[LOCK] & 1 << 8


def test_registers_of_plls_have_no_busy_bit(registers):
    """They lie among those of generators, where bit 7 follows bit 4."""
    for at in (CM + 0x108, CM + 0x110, CM + 0x170):
        registers[at] = 0x94
        assert registers[at] == 0x94
        registers[at] = 0x10
        assert registers[at] == 0x10
    registers[CM + 0xA0] = 0x16
    assert registers[CM + 0xA0] == 0x96
    registers[CM + 0xA0] = 0x36
    assert registers[CM + 0xA0] == 0x26, "kill"


def test_what_a_pll_took_over_is_read_back(registers):
    registers[PLLH_PIX] = 3
    assert registers[PLLH_PIX + 0x800] == 3
    registers[PLLH_PIX + 0x800] = 5
    assert registers[PLLH_PIX] == 3


def test_passwords(registers):
    bus = registers.machine.bus
    before = registers[PLLD_PER], registers[PM + 0x10C], registers[ASB + 8]
    for at in (PLLD_PER, PM + 0x10C, ASB + 8, ASB + 4):
        bus.write(at, 4, 0x10)
    assert before == (registers[PLLD_PER], registers[PM + 0x10C], registers[ASB + 8])
    assert registers.machine.reporter.counts["SOC-055"] == 4


def test_sound_follows_the_pll(registers):
    """PLLD_PER at half its rate: so is what the generators make of it."""
    registers[CM + 0xA4] = 5 << 12
    registers[CM + 0xA0] = 0x16
    frequency = registers.machine.pwm._frequency
    assert frequency() == 100e6
    registers[PLLD_PER] = 8
    assert frequency() == 50e6
    registers[PLLD_PER] = 1 << 8
    assert frequency() == 0
    registers[PLLD_PER] = 4
    registers[PLLD_CTRL] = registers[PLLD_CTRL] | 1 << 16
    assert frequency() == 0


def test_a_clock_is_measured(registers):
    registers[CM + 0xC0] = 5  # VPU
    registers[CM + 0x100] = 19200
    assert registers[CM + 0x100] == 0
    assert registers[CM + 0xC4] * 1000 == registers.machine.board.core_clock
    registers[CM + 0xC0] = 39 & 15 | (39 >> 4) << 12  # EMMC
    registers[CM + 0x100] = 19200
    assert registers[CM + 0xC4] == 250_000


def test_a_power_switch(registers):
    grafx = PM + 0x10C
    registers[grafx] = 1
    assert registers[grafx] == 3
    registers[grafx] = registers[grafx] | 1 << 2
    registers[grafx] = registers[grafx] | 1 << 3
    assert registers[grafx] == 0x1F
    registers[grafx] = registers[grafx] & ~1
    assert registers[grafx] == 0xC


def test_a_bridge_stops_and_goes_on(registers):
    assert registers[ASB + 0x20].to_bytes(4, "big") == b"brdg"
    for at in range(ASB + 8, ASB + 0x20, 4):
        registers[at] = registers[at] & ~1
        assert not registers[at] & 3
        registers[at] = registers[at] | 1
        assert registers[at] & 3 == 3


@pytest.mark.parametrize(("name", "offset"), [("zero", 407_000), ("pi3", 412_000)])
def test_the_temperature(boot, tmp_path, name, offset):
    (tmp_path / "kernel.img").write_bytes(HALT)
    registers = Registers(boot(HALT, board=name))
    status = registers[TSENS + 4]
    assert status & 1 << 10
    assert offset - 538 * (status & 0x3FF) == pytest.approx(42_236, abs=538)
    registers.machine.bus.write(TSENS, 4, 0)
    assert registers[TSENS + 4] == 0


def test_names_in_traces(registers):
    bus = registers.machine.bus
    names = {block.NAME: block for _start, block in bus.blocks}
    assert names["cm"].describe(0xF0) == "cm.UARTCTL"
    assert names["cm"].describe(0xF4) == "cm.UARTDIV"
    assert names["cm"].describe(0x114) == "cm.LOCK"
    assert names["a2w"].describe(0x140) == "a2w.PLLD_CTRL"
    assert names["a2w"].describe(0xD60) == "a2w.PLLH_PIXR"
    assert {f"{name}_CTRL" for name in PLLS} <= {
        names["a2w"].describe(at).removeprefix("a2w.") for at in range(0x100, 0x200, 4)
    }


@pytest.mark.parametrize(("chosen", "is_down"), [("used", True), ("all", False)])
def test_whether_pll_a_runs_at_the_start(boot, chosen, is_down):
    registers = Registers(boot(HALT, unknowns=Unknowns({"pll_start": chosen})))
    assert bool(registers[PLLA_CTRL] & POWERED_DOWN) == is_down
    assert not registers[PLLD_CTRL] & POWERED_DOWN

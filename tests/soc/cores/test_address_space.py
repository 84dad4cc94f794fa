"""What the ARM finds at physical addresses: RAM and registers, again on a BCM2835."""

import pytest
from tests.support.lost_accesses import lost_accesses

from vc4lab.diagnostics.unknown import Unknowns


@pytest.mark.parametrize("board", ["zero", "pi1"])
def test_a_bcm2835_repeats_each_gib(boot, board):
    machine = boot("upper", "kernel=kernel7.img\nenable_uart=1\n", board=board)
    machine.run()
    assert (machine.cpu.register(4), machine.cpu.register(5)) == (77, 77)
    assert machine.uart.text == "U"
    assert not machine.reporter.items
    assert lost_accesses(machine) == 0


def test_a_pi_2_has_nothing_there(boot):
    machine = boot("upper")
    machine.run()
    assert (machine.cpu.register(4), machine.cpu.register(5)) == (0, 0)
    assert machine.uart.text == ""
    assert machine.reporter.counts["SOC-003"] == 3
    assert lost_accesses(machine) == 3


def test_the_switch_takes_the_repetitions_away(boot):
    machine = boot(
        "upper", "kernel=kernel7.img\n", board="zero", unknowns=Unknowns({"arm_upper_addresses": "nothing"})
    )
    machine.run()
    assert machine.cpu.register(4) == 0
    assert machine.reporter.counts["SOC-003"] == 3


@pytest.mark.parametrize(("firmware", "top"), [("bus", 0xC0000000), ("physical", 0)])
def test_older_firmware_gives_the_framebuffers_physical_address(boot, firmware, top):
    machine = boot("framebuffer", unknowns=Unknowns({"framebuffer_address": firmware}))
    machine.run(frames=1)
    told = machine.videocore.framebuffer.bus_address
    assert told == machine.videocore.framebuffer.address | top
    assert machine.screen.image is not None

"""What Linux finds on the board: clocks, temperature, power domains."""

import re
from collections.abc import Callable

from vc4lab.linux.running import Linux

DEBUG = "mount -t debugfs none /sys/kernel/debug 2> /dev/null; cat /sys/kernel/debug"


def test_clocks_have_the_rates_that_boards_list(linux: Callable[..., Linux]) -> None:
    """clk_summary of a Pi 3 B+ on linux-i2c, 28 May 2019: its ARM runs at 1.4 GHz, and its Linux
    did not round the PL011's 47,999,625 Hz up yet."""
    text = linux().run(f"{DEBUG}/clk/clk_summary").output
    rates = {name: int(rate) for name, rate in re.findall(r"^ +([\w.-]+)(?: +\d+){3} +(\d+)", text, re.M)}
    listed = {
        "osc": 19_200_000, "gp2": 32_768, "tsens": 1_920_000, "otp": 4_800_000,
        "timer": 1_000_002, "plld": 2_000_000_024, "plld_per": 500_000_006,
        "plld_core": 500_000_006, "uart": 48_000_000, "hsm": 163_682_866, "sdram": 166_666_668,
        "pllc": 2_400_000_000, "pllc_core0": 1_200_000_000, "pllc_core1": 9_375_000,
        "vpu": 400_000_000, "aux_uart": 400_000_000, "plla": 2_400_000_000,
        "plla_core": 1_200_000_000, "h264": 300_000_000, "isp": 300_000_000, "v3d": 300_000_000,
        "pllb_arm": 1_200_000_000,
    }  # fmt: skip
    assert {name: rates.get(name) for name in listed} == listed


def test_the_temperature_is_that_of_a_chip_at_work(linux: Callable[..., Linux]) -> None:
    zone = "/sys/class/thermal/thermal_zone0"
    kind, temperature = linux().run(f"cat {zone}/type {zone}/temp").output.split()
    assert kind == "cpu-thermal"
    assert 30_000 < int(temperature) < 60_000


def test_power_domains_follow_their_devices(linux: Callable[..., Linux]) -> None:
    guest = linux()
    text = guest.run(f"{DEBUG}/pm_genpd/pm_genpd_summary").output
    state = dict(re.findall(r"^(\w+) +(on|off)", text, re.M))
    assert (state["HDMI"], state["VEC"], state["USB"]) == ("on", "on", "off")
    assert state["V3D"] == "off"
    guest.run(["kmscube"], frames=2)
    assert guest.machine.videocore.domains[11] == 1  # the firmware's number of the V3D's

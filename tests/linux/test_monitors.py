"""Monitors that come and go in Debian, with the real vc4.ko: status, modes, rates, the console."""

import re
from collections.abc import Callable

import pytest

from vc4lab.linux.running import Linux

STATUS = "cat /sys/class/drm/card0-HDMI-A-1/status"
MODES = "cat /sys/class/drm/card0-HDMI-A-1/modes"
LOOKED = "sleep 21"
"""Linux looks every ten seconds, and works off what it finds."""


def test_a_monitor_is_unplugged_and_another_one_comes(linux: Callable[..., Linux]) -> None:
    guest = linux()
    assert guest.run(STATUS).output == "connected\n"
    guest.disconnect()
    assert guest.run(f"{LOOKED}; {STATUS}; {MODES}").output == "disconnected\n"
    guest.connect("1280x720,1024x768,800x600@75,640x480")
    found = guest.run(f"{LOOKED}; {STATUS}; {MODES}").output.split()
    assert found[0] == "connected"
    # 720 lines and 480 with 59.94 pictures a second as well, as on a board
    assert list(dict.fromkeys(found[1:])) == ["1280x720", "1024x768", "800x600", "640x480"]
    assert guest.screen.image.size == (1280, 720)  # the console goes along
    assert not guest.machine.reporter.items


@pytest.mark.parametrize(("mode", "rate"), [("1024x768", 60), ("800x600-75", 75), ("640x480", 60)])
def test_a_program_sets_another_mode(linux: Callable[..., Linux], mode: str, rate: int) -> None:
    """modetest reports the rate at which its flips come, each second."""
    guest = linux()
    guest.connect("1280x720,1024x768,800x600@75,640x480")
    connector = re.search(r"^(\d+)\s.*HDMI-A-1", guest.run("modetest -M vc4 -c").output, re.M)
    assert connector is not None
    set_mode = f"modetest -M vc4 -s {connector[1]}:{mode}"
    output = guest.run(f"sleep 2.5 | {set_mode} -v").output
    rates = [float(found) for found in re.findall(r"freq: ([\d.]+)Hz", output)]
    assert rates[-1] == pytest.approx(rate, rel=2e-3)
    guest.run(f"(sleep 1 | {set_mode}) & sleep 0.5")
    assert "x".join(map(str, guest.screen.image.size)) == mode.partition("-")[0]


def test_the_monitor_is_one_with_hdmi(linux: Callable[..., Linux]) -> None:
    """Linux sends it packets (AVI and SPD) and colours of limited range, as television's modes
    have them, with the timing of the standard."""
    guest = linux()
    registers = "mount -t debugfs none /sys/kernel/debug; cat /sys/kernel/debug/dri/0/hdmi_regs"
    asked = "HDMI_RAM_PACKET_STATUS", "HDMI_SCHEDULER_CONTROL", "HDMI_CSC_14_13"
    found = dict(re.findall(r"(\w+) = (0x\w+)", guest.run(registers).output))
    packets, mode, red = (int(found[name], 16) for name in asked)
    assert packets == 1 << 2 | 1 << 3
    assert mode & 3 == 3
    assert red & 0xFFFF == 0x6E0  # 219 of 255
    assert "#0 1920x1080 60.00 1920 2008 2052 2200 1080 1084 1089 1125 148500 " in (
        guest.run("modetest -M vc4 -c").output
    )


def test_analogue_video_has_its_rate(linux: Callable[..., Linux]) -> None:
    """NTSC: 59.94 fields a second."""
    guest = linux()
    connector = re.search(r"^(\d+)\s.*Composite-1", guest.run("modetest -M vc4 -c").output, re.M)
    assert connector is not None
    output = guest.run(f"sleep 4.5 | modetest -M vc4 -s {connector[1]}:720x480 -v").output
    rates = [float(found) for found in re.findall(r"freq: ([\d.]+)Hz", output)]
    assert rates[-1] == pytest.approx(59.94, abs=0.02)

"""Which UART leads to GPIO 14 and 15, and what is connected to pins from outside."""

import pytest
from typer.testing import CliRunner

from vc4lab.cli.exit_codes import ExitCode
from vc4lab.cli.main import app
from vc4lab.soc.machine import Machine
from vc4lab.soc.options import MachineOptions
from vc4lab.soc.pins import PinLevel

HALT, HALT_64 = bytes.fromhex("feffffea"), bytes.fromhex("5f2003d5ffffff17")
RESTLESS = bytes.fromhex("0000a0e1fdffffea")
"""nop; b to it"""
LEVEL = 0x200034


@pytest.mark.parametrize(
    ("config", "function"),
    [
        ("", "input"),
        ("enable_uart=1", "alt5"),
        ("dtoverlay=disable-bt", "alt0"),
        ("dtoverlay=pi3-disable-bt", "alt0"),
        ("dtoverlay=miniuart-bt\nenable_uart=1", "alt0"),
        ("dtoverlay=pi3-miniuart-bt", "alt0"),
        ("device_tree_overlay=disable-bt", "alt0"),
        ("dtoverlay=miniuart-bt,krnbt=on", "alt0"),
        ("dtoverlay=vc4-kms-v3d\nenable_uart=1", "alt5"),
        ("[pi2]\ndtoverlay=disable-bt", "input"),
    ],
)
def test_overlays_move_the_uarts_without_their_files(tmp_path, config, function):
    (tmp_path / "kernel8.img").write_bytes(HALT_64)
    (tmp_path / "config.txt").write_text(config)
    gpio = Machine(tmp_path, "pi3").gpio
    assert {gpio.function(14), gpio.function(15)} == {function}


@pytest.fixture
def wired(tmp_path):
    """A machine that runs on and on, with pins connected."""

    def make(*pins: PinLevel, config: str = "") -> Machine:
        (tmp_path / "kernel7.img").write_bytes(RESTLESS)
        (tmp_path / "config.txt").write_text(config)
        return Machine(tmp_path, options=MachineOptions(pins=pins))

    return make


def test_pins_from_the_start_and_later(wired):
    machine = wired(PinLevel(10, 1), PinLevel(40, 1), PinLevel(21, 0))
    assert machine.gpio.pins >> 10 & 1
    assert machine.bus.read(LEVEL + 4, 4) >> 8 & 1
    machine = wired(PinLevel(21, 1, 0.005), PinLevel(21, 0, 0.0025), PinLevel(2, 0))
    seen = []
    for _turn in range(3):
        machine.run(seconds=0.002)
        seen.append((machine.gpio.pins >> 2 & 1, machine.gpio.pins >> 21 & 1))
    assert seen == [(0, 0), (0, 0), (0, 1)]


def test_filters_of_config_txt_see_pins(wired):
    """[gpio4=0]: GPIO 4 is pulled up."""
    config = "[gpio4=0]\nhdmi_group=2\nhdmi_mode=4\n[gpio4=1]\nhdmi_group=2\nhdmi_mode=9"
    found = [
        wired(*pins, config=config).config.display_mode()[:2]
        for pins in ((), (PinLevel(4, 0),), (PinLevel(4, 0, 1.0),))
    ]
    assert found == [(800, 600), (640, 480), (800, 600)]


@pytest.mark.parametrize(
    "text", ["", "10", "10=2", "54=1", "10=1@", "10=1@-1", "10=1@nan", "ten=1", "10=1@1e99"]
)
def test_nonsense_is_refused(tmp_path, text):
    (tmp_path / "kernel7.img").write_bytes(HALT)
    result = CliRunner().invoke(app, ["boot", str(tmp_path), "--headless", "--gpio", text])
    assert result.exit_code == ExitCode.BAD_INPUT
    assert "--gpio" in result.output


@pytest.mark.parametrize(("pins", "pressed"), [([], False), (["21=1@0.05", "9=1"], True)])
def test_the_option(tmp_path, pins, pressed):
    """The program waits for GPIO 21, then sends a letter."""
    words = (
        "e3a0443f",  # mov r4, #0x3f000000
        "e2844602",  # add r4, r4, #0x200000
        "e5941034",  # 1: ldr r1, [r4, #0x34]
        "e3110602",  # tst r1, #1 << 21
        "0afffffc",  # beq 1b
        "e3a03050",  # mov r3, #'P'
        "e2844a01",  # add r4, r4, #0x1000
        "e5843000",  # str r3, [r4]
        "eafffffe",  # b .
    )
    (tmp_path / "kernel7.img").write_bytes(b"".join(bytes.fromhex(w)[::-1] for w in words))
    options = [part for pin in pins for part in ("--gpio", pin)]
    command = ["boot", str(tmp_path), "--headless", "--seconds", "0.1", *options]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == ExitCode.OK, result.output
    assert ("P" in result.stdout) is pressed

"""Firmware of 2015: supervisor mode, framebuffers at the ARM's addresses."""

import pytest
from typer.testing import CliRunner

from vc4lab.cli.exit_codes import ExitCode
from vc4lab.cli.main import app
from vc4lab.soc.board_unknowns import DEFAULT_UNKNOWNS
from vc4lab.soc.options import FIRMWARES, with_firmware

SVC, HYP = 0x13, 0x1A
HALT = bytes.fromhex("feffffea")
ALLOCATE = 0x40001


def test_every_choice_is_one_of_its_row() -> None:
    for firmware in FIRMWARES:
        with_firmware(DEFAULT_UNKNOWNS, firmware)
    assert with_firmware(DEFAULT_UNKNOWNS, "today") == DEFAULT_UNKNOWNS


@pytest.mark.parametrize(("firmware", "mode", "upper"), [("today", HYP, 3), ("2015", SVC, 0)])
def test_what_a_program_meets(boot, firmware, mode, upper) -> None:
    machine = boot("framebuffer", firmware=firmware)
    assert machine.cpu.cpsr & 0x1F == mode
    machine.run()
    message = bytes(machine.memory[0x8000:0x8200])
    at = message.index(ALLOCATE.to_bytes(4, "little")) + 12
    address = int.from_bytes(message[at : at + 4], "little")
    assert address & 0x3FFFFFFF == machine.videocore.framebuffer.address
    assert address >> 30 == upper


def test_what_is_decided_otherwise_counts_more() -> None:
    decided = DEFAULT_UNKNOWNS.with_(monitor_call="undefined")
    both = with_firmware(decided, "2015")
    assert both["monitor_call"] == "undefined"
    assert both["hyp_start"] == "svc"


def test_other_years_do_not_exist(boot, tmp_path) -> None:
    with pytest.raises(ValueError, match="only today and 2015"):
        boot(HALT, firmware="1999")
    result = CliRunner().invoke(app, ["boot", str(tmp_path), "--firmware", "1999"])
    assert result.exit_code == ExitCode.BAD_INPUT
    assert "'today', '2015'" in result.output


@pytest.mark.parametrize(
    ("options", "address"),
    [
        ([], "3"),
        (["--firmware", "2015"], "0"),
        (["--firmware", "2015", "--unknown", "framebuffer_address=bus"], "3"),
    ],
)
def test_the_option(boot, tmp_path, options, address) -> None:
    boot("framebuffer")  # puts it on the card
    trace = ["--trace", "mailbox", "--trace-to", str(tmp_path / "trace")]
    result = CliRunner().invoke(app, ["boot", str(tmp_path), "--headless", *options, *trace])
    assert result.exit_code == ExitCode.OK, result.output
    line = next(t for t in (tmp_path / "trace").read_text().splitlines() if "allocate" in t)
    told = int(line.split("base=")[1].split(",")[0].rstrip(")"), 16)
    assert told >> 30 == int(address)


@pytest.mark.parametrize(
    ("board", "config", "options", "hertz"),
    [
        ("pi2", "", {}, 48_000_000),
        ("pi2", "", {"firmware": "2015"}, 3_000_000),
        ("pi2", "", {"unknowns": DEFAULT_UNKNOWNS.with_(uart_clock="3mhz")}, 3_000_000),
        ("pi2", "init_uart_clock=4000000\n", {"firmware": "2015"}, 4_000_000),
        ("pi3", "arm_64bit=0\n", {"firmware": "2015"}, 48_000_000),
    ],
)
def test_the_pl011s_clock(boot, board, config, options, hertz) -> None:
    assert boot(HALT, config, board=board, **options).videocore.clock_rates[2] == hertz


@pytest.mark.parametrize(("firmware", "codes"), [("2015", []), ("today", ["SOC-131"])])
def test_divisors_of_its_time(boot, firmware, codes) -> None:
    """115200 baud of 3 MHz."""
    machine = boot(HALT, firmware=firmware)
    for offset, value in ((0x24, 1), (0x28, 40), (0x30, 0x301), (0, 65)):
        machine.bus.write(0x201000 + offset, 4, value)
    assert [item.code for item in machine.reporter.items] == codes

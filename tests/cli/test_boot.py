"""`vc4lab boot` and the program as a whole: exit codes, files, no tracebacks."""

import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner

from vc4lab.cli.exit_codes import MEANINGS, ExitCode
from vc4lab.cli.main import COMMANDS, app

KERNELS = Path(__file__).parent.parent / "soc" / "kernels"
EXAMPLE = Path(__file__).parents[2] / "examples" / "framebuffer" / "sdcard"


@pytest.fixture
def vc4lab():
    def run(*arguments: object, code: ExitCode = ExitCode.OK):
        result = CliRunner().invoke(app, [str(a) for a in arguments])
        assert result.exit_code == code, result.output
        assert "Traceback" not in result.output
        return result

    return run


@pytest.fixture
def card(tmp_path):
    def make(kernel: str, config: str = "") -> Path:
        folder = tmp_path / "card"
        folder.mkdir(exist_ok=True)
        (folder / "kernel7.img").write_bytes((KERNELS / f"{kernel}.img").read_bytes())
        (folder / "config.txt").write_text(config)
        return folder

    return make


def test_serial_output_is_shown(vc4lab, card):
    assert "hello from the ARM" in vc4lab("boot", card("hello")).stdout


def test_serial_to_a_file_and_to_nowhere(vc4lab, card, tmp_path):
    log = tmp_path / "log.txt"
    assert "hello" not in vc4lab("boot", card("hello"), "--serial", log).stdout
    assert log.read_text() == "hello from the ARM\n"
    assert "hello" not in vc4lab("boot", card("hello"), "--serial", "none").stdout
    vc4lab("boot", card("hello"), "--serial", tmp_path / "no" / "log", code=ExitCode.OUTPUT)


def test_frames_screenshot_and_recording(vc4lab, card, tmp_path):
    shot, film = tmp_path / "a.png", tmp_path / "a.gif"
    vc4lab(
        "boot", card("framebuffer"), "--frames", 1, "--screenshot", shot, "--record", film,
        "--headless",
    )  # fmt: skip
    with Image.open(shot) as image:
        assert image.size == (64, 48)
    with Image.open(film) as image:
        assert image.format == "GIF"


def test_hang_crash_and_frames_that_never_come(vc4lab, card):
    result = vc4lab("boot", card("vsync"), code=ExitCode.GUEST_HANG)
    assert "fake_vsync_isr" in result.output
    assert "SOC-040" in result.output
    vc4lab("boot", card("vsync", "fake_vsync_isr=1"))
    vc4lab("boot", card("undefined"), code=ExitCode.GUEST_HANG)
    vc4lab("boot", card("hello"), "--frames", 1, code=ExitCode.GUEST_HANG)
    vc4lab("boot", card("hang"), "--seconds", 0.1)


def test_bad_input(vc4lab, card, tmp_path):
    bad = ExitCode.BAD_INPUT
    assert "flash 7 times" in vc4lab("boot", tmp_path, code=bad).output
    assert "BOOT-001" in vc4lab("boot", tmp_path / "nothing", code=bad).output
    (tmp_path / "empty.img").write_bytes(b"")
    assert "BOOT-003" in vc4lab("boot", tmp_path / "empty.img", code=bad).output
    assert "no board" in vc4lab("boot", card("hello"), "--board", "pi9", code=bad).output
    vc4lab("boot", card("hello"), "--frames", 0, code=bad)
    vc4lab("boot", card("hello"), "--frames", "many", code=bad)
    vc4lab("boot", card("hello"), "--record", tmp_path / "a.mp4", code=bad)
    vc4lab("boot", card("hello"), "--screenshot", tmp_path / "a.xyz", code=bad)
    vc4lab("boot", card("hello"), "--screenshot", tmp_path / "no" / "a.png", code=ExitCode.OUTPUT)
    vc4lab("boot", code=bad)
    vc4lab("nonsense", code=bad)


def test_no_picture_to_save(vc4lab, card, tmp_path):
    shot = tmp_path / "a.png"
    result = vc4lab("boot", card("hello"), "--screenshot", shot, code=ExitCode.OUTPUT)
    assert "CLI-002" in result.output
    assert not shot.exists()


def test_strict(vc4lab, card):
    result = vc4lab("boot", card("unmasked"), "--strict", code=ExitCode.STRICT_STOP)
    assert "SOC-030" in result.output
    vc4lab("boot", card("hello"), "--strict")


def test_exit_codes_are_distinct_and_told(vc4lab):
    assert len({int(code) for code in ExitCode}) == len(ExitCode) == len(MEANINGS)
    text = vc4lab("boot", "--help").output
    assert all(meaning in text for meaning in MEANINGS.values())


def test_the_program_itself(card, tmp_path):
    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        code = "import sys; from vc4lab.cli.main import run; sys.argv[0] = 'vc4lab'; run()"
        return subprocess.run(
            [sys.executable, "-c", code, *map(str, arguments)],
            input="",
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    done = run("boot", card("mini_uart"), "--serial", "stdio", "--seconds", 0.1)
    assert (done.returncode, done.stdout) == (0, "?\n")
    missing = run("boot", tmp_path / "nothing")
    assert missing.returncode == ExitCode.BAD_INPUT
    assert "Traceback" not in missing.stderr
    assert run("--version").stdout.startswith("vc4lab ")


def test_help_imports_no_machinery():
    code = (
        "import sys; import vc4lab.cli.main; "
        "bad = {'numpy', 'llvmlite', 'unicorn', 'PIL', 'rich'} & set(sys.modules); "
        "sys.exit(str(bad) if bad else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_program_that_draws_nothing_needs_no_numpy(card):
    """It takes 10 MiB and a tenth of a second."""
    code = (
        "import sys; from vc4lab.soc.machine import Machine; "
        f"machine = Machine({str(card('hello'))!r}); machine.run(seconds=0.1); "
        "assert machine.uart.text; sys.exit('numpy' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_undocumented_hardware_decided_otherwise(vc4lab, tmp_path):
    """The program never says which pixel order it wants: red and blue change places."""
    pixels = []
    for choice in ((), ("--unknown", "framebuffer_order_channel_1=rgb", "--unknown", "fill_rule=top-left")):
        shot = tmp_path / "shot.png"
        vc4lab("boot", EXAMPLE, "--frames", 1, "--screenshot", shot, "--headless", *choice)
        with Image.open(shot) as image:
            pixels.append(image.convert("RGB").tobytes())
    assert pixels[0] != pixels[1]
    assert pixels[0][::3] == pixels[1][2::3]
    wrong = vc4lab("boot", EXAMPLE, "--unknown", "line_shape=round", code=ExitCode.BAD_INPUT)
    assert "rectangle" in wrong.output


@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_plain_text(vc4lab, command):
    text = vc4lab(command, "--help").output
    assert "\\" not in text
    assert "Exit codes:" in text

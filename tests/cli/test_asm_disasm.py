"""`vc4lab asm` and `vc4lab disasm` through their command functions."""

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from vc4lab.cli.asm import asm
from vc4lab.cli.disasm import disasm
from vc4lab.cli.groups import spread

APP = typer.Typer()
APP.command("asm")(spread(asm))
APP.command("disasm")(disasm)
RUN = CliRunner()


def test_formats(tmp_path: Path) -> None:
    source = tmp_path / "a.qasm"
    source.write_text(".global entry\nentry: mov r0, unif\nnop; nop; thrend\n")
    for suffix in ("bin", "hex", "h"):
        result = RUN.invoke(APP, ["asm", str(source), "-o", str(tmp_path / f"my-shader.{suffix}")])
        assert result.exit_code == 0, result.output
    binary = (tmp_path / "my-shader.bin").read_bytes()
    assert binary.hex() == "807d821527080210" + "00709e00e7090030"
    assert (tmp_path / "my-shader.hex").read_text().split()[0] == "1002082715827d80"
    assert "my_shader[]" in (tmp_path / "my-shader.h").read_text()
    assert "entry:" in RUN.invoke(APP, ["asm", str(source), "--listing"]).output


def test_disassembly_of_binary_and_hex(tmp_path: Path) -> None:
    binary = tmp_path / "a.bin"
    binary.write_bytes(bytes.fromhex("807d82152708021000709e00e7090030"))
    result = RUN.invoke(APP, ["disasm", str(binary), "--count", "1"])
    assert result.output == "/* 00000000: 15827d80 10020827 */  mov r0, unif\n"
    result = RUN.invoke(APP, ["disasm", str(binary), "--offset", "8"])
    assert result.output.endswith("nop; nop; thrend\n")
    text = "uint32_t a[] = { 0x15827d80, 0x10020827, /* 0x12345678 */ };"
    assert "mov r0, unif" in RUN.invoke(APP, ["disasm", "-", "--hex"], input=text).output
    words = RUN.invoke(APP, ["disasm", "-", "--hex"], input="1002082715827d80\n").output
    assert "mov r0, unif" in words
    binary.write_bytes(binary.read_bytes() + b"end")
    result = RUN.invoke(APP, ["disasm", str(binary)])
    assert result.exit_code == 0
    assert "the last 3 bytes are not a whole instruction" in result.output
    assert "whole" not in RUN.invoke(APP, ["disasm", str(binary), "--count", "2"]).output


def test_lint_warnings(tmp_path: Path) -> None:
    source = tmp_path / "hasty.qasm"
    source.write_text("mov ra1, r0\nmov r0, ra1\n")
    result = RUN.invoke(APP, ["asm", str(source)])
    assert result.exit_code == 0
    assert f"{source}:2: warning QPU-101" in result.output
    assert "QPU-101" not in RUN.invoke(APP, ["asm", str(source), "--no-lint"]).output


def test_hex_text_is_read_in_one_go() -> None:
    """Comments that are opened and never closed do not make reading slow."""
    text = "/* 12345678 */ 0x15827d80, /* x */ 0x10020827 // 99999999\n" + "/*" * 200_000
    result = RUN.invoke(APP, ["disasm", "-", "--hex"], input=text)
    assert result.output == "/* 00000000: 15827d80 10020827 */  mov r0, unif\n"


def test_more_mistakes_than_are_shown(tmp_path: Path) -> None:
    source = tmp_path / "many.qasm"
    source.write_text("foo r0\n" * 5000)
    result = RUN.invoke(APP, ["asm", str(source)])
    assert result.exit_code == 2
    assert result.output.count("unknown operation") == 20
    assert result.output.endswith(f"{source}: and 4980 more mistakes\n")


def test_bad_input(tmp_path: Path) -> None:
    source = tmp_path / "bad.qasm"
    source.write_text("nop\nfoo r0\n")
    result = RUN.invoke(APP, ["asm", str(source)])
    assert result.exit_code == 2
    assert f"{source}:2:1: unknown operation" in result.output
    for arguments in (
        ["asm", str(tmp_path / "none")],
        ["disasm", str(tmp_path / "none")],
        ["disasm", str(source), "--offset", "100"],
    ):
        result = RUN.invoke(APP, arguments)
        assert result.exit_code == 2
        assert "none" in result.output or "no whole instruction" in result.output
    source.write_bytes(b"\xff\xfe\x00")
    assert "not a text file" in RUN.invoke(APP, ["asm", str(source)]).output


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no devices here")
@pytest.mark.parametrize(("command", "limit"), [("asm", 4), ("disasm", 16)])
def test_endless_files(command: str, limit: int) -> None:
    result = RUN.invoke(APP, [command, "/dev/zero"])
    assert result.exit_code == 2
    assert result.output == f"/dev/zero: exceeds the limit of {limit} MiB\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_output_without_room(tmp_path: Path) -> None:
    source = tmp_path / "a.qasm"
    source.write_text("nop\n")
    result = RUN.invoke(APP, ["asm", str(source), "-o", "/dev/full"])
    assert result.exit_code == 5
    assert "\n/dev/full: " in result.output

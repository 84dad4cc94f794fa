"""`vc4lab boot` with a debugger, traces, serial lines and saved states."""

from __future__ import annotations

import socket
from pathlib import Path

from tests.support.elf import make_elf
from typer.testing import CliRunner

from vc4lab.cli.exit_codes import ExitCode
from vc4lab.cli.main import app

KERNELS = Path(__file__).parent.parent / "soc" / "kernels"
HELLO = KERNELS / "hello.img"


def vc4lab(*arguments: object, code: ExitCode = ExitCode.OK, **options: object):
    result = CliRunner().invoke(app, [str(a) for a in arguments], **options)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result


def test_gdb_port():
    assert "target remote :" in vc4lab("boot", HELLO, "--gdb", 0, "--no-gdb-wait").output
    vc4lab("boot", HELLO, "--gdb", 99999, code=ExitCode.BAD_INPUT)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert "CLI-004" in vc4lab("boot", HELLO, "--gdb", port, code=ExitCode.BAD_INPUT).output


def test_trace(tmp_path):
    assert "write  uart0.DR" in vc4lab("boot", HELLO, "--trace", "mmio").output
    log = tmp_path / "log.txt"
    result = vc4lab("boot", HELLO, "--trace", "all", "--trace-to", log)
    assert "uart0" not in result.output
    assert "uart0.FR" in log.read_text()
    bad = vc4lab("boot", HELLO, "--trace", "mmio,nonsense", code=ExitCode.BAD_INPUT)
    assert "nonsense" in bad.output
    nowhere = tmp_path / "no" / "log.txt"
    vc4lab("boot", HELLO, "--trace", "all", "--trace-to", nowhere, code=ExitCode.OUTPUT)


def test_symbols(tmp_path):
    elf = tmp_path / "program.elf"
    elf.write_bytes(make_elf({"halt": (0x8028, 4)}, {0x8000: HELLO.read_bytes()}))
    result = vc4lab("boot", HELLO, "--symbols", elf, "--frames", 1, code=ExitCode.GUEST_HANG)
    assert "0x00008028 <halt>" in result.output
    assert "BOOT-030" in vc4lab("boot", HELLO, "--symbols", tmp_path / "no.elf").output

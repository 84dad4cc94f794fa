"""A write-back job in Debian: a client of ours, the real vc4.ko, TXP, and the composed picture."""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.support.host_tools import need

from vc4lab.linux.running import Linux

SOURCE = Path(__file__).parent / "programs" / "writeback.c"
COMPILER = "aarch64-linux-gnu-gcc"
PIECE = 1000
"""Characters in one command."""
OPTIONS = (
    "-O1", "-s", "-static", "-nostdlib", "-ffreestanding", "-fno-stack-protector",
    "-fno-tree-loop-distribute-patterns", "-Wl,-n,--no-warn-rwx-segments",
)  # fmt: skip


def test_the_composed_picture_is_written_back(linux: Callable[..., Linux], tmp_path: Path) -> None:
    """Two planes, one over the other, of which the client compares each pixel."""
    need(COMPILER)
    program = tmp_path / "writeback"
    subprocess.run([COMPILER, *OPTIONS, "-o", program, SOURCE], check=True)
    guest = linux()
    packed = base64.b64encode(program.read_bytes()).decode()
    for at in range(0, len(packed), PIECE):
        assert guest.run(f"echo {packed[at : at + PIECE]} >> /tmp/packed").code == 0
    assert guest.run("base64 -d /tmp/packed > /tmp/writeback; chmod +x /tmp/writeback").code == 0
    done = guest.run("/tmp/writeback")
    assert (done.code, done.output) == (0, "right\n")
    codes = {item.code for item in guest.machine.reporter.items}
    assert not codes & {"SOC-096", "SOC-097"}

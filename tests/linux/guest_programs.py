"""Programs of ours for the guest: compiled without a C library, sent over the serial line."""

import base64
import gzip
import subprocess
from pathlib import Path

from tests.support.host_tools import need

from vc4lab.linux.running import Linux

COMPILER = "aarch64-linux-gnu-gcc"
OPTIONS = (
    "-O1", "-s", "-static", "-nostdlib", "-ffreestanding", "-fno-stack-protector",
    "-fno-tree-loop-distribute-patterns", "-Wl,-n,--no-warn-rwx-segments",
)  # fmt: skip


def send(guest: Linux, name: str, folder: Path) -> str:
    """Compile `programs/NAME.c`; its path in the guest. Skips without the compiler."""
    need(COMPILER)
    program, source = folder / name, Path(__file__).parent / "programs" / f"{name}.c"
    subprocess.run([COMPILER, *OPTIONS, "-o", program, source], check=True)
    packed = base64.b64encode(gzip.compress(program.read_bytes())).decode()
    command = f"echo {packed} | base64 -d | gunzip > /tmp/{name}; chmod +x /tmp/{name}"
    assert guest.run(command).code == 0
    return f"/tmp/{name}"

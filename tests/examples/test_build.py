"""The committed kernel images are what the sources build, byte for byte."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = ["framebuffer", "triangle", "vertex_shader", "naan"]
COMPILER = "arm-none-eabi-gcc"
BUILT_WITH = (EXAMPLES / "COMPILER").read_text().strip()

pytestmark = pytest.mark.skipif(
    shutil.which(COMPILER) is None or shutil.which("make") is None,
    reason=f"{COMPILER} and make are needed (Debian: gcc-arm-none-eabi, make)",
)


@pytest.mark.parametrize("name", NAMES)
def test_image_is_rebuilt_exactly(name: str, tmp_path: Path) -> None:
    assembler = f'{sys.executable} -c "from vc4lab.cli.main import run; run()"'
    command = ["make", "-s", "-C", str(EXAMPLES / name), f"BUILD={tmp_path}", f"VC4LAB={assembler}"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    built = (tmp_path / "kernel7.img").read_bytes()
    assert built
    version = subprocess.run([COMPILER, "--version"], capture_output=True, text=True, check=True)
    if version.stdout.splitlines()[0] != BUILT_WITH:
        pytest.skip(f"built, not compared: the committed images come from {BUILT_WITH}")
    assert built == (EXAMPLES / name / "sdcard" / "kernel7.img").read_bytes(), (
        f"examples/{name} has changed: run make -C examples/{name} install"
    )

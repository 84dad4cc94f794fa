"""The committed kernel images are what the sources build, byte for byte."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.host_tools import need

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = sorted(makefile.parent.name for makefile in EXAMPLES.glob("*/Makefile"))
IMAGES = [image for name in NAMES for image in sorted((EXAMPLES / name / "sdcard").glob("*.img"))]
COMPILERS = {"kernel8": "aarch64-linux-gnu-gcc"}  # the others: arm-none-eabi-gcc
BUILT_WITH = (EXAMPLES / "COMPILER").read_text().splitlines()

needs_make = pytest.mark.skipif(shutil.which("make") is None, reason="make is missing: apt-get install make")


def make(name: str, *arguments: str) -> str:
    command = ["make", "-s", "-C", str(EXAMPLES / name), *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@needs_make
@pytest.mark.parametrize("name", NAMES)
def test_every_kernel_of_an_example_is_on_its_card(name: str) -> None:
    card = {image.stem for image in IMAGES if image.parts[-3] == name}
    assert card == set(make(name, "kernels").split())


@needs_make
@pytest.mark.parametrize("image", IMAGES, ids=lambda image: f"{image.parts[-3]}-{image.stem}")
def test_image_is_rebuilt_exactly(image: Path, tmp_path: Path) -> None:
    compiler = COMPILERS.get(image.stem, "arm-none-eabi-gcc")
    need(compiler)
    name = image.parts[-3]
    assembler = f'{sys.executable} -c "from vc4lab.cli.main import run; run()"'
    make(name, f"BUILD={tmp_path}", f"VC4LAB={assembler}", f"KERNELS={image.stem}")
    built = (tmp_path / image.name).read_bytes()
    assert built
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True)
    if version.stdout.splitlines()[0] not in BUILT_WITH:
        pytest.skip(f"built, not compared: the committed images come from {BUILT_WITH}")
    assert built == image.read_bytes(), f"examples/{name} has changed: run make -C examples/{name} install"

"""The committed test kernels are what their sources say."""

import shutil
import subprocess
from pathlib import Path

from tests.support.host_tools import needs

KERNELS = Path(__file__).parent / "kernels"


@needs("arm-none-eabi-as")
def test_rebuilding_gives_the_committed_images(tmp_path: Path) -> None:
    for source in [*KERNELS.glob("*.s"), KERNELS / "common.inc", KERNELS / "Makefile"]:
        shutil.copy(source, tmp_path)
    subprocess.run(["make", "-s", "-j1"], cwd=tmp_path, check=True)
    committed = {p.name: p.read_bytes() for p in KERNELS.glob("*.img")}
    assert {p.name: p.read_bytes() for p in tmp_path.glob("*.img")} == committed

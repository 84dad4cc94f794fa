"""What `--setup` would have brought, in small."""

from pathlib import Path

import pytest

from vc4lab.drm.setup.places import Brought
from vc4lab.linux.kernels import TARGETS

HELLO = Path(__file__).parent.parent / "soc/kernels64/levels.img"


@pytest.fixture
def brought(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Brought:
    """A suite with two kernels."""
    monkeypatch.setenv("VC4LAB_CACHE", str(tmp_path))
    made = Brought("bookworm", tmp_path / "drm/bookworm")
    for release in ("6.1.0-9-arm64", "6.1.0-10-arm64"):
        tree = made.tree / f"usr/lib/linux-image-{release}" / TARGETS["pi3", "arm64"].tree
        tree.parent.mkdir(parents=True)
        tree.write_bytes(b"")
        (made.tree / "usr/lib/modules" / release).mkdir(parents=True)
        (made.tree / "boot").mkdir(exist_ok=True)
        (made.tree / f"boot/vmlinuz-{release}").write_bytes(HELLO.read_bytes())
    (made.tree / "boot/vmlinuz-7.0-arm64").write_bytes(b"")  # without modules
    (made.folder / "packages").mkdir()
    made.qemu.write_text("")
    made.complete()
    return made

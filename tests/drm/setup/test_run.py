"""`DrmDevice.run` finds what --setup brought; the tree and its qemu are pretended."""

import os
from pathlib import Path

import pytest

from vc4lab.drm.device.device import DrmDevice
from vc4lab.drm.setup.places import DRIVER, Brought

ARM64 = b"\x7fELF\2\1\1" + bytes(9) + b"\2\0" + (183).to_bytes(2, "little") + bytes(44)
QEMU = """#!/bin/sh
echo "qemu: $*"
"""


@pytest.fixture
def only_the_host() -> None:
    """Here it is about what was brought."""


@pytest.fixture
def brought(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Brought:
    """A suite with one program, `cube`; the host has no driver."""
    monkeypatch.setenv("VC4LAB_CACHE", str(tmp_path))
    monkeypatch.setattr("vc4lab.drm.setup.host_driver.SYSTEM_PLACES", ())
    monkeypatch.delenv("LIBGL_DRIVERS_PATH", raising=False)
    made = Brought("trixie", tmp_path / "drm" / "trixie")
    program = made.tree / "usr/bin/cube"
    for path in (program, made.tree / DRIVER):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(ARM64)
    made.qemu.write_text(QEMU)
    made.qemu.chmod(0o755)
    made.add_program("/usr/bin/cube")
    (made.folder / "complete").touch()
    assert made.is_complete
    return made


def said(device: DrmDevice, tmp_path: Path, *program: str, **options: object) -> tuple[int, str]:
    with open(tmp_path / "out", "w+") as out:
        code = device.run(program, stdout=out, **options)
        out.seek(0)
        return int(code), out.read()


def test_a_name_is_one_of_the_brought_programs(device: DrmDevice, brought: Brought, tmp_path: Path) -> None:
    trees = set()
    device.supervisor.on_call = lambda *_: trees.add(device.supervisor.paths.foreign)
    code, text = said(device, tmp_path, "cube", "-A")
    assert code == 0
    (tree,) = trees
    assert tree is not None, "shown to arm64 programs"
    assert text.startswith("qemu: ")
    assert "/usr/bin/cube -A\n" in text
    code, _ = said(device, tmp_path, "sh", "-c", "cube")
    assert code == 0, "found in PATH"
    assert device.supervisor.paths.foreign is None, "of that run only"


def test_it_can_be_declined(device: DrmDevice, brought: Brought, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        device.run(["cube"], arm64=False)
    code, text = said(device, tmp_path, "sh", "-c", "echo $PATH", arm64=False)
    assert (code, text.strip()) == (0, os.environ["PATH"])


@pytest.mark.parametrize("variable", ["LIBGL_ALWAYS_SOFTWARE", "GBM_ALWAYS_SOFTWARE"])
def test_who_asks_for_software_gets_the_hosts_programs(
    variable: str, device: DrmDevice, brought: Brought, tmp_path: Path
) -> None:
    environment = {**os.environ, variable: "True"}
    with pytest.raises(FileNotFoundError):
        device.run(["cube"], environment=environment)
    code, text = said(device, tmp_path, "cube", environment=environment, arm64="trixie")
    assert (code, text[:6]) == (0, "qemu: "), "a suite's name asks for it all the same"
    code, text = said(device, tmp_path, "cube", environment={**os.environ, variable: "0"})
    assert (code, text[:6]) == (0, "qemu: ")


def test_the_hosts_driver_comes_first(device: DrmDevice, brought: Brought, tmp_path: Path) -> None:
    (tmp_path / "vc4_dri.so").touch()
    environment = {**os.environ, "LIBGL_DRIVERS_PATH": str(tmp_path)}
    with pytest.raises(FileNotFoundError):
        device.run(["cube"], environment=environment)
    code, text = said(device, tmp_path, "cube", environment=environment, arm64="trixie")
    assert code == 0
    assert text.startswith("qemu: ")
    with pytest.raises(FileNotFoundError):
        device.run(["cube"], arm64="bookworm")

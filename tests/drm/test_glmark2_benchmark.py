"""The live benchmark measures what it names: the driver on the V3D, or llvmpipe."""

from pathlib import Path
from typing import Any

import pytest
from benchmarks import _glmark2 as glmark2

from vc4lab.drm.setup.host_driver import DRIVERS_PATH

FOLDER = Path("/a/driver")
RESULTS = "[build]: FPS: 10 FrameTime: 100.0 ms\n[build]: FPS: 20 FrameTime: 50.0 ms\n"


class Device:
    """Pretends to run glmark2; by default it draws as on a host where `--setup` was run."""

    def __init__(self, renderer: str | None = None) -> None:
        self.renderer = renderer
        self.seen: dict[str, Any] = {}

    def run(
        self,
        program: list[str],
        *,
        environment: dict[str, str],
        stdout: Any,
        arm64: bool | str = True,
        **options: Any,
    ) -> None:
        self.seen = environment
        renderer = self.renderer
        if renderer is None:
            native = arm64 is False and DRIVERS_PATH not in environment
            renderer = "llvmpipe (LLVM 15.0.6, 256 bits)" if native else "VC4 V3D 2.1"
        stdout.write(f"    GL_RENDERER:    {renderer}\n{RESULTS}")
        stdout.flush()


@pytest.mark.parametrize("folder", [FOLDER, None])
def test_each_draws_by_itself(folder: Path | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DRIVERS_PATH, "/of/the/user")
    device: Any = Device()
    assert glmark2.draw(device, "build", 1.0, folder) == 20.0
    assert device.seen.get(DRIVERS_PATH) == (str(folder) if folder else None)


@pytest.mark.parametrize(("folder", "renderer"), [(FOLDER, "llvmpipe (LLVM 15.0.6)"), (None, "VC4 V3D 2.1")])
def test_another_renderer_is_no_result(folder: Path | None, renderer: str) -> None:
    device: Any = Device(renderer)
    with pytest.raises(glmark2.WrongRendererError, match="build: drawn by"):
        glmark2.draw(device, "build", 1.0, folder)

"""glmark2 on the virtual device: with Mesa's vc4 on the V3D, or with llvmpipe on the processor.

Both draw with the same program on the same device, off screen at 800x600 and unpaced; only the
driver differs, so what the supervisor costs a program at its start is in both. glmark2 ends each
frame with glFinish there. Its DRM flavour takes the size of the screen, and does not start when
the size it is asked for is just that one: so another is asked for.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import tempfile
from math import exp, log
from pathlib import Path
from typing import Any

from vc4lab.drm.device.device import DrmDevice
from vc4lab.drm.kms.modes import parse_modes
from vc4lab.drm.setup.host_driver import DRIVERS_PATH, find_driver

PROGRAM = "glmark2-es2-drm"
SIZE = "800x600"
SCENES = (
    "build:use-vbo=false",
    "build:use-vbo=true",
    "texture:texture-filter=nearest",
    "texture:texture-filter=linear",
    "texture:texture-filter=mipmap",
    "shading:shading=gouraud",
    "shading:shading=blinn-phong-inf",
    "shading:shading=phong",
    "shading:shading=cel",
    "bump:bump-render=high-poly",
    "bump:bump-render=normals",
    "bump:bump-render=height",
    "effect2d:kernel=0,1,0;1,-4,1;0,1,0;",
    "effect2d:kernel=1,1,1,1,1;1,1,1,1,1;1,1,1,1,1;",
    "pulsar:light=false:quads=5:texture=false",
    "desktop:blur-radius=5:effect=blur:passes=1:separable=true:windows=4",
    "desktop:effect=shadow:windows=4",
    "buffer:columns=200:interleave=false:update-dispersion=0.9:update-fraction=0.5:update-method=map",
    "buffer:columns=200:interleave=false:update-dispersion=0.9:update-fraction=0.5:update-method=subdata",
    "buffer:columns=200:interleave=true:update-dispersion=0.9:update-fraction=0.5:update-method=map",
    "ideas:speed=duration",
    "jellyfish",
    "terrain",
    "shadow",
    "refract",
    "conditionals:fragment-steps=0:vertex-steps=0",
    "conditionals:fragment-steps=5:vertex-steps=0",
    "conditionals:fragment-steps=0:vertex-steps=5",
    "function:fragment-complexity=low:fragment-steps=5",
    "function:fragment-complexity=medium:fragment-steps=5",
    "loop:fragment-loop=false:fragment-steps=5:vertex-steps=5",
    "loop:fragment-steps=5:fragment-uniform=false:vertex-steps=5",
    "loop:fragment-steps=5:fragment-uniform=true:vertex-steps=5",
)
"""What glmark2 runs without arguments."""

_RESULT = re.compile(r"FPS: (\d+) FrameTime: ([\d.]+) ms")
_RENDERER = re.compile(r"GL_RENDERER: *(.*)")
ON_V3D, ON_PROCESSOR = "VC4", "llvmpipe"
"""How the names of what draws begin."""
WARM_SECONDS = 4.0
"""Before what is measured, on either side: shaders are compiled with their first frame, and on the
V3D once more, thoroughly, from two seconds after that on (`v3d/draws/refining.py`)."""
ROUNDS = 2
SECONDS = 1.0
DRIVER = os.environ.get("VC4_DRIVER", "")


class WrongRendererError(RuntimeError):
    """Another one has drawn than was to be measured."""


def driver() -> Path:
    """The folder of the driver to measure. Raises FileNotFoundError."""
    found = find_driver(os.environ, Path(DRIVER))
    if found is None:
        raise FileNotFoundError(f"VC4_DRIVER={DRIVER}: no vc4_dri.so in it")
    return found


def device() -> DrmDevice:
    """A device with a screen of the size to measure at."""
    return DrmDevice(modes=parse_modes(SIZE), paced=False)


def draw(made: DrmDevice, scene: str, seconds: float, folder: Path | None) -> float | None:
    """Frames a second, with a driver or (None) on the processor; None if glmark2 fails.

    Raises WrongRendererError: an environment without a driver would be given the arm64 programs of
    ``vc4lab drm --setup``, which draw on the V3D, too.
    """
    environment = {**os.environ, DRIVERS_PATH: str(folder)}
    if folder is None:
        del environment[DRIVERS_PATH]
        environment["LIBGL_ALWAYS_SOFTWARE"] = "1"
    parts = [f"{scene}:duration={part}" for part in (WARM_SECONDS, seconds)]
    command = [PROGRAM, "--off-screen", "-s", "801x600"]
    for part in parts:
        command += ["-b", part]
    with tempfile.TemporaryFile("w+") as out:
        made.run(command, environment=environment, arm64=False, stdout=out, stderr=subprocess.DEVNULL)
        out.seek(0)
        text = out.read()
    wanted = ON_V3D if folder is not None else ON_PROCESSOR
    for renderer in _RENDERER.findall(text):
        if not renderer.startswith(wanted):
            raise WrongRendererError(f"{scene}: drawn by {renderer}, not by {wanted}")
    return rate(text, len(parts))


def rate(text: str, parts: int) -> float | None:
    """Frames a second of the last of so many parts of a run; None if one of them is missing."""
    found = _RESULT.findall(text)
    if len(found) != parts:
        return None
    return 1000.0 / float(found[-1][1]) if float(found[-1][1]) else float(found[-1][0])


def ratio_rows(what: str, ratios: list[float]) -> list[dict[str, Any]]:
    """What all scenes together say."""
    if not ratios:
        return []
    mean = exp(statistics.fmean(map(log, ratios)))
    found = ((f"{what}, geometric mean of {len(ratios)} scenes", mean),
             (f"{what}, lowest", min(ratios)))  # fmt: skip
    return [{"name": name, "value": value, "unit": "x llvmpipe", "ratio": value} for name, value in found]


def beside(made: DrmDevice, scene: str, folder: Path) -> tuple[float, float] | None:
    """Frames a second with the driver and on the processor, in turn; the best of each."""
    ours, peer = 0.0, 0.0
    for _ in range(ROUNDS):
        with_driver = draw(made, scene, SECONDS, folder)
        on_processor = draw(made, scene, SECONDS, None)
        if with_driver is None or on_processor is None:
            return None
        ours, peer = max(ours, with_driver), max(peer, on_processor)
    return ours, peer

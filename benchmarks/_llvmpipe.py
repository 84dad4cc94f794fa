"""The peer: glmark2's scenes drawn by Mesa's llvmpipe under Xvfb, as pictures and as CPU time.

Nothing here is needed to use or test the project; `sh tools/system-packages.sh gallery` installs
the programs on Debian. Frames come from a call trace (apitrace), so that the first frame is the
very frame that the recorded jobs hold; times are glmark2's own, drawing off screen.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks._display import display

if TYPE_CHECKING:
    from PIL.Image import Image

PROGRAMS = ("Xvfb", "glmark2-es2", "apitrace", "eglretrace")
SIZE = "640x480"

SCENES = {
    "glmark2_buffer_update-method_map": "buffer:update-method=map",
    "glmark2_build_use-vbo_false": "build:use-vbo=false",
    "glmark2_build_use-vbo_true": "build:use-vbo=true",
    "glmark2_bump_bump-render_high-poly": "bump:bump-render=high-poly",
    "glmark2_bump_bump-render_normals": "bump:bump-render=normals",
    "glmark2_clear": "clear",
    "glmark2_conditionals_fragment-steps_5": "conditionals:fragment-steps=5",
    "glmark2_effect2d_kernel_0_1_0_1_-4_1_0_1_0_": "effect2d:kernel=0,1,0;1,-4,1;0,1,0;",
    "glmark2_function_fragment-steps_5": "function:fragment-steps=5",
    "glmark2_ideas": "ideas",
    "glmark2_loop_fragment-loop_false": "loop:fragment-loop=false",
    "glmark2_loop_fragment-uniform_true": "loop:fragment-uniform=true",
    "glmark2_shading_shading_blinn-phong-inf": "shading:shading=blinn-phong-inf",
    "glmark2_shading_shading_gouraud": "shading:shading=gouraud",
    "glmark2_shading_shading_phong": "shading:shading=phong",
    "glmark2_texture_texture-filter_linear": "texture:texture-filter=linear",
    "glmark2_texture_texture-filter_mipmap": "texture:texture-filter=mipmap",
    "glmark2_texture_texture-filter_nearest": "texture:texture-filter=nearest",
}
"""glmark2's name of the scene in each recorded run."""

_RESULT = re.compile(r"FrameTime: ([\d.]+) ms \(User: ([\d.]+) ms, System: ([\d.]+) ms\)")
_SHORT, _LONG = 0.2, 0.8
"""Seconds. The difference of a long and a short run is free of start-up and compilation."""


class Llvmpipe:
    """glmark2 on llvmpipe, on a display of its own."""

    def __init__(self, display: str) -> None:
        self.environment = {
            **os.environ,
            "DISPLAY": display,
            "LIBGL_ALWAYS_SOFTWARE": "1",
            "GALLIUM_DRIVER": "llvmpipe",
            "LP_NUM_THREADS": "0",  # rasterises in the program's own thread: one core
            "vblank_mode": "0",
        }

    def _run(self, *command: str) -> str:
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, timeout=120, check=False
        )
        return done.stdout + done.stderr

    def cpu_time(self, scene: str) -> float | None:
        """CPU milliseconds a frame (user and system) of one core; None if glmark2 fails."""
        options = ["-b", f"{scene}:duration={_SHORT}", "-b", f"{scene}:duration={_LONG}"]
        text = self._run("glmark2-es2", "-s", SIZE, "--off-screen", "--results", "fps:cpu", *options)
        found = [tuple(map(float, groups)) for groups in _RESULT.findall(text)]
        if len(found) != 2:
            return None
        frames, spent = [], []
        for (frame, user, system), duration in zip(found, (_SHORT, _LONG), strict=True):
            frames.append(max(ceil(1000 * duration / frame), 1))
            spent.append(frames[-1] * (user + system))
        if frames[1] <= frames[0]:
            return found[1][1] + found[1][2]
        return (spent[1] - spent[0]) / (frames[1] - frames[0])

    @contextmanager
    def trace(self, scene: str, seconds: float) -> Iterator[Trace]:
        """The scene's calls while it runs for some seconds."""
        with tempfile.TemporaryDirectory(prefix="vc4lab-gallery-") as name:
            path = Path(name) / "scene.trace"
            program = ["glmark2-es2", "-s", SIZE, "-b", f"{scene}:duration={seconds}"]
            self._run("apitrace", "trace", "--api=egl", "-o", str(path), *program)
            yield Trace(self, path)

    def first_frame(self, scene: str) -> Image | None:
        """What the scene shows first: it depends on no clock."""
        with self.trace(scene, 0.001) as trace:
            frames = trace.frames()
            return min(frames.items())[1] if frames else None


class Trace:
    """A recorded sequence of calls, replayed to get pictures."""

    def __init__(self, peer: Llvmpipe, path: Path) -> None:
        self.peer = peer
        self.path = path

    def frames(
        self, interval: int = 1, first: int | None = None, last: int | None = None
    ) -> dict[int, Image]:
        """Pictures by call number: every `interval`-th frame, or those between two calls."""
        from PIL import Image

        prefix = self.path.parent / "frame-"
        for old in self.path.parent.glob("frame-*.png"):
            old.unlink()
        calls = "*/frame" if first is None or last is None else f"{first}-{last}/frame"
        options = ["-S", calls, "--snapshot-interval", str(interval)]
        self.peer._run("eglretrace", "-s", str(prefix), *options, str(self.path))
        pictures = {}
        for path in self.path.parent.glob("frame-*.png"):
            with Image.open(path) as image:
                pictures[int(path.stem.removeprefix("frame-"))] = image.convert("RGB")
        return pictures


def missing() -> list[str]:
    """The programs that are not installed."""
    return [program for program in PROGRAMS if shutil.which(program) is None]


@contextmanager
def llvmpipe() -> Iterator[Llvmpipe | None]:
    """A display and the peer on it; None, with one line said, where it is not installed."""
    absent = missing()
    if absent:
        print(f"no llvmpipe to compare with ({', '.join(absent)} not found):")
        print("  sh tools/system-packages.sh gallery")
        yield None
        return
    with display() as name:
        yield Llvmpipe(name) if name is not None else None

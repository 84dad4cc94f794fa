"""Real programs on the virtual device: glmark2 beside llvmpipe, and Python's share of a frame.

``make bench VC4_DRIVER=DIR``; without a driver there are no rows. Each scene is drawn in turn by
the driver on the V3D and by llvmpipe under the same device, off screen at 800x600, on as many
cores as there are. "Python a frame" is the CPU time of all threads of the supervisor outside
native calls (`_python_time.py`), from one SUBMIT_CL to the next, the median of 300 frames.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import time
from itertools import pairwise
from typing import Any

from benchmarks import _glmark2 as glmark2
from benchmarks._python_time import PythonTime
from vc4lab.drm.setup.host_driver import DRIVERS_PATH

SUBMIT_CL = 0x40
FRAMES = 300
FIRST = 300
"""Frames before the steady state."""


def python_a_frame(
    scene: str = "build:use-vbo=true", *, on_screen: bool = False
) -> tuple[list[float], list[float]]:
    """Microseconds of Python of each of the frames, and of each SUBMIT_CL."""
    looks: list[int] = []
    submits: list[float] = []
    with PythonTime().watching() as watch, glmark2.device() as device:
        declared, handler = device.table[SUBMIT_CL]

        def submit(call: Any) -> Any:
            if len(looks) < FIRST + FRAMES + 1:
                looks.append(watch.nanoseconds()[0])
            else:
                device.supervisor.stop()
            start = time.thread_time_ns()
            result = handler(call)
            submits.append((time.thread_time_ns() - start) / 1000)
            return result

        device.table[SUBMIT_CL] = declared, submit
        command = [glmark2.PROGRAM, "-s", "801x600", "-b", f"{scene}:duration=60"]
        device.run(
            command if on_screen else [*command, "--off-screen"],
            environment={**os.environ, DRIVERS_PATH: str(glmark2.driver())},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    steady = looks[FIRST:]
    return [(end - start) / 1000 for start, end in pairwise(steady)], submits[FIRST:]


def run() -> list[dict[str, Any]]:
    if not glmark2.DRIVER or shutil.which(glmark2.PROGRAM) is None:
        what = "VC4_DRIVER=DIR names a driver" if not glmark2.DRIVER else glmark2.PROGRAM
        print(f"no live device measured: it needs {what}")
        return []
    folder = glmark2.driver()
    rows: list[dict[str, Any]] = []
    for name, on_screen in (("off screen", False), ("on the screen", True)):
        spent, submits = python_a_frame(on_screen=on_screen)
        for what, values in ((f"Python a frame, glmark2 build {name}", spent),
                             (f"SUBMIT_CL, glmark2 build {name}", submits)):  # fmt: skip
            if values:
                rows.append({"name": what, "value": statistics.median(values), "unit": "us of CPU"})
    ratios = []
    with glmark2.device() as device:
        for scene in glmark2.SCENES:
            found = glmark2.beside(device, scene, folder)
            if found is None:
                print(f"{scene}: glmark2 failed")
                continue
            ours, peer = found
            ratios.append(ours / peer)
            rows.append({
                "name": f"glmark2 {scene}", "value": ours, "unit": "frames/s", "peer": "llvmpipe",
                "peer_value": peer, "ratio": ratios[-1],
            })  # fmt: skip
    rows += glmark2.ratio_rows("glmark2", ratios)
    return rows

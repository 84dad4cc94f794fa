"""`vc4lab gl` beside llvmpipe: glmark2's scenes, the protocol's share of a frame, and Python's.

Each scene is drawn in turn by our driver on the V3D and by llvmpipe, both under the same Mesa and
the same display, off screen at 800x600, on as many cores as there are, after the same time to warm
up. Besides frames a second there are for each scene:

* "protocol": what a frame takes when the server decodes all and draws nothing;
* "Python": CPU time of the server's threads outside of native calls for each frame
  (`_python_time.py`), system calls among it;
* "server": all CPU time of the server's process for each frame, that of tile threads among it.

The last two come from a run of their own: to time each native call takes some 20 us of a frame.

``python -m benchmarks gl_live`` measures only these; with GL_SCENES=ideas,terrain in the
environment only scenes that begin so.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, NamedTuple

from benchmarks import _glmark2 as glmark2
from benchmarks._llvmpipe import Llvmpipe, llvmpipe
from benchmarks._python_time import PythonTime
from vc4lab.diagnostics import Reporter
from vc4lab.driver.gl import Gl
from vc4lab.mesa.events import MessageReceived
from vc4lab.mesa.protocol.messages import ResourceBusyWait
from vc4lab.mesa.server.program import PrivateTmp, Program
from vc4lab.mesa.server.server import Server
from vc4lab.mesa.state.draw_run import DrawRun
from vc4lab.mesa.store.software import SoftwareScreen

PROGRAM = "glmark2-es2"
EXTRA = (
    "texture:texgen=true",
    "bump:bump-render=normals-tangent",
    "effect2d:kernel=1,1,1;1,1,1;1,1,1;",
    "pulsar:light=true:quads=5:texture=true",
)
"""Scenes that glmark2 does not draw of itself."""
SCENES = (*glmark2.SCENES, *EXTRA)
SHORT = 0.7
"""Seconds of a run without draws, and of the one before it."""


class Look(NamedTuple):
    """Nanoseconds at a moment: of the clock, of Python, of the whole process."""

    clock: int
    python: int
    process: int


class Measured(NamedTuple):
    """Of a scene: frames a second, and milliseconds of CPU time for each of them."""

    rate: float
    python: float
    server: float


class _DecodingScreen(SoftwareScreen):
    """Draws nothing, clears nothing and says nothing."""

    def clear(self, *_: Any) -> None:
        pass

    def draw(self, *_: Any) -> None:
        self.draws += 1

    def draw_run(self, run: DrawRun) -> None:
        self.draws += run.length


def command(scene: str, parts: tuple[float, ...]) -> list[str]:
    """glmark2 with a scene for so many seconds, again and again."""
    made = [PROGRAM, "--off-screen", "-s", glmark2.SIZE]
    for part in parts:
        made += ["-b", f"{scene}:duration={part}"]
    return made


@contextmanager
def _output() -> Iterator[Any]:
    """glmark2's words; programs of `vc4lab gl` write where this process does."""
    with tempfile.TemporaryFile("w+") as file:
        kept = [os.dup(1), os.dup(2)]
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        try:
            yield file
        finally:
            for number, one in enumerate(kept, 1):
                os.dup2(one, number)
                os.close(one)


def ours(scene: str, environment: dict[str, str]) -> float | None:
    """Frames a second with our driver; None if glmark2 fails."""
    parts = glmark2.WARM_SECONDS, glmark2.SECONDS
    with Gl(keeps_image=False) as gl, _output() as out:
        gl.start(command(scene, parts), environment)
        gl.serve()
        out.seek(0)
        return glmark2.rate(out.read(), len(parts))


def watched(scene: str, environment: dict[str, str]) -> Measured | None:
    """The same with a watch on Python; None if glmark2 fails."""
    parts = glmark2.WARM_SECONDS, glmark2.SECONDS
    looks: list[Look] = []
    with PythonTime().watching() as watch, Gl(keeps_image=False) as gl, _output() as out:

        def look(event: MessageReceived) -> None:
            now = time.monotonic_ns()
            if isinstance(event.message, ResourceBusyWait) and (
                not looks or now - looks[-1].clock > 20_000_000
            ):
                looks.append(Look(now, watch.nanoseconds()[0], time.process_time_ns()))

        with gl.server.listeners.message.subscribe(look):
            gl.start(command(scene, parts), environment)
            gl.serve()
        out.seek(0)
        found = glmark2.rate(out.read(), len(parts))
    if found is None or len(looks) < 2:
        return None
    # From the middle of the last part to close to its end.
    end = looks[-1].clock
    steady = [one for one in looks if end - 0.8e9 * glmark2.SECONDS < one.clock < end - 0.05e9]
    spans = list(pairwise(steady if len(steady) > 1 else looks))
    # The median: a thread that ends takes its time out of the sum.
    python, server = (
        statistics.median((after[of] - before[of]) / (after.clock - before.clock) for before, after in spans)
        for of in (1, 2)
    )
    return Measured(found, 1000 * python / found, 1000 * server / found)


def protocol(scene: str, environment: dict[str, str]) -> float | None:
    """Milliseconds of a frame without draws."""
    with PrivateTmp() as tmp, _output() as out:
        reporter = Reporter()
        with (
            Server(tmp.socket, _DecodingScreen(reporter), reporter) as server,
            Program(command(scene, (SHORT, SHORT)), tmp.path, environment) as program,
        ):
            server.watch(program.descriptor, server.end)
            server.run()
            program.wait()
        out.seek(0)
        found = glmark2.rate(out.read(), 2)
    return 1000 / found if found else None


def theirs(scene: str, environment: dict[str, str]) -> float | None:
    """Frames a second of llvmpipe."""
    parts = glmark2.WARM_SECONDS, glmark2.SECONDS
    done = subprocess.run(command(scene, parts), env=environment, capture_output=True, text=True, check=False)
    return glmark2.rate(done.stdout, len(parts))


def beside(scene: str, peer: Llvmpipe) -> tuple[Measured, float] | None:
    """Ours and llvmpipe in turn; the best of each, and what ours took in a run more."""
    environment = dict(peer.environment)
    del environment["LP_NUM_THREADS"]  # on all cores
    best = other = 0.0
    for _ in range(glmark2.ROUNDS):
        mine, one = ours(scene, environment), theirs(scene, environment)
        if mine is None or one is None:
            return None
        best, other = max(best, mine), max(other, one)
    taken = watched(scene, environment)
    return None if taken is None else (taken._replace(rate=best), other)


def run() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    ratios = []
    wanted = tuple(os.environ.get("GL_SCENES", "").split(","))
    with llvmpipe() as peer:
        if peer is None:
            return rows
        for scene in SCENES:
            if not scene.startswith(wanted):
                continue
            found = beside(scene, peer)
            if found is None:
                print(f"{scene}: glmark2 failed")
                continue
            mine, other = found
            ratios.append(mine.rate / other)
            rows.append({
                "name": f"gl {scene}", "value": mine.rate, "unit": "frames/s", "peer": "llvmpipe",
                "peer_value": other, "ratio": ratios[-1],
            })  # fmt: skip
            without = protocol(scene, peer.environment)
            for what, value, unit in (
                ("protocol", without, "ms a frame"),
                ("Python", mine.python, "ms of CPU a frame"),
                ("server", mine.server, "ms of CPU a frame"),
            ):
                if value is not None:
                    rows.append({"name": f"gl {scene}: {what}", "value": value, "unit": unit})
    return rows + glmark2.ratio_rows("gl", ratios)

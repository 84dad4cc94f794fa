"""Instructions that our programs execute for a batch of 16, beside those of Mesa's vc4 compiler.

Each recorded run of a glmark2 scene holds the programs that Mesa's vc4 driver made. Its first frame
is drawn by the reference interpreter, which counts what fragment, vertex and coordinate programs
execute; then the same scene's first frame is drawn by `vc4lab gl`, with our programs, in a window
of the same size. Frames later than the first depend on the time that drawing takes.

Programs are compared in the order in which the frame uses them first, each with the batches that
it has in Mesa's frame. Where there are not equally many (a mipmap made by a draw or by the tile
buffer, one more variant), the means over all batches are compared; the row then says "mixed".

``make bench`` measures the recorded runs of tests/data; a folder of more of them (`vc4lab drm
--record-jobs`), each with the scene's name in NAME.scene beside it, is taken from VC4_RUNS.
``python -m benchmarks.code_quality`` prints the table of docs/gl.md.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks._display import display
from benchmarks._executed import STAGES, Count, Executed, executed
from benchmarks._llvmpipe import SCENES
from vc4lab.diagnostics import Reporter
from vc4lab.driver.gl import Gl
from vc4lab.drm.kernel.hardware import run_job
from vc4lab.drm.recorded.jobs import RecordedRun
from vc4lab.options import GpuOptions
from vc4lab.v3d.core import V3D
from vc4lab.v3d.events import ProgramKind

RUNS = Path(__file__).parents[1] / "tests" / "data" / "vc4-jobs"
GOLDEN = GpuOptions(engine="interpreter", threads=1)


class Compared(NamedTuple):
    """A stage of a scene: instructions a batch, and whether programs were matched one by one."""

    scene: str
    stage: ProgramKind
    ours: float
    mesa: float
    matched: bool

    @property
    def ratio(self) -> float:
        return self.ours / self.mesa


def recorded(path: Path, size: tuple[int, int]) -> Executed:
    """The first frame of a recorded run: all jobs up to the first that draws in the window."""
    reporter = Reporter()
    run = RecordedRun(path, reporter)
    v3d = V3D(run.memory, reporter, options=GOLDEN)
    with executed() as found:
        for job in run.jobs:
            run_job(v3d, job.build(run.memory))
            shown = job.submit is not None and (job.submit.width, job.submit.height) == size
            if shown and found.programs:
                break
    return found


def drawn(scene: str, size: tuple[int, int], display_name: str) -> Executed:
    """The first frame of a scene, by our driver."""
    environment = {**os.environ, "DISPLAY": display_name}
    command = ["glmark2-es2", "-s", f"{size[0]}x{size[1]}", "-b", scene]
    with executed() as found:
        Gl.run(command, frames=1, gpu=GOLDEN, environment=environment)
    return found


def compare(scene: str, ours: Executed, mesa: Executed) -> list[Compared]:
    """A row for each stage."""
    rows = []
    for stage in STAGES:
        theirs = [count for _, count in mesa.of(stage)]
        own = [count for _, count in ours.of(stage)]
        if not theirs or not own:
            continue
        batches = sum(count.batches for count in theirs)
        matched = len(own) == len(theirs)
        if matched:
            pairs = zip(own, theirs, strict=True)
            mean = sum(one.mean * other.batches for one, other in pairs) / batches
        else:
            mean = _mean(own)
        rows.append(Compared(scene, stage, mean, _mean(theirs), matched))
    return rows


def _mean(counts: list[Count]) -> float:
    return sum(one.instructions for one in counts) / sum(one.batches for one in counts)


def runs() -> Iterator[tuple[Path, str, tuple[int, int]]]:
    """Recorded runs, their scenes, and the size of the window."""
    for name, scene in SCENES.items():
        yield RUNS / name, scene, (640, 480)
    more = os.environ.get("VC4_RUNS")
    if more:
        for path in sorted(Path(more).glob("*.scene")):
            yield path.with_suffix(""), path.read_text().strip(), (800, 600)


def measured() -> list[Compared]:
    """All rows; none without an X server and glmark2."""
    missing = [program for program in ("Xvfb", "glmark2-es2") if shutil.which(program) is None]
    if missing:
        print(f"no programs to compare ({', '.join(missing)} not found)", file=sys.stderr)
        return []
    rows: list[Compared] = []
    with display("1024x768") as name:
        if name is not None:
            for path, scene, size in runs():
                rows += compare(scene, drawn(scene, size, name), recorded(path, size))
    return rows


def run() -> list[dict[str, Any]]:
    """Geometric means of the ratios (Mesa's instructions by ours), and each scene."""
    rows = measured()
    table: list[dict[str, Any]] = []
    for stage in (*STAGES, None):
        of_stage = [one for one in rows if stage in (None, one.stage)]
        if of_stage:
            name = "all programs" if stage is None else f"{stage.value} programs"
            row = _row(
                f"instructions a batch, {name}, geometric mean",
                statistics.geometric_mean(one.ours for one in of_stage),
                statistics.geometric_mean(one.mesa for one in of_stage),
            )
            table.append(row)
    for one in rows:
        mixed = "" if one.matched else ", mixed"
        table.append(_row(f"{one.scene}, {one.stage.value}{mixed}", one.ours, one.mesa))
    return table


def _row(name: str, ours: float, mesa: float) -> dict[str, Any]:
    return {
        "name": name,
        "value": ours,
        "unit": "instructions",
        "peer": "Mesa's vc4",
        "peer_value": mesa,
        "ratio": mesa / ours,
    }


def page() -> str:
    """The table of docs/gl.md."""
    rows = measured()
    if not rows:
        return ""
    lines = ["| scene | fragment | vertex | coordinate |", "| --- | --- | --- | --- |"]
    for scene in dict.fromkeys(one.scene for one in rows):
        cells = []
        for stage in STAGES:
            found = [one for one in rows if one.scene == scene and one.stage is stage]
            cells += [
                f"{one.ours:.1f} : {one.mesa:.1f} = {one.ratio:.2f}{'' if one.matched else '*'}"
                for one in found
            ] or ["–"]
        lines.append(f"| {scene} | {' | '.join(cells)} |")
    means = [
        f"{statistics.geometric_mean(one.ratio for one in rows if one.stage is stage):.3f}"
        for stage in STAGES
    ]
    whole = statistics.geometric_mean(one.ratio for one in rows)
    lines.append(f"| geometric mean, all: {whole:.3f} | {' | '.join(means)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page())

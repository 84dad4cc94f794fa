"""A frame that is stored without any of its draws: a sentence in the summary, exit code 6."""

from pathlib import Path

import pytest
from tests.support.frames import Frame, solid
from tests.support.jobs import nv_vertex, viewport
from typer.testing import CliRunner

from vc4lab.cli.exit_codes import ExitCode
from vc4lab.cli.main import app
from vc4lab.memory import GuestMemory
from vc4lab.records.control import build

KERNEL = Path(__file__).parents[1] / "soc" / "kernels" / "v3d.img"
REFUSED = "sacq -, 3\n" + solid(0xFF0000FF)
"""A fragment program that takes a semaphore, which only user programs may."""
LIST, JOB, SIZE = 0x10000, 0x10400, 0x20000
CORNERS = ((20, 4), (4, 60), (60, 60))


def frame(*programs: str) -> Frame:
    """A job with a triangle by each program, in memory and drawn once."""
    one = Frame(64, 64, memory=GuestMemory())
    one.job.top = JOB
    vertices = b"".join(nv_vertex(x, y, 0.5, 1.0) for x, y in CORNERS)
    body = viewport(one.job)
    for program in programs:
        body += one.nv_shader(program, vertices) + build(33, mode=4, length=3, first=0)
    one.render(body)
    return one


@pytest.mark.parametrize(
    ("programs", "undrawn"),
    [([], 0), ([REFUSED], 1), ([REFUSED, REFUSED], 1), ([REFUSED, solid(0xFF00FF00)], 0)],
    ids=["no draw", "one", "two", "one of two"],
)
def test_frames_without_any_of_their_draws_are_counted(programs: list[str], undrawn: int) -> None:
    assert frame(*programs).v3d.undrawn == undrawn


def test_draws_that_the_binner_refuses_count_as_well() -> None:
    one = Frame(64, 64)
    vertices = b"".join(nv_vertex(x, y, 0.5, 1.0) for x, y in CORNERS)
    shader = one.nv_shader(solid(0xFF0000FF), vertices)
    one.bin(viewport(one.job) + shader + build(33, mode=9, length=3, first=0))
    assert one.reporter.has("CLE-016")
    assert one.v3d.undrawn == 1
    one.bin(viewport(one.job) + shader + build(33, mode=4, length=3, first=0))
    assert one.v3d.undrawn == 1


@pytest.mark.parametrize("program", [REFUSED, solid(0xFF0000FF)], ids=["refused", "drawn"])
def test_the_summary_says_so(program: str, tmp_path: Path) -> None:
    one = frame(program)
    blob = build(16, address=one.first).ljust(JOB - LIST, b"\0") + one.job.memory.read(JOB, SIZE)
    (tmp_path / "kernel7.img").write_bytes(KERNEL.read_bytes())
    (tmp_path / "job.bin").write_bytes(blob)
    (tmp_path / "config.txt").write_text(f"kernel_old=0\ninitramfs job.bin 0x{LIST:x}\n")
    result = CliRunner().invoke(app, ["boot", str(tmp_path), "--headless"])
    said = "3 frames were stored without any draw: all were refused" in result.output
    assert said == (program is REFUSED)
    assert result.exit_code == (ExitCode.NOT_DRAWN if program is REFUSED else ExitCode.OK)

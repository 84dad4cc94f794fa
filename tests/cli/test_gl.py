"""`vc4lab gl` with real programs and the Mesa that is installed."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image
from tests.support.host_tools import need, why_no_library

from vc4lab.cli.exit_codes import ExitCode

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "tests" / "support" / "egl_clear.py"
GL = [sys.executable, "-m", "vc4lab", "gl"]


def can_unshare() -> bool:
    """Whether a program can get a /tmp of its own here."""
    found = subprocess.run(["unshare", "-rm", "true"], check=False, capture_output=True, timeout=60)
    return found.returncode == 0


pytestmark = [
    pytest.mark.skipif(not can_unshare(), reason="programs may not have a /tmp of their own here"),
    pytest.mark.skipif(bool(why_no_library("EGL")), reason=why_no_library("EGL")),
]


def run(*words: object, **options: object) -> subprocess.CompletedProcess[str]:
    """`vc4lab gl` with these words."""
    return subprocess.run(
        [*GL, *map(str, words)], check=False, capture_output=True, text=True, timeout=120, **options
    )  # type: ignore[call-overload,no-any-return]


@pytest.mark.parametrize("options", [[], ["--inline"]])
def test_a_program_clears_and_uploads(options: list[str]) -> None:
    result = run(*options, "--", sys.executable, PROGRAM, "upload")
    assert result.returncode == 0, result.stderr
    assert "virgl (vc4lab VideoCore IV) | OpenGL ES 2.0 Mesa" in result.stdout
    assert "clear [51, 102, 153, 255]" in result.stdout
    assert "upload [48, 160, 255, 255]" in result.stdout
    assert result.stderr == ""


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
def test_a_program_draws(tmp_path: Path, engine: str) -> None:
    picture = tmp_path / "last.png"
    options = "--engine", engine, "--screenshot", picture
    result = run(*options, "--", sys.executable, PROGRAM, "draw")
    assert result.returncode == 0, result.stderr
    assert "draw [255, 0, 0, 255]" in result.stdout
    with Image.open(picture) as image:
        assert image.size == (16, 8)
        assert image.getcolors() == [(128, (255, 0, 0))]


def test_jobs_are_timed_and_counted(tmp_path: Path) -> None:
    picture = tmp_path / "last.png"
    options = "--timing", "--counters", "--timing-board", "pi1", "--screenshot", picture
    result = run(*options, "--", sys.executable, PROGRAM, "draw")
    assert result.returncode == 0, result.stderr
    counters, timing = result.stderr.split("\ntiming: ", 1)
    clear, draw = counters.split("frame 1, draw 1: performance counters\n")
    assert clear.startswith("frame 1: performance counters\n")
    rows = {int(line[:2]): line.split()[2] for line in draw.splitlines()}
    assert set(rows) == set(range(30))
    assert all(value.isdigit() for value in rows.values())
    assert int(rows[16]) > 0  # clocks executing, which only the model knows
    assert int(rows[9]) == 32  # quads of 16x8 pixels
    assert "2 frames take 0.0" in timing
    assert "(videocore4 on pi1 at 250 MHz)" in timing
    assert "frames a second, if the GPU bounds the program" in timing
    with Image.open(picture) as image:
        assert image.getcolors() == [(128, (255, 0, 0))]


def test_jobs_end_when_the_chip_would_be_done() -> None:
    begin = time.monotonic()
    result = run("--timing", "--timing-slower", 20000, "--", sys.executable, PROGRAM, "draw")
    spent = time.monotonic() - begin
    assert result.returncode == 0, result.stderr
    taken = re.search(r"timing: 2 frames take ([0-9.]+) ms", result.stderr)
    assert taken is not None
    assert spent > 20 * float(taken[1])
    assert "timing: the chip is made 20000 times slower" in result.stderr
    assert re.search(r"jobs \(2\)|of 2 jobs", result.stderr), "in time or not"
    result = run("--timing-slower", 2, "--", "true")
    assert result.returncode == ExitCode.BAD_INPUT
    assert "--timing-slower goes with --timing" in result.stderr


def test_a_program_that_waits_for_the_chip_can_be_ended() -> None:
    words = "--timing", "--timing-slower", "1000000", "--", sys.executable, PROGRAM, "draw"
    with subprocess.Popen(
        [*GL, "--counters", *map(str, words)], stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "frame 1: performance counters\n"
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert "frames take" in said


def test_what_cannot_be_drawn_is_left_out_and_reported() -> None:
    result = run("--", sys.executable, PROGRAM, "draw", 3000)
    assert result.returncode == ExitCode.NOT_DRAWN, result.stderr
    assert result.stderr.count("GL-005") == 1
    assert "frame 1, draw 1: left out: resource" in result.stderr
    assert "1 of 1 draws were left out" in result.stderr
    assert "draw [51, 102, 153, 255]" in result.stdout


def test_strict_stops_at_the_first_error() -> None:
    result = run("--strict", "--", sys.executable, PROGRAM, "draw", 3000)
    assert result.returncode == ExitCode.STRICT_STOP
    assert "stopped (strict): GL-005" in result.stderr


def test_frames_end_the_program(display: str, tmp_path: Path) -> None:
    picture, film = tmp_path / "last.png", tmp_path / "film.gif"
    result = run(
        *("--frames", 60, "--screenshot", picture, "--record", film, "--"),
        *("glmark2-es2", "-s", "160x120", "-b", "build:duration=60"),
        env={**os.environ, "DISPLAY": display},
    )
    assert result.returncode == 0, result.stderr
    with Image.open(film) as image:
        assert 2 <= image.n_frames <= 60  # equal ones are joined
    with Image.open(picture) as image:
        shades = image.convert("L").getcolors()
    assert shades is not None
    assert len(shades) > 50


def test_frames_end_a_program_that_does_not_heed_sigterm(display: str) -> None:
    """SDL's programs make an event of it, and wait for an answer of the server meanwhile."""
    words = "glmark2-es2", "-s", "160x120", "-b", "build:duration=300"
    result = run(
        *("--frames", 3, "--", "sh", "-c", f"trap '' TERM; exec {' '.join(words)}"),
        env={**os.environ, "DISPLAY": display},
    )
    assert result.returncode == 0, result.stderr


def test_the_trace_shows_state_and_shaders() -> None:
    result = run("--trace", "gallium", "--", sys.executable, PROGRAM, "draw")
    for part in (
        "CREATE_RENDERER program=",
        "GET_CAPS2",
        "RESOURCE_CREATE2 handle=",
        "CREATE_OBJECT RASTERIZER handle=",
        "CREATE_OBJECT SHADER handle=",
        "|   0: MOV OUT[0], IN[0]",
        "CLEAR buffers=0x4 color=[0.2, 0.4, 0.6, 1]",
        "DRAW_VBO triangles start=0 count=3",
    ):
        assert part in result.stderr, part
    assert "GL-00" not in result.stderr


def test_a_host_that_gives_no_tmp_of_its_own() -> None:
    forbidden = "".join(
        f"echo 0 > /proc/sys/user/max_{kind}_namespaces || exit 77; " for kind in ("user", "mnt")
    )
    command = ["unshare", "-Ur", "sh", "-c", f'{forbidden} exec "$@"', "sh", *GL, "--", "true"]
    result = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    if result.returncode == 77:
        pytest.skip("/proc/sys/user cannot be written here, to forbid namespaces")
    assert result.returncode == ExitCode.BAD_INPUT
    assert "GL-013: the program cannot get a /tmp of its own" in result.stderr


def test_exit_codes_pass_through() -> None:
    result = run("--", sys.executable, PROGRAM, "exit", 7)
    assert result.returncode == 7
    assert "GL-011" in result.stderr
    assert run("--", sys.executable, PROGRAM, "crash").returncode == 128 + signal.SIGABRT
    result = run("--", "/no/such/program")
    assert result.returncode == ExitCode.BAD_INPUT
    assert "/no/such/program: no such file" in result.stderr


@pytest.mark.parametrize("words", [[], ["--trace", "ioctl", "--", "true"]])
def test_wrong_options(words: list[str]) -> None:
    assert run(*words).returncode == ExitCode.BAD_INPUT


def test_the_program_s_tmp_is_its_own(tmp_path: Path) -> None:
    """Two runs at once; each sees its socket and its working folder, and nothing is left."""
    here = Path("/tmp") / f"vc4lab-test-{os.getpid()}"
    here.mkdir()
    try:
        command = [*GL, "--", sys.executable, str(PROGRAM)]
        runs = [
            subprocess.Popen(command, cwd=here, stdout=subprocess.PIPE, text=True, env=_folders_in(tmp_path))
            for _ in range(2)
        ]
        for one in runs:
            text, _ = one.communicate(timeout=120)
            assert one.returncode == 0
            seen = text.splitlines()[0]
            assert ".virgl_test" in seen
            assert here.name in seen
            assert str(here) in seen
            assert "vc4lab-gl" not in seen
        assert not list(tmp_path.glob("vc4lab-gl-*"))
    finally:
        shutil.rmtree(here)


def test_a_long_path_of_temporary_files(tmp_path: Path) -> None:
    """A socket's own path has 107 bytes."""
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    command = [*GL, "--", sys.executable, str(PROGRAM)]
    result = subprocess.run(command, capture_output=True, text=True, env=_folders_in(folder))
    assert result.returncode == 0, result.stderr
    assert ".virgl_test" in result.stdout


def test_a_signal_ends_the_program(tmp_path: Path) -> None:
    """SIGTERM ends program and server; the folder is removed."""
    command = [*GL, "--", "sleep", "60"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=_folders_in(tmp_path)) as process:
        limit = time.monotonic() + 60
        while time.monotonic() < limit:
            if _child_of(process.pid) == "sleep":
                break
            time.sleep(0.05)
        assert list(tmp_path.glob("vc4lab-gl-*"))
        process.terminate()
        assert process.wait(60) == 128 + signal.SIGTERM
    assert not list(tmp_path.glob("vc4lab-gl-*"))


def _folders_in(folder: Path) -> dict[str, str]:
    """The environment of a run whose folders lie here, apart from those of other runs."""
    return {**os.environ, "TMPDIR": str(folder)}


def _child_of(process: int) -> str:
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    try:
        return Path(f"/proc/{children[0]}/comm").read_text().strip()
    except (IndexError, OSError):
        return ""


@pytest.fixture(scope="module")
def display() -> Iterator[str]:
    """An X server."""
    need("Xvfb")
    need("glmark2-es2")
    read, write = os.pipe()
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", str(write), "-noreset", "-screen", "0", "320x240x24"],
        pass_fds=[write],
        stderr=subprocess.DEVNULL,
    )
    os.close(write)
    with open(read) as file:
        yield f":{file.readline().strip()}"
    server.terminate()
    server.wait()


@pytest.mark.parametrize("options", [[], ["--inline"]])
def test_glmark2_runs_to_its_end(display: str, options: list[str]) -> None:
    """In a window: no command is unknown or wrong, every draw is seen."""
    scenes = ["-b", "texture:nframes=2", "-b", "ideas:nframes=2", "-b", "refract:nframes=2"]
    result = run(
        *(*options, "--trace", "gallium", "--"),
        *("glmark2-es2", "-s", "160x120", *scenes),
        env={**os.environ, "DISPLAY": display},
    )
    assert result.returncode == 0, result.stderr[-2000:]
    assert "glmark2 Score" in result.stdout
    assert not [line for line in result.stderr.splitlines() if line.startswith("GL-")]
    for name in ("BLIT", "SET_CONSTANT_BUFFER", "TEX TEMP"):
        assert name in result.stderr

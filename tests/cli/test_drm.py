"""`vc4lab drm` as people type it."""

import errno
import inspect
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PIL import Image
from tests.support.drm_client import CLIENT as CLIENT_NAMES
from tests.support.supervised import need_supervisor
from typer.testing import CliRunner

from vc4lab.cli.drm_pictures import DrmPictures
from vc4lab.cli.ioctls_page import write_page
from vc4lab.cli.main import app
from vc4lab.drm.setup.host_driver import find_driver

CLIENT = """
import fcntl, os, struct
fd = os.open("/dev/dri/card0", os.O_RDWR)
data = bytearray(struct.pack("<IIQ", 0, 0, 0))
fcntl.ioctl(fd, 0xC0106447, data)
print(hex(struct.unpack("<IIQ", data)[2]))
"""


def vc4lab(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "vc4lab", "drm", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture(autouse=True)
def _possible() -> None:
    need_supervisor()


def test_a_program_finds_the_gpu() -> None:
    result = vc4lab("--trace", "ioctl", "--", sys.executable, "-c", CLIENT)
    assert result.stdout == "0x2443356\n"
    assert "VC4_GET_PARAM(param=0, pad=0, value=0x2443356) = 0" in result.stderr
    assert result.returncode == 0


def test_exit_codes(tmp_path: Path) -> None:
    assert vc4lab("--", "sh", "-c", "exit 9").returncode == 9
    missing = vc4lab("--", "no-such-program")
    assert (missing.returncode, missing.stderr) == (2, "no-such-program: no such file or directory\n")
    few = vc4lab("--frames", "3", "--", "true")
    assert few.returncode == 3
    assert "0 of 3 frames" in few.stderr
    picture = tmp_path / "p.png"
    nothing = vc4lab("--screenshot", str(picture), "--", "true")
    assert nothing.returncode == 5
    assert "CLI-002: there is no picture to save" in nothing.stderr


def test_wrong_options_are_a_sentence(tmp_path: Path) -> None:
    for arguments in (
        (),
        ("--modes", "huge", "--", "true"),
        ("--trace", "all", "--", "true"),
        ("--engine", "fast", "--", "true"),
        ("--screenshot", "picture.xyz", "--", "true"),
        ("--record", "film.avi", "--", "true"),
        ("--driver", str(tmp_path), "--", "true"),
        ("--unknown", "nothing=1", "--", "true"),
        ("--device", "lima", "--", "true"),
        ("--param", "dumb_alignment_size=8", "--", "true"),
        ("--device", "xlnx", "--param", "dumb_alignment_size", "--", "true"),
        ("--device", "xlnx", "--param", "dumb_alignment_size=much", "--", "true"),
        ("--device", "xlnx", "--param", "colour=1", "--", "true"),
        ("--cpu-memory", "pi9", "--", "true"),
        ("--cpu-memory", str(tmp_path), "--", "true"),
        ("--cpu-memory", __file__, "--", "true"),
        ("--trace", "memory", "--", "true"),
    ):
        result = CliRunner().invoke(app, ["drm", *arguments])
        assert result.exit_code == 2, arguments
        lines = [line for line in result.output.splitlines() if line]
        assert len(lines) == (3 if lines[0].startswith("Usage") else 1)


def test_a_program_that_cannot_be_started_is_a_sentence(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    for program, text in (
        ([str(loop)], "too many levels of symbolic links"),
        (["x" * 300], "file name too long"),
        (["true", "x" * 1_000_000], "argument list too long"),
    ):
        result = CliRunner().invoke(app, ["drm", "--", *program])
        assert (result.exit_code, result.output) == (2, f"{program[0]}: {text}\n")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("os.memfd_create", "memory that programs can map is not available: operation not "),
        ("tempfile.mkdtemp", "cannot make a folder for the device's nodes: operation not "),
    ],
)
def test_what_a_sandbox_refuses_is_a_sentence(name: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> int:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(name, refused)
    result = CliRunner().invoke(app, ["drm", "--", "true"])
    assert result.exit_code == 2
    assert result.output.startswith(f"vc4lab drm: {said}")
    assert result.output.endswith("; see vc4lab drm --check\n")


def test_accounts_are_printed() -> None:
    result = vc4lab("--cpu-memory", "ultra96", "--", "true")
    assert result.returncode == 0
    assert "no picture was handed to the display" in result.stderr


def test_the_other_display() -> None:
    text = "import os; os.write(1, open('/sys/module/xlnx_drm/parameters/' + NAME, 'rb').read())"
    text = text.replace("NAME", "'dumb_alignment_size'")
    arguments = "--device", "xlnx", "--param", "dumb_alignment_size=0x40"
    result = vc4lab(*arguments, "--", sys.executable, "-c", text)
    assert (result.returncode, result.stdout.strip()) == (0, "64")


def test_a_driver_is_found_in_a_folder_or_a_build_tree(tmp_path: Path) -> None:
    place = tmp_path / "src" / "gallium" / "targets" / "dri"
    place.mkdir(parents=True)
    assert find_driver({}, tmp_path) is None
    (place / "vc4_dri.so").write_bytes(b"")
    assert find_driver({}, tmp_path) == place
    assert find_driver({}, place) == place


def test_check_says_what_is_there() -> None:
    result = vc4lab("--check")
    assert result.returncode == 0
    assert "supervisor   works" in result.stdout
    assert "driver " in result.stdout


def test_the_page_of_ioctls_is_that_of_the_declarations() -> None:
    """Write it anew with `python -m vc4lab.cli.ioctls_page > docs/drm_ioctls.md`."""
    page = Path(__file__).parents[2] / "docs" / "drm_ioctls.md"
    assert page.read_text() == write_page()


def flips(count: int) -> str:
    """A program that shows so many pictures."""

    def client() -> None:
        fd = open_card()  # noqa: F821
        crtc, fb, view, _ = show(fd)  # noqa: F821
        for number in range(int(sys.argv[1])):
            view[:] = bytes([number, 0, 100, 0]) * (len(view) // 4)
            flip(fd, crtc, fb)  # noqa: F821
            events(fd)  # noqa: F821

    source = textwrap.dedent(inspect.getsource(client))
    return f"{CLIENT_NAMES}\n{source}\nsys.argv = ['', '{count}']\nclient()\n"


def test_pictures_go_to_files_as_those_of_boot(tmp_path: Path) -> None:
    film, shot = tmp_path / "film.webp", tmp_path / "shot.png"
    result = vc4lab(
        *("--unpaced", "--record", str(film), "--every", "3", "--screenshot", str(shot)),
        *("--frames", "20", "--", sys.executable, "-c", flips(30)),
    )
    assert (result.returncode, result.stdout) == (0, "")
    assert f"picture: {shot}" in result.stderr
    assert f"recording: {film}" in result.stderr
    with Image.open(shot) as image:
        assert (image.size, image.getpixel((5, 5))) == ((640, 480), (100, 0, 18))
    with Image.open(film) as image:
        assert image.n_frames == 7
        assert image.size == (640, 480)
        image.seek(1)
        assert image.convert("RGB").getpixel((0, 0)) == (100, 0, 2)
    missing = vc4lab("--record", str(tmp_path / "no" / "film.gif"), "--", "true")
    assert missing.returncode == 5
    assert "CLI-001: there is no folder" in missing.stderr


def test_a_window_shows_the_screen_and_closing_it_ends_the_programs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("pygame", reason="pygame-ce is not installed")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setenv("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    closing = (
        "import pygame, vc4lab.viewer.live as live\n"
        "from vc4lab.cli.main import app\n"
        "paint = live.LiveWindow._paint\n"
        "def paint_and_close(self, window):\n"
        "    paint(self, window)\n"
        "    if self.painted == 3:\n"
        "        pygame.event.post(pygame.event.Event(pygame.QUIT))\n"
        "live.LiveWindow._paint = paint_and_close\n"
        "app()\n"
    )
    shot = tmp_path / "shot.png"
    result = subprocess.run(
        [sys.executable, "-c", closing, "drm", "--window", "--screenshot", str(shot), "--",
         sys.executable, "-c", flips(100000)],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (result.returncode, result.stdout) == (0, ""), result.stderr
    assert shot.is_file()


def test_a_window_that_stays_is_closed_by_sigterm_and_its_picture_saved(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("pygame", reason="pygame-ce is not installed")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    shot = tmp_path / "shot.png"
    running = subprocess.Popen(
        [sys.executable, "-m", "vc4lab", "drm", "--window", "--screenshot", str(shot), "--",
         sys.executable, "-c", flips(3)],
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert running.stderr is not None
        for line in running.stderr:
            if "the window stays" in line:
                break
        time.sleep(0.2)
        running.terminate()
        assert running.wait(60) == 130
    finally:
        running.kill()
        running.communicate()
    assert shot.is_file()


def test_what_sigterm_does_is_as_before_when_the_window_has_gone() -> None:
    pictures: Any = object.__new__(DrmPictures)
    seen = []
    pictures.window = SimpleNamespace(
        has_picture=True, closed=False, stay=lambda: seen.append(signal.getsignal(signal.SIGTERM))
    )
    before = signal.getsignal(signal.SIGTERM)
    assert pictures.stay()
    assert seen == [signal.default_int_handler]
    assert signal.getsignal(signal.SIGTERM) is before


def test_without_a_display_programs_run_without_a_window(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"):
        monkeypatch.delenv(name, raising=False)
    result = vc4lab("--window", "--", "true")
    assert result.returncode == 0
    assert "continuing without a window" in result.stderr


@pytest.mark.parametrize(
    ("looked_for", "said"), [("", False), ("kms_swrast_dri.so", True), ("libgallium-25.0.so", True)]
)
def test_it_says_when_gl_was_drawn_by_the_cpu(looked_for: str, said: bool) -> None:
    client = CLIENT_NAMES + textwrap.dedent(f"""
        show(open_card())
        if {looked_for!r}:
            try:
                os.open("/nowhere/{looked_for}", os.O_RDONLY)
            except FileNotFoundError:
                pass
    """)
    result = vc4lab("--headless", "--", sys.executable, "-S", "-c", client)
    assert result.returncode == 0, result.stderr
    assert ("GL was drawn by the CPU" in result.stderr) is said

"""Every example on every board it has a kernel for: the same picture, to the last bit."""

from functools import cache
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner

from vc4lab.cli.exit_codes import ExitCode
from vc4lab.cli.main import app
from vc4lab.soc.board import BOARDS

EXAMPLES = Path(__file__).parents[2] / "examples"
# Frames until the picture is worth comparing; programs that end need none.
FRAMES = {"framebuffer": 1, "triangle": 1, "vertex_shader": 1, "aarch64_triangle": 1, "naan": 2, "gears": 3}
# Compared with its own picture on this board, or with another example's.
FIRST = "pi2"
ORIGINAL = {"aarch64_triangle": "triangle"}


def runs_on(name: str, board: str) -> bool:
    return any((EXAMPLES / name / "sdcard" / kernel).exists() for kernel in BOARDS[board].kernels)


PAIRS = [
    (name, board)
    for name in FRAMES
    for board in BOARDS
    if runs_on(name, board) and (name, board) != (ORIGINAL.get(name, name), FIRST)
]


@cache
def picture(name: str, board: str) -> tuple[tuple[int, int], bytes]:
    with CliRunner().isolated_filesystem():
        arguments = ["boot", str(EXAMPLES / name / "sdcard"), "--headless", "--board", board]
        arguments += ["--frames", str(FRAMES[name]), "--screenshot", "shot.png"]
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == ExitCode.OK, result.output
        with Image.open("shot.png") as image:
            return image.size, image.convert("RGB").tobytes()


@pytest.mark.parametrize(("name", "board"), PAIRS)
def test_the_picture_is_the_same_on_every_board(name: str, board: str) -> None:
    size, pixels = picture(name, board)
    assert size == (640, 480)
    assert len(set(pixels)) > 16  # not a blank screen
    assert (size, pixels) == picture(ORIGINAL.get(name, name), FIRST)


def test_nearly_all_examples_run_everywhere() -> None:
    everywhere = {name for name in FRAMES if all(runs_on(name, board) for board in BOARDS)}
    assert everywhere == set(FRAMES) - {"aarch64_triangle"}

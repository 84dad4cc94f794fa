"""Booting an example as a user does."""

from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner

from vc4lab.cli.exit_codes import ExitCode
from vc4lab.cli.main import app

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def boot(tmp_path: Path) -> Callable[..., tuple[Image.Image, str]]:
    """`boot(name, *options)`: the last picture and the words on the UART."""

    def run(name: str, *options: str) -> tuple[Image.Image, str]:
        shot = tmp_path / f"{name}.png"
        arguments = ["boot", str(EXAMPLES / name / "sdcard"), "--headless", "--serial", "stdio"]
        result = CliRunner().invoke(app, [*arguments, "--screenshot", str(shot), *options])
        assert result.exit_code == ExitCode.OK, result.output
        with Image.open(shot) as image:
            return image.convert("RGB"), result.stdout

    return run

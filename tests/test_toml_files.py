"""Tables that people write, and files that only look like it."""

import os
import time

import pytest
from typer.testing import CliRunner

from vc4lab.cli.exit_codes import ExitCode
from vc4lab.cli.main import app
from vc4lab.drm.cpu_memory.profiles import BadProfile, load_profile
from vc4lab.files import Unusable
from vc4lab.timing.chip import BadChip, load_chip
from vc4lab.toml_files import MOST_PARTS, NotToml, read_toml

LONG = "a." * 100_000
LIMIT = 1 << 20


def read(tmp_path, text: str):
    path = tmp_path / "f.toml"
    path.write_text(text)
    return read_toml(path, LIMIT)[0]


def test_what_people_write(tmp_path):
    text = 'a.b."c.d" = [0.1, 0.2, 1.5e3]  # 1.2.3\n[x.y]\nz = "' + "1.2." * 100 + '"\n'
    with pytest.raises(NotToml, match="line 3: a key of more than 32 parts"):
        read(tmp_path, text)
    text = text.replace("1.2.", "1.2, ")
    assert read(tmp_path, text)["a"]["b"]["c.d"] == [0.1, 0.2, 1500.0]
    assert read(tmp_path, "x = [" + "0.25, " * 1000 + "]\n")["x"][999] == 0.25
    key = ".".join("k" * MOST_PARTS)
    assert read(tmp_path, f"{key} = 1\n")["k"]


@pytest.mark.parametrize(
    "text",
    [
        f"{LONG}b = 1\n", f"[{LONG}b]\n", f"[[{LONG}b]]\n", f"x = {{{LONG}b = 1}}\n",
        '"a" . ' * 5000 + "b = 1\n", "'a'." * 5000 + "b = 1\n", "a\t.\t" * 5000 + "b = 1\n",
        f"{'a.' * 60}b = 1\n" * 3000, "x = " + "1" * 100_000, "x = " + "[" * 100_000, "=", "\0",
    ],
)  # fmt: skip
def test_what_takes_no_time(tmp_path, text):
    """Of the processor's: a key of 100,000 parts took Python's parser a minute."""
    begin = time.process_time()
    with pytest.raises(NotToml):
        read(tmp_path, text)
    assert time.process_time() - begin < 5


def test_what_is_searched_in_no_time(tmp_path):
    begin = time.process_time()
    for text in ("a" * 900_000, '"' * 900_001, '"' + "a" * 900_000, "a " * 400_000, "." * 900_000):
        with pytest.raises(NotToml):
            read(tmp_path, text)
    assert time.process_time() - begin < 20


def test_pipes_are_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "f.toml")
    with pytest.raises(Unusable, match="not a regular file"):
        load_chip(tmp_path / "f.toml")
    with pytest.raises(Unusable, match="not a regular file"):
        load_profile(tmp_path / "f.toml")
    (tmp_path / "like.toml").write_text('like = "f.toml"\n')
    with pytest.raises(BadChip, match="cannot be read"):
        load_chip(tmp_path / "like.toml")


def test_commands_say_it(tmp_path):
    path = tmp_path / "chip.toml"
    path.write_text(f"{LONG}b = 1\n"[: 1 << 17])
    result = CliRunner().invoke(app, ["profile", str(tmp_path), "--chip", str(path)])
    assert result.exit_code == ExitCode.BAD_INPUT
    assert "a key of more than 32 parts" in result.output
    path.write_text(f"{'a.' * 100}b = 1\n")
    with pytest.raises(BadProfile, match="32 parts"):
        load_profile(path)

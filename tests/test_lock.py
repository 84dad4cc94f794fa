"""requirements.lock: exact versions, with the digests of their files for each platform."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "requirements.lock").read_text()
BLOCKS = re.split(r"\n(?=\S)", TEXT.strip())
PINNED = {
    re.sub(r"[-_.]+", "-", match[1]).lower(): block
    for block in BLOCKS
    if (match := re.match(r"([A-Za-z0-9._-]+)==[0-9][^ ;]*(?: ;[^\\]*)? \\\n", block))
}
WITH_CODE = ("capstone", "llvmlite", "numpy", "pillow", "pyyaml", "unicorn")
"""Packages with a file for each machine."""


def test_it_says_how_it_is_made():
    assert "#    make lock\n" in TEXT
    assert "\nlock:\n\tuv pip compile requirements.lock" in (ROOT / "Makefile").read_text()
    assert "--require-hashes -r requirements.lock" in (ROOT / "Makefile").read_text()


def test_each_version_has_digests():
    assert len(PINNED) == len([block for block in BLOCKS if not block.startswith("#")]) > 40
    for block in PINNED.values():
        lines = block.splitlines()[1:]
        assert lines
        assert all(re.fullmatch(r" +--hash=sha256:[0-9a-f]{64}(?: \\)?", line) for line in lines)
    for name in WITH_CODE:  # two machines, three Pythons where that makes a difference
        assert PINNED[name].count("--hash=") >= (6 if name in ("numpy", "llvmlite") else 2), name


def test_what_the_package_needs_is_in_it():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    for text in [*project["dependencies"], *extras["window"], *extras["sweep"], *extras["debug"]]:
        name = re.sub(r"[-_.]+", "-", re.split(r"[>=<\[ ]", text)[0]).lower()
        assert name in PINNED, text

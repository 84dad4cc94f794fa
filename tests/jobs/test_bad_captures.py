"""Captured jobs of strangers: a message with a code and a place, and nothing else happens."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from vc4lab.capture.errors import CaptureError
from vc4lab.capture.files import open_files, write_folder
from vc4lab.jobs.load import open_jobs
from vc4lab.jobs.player import JobsPlayer

TRIANGLE = Path(__file__).parents[1] / "data" / "captures" / "tri.vc4cap"
EVENTS, SUMS, PACK, TABLE = "jobs/1/events.txt", "pages/sums.txt", "pages/0.bin", "capture.json"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A capture as its files."""
    files = open_files(TRIANGLE)
    write_folder(tmp_path / "x", ((name, files.read(name)) for name in files))
    return tmp_path / "x"


def table(change: Callable[[dict], object]) -> Callable[[Path], object]:
    """Edits the table."""

    def edit(path: Path) -> None:
        found = json.loads(path.read_text())
        change(found)
        path.write_text(json.dumps(found))

    return edit


def line(new: str) -> Callable[[Path], object]:
    """Puts a line before all others."""
    return lambda path: path.write_text(f"{new}\n{path.read_text()}")


@pytest.mark.parametrize(
    ("file", "edit", "code", "said"),
    [
        (TABLE, table(lambda t: t.update(version=99)), "CAP-004", "version 99"),
        (TABLE, table(lambda t: t["jobs"].update(ram_bytes=1 << 40)), "CAP-004", "jobs.ram_bytes"),
        (TABLE, table(lambda t: t["jobs"].update(noise=[0, 5])), "CAP-004", "jobs.noise"),
        (TABLE, table(lambda t: t["jobs"].update(unknowns={"x": "y"})), "CAP-004", "jobs.unknowns"),
        (TABLE, table(lambda t: t["jobs"]["frames"][0].update(events="../x")), "CAP-002", "cannot have"),
        (TABLE, table(lambda t: t["jobs"]["frames"][0].update(start={"v3d": 3})), "CAP-004", "start"),
        (TABLE, table(lambda t: t.pop("jobs")), "CAP-004", "no captured jobs"),
        (EVENTS, line("explode 1 2"), "CAP-006", f"{EVENTS}:1"),
        (EVENTS, line("write CT9EA 0x0"), "CAP-006", "no register"),
        (EVENTS, line("write CT0EA 0x100000000"), "CAP-006", "a value is a number"),
        (EVENTS, line("pages 0x1001 0 1"), "CAP-006", "no multiple of 4096"),
        (EVENTS, line("pages 0x1000 0 99999"), "CAP-006", "the first of"),
        (EVENTS, line("zeros 0x3ffff000 2"), "CAP-006", "count of pages"),
        (EVENTS, line("stored 0x0 10 abc"), "CAP-006", "no check sum"),
        (EVENTS, line("patch 0x0 xyz"), "CAP-006", "no bytes"),
        (EVENTS, line("submit ../../etc/passwd"), "CAP-002", "cannot have the name"),
        (EVENTS, line("submit nothing.json"), "CAP-003", "no such file"),
        (EVENTS, lambda p: p.write_text("zeros 0x0 262144\n" * 100), "CAP-002", "move more than"),
        (SUMS, lambda p: p.write_text("hello\n"), "CAP-006", "no check sum"),
        (
            SUMS,
            lambda p: p.write_text("0" * 32 + "\n" + p.read_text().partition("\n")[2]),
            "CAP-010",
            "page 0",
        ),
        (PACK, lambda p: p.write_bytes(p.read_bytes()[:-1]), "CAP-010", "missing"),
        (PACK, lambda p: p.unlink(), "CAP-003", "no such file"),
    ],
)
def test_what_is_wrong_is_said(
    folder: Path, file: str, edit: Callable[[Path], object], code: str, said: str
) -> None:
    edit(folder / file)
    before = sorted(folder.parent.rglob("*"))
    with pytest.raises(CaptureError) as caught:
        for _ in JobsPlayer(open_jobs(folder)).play():
            pass
    assert caught.value.code == code
    assert said in str(caught.value)
    assert sorted(folder.parent.rglob("*")) == before


def test_a_link_out_of_the_folder_is_not_followed(folder: Path, tmp_path: Path) -> None:
    shutil.move(folder / EVENTS, tmp_path / "outside.txt")
    (folder / EVENTS).symlink_to(tmp_path / "outside.txt")
    with pytest.raises(CaptureError, match="leads out of the folder"):
        open_jobs(folder)

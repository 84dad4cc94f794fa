"""Captured jobs as folders of text: what they say, and what comes of edits."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.jobs.test_boot_captures import captured

from vc4lab.capture.errors import CaptureError
from vc4lab.cli.inside import looked_into
from vc4lab.jobs.fields_text import layout_from_text, word_from_text, word_text
from vc4lab.jobs.load import open_jobs
from vc4lab.jobs.player import JobsPlayer
from vc4lab.jobs.store import save_jobs
from vc4lab.jobs.unpack import unpack_jobs
from vc4lab.records.control import RECORDS
from vc4lab.records.states import ConfigurationBits, ViewportOffset


@pytest.fixture(scope="module")
def triangle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first frame of a triangle, unpacked."""
    folder = tmp_path_factory.mktemp("triangle") / "unpacked"
    unpack_jobs(captured("triangle", 1).capture, folder)
    return folder


def edited(source: Path, target: Path, name: str, change: Callable[[str], str]) -> Path:
    """A copy of a folder with an edited file."""
    import shutil

    shutil.copytree(source, target)
    (file,) = target.glob(name)
    before = file.read_text()
    after = change(before)
    assert after != before
    file.write_text(after)
    return target


def picture(folder: Path) -> np.ndarray:
    """What the last frame draws."""
    found = open_jobs(folder)
    *_, (_, result) = JobsPlayer(found).play()
    assert result.image is not None
    return np.asarray(result.image).astype(int)


def test_an_unedited_folder_draws_the_same(triangle: Path, tmp_path: Path) -> None:
    found = open_jobs(triangle)
    for _, result in JobsPlayer(found).play():
        assert result.stored
        assert not result.differing
    save_jobs(found, tmp_path / "again.vc4cap")
    again = open_jobs(tmp_path / "again.vc4cap")
    assert [one.events for one in again.frames] == [one.events for one in found.frames]


def test_an_edited_clear_colour(triangle: Path, tmp_path: Path) -> None:
    folder = edited(
        triangle, tmp_path / "x", "jobs/1/job-2-rendering.txt",
        lambda text: text.replace("colour=0xff401a10 colour_high=0xff401a10", "colour=0xff0000ff "
                                  "colour_high=0xff0000ff"),
    )  # fmt: skip
    before, after = picture(triangle), picture(folder)
    assert (before[0, 0] != after[0, 0]).any()
    assert tuple(after[0, 0]) == (255, 0, 0)
    middle = before.shape[0] // 2, before.shape[1] // 2
    assert (before[middle] == after[middle]).all()
    save_jobs(open_jobs(folder), tmp_path / "packed.vc4cap")
    assert (picture(tmp_path / "packed.vc4cap") == after).all()


def test_draws_that_use_more_and_more_of_a_table(tmp_path: Path) -> None:
    """Each draw of a cube uses a face more of the same arrays: one file has all rows."""
    folder = tmp_path / "cube"
    with looked_into(Path(__file__).parents[1] / "data" / "vc4-jobs" / "kmscube_smooth") as found:
        unpack_jobs(found.jobs, folder)
    (table,) = (folder / "jobs" / "3").glob("job-1-vertices-0022c000*")
    rows = [line.split(",") for line in table.read_text().splitlines()[1:]]
    assert [int(row[0]) for row in rows] == list(range(24))
    assert len({len(row) for row in rows}) == 1


def test_an_edited_vertex_and_an_edited_program(triangle: Path, tmp_path: Path) -> None:
    def lower(text: str) -> str:
        rows = text.splitlines()
        cells = rows[1].split(",")
        cells[1] = "0x00000000"
        rows[1] = ",".join(cells)
        return "\n".join(rows) + "\n"

    before = picture(triangle)
    moved = edited(triangle, tmp_path / "vertex", "jobs/1/job-1-vertices-*.csv", lower)
    assert (picture(moved) != before).any()
    coloured = edited(
        triangle, tmp_path / "program", "jobs/1/job-2-program-*.qasm",
        lambda text: re.sub(r"nop; mov r3\.8a, r0|fadd r2, r2, r5; mov r3\.8a, r0",
                            "fadd r2, r2, r5; mov r3.8a, 0", text),
    )  # fmt: skip
    after = picture(coloured)
    assert (after != before).any()


def test_an_edited_uniform_and_texture(tmp_path: Path) -> None:
    folder = tmp_path / "naan"
    unpack_jobs(captured("naan", 11, first=11).capture, folder)
    before = picture(folder)
    textures = list(folder.glob("jobs/11/*-texture-*.png"))
    assert textures
    for texture in textures:
        with Image.open(texture) as found:
            changed = found.copy()
        changed.paste((255, 0, 255, 255)[: len(changed.getbands())], (0, 0, *changed.size))
        changed.save(texture)
    assert (picture(folder) != before).any()


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("job-1-binning.txt", "Viewport offset", "Viewport size", "is called 'Viewport offset'"),
        ("job-1-binning.txt", "x=320px", "z=320px", "no field 'z'"),
        ("job-1-binning.txt", "x=320px", "x=wide", "could not convert"),
        ("job-1-binning.txt", " 103  Viewport offset", "   1  NOP", "room for 5"),
        ("job-1-vertices-*.csv", "0,", "7,", "not row 0"),
        ("job-2-program-*.qasm", "sbwait", "sbwhat", "sbwhat"),
    ],
)
def test_mistakes_name_file_and_line(
    triangle: Path, tmp_path: Path, name: str, old: str, new: str, said: str
) -> None:
    folder = edited(
        triangle, tmp_path / "x", f"jobs/1/{name}", lambda text: text.replace(f"\n{old}", f"\n{new}", 1)
        if f"\n{old}" in text else text.replace(old, new, 1),
    )  # fmt: skip
    with pytest.raises(CaptureError) as caught:
        open_jobs(folder)
    assert caught.value.code == "CAP-006"
    assert caught.value.line > 0
    assert caught.value.file.startswith("jobs/1/job-")
    assert said in str(caught.value)


def test_a_missing_line_is_a_mistake(triangle: Path, tmp_path: Path) -> None:
    folder = edited(
        triangle, tmp_path / "x", "jobs/1/job-1-binning.txt",
        lambda text: "\n".join(text.splitlines()[:-1]) + "\n",
    )  # fmt: skip
    with pytest.raises(CaptureError, match=r"CAP-006.*lines, but there must be"):
        open_jobs(folder)


def test_every_record_is_read_back_from_its_text() -> None:
    for kind in RECORDS.values():
        for word in (0, (1 << 8 * (kind.size - 1)) - 1):
            found = kind(word)
            fields = sum(bits.mask for bits in kind.layout_fields.values())
            if "nan" in found.text():
                continue
            try:
                again = layout_from_text(kind, found.text())
            except ValueError as error:  # pragma: no cover - says which
                raise AssertionError(f"{kind.__name__}: {found.text()}: {error}") from None
            assert int(again) & fields == int(found) & fields, f"{kind.__name__}: {found.text()}"
    assert layout_from_text(ViewportOffset, "x=1.5px y=-2px").text() == "x=1.5px y=-2px"
    assert layout_from_text(ConfigurationBits, "enable_forward depth_test=less").text()


@pytest.mark.parametrize(
    "word", [0, 0x80000000, 0x3F800000, 0x3DCCCCCD, 0x7FC00001, 1, 0xFFFFFFFF, 0x4B000001]
)
def test_words_are_read_back(word: int) -> None:
    assert word_from_text(word_text(word)) == word

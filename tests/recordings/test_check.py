"""Folders of recordings drawn and compared with what they hold; changes shown, and accepted."""

from __future__ import annotations

import json
import re
import shutil
import xml.etree.ElementTree as ET
from base64 import b64decode
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.debug.frame_scene import scene
from typer.testing import CliRunner

from vc4lab.capture.files import ArchiveFiles
from vc4lab.cli.inside import looked_into
from vc4lab.cli.main import app
from vc4lab.jobs.load import open_jobs
from vc4lab.jobs.model import JobsCapture, Patched
from vc4lab.jobs.player import JobsPlayer
from vc4lab.jobs.store import save_jobs
from vc4lab.jobs.unpack import unpack_jobs
from vc4lab.recordings.kinds import Kind, kind_of, recordings_in
from vc4lab.viewer.check_report import check_junit

DATA = Path(__file__).parents[1] / "data"
CAPTURES = DATA / "captures"
CUBE = DATA / "vc4-jobs" / "kmscube_smooth"
"""Both captures: of jobs, and of the command queue."""


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["check", *map(str, arguments), "--processes", "1"])
    assert "Traceback" not in result.output
    return result.exit_code, result.output


def cube() -> JobsCapture:
    with looked_into(CUBE) as found:
        return found.jobs


def changed_cube(path: Path) -> JobsCapture:
    """A capture whose last frame draws other pixels than it holds: a face is gone."""
    with looked_into(CUBE) as found:
        frame = found.frame(3)
        address = frame.draws[5].address
    place = next(n for n, one in enumerate(frame.source.events) if getattr(one, "register", "") == "CT0EA")
    frame.source.events.insert(place, Patched(address, b"\1" * 10))
    save_jobs(found.jobs, path)
    return open_jobs(path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with captures in it and below."""
    place = tmp_path / "all"
    (place / "below").mkdir(parents=True)
    shutil.copy(CAPTURES / "tri.vc4cap", place / "tri.vc4cap")
    shutil.copy(CAPTURES / "small.vc4cap", place / "below" / "small.vc4cap")
    changed_cube(place / "cube.vc4cap")
    return place


def test_what_a_folder_has(folder: Path) -> None:
    names = [one.relative_to(folder).as_posix() for one in recordings_in(folder)]
    assert names == ["cube.vc4cap", "tri.vc4cap", "below/small.vc4cap"]
    assert [kind_of(one) for one in recordings_in(folder)] == [Kind.JOBS, Kind.JOBS, Kind.QUEUE]
    assert list(recordings_in(DATA / "vc4-jobs"))[-1].name == "tri_arm64"
    assert list(recordings_in(folder / "tri.vc4cap")) == [folder / "tri.vc4cap"]
    assert kind_of(CUBE) is Kind.RUN


def test_only_changes_are_shown(folder: Path, tmp_path: Path) -> None:
    assert run(CAPTURES)[0] == 0
    page, cases = tmp_path / "new" / "page.html", tmp_path / "cases.xml"
    code, text = run(folder, "--html", page, "--junit", cases)
    assert code == 1
    first, last = text.splitlines()
    found = re.fullmatch(
        r".*cube\.vc4cap, frame 3: (\d+) of 307200 pixels differ, 1 of 1 surfaces hold other bytes", first
    )
    assert found is not None
    assert last == "3 recordings, 6 frames: 5 the same, 1 changed"
    suite = ET.fromstring(cases.read_text()).find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "0")
    (failure,) = suite.iter("failure")
    assert f"frame 3: {found[1]} of 307200 pixels differ" in (failure.get("message") or "")
    text = page.read_text()
    assert "small.vc4cap" not in text
    assert "default-src 'none'" in text
    assert not re.search(r"https?://|<script", text)
    pictures = [
        np.asarray(Image.open(BytesIO(b64decode(data))).convert("RGB"))
        for data in re.findall(r"data:image/png;base64,([^\"]+)\"", text)
    ]
    held, now, difference = pictures
    assert int((held != now).any(axis=2).sum()) == int(found[1])
    assert np.array_equal((difference == (255, 40, 40)).all(axis=2), (held != now).any(axis=2))


def test_json_says_the_same(folder: Path) -> None:
    code, text = run(folder, "--json")
    table = json.loads(text)
    assert code == 1
    assert [(Path(one["path"]).name, one["same"], len(one["frames"])) for one in table] == [
        ("cube.vc4cap", 2, 1), ("tri.vc4cap", 1, 0), ("small.vc4cap", 2, 0),
    ]  # fmt: skip
    assert table[0]["frames"][0]["status"] == "changed"


def test_other_choices_about_the_hardware(folder: Path) -> None:
    """A switch that changes what is drawn; the recordings hold what it was without."""
    code, text = run(folder / "tri.vc4cap", "--engine", "interpreter")
    assert (code, text) == (0, "1 recording, 1 frame: 1 the same, 0 changed\n")
    assert run(folder, "--unknown", "x=y")[0] == 2


def members(path: Path) -> dict[str, bytes]:
    files = ArchiveFiles(path)
    return {name: files.read(name) for name in files}


def test_accepted_archives_hold_what_is_drawn_now(folder: Path) -> None:
    cube_path, small = folder / "cube.vc4cap", folder / "below" / "small.vc4cap"
    before, small_before = members(cube_path), small.read_bytes()
    code, text = run(folder, "--accept")
    assert code == 0
    assert text.splitlines()[0].endswith("(accepted)")
    after = members(cube_path)
    assert list(before) == list(after)
    assert {name for name in before if before[name] != after[name]} == {
        "jobs/3/events.txt", "jobs/3/picture.png",
    }  # fmt: skip
    assert small.read_bytes() == small_before
    assert run(folder)[0] == 0
    for _, result in JobsPlayer(open_jobs(cube_path)).play():
        assert result.stored
        assert not result.differing


def test_accepted_folders(tmp_path: Path) -> None:
    """What people edited stays edited: only check sums and pictures are written."""
    place = tmp_path / "frames"
    unpack_jobs(cube(), place)
    (file,) = (place / "jobs" / "3").glob("job-1-program-00359000.qasm")
    file.write_text(file.read_text().replace("nop; mov r1.8b, r0\n", "nop; mov r1.8b, r3\n"))
    edited = {one: one.read_bytes() for one in place.rglob("*") if one.is_file()}
    assert run(place)[0] == 1
    assert run(place, "--accept")[0] == 0
    assert run(place)[0] == 0
    written = {one.relative_to(place).as_posix() for one in edited if one.read_bytes() != edited[one]}
    assert written == {"jobs/3/events.txt", "jobs/3/picture.png"}


def test_accepted_pictures_of_a_command_queue(tmp_path: Path) -> None:
    path = tmp_path / "small.vc4cap"
    shutil.copy(CAPTURES / "small.vc4cap", path)
    other = BytesIO()
    names = [name for name in members(path) if name.endswith("picture.png")]
    Image.new("RGB", (8, 8)).save(other, "PNG")
    content = members(path) | {names[-1]: other.getvalue()}
    from vc4lab.capture.files import write_archive

    write_archive(path, content.items())
    code, text = run(path)
    assert (code, "the picture has another size" in text) == (1, True)
    assert run(path, "--accept")[0] == 0
    assert members(path) == members(CAPTURES / "small.vc4cap")


def test_recorded_jobs_and_captures_without_pictures_get_some(tmp_path: Path) -> None:
    shutil.copytree(CUBE, tmp_path / "vc4" / "cube")
    shutil.copytree(CUBE.parent / "blobs", tmp_path / "vc4" / "blobs")
    code, text = run(tmp_path / "vc4")
    assert (code, text) == (
        0, "1 recording, 3 frames: 0 the same, 0 changed, 3 with nothing to compare with\n"
    )  # fmt: skip
    assert run(tmp_path / "vc4", "--accept")[0] == 0
    assert run(tmp_path / "vc4")[1].startswith("1 recording, 3 frames: 3 the same")
    black = tmp_path / "vc4" / "cube" / "job0002" / "picture.png"
    Image.new("RGB", (640, 480)).save(black)
    code, text = run(tmp_path / "vc4")
    assert code == 1
    assert "cube, job0002: 307200 of 307200 pixels differ" in text
    black.write_bytes(b"no picture")
    assert run(tmp_path / "vc4")[0] == 1
    path = tmp_path / "scene.vc4cap"
    capture = scene(multisample=False)
    events = capture.frames[0].events
    capture.frames[0].events = [one for one in events if type(one).__name__ != "Stored"]
    save_jobs(capture, path)
    assert "1 with nothing to compare with" in run(path)[1]
    assert run(path, "--accept")[0] == 0
    assert run(path)[1] == "1 recording, 1 frame: 1 the same, 0 changed\n"


@pytest.mark.filterwarnings("default")
def test_a_scheduler_has_its_workers_do_it(folder: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="Dask is not installed")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
    ) as cluster:
        by_workers = run(folder, "--json", "--scheduler", cluster.scheduler_address)
    here = run(folder, "--json")
    tables = [json.loads(text) for _, text in (by_workers, here)]
    for table in tables:
        for one in table:
            del one["seconds"]
    assert tables[0] == tables[1]
    assert by_workers[0] == here[0] == 1


def test_several_processes(folder: Path) -> None:
    result = CliRunner().invoke(app, ["check", str(folder), "--processes", "2"])
    assert result.exit_code == 1
    assert result.output == run(folder)[1]


def cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def no_archive(path: Path) -> None:
    path.write_bytes(b"nothing")


def later_version(path: Path) -> None:
    from vc4lab.capture.files import write_archive

    content = members(path)
    content["capture.json"] = content["capture.json"].replace(b'"version": 2', b'"version": 99')
    write_archive(path, content.items())


@pytest.mark.parametrize("damage", [cut_off, no_archive, later_version])
def test_a_damaged_recording_is_a_sentence_and_the_others_are_drawn(
    damage: Callable[[Path], None], folder: Path, tmp_path: Path
) -> None:
    damage(folder / "tri.vc4cap")
    code, text = run(folder, "--junit", tmp_path / "x.xml", "--html", tmp_path / "x.html", "--accept")
    assert code == 2
    assert "CAP-00" in text
    assert "3 recordings, 5 frames: 4 the same, 1 changed; 1 recording cannot be drawn" in text
    (error,) = ET.fromstring((tmp_path / "x.xml").read_text()).iter("error")
    assert "CAP-00" in (error.get("message") or "")
    assert "CAP-00" in (tmp_path / "x.html").read_text()


def test_bad_input(tmp_path: Path) -> None:
    assert run(tmp_path)[0] == 2
    assert run(tmp_path / "none")[0] == 2
    (tmp_path / "job0001").mkdir()
    (tmp_path / "job0001" / "submit.json").write_text("{")
    code, text = run(tmp_path)
    assert code == 2
    assert "0 of 1 jobs can be drawn: " in text
    assert run(CAPTURES, "--html", tmp_path / "job0001" / "submit.json" / "x.html")[0] == 5


def test_names_that_xml_cannot_have() -> None:
    from vc4lab.recordings.check import Checked, FrameCheck

    odd = 'a<b>&"\x07\ud800'
    found = [Checked(odd, (FrameCheck(odd, "changed"),)), Checked(odd, error=odd)]
    suite = ET.fromstring(check_junit(found, odd)).find("testsuite")
    assert suite is not None
    assert suite.get("name") == 'a<b>&"??'

"""Temporary folders: those of killed processes are swept away at the next start, no others."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from vc4lab.drm.nodes.tree import Tree
from vc4lab.mesa.server.program import PrivateTmp
from vc4lab.temporary import TemporaryFolder, sweep

KIND = "vc4lab-test-"
HOLDS = f"""
import sys, time
from vc4lab.temporary import TemporaryFolder
folder = TemporaryFolder({KIND!r}, sys.argv[1])
open(folder.path + "/content", "w").close()
print(folder.path, flush=True)
time.sleep(100)
"""


def started(parent: Path) -> tuple[subprocess.Popen[str], Path]:
    """A process that has a folder, and the folder."""
    process = subprocess.Popen([sys.executable, "-c", HOLDS, parent], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_a_killed_process_leaves_nothing_for_long(tmp_path):
    process, path = started(tmp_path)
    assert (path / "content").exists()
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert path.exists()
    other = TemporaryFolder(KIND, str(tmp_path))
    assert os.listdir(tmp_path) == [Path(other.path).name]
    other.remove()
    other.remove()
    assert os.listdir(tmp_path) == []


def test_a_living_process_keeps_its_folder(tmp_path):
    process, path = started(tmp_path)
    try:
        TemporaryFolder(KIND, str(tmp_path)).remove()
        assert (path / "content").exists()
    finally:
        process.kill()
        process.communicate()


def test_only_folders_of_the_kind_and_the_user_go(tmp_path, monkeypatch):
    (tmp_path / "vc4lab-other-1").mkdir(0o700)
    (tmp_path / f"{KIND}before").mkdir(0o700)  # of a version without locks, perhaps in use
    (tmp_path / f"{KIND}of-shared").mkdir()
    (tmp_path / f"{KIND}of-shared").chmod(0o755)
    (tmp_path / f"{KIND}of-file").write_text("")
    (tmp_path / "target").mkdir(0o700)
    (tmp_path / f"{KIND}of-link").symlink_to("target")
    kept = sorted(os.listdir(tmp_path))
    (tmp_path / f"{KIND}of-mine").mkdir(0o700)
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    sweep(KIND, str(tmp_path))
    assert (tmp_path / f"{KIND}of-mine").exists()
    monkeypatch.undo()
    sweep(KIND, str(tmp_path))
    assert sorted(os.listdir(tmp_path)) == kept
    sweep(KIND, str(tmp_path / "nowhere"))


def test_one_that_is_just_being_made_stays(tmp_path):
    """Between its making and its lock."""
    young, old = tmp_path / "vc4lab-new-1", tmp_path / "vc4lab-new-2"
    young.mkdir(0o700)
    old.mkdir(0o700)
    os.utime(old, (time.time() - 7200,) * 2)
    sweep(KIND, str(tmp_path))
    assert os.listdir(tmp_path) == ["vc4lab-new-1"]


@pytest.mark.parametrize("kind", ["gl", "nodes"])
def test_programs_and_nodes_sweep_their_kind(tmp_path, monkeypatch, kind):
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr("os.access", lambda *_: False)  # /dev/shm
    left = tmp_path / f"vc4lab-{kind}-of-1-abandoned"
    left.mkdir(0o700)
    if kind == "gl":
        with PrivateTmp() as made:
            assert made.path.is_relative_to(tmp_path)
    else:
        tree = Tree()
        tree.write()
        assert Path(tree.root).parent == tmp_path
        tree.remove()
    assert os.listdir(tmp_path) == []

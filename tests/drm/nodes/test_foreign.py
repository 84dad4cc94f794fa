"""Which files a program under qemu-user sees."""

from pathlib import Path

import pytest

from vc4lab.drm.nodes.foreign import ForeignTree
from vc4lab.drm.processes.targets import Task


class _Task(Task):
    def __init__(self, executable: str) -> None:
        self.tid = 0
        self._executable = executable

    @property
    def executable(self) -> str:
        return self._executable


EMULATED = _Task("/home/u/.cache/vc4lab/drm/bookworm/qemu-aarch64")


@pytest.fixture
def tree(tmp_path: Path) -> ForeignTree:
    for name in (
        "usr/lib/aarch64-linux-gnu/libc.so.6", "usr/lib/ld-linux-aarch64.so.1",
        "usr/share/only-here/data", "usr/bin/env", "etc/ld.so.preload", "etc/passwd",
    ):  # fmt: skip
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("arm64")
    return ForeignTree(tmp_path)


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("/lib/ld-linux-aarch64.so.1", "usr/lib/ld-linux-aarch64.so.1"),
        ("/lib/aarch64-linux-gnu/libc.so.6", "usr/lib/aarch64-linux-gnu/libc.so.6"),
        ("/usr/lib/x/../aarch64-linux-gnu/./libc.so.6", "usr/lib/aarch64-linux-gnu/libc.so.6"),
        ("//usr/lib/aarch64-linux-gnu/libc.so.6", "usr/lib/aarch64-linux-gnu/libc.so.6"),
        ("/usr/share/only-here/data", "usr/share/only-here/data"),
        ("/etc/ld.so.preload", "etc/ld.so.preload"),
        ("/usr/lib/aarch64-linux-gnu/nothing.so", None),
        ("/usr/lib/aarch64-linux-gnubis", None),
        ("/usr/bin/env", None),
        ("/etc/passwd", None),
        ("/home/u/x", None),
        ("/usr/../../etc/../root/.ssh", None),
    ],
)  # fmt: skip
def test_own_places_come_first_and_holes_are_filled(tree: ForeignTree, path: str, place: str | None) -> None:
    found = tree.find(EMULATED, path)
    assert found == (f"{tree.root}/{place}" if place is not None else None)


def test_the_hosts_own_programs_do_not_see_it(tree: ForeignTree) -> None:
    for path in ("/lib/ld-linux-aarch64.so.1", "/etc/ld.so.preload", "/usr/share/only-here/data"):
        assert tree.find(_Task("/usr/bin/bash"), path) is None
        assert tree.find(_Task(""), path) is None

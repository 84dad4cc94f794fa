"""`vc4lab cache`, and the bound for all that is kept."""

import os
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from vc4lab.cache import contents
from vc4lab.cache.contents import KINDS, clear, keep_within, pieces
from vc4lab.cli.exit_codes import ExitCode
from vc4lab.cli.main import app
from vc4lab.drm.setup.places import Brought
from vc4lab.simd import cache as objects

NAME = "ab" * 32
KB = 1 << 10
FILES = {
    f"ab/{NAME}.o": "code",
    f"ab/.new-{'0' * 32}": "code",
    "drm/bookworm/linux/pi3-0123456789ab.state": "states",
    "drm/bookworm/armhf/linux/pi2-0123456789ab.state": "states",
    "drm/bookworm/linux/root-0123456789ab.cpio": "roots",
    "drm/bookworm/linux/.vc4lab-0123": "roots",
    "drm/bookworm/apt/archives/mesa.deb": "downloads",
    "drm/bookworm/apt/lists/list": "trees",
    "drm/bookworm/full/debian.img": "cards",
    "drm/bookworm/tree/usr/lib/libc.so.6": "trees",
    "drm/bookworm/qemu-aarch64": "trees",
    "drm/bookworm/armhf/tree/usr/lib/x": "trees",
}
OTHERS = ("ab/mine.o", "notes.txt", "xy/" + NAME + ".o")
"""What vc4lab did not write."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with a file of 64 KiB for each path, each used an hour before the next."""
    root = tmp_path / "cache"
    root.mkdir(mode=0o700)
    monkeypatch.setenv("VC4LAB_CACHE", str(root))
    for number, name in enumerate((*FILES, *OTHERS)):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(64 * KB))
        at = time.time() - 3600 * (100 - number)
        os.utime(path, (at, at))
    return root


def there(root: Path) -> set[str]:
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}


def test_each_file_has_its_kind(folder):
    found = {piece.path.relative_to(folder).as_posix(): piece.kind.name for piece in pieces(folder)}
    assert found == FILES
    assert all(piece.size >= 64 * KB for piece in pieces(folder))


def test_what_writes_there_is_known(tmp_path, monkeypatch):
    """The paths are those of the code that writes them."""
    root = tmp_path / "cache"
    monkeypatch.setenv("VC4LAB_CACHE", str(root))
    objects.write(NAME, b"code")
    made = Brought("trixie", root / "drm/trixie/armel", "armel")
    with made.locked():
        made.complete()
    assert {piece.kind.name for piece in pieces(root)} == {"code", "trees"}
    assert len([*pieces(root)]) == len(there(root))


def test_the_oldest_go_above_the_bound(folder):
    again = [name for name, kind in FILES.items() if kind not in ("trees", "cards")]
    fixed = len(FILES) - len(again)
    keep_within(folder, bound=(fixed + 3) * 64 * KB, room=0)
    assert there(folder) == {*FILES, *OTHERS} - {*again[:-3]}
    keep_within(folder, bound=1, room=2 * 64 * KB)  # trees alone are above it
    assert there(folder) == {*FILES, *OTHERS} - {*again[:-2]}
    keep_within(folder, bound=1, room=0)
    assert there(folder) == {*FILES, *OTHERS} - {*again}


def test_what_was_just_used_stays(folder):
    state = folder / "drm/bookworm/linux/pi3-0123456789ab.state"
    os.utime(state)
    keep_within(folder, bound=0, room=0)
    assert state.exists()
    assert not (folder / f"ab/{NAME}.o").exists()


def test_a_folder_of_others_is_left_alone(folder):
    folder.chmod(0o777)
    keep_within(folder, bound=0, room=0)
    assert there(folder) == {*FILES, *OTHERS}


def test_links_are_not_followed(folder, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/a.state").write_text("")
    (folder / "drm/bookworm/linux").rename(tmp_path / "elsewhere")
    (folder / "drm/bookworm/linux").symlink_to(tmp_path / "mine")
    clear(folder, ["states", "roots", "trees"])
    assert (tmp_path / "mine/a.state").exists()


def command(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["cache", *arguments])
    return result.exit_code, result.output


def test_the_command_shows_and_clears(folder):
    code, text = command()
    assert code == ExitCode.OK
    assert f"{folder}: 1 MB, at most 4.3 GB" in text
    for kind in KINDS:
        count = [*FILES.values()].count(kind.name)
        assert f"{count} file{'s' * (count != 1)} " in text
        assert kind.title in text
    code, text = command("--clear", "states", "--clear", "code")
    assert code == ExitCode.OK
    left = {name for name, kind in FILES.items() if kind not in ("states", "code")}
    assert there(folder) == {*left, *OTHERS}
    code, text = command("--clear", "all")
    assert there(folder) == {*OTHERS}
    assert not (folder / "drm/bookworm").exists()
    assert command("--clear", "nothing")[0] == ExitCode.BAD_INPUT


def test_not_during_a_setup(folder):
    made = Brought("bookworm", folder / "drm/bookworm")
    with made.locked():
        code, text = command("--clear", "trees")
        assert (code, "a --setup is running" in text) == (ExitCode.OUTPUT, True)
        assert made.qemu.exists()
        assert command("--clear", "code")[0] == ExitCode.OK


def test_without_a_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("VC4LAB_CACHE", str(tmp_path / "none"))
    assert command("--clear", "all")[0] == ExitCode.OK
    monkeypatch.setenv("VC4LAB_CACHE", "")
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setenv("HOME", "/nowhere")
    assert "there is no cache" in command()[1]


def test_saving_a_state_keeps_the_bound(folder, monkeypatch):
    called = []
    monkeypatch.setattr("vc4lab.linux.boots.keep_within", called.append)
    from vc4lab.linux import boots
    from vc4lab.linux.boots import LinuxBoot

    boot = object.__new__(LinuxBoot)
    boot.folder = folder / "drm/bookworm/linux"
    boot.state = boot.folder / "new.state"
    monkeypatch.setattr(LinuxBoot, "make_root", lambda *_: None)
    machine = type("Booted", (), {"plan": type("Plan", (), {"pieces": ()})})
    monkeypatch.setattr(LinuxBoot, "power_on", lambda *_: machine)
    monkeypatch.setattr(boots, "save_state", lambda *_, **__: None)
    boot.prepare()
    assert called == [folder]
    assert contents.BOUND == 4 << 30

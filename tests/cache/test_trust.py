"""One rule for all of the cache: what others may have written is not used."""

import logging
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from vc4lab.cache import trust
from vc4lab.cache.place import cache_folder
from vc4lab.cache.trust import Untrusted, check_tree, check_way
from vc4lab.cli.exit_codes import ExitCode
from vc4lab.cli.main import app
from vc4lab.drm.setup.places import Brought, SetupFailed, find_brought
from vc4lab.drm.setup.programs import choose
from vc4lab.linux import boots
from vc4lab.linux.boots import LinuxBoot


@pytest.fixture
def brought(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Brought:
    """A complete tree."""
    monkeypatch.setenv("VC4LAB_CACHE", str(tmp_path / "cache"))
    made = Brought("bookworm", tmp_path / "cache/drm/bookworm")
    with made.locked():
        (made.tree / "usr/lib").mkdir(parents=True)
        (made.tree / "usr/lib/libc.so.6").write_bytes(b"")
        (made.folder / "packages").mkdir()
        (made.folder / "programs").mkdir()
        made.qemu.write_text("")
        made.complete()
    check_tree.cache_clear()
    return made


PARTS = ["", "drm", "drm/bookworm", "drm/bookworm/tree", "drm/bookworm/qemu-aarch64"]
INNER = [*PARTS, "drm/bookworm/tree/usr/lib/libc.so.6", "drm/bookworm/programs"]


@pytest.mark.parametrize(
    ("mode", "trusted"), [(0o777, False), (0o757, False), (0o1777, True), (0o775, None), (0o755, True)]
)
def test_folders_above_in_which_others_may_rename(
    brought: Brought, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int, trusted: bool | None
) -> None:
    """Another user could put another folder in the cache's place between the look and the start."""
    above = tmp_path / "above"
    above.mkdir()
    (tmp_path / "cache").rename(above / "cache")
    monkeypatch.setenv("VC4LAB_CACHE", str(above / "cache"))
    above.chmod(mode)
    trust._check_above.cache_clear()
    if trusted is None:  # the user's own group is no other user's
        os.chown(above, -1, os.getegid())
        trusted = os.getegid() == os.geteuid()
    if trusted:
        assert find_brought() is not None
    else:
        with pytest.raises(Untrusted, match=r"above leads to the cache and is writable by others"):
            find_brought()
    trust._check_above.cache_clear()


def test_a_link_above_leads_through_folders_that_count(
    brought: Brought, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = tmp_path / "open" / "inner"
    real.mkdir(parents=True)
    (tmp_path / "cache").rename(real / "cache")
    (tmp_path / "link").symlink_to(real)
    monkeypatch.setenv("VC4LAB_CACHE", str(tmp_path / "link" / "cache"))
    assert find_brought() is not None
    (tmp_path / "open").chmod(0o777)
    trust._check_above.cache_clear()
    with pytest.raises(Untrusted, match="open leads to the cache"):
        find_brought()
    trust._check_above.cache_clear()


@pytest.mark.parametrize("which", PARTS)
@pytest.mark.parametrize("bits", [0o020, 0o002])
def test_a_tree_that_others_may_write_is_not_found(brought, which, bits):
    assert find_brought() == brought
    path = Path(os.environ["VC4LAB_CACHE"]) / which
    path.chmod(path.stat().st_mode | bits)
    with pytest.raises(Untrusted, match=f"CLI-007: {path} is writable by others"):
        find_brought()


@pytest.mark.parametrize("which", INNER)
def test_nothing_of_such_a_tree_is_started(brought, which):
    assert choose("bookworm", None) == brought
    check_tree.cache_clear()
    path = Path(os.environ["VC4LAB_CACHE"]) / which
    path.chmod(path.stat().st_mode | 0o002)
    with pytest.raises(Untrusted, match=f"{path} is writable by others"):
        choose("bookworm", None)


def test_a_tree_of_another_user_is_neither_used_nor_changed(brought, monkeypatch):
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    with pytest.raises(Untrusted, match=f"belongs to user {user}, not to you"):
        find_brought()
    with pytest.raises(SetupFailed, match="CLI-007"), brought.locked():
        pytest.fail("it was locked")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("which", INNER)
def test_one_file_of_another_user_is_enough(brought, which):
    os.chown(Path(os.environ["VC4LAB_CACHE"]) / which, 12345, -1)
    with pytest.raises(Untrusted, match="belongs to user 12345"):
        choose("bookworm", None)


def test_links_on_the_way_are_not_followed(brought, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    folder = tmp_path / "cache/drm"
    folder.rename(tmp_path / "elsewhere/drm")
    folder.symlink_to(tmp_path / "elsewhere/drm")
    with pytest.raises(Untrusted, match="is a link"):
        find_brought()


def test_the_hosts_qemu_may_be_roots(brought):
    brought.qemu.unlink()
    brought.qemu.symlink_to("/bin/true")
    assert find_brought() == brought
    brought.qemu.unlink()
    other = brought.folder / "packages/other"
    other.write_text("")
    other.chmod(0o666)
    brought.qemu.symlink_to(other)
    with pytest.raises(Untrusted, match="leads to a file that is writable by others"):
        find_brought()


def test_what_is_made_is_not_writable_by_others(tmp_path, monkeypatch):
    """Whatever the user's umask is."""
    monkeypatch.setenv("VC4LAB_CACHE", str(tmp_path / "cache"))
    made = Brought("bookworm", tmp_path / "cache/drm/bookworm")
    before = os.umask(0)
    try:
        with made.locked():
            made.complete()
        assert os.umask(0) == 0
    finally:
        os.umask(before)
    check_tree.cache_clear()
    made.check_all()


@pytest.mark.parametrize("kind", ["root", "state"])
def test_a_root_or_state_that_others_may_write_is_made_again(
    brought: Brought, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    release = "6.1.0-9-arm64"
    for name in (f"usr/lib/modules/{release}", f"usr/lib/linux-image-{release}", "boot"):
        (brought.tree / name).mkdir(parents=True)
    (brought.tree / f"boot/vmlinuz-{release}").write_bytes(b"kernel")
    monkeypatch.setattr(boots, "make_root", lambda *a: a[3].write(b"TRAILER!!!"))
    machine = type("Booted", (), {"plan": type("Plan", (), {"pieces": ()})})
    monkeypatch.setattr(LinuxBoot, "power_on", lambda *_: machine)
    made = []

    def save(_machine: object, path: Path, *, packed: bool, private: bool) -> None:
        import zipfile

        made.append(path)
        with boots.written_whole(path, private=private) as file, zipfile.ZipFile(file, "w"):
            pass

    monkeypatch.setattr(boots, "save_state", save)
    before = os.umask(0)
    try:
        boot = LinuxBoot(brought)
        boot.prepare()
        boot.prepare()
    finally:
        os.umask(before)
    assert len(made) == 1
    path = boot.root if kind == "root" else boot.state
    assert path.stat().st_mode & 0o077 == 0
    assert boot.folder.stat().st_mode & 0o077 == 0
    path.chmod(0o666)
    with caplog.at_level(logging.WARNING):
        boot.prepare()
    assert f"CLI-007: {path} is writable by others" in caplog.text
    assert path.stat().st_mode & 0o077 == 0
    assert len(made) == (2 if kind == "state" else 1)
    boot.folder.chmod(0o777)
    with pytest.raises(Untrusted):
        boot.prepare()


COMMANDS: list[tuple[Callable[[], list[str]], str]] = [
    (lambda: ["drm", "--suite", "bookworm", "--", "true"], "vc4lab drm: CLI-007"),
    (lambda: ["drm", "--check", "--suite", "bookworm"], "arm64        CLI-007"),
    (lambda: ["linux", "--", "true"], "vc4lab linux: CLI-007"),
    (lambda: ["linux", "--check"], "CLI-007"),
    (lambda: ["linux", "--root", "full"], "vc4lab linux: CLI-007"),
]


@pytest.mark.parametrize(("arguments", "text"), COMMANDS)
def test_commands_say_it(brought, arguments, text):
    brought.qemu.chmod(0o777)
    result = CliRunner().invoke(app, arguments())
    assert text in result.output
    assert result.exit_code == ExitCode.BAD_INPUT


def test_the_way_ends_where_nothing_is(tmp_path, monkeypatch):
    monkeypatch.setenv("VC4LAB_CACHE", str(tmp_path))
    check_way(tmp_path / "drm/bookworm/tree")
    tmp_path.chmod(0o770)
    with pytest.raises(Untrusted):
        check_way(tmp_path / "drm/bookworm/tree")
    assert trust.distrust(tmp_path.lstat()) is not None


def test_a_relative_folder_is_one_for_all(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VC4LAB_CACHE", "here")
    assert cache_folder() == tmp_path / "here"

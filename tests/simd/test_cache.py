"""The cache of compiled code: found by key, shared by processes, nothing that others may write."""

import errno
import logging
import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from vc4lab import optimisations
from vc4lab.simd import Function, build, cache, i32, native, targets
from vc4lab.simd.target import host_target

NAME = "ab" * 32


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "objects"
    monkeypatch.setenv("VC4LAB_CACHE", str(place))
    return place


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_told", set())
    monkeypatch.setattr(cache, "_private", None)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_what_is_written_is_private(folder):
    before = os.umask(0)
    try:
        cache.write(NAME, b"code")
    finally:
        os.umask(before)
    assert mode(folder) == mode(folder / "ab") == 0o700
    (path,) = folder.glob("*/*")
    assert path.name == NAME + ".o"
    assert mode(path) == 0o600
    assert cache.read(NAME) == b"code"


@pytest.mark.parametrize("which", ["", "ab", f"ab/{NAME}.o"])
@pytest.mark.parametrize("bits", [0o020, 0o002])
def test_what_others_may_write_is_not_read(folder, which, bits, caplog):
    cache.write(NAME, b"code")
    path = folder / which
    path.chmod(mode(path) | bits)
    assert cache.read(NAME) is None
    assert cache.read(NAME) is None
    (record,) = caplog.records  # once
    assert record.levelno == logging.WARNING
    assert f"JIT-001: {path} is writable by others" in record.getMessage()


@pytest.mark.parametrize("which", ["", "ab", f"ab/{NAME}.o"])
def test_links_are_not_followed(folder, which, tmp_path, caplog):
    cache.write(NAME, b"code")
    path = folder / which
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert cache.read(NAME) is None
    assert "is a link" in caplog.text


def test_what_belongs_to_another_user_is_neither_read_nor_written(folder, monkeypatch, caplog):
    cache.write(NAME, b"code")
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    assert cache.read(NAME) is None
    cache.write("cd" * 32, b"code")
    assert "belongs to user" in caplog.text
    assert not (folder / "cd").exists()


def test_a_pipe_is_not_waited_for(folder, caplog):
    cache.write(NAME, b"code")
    path = folder / "ab" / f"{NAME}.o"
    path.unlink()
    os.mkfifo(path, 0o600)
    assert cache.read(NAME) is None
    assert "not a regular file" in caplog.text


def test_planted_code_is_not_executed(folder):
    """An object that is whole in itself, in a folder that everyone may write to."""
    function = Function((i32,), i32, lambda x: x * 3)
    build("planted", {"f": function}, key="1")
    paths = {*folder.glob("*/*.o")}  # by key, and by text
    wrong = Function((i32,), i32, lambda x: x * 5)
    build("planted", {"f": wrong}, key="2")
    others = {*folder.glob("*/*.o")} - paths
    assert len(paths) == len(others) == 2
    image = cache.read(others.pop().stem)
    assert image is not None
    for path in paths:
        cache.write(path.stem, image)
    assert build("planted", {"f": function}, key="1")["f"](1) == 5  # that much trust there is
    folder.chmod(0o777)
    assert build("planted", {"f": function}, key="1")["f"](1) == 3


def test_an_object_under_another_name_is_not_read(folder):
    cache.write(NAME, b"code")
    other = "ab" + "cd" * 31
    (folder / "ab" / f"{NAME}.o").rename(folder / "ab" / f"{other}.o")
    assert cache.read(other) is None


def test_a_refused_file_is_replaced(folder):
    cache.write(NAME, b"code")
    path = folder / "ab" / f"{NAME}.o"
    path.chmod(0o666)
    assert cache.read(NAME) is None
    cache.write(NAME, b"other")
    assert mode(path) == 0o600
    assert cache.read(NAME) == b"other"


def test_temporary_names_differ_and_leftovers_go(folder, monkeypatch):
    names = []
    replace = os.replace
    monkeypatch.setattr(os, "replace", lambda a, b, **k: (names.append(a), replace(a, b, **k)))
    cache.write(NAME, b"code")
    cache.write(NAME, b"code")
    assert len({*names}) == 2
    assert all(len(name) >= len(".new-") + 32 for name in names)
    old, young = folder / "ab" / ".new-1", folder / "ab" / ".new-2"
    old.write_bytes(b"")
    young.write_bytes(b"")
    os.utime(old, (time.time() - 7200,) * 2)
    cache.prune(1 << 20)
    assert sorted(p.name for p in folder.glob("*/*")) == sorted([".new-2", NAME + ".o"])
    cache.prune(0)
    assert cache.read(NAME) is None


def test_a_process_looks_once_a_minute_at_what_the_cache_has(folder, monkeypatch):
    """A full cache has tens of thousands of files: looking at them costs more than to compile one."""
    looks, now = [], [1000.0]
    monkeypatch.setattr(cache, "prune", looks.append)
    monkeypatch.setattr(cache, "_next_look", [0.0])
    monkeypatch.setattr(cache.time, "monotonic", lambda: now[0])
    for moment, count in ((1000.0, 1), (1059.0, 1), (1061.0, 2)):
        now[0] = moment
        for number in range(64):
            cache.write(f"{number:04x}" + 60 * "0", b"code")
        assert looks == [cache._LIMIT] * count


KILLED = """
import os, signal
from vc4lab.simd import cache
os.replace = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
cache.write("ab" * 32, b"code")
"""


def test_what_a_killed_process_has_begun_to_write_is_not_read(folder):
    assert subprocess.run([sys.executable, "-c", KILLED]).returncode == -9
    (unfinished,) = folder.glob("*/.new-*")
    assert cache.read(NAME) is None
    cache.write(NAME, b"other")
    assert cache.read(NAME) == b"other"
    os.utime(unfinished, (time.time() - 7200,) * 2)
    cache.prune(1 << 20)
    assert [path.name for path in folder.glob("*/*")] == [NAME + ".o"]


@pytest.mark.parametrize("problem", [errno.ENOSPC, errno.EROFS])
def test_a_disk_that_takes_nothing_is_reported_once(folder, problem, monkeypatch, caplog):
    def fails(*_: object) -> None:
        raise OSError(problem, os.strerror(problem))

    monkeypatch.setattr(cache, "_write", fails)
    for _ in range(2):
        cache.write(NAME, b"code")
    (record,) = caplog.records
    assert f"JIT-003: compiled code cannot be kept in {folder} (" in record.getMessage()
    assert os.strerror(problem) in record.getMessage()


def test_a_folder_whose_name_is_too_long_is_reported(monkeypatch, caplog):
    monkeypatch.setenv("VC4LAB_CACHE", "/tmp/" + "a" * 300)
    cache.write(NAME, b"code")
    assert cache.read(NAME) is None
    assert "JIT-003" in caplog.text


def test_pruning_follows_no_links(folder, tmp_path):
    cache.write(NAME, b"code")
    other = tmp_path / "other"
    other.mkdir()
    (other / "mine.o").write_bytes(b"x")
    (folder / "cd").symlink_to(other)
    cache.prune(0)
    assert (other / "mine.o").exists()


HOMELESS = """
import os
from vc4lab.simd import cache
cache.write("ab" * 32, b"code")
assert cache.read("ab" * 32) == b"code"
print(cache.directory())
"""


@pytest.mark.parametrize("home", [None, "", "none", "relative", "file"])
def test_without_a_home(home, tmp_path):
    """Compiled code goes to a private folder, which is gone afterwards, and that is said once."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("HOME", "XDG_CACHE_HOME", "VC4LAB_CACHE")
    }
    (tmp_path / "file").write_bytes(b"")
    if home is not None:
        environment["HOME"] = str(tmp_path / home) if home in ("file", "none") else home
    environment["TMPDIR"] = str(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", HOMELESS], env=environment, capture_output=True, text=True,
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).parent == tmp_path
    assert done.stderr.count("JIT-002") == 1
    assert ("($HOME is empty)" if not home else "which is not a folder)") in done.stderr
    assert os.listdir(tmp_path) == ["file"]


def test_a_home_that_cannot_be_written(tmp_path, monkeypatch, caplog):
    monkeypatch.delenv("VC4LAB_CACHE")
    (tmp_path / ".cache").write_bytes(b"a file")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    cache.write(NAME, b"code")
    assert cache.read(NAME) == b"code"
    assert "JIT-002" in caplog.text
    assert mode(cache.directory()) == 0o700


def test_a_key_skips_tracing(tmp_path, monkeypatch):
    monkeypatch.setenv("VC4LAB_CACHE", str(tmp_path))
    traced = []

    def body(x):
        traced.append(1)
        return x + 1

    function = Function((i32,), i32, body)
    for _ in range(3):
        module = build("k", {"f": function}, key="content")
        assert module["f"](4) == 5
    assert len(traced) == 1
    assert build("k", {"f": function}, key="other")["f"](4) == 5
    assert build("k", {"f": function}, key="content", float_mode="default")["f"](4) == 5
    for t in targets():
        build("k", {"f": function}, key="content", target=t)
    others = {*targets()} - {host_target()}
    assert len(traced) == 3 + len(others)
    monkeypatch.setattr(cache, "source_digest", lambda: "changed")
    build("k", {"f": function}, key="content")
    assert len(traced) == 4 + len(others)


def test_changed_sources_compile_only_what_they_changed(tmp_path, monkeypatch):
    """A key holds for one state of the sources; the same LLVM text is never compiled twice."""
    monkeypatch.setenv("VC4LAB_CACHE", str(tmp_path))
    compiled = []
    compile_ir = native.compile_ir

    def counted(*args):
        compiled.append(1)
        return compile_ir(*args)

    monkeypatch.setattr(native, "compile_ir", counted)
    for state, factor, count in (("a", 3, 1), ("b", 3, 1), ("c", 5, 2), ("b", 3, 2), ("d", 3, 2)):
        monkeypatch.setattr(cache, "source_digest", lambda state=state: state)
        function = Function((i32,), i32, lambda x, factor=factor: x * factor)
        assert build("k", {"f": function}, key="content")["f"](7) == 7 * factor
        assert len(compiled) == count
    monkeypatch.setattr(optimisations, "WITHOUT", "early-depth")
    slots = {path.name for path in tmp_path.glob("*/*.o")}
    build("k", {"f": function}, key="content")
    assert len(compiled) == count
    assert len({path.name for path in tmp_path.glob("*/*.o")} - slots) == 1, "a key of its own"
    for how in ({"combine": False}, {"quick": True}, {"float_mode": "default"}):
        count += 1
        build("k", {"f": function}, key=f"content {how}", **how)
        assert len(compiled) == count


def test_damaged_and_unwritable_caches_are_ignored(tmp_path, monkeypatch):
    monkeypatch.setenv("VC4LAB_CACHE", str(tmp_path))
    function = Function((i32,), i32, lambda x: x * 3)
    build("k", {"f": function}, key="d")
    wholes = {path: path.read_bytes() for path in tmp_path.glob("*/*.o")}  # by key, and by text
    assert len(wholes) == 2
    for damage in (
        lambda _: b"",
        lambda whole: whole[:50],
        lambda whole: whole[:-1],
        lambda whole: whole[:200] + b"!" + whole[201:],
        lambda whole: b"x" + whole[1:],
    ):
        for path, whole in wholes.items():  # one of the two
            path.write_bytes(damage(whole))
            assert build("k", {"f": function}, key="d")["f"](5) == 15
            path.write_bytes(whole)
        for path, whole in wholes.items():
            path.write_bytes(damage(whole))
        assert build("k", {"f": function}, key="d")["f"](5) == 15
        assert {path: path.read_bytes() for path in wholes} == wholes
    path = next(iter(wholes))
    monkeypatch.setenv("VC4LAB_CACHE", str(path))  # a file, not a directory
    assert build("k", {"f": function}, key="d")["f"](5) == 15
    monkeypatch.setenv("VC4LAB_CACHE", str(tmp_path))
    cache.prune(0)
    assert not list(tmp_path.glob("*/*.o"))


def test_processes_sharing_a_cache(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from vc4lab.simd import *\n"
        "@kernel(args=(i32,), returns=i32)\n"
        "def f(x):\n"
        "    return x * x\n"
        "for k in range(10):\n"
        "    assert build('p', {'f': f}, key=str(k))['f'](7) == 49\n"
    )
    environment = {**os.environ, "VC4LAB_CACHE": str(tmp_path / "objects")}
    processes = [subprocess.Popen([sys.executable, str(script)], env=environment) for _ in range(2)]
    assert [p.wait(300) for p in processes] == [0, 0]
    files = [p for p in (tmp_path / "objects").rglob("*") if p.is_file()]
    assert len(files) == 10 + 1  # the text of all of them is the same
    assert all(p.suffix == ".o" for p in files)


def test_cache_directory(monkeypatch):
    monkeypatch.delenv("VC4LAB_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cache.directory() == Path("/somewhere/vc4lab")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache.directory().parts[-2:] == (".cache", "vc4lab")

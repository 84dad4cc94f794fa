"""Files into a booted Linux and out of it."""

import io
import os
import stat
import tarfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from vc4lab.cli.exit_codes import ExitCode
from vc4lab.cli.linux import _puts
from vc4lab.cli.main import app
from vc4lab.files import Unusable
from vc4lab.linux.running import Finished, Linux, LinuxStopped
from vc4lab.linux.transfer import get_command, guest_path, pack, put_command, unpack
from vc4lab.soc.devices.serial.serial import SerialPort
from vc4lab.soc.media.sd_medium import SECTOR, UNIT, CardFile, OverlayFull


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (None, "/root/a"), ("b", "/root/b"), ("x/", "/root/x/a"), ("/usr/b", "/usr/b"),
        ("/", "/a"), ("/opt/", "/opt/a"), ("d e/f", "/root/d e/f"),
    ],
)  # fmt: skip
def test_where_a_file_goes(path, expected):
    assert guest_path(path, "a") == PurePosixPath(expected)


@pytest.mark.parametrize("path", ["..", "../x", "/a/../b", "a\0b", "a\nb"])
def test_paths_that_name_no_file(path):
    with pytest.raises(ValueError, match="path in the guest"):
        guest_path(path, "a")


def test_words_of_the_shell_are_quoted():
    assert "'/tmp/a b;c'" in put_command(PurePosixPath("/tmp/a b;c"))
    assert "-- 'b $(x)'" in get_command(PurePosixPath("/a/b $(x)"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A program, a folder in it, links, a pipe."""
    top = tmp_path / "top"
    (top / "inner").mkdir(parents=True)
    (top / "program").write_bytes(b"\x7fELF" * 100_000)
    (top / "program").chmod(0o755)
    (top / "inner/secret").write_bytes(b"s")
    (top / "inner/secret").chmod(0o600)
    (top / "inner").chmod(0o750)
    (top / "link").symlink_to("inner/secret")
    os.mkfifo(top / "pipe")
    return top


def modes(top: Path) -> dict[str, int]:
    paths = [path for path in sorted(top.rglob("*")) if not path.is_symlink()]
    return {str(p.relative_to(top)): stat.S_IMODE(p.lstat().st_mode) for p in paths}


def test_there_and_back(folder, tmp_path):
    file = io.BytesIO()
    pack(folder, "other", file)
    file.write(bytes(SECTOR * 100))  # what the card has after the archive
    file.seek(0)
    unpack(file, "other", tmp_path / "back")
    expected = modes(folder)
    del expected["pipe"]
    assert modes(tmp_path / "back") == expected
    assert os.readlink(tmp_path / "back/link") == "inner/secret"
    assert (tmp_path / "back/program").read_bytes() == (folder / "program").read_bytes()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    file.seek(0)
    with tarfile.open(fileobj=file) as archive:
        assert {(member.uid, member.gid) for member in archive} == {(0, 0)}


def test_only_files_and_folders_are_packed(folder):
    with pytest.raises(Unusable, match="neither a file nor a folder"):
        pack(folder / "pipe", "pipe", io.BytesIO())
    with pytest.raises(FileNotFoundError):
        pack(folder / "nothing", "x", io.BytesIO())


def archive_of(*members: tuple[str, bytes, str]) -> io.BytesIO:
    """A hostile guest's: name, type, what a link leads to."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name, kind, leads_to in members:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, leads_to
            archive.addfile(info)
    file.seek(0)
    return file


FILE, LINK, HARD, DEVICE = tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE


@pytest.mark.parametrize(
    "members",
    [
        [("../x", FILE, "")], [("/x", FILE, "")], [("a/../../x", FILE, "")],
        [("a", HARD, "/etc/passwd")], [("a", HARD, "../x")], [("b", FILE, "")],
        [("a", DEVICE, "")], [],
    ],
)  # fmt: skip
def test_what_a_guest_must_not_write(tmp_path, members):
    inside = tmp_path / "inside"
    inside.mkdir()
    with pytest.raises(ValueError, match="guest"):
        unpack(archive_of(*members), "a", inside / "a")
    assert [*tmp_path.rglob("*")] == [inside]


def test_nothing_is_written_through_a_link(tmp_path):
    inside = tmp_path / "inside"
    inside.mkdir()
    unpack(archive_of(("a", tarfile.DIRTYPE, ""), ("a/l", LINK, ".."), ("a/l/x", FILE, "")), "a",
           inside / "a")  # fmt: skip
    assert (inside / "a/l").is_dir()
    assert not (inside / "a/l").is_symlink()
    for data in (b"noise" * 300, b"", bytes(10_240)):
        with pytest.raises(ValueError, match="guest"):
            unpack(io.BytesIO(data), "a", inside / "b")
    with pytest.raises(Unusable, match="is a folder"):
        unpack(archive_of(("a", FILE, "")), "a", inside / "a")


def test_a_file_as_a_card(tmp_path):
    with open(tmp_path / "file", "w+b") as file:
        file.write(b"x" * 700)
        file.flush()
        card = CardFile(file.fileno(), 2, "a file")
        assert card.sectors == UNIT
        assert card.read(1) == b"x" * 188 + bytes(SECTOR - 188)
        assert card.read_run(0, 2)[:700] == b"x" * 700
        assert card.read(9) == bytes(SECTOR)
        card.write(9, b"y" * SECTOR)
        assert card.read(9) == b"y" * SECTOR
        card.erase(9, 10)
        assert card.read(9) == bytes(SECTOR)
        card.erase(10, UNIT)
        assert not card.changed
    with open("/dev/full", "wb") as full, pytest.raises(OverlayFull):
        CardFile(full.fileno(), 1, "full").write(0, bytes(SECTOR))


class Pretending(Linux):
    """Answers without a guest."""

    def __init__(self, answers: list[Finished]) -> None:
        self.cards: list[object] = []
        self._answers = answers
        slot = SimpleNamespace(exchange=self.cards.append)
        super().__init__(SimpleNamespace(card_slot=slot), SerialPort())  # type: ignore[arg-type]

    def run(self, *_: object, **__: object) -> Finished:
        return self._answers.pop(0)


def test_the_guests_reason_is_said(folder):
    log = "[    2.508052] sdhost-bcm2835 3f202000.mmc: loaded\n"
    linux = Pretending([Finished(1, ""), Finished(1, log + "tar: write: No space left\n")])
    with pytest.raises(LinuxStopped, match=r"cannot copy: tar: write: No space left$"):
        linux.put(folder)
    assert isinstance(linux.cards[0], CardFile)
    assert linux.cards[1] is None  # the slot is as it was
    linux = Pretending([Finished(0, ""), Finished(0, "")])
    assert linux.put(folder, "/opt") == "/opt/top"  # it is a folder there
    linux = Pretending([Finished(8, "there is no /x\n")])
    with pytest.raises(LinuxStopped, match="there is no /x"):
        linux.get("/x", folder)


def test_what_the_option_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b:c"):
        (tmp_path / name).write_text("")
    assert _puts(["a", "a:", "a:/x:y", "b:c", "b:c:/d/"]) == [
        (Path("a"), None), (Path("a"), None), (Path("a"), "/x:y"), (Path("b:c"), None),
        (Path("b:c"), "/d/"),
    ]  # fmt: skip
    for text in ("none", "none:/x", "a:..", ":", ""):
        result = CliRunner().invoke(app, ["linux", "--put", text, "--", "true"])
        assert result.exit_code == ExitCode.BAD_INPUT
        assert "--put" in result.output


def test_in_a_guest(linux: Callable[..., Linux], folder: Path, tmp_path: Path) -> None:
    """The real drivers write and read the card."""
    guest = linux()
    (folder / "large").write_bytes(os.urandom(3 << 20))
    assert guest.put(folder, "/opt/new/") == "/opt/new/top"
    listed = guest.run("cd /opt/new/top && stat -c '%a %n' program inner inner/secret && cat link")
    assert (listed.code, listed.output) == (0, "755 program\n750 inner\n600 inner/secret\ns")
    back = guest.get("/opt/new/top/large", tmp_path)
    assert back.read_bytes() == (folder / "large").read_bytes()
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\necho it runs\n")
    script.chmod(0o755)
    guest.put(script)
    assert guest.run("./script").output == "it runs\n"
    with pytest.raises(LinuxStopped, match="there is no /root/none"):
        guest.get("none", tmp_path)
    assert not guest.machine.reporter.items

"""Archives and folders of captures: what a stranger could send."""

import json
import struct
import warnings
import zipfile
from pathlib import Path

import pytest

from vc4lab.capture.errors import CaptureError
from vc4lab.capture.files import MEMBERS, ArchiveFiles, FolderFiles, open_files, write_archive, write_folder
from vc4lab.capture.table import FORMAT, NAME, VERSION, read_table, table_bytes


def archive(path: Path, *members: tuple[str | zipfile.ZipInfo, bytes], **options: int) -> Path:
    """A zip file with these members."""
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w", **options) as made:
        warnings.simplefilter("ignore")
        for name, data in members:
            made.writestr(name, data)
    return path


def code_of(path: Path) -> str:
    """The code with which a capture is refused."""

    def read_all() -> None:
        files = open_files(path)
        for name in files:
            files.read(name)

    with pytest.raises(CaptureError) as caught:
        read_all()
    assert str(path) in str(caught.value)
    return caught.value.code


def test_what_is_written_is_read(tmp_path):
    content = {"a.txt": b"one", "b/c-1.bin": bytes(10000), NAME: table_bytes({"x": 1})}
    write_archive(tmp_path / "x.vc4cap", content.items())
    write_folder(tmp_path / "folder", content.items())
    for files in (ArchiveFiles(tmp_path / "x.vc4cap"), FolderFiles(tmp_path / "folder")):
        assert {name: files.read(name) for name in files} == content
        assert "a.txt" in files
        assert "none" not in files
        with pytest.raises(CaptureError, match=r"CAP-003.*no such file"):
            files.read("none")
        with pytest.raises(CaptureError, match=r"CAP-003.*c-1\.bin"):
            files.read("b/c-1.bin", 9999)
        assert read_table(files)["x"].whole(0, 1) == 1


@pytest.mark.parametrize(
    "name",
    ["../x", "/etc/x", "a/../../x", "C:\\x", "a\\..\\x", "a/./x", "a//x", ".hidden", "x" * 101,
     "a/.ssh/x", "", "ä", "a\nb", "x:y"],
)  # fmt: skip
def test_names_that_lead_elsewhere(tmp_path, name):
    info = zipfile.ZipInfo("x")
    info.filename = name
    assert code_of(archive(tmp_path / "x.vc4cap", (info, b"1"))) == "CAP-002"
    with pytest.raises(CaptureError, match="CAP-002"):
        write_folder(tmp_path / "out", [(name, b"")])
    assert not any(one.is_file() for one in tmp_path.rglob("*") if one.suffix != ".vc4cap")


def test_links_and_twice(tmp_path):
    link = zipfile.ZipInfo("x")
    link.external_attr = 0o120777 << 16
    assert code_of(archive(tmp_path / "1.vc4cap", (link, b"/etc/passwd"))) == "CAP-002"
    assert code_of(archive(tmp_path / "2.vc4cap", ("x", b"1"), ("x", b"2"))) == "CAP-002"


def test_bombs(tmp_path):
    """Sizes are those of the directory; what is more is not unpacked."""
    path = archive(tmp_path / "x.vc4cap", ("x", bytes(1 << 20)), compression=zipfile.ZIP_DEFLATED)
    data = bytearray(path.read_bytes())
    place = data.rfind(b"PK\1\2") + 24
    for size, code in ((1 << 30, "CAP-002"), (100, "CAP-001"), (1 << 21, "CAP-001")):
        data[place : place + 4] = struct.pack("<I", size)
        path.write_bytes(data)
        assert code_of(path) == code
    with pytest.raises(CaptureError, match="CAP-002"):
        write_archive(tmp_path / "y", ((f"x{number}", b"") for number in range(MEMBERS + 1)))
    assert not (tmp_path / "y").exists()


def test_damage(tmp_path):
    path = archive(tmp_path / "x.vc4cap", ("x", bytes(range(256)) * 40), ("y", b"1"))
    whole = path.read_bytes()
    for data in (b"", b"PK", whole[:-30], whole[5:], b"x" * 100, whole.replace(b"PK\1\2", b"PK\1\3")):
        path.write_bytes(data)
        assert code_of(path) in ("CAP-001", "CAP-002")
    changed = bytearray(whole)
    changed[200] ^= 1
    path.write_bytes(changed)
    assert code_of(path) == "CAP-001"


def test_links_out_of_a_folder(tmp_path):
    (tmp_path / "secret").write_text("x")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a").symlink_to(tmp_path / "secret")
    (folder / "b").symlink_to("/dev/zero")
    (folder / "c").symlink_to("c")
    files = FolderFiles(folder)
    for name in "abc":
        with pytest.raises(CaptureError, match=r"CAP-00[23]"):
            files.read(name)


def test_a_folder_is_not_overwritten(tmp_path):
    (tmp_path / "x").write_text("mine")
    with pytest.raises(CaptureError, match="CAP-005"):
        write_folder(tmp_path, [("x", b"new")])
    with pytest.raises(CaptureError, match="CAP-005"):
        write_folder(tmp_path / "x", [("x", b"new")])
    assert (tmp_path / "x").read_text() == "mine"


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", "[" * 100_000, '{"format": "x"}', json.dumps({"format": FORMAT}),
     json.dumps({"format": FORMAT, "version": VERSION + 1}), '{"a": NaN}', "1" * 5000,
     json.dumps({"format": FORMAT, "version": True}), "\xff"],
)  # fmt: skip
def test_tables_that_are_none(tmp_path, text):
    write_folder(tmp_path / "folder", [(NAME, text.encode("latin-1"))])
    with pytest.raises(CaptureError, match=r"CAP-004.*capture\.json"):
        read_table(FolderFiles(tmp_path / "folder"))


def test_a_value_says_where_it_is(tmp_path):
    write_folder(tmp_path / "f", [(NAME, table_bytes({"a": [{"b": "x"}]}))])
    table = read_table(FolderFiles(tmp_path / "f"))
    with pytest.raises(CaptureError, match=r"a\[0\]\.b: must be a whole number"):
        table["a"][0]["b"].whole(0, 1)
    with pytest.raises(CaptureError, match=r"a\[0\]: there is no 'c'"):
        _ = table["a"][0]["c"]

"""A folder as a FAT32 card: what our own reader and the specification find in it."""

import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vc4lab.diagnostics import Reporter
from vc4lab.soc.media.card_slot import CardSlot
from vc4lab.soc.media.fat import FatCard
from vc4lab.soc.media.fat_names import is_possible, name_records
from vc4lab.soc.media.fat_volume import CLUSTER, LARGEST, PER_CLUSTER, SMALLEST, START, FolderVolume
from vc4lab.soc.media.sd_medium import SECTOR


def as_image(volume: FolderVolume, path: Path) -> FatCard:
    """The volume as a file (with holes), for the reader that serves the firmware."""
    last = max(e.cluster + e.clusters for e in volume._extents)
    end = START + volume._data + last * PER_CLUSTER
    with path.open("wb") as file:
        file.truncate(volume.sectors * SECTOR)
        for sector in (*range(START + 40), *range(START + volume._data, end)):
            data = volume.read(sector)
            if any(data):
                file.seek(sector * SECTOR)
                file.write(data)
    return FatCard(path)


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "card"
    (root / "sub" / "Deeper Folder").mkdir(parents=True)
    (root / "empty folder").mkdir()
    files = {
        "kernel7.img": b"kernel" * 30_000,
        "README.TXT": b"upper",
        "readme~1.txt": b"tilde",
        "readme long.txt": b"long",
        "Ünïcode näme.txt": b"unicode",
        "empty": b"",
        "a.b.c.d": b"dots",
        "ßß.txt": b"sharp",
        "thirteen char": b"13",
        "sub/Deeper Folder/exactly_one_cluster.bin": bytes(range(256)) * (CLUSTER // 256),
        "sub/x" + "y" * 100: b"very long name",
    }
    for name, content in files.items():
        (root / name).write_bytes(content)
    return root, files


def test_our_reader_finds_everything(folder, tmp_path):
    root, files = folder
    told: list[str] = []
    card = as_image(FolderVolume(root, told.append), tmp_path / "image")
    for name, content in files.items():
        found = card.find(name)
        assert found is not None, name
        assert found.casefold() == name.rpartition("/")[2].casefold()
        assert card.size(name) == len(content)
        assert card.read(name, 1 << 20) == content
    assert card.find("nothing") is None
    assert not told


def test_numbers_of_the_file_system(folder):
    volume = FolderVolume(folder[0], pytest.fail)
    table = volume.read(0)
    assert table[510:] == b"\x55\xaa"
    assert table[450] == 0x0C
    assert struct.unpack_from("<II", table, 454) == (START, volume.sectors - START)
    assert volume.sectors == SMALLEST
    boot = volume.read(START)
    assert boot == volume.read(START + 6)
    assert boot[82:90] == b"FAT32   "
    fat_size, hidden = struct.unpack_from("<I", boot, 36)[0], struct.unpack_from("<I", boot, 28)[0]
    assert hidden == START
    clusters = (volume.sectors - START - 32 - 2 * fat_size) // boot[13]
    assert 65525 <= clusters <= fat_size * 128 - 2
    fats = [
        b"".join(volume.read(START + 32 + copy * fat_size + n) for n in range(fat_size)) for copy in (0, 1)
    ]
    assert fats[0] == fats[1]
    entries = struct.unpack(f"<{fat_size * 128}I", fats[0])
    assert entries[:2] == (0x0FFFFFF8, 0x0FFFFFFF)
    used = sum(value != 0 for value in entries[2:])
    free, next_free = struct.unpack_from("<II", volume.read(START + 1), 488)
    assert free == clusters - used
    assert entries[next_free] == 0
    assert all(entries[2:next_free])


def test_the_same_folder_gives_the_same_card(folder):
    one, two = (FolderVolume(folder[0], pytest.fail) for _ in range(2))
    end = START + one._data + 10 * PER_CLUSTER
    for sector in (*range(START, START + 60), *range(START + one._data, end)):
        assert one.read(sector) == two.read(sector)
    assert one.read(one.sectors - 1) == bytes(SECTOR)


def test_what_stays_at_home(tmp_path):
    root = tmp_path / "card"
    (root / ".git").mkdir(parents=True)
    (root / ".git" / "config").write_bytes(b"secret")
    (tmp_path / "outside").write_bytes(b"secret")
    (root / "link").symlink_to(tmp_path / "outside")
    (root / "loop").symlink_to(root)
    (root / "inside").symlink_to("real")
    (root / "real").write_bytes(b"real")
    (root / "REAL.").write_bytes(b"no")
    (root / "Real").write_bytes(b"same")
    (root / "colon:name").write_bytes(b"no")
    (root / b"\xff\xfe".decode("utf-8", "surrogateescape")).write_bytes(b"no")
    told: list[str] = []
    card = as_image(FolderVolume(root, told.append), tmp_path / "image")
    assert card.read("inside", 9) == b"real"
    assert [name for name in ("link", "loop", ".git/config", "colon:name") if card.find(name)] == []
    assert len(told) == 6


def test_files_that_change_while_it_runs(tmp_path):
    root = tmp_path / "card"
    root.mkdir()
    file = root / "file"
    file.write_bytes(b"x" * 1000)
    volume = FolderVolume(root, pytest.fail)
    first = START + volume._data + PER_CLUSTER
    file.write_bytes(b"y" * 70_000)
    assert volume.read(first + 1) == b"y" * 488 + bytes(24)
    other = FolderVolume(root, pytest.fail)
    file.write_bytes(b"z" * 5)
    assert other.read(first) == b"z" * 5 + bytes(507)
    file.unlink()
    assert other.read(first) == b"z" * 5 + bytes(507), "read ahead"
    with pytest.raises(FileNotFoundError):
        other.read(first + 130)


def test_large_files(tmp_path):
    root = tmp_path / "card"
    root.mkdir()
    for number in range(2):
        with (root / f"{number}.bin").open("wb") as file:
            file.truncate((1 << 32) - 1)
            file.seek(-1, 2)
            file.write(bytes((number + 1,)))
    volume = FolderVolume(root, pytest.fail)
    assert volume.sectors == 4 * SMALLEST
    end = START + volume._data + PER_CLUSTER * (1 + (1 << 32) // CLUSTER)
    assert volume.read(end - 1) == bytes(510) + b"\x01\0"
    for number in range(2, 9):
        with (root / f"{number}.bin").open("wb") as file:
            file.truncate((1 << 32) - 1)
    with pytest.raises(OSError, match="32 GiB"):
        FolderVolume(root, pytest.fail)
    with (root / "huge.bin").open("wb") as file:
        file.truncate(1 << 32)
    for number in range(9):
        (root / f"{number}.bin").unlink()
    told: list[str] = []
    assert FolderVolume(root, told.append).sectors < LARGEST
    assert "4 GiB" in told[0]


def test_many_names_alike(tmp_path, monkeypatch):
    taken: set[bytes] = set()
    shorts = [name_records(f"a rather long name {n}.txt", taken)[1] for n in range(3000)]
    assert len(set(shorts)) == 3000
    assert shorts[0] == b"ARATHE~1TXT"
    for number in range(5):
        (tmp_path / f"{number}").write_bytes(b"")
    monkeypatch.setattr("vc4lab.soc.media.fat_volume.MAX_FILES", 3)
    told: list[str] = []
    FolderVolume(tmp_path, told.append)
    assert "more than 3 files" in told[0]
    reporter = Reporter()
    assert CardSlot(tmp_path, None, reporter)() is not None
    assert [item.code for item in reporter.items] == ["SOC-067"]
    assert reporter.items[0].message == told[0]


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(min_size=1, max_size=30), min_size=1, max_size=8, unique=True))
def test_any_names(names):
    taken: set[bytes] = set()
    for name in names:
        if not is_possible(name):
            continue
        records, short, case = name_records(name, taken)
        assert len(short) == 11
        assert short.isascii()
        assert short.upper() == short
        text = b"".join(r[1:11] + r[14:26] + r[28:32] for r in reversed(records))
        if records:
            assert text.decode("utf-16-le", "surrogatepass").split("\0")[0].rstrip("\uffff") == name
        else:
            base, extension = short[:8].decode().rstrip(), short[8:].decode().rstrip()
            base = base.lower() if case & 8 else base
            extension = extension.lower() if case & 16 else extension
            assert name == base + ("." + extension if extension else "")

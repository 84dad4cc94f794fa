"""A root made of a small tree: its entries, what programs need, what is missing."""

import contextlib
import io
import lzma
import stat
import struct
import sys
from pathlib import Path

import pytest

from vc4lab.drm.setup.places import MULTIARCH, Brought
from vc4lab.linux import root as root_module
from vc4lab.linux.archive import Archive
from vc4lab.linux.objects import BadObject, Needed, module_needs, needs_of
from vc4lab.linux.root import OPENED, OPENED_LATER, RootFailed, make_root

RELEASE = "6.1.0-1-arm64"


def entries(data: bytes) -> dict[str, tuple[int, bytes]]:
    """Mode and content of each entry, read as the kernel's documentation describes it."""
    found = {}
    at = 0
    while True:
        assert data[at : at + 6] == b"070701"
        fields = [int(data[at + 6 + 8 * n : at + 14 + 8 * n], 16) for n in range(13)]
        mode, size, name_size = fields[1], fields[6], fields[11]
        name = data[at + 110 : at + 109 + name_size].decode()
        begin = at + 110 + name_size + 3 & ~3
        if name == "TRAILER!!!":
            return found
        assert name not in found
        parent = name.rpartition("/")[0]
        assert not parent or stat.S_ISDIR(found[parent][0])
        found[name] = mode, data[begin : begin + size]
        at = begin + size + 3 & ~3


def elf(libraries: tuple[str, ...] = (), interpreter: str = "") -> bytes:
    """A library or program that names others."""
    names = b"\0"
    dynamic = b""
    for name in libraries:
        dynamic += struct.pack("<QQ", 1, len(names))
        names += name.encode() + b"\0"
    base, count = 0x10000, 3 if interpreter else 2
    at = 64 + 56 * count
    dynamic += struct.pack("<QQQQ", 5, base + at + len(dynamic) + 32, 0, 0)
    body = dynamic + names + interpreter.encode() + b"\0"
    rows = [(1, 0, base, at + len(body)), (2, at, base + at, len(dynamic))]
    if interpreter:
        rows.append((3, at + len(dynamic) + len(names), 0, len(interpreter) + 1))
    table = b"".join(
        struct.pack("<IIQQQQQQ", kind, 5, offset, address, address, size, size, 8)
        for kind, offset, address, size in rows
    )
    head = b"\x7fELF\2\1\1" + bytes(9)
    head += struct.pack("<HHIQQQIHHHHHH", 3, 183, 1, 0, 64, 0, 0, 64, 56, count, 64, 0, 0)
    return head + table + body


def module(depends: str) -> bytes:
    """A kernel module with nothing but what it says of itself."""
    info = b"license=GPL\0depends=" + depends.encode() + b"\0"
    names = b"\0.modinfo\0.shstrtab\0"
    rows = [(0, 0, 0), (1, 64, len(info)), (10, 64 + len(info), len(names))]
    table = b"".join(
        struct.pack("<IIQQQQIIQQ", name, 1, 0, 0, offset, size, 0, 0, 1, 0) for name, offset, size in rows
    )
    place = 64 + len(info) + len(names)
    head = b"\x7fELF\2\1\1" + bytes(9)
    head += struct.pack("<HHIQQQIHHHHHH", 1, 183, 1, 0, 0, place, 0, 64, 0, 0, 64, 3, 2)
    return head + info + names + table


@pytest.fixture
def brought(tmp_path: Path) -> Brought:
    made = Brought("bookworm", tmp_path)
    tree = made.tree
    files = {f"{MULTIARCH}/{name}": elf(("libc.so.6",)) for name in OPENED}
    files |= {
        f"{MULTIARCH}/libc.so.6": elf(),
        f"{MULTIARCH}/libdraws.so.1.2": elf(("libc.so.6",)),
        "usr/lib/ld-linux-aarch64.so.1": elf(),
        "usr/bin/busybox": elf(),
        "usr/bin/cube": elf(("libdraws.so.1", "libc.so.6"), "/lib/ld-linux-aarch64.so.1"),
        "usr/share/glvnd/a.json": b"{}",
        f"usr/lib/modules/{RELEASE}/modules.builtin": b"kernel/drivers/i2c/i2c-core.ko\n",
    }
    modules = {
        "vc4": "drm,snd-soc-core",
        "bcm2835_thermal": "",
        "drm": "",
        "snd-soc-core": "i2c_core",
        "i2c-bcm2835": "",
        "snd-soc-hdmi-codec": "snd-soc-core",
        "bcm2835": "",
        "sdhci-iproc": "",
        "crc32c_generic": "",
        "ext4": "",
        "vfat": "",
        "nls_cp437": "",
        "nls_ascii": "",
    }
    for name, depends in modules.items():
        image = module(depends)
        packed = name == "drm"
        path = f"usr/lib/modules/{RELEASE}/kernel/{name}.ko{'.xz' if packed else ''}"
        files[path] = lzma.compress(image) if packed else image
    for path, content in files.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_bytes(content)
    (tree / "usr/bin/cube").chmod(0o755)
    (tree / MULTIARCH / "libdraws.so.1").symlink_to("libdraws.so.1.2")
    (tmp_path / "programs").mkdir()
    (tmp_path / "programs/cube").symlink_to("../tree/usr/bin/cube")
    return made


def test_newer_mesa_has_one_more_part_that_programs_open(brought: Brought) -> None:
    path = f"{MULTIARCH}/{OPENED_LATER[0]}"
    (brought.tree / path).parent.mkdir()
    (brought.tree / path).write_bytes(elf(("libc.so.6",)))
    file = io.BytesIO()
    make_root(brought, RELEASE, ["cube"], file)
    assert path in entries(file.getvalue())


def test_a_root_has_all_that_its_programs_need(brought: Brought) -> None:
    file = io.BytesIO()
    made = make_root(brought, RELEASE, ["cube"], file)
    assert made.missing == []
    found = entries(file.getvalue())
    assert stat.S_IMODE(found["usr/bin/cube"][0]) == 0o755
    assert found[f"{MULTIARCH}/libdraws.so.1"] == (stat.S_IFLNK | 0o777, b"libdraws.so.1.2")
    assert found[f"{MULTIARCH}/libdraws.so.1.2"][1] == elf(("libc.so.6",))
    assert "usr/lib/ld-linux-aarch64.so.1" in found
    assert found["lib"] == (stat.S_IFLNK | 0o777, b"usr/lib")
    assert stat.S_ISCHR(found["dev/console"][0])
    assert found["usr/share/glvnd/a.json"][1] == b"{}"
    assert found["init"][1].startswith(b"#!/usr/bin/busybox sh\n")


def test_files_that_are_asked_for_come_with_their_libraries(brought: Brought) -> None:
    file = io.BytesIO()
    (brought.tree / "usr/share/text").write_bytes(b"text")
    asked = ["usr/share/text", f"{MULTIARCH}/libdraws.so.1"]
    make_root(brought, RELEASE, [], file, asked)
    found = entries(file.getvalue())
    assert found["usr/share/text"][1] == b"text"
    assert f"{MULTIARCH}/libdraws.so.1.2" in found
    with pytest.raises(RootFailed, match="usr/share/none: it is missing"):
        make_root(brought, RELEASE, [], io.BytesIO(), ["usr/share/none"])


def test_modules_are_loaded_after_those_they_need(brought: Brought) -> None:
    file = io.BytesIO()
    make_root(brought, RELEASE, [], file)
    found = entries(file.getvalue())
    order = [path.rpartition("/")[2] for path in found["vc4lab/modules"][1].decode().splitlines()]
    assert sorted(order) == [
        "bcm2835_thermal.ko", "drm.ko", "i2c-bcm2835.ko", "snd-soc-core.ko",
        "snd-soc-hdmi-codec.ko", "vc4.ko",
    ]  # fmt: skip
    assert b"/bcm2835.ko\n" in found["vc4lab/card-modules"][1]
    assert order.index("drm.ko") < order.index("vc4.ko")
    assert order.index("snd-soc-core.ko") < order.index("vc4.ko")
    assert found[f"usr/lib/modules/{RELEASE}/kernel/drm.ko"][1] == module("")


def test_what_is_missing_is_named(brought: Brought) -> None:
    (brought.tree / MULTIARCH / "libdraws.so.1").unlink()
    assert make_root(brought, RELEASE, ["cube"], io.BytesIO()).missing == ["libdraws.so.1"]
    with pytest.raises(RootFailed, match="no package that was brought has a program ball"):
        make_root(brought, RELEASE, ["ball"], io.BytesIO())
    (brought.tree / "usr/bin/busybox").unlink()
    with pytest.raises(RootFailed, match="usr/bin/busybox: it is missing"):
        make_root(brought, RELEASE, [], io.BytesIO())


@pytest.mark.parametrize("name", ["vc4", "drm"])
def test_damaged_modules_are_named(brought: Brought, name: str) -> None:
    (path,) = (brought.tree / "usr/lib/modules").rglob(f"{name}.ko*")
    for cut in (0, 3, 40, 80, -1):
        path.write_bytes(path.read_bytes()[:cut] if cut else b"")
        with pytest.raises((RootFailed, OSError)) as caught:
            make_root(brought, RELEASE, [], io.BytesIO())
        assert name in str(caught.value) or "ELF" in str(caught.value) or "section" in str(caught.value)


def test_links_in_a_circle_end(brought: Brought) -> None:
    link = brought.tree / MULTIARCH / "libc.so.6"
    link.unlink()
    link.symlink_to("libc.so.6")
    with pytest.raises(RootFailed, match="links in a circle"):
        make_root(brought, RELEASE, ["cube"], io.BytesIO())


def test_the_hosts_python_names_its_libraries() -> None:
    needed = needs_of(Path(sys.executable).resolve())
    assert needed is not None
    assert needed.interpreter.startswith("/lib")
    assert any(name.startswith("libc.so") for name in needed.libraries)
    assert needs_of(Path(__file__)) is None


@pytest.mark.parametrize("cut", [8, 70, 130, 200])
def test_cut_programs_are_refused_or_need_nothing(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "program"
    path.write_bytes(elf(("libc.so.6",), "/lib/ld.so")[:cut])
    with contextlib.suppress(BadObject):
        assert needs_of(path) is not None


def test_random_bytes_are_no_module() -> None:
    for seed in range(50):
        image = bytearray(module("drm"))
        for step in range(8):
            image[(seed * 37 + step * 11) % len(image)] ^= 1 << seed % 8
        try:
            names = module_needs(bytes(image))
        except BadObject:
            continue
        assert all(isinstance(name, str) for name in names)


@pytest.mark.parametrize("path", ["", "/", "x" * 5000, "there", "TRAILER!!!"])
def test_an_archive_takes_no_name_twice(path: str) -> None:
    archive = Archive(io.BytesIO())
    archive.add("there", b"")
    with pytest.raises(ValueError, match="cannot be added"):
        archive.add(path, b"")


def test_the_limits_are_kept(brought: Brought, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(root_module, "LARGEST", 16)
    with pytest.raises(OSError, match="exceeds the limit"):
        make_root(brought, RELEASE, ["cube"], io.BytesIO())


def narrow(libraries: tuple[str, ...], interpreter: str) -> bytes:
    """A program of 32 bits."""
    names = b"\0" + b"".join(name.encode() + b"\0" for name in libraries)
    at, base = 52 + 32 * 3, 0x10000
    size = 8 * (len(libraries) + 2)
    dynamic, place = b"", 1
    for name in libraries:
        dynamic += struct.pack("<II", 1, place)
        place += len(name) + 1
    dynamic += struct.pack("<IIII", 5, base + at + size, 0, 0)
    body = dynamic + names + interpreter.encode() + b"\0"
    rows = [
        (1, 0, base, at + len(body)), (2, at, base + at, size),
        (3, at + size + len(names), 0, len(interpreter) + 1),
    ]  # fmt: skip
    table = b"".join(
        struct.pack("<8I", kind, offset, address, address, size, size, 5, 4)
        for kind, offset, address, size in rows
    )
    head = b"\x7fELF\1\1\1" + bytes(9)
    head += struct.pack("<HHIIIIIHHHHHH", 2, 40, 1, 0, 52, 0, 0, 52, 32, 3, 40, 0, 0)
    return head + table + body


def test_programs_and_modules_of_32_bits(tmp_path: Path) -> None:
    path = tmp_path / "program"
    path.write_bytes(narrow(("libm.so.6", "libc.so.6"), "/lib/ld-linux-armhf.so.3"))
    assert needs_of(path) == Needed(("libm.so.6", "libc.so.6"), "/lib/ld-linux-armhf.so.3")
    for size in range(0, len(path.read_bytes()), 7):
        path.write_bytes(narrow(("libm.so.6",), "/lib/ld")[:size])
        with contextlib.suppress(BadObject):
            needs_of(path)
    info = b"license=GPL\0depends=mbcache,jbd2\0"
    names = b"\0.modinfo\0.shstrtab\0"
    rows = [(0, 0, 0), (1, 52, len(info)), (10, 52 + len(info), len(names))]
    table = b"".join(
        struct.pack("<10I", name, 1, 0, 0, offset, size, 0, 0, 1, 0) for name, offset, size in rows
    )
    head = b"\x7fELF\1\1\1" + bytes(9)
    place = 52 + len(info) + len(names)
    head += struct.pack("<HHIIIIIHHHHHH", 1, 40, 1, 0, 0, place, 0, 52, 0, 0, 40, 3, 2)
    assert module_needs(head + info + names + table) == ("mbcache", "jbd2")

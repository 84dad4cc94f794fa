"""ELF files and device trees that cannot be used: what is said about them."""

import struct

import pytest
from tests.support.elf import make_elf

from vc4lab.soc.boot.firmware import BootError
from vc4lab.soc.boot.tree.device_tree import BadTree, device_tree, read_tree
from vc4lab.soc.machine import Machine

CODE = bytes.fromhex("feffffea") * 4
TREE = device_tree("model", "chip", 1 << 20, 2, 3, "")


def boot(path, data: bytes) -> str:
    path.write_bytes(data)
    with pytest.raises(BootError) as caught:
        Machine(path)
    return caught.value.diagnostic.message


def elf(entry: int = 0x8000, machine: int = 40, at: int = 0x8000) -> bytes:
    data = bytearray(make_elf({"f": (0x8000, 4)}, {at: CODE}))
    struct.pack_into("<H", data, 18, machine)
    struct.pack_into("<I", data, 24, entry)
    return bytes(data)


def test_elf_files(tmp_path):
    path = tmp_path / "kernel.elf"
    assert "made for x86-64, but would be started as ARM (32 bits)" in boot(path, elf(machine=62))
    assert "made for AArch64" in boot(path, elf(machine=183))
    assert "made for processor 9999" in boot(path, elf(machine=9999))
    assert "starts at 0x9000, which is in none of its segments" in boot(path, elf(entry=0x9000))
    assert "but the ARM's RAM ends at" in boot(path, elf(at=0xF0000000, entry=0xF0000000))
    assert "nothing to load" in boot(path, make_elf({"f": (0x8000, 4)}, {0x8000: b""}))
    whole = elf()
    start = whole.index(CODE)
    assert "truncated" in boot(path, whole[: start + 8])
    stripped = whole[:32] + bytes(4) + whole[36:48] + bytes(4)  # no section headers to miss
    assert "truncated" in boot(path, stripped + whole[52 : start + 8])
    path.write_bytes(whole)
    assert Machine(path).plan.image == CODE


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", r"not a device tree, or a truncated one \(0 bytes\)"),
        (b"no tree at all, but text", "begins with 0x6e6f2074, not 0xd00dfeed"),
        (TREE[:100], f"truncated device tree: 100 of {len(TREE)} bytes"),
        (TREE.replace(b"model\0", b"mod\xffl\0"), "a name that is not ASCII"),
        (TREE[:8] + struct.pack(">I", 57) + TREE[12:], "not aligned"),
        (TREE[:8] + struct.pack(">I", len(TREE) - 4) + TREE[12:], "damaged device tree|truncated"),
    ],
)
def test_device_trees(data, text):
    with pytest.raises(BadTree, match=text) as caught:
        read_tree(data)
    assert "codec" not in str(caught.value)
    assert "unpack" not in str(caught.value)


def test_texts_that_are_too_long(tmp_path):
    """What is not read of config.txt and cmdline.txt is said."""
    (tmp_path / "kernel7.img").write_bytes(CODE)
    (tmp_path / "config.txt").write_bytes(b"#" * 50 + b"\n" + b"\n" * (1 << 20))
    (tmp_path / "cmdline.txt").write_text("x" * 2000)
    machine = Machine(tmp_path)
    said = [item.message for item in machine.reporter.items if item.code == "BOOT-012"]
    assert said == [
        "config.txt has 1048627 bytes; only the first 1048576 are read",
        "cmdline.txt has 2000 bytes; only the first 1024 are read",
    ]
    assert len(machine.config.command_line) == 1024

"""Linux kernels: what their headers ask for, where RAM disk and tree come to lie, what is refused.

The kernels are headers of our own with a few instructions.
"""

import gzip
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vc4lab.diagnostics import Reporter
from vc4lab.soc.board import BOARDS, MIB
from vc4lab.soc.boot.boot_extras import BootExtras
from vc4lab.soc.boot.firmware import BootError, plan_boot
from vc4lab.soc.boot.linux_image import BadImage, ForeignImage, read_header
from vc4lab.soc.boot.tree.device_tree import Node, Tree, read_tree, write_tree
from vc4lab.soc.machine import Machine

PI3, PI2 = BOARDS["pi3"], BOARDS["pi2"]
OVER_HEADER = 0x14000010
"""b .+64"""
HALT = bytes.fromhex("00000014")
CELL = struct.pack(">I", 1)


def image(room=8 * MIB, offset=0, flags=0xA, magic=b"ARM\x64", code=HALT) -> bytes:
    """An arm64 Image."""
    head = struct.pack("<2I3Q", OVER_HEADER, 0, offset, room, flags) + bytes(24) + magic
    return head + bytes(4) + code


def zimage(length=0x100, end=None, order=0x04030201, table=b"", inside=b"") -> bytes:
    """A zImage of `length` bytes; its table lies at 0x40, what it points to at 0x80."""
    head = struct.pack("<8I", *[0xE1A00000] * 7, 0xEAFFFFFE) + bytes(4)
    head += struct.pack("<4I", 0x016F2818, 0, length if end is None else end, order)
    head += struct.pack("<2I", 0x45454545 if table else 0, 0x40).ljust(12, b"\0")
    return (head + table.ljust(0x40, b"\0") + inside).ljust(length, b"\0")


def tree(**more) -> bytes:
    root = Tree("", {"#address-cells": CELL, "#size-cells": CELL}, [Node("memory@0")])
    root.properties |= {"compatible": "raspberrypi,3-model-b", **more}
    return write_tree(root)


def plan(tmp_path, data, board=PI3, *, config="", disk=None, blob=None):
    path = tmp_path / "vmlinuz"
    path.write_bytes(data)
    (tmp_path / "config.txt").write_text(config)
    files = {"ramdisk": disk, "device_tree": tree() if blob is None else blob}
    given_files = {}
    for name, content in files.items():
        if content is not None:
            given_files[name] = tmp_path / name
            given_files[name].write_bytes(content)
    reporter = Reporter()
    return plan_boot(path, board, reporter, BootExtras(**given_files)), reporter


def pieces(boot_plan):
    return {piece.name: piece for piece in boot_plan.pieces}


def test_an_image_lies_where_its_header_asks(tmp_path):
    for offset, address in ((0x80000, 0x80000), (0, 0x200000)):
        found, reporter = plan(tmp_path, image(offset=offset))
        assert (found.address, found.entry, found.wide) == (address, address, True)
        assert not reporter.items
    _plan, reporter = plan(tmp_path, image(), config="kernel_address=0x80000\n")
    assert reporter.has("BOOT-017")


def test_the_ram_disk_overlaps_nothing(tmp_path):
    """An Image needs more room than its file: .bss; a zImage unpacks over what follows it."""
    for data, board in ((image(room=64 * MIB), PI3), (zimage(), PI2)):
        found, reporter = plan(tmp_path, data, board, disk=b"disk" * 1000)
        assert not reporter.items
        disk, blob = pieces(found)["the RAM disk"], pieces(found)["the device tree"]
        assert disk.address >= found.address + found.room
        assert disk.address + len(disk.data) <= blob.address
        assert blob.address + len(blob.data) <= 760 * MIB
        chosen = read_tree(blob.data).child("chosen").properties
        place = struct.pack(">I", disk.address), struct.pack(">I", disk.address + 4000)
        assert (chosen["linux,initrd-start"], chosen["linux,initrd-end"]) == place


def test_a_ram_disk_placed_into_the_room_is_reported(tmp_path):
    (tmp_path / "disk").write_bytes(b"disk")
    config = "initramfs disk 0x300000\n"
    found, reporter = plan(tmp_path, image(), config=config)
    from vc4lab.memory import GuestMemory

    found.place(GuestMemory(PI3.ram), reporter)
    assert reporter.has("BOOT-021")


def test_a_ram_disk_that_does_not_fit(tmp_path):
    (tmp_path / "disk").write_bytes(b"disk")
    with pytest.raises(BootError) as error:
        plan(tmp_path, image(room=750 * MIB), disk=bytes(2 * MIB))
    assert error.value.diagnostic.code == "BOOT-013"


def test_a_ram_disk_that_is_empty(tmp_path):
    """It was said that there was no room for it."""
    with pytest.raises(BootError) as error:
        plan(tmp_path, image(), disk=b"")
    assert str(error.value.diagnostic).endswith("cannot be the RAM disk: it has 0 bytes")


def test_what_a_tree_gets(tmp_path):
    root = read_tree(tree())
    root.reserve(0x3000, 0x1000)
    found, _reporter = plan(tmp_path, image(), blob=write_tree(root))
    blob = read_tree(pieces(found)["the device tree"].data)
    assert blob.reserved == [(0x3000, 0x1000), (0, 0x1000)]
    seed = blob.child("chosen").properties["rng-seed"]
    assert len(seed) == 64
    assert len(set(seed)) > 32
    assert blob.properties["serial-number"] == b"0000000000c40001\0"
    assert "kaslr-seed" not in blob.child("chosen").properties


def test_reserved_memory_is_kept():
    root = read_tree(tree())
    root.reserve(0, 0x2000)
    root.reserve(0, 0x1000)
    again = read_tree(write_tree(root))
    assert again.reserved == [(0, 0x2000)]
    assert write_tree(again) == write_tree(root)


def test_gzip(tmp_path):
    found, reporter = plan(tmp_path, gzip.compress(image()))
    assert found.image == image()
    assert not reporter.items
    with pytest.raises(BootError) as error:
        plan(tmp_path, gzip.compress(image())[:-9])
    assert error.value.diagnostic.code == "BOOT-015"
    with pytest.raises(BootError) as error:
        plan(tmp_path, gzip.compress(zimage()), PI2)
    assert error.value.diagnostic.code == "BOOT-016"


def test_no_tree_is_reported(tmp_path):
    path = tmp_path / "Image"
    path.write_bytes(image())
    reporter = Reporter()
    plan_boot(path, PI3, reporter)
    assert reporter.has("BOOT-018")
    (tmp_path / "bcm2837-rpi-3-b.dtb").write_bytes(tree())
    reporter = Reporter()
    plan_boot(path, PI3, reporter)
    assert not reporter.items


def test_the_room_of_a_zimage():
    short = read_header(zimage(table=struct.pack("<2I", 2, 0x5A534C4C)))
    tag = struct.pack("<2I", 3, 0x11111111) + bytes(4)
    tag += struct.pack("<4I", 4, 0x5A534C4B, 0x80, 0x1000)
    known = read_header(zimage(table=tag, inside=struct.pack("<I", 0x300000)))
    assert short is not None
    assert known is not None
    assert known.room - short.room == 0x301000 - 5 * 0x100
    endless = zimage(table=struct.pack("<2I", 0xFFFFFFFF, 1))
    assert read_header(endless) == short


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (image()[:64], "no more than its header"),
        (image(offset=0x200000), "offset 0x200000"),
        (image(room=1, code=bytes(3 * MIB)), "needs 1 bytes by its header"),
        (zimage(end=0x200), "truncated: it has 256 of 512"),
        (zimage(end=0), "ends at 0x0"),
        (zimage(end=0x20), "ends at 0x20"),
    ],
)
def test_damaged(tmp_path, data, text):
    with pytest.raises(BadImage, match=text):
        read_header(data)
    with pytest.raises(BootError) as error:
        plan(tmp_path, data)
    assert error.value.diagnostic.code == "BOOT-015"


def test_a_truncated_image_with_sections():
    """The program header for EFI says where sections lie in the file."""
    head = bytearray(image(code=bytes(0x200)))
    head[:2] = b"MZ"
    head[0x3C:0x40] = struct.pack("<I", 0x40)
    section = b".data".ljust(8, b"\0") + struct.pack("<4I", 0x1000, 0x100, 0x180, 0xC0) + bytes(16)
    coff = b"PE\0\0" + struct.pack("<2H3I2H", 0xAA64, 1, 0, 0, 0, 8, 0) + bytes(8) + section
    head[0x40 : 0x40 + len(coff)] = coff
    assert read_header(bytes(head)) is not None
    with pytest.raises(BadImage, match="up to byte 576, but the file has 575"):
        read_header(bytes(head[:575]))


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (image(flags=1), "big-endian"),
        (image(flags=4), "16 KiB"),
        (zimage(order=0x01020304), "big-endian"),
        (image(magic=b"RSC\x05"), "RISC-V"),
        (b"\x27\x05\x19\x56" + bytes(100), "uImage"),
        (b"\xd0\x0d\xfe\xed" + bytes(100), "FIT"),
        (b"MZ\0\0zimg" + bytes(100), "zboot"),
        (bytes(0x202) + b"HdrS", "x86"),
        (b"\xfd7zXZ" + bytes(100), "xz"),
        (b"\x28\xb5\x2f\xfd" + bytes(100), "zstd"),
        (b"\x04\x22\x4d\x18" + bytes(100), "lz4"),
    ],
)
def test_foreign(tmp_path, data, text):
    with pytest.raises(ForeignImage, match=text):
        read_header(data)
    with pytest.raises(BootError) as error:
        plan(tmp_path, data)
    assert error.value.diagnostic.code == "BOOT-016"


@pytest.mark.parametrize(
    ("data", "board", "config"),
    [(image(), PI2, ""), (image(), PI3, "arm_64bit=0\n"), (zimage(), PI3, "arm_64bit=1\n")],
)
def test_the_wrong_state(tmp_path, data, board, config):
    with pytest.raises(BootError) as error:
        plan(tmp_path, data, board, config=config)
    assert error.value.diagnostic.code == "BOOT-016"


def test_too_large(tmp_path):
    with pytest.raises(BootError) as error:
        plan(tmp_path, image(room=2048 * MIB))
    assert error.value.diagnostic.code == "BOOT-004"
    assert "needs 2147483648 bytes" in str(error.value)


@given(st.sampled_from([image(), zimage()]), st.integers(0, 0x60), st.binary(max_size=64))
def test_any_header_is_survived(data, at, damage):
    changed = data[:at] + damage + data[at + len(damage) :]
    try:
        read_header(changed)
    except (BadImage, ForeignImage):
        return


def test_a_zimage_is_known_by_its_header(tmp_path):
    found, _reporter = plan(tmp_path, zimage(), PI3)
    assert (found.wide, found.address) == (False, 0x8000)


def test_an_image_runs(tmp_path):
    """It stores x0, the tree's address, and whether page 0 was left alone shows the spin table."""
    code = bytes.fromhex("000000f900000014")  # str x0, [x0]; b .
    path = tmp_path / "Image"
    path.write_bytes(image(code=code))
    (tmp_path / "bcm2837-rpi-3-b.dtb").write_bytes(tree())
    machine = Machine(path, "pi3")
    machine.run(seconds=0.001)
    address = machine.plan.entry_registers[0]
    assert machine.cpu.pc == 0x200044
    assert machine.memory.u64(address) == address

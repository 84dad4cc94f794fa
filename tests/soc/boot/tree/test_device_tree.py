"""The card's device tree: found, completed as the firmware does, refused when damaged."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vc4lab.diagnostics import Reporter
from vc4lab.soc.board import BOARDS
from vc4lab.soc.boot.firmware import plan_boot
from vc4lab.soc.boot.tree.device_tree import BadTree, Node, complete, device_tree, read_tree, write_tree

HALT = bytes.fromhex("feffffea")


CELLS = struct.pack(">I", 2)
SERIAL = Node("serial@7e201000", {"compatible": "arm,pl011"})
GOOD = write_tree(
    Node(
        "",
        {"#address-cells": CELLS, "#size-cells": CELLS, "model": "mine"},
        [Node("memory@0", {"reg": bytes(16)}), Node("soc", {}, [SERIAL])],
    )
)


def test_reading_and_writing_changes_nothing():
    assert write_tree(read_tree(GOOD)) == GOOD
    ours = device_tree("Pi", "bcm2836", 5, 6, 7, "a=1", (8, 9))
    assert write_tree(read_tree(ours)) == ours


def test_what_the_firmware_puts_in():
    root = read_tree(GOOD)
    complete(root, 0x3C000000, 0xA01041, 0x1234, "quiet", (0x9000, 0x1388))
    root = read_tree(write_tree(root))
    assert root.child("memory").properties["reg"] == struct.pack(">2Q", 0, 0x3C000000)
    assert root.child("chosen").properties["bootargs"] == b"quiet\0"
    assert root.child("chosen").properties["linux,initrd-end"] == struct.pack(">I", 0xA388)
    assert root.child("system").properties["linux,revision"] == struct.pack(">I", 0xA01041)
    assert root.properties["serial-number"] == b"0000000000001234\0"
    assert root.child("soc").child("serial").properties["compatible"] == b"arm,pl011\0"


@pytest.mark.parametrize("board", BOARDS.values(), ids=lambda board: board.name)
def test_it_is_found_on_the_card(tmp_path, board):
    (tmp_path / "prog.img").write_bytes(HALT)
    (tmp_path / board.device_trees[0].upper()).write_bytes(GOOD)
    config = tmp_path / "config.txt"
    config.write_text("kernel=prog.img\narm_64bit=0\n")
    plan = plan_boot(tmp_path, board, Reporter())
    piece = plan.pieces[-1]
    assert (piece.name, plan.entry_registers[2]) == ("the device tree", piece.address)
    assert read_tree(piece.data).properties["model"] == b"mine\0"
    config.write_text("kernel=prog.img\narm_64bit=0\ndevice_tree=\n")
    assert plan_boot(tmp_path, board, Reporter()).entry_registers[2] == 0x100


def test_a_damaged_one_is_left_out(tmp_path):
    (tmp_path / "kernel7.img").write_bytes(HALT)
    (tmp_path / "bcm2709-rpi-2-b.dtb").write_bytes(GOOD[:-9])
    reporter = Reporter()
    assert plan_boot(tmp_path, BOARDS["pi2"], reporter).entry_registers[2] == 0x100
    assert reporter.has("BOOT-031")


@given(st.integers(0, len(GOOD) - 1), st.binary(min_size=1, max_size=8))
def test_damaged_bytes(at, data):
    damaged = bytearray(GOOD)
    damaged[at : at + len(data)] = data
    try:
        root = read_tree(bytes(damaged))
        complete(root, 1 << 29, 1, 2, "x")
        write_tree(root)
    except BadTree:
        return


def test_endless_nesting_is_refused():
    structure = struct.pack(">2I", 1, 0) * 1000
    head = struct.pack(">10I", 0xD00DFEED, 56 + len(structure), 56, 56, 40, 17, 16, 0, 0, 0)
    with pytest.raises(BadTree, match="too many"):
        read_tree(head + bytes(16) + structure)

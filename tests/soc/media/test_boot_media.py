"""Boards and media: kernels per board, ELF files, SD-card images, include, initramfs, filters."""

import random
import struct
from pathlib import Path

import pytest
from tests.support.card_images import SECTOR, make_card

from vc4lab.diagnostics import Reporter
from vc4lab.memory import GuestMemory
from vc4lab.soc.board import BOARDS, board_table
from vc4lab.soc.boot.boot_plan import BootPlan
from vc4lab.soc.boot.config_txt import parse_config
from vc4lab.soc.boot.firmware import BootError, plan_boot
from vc4lab.soc.devices.serial.serial import SerialPort
from vc4lab.soc.machine import Machine, Stop
from vc4lab.soc.media.fat import BadCard, FatCard

KERNELS = Path(__file__).parents[1] / "kernels"
CODE = bytes.fromhex("feffffea")
CODE64 = bytes.fromhex("00000014")


def plan(path: Path, board: str) -> BootPlan:
    return plan_boot(path, BOARDS[board], Reporter())


@pytest.mark.parametrize(
    ("board", "name", "wide", "address"),
    [
        ("zero", "kernel.img", False, 0x8000),
        ("pi1", "kernel.img", False, 0x8000),
        ("pi2", "kernel7.img", False, 0x8000),
        ("pi2-1.2", "kernel8.img", True, 0x80000),
        ("pi3", "kernel8.img", True, 0x80000),
    ],
)
def test_each_board_takes_its_kernel(tmp_path, board, name, wide, address):
    for file in ("kernel.img", "kernel7.img", "kernel8.img"):
        (tmp_path / file).write_bytes(CODE)
    found = plan(tmp_path, board)
    assert (found.name, found.wide, found.address) == (name, wide, address)


def test_arm_64bit_decides(tmp_path):
    for file in ("kernel7.img", "kernel8.img"):
        (tmp_path / file).write_bytes(CODE)
    (tmp_path / "config.txt").write_text("arm_64bit=0\n")
    found = plan(tmp_path, "pi3")
    assert (found.name, found.wide, found.entry_registers[1]) == ("kernel7.img", False, 0xC44)
    (tmp_path / "config.txt").write_text("kernel=kernel7.img\narm_control=0x200\n")
    assert plan(tmp_path, "pi3").wide


def test_a_bare_image_is_judged_by_its_code(tmp_path):
    (tmp_path / "a.img").write_bytes(CODE * 16)
    (tmp_path / "b.img").write_bytes(CODE64 * 16)
    assert not plan(tmp_path / "a.img", "pi3").wide
    assert plan(tmp_path / "b.img", "pi3").wide


def elf(machine: int, entry: int, address: int, code: bytes) -> bytes:
    head = b"\x7fELF\1\1\1" + bytes(9)
    head += struct.pack("<HHIIIIIHHHHHH", 2, machine, 1, entry, 52, 0, 0, 52, 32, 1, 40, 0, 0)
    return head + struct.pack("<8I", 1, 84, address, address, len(code), len(code), 5, 4) + code


def test_elf_kernels(tmp_path):
    kernel = tmp_path / "kernel7.img"
    kernel.write_bytes(elf(40, 0x10004, 0x10000, 2 * CODE))
    found = plan(tmp_path, "pi2")
    assert (found.address, found.entry, found.image) == (0x10000, 0x10004, 2 * CODE)
    for bad in (elf(183, 0x10000, 0x10000, CODE), elf(40, 0x8000, 0x10000, CODE),
                elf(40, 0xFFFFFFF0, 0xFFFFFFF0, 8 * CODE)):  # fmt: skip
        kernel.write_bytes(bad)
        with pytest.raises(BootError, match="BOOT-006"):
            plan(tmp_path, "pi2")


@pytest.mark.parametrize("fat32", [True, False])
@pytest.mark.parametrize("partition", [True, False])
def test_boots_from_a_card_image(tmp_path, fat32, partition):
    files = {
        "kernel7.img": (KERNELS / "hello.img").read_bytes(),
        "config.txt": b"include settings-of-mine.txt\n",
        "settings-of-mine.txt": b"gpu_mem=128\n",
        "big.bin": bytes(range(256)) * 10,
    }
    image = tmp_path / "card.img"
    image.write_bytes(make_card(files, fat32, partition))
    card = FatCard(image)
    assert card.read("BIG.BIN", 1 << 20) == files["big.bin"]
    assert card.find("settings-of-mine.txt") == "settings-of-mine.txt"
    machine = Machine(image, serial=SerialPort())
    assert machine.config.integer("gpu_mem") == 128
    assert machine.run().reason is Stop.HALTED
    assert machine.uart.text == "hello from the ARM\n"


def test_damaged_cards_are_survived(tmp_path):
    good = make_card({"kernel7.img": CODE * 300, "config.txt": b"kernel=kernel7.img\n"})[: 1 << 19]
    image = tmp_path / "card.img"
    dice = random.Random(4)
    codes = set()
    for _round in range(150):
        bad = bytearray(good[: dice.randrange(0, len(good))] if dice.random() < 0.3 else good)
        for _hit in range(dice.randrange(1, 30)):
            spot = dice.choice([(0, 600), (4096, 4096 + 600), (20000, 21000), (0, len(bad))])
            if bad:
                bad[dice.randrange(*spot) % len(bad)] = dice.randrange(256)
        image.write_bytes(bad)
        try:
            plan(image, "pi2")
        except BootError as error:
            codes.add(error.diagnostic.code)
    assert "BOOT-008" in codes
    assert all(code.startswith("BOOT-0") for code in codes)


def test_a_chain_that_goes_round_is_damage(tmp_path):
    card = bytearray(make_card({"kernel7.img": bytes(5000)}))
    struct.pack_into("<I", card, 8 * SECTOR + 32 * SECTOR + 4 * 5, 4)
    image = tmp_path / "card.img"
    image.write_bytes(card)
    with pytest.raises(BadCard, match="chain"):
        FatCard(image).read("kernel7.img", 5000)


def test_initramfs(tmp_path):
    (tmp_path / "kernel7.img").write_bytes(CODE * 2000)
    (tmp_path / "disk.gz").write_bytes(b"disk")
    (tmp_path / "config.txt").write_text("initramfs disk.gz followkernel\n")
    found = plan(tmp_path, "pi2")
    memory = GuestMemory(1 << 30)
    found.place(memory, Reporter())
    assert memory.read(0xA000, 4) == b"disk"
    assert struct.pack("<3I", 0x54420005, 0xA000, 4) in memory.read(0x100, 200)
    (tmp_path / "config.txt").write_text("initramfs disk.gz 0x800000\n")
    found.place(memory, Reporter())
    assert plan(tmp_path, "pi2").pieces[0].address == 0x800000


def test_filters_and_includes():
    reporter = Reporter()
    files = {"more.txt": "b=2\ninclude more.txt\n"}
    text = (
        "[pi3]\na=3\n[pi2]\na=2\n[0xc40001]\ngpu_mem=1\n[0x1]\ngpu_mem=2\n[all]\n[board-type=0x04]\n"
        "core_freq=5\n[none]\ncore_freq=6\n[gpio4=1]\ncore_freq=7\n[all]\ninclude more.txt\n"
    )
    left = [3]

    def read(name: str) -> str | None:
        left[0] -= 1
        return files.get(name) if left[0] >= 0 else None

    config = parse_config(text, {"pi2"}, reporter, read=read, revision=0xA01041, serial=0xC40001)
    assert (config.get("a"), config.get("b")) == ("2", "2")
    assert (config.integer("gpu_mem"), config.integer("core_freq")) == (1, 5)
    assert reporter.has("BOOT-013")


@pytest.mark.parametrize(
    ("filters", "applies"),
    [
        ("[pi3]\n[gpio10=0]", False),
        ("[pi3]\n[pi2]", True),
        ("[gpio10=1]\n[pi2]", False),
        ("[gpio10=1]\n[gpio10=0]\n[pi2]", True),
        ("[gpio4=1]", True),
        ("[EDID=VSC-TD2220]\n[pi2]", False),
        ("[EDID=VSC-TD2220]\n[all]\n[PI2]", True),
        ("[none]\n[pi2]", True),
        ("[pi0w]", False),
    ],
)
def test_filters_of_different_kinds_must_all_be_met(filters, applies):
    config = parse_config(f"{filters}\ngpu_mem=99\n", {"pi2"}, Reporter())
    assert (config.integer("gpu_mem") == 99) is applies


@pytest.mark.parametrize("board", ["zero", "pi1"])
def test_single_core_boards_run(tmp_path, board):
    for name, check in (("hello", 0), ("irq", 5), ("svc", 0), ("fiq", 0)):
        (tmp_path / "kernel.img").write_bytes((KERNELS / f"{name}_zero.img").read_bytes())
        machine = Machine(tmp_path, board=board, serial=SerialPort())
        assert machine.run().reason is Stop.HALTED
        if name == "hello":
            assert machine.uart.text == "hello from the ARM\n"
            assert machine.gpio.function(14) == "alt0"
        if name == "svc":
            assert (machine.cpu.register(4), machine.cpu.register(5)) == (2, 17)
        if name == "fiq":
            assert machine.cpu.register(7) == 1
        if check:
            assert machine.cpu.register(10) == check


def test_a53_in_aarch32_names_itself(tmp_path):
    (tmp_path / "kernel7.img").write_bytes(bytes.fromhex("100f10ee b01f10ee feffffea"))
    machine = Machine(tmp_path, board="pi3", serial=SerialPort())
    machine.run()
    assert (machine.cpu.register(0), machine.cpu.register(1)) == (0x410FD034, 0x80000000)
    assert machine.gpio.function(14) == "input"


def test_the_table_of_boards_is_complete():
    table = board_table()
    assert table[0][1:] == tuple(BOARDS)
    assert all(len(row) == len(table[0]) for row in table)


def test_the_boards_page_is_the_table():
    page = Path(__file__).parents[3] / "docs" / "boards.md"
    text = page.read_text(encoding="utf-8")
    for row in board_table()[1:]:
        assert "| " + " | ".join(row) + " |" in text


@pytest.mark.parametrize(
    ("lines", "board", "megabytes"),
    [
        ("gpu_mem=0", "pi2", 16),
        ("gpu_mem=9999", "pi2", 512),
        ("gpu_mem=9999", "zero", 384),
        ("gpu_mem=-5", "pi2", 16),
        ("gpu_mem=32\ngpu_mem_1024=128", "pi2", 128),
        ("gpu_mem=32\ngpu_mem_1024=128", "zero", 32),
    ],
)
def test_the_same_gpu_mem_for_everybody(tmp_path, lines, board, megabytes):
    (tmp_path / "prog.img").write_bytes(bytes.fromhex("feffffea"))
    (tmp_path / "config.txt").write_text(f"kernel=prog.img\n{lines}\n")
    machine = Machine(tmp_path, board)
    visible = min(machine.board.ram, machine.board.peripherals) >> 20
    arm = min((machine.board.ram >> 20) - megabytes, visible - 16)
    assert machine.videocore.vc_memory == megabytes << 20
    assert machine.videocore.arm_memory == arm << 20
    assert struct.unpack_from("<5I", machine.memory.read(0x114, 20))[2] == arm << 20


@pytest.mark.parametrize(("kind", "words"), [(0x83, "no FAT partition"), (0xEE, "GUID")])
def test_a_partition_table_without_fat_is_a_card_all_the_same(tmp_path, kind, words):
    table = bytearray(SECTOR)
    struct.pack_into("<B3xB3xII", table, 446, 0x80, kind, 1, 4)
    table[510:] = b"\x55\xaa"
    (tmp_path / "card.img").write_bytes(table + bytes(4 * SECTOR))
    with pytest.raises(BootError, match=f"BOOT-008.*{words}"):
        plan_boot(tmp_path / "card.img", BOARDS["pi2"], Reporter())

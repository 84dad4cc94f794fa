"""Names for addresses: the ELF reader, and where messages show them."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.elf import make_elf

from vc4lab.soc.boot.symbols import BadElf, load_elf, read_elf
from vc4lab.soc.debug.trace import Tracer, parse_categories
from vc4lab.soc.machine import Machine

KERNELS = Path(__file__).parents[1] / "kernels"
HELLO = (KERNELS / "hello.img").read_bytes()
SYMBOLS = {"_start": (0x8000, 0xC), "print": (0x800C, 0x1C), "halt": (0x8028, 0)}


@pytest.fixture
def card(tmp_path):
    def make(kernel: str = "hello", name: str = "kernel.elf", **files: bytes) -> Path:
        image = (KERNELS / f"{kernel}.img").read_bytes()
        (tmp_path / "kernel7.img").write_bytes(image)
        (tmp_path / name).write_bytes(files.get("elf") or make_elf(SYMBOLS, {0x8000: image}))
        return tmp_path

    return make


@pytest.mark.parametrize("wide", [False, True])
def test_names(wide):
    table = read_elf(make_elf(SYMBOLS, {0x8000: HELLO}, wide=wide))
    assert len(table) == 3
    assert table.name(0x8000) == "_start"
    assert table.name(0x8004) == "_start+0x4"
    assert table.name(0x8027) == "print+0x1b"
    assert table.name(0x8100) == "halt+0xd8"
    assert table.name(0x7FFF) is None
    assert table.name(0x4000_0000) is None
    assert table.matches(HELLO, 0x8000)
    assert not table.matches(HELLO[4:], 0x8000)
    assert not table.matches(HELLO, 0x10_0000)


@pytest.mark.parametrize("name", ["kernel.elf", "kernel7.elf"])
def test_messages_name_functions(card, name):
    machine = Machine(card(name=name))
    result = machine.run()
    assert result.message == "the program has ended in a branch to itself at 0x00008028 <halt>"
    machine = Machine(card(name=name) / "kernel7.img")
    lines: list[str] = []
    Tracer(machine, parse_categories("mmio"), lines.append)
    machine.run()
    assert "0x0000800c <print>  mmio     read   uart0.FR" in lines[0]


def test_diagnostics_say_where_the_cpu_was(card):
    image = (KERNELS / "unmasked.img").read_bytes()
    elf = make_elf({"main": (0x8000, 0x1000)}, {0x8000: image})
    machine = Machine(card("unmasked", elf=elf))
    machine.run()
    item = next(item for item in machine.reporter.items if item.code == "SOC-030")
    assert item.pc == "0x00008000 <main>"
    assert f"(CPU near {item.pc})" in str(item)
    nowhere = next(item for item in machine.reporter.items if item.code == "SOC-003")
    assert str(nowhere).count("<main>") == 1


def test_without_names(boot):
    machine = boot("unmasked")
    machine.run()
    item = next(item for item in machine.reporter.items if item.code == "SOC-030")
    assert item.pc.startswith("0x00008")
    assert "<" not in item.pc


@pytest.mark.parametrize(
    ("elf", "why"),
    [
        (make_elf(SYMBOLS, {0x8000: HELLO[::-1]}), "is not the program of kernel7.img"),
        (make_elf({}, {0x8000: HELLO}), "has no symbols"),
        (make_elf(SYMBOLS, {0x8000: HELLO})[:100], "truncated"),
    ],
)
def test_an_elf_file_that_would_tell_lies(card, elf, why):
    machine = Machine(card(elf=elf))
    assert [item.code for item in machine.reporter.items] == ["BOOT-030"]
    assert why in str(machine.reporter.items[0])
    assert machine.run().message.endswith("at 0x00008028")


@pytest.mark.parametrize(
    ("linked", "cure"),
    [(0, "kernel_old=1 and disable_commandline_tags=1"), (0x80000, "kernel_address=0x80000")],
)
def test_the_program_linked_for_another_address(card, linked, cure):
    """Its names are those of the image, moved; a static ELF file begins with its own header."""
    symbols = {name: (at - 0x8000 + linked, size) for name, (at, size) in SYMBOLS.items()}
    elf = make_elf(symbols, {linked - 64 & 0xFFFFFFFF: bytes(64) + HELLO} if linked else {0: HELLO})
    machine = Machine(card(elf=elf))
    (item,) = machine.reporter.items
    assert item.code == "BOOT-030"
    assert f"is the program of kernel7.img, but linked for 0x{linked:x}" in item.message
    assert cure in item.message
    assert machine.places.symbols is not None
    name, (at, _size) = next(iter(SYMBOLS.items()))
    assert machine.places(at).endswith(f"<{name}>")


def test_a_neighbour_that_is_no_elf_file(card):
    machine = Machine(card(elf=b"nothing"))
    assert machine.reporter.items == []


@given(st.data(), st.booleans())
def test_damaged_files(data, wide):
    good = bytearray(make_elf(SYMBOLS, {0x8000: HELLO}, wide=wide))
    for _ in range(data.draw(st.integers(1, 6))):
        good[data.draw(st.integers(4, len(good) - 1))] = data.draw(st.integers(0, 255))
    try:
        table = read_elf(bytes(good[: data.draw(st.integers(0, len(good)))]))
    except BadElf:
        return
    table.name(0x8004)
    table.matches(HELLO, 0x8000)


def test_hostile_names(tmp_path):
    elf = make_elf({"\x1b[31m" + "A" * 500: (0x8000, 4)}, {0x8000: HELLO})
    (tmp_path / "a.elf").write_bytes(elf)
    name = load_elf(tmp_path / "a.elf").name(0x8000)
    assert name.startswith("?[31mAAA")
    assert len(name) <= 120

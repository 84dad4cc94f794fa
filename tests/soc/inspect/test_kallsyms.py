"""Names of a Linux kernel's functions, from tables as its build makes them, old and new."""

import struct
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vc4lab.soc.inspect.kallsyms import DIGITS, BadKallsyms, Kallsyms

NAMES = [f"Tfunction_{number:04}" for number in range(700)]
STEP = 0x40


def image(*, wide: bool = True, new: bool = False, seqs: bool = False, base: int = 0) -> bytes:
    """A kernel with the tables of `NAMES`, in the order of 6.1 or of 6.4."""
    unit = 8 if wide else 4
    base = base or (0xFFFF800008000000 if wide else 0xC0008000)
    tokens = [bytes((code or 1,)) for code in range(256)]
    tokens[2], tokens[3] = b"function", b"Tfu"
    index = [sum(len(token) + 1 for token in tokens[:n]) for n in range(256)]
    names, markers = bytearray(), []
    for number, name in enumerate(NAMES):
        if number % 256 == 0:
            markers.append(len(names))
        packed = name.encode().replace(b"function", b"\2")
        names += bytes((len(packed),)) + packed
    parts = {
        "num": struct.pack("<I", len(NAMES)),
        "names": bytes(names),
        "markers": struct.pack(f"<{len(markers)}I", *markers),
        "seqs": b"\1\2\3" * len(NAMES) if seqs else b"",
        "tokens": b"".join(token + b"\0" for token in tokens),
        "index": struct.pack("<256H", *index),
        "offsets": struct.pack(f"<{len(NAMES)}I", *(n * STEP for n in range(len(NAMES)))),
        "base": base.to_bytes(unit, "little"),
    }
    middle = ["num", "names", "markers", "seqs", "tokens", "index"]
    order = [*middle, "offsets", "base"] if new else ["offsets", "base", *middle]
    out = bytearray(b"MZ" + bytes(510) + DIGITS * 3 + bytes(100))
    for part in order:
        out += bytes(-len(out) % unit) + parts[part]
    return bytes(out + bytes(300))


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize(("new", "seqs"), [(False, False), (False, True), (True, False)])
def test_names_and_addresses(wide: bool, new: bool, seqs: bool) -> None:
    found = Kallsyms(image(wide=wide, new=new, seqs=seqs), wide=wide)
    assert len(found) == len(NAMES)
    for number in (0, 1, 255, 256, 600, 699):
        address = found.base + number * STEP
        assert found.name(address) == NAMES[number][1:]
        assert found.name(address + 0x14) == f"{NAMES[number][1:]}+0x14"
        assert found.address(NAMES[number][1:]) == address
    assert found.name(found.base - 1) is None
    assert found.name(found.base + (1 << 24)) is None
    assert found.address("nothing") is None


def test_a_moved_kernel() -> None:
    base = 0xFFFFB1C2D3000000
    assert Kallsyms(image(base=base), wide=True).name(base + STEP) == "function_0001"


def test_the_image_is_not_kept() -> None:
    tracemalloc.start()
    try:
        found = Kallsyms(bytes(8 << 20) + image(), wide=True)
        assert found.name(found.base) == "function_0000"
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert held < 1 << 20


@pytest.mark.parametrize("data", [b"", bytes(5000), DIGITS * 100, image()[:9000]])
def test_images_without_tables(data: bytes) -> None:
    with pytest.raises(BadKallsyms):
        Kallsyms(data, wide=True)


@settings(max_examples=150, deadline=None)
@given(st.integers(600, 12000), st.binary(min_size=1, max_size=40), st.booleans())
def test_damaged_tables_do_no_harm(at: int, damage: bytes, new: bool) -> None:
    whole = image(new=new)
    data = whole[:at] + damage + whole[at + len(damage) :]
    try:
        found = Kallsyms(data, wide=True)
    except BadKallsyms:
        return
    for number in (0, 300, 699):
        found.name(found.base + number * STEP)
    found.address("nothing")

"""The language in which registers are declared."""

import pytest

from vc4lab.bits import Bits, Layout
from vc4lab.registers import Block, Rate, Register


class Mode(Layout):
    level = Bits(7, 4, doc="how much")
    enable = Bits(0, 0)


class Toy(Block):
    PLAIN = Register(0x00, reset=7)
    STATUS = Register(0x04, access="r", fields=Mode)
    GO = Register(0x08, access="w")
    ACKNOWLEDGE = Register(0x0C, access="w1c", bits=0xF0, reset=0xFF)
    ENABLE = Register(0x10, access="w1s", bits=0xF)
    NARROW = Register(0x14, bits=0xFFF)
    COUNT = Register(0x20, count=2, stride=8, names="CNT{}A")
    SOURCE = Register(0x24, count=2, stride=8)

    def on_read_STATUS(self) -> int:
        return self.PLAIN << 4

    def on_write_SOURCE(self, index: int, value: int) -> None:
        self.values[f"SOURCE[{index}]"] = value + index


def test_what_a_write_does_without_a_handler() -> None:
    toy = Toy()
    reads, writes = toy.read_handlers(), toy.write_handlers()
    for offset in writes:
        writes[offset](0x12345)
    assert (toy.PLAIN, toy.GO, toy.NARROW) == (0x12345, 0x12345, 0x345)
    assert toy.ACKNOWLEDGE == 0xFF & ~0x40
    assert toy.ENABLE == 5
    writes[0x10](0xFA)
    assert toy.ENABLE == 0xF
    assert reads[4]() == 0x123450
    assert {4: 4 in writes, 8: 8 in reads} == {4: False, 8: False}


def test_what_hangs_on_a_write_without_a_handler() -> None:
    class Lamp(Block):
        LEVEL = Register(0x00, bits=0xF, count=2, then="_look")
        CLEAR = Register(0x08, access="w1c", reset=0xFF, then="_look")

        def __init__(self) -> None:
            super().__init__()
            self.seen: list[list[int]] = []

        def _look(self) -> None:
            self.seen.append(list(self.values.values()))

    lamp = Lamp()
    writes = lamp.write_handlers()
    writes[4](0x21)
    writes[8](0x0F)
    assert lamp.seen == [[0, 1, 0xFF], [0, 1, 0xF0]]


def test_a_row_may_have_a_function_for_each() -> None:
    class Pair(Block):
        LEVEL = Register(0x00, count=2)

        def __init__(self) -> None:
            super().__init__()
            self.left: list[int] = []
            self.right: list[int] = []
            self.on_write_LEVEL = self.left.append, self.right.append

    pair = Pair()
    writes = pair.write_handlers()
    writes[0](1)
    writes[4](2)
    assert (pair.left, pair.right) == ([1], [2])


def test_rows_have_names_of_their_own() -> None:
    toy = Toy()
    writes = toy.write_handlers()
    writes[0x28](3)
    writes[0x2C](5)
    assert toy.values["CNT1A"] == toy.read_handlers()[0x28]() == 3
    assert (toy.values["CNT0A"], toy.values["SOURCE[1]"]) == (0, 6)
    places = {offset: toy.register_at(offset) for offset in (0x20, 0x24, 0x28, 0x2C, 0x30)}
    names = [found and found[0] for found in places.values()]
    assert names == ["CNT0A", "SOURCE[0]", "CNT1A", "SOURCE[1]", None]
    one = Toy.registers["COUNT"].single(1)
    assert (one.name, one.offset, one.count) == ("CNT1A", 0x28, 1)


def test_fields_from_a_layout_or_from_text() -> None:
    status = Toy.registers["STATUS"]
    assert status.layout is Mode
    assert status.describe(0x31) == "STATUS = 0x00000031 (level=3, enable=1)"
    text = Register(0, fields="7:4 level, 0 enable")
    assert text.layout is None
    assert text.fields == status.fields


def test_blocks_may_share_their_values() -> None:
    shared: dict[str, int] = {}
    toy = Toy(shared)
    toy.PLAIN = 1 << 33 | 9
    assert (toy.PLAIN, shared["PLAIN"]) == (9, 9)
    assert len(shared) == 6 + 4


def test_counters_that_follow_guest_time() -> None:
    later = (3 << 32 | 7) * 1000 + 999
    assert (Rate(1, 1000).at(later), Rate(1, 1000, 32).at(later)) == (7, 3)
    assert Rate(96, 5000).at(1_000_000) == 19_200


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="no access"):
        Register(0, access="rx")
    with pytest.raises(TypeError, match=r"Bad\.on_write_PLANE: write handler of an undeclared"):
        type("Bad", (Toy,), {"on_write_PLANE": lambda self, value: None})

"""Fields of registers: declared beside the doc string, of which no behaviour depends."""

import pytest

from vc4lab.registers import Register
from vc4lab.soc.address.block import Block
from vc4lab.soc.devices.gpio import Gpio
from vc4lab.soc.devices.serial.mini_uart import Auxiliary


def test_fields_are_named_in_traces() -> None:
    register = Register(0, fields="31 full, 7:0 level", doc="6 of the mailbox")
    assert register.fields == (("full", 31, 31), ("level", 7, 0))
    assert register.describe(0x80000005, "STATUS") == "STATUS = 0x80000005 (full=1, level=5)"
    assert register.describe(0x40, "STATUS") == "STATUS = 0x00000040 (level=64)"
    assert register.describe(0, "STATUS") == "STATUS = 0x00000000"


@pytest.mark.parametrize("text", ["full", "32 full", "0:7 level", "7:0", "x full"])
def test_what_is_no_field_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no field"):
        Register(0, fields=text)


def test_a_doc_string_names_no_fields() -> None:
    assert Gpio.registers["FSEL"].describe(8) == "FSEL = 0x00000008"  # "3 bits a pin" is prose
    assert Gpio.registers["PULL"].describe(2) == "PULL = 0x00000002"  # "1 down, 2 up" are values
    text = "IIR = 0x00000002 (clear receive FIFO=1)"
    assert Auxiliary.registers["IIR"].describe(2) == text


def test_registers_are_found_by_their_offset() -> None:
    class Rows(Block):
        first = Register(0x10)
        rows = Register(0x20, count=3, stride=8)
        alias = Register(0x28)

    class More(Rows):
        last = Register(0x40)

    rows = Rows()
    found = {at: rows.register_at(at) for at in range(0, 0x50, 4)}
    names = {at: one[0] for at, one in found.items() if one is not None}
    assert names == {0x10: "first", 0x20: "rows[0]", 0x28: "rows[1]", 0x30: "rows[2]"}
    assert rows.register_at(0x28) == ("rows[1]", Rows.registers["rows"])
    assert More().register_at(0x40) == ("last", More.registers["last"])
    assert More().register_at(0x10) == ("first", Rows.registers["first"])
    assert rows.register_at(0x40) is None

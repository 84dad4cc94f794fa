"""Fields of registers: declared beside the doc string, of which no behaviour depends."""

from __future__ import annotations

import pytest

from vc4lab.soc.address.block import Block, Register
from vc4lab.soc.debug.trace_text import describe_fields
from vc4lab.soc.devices.gpio import Gpio
from vc4lab.soc.devices.mini_uart import Auxiliary


def test_fields_are_named_in_traces() -> None:
    register = Register(0, fields="31 full, 7:0 level", doc="6 of the mailbox")
    assert register.fields == (("full", 31, 31), ("level", 7, 0))
    assert describe_fields(register, 0x80000005) == " (full=1, level=5)"
    assert describe_fields(register, 0x40) == " (level=64)"
    assert describe_fields(register, 0) == ""


@pytest.mark.parametrize("text", ["full", "32 full", "0:7 level", "7:0", "x full"])
def test_what_is_no_field_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no field"):
        Register(0, fields=text)


def test_a_doc_string_names_no_fields() -> None:
    assert describe_fields(Gpio.registers["FSEL"], 8) == ""  # "3 bits a pin" is prose
    assert describe_fields(Gpio.registers["PULL"], 2) == ""  # "1 down, 2 up" are values
    assert describe_fields(Auxiliary.registers["IIR"], 2) == " (clear receive FIFO=1)"


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

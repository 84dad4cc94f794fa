"""Fields of registers: declared beside the doc string, of which no behaviour depends."""

from __future__ import annotations

import pytest

from vc4lab.soc.address.block import Register
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

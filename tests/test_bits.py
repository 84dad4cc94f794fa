"""Bit fields: what is declared is what is encoded, decoded and checked."""

from enum import IntEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vc4lab.bits import Bits, Layout, sign_extend


class Shade(IntEnum):
    DARK = 0
    LIGHT = 1


class Sample(Layout, width=24):
    colour = Bits(7, 0, doc="the colour")
    delta = Bits(11, 8, signed=True)
    shade = Bits(13, 12, enum=Shade)
    flag = Bits(23)


def test_make_and_read() -> None:
    sample = Sample.make(colour=3, delta=-2, shade=Shade.LIGHT, flag=1)
    assert sample.value == 0x801E03
    assert (sample.colour, sample.delta, sample.shade, sample.flag) == (3, -2, Shade.LIGHT, 1)
    assert sample.to_bytes() == bytes([0x03, 0x1E, 0x80])
    assert Sample.from_bytes(b"\x03\x1e\x80") == sample
    assert repr(sample) == "Sample(0x801e03: colour=3 delta=-2 shade=light flag=1)"


def test_set_changes_only_its_bits() -> None:
    sample = Sample(0xFFFFFF)
    sample.delta = 0
    assert sample.value == 0xFFF0FF
    assert sample.replace(flag=0).value == 0x7FF0FF
    assert sample.shade == 3, "a code without a name stays a number"


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("colour", 256, "colour: value 256 doesn't fit in 8 bits"),
        ("delta", 8, "delta: value 8 doesn't fit in 4 signed bits"),
        ("flag", 2, "flag: value 2 doesn't fit in 1 bit"),
    ],
)
def test_range_errors_say_what_fits(field: str, value: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Sample.make(**{field: value})


def test_wrong_declarations_and_names() -> None:
    with pytest.raises(TypeError, match="no field 'color'"):
        Sample.make(color=1)
    with pytest.raises(TypeError, match="bit 9 of 8 bits"):
        type("Wide", (Layout,), {"field": Bits(9, 0)}, width=8)
    with pytest.raises(ValueError, match="doesn't fit in 24 bits"):
        Sample(1 << 24)


@given(st.integers(0, (1 << 24) - 1))
def test_fields_rebuild_the_value(value: int) -> None:
    sample = Sample(value)
    unused = Sample(value & 0x7FC000)
    assert unused.replace(**sample.as_dict()) == sample


@given(st.integers(1, 40), st.integers())
def test_sign_extend(width: int, value: int) -> None:
    result = sign_extend(value, width)
    assert (result - value) % (1 << width) == 0
    assert -(1 << (width - 1)) <= result < 1 << (width - 1)

"""A program that drives the display itself: lists, planes, vertical blanks, HDMI."""

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.soc.display.lists import (
    BGRA,
    END,
    FIXED,
    HDMI,
    HVS,
    PICTURE,
    PIXEL_VALVE_LINE,
    PV2,
    RGB565,
    RGB_ORDER,
    RGBA8888,
    VALID,
    Display,
    plane,
)  # fmt: skip

from vc4lab.diagnostics import Reporter
from vc4lab.images.tiling import Tiling, texel_bit_addresses
from vc4lab.memory import GuestMemory
from vc4lab.scanout.composer import Composer, picture_of
from vc4lab.scanout.display_unknowns import Unknowns
from vc4lab.soc.display.hvs import Hvs
from vc4lab.soc.display.planes import LIST_WORDS, planes_of, shown

COUNTS = bytes.fromhex("010080e2fdffffea")
"""add r0, r0, #1; b .-4: a program that neither ends nor waits."""


@pytest.fixture
def display(boot):
    return Display(boot(COUNTS))


def run(display, seconds):
    display.machine.run(seconds=seconds)


def test_blanks_come_at_the_rate_of_the_mode(display):
    """PLLH_PIX is 1728 MHz / 10 / 10 = 17.28 MHz; 1,000 x 576 pixels take 33.3 ms."""
    display.start(960, 546)
    valve = display.machine.hardware.pixel_valves[1]
    assert valve.period == pytest.approx(1e9 * 1000 * 576 / 17.28e6, rel=1e-4)
    display[PV2 + 0x24] = 1 << 7
    assert not display.machine.interrupts.lines >> PIXEL_VALVE_LINE & 1
    run(display, 0.034)
    assert display[PV2 + 0x28] & 1 << 7
    assert display.machine.interrupts.lines >> PIXEL_VALVE_LINE & 1
    display[PV2 + 0x28] = 0x3FF
    assert not display.machine.interrupts.lines >> PIXEL_VALVE_LINE & 1
    frames = display[HVS + 0x58] >> 12 & 0x3F
    run(display, 0.1)
    assert display[HVS + 0x58] >> 12 & 0x3F == frames + 3
    display[PV2 + 4] = 0
    frames = display[HVS + 0x58]
    run(display, 0.1)
    assert display[HVS + 0x58] == frames


def test_fields_of_an_interlaced_picture_have_lines_of_their_own(display):
    """NTSC as Linux writes it: 263 lines and 262, of 858 pixels; here at 17.28 MHz."""
    display.start(818, 224)
    valve = display.machine.hardware.pixel_valves[1]
    display[PV2 + 0x18] = 9 << 16 | 224
    display[PV2 + 0x1C], display[PV2 + 0x20] = 20 << 16 | 5, 8 << 16 | 224
    display[PV2 + 4] = 3 | 1 << 4
    line = 858e9 / 17.28e6
    lengths = []
    for _field in range(6):
        lengths.append(round(valve.period / line))
        valve.blank()
    assert lengths == [258, 257] * 3
    display[PV2 + 4] = 3
    for _picture in range(3):
        valve.blank()
        assert round(valve.period / line) == 258


def test_a_mode_without_sense_does_not_stop_the_machine(display):
    for value in (0, 0xFFFFFFFF):
        for at in (0x0C, 0x10, 0x14, 0x18):
            display[PV2 + at] = value
        display[PV2] = 1
        display[PV2 + 4] = 3
        run(display, 0.05)
        assert display[HVS + 0x58] & 0xFFF <= 0xFFF
        display[PV2 + 4] = 0


def test_a_list_is_taken_over_at_the_blank(display):
    display.start(960, 546)
    display.show([END], 64)
    assert display[HVS + 0x34] == 0
    run(display, 0.034)
    assert display[HVS + 0x34] == 64


def test_the_line_that_is_sent(display):
    display.start(960, 546)
    run(display, 0.034)
    lines = []
    for _step in range(6):
        run(display, 0.005)
        lines.append(display[HVS + 0x58] & 0xFFF)
    assert lines == sorted(lines)
    assert 0 < lines[0] < 150
    assert 450 < lines[-1] <= 546


def test_a_channel_that_is_off_is_empty(display):
    assert display[HVS + 0x58] >> 28 == 1
    display.start(64, 64)
    assert display[HVS + 0x58] >> 30 == 2
    display[HVS + 0x50] = 1 << 30
    assert display[HVS + 0x58] >> 28 == 1


def test_the_picture_is_the_screen(display):
    machine = display.machine
    assert machine.screen.image is None
    display.start(64, 48)
    machine.memory.write(PICTURE, struct.pack("<I", 0xFF102030) * 64 * 48)
    display.show([*plane(RGBA8888, BGRA, (64, 48), PICTURE, 256), END])
    run(display, 0.02)
    image = machine.screen.image
    assert image.size == (64, 48)
    assert image.getcolors() == [(64 * 48, (0x10, 0x20, 0x30))]
    assert machine.frames.count == 1
    display[HVS + 0x50] = 0
    assert machine.screen.image is None


def test_hdmi_does_as_it_is_told(display):
    display[HDMI + 0x5C] = 1 << 6
    assert display[HDMI + 0x5C] >> 14 & 1
    display[HDMI + 0x5C] = 0
    assert not display[HDMI + 0x5C] >> 14 & 1
    display[HDMI + 0xC0] = 1
    assert display[HDMI + 0xC0] & 2
    display[HDMI + 0xC0] = 0
    assert not display[HDMI + 0xC0] & 2
    display[HDMI + 0xA0] = 1 << 16 | 4
    assert display[HDMI + 0xA4] == 4
    display[HDMI + 0xA0] = 1 << 16
    assert display[HDMI + 0xA4] == 0
    assert display[HDMI + 0x0C] & 1


# -- planes ----------------------------------------------------------------------------------------


def picture(words, memory, size=(8, 4), background=0, **unknowns):
    lists = bytearray(4 * LIST_WORDS)
    data = struct.pack(f"<{len(words)}I", *words)
    lists[: len(data)] = data
    found, damage = planes_of(lists, 0)
    assert not damage
    scene = shown(memory, found, size, background, Unknowns().with_(**unknowns))
    return np.asarray(picture_of(Composer(memory).pixels(scene)))


def test_formats():
    memory = GuestMemory()
    memory.write(PICTURE, struct.pack("<H", 0x1F << 11 | 0x20 << 5 | 1) * 64)
    pixels = picture([*plane(RGB565, RGB_ORDER, (8, 4), PICTURE, 16), END], memory)
    assert pixels[0, 0].tolist() == [255, 130, 8]
    pixels = picture([*plane(RGB565, 3, (8, 4), PICTURE, 16), END], memory)
    assert pixels[0, 0].tolist() == [8, 130, 255]
    memory.write(PICTURE, bytes((1, 2, 3, 255)) * 64)
    for order, colour in ((2, [1, 2, 3]), (3, [3, 2, 1]), (0, [255, 3, 2]), (1, [2, 3, 255])):
        pixels = picture([*plane(RGBA8888, order, (8, 4), PICTURE, 32), END], memory)
        assert pixels[3, 7].tolist() == colour
    memory.write(PICTURE, bytes((1, 2, 3)) * 64)
    pixels = picture([*plane(5, 3, (8, 4), PICTURE, 24), END], memory)
    assert pixels[3, 7].tolist() == [1, 2, 3]


def test_t_tiles():
    memory = GuestMemory()
    place = texel_bit_addresses(64, 64, 32, Tiling.T) // 8
    for y, x in ((0, 0), (0, 33), (40, 5), (63, 63)):
        memory.write(PICTURE + int(place[y, x]), struct.pack("<I", 0xFF000000 | y << 8 | x))
    words = plane(RGBA8888, BGRA, (64, 64), PICTURE, 2, tiling=3)
    pixels = picture([*words, END], memory, (64, 64))
    for y, x in ((0, 0), (0, 33), (40, 5), (63, 63)):
        assert pixels[y, x].tolist() == [0, y, x]


def test_t_tiles_of_16_bits():
    memory = GuestMemory()
    place = texel_bit_addresses(128, 64, 16, Tiling.T) // 8
    for y, x in ((0, 0), (0, 70), (40, 5), (63, 127)):
        memory.write(PICTURE + int(place[y, x]), struct.pack("<H", (y & 31) << 11 | x & 31))
    words = plane(RGB565, RGB_ORDER, (128, 64), PICTURE, 2, tiling=3)
    pixels = picture([*words, END], memory, (128, 64))
    for y, x in ((0, 0), (0, 70), (40, 5), (63, 127)):
        red, blue = y & 31, x & 31
        assert pixels[y, x].tolist() == [red << 3 | red >> 2, 0, blue << 3 | blue >> 2]


def test_alpha_place_flips_and_scaling():
    memory = GuestMemory()
    memory.write(PICTURE, struct.pack("<4I", 0x80FF0000, 0xFF00FF00, 0xFF0000FF, 0))
    own = plane(RGBA8888, BGRA, (2, 2), PICTURE, 8, at=(1, 1), mode=0)
    pixels = picture([*own, END], memory, background=0x0000FF)
    assert pixels[1, 1].tolist() == [128, 0, 127]
    assert pixels[1, 2].tolist() == [0, 255, 0]
    assert pixels[2, 2].tolist() == [0, 0, 255]
    assert pixels[0, 0].tolist() == [0, 0, 255]
    fixed = plane(RGBA8888, BGRA, (2, 2), PICTURE, 8, alpha=0x80)
    assert picture([*fixed, END], memory)[0, 1].tolist() == [0, 128, 0]
    turned = plane(RGBA8888, BGRA, (2, 2), PICTURE + 8, 8, more=3 << 15)
    assert picture([*turned, END], memory)[1, 1].tolist() == [255, 0, 0]
    large = plane(RGBA8888, BGRA, (2, 2), PICTURE, 8, scaled=(8, 4))
    pixels = picture([*large, END], memory)
    ramp = pixels[0, :, 1].tolist()
    assert ramp == sorted(ramp)
    assert pixels[0, 0].tolist() == [255, 0, 0]
    assert pixels[0, 7].tolist() == [0, 255, 0]
    assert len(set(ramp)) > 3, "the filter mixes neighbours"
    both = plane(RGBA8888, BGRA, (2, 2), PICTURE, 8, alpha=0x80, mode=1 << 28)
    assert picture([*both, END], memory)[0, 0].tolist() == [64, 0, 0]
    over = plane(RGBA8888, BGRA, (2, 2), PICTURE, 8, at=(7, 3))
    assert picture([*over, END], memory)[3, 7].tolist() == [255, 0, 0]


def test_a_fixed_alpha_that_is_mixed_is_as_the_switch_says():
    """Linux asks for it where pixels' alpha does not count (pixel blend mode None)."""
    memory = GuestMemory()
    memory.write(PICTURE, struct.pack("<I", 0x80FF0000) * 4)
    both = plane(RGBA8888, BGRA, (2, 2), PICTURE, 8, alpha=0x80, mode=FIXED | 1 << 28)
    assert picture([*both, END], memory)[0, 0].tolist() == [128, 0, 0]
    pixels = picture([*both, END], memory, hvs_fixed_mix="product")
    assert pixels[0, 0].tolist() == [64, 0, 0]


@pytest.mark.parametrize(
    ("words", "start", "text"),
    [
        ([0], 0, "invalid word at 0"),
        ([VALID], 0, "invalid word at 0"),
        ([VALID | 3 << 24, 0, 0], 0, "a plane of only 3 words"),
        ([], 5000, "leaves the memory of lists at word 5000"),
        ([VALID | 8 << 24] + [VALID | 8 << 24] * 4095, 0, "more than 256 planes"),
        ([END], 0, ""),
    ],
)
def test_damaged_lists(words, start, text):
    reporter = Reporter()
    hvs = Hvs(GuestMemory(), reporter)
    hvs.lists[: 4 * len(words)] = struct.pack(f"<{len(words)}I", *words)
    hvs.values[0x24] = start
    hvs.values[0x50] = 1 << 31 | 16 << 12 | 16
    hvs.picture(1)
    assert hvs.image().size == (16, 16)
    assert reporter.counts["SOC-094"] == bool(text), "also without a look at the screen"
    assert text in reporter.summary()


@settings(deadline=None, max_examples=60)
@given(st.binary(max_size=200), st.integers(0, 0xFFFFFFFF))
def test_any_list_is_survived(data, start):
    hvs = Hvs(GuestMemory(1 << 20), Reporter())
    hvs.lists[: len(data)] = data
    hvs.values[0x24] = start % 60
    hvs.values[0x50] = 1 << 31 | 16 << 12 | 16
    hvs.picture(1)
    assert hvs.image().size == (16, 16)


@pytest.mark.parametrize(("chosen", "value"), [("name", 0x48565320), ("zero", 0)])
def test_the_identity_is_as_the_switch_says(boot, chosen, value):
    machine = boot(COUNTS, unknowns=Unknowns({"hvs_identity": chosen}))
    assert machine.bus.read(HVS + 8, 4) == value

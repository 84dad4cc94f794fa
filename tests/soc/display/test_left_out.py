"""What the display does not show as a board does is said, once, and where."""

import random
import struct

import pytest
from tests.soc.display.lists import (
    BGRA,
    END,
    FIXED,
    HVS,
    LISTS,
    PICTURE,
    RGB565,
    RGBA8888,
    VALID,
    Display,
    plane,
)  # fmt: skip

from vc4lab.diagnostics import Reporter
from vc4lab.memory import GuestMemory
from vc4lab.soc.display.hvs import Hvs

COUNTS = bytes.fromhex("010080e2fdffffea")
SIZE = (32, 32)
ROUNDED = 3 << 11


def a_plane(kind=RGBA8888, order=BGRA, size=SIZE, address=PICTURE, pitch=128, **more):
    return plane(kind, order, size, address, pitch, **more)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (a_plane(kind=13), "not shown: pixel format 13"),
        (a_plane(kind=15), "not shown: pixel format 15"),
        (a_plane(kind=6), "not shown: pixel format 6"),
        (a_plane(tiling=1), "not shown: tiling 1"),
        (a_plane(tiling=2), "not shown: tiling 2"),
        (a_plane(kind=5, pitch=1, tiling=3), "T-tiles with pixels of 24 bits"),
        (a_plane(size=(0, 32)), "not shown: it has no pixels"),
        (a_plane(scaled=(32, 0)), "not shown: it has no pixels"),
        (a_plane(size=(4095, 2), pitch=4, scaled=(8, 2)), "shrunk more than 256 times"),
        (a_plane(pitch=5 << 26 | 1, tiling=3), "narrower than the plane"),
        (a_plane(address=0, pitch=1 << 14 | 1, tiling=3), "its pixels are not in RAM"),
        (a_plane(address=0x100, more=1 << 15), "its pixels are not in RAM"),
        (a_plane(pitch=0, tiling=3), "narrower than the plane"),
        (a_plane(address=0x3FFFFF00), "not shown: its pixels are not in RAM"),
        (a_plane(mode=2 << 30), "otherwise: alpha mode 2"),
        (a_plane(mode=3 << 30), "otherwise: alpha mode 3"),
        (a_plane(more=2 << 17), "otherwise: colour key mode 2"),
        (a_plane(kind=RGB565, more=1 << 11), "as by mode 3, not 1"),
        (a_plane(kind=RGB565, more=ROUNDED), ""),
        (a_plane(kind=RGB565, pitch=1, tiling=3, more=ROUNDED), ""),
        (a_plane(scaled=(64, 64)), ""),
        (a_plane(mode=FIXED | 1 << 28), ""),
        (a_plane(mode=1 << 28), ""),
        (a_plane(pitch=1, tiling=3), ""),
        (a_plane(), ""),
    ],
)
def test_what_a_plane_lacks_is_reported_with_its_place(words, text):
    reporter = Reporter()
    hvs = Hvs(GuestMemory(1 << 24), reporter, 0x3F400000)
    blank = a_plane()
    data = [*blank, *words, END]
    hvs.lists[: 4 * len(data)] = struct.pack(f"<{len(data)}I", *data)
    hvs.values[0x50] = 1 << 31 | 64 << 12 | 64
    hvs.picture(1)
    assert [item.code for item in reporter.items] == ["SOC-095"] * bool(text)
    assert text in reporter.summary()
    for item in reporter.items:
        assert item.address == 0x3F402000 + 4 * len(blank)
    for _again in range(3):
        hvs.write_other(0x2000, data[0])
        hvs.picture(1)
    assert reporter.counts["SOC-095"] == bool(text)


def test_a_plane_that_moves_is_reported_once():
    reporter = Reporter()
    hvs = Hvs(GuestMemory(1 << 24), reporter)
    hvs.values[0x50] = 1 << 31 | 64 << 12 | 64
    for step in range(8):
        data = [*a_plane(kind=13, at=(step, step)), END]
        for number, word in enumerate(data):
            hvs.write_other(0x2000 + 4 * (64 * step + number), word)
        hvs.values[0x24] = 64 * step
        hvs.picture(1)
    assert reporter.counts["SOC-095"] == 1


def test_a_list_that_is_not_shown_is_not_reported():
    reporter = Reporter()
    hvs = Hvs(GuestMemory(1 << 24), reporter)
    data = a_plane(kind=14)
    hvs.lists[: 4 * len(data)] = struct.pack(f"<{len(data)}I", *data)
    for control in (0, 3 << 30):
        hvs.values[0x50] = control
        hvs.picture(1)
    assert not reporter.items


def test_a_machine_says_it_without_a_look_at_its_screen(boot):
    machine = boot(COUNTS)
    for number, word in enumerate([*a_plane(kind=15), END]):
        machine.bus.write(LISTS + 4 * (64 + number), 4, word)
    machine.bus.write(HVS + 0x24, 4, 64)
    machine.bus.write(HVS + 0x50, 4, 1 << 31 | 64 << 12 | 64)
    machine.hardware.hvs.picture(1)
    (item,) = machine.reporter.items
    assert item.address == machine.bus.base + LISTS + 4 * 64
    assert item.code == "SOC-095"


def test_noise_in_the_memory_of_lists_does_no_harm(boot):
    """Lists that change under the display, run into each other and lead outside."""
    display = Display(boot(COUNTS))
    display.start(64, 32)
    noise = random.Random(14)
    for _turn in range(12):
        for _word in range(400):
            word = noise.choice([noise.getrandbits(32), VALID | noise.getrandbits(30), 0, END])
            display[LISTS + 4 * noise.randrange(4096)] = word
        display[HVS + 0x24] = noise.choice([0, 64, 4095, 0xFFFFFFFF, noise.randrange(4096)])
        display.machine.run(seconds=0.04)
        framebuffer = display.machine.videocore.framebuffer
        assert framebuffer.holds(framebuffer.content())
        assert display.machine.screen.image.size == (64, 32)
    assert "SOC-094" in {item.code for item in display.machine.reporter.items}

"""What counts as a frame where a program drives the HVS, and the pictures that viewers take."""

import struct

import pytest
from tests.soc.display.lists import BGRA, END, LISTS, PICTURE, RGBA8888, Display, plane

from vc4lab.viewer.fresh import FreshPictures

COUNTS = bytes.fromhex("010080e2fdffffea")
"""add r0, r0, #1; b .-4: a program that neither ends nor waits."""
SIZE = 64, 32
FRAME = 0.04
"""Longer than one picture of the mode."""
SECOND_PICTURE = PICTURE + 0x10000
OTHER_LIST = 128


@pytest.fixture
def display(boot):
    return Display(boot(COUNTS))


def fill(display, colour, address=PICTURE):
    pixels = struct.pack("<I", 0xFF000000 | colour) * SIZE[0] * SIZE[1]
    display.machine.memory.write(address, pixels)


def show(display, address=PICTURE, start=64):
    words = plane(RGBA8888, BGRA, SIZE, address, 4 * SIZE[0])
    display.show([*words, END], start)


def run(display, seconds=FRAME):
    display.machine.run(seconds=seconds)


def test_another_list_is_a_frame(display):
    seen = []
    display.machine.frames.listeners.append(
        lambda _count: seen.append(display.machine.screen.image.getpixel((9, 9)))
    )
    fill(display, 0xFF0000)
    fill(display, 0x00FF00, SECOND_PICTURE)
    display.start(*SIZE)
    for turn in range(6):
        show(display, SECOND_PICTURE if turn % 2 else PICTURE, OTHER_LIST if turn % 2 else 64)
        run(display)
    assert seen == [(255, 0, 0), (0, 255, 0)] * 3
    assert display.machine.frames.source == "flip"
    run(display, 0.5)
    assert len(seen) == 6


def test_a_list_that_is_changed_in_its_place_is_a_frame_each_time(display):
    """As Linux flips where programs do not wait for the vertical blank."""
    fill(display, 0xFF0000)
    fill(display, 0x00FF00, SECOND_PICTURE)
    display.start(*SIZE)
    show(display)
    run(display, 0.2)
    seen = []
    display.machine.frames.listeners.append(
        lambda _count: seen.append(display.machine.screen.image.getpixel((9, 9)))
    )
    for turn in range(6):
        show(display, PICTURE if turn % 2 else SECOND_PICTURE)
        run(display)
    assert seen == [(0, 255, 0), (255, 0, 0)] * 3
    show(display)  # the same words again, and another list that is not shown
    display[LISTS + 4 * OTHER_LIST] = END
    run(display, 0.5)
    assert len(seen) == 6


def test_pixels_that_change_are_a_frame_once_they_stand_still(display):
    display.start(*SIZE)
    show(display)
    run(display, 0.2)
    before = display.machine.frames.count
    fill(display, 0x0000FF)
    run(display, 0.2)
    assert display.machine.frames.count == before + 1
    run(display, 0.5)
    assert display.machine.frames.count == before + 1


def test_the_v3d_draws_no_frame_that_is_not_shown(display):
    display.start(*SIZE)
    show(display)
    run(display, 0.2)
    before = display.machine.frames.count
    for _job in range(3):
        display.machine.frames.render_done()
    run(display, 0.2)
    assert display.machine.frames.count == before
    assert display.machine.frames.rendered == 3


def test_viewers_take_each_picture_once(display):
    pictures = FreshPictures(display.machine)
    taken = []
    display.machine.frames.listeners.insert(0, lambda _count: taken.append(pictures.take()))
    fill(display, 0x102030)
    display.start(*SIZE)
    show(display)
    run(display, 0.2)
    assert taken[-1].size == SIZE
    assert taken[-1].getpixel((0, 0)) == (0x10, 0x20, 0x30)
    show(display, start=OTHER_LIST)  # another list, but the same picture
    run(display, 0.2)
    assert len(taken) == 2
    assert taken[-1] is None
    fill(display, 0x405060)
    run(display, 0.2)
    assert taken[-1].getpixel((0, 0)) == (0x40, 0x50, 0x60)


def test_the_screen_says_what_it_shows(display):
    assert repr(display.machine.screen).startswith("<Screen: black")
    display.start(*SIZE)
    show(display)
    run(display)
    assert display.machine.screen.size == SIZE
    assert repr(display.machine.screen) == "<Screen 64x32, composed by the HVS>"


def test_planes_outside_ram_do_no_harm(display):
    display.start(*SIZE)
    show(display, address=0x3FFFFF00)
    run(display, 0.2)
    framebuffer = display.machine.videocore.framebuffer
    assert framebuffer.holds(framebuffer.content())
    assert not framebuffer.holds(b"")
    assert not framebuffer.holds(framebuffer.content() + b"\0")

"""Pictures are converted only when they are other ones."""

from pathlib import Path

import pytest

from vc4lab.soc.machine import Machine
from vc4lab.viewer.fresh import FreshPictures

KERNEL = Path(__file__).parent.parent / "soc" / "kernels" / "hello.img"


@pytest.fixture
def machine():
    made = Machine(KERNEL)
    made.videocore.framebuffer.change(width=32, height=16, depth=32)
    made.videocore.framebuffer.allocate()
    return made


def test_the_same_picture_is_taken_once(machine):
    pictures = FreshPictures(machine)
    assert pictures.take().size == (32, 16)
    assert pictures.take() is None, "nothing has happened"
    machine.frames.vsync()
    assert pictures.take() is None, "something has, but the picture is the same"
    machine.memory.write(machine.videocore.framebuffer.address, b"\x10\x20\x30\x40")
    machine.frames.vsync(still=True)
    assert pictures.take() is None, "nothing can have been written"
    machine.frames.vsync()
    assert sorted(pictures.take().getpixel((0, 0))) == [0x10, 0x20, 0x30]
    assert pictures.taken == 2


def test_another_palette_or_size_is_another_picture(machine):
    framebuffer = machine.videocore.framebuffer
    framebuffer.change(depth=8)
    pictures = FreshPictures(machine)
    assert pictures.take().getpixel((0, 0)) == (0, 0, 0)
    for change in (
        lambda: framebuffer.palette.__setitem__(0, 0xFF808080),
        lambda: setattr(framebuffer, "blank", True),
        lambda: framebuffer.change(height=8),
    ):
        change()
        machine.frames.flip()
        assert pictures.take() is not None
        assert pictures.take() is None


def test_no_framebuffer_no_picture():
    assert FreshPictures(Machine(KERNEL)).take() is None

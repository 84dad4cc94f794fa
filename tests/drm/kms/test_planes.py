# ruff: noqa: F821, RUF059 - clients are other programs
"""Planes as programs set them: what is shown, what is refused."""

import numpy
import pytest
from tests.support.drm_client import run_client

from vc4lab.drm.device.device import DrmDevice
from vc4lab.scanout.display_unknowns import DEFAULT_UNKNOWNS


def test_an_overlay_is_laid_over_the_picture_and_cut_at_its_edge(device: DrmDevice) -> None:
    def client() -> None:
        fd = open_card()
        ioctl(fd, 0x0D, "QQ", 2, 1, direction=1)
        crtc, fb, view, pitch = show(fd)
        view[:] = bytes([40, 30, 20, 0]) * (len(view) // 4)
        held, there = buffer(bytes(64))
        count = ioctl(fd, 0xB5, "QI4x", there, 16)[1]
        planes = struct.unpack_from(f"<{count}I", held.raw)
        handle, across, size = dumb(fd, 64, 32)
        over = map_dumb(fd, handle, size)
        over[:] = bytes([0, 0, 100, 128]) * (size // 4)
        arguments = [64, 32, 0x34325241, 0, handle, 0, 0, 0, across, *[0] * 3, *[0] * 4, *[0] * 4]
        overlay = ioctl(fd, 0xB8, "IIIII4I4I4I4x4Q", 0, *arguments)[0]

        def place(x, y, wide, high, source=(0, 0, 64 << 16, 32 << 16)):
            left, top, columns, rows = source
            values = planes[1], crtc, overlay, 0, x, y, wide, high, left, top, rows, columns
            return refused(fd, 0xB7, "IIIIiiIIIIII", *values)

        assert place(600, -8, 64, 32) == 0
        assert place(600, -8, 64, 32, (0, 0, 65 << 16, 32 << 16)) == errno.ENOSPC
        assert place(0, 0, 0, 32) == errno.EINVAL
        assert place(0x7FFFFFFF, 0, 64, 32) == errno.ERANGE
        assert place(0, 0, 0x7FFFFFFF, 32) == errno.ERANGE
        os._exit(0)

    run_client(device, client)
    image = device.screenshot()
    assert image is not None
    pixels = numpy.asarray(image)
    assert (pixels[0:24, 600:] == (110, 15, 20)).all()
    assert (pixels[24:] == (20, 30, 40)).all()
    assert (pixels[:, :600] == (20, 30, 40)).all()


def shrink() -> None:
    fd = open_card()
    ioctl(fd, 0x0D, "QQ", 2, 1, direction=1)
    crtc, fb, view, pitch = show(fd)
    held, there = buffer(bytes(64))
    count = ioctl(fd, 0xB5, "QI4x", there, 16)[1]
    planes = struct.unpack_from(f"<{count}I", held.raw)
    values = planes[1], crtc, fb, 0, 0, 0, 16, 16, 0, 0, 480 << 16, 640 << 16
    print(refused(fd, 0xB7, "IIIIiiIIIIII", *values) == errno.ERANGE)


@pytest.mark.parametrize("choice", ["refuses", "scales", "wraps"])
def test_a_plane_that_is_scaled_too_much_is_refused(choice: str) -> None:
    with DrmDevice(
        paced=False, threads=1, unknowns=DEFAULT_UNKNOWNS.with_(hvs_shrink_limit=choice)
    ) as device:
        assert run_client(device, shrink) == f"{choice == 'refuses'}\n"


def test_planes_can_be_mirrored_and_put_in_another_order(device: DrmDevice) -> None:
    def client() -> None:
        fd = open_card()
        ioctl(fd, 0x0D, "QQ", 2, 1, direction=1)
        crtc, fb, view, pitch = show(fd)
        view[0:4] = bytes([1, 2, 3, 0])
        held, there = buffer(bytes(64))
        count = ioctl(fd, 0xB5, "QI4x", there, 16)[1]
        plane = struct.unpack_from(f"<{count}I", held.raw)[0]
        ids, ids_at = buffer(bytes(256))
        values, values_at = buffer(bytes(512))
        many = ioctl(fd, 0xB9, "QQIII4x", ids_at, values_at, 64, plane, 0)[2]
        found = {}
        for n in range(many):
            number = struct.unpack_from("<I", ids.raw, 4 * n)[0]
            name = ioctl(fd, 0xAA, "QQII32sII", 0, 0, number, 0, b"", 0, 0)[4]
            found[name.split(b"\0")[0].decode()] = number

        def change(name, value):
            return refused(fd, 0xBA, "QIII4x", value, found[name], plane, 0)

        assert change("rotation", 4) == 0
        for wrong in (0, 2, 5, 16, 128):
            assert change("rotation", wrong) == errno.EINVAL
        assert change("zpos", 0) == errno.EINVAL  # the primary plane is the lowest for ever
        os._exit(0)

    run_client(device, client)
    image = device.screenshot()
    assert image is not None
    assert image.getpixel((639, 479)) == (3, 2, 1)

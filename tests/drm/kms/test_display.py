# ruff: noqa: F821, RUF059 - clients are other programs
"""The display: what is there, what is shown, flips at the mode's rate, atomic changes."""

import struct

import numpy
import pytest
from tests.drm.kms.test_like_linux import PROPERTIES
from tests.support.drm_client import run_client

from vc4lab.drm.device.device import DrmDevice
from vc4lab.drm.kms.formats import FORMATS, in_formats
from vc4lab.drm.kms.modes import STANDARD, mode_of, parse_modes, problem_of, refresh_of


def test_a_dumb_buffer_is_shown_with_its_colours(device: DrmDevice) -> None:
    def client() -> None:
        fd = open_card()
        crtc, fb, view, pitch = show(fd)
        view[0:4] = bytes([1, 2, 3, 0])
        view[pitch * 479 + 639 * 4 : pitch * 479 + 640 * 4] = bytes([40, 50, 60, 0])
        os._exit(0)

    run_client(device, client)
    image = device.screenshot()
    assert image is not None
    assert image.size == (640, 480)
    assert image.getpixel((0, 0)) == (3, 2, 1)
    assert image.getpixel((639, 479)) == (60, 50, 40)
    assert device.screen.frames == 1


def test_flips_come_at_the_modes_rate() -> None:
    def client() -> None:
        fd = open_card()
        crtc, fb, view, pitch = show(fd)
        began = time.monotonic()
        last = None
        for number in range(30):
            flip(fd, crtc, fb, number)
            kind, user, sequence, where = events(fd)[0]
            assert (kind, user, where) == (2, number, crtc)
            assert last is None or 0 < sequence - last < 10
            last = sequence
        print(time.monotonic() - began)

    with DrmDevice(threads=1) as device:
        seconds = float(run_client(device, client))
    assert 29 / 60.0 <= seconds < 10


def test_a_flip_before_the_last_one_is_through_is_busy() -> None:
    def client() -> None:
        fd = open_card()
        crtc, fb, view, pitch = show(fd)
        for _ in range(100):  # on a busy machine a vblank may come between the calls
            flip(fd, crtc, fb)
            second = refused(fd, 0xB0, "IIIIQ", crtc, fb, 1, 0, 0)
            came = 0
            while came < 1 + (not second):
                came += len(events(fd))
            if second:
                break
        assert second == errno.EBUSY
        flip(fd, crtc, fb)
        events(fd)
        assert refused(fd, 0xB0, "IIIIQ", crtc, 999, 1, 0, 0) == errno.ENOENT
        assert refused(fd, 0xB0, "IIIIQ", 999, fb, 1, 0, 0) == errno.ENOENT
        assert refused(fd, 0xB0, "IIIIQ", crtc, fb, 8, 0, 0) == errno.EINVAL

    with DrmDevice(threads=1) as device:
        run_client(device, client)


def test_programs_end_after_so_many_frames(device: DrmDevice) -> None:
    def client() -> None:
        fd = open_card()
        crtc, fb, view, pitch = show(fd)
        number = 0
        while True:
            number += 1
            view[0] = number
            flip(fd, crtc, fb)
            events(fd)

    source = client
    device.stop_after = 5
    device.run, run = lambda program, **o: run(program, frames=5, **o), device.run  # type: ignore[method-assign]
    run_client(device, source, expect=None)
    assert device.screen.frames >= 5
    image = device.screenshot()
    assert image is not None
    assert image.getpixel((0, 0)) == (0, 0, 4)


def test_vblanks_are_counted_and_waited_for() -> None:
    def client() -> None:
        fd = open_card()
        assert refused(fd, 0x3A, "IIqq", 1, 1, 0, 0) == errno.EINVAL
        crtc, fb, view, pitch = show(fd)
        began = time.monotonic()
        first = ioctl(fd, 0x3A, "IIqq", 1, 0, 0, 0)[1]
        later = ioctl(fd, 0x3A, "IIqq", 1, 6, 0, 0)
        assert later[1] - first >= 6
        assert 0.05 < time.monotonic() - began < 5
        ioctl(fd, 0x3A, "IIqq", 1 | 0x4000000, 1, 4711, 0)
        assert events(fd)[0][:2] == (1, 4711)

    with DrmDevice(threads=1) as device:
        run_client(device, client)


def test_a_mode_larger_than_its_buffer_and_others_are_refused(device: DrmDevice) -> None:
    def client() -> None:
        fd = open_card()
        crtc, connector, encoder = resources(fd)
        listed = modes(fd, connector)
        assert [(m[1], m[6]) for m in listed][:2] == [(1280, 720), (1920, 1080)]
        handle, pitch, size = dumb(fd, 640, 480)
        fb = add_fb(fd, 640, 480, pitch, handle)

        def gives(mode, fb=fb, connector=connector, crtc=crtc):
            try:
                set_crtc(fd, crtc, connector, fb, mode)
            except OSError as error:
                return error.errno
            return 0

        small = next(m for m in listed if m[1] == 640)
        assert gives(listed[0]) == errno.ENOSPC
        assert gives(small, fb=99) == errno.ENOENT
        assert gives(small, crtc=99) == errno.ENOENT
        assert gives(small, connector=crtc) == errno.ENOENT
        assert gives((*small[:4], 0, *small[5:])) == errno.EINVAL
        assert gives((0xFFFFFFFF, *small[1:4], 65535, *small[5:])) in (0, errno.EINVAL)
        assert gives(small) == 0
        assert refused(fd, 0xAE, "7I", 0, 640, 480, 100, 32, 24, handle) == errno.EINVAL
        assert refused(fd, 0xAE, "7I", 0, 640, 481, pitch, 32, 24, handle) == errno.EINVAL
        assert refused(fd, 0xAE, "7I", 0, 640, 480, pitch, 8, 8, handle) == errno.EINVAL
        assert refused(fd, 0xAE, "7I", 0, 640, 480, pitch, 32, 24, 99) == errno.ENOENT
        ioctl(fd, 0xAF, "I", fb)
        assert refused(fd, 0xAF, "I", fb) == errno.ENOENT

    run_client(device, client)


def test_atomic_changes(device: DrmDevice) -> None:
    def client() -> None:
        fd = open_card()
        ioctl(fd, 0x0D, "QQ", 3, 1, direction=1)
        crtc, connector, encoder = resources(fd)
        mode = next(m for m in modes(fd, connector) if m[1] == 640)
        held, place = buffer(struct.pack("<" + MODE, *mode))
        blob = ioctl(fd, 0xBD, "QII", place, 68, 0)[2]
        planes, there = buffer(bytes(64))
        count = ioctl(fd, 0xB5, "QI4x", there, 16)[1]
        planes = struct.unpack_from(f"<{count}I", planes.raw)

        def properties(thing):
            ids, ids_at = buffer(bytes(256))
            values, values_at = buffer(bytes(512))
            count = ioctl(fd, 0xB9, "QQIII4x", ids_at, values_at, 64, thing, 0)[2]
            found = {}
            for n in range(count):
                number = struct.unpack_from("<I", ids.raw, 4 * n)[0]
                value = struct.unpack_from("<Q", values.raw, 8 * n)[0]
                name = ioctl(fd, 0xAA, "QQII32sII", 0, 0, number, 0, b"", 0, 0)[4]
                found[name.split(b"\0")[0].decode()] = number, value
            return found

        table = {thing: properties(thing) for thing in (crtc, connector, *planes)}
        primary = next(p for p in planes if table[p]["type"][1] == 1)

        def change(flags, *changes):
            things = list(dict.fromkeys(thing for thing, _, _ in changes))
            ordered = [c for thing in things for c in changes if c[0] == thing]
            keep = [
                buffer(struct.pack(f"<{len(things)}I", *things)),
                buffer(struct.pack(f"<{len(things)}I", *[sum(c[0] == t for c in changes) for t in things])),
                buffer(struct.pack(f"<{len(ordered)}I", *[table[c[0]][c[1]][0] for c in ordered])),
                buffer(struct.pack(f"<{len(ordered)}Q", *[c[2] for c in ordered])),
            ]
            places = [p for _, p in keep]
            return refused(fd, 0xBC, "IIQQQQQQ", flags, len(things), *places, 0, 55)

        handle, pitch, size = dumb(fd, 640, 480)
        view = map_dumb(fd, handle, size)
        view[0:4] = bytes([7, 8, 9, 0])
        fb = add_fb(fd, 640, 480, pitch, handle)
        on = [
            (crtc, "MODE_ID", blob),
            (crtc, "ACTIVE", 1),
            (connector, "CRTC_ID", crtc),
            (primary, "FB_ID", fb),
            (primary, "CRTC_ID", crtc),
            (primary, "SRC_W", 640 << 16),
            (primary, "SRC_H", 480 << 16),
            (primary, "CRTC_W", 640),
            (primary, "CRTC_H", 480),
        ]
        assert change(0, *on) == errno.EINVAL  # without ALLOW_MODESET
        assert change(0x100 | 0x400, *on) == 0
        assert properties(crtc)["ACTIVE"][1] == 0  # it was a test
        assert change(0x400, *on) == 0
        assert properties(crtc)["ACTIVE"][1] == 1
        assert change(0x200 | 1, (primary, "FB_ID", fb)) == 0
        assert events(fd)[0][:2] == (2, 55)
        fence, at = buffer(struct.pack("<i", -5))
        assert change(0x200, (primary, "FB_ID", fb), (crtc, "OUT_FENCE_PTR", at)) == 0
        number = struct.unpack("<i", fence.raw)[0]
        poll = select.poll()
        poll.register(number, select.POLLIN)
        assert poll.poll(60_000)
        assert change(0, (primary, "IN_FENCE_FD", number)) == 0
        assert change(0, (primary, "IN_FENCE_FD", 0)) == errno.EINVAL
        assert change(0, (primary, "FB_ID", 9999)) == errno.EINVAL
        assert change(0, (primary, "SRC_W", 641 << 16)) == errno.ENOSPC
        assert change(0, (primary, "type", 1)) == errno.EINVAL
        assert change(0, (primary, "FB_ID", 0)) == errno.EINVAL
        assert change(0x800, (primary, "FB_ID", fb)) == errno.EINVAL
        assert change(0x100 | 1, (primary, "FB_ID", fb)) == errno.EINVAL  # a test has no event
        os._exit(0)

    run_client(device, client)
    image = device.screenshot()
    assert image is not None
    assert image.getpixel((0, 0)) == (9, 8, 7)


def test_a_cursor_lies_over_the_picture(device: DrmDevice) -> None:
    def client() -> None:
        fd = open_card()
        crtc, fb, view, pitch = show(fd)
        view[:] = bytes([10, 10, 10, 0]) * (len(view) // 4)
        handle, _, size = dumb(fd, 64, 64)
        cursor = map_dumb(fd, handle, size)
        cursor[:] = bytes([0, 0, 0, 0]) * (64 * 64)
        for y in range(8):
            cursor[256 * y : 256 * y + 32] = bytes([0, 0, 255, 255]) * 8
        ioctl(fd, 0xA3, "IIiiIII", 3, crtc, 100, -4, 64, 64, handle)
        assert refused(fd, 0xA3, "IIiiIII", 1, crtc, 0, 0, 65, 64, handle) == errno.EINVAL
        os._exit(0)

    run_client(device, client)
    image = device.screenshot()
    assert image is not None
    pixels = numpy.asarray(image)
    assert (pixels[0:4, 100:108] == (255, 0, 0)).all()
    assert (pixels[4:, :] == 10).all()
    assert (pixels[:, :100] == 10).all()


def test_in_formats_names_every_format_with_its_modifiers() -> None:
    data = in_formats()
    version, _, count, place, modifiers, where = struct.unpack_from("<IIIIII", data)
    assert (version, count, modifiers) == (1, len(FORMATS), 2)
    assert set(struct.unpack_from(f"<{count}I", data, place)) == set(FORMATS)
    codes = struct.unpack_from(f"<{count}I", data, place)
    tiled = [code for n, code in enumerate(codes) if data[where + n // 8] >> n % 8 & 1]
    assert {FORMATS[code].name for code in tiled} == {
        *("XR24", "AR24", "XB24", "AB24", "RG16", "BG16", "XR15", "AR15")
    }
    assert struct.unpack_from("<QIIQ", data, where + 24) == ((1 << count) - 1, 0, 0, 0)
    assert len(data) == where + 2 * 24


def test_modes() -> None:
    for mode in (*STANDARD, mode_of(1360, 768), mode_of(320, 240, 75)):
        values = mode.values()
        assert problem_of(values) is None
        assert abs(refresh_of(values) - mode.refresh) < 1
    assert [(m.width, m.height, m.refresh) for m in parse_modes("800x600, 720x576@50")] == [
        (800, 600, 60),
        (720, 576, 50),
    ]
    for text in ("", "big", "0x0", "99999x99", "800x600@0"):
        with pytest.raises(ValueError, match=r"mode|up to"):
            parse_modes(text)


def test_a_cursor_waits_for_a_change_of_the_mode_and_for_no_flip() -> None:
    """As on Linux: the change's event is there when the call returns. Seen with vc4.ko in the guest
    (igt's kms_cursor_legacy, nonblocking-modeset-vs-cursor-atomic)."""

    def client() -> None:
        fd = open_card()
        planes = enable(fd)
        crtc, fb, view, pitch = show(fd)
        ids, primary = properties(fd, crtc), properties(fd, planes[0])
        handle = dumb(fd, 64, 64)[0]

        def cursor(flags=3):
            ioctl(fd, 0xA3, "IIiiIII", flags, crtc, 5, 5, 64, 64, handle)

        def waits():
            return bool(select.select([fd], [], [], 0)[0])

        for _ in range(5):
            for active in (0, 1):
                assert atomic(fd, {crtc: [(ids["ACTIVE"], active)]}, 0x601) == 0
                cursor()
                assert waits(), "the event of the change is there"
                assert len(events(fd)) == 1
        flip(fd, crtc, fb)
        cursor(2)
        assert not waits(), "a flip of another plane is not waited for"
        assert len(events(fd)) == 1
        atomic(fd, {planes[0]: [(primary["FB_ID"], fb)]}, 0x201)
        cursor(2)
        assert not waits()
        assert len(events(fd)) == 1

    with DrmDevice(threads=1) as device:
        run_client(device, client, helpers=PROPERTIES)

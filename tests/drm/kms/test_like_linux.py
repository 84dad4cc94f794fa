# ruff: noqa: F821, PT017, RUF059 - clients are other programs
"""Answers of Linux's DRM core and vc4.ko (6.1) to calls that are wrong, or seem to be."""

import time
from collections.abc import Callable

import pytest
from tests.support.drm_client import run_client

from vc4lab.drm.device.device import DrmDevice

PROPERTIES = '''
FB2 = "IIIII4I4I4I4xQQQQ"

def fb2(width, height, code, handles, pitches, offsets=(), modifiers=(), flags=0):
    rows = [list(row) + [0] * (4 - len(row)) for row in (handles, pitches, offsets, modifiers)]
    return 0, width, height, int.from_bytes(code, "little"), flags, *sum(rows, [])

def no_fb(fd, *args, **more):
    return refused(fd, 0xB8, FB2, *fb2(*args, **more))

def properties(fd, number, kind=0):
    """id by name"""
    held, place = buffer(bytes(4 * 64 + 8 * 64))
    count = ioctl(fd, 0xB9, "QQIII4x", place, place + 256, 64, number, kind)[2]
    found = {}
    for prop in struct.unpack_from(f"<{count}I", held.raw):
        name = ioctl(fd, 0xAA, "QQII32sII", 0, 0, prop, 0, b"", 0, 0)[4]
        found[name.rstrip(bytes(1)).decode()] = prop
    return found

def value(fd, number, wanted):
    held, place = buffer(bytes(4 * 64 + 8 * 64))
    count = ioctl(fd, 0xB9, "QQIII4x", place, place + 256, 64, number, 0)[2]
    ids = struct.unpack_from(f"<{count}I", held.raw)
    return struct.unpack_from(f"<{count}Q", held.raw, 256)[ids.index(wanted)]

def set_property(fd, number, prop, new, kind=0):
    return refused(fd, 0xBA, "QIII4x", new, prop, number, kind)

def atomic(fd, objects, flags=0x400, user=0):
    """objects: number -> [(property, value)]; the errno"""
    pairs = [pair for many in objects.values() for pair in many]
    arrays = (
        struct.pack(f"<{len(objects)}I", *objects),
        struct.pack(f"<{len(objects)}I", *map(len, objects.values())),
        struct.pack(f"<{len(pairs)}I", *[prop for prop, _ in pairs]),
        struct.pack(f"<{len(pairs)}Q", *[new for _, new in pairs]),
    )
    kept = [buffer(array or bytes(8)) for array in arrays]
    places = [place for _, place in kept]
    return refused(fd, 0xBC, "IIQQQQQQ", flags, len(objects), *places, 0, user)

def enable(fd):
    for capability in (2, 3):
        ioctl(fd, 0x0D, "QQ", capability, 1, direction=1)
    held, place = buffer(bytes(64))
    count = ioctl(fd, 0xB5, "QI", place, 16)[1]
    return struct.unpack_from(f"<{count}I", held.raw)
'''


def test_frame_buffers_are_refused_for_what_linux_refuses(device: DrmDevice) -> None:
    def client() -> None:
        fd = open_card()
        handle, pitch, size = dumb(fd, 640, 480)
        tiled = 0x0700000000000001
        plain = (640, 480, b"XR24", [handle], [pitch])
        assert no_fb(fd, *plain) == 0
        assert no_fb(fd, 640, 480, b"XR24", [0], [pitch]) == errno.EINVAL
        assert no_fb(fd, 640, 480, b"XR24", [99], [pitch]) == errno.ENOENT
        assert no_fb(fd, *plain, modifiers=[tiled]) == errno.EINVAL
        assert no_fb(fd, *plain, modifiers=[0, 1], flags=2) == errno.EINVAL
        assert no_fb(fd, *plain, modifiers=[0, 1]) == errno.EINVAL
        assert no_fb(fd, *plain, modifiers=[1234], flags=2) == errno.EINVAL
        assert no_fb(fd, *plain, flags=4) == errno.EINVAL
        assert no_fb(fd, *plain, flags=1) == 0, "interlaced is only a word"
        # clients from before modifiers did not clear what the format has not
        rest = (640, 480, b"XR24", [handle, 7, 8], [pitch, 5], [0, 3])
        assert no_fb(fd, *rest) == 0
        assert no_fb(fd, *rest, flags=2) == errno.EINVAL
        assert no_fb(fd, 640, 480, b"XR24", [handle], [2559]) == errno.EINVAL
        assert no_fb(fd, 640, 480, b"XR24", [handle], [0xFFFFFFF0]) == errno.ERANGE
        assert no_fb(fd, 640, 481, b"XR24", [handle], [pitch]) == errno.EINVAL
        assert no_fb(fd, 0, 480, b"XR24", [handle], [pitch]) == errno.EINVAL
        assert no_fb(fd, 640, 480, b"ZZZZ", [handle], [pitch]) == errno.EINVAL

    run_client(device, client, helpers=PROPERTIES)


def test_each_handle_of_a_frame_buffers_buffer_is_a_new_one(device: DrmDevice) -> None:
    def client() -> None:
        fd = open_card()
        handle, pitch, size = dumb(fd, 640, 480)
        fb = add_fb(fd, 640, 480, pitch, handle)
        one, two = (ioctl(fd, 0xAD, "IIIIIII", fb, *[0] * 6)[6] for _ in range(2))
        three = ioctl(fd, 0xCE, FB2, fb, *[0] * 20)[5]
        assert len({handle, one, two, three}) == 4
        for other in (one, two, three):
            map_dumb(fd, other, size)[0:4] = b"same"
            ioctl(fd, 0x09, "II", other, 0, direction=1)
            assert refused(fd, 0x09, "II", other, 0, direction=1) == errno.EINVAL
        assert map_dumb(fd, handle, size)[0:4] == b"same"

        # an import gives the handle that PRIME knows, which is one that was exported
        dma = export(fd, handle)
        assert imported(fd, dma) == handle
        other = open_card()
        theirs = imported(other, dma)
        assert imported(other, dma) == theirs
        ioctl(fd, 0x09, "II", handle, 0, direction=1)
        fresh = imported(fd, dma)
        assert imported(fd, dma) == fresh
        assert map_dumb(fd, fresh, size)[0:4] == b"same"

        # two planes in one buffer: one new handle; only GETFB2 can say that
        planes = 640, 480, b"NV12", [fresh, fresh], [640, 640], [0, 640 * 480]
        nv12 = ioctl(fd, 0xB8, FB2, *fb2(*planes))[0]
        assert refused(fd, 0xAD, "IIIIIII", nv12, *[0] * 6) == errno.EINVAL
        found = ioctl(fd, 0xCE, FB2, nv12, *[0] * 20)
        assert found[5] == found[6] != fresh
        assert found[9:13] == (640, 640, 0, 0)
        assert found[13:17] == (0, 640 * 480, 0, 0)
        assert no_fb(fd, 640, 480, b"NV12", [fresh], [640]) == errno.EINVAL
        assert no_fb(fd, 640, 3000, b"NV12", [fresh, fresh], [640, 640]) == errno.EINVAL
        crtc, connector, _ = resources(fd)
        mode = next(m for m in modes(fd, connector) if (m[1], m[6]) == (640, 480))
        try:
            set_crtc(fd, crtc, connector, nv12, mode)
        except OSError as error:
            assert error.errno == errno.EINVAL, "no plane shows it"
        else:
            raise AssertionError("YUV on the screen")
        ioctl(fd, 0xAF, "I", nv12)

    run_client(device, client, helpers=PROPERTIES)


def test_properties_of_atomic_clients_by_the_older_call(device: DrmDevice) -> None:
    def client() -> None:
        fd = open_card()
        crtc, fb, _, _ = show(fd)
        primary, overlay, cursor = enable(fd)
        of_crtc, of_plane = properties(fd, crtc), properties(fd, primary)
        assert set_property(fd, crtc, of_crtc["ACTIVE"], 1) == 0
        assert set_property(fd, primary, of_crtc["ACTIVE"], 1) == errno.EINVAL
        assert set_property(fd, primary, of_plane["IN_FORMATS"], 1) == errno.EINVAL
        assert set_property(fd, crtc, of_crtc["ACTIVE"], 2) == errno.EINVAL
        assert set_property(fd, crtc, of_crtc["MODE_ID"], 9999) == errno.EINVAL
        assert set_property(fd, fb, of_crtc["ACTIVE"], 1) == errno.EINVAL
        assert set_property(fd, 9999, of_crtc["ACTIVE"], 1) == errno.ENOENT
        assert set_property(fd, overlay, properties(fd, overlay)["zpos"], 3) == 0
        # the primary plane has a property of that name, but another one
        assert set_property(fd, primary, properties(fd, overlay)["zpos"], 3) == errno.EINVAL
        assert atomic(fd, {primary: [(properties(fd, overlay)["zpos"], 3)]}) == errno.ENOENT
        assert atomic(fd, {primary: [(of_crtc["ACTIVE"], 1)]}) == errno.ENOENT
        for kind in (0, 0xFBFBFBFB):
            assert refused(fd, 0xB9, "QQIII4x", 0, 0, 0, fb, kind) == errno.EINVAL
        assert refused(fd, 0xB9, "QQIII4x", 0, 0, 0, fb, 0xCCCCCCCC) == errno.ENOENT
        assert refused(fd, 0xB9, "QQIII4x", 0, 0, 0, 9999, 0) == errno.ENOENT

        held, place = buffer(b"a blob!!")
        blob = ioctl(fd, 0xBD, "QII", place, 8, 0)[2]
        assert refused(fd, 0xB9, "QQIII4x", 0, 0, 0, blob, 0) == errno.EINVAL
        assert set_property(fd, blob, of_crtc["ACTIVE"], 1) == errno.EINVAL
        other = open_card()
        assert refused(other, 0xBE, "I", blob) == errno.EPERM
        assert refused(other, 0xBE, "I", 9999) == errno.ENOENT
        ioctl(fd, 0xBE, "I", blob)

    run_client(device, client, helpers=PROPERTIES)


def test_atomic_changes_that_linux_refuses(device: DrmDevice) -> None:
    def client() -> None:
        fd = open_card()
        crtc, fb, _, _ = show(fd)
        _, connector, _ = resources(fd)
        primary, overlay, cursor = enable(fd)
        of_crtc, of_plane = properties(fd, crtc), properties(fd, primary)
        assert atomic(fd, {}) == 0
        assert atomic(fd, {}, 0x401) == errno.EINVAL, "an event that no CRTC sends"
        assert atomic(fd, {overlay: [(of_plane["alpha"], 1)]}, 0x401) == errno.EINVAL
        assert atomic(fd, {primary: [(of_plane["alpha"], 0xFFFF)]}, 0x401, user=7) == 0
        assert events(fd)[0][1] == 7
        assert atomic(fd, {crtc: [(of_crtc["ACTIVE"], 1)]}, 0x401) == 0
        assert len(events(fd)) == 1
        assert atomic(fd, {primary: [(of_plane["IN_FENCE_FD"], 999)]}) == errno.EINVAL
        # what is wrong first decides; what comes after is not looked at
        held, place = buffer(struct.pack("<II", crtc, 9999) + bytes(8 * 64))
        counts, there = buffer(bytes(8 * 64))
        arguments = ("IIQQQQQQ", 0, 0x3FFFFFFF, place, there, 0, 0, 0, 0)
        assert refused(fd, 0xBC, *arguments) == errno.ENOENT
        assert refused(fd, 0xBC, "IIQQQQQQ", 0, 1, (1 << 64) - 4, there, 0, 0, 0, 0) == errno.EFAULT
        assert refused(fd, 0xBC, "IIQQQQQQ", 0, 1, place, 0, 0, 0, 0, 0) == errno.EFAULT

        off = {
            crtc: [(of_crtc["ACTIVE"], 0), (of_crtc["MODE_ID"], 0)],
            connector: [(properties(fd, connector)["CRTC_ID"], 0)],
        }
        mode = value(fd, crtc, of_crtc["MODE_ID"])
        data, there = buffer(bytes(68))
        ioctl(fd, 0xAC, "IIQ", mode, 68, there)
        blob = ioctl(fd, 0xBD, "QII", there, 68, 0)[2]
        assert atomic(fd, off) == 0, "a plane may stay on a CRTC that is off"
        assert refused(fd, 0xB0, "IIIIQ", crtc, fb, 1, 0, 0) == errno.EINVAL, "a flip without a mode"
        assert atomic(fd, {primary: [(of_plane["alpha"], 0xFFFF)]}, 0x401) == errno.EINVAL
        on = {
            crtc: [(of_crtc["ACTIVE"], 1), (of_crtc["MODE_ID"], blob)],
            connector: [(properties(fd, connector)["CRTC_ID"], crtc)],
        }
        assert atomic(fd, on) == 0
        frozen = bytearray(data.raw)
        frozen[0:4] = bytes(4)
        kept, there = buffer(frozen)
        still = ioctl(fd, 0xBD, "QII", there, 68, 0)[2]
        assert atomic(fd, {crtc: [(of_crtc["MODE_ID"], still)]}) == errno.EINVAL, "no clock"

    run_client(device, client, helpers=PROPERTIES)


def test_a_file_has_room_for_128_events(make_device: Callable[..., DrmDevice]) -> None:
    """Promised and unread together, as many as the kernel keeps 4096 bytes for."""

    def client() -> None:
        fd = open_card()
        crtc, fb, _, _ = show(fd)
        vblank = "IIqq"
        for number in range(127):
            ioctl(fd, 0x3A, vblank, 0x4000001, 3, number, 0)
        ioctl(fd, 0x3C, "IIQQ", crtc, 1, 3, 127)
        assert refused(fd, 0x3A, vblank, 0x4000001, 1, 0, 0) == errno.ENOMEM
        assert refused(fd, 0x3C, "IIQQ", crtc, 1, 1, 0) == errno.ENOMEM
        assert refused(fd, 0xB0, "IIIIQ", crtc, fb, 1, 0, 0) == errno.ENOMEM
        libc = ctypes.CDLL(None, use_errno=True)
        libc.read.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_ulong]
        for place in ((1 << 64) - 1, (1 << 47), 16):  # nothing is lost
            select.select([fd], [], [])
            assert (libc.read(fd, place, 4096), ctypes.get_errno()) == (-1, errno.EFAULT)
        data = b""
        while len(data) < 4096:
            data += os.read(fd, 8192)
        kinds = [struct.unpack_from("<IIQ", data, place) for place in range(0, 4096, 32)]
        assert [user for _, _, user in kinds] == list(range(128))
        assert {kind for kind, _, _ in kinds} == {1, 3}
        assert (kinds[-1][0], kinds[-1][1]) == (3, 32)
        seconds, sequence = struct.unpack_from("<qQ", data, 4096 - 16)
        assert sequence >= struct.unpack_from("<I", data, 24)[0]
        assert refused(fd, 0x3A, vblank, 0x4000001, 1, 0, 0) == 0

    run_client(make_device(paced=True), client)


def test_sequences_and_kinds_of_vblanks(make_device: Callable[..., DrmDevice]) -> None:
    def client() -> None:
        fd = open_card()
        crtc, _, _ = resources(fd)
        sequence = "IIQq"
        assert refused(fd, 0x3B, sequence, crtc, 0, 0, 0) == errno.EINVAL, "the CRTC is off"
        assert refused(fd, 0x3C, "IIQQ", crtc, 1, 1, 0) == errno.EINVAL
        show(fd)
        assert refused(fd, 0x3B, sequence, 9999, 0, 0, 0) == errno.ENOENT
        assert refused(fd, 0x3C, "IIQQ", 9999, 0, 0, 0) == errno.ENOENT
        assert refused(fd, 0x3C, "IIQQ", crtc, 4, 0, 0) == errno.EINVAL
        _, active, now, moment = ioctl(fd, 0x3B, sequence, crtc, 0, 0, 0)
        assert active == 1
        assert abs(time.monotonic_ns() - moment) < 5e9
        for kind in (0x11, 0x20000001, 0x40000001, 0x80000001, 0x41):
            assert refused(fd, 0x3A, "IIqq", kind, 0, 0, 0) == errno.EINVAL, hex(kind)
        kind, later, seconds, micro = ioctl(fd, 0x3A, "IIqq", 1, 2, 0, 0)
        assert kind == 0, "the answer is absolute"
        assert later >= now + 2
        # what has passed is answered at once, with the sequence that is
        assert ioctl(fd, 0x3C, "IIQQ", crtc, 0, now, 5)[2] >= later
        assert struct.unpack("<IIQqQ", os.read(fd, 32))[::2][1] == 5
        missed = ioctl(fd, 0x3C, "IIQQ", crtc, 2, now, 6)[2]
        assert struct.unpack("<IIQqQ", os.read(fd, 32))[4] >= missed > now
        begun = time.monotonic()
        assert refused(fd, 0x3A, "IIqq", 1, 1000, 0, 0) == errno.EBUSY
        assert 2.9 < time.monotonic() - begun < 10

    run_client(make_device(paced=True), client)


def test_a_flip_is_seen_with_the_vblank_that_programs_wait_for(make_device: Callable[..., DrmDevice]) -> None:
    """Who waited for the vblank can flip again, also where something was drawn into in between."""

    def client() -> None:
        fd = open_card()
        crtc, fb, _, _ = show(fd)
        for number in range(30):
            if number % 3 == 0:
                ioctl(fd, 0xB1, "IIIIQ", fb, 0, 0, 0, 0)
            flip(fd, crtc, fb, flags=0)
            ioctl(fd, 0x3A, "IIqq", 1, 1, 0, 0)
        other = open_card()
        assert refused(other, 0xB1, "IIIIQ", fb, 0, 0, 0, 0) == errno.EACCES

    run_client(make_device(paced=True), client)


def test_calls_that_linux_knows_and_does_not_know(make_device: Callable[..., DrmDevice]) -> None:
    def client() -> None:
        fd = open_card()
        held = bytearray(b"x" * 248)
        fcntl.ioctl(fd, number(0x06, 248, READ), held)
        assert held == bytes(248), "statistics are empty"
        assert refused(fd, 0xCB, "QQII", 0, 0, 0, 0) == errno.EOPNOTSUPP, "time lines"
        assert refused(fd, 0xD5, "Q", 0) == errno.EINVAL
        print(ioctl(fd, 0x05, "iiQQQQ", 0, 0, 0, 0, 0, 0)[1:4] == (1, os.getpid(), 65534))

    assert run_client(make_device(), client) == "True\n"


def test_a_connector_is_forced_by_its_file_in_sysfs(device: DrmDevice) -> None:
    def client() -> None:
        fd = open_card()
        _, connector, _ = resources(fd)
        place = "/sys/class/drm/card0-HDMI-A-1/status"

        def write(text):
            file = os.open(place, os.O_WRONLY)
            os.write(file, text)
            os.close(file)

        def seen():
            out = ioctl(fd, 0xA7, "QQQQIIIIIIIIIIII", *[0] * 8, connector, *[0] * 7)
            return out[11], out[4]

        if os.geteuid():
            return
        plugged = seen()
        assert plugged[0] == 1
        for text, expected in (
            (b"off", (2, 0)), (b"on", plugged), (b"nonsense", plugged), (b"off\n", (2, 0)),
            (b"detect\n", plugged), (b"on-digital\n", plugged),
        ):  # fmt: skip
            write(text)
            assert seen() == expected, text
            with open(place) as file:
                assert file.read() == ("disconnected\n" if expected[0] == 2 else "connected\n")
        print("done")

    assert run_client(device, client, helpers=PROPERTIES) in ("done\n", "")
    assert device.screen.offered == device.screen.modes
    device.disconnect()
    assert [mode.width for mode in device.screen.offered] == [1024, 800, 640], "forced, no screen"


def test_events_are_of_the_vblank_that_was_asked_for(
    make_device: Callable[..., DrmDevice], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However late the device looks: hardware does not miss one, and has no time of the future."""

    def client() -> None:
        fd = open_card()
        crtc, fb, _, _ = show(fd)
        first = ioctl(fd, 0x3A, "IIqq", 1, 1, 0, 0)[1] + 20  # all are asked for before it
        for number in range(1, 21):
            ioctl(fd, 0x3A, "IIqq", 0x4000000, first + number, number, 0)
        flip(fd, crtc, fb, user=99)
        seen = {}
        while len(seen) < 21:
            data = os.read(fd, 4096)
            now = time.monotonic()
            for _, _, user, seconds, micro, sequence, _ in struct.iter_unpack("<IIQIIII", data):
                seen[user] = sequence, seconds + micro / 1e6
                assert seen[user][1] <= now + 1e-5
        flipped = seen.pop(99)
        assert [sequence for sequence, _ in seen.values()] == [first + n for n in range(1, 21)]
        times = [moment for _, moment in seen.values()]
        steps = [times[n + 1] - times[n] for n in range(19)]
        assert max(steps) - min(steps) < 3e-6, steps
        assert flipped in seen.values() or flipped[0] <= first
        handle, pitch, _ = dumb(fd, 640, 480)
        again = add_fb(fd, 640, 480, pitch, handle)
        flip(fd, crtc, again, user=7)
        ioctl(fd, 0xAF, "I", again)  # not before the flip is seen
        _, _, _, seconds, micro, _, _ = struct.unpack("<IIQIIII", os.read(fd, 32))
        assert seconds + micro / 1e6 <= time.monotonic()

    device = make_device(paced=True)
    tick, looks = device.screen.tick, []

    def late(now: float) -> None:
        """While nearly all of them are waited for, it looks only at every third vblank."""
        if len(device.screen.waiters) > 10:
            looks.append(now)
            time.sleep(0.05)
        tick(time.monotonic())

    monkeypatch.setattr(device.screen, "tick", late)
    run_client(device, client)
    assert looks

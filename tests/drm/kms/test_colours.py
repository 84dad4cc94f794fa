# ruff: noqa: F821 - clients are other programs
"""GAMMA_LUT, CTM and the older ramps, as vc4.ko of Linux 6.1 has them.

What the clients expect was seen with Debian's vc4.ko in the guest: the answers, and each picture.
"""

import struct

import numpy as np
from tests.drm.kms.test_like_linux import PROPERTIES
from tests.support.drm_client import run_client

from vc4lab.drm.device.device import DrmDevice
from vc4lab.drm.kms.colours import Colours, fits, table_of
from vc4lab.scanout.colours import Matrix

ONE, SIGN = 1 << 32, 1 << 63
COLOURS = '''
def blob(fd, data):
    held, place = buffer(data)
    return ioctl(fd, 0xBD, "QII", place, len(data), 0)[2]

def lut(values):
    """Of all three colours."""
    return b"".join(struct.pack("<4H", *[value] * 3, 0) for value in values)

def ctm(*numbers):
    words = [int(abs(n) * (1 << 32)) | (1 << 63 if n < 0 else 0) for n in numbers]
    return struct.pack("<9Q", *words)

def ramps(fd, crtc, values, nr=0xA5):
    """SETGAMMA or GETGAMMA: red, green and blue."""
    kept = [buffer(struct.pack("<256H", *values)) for _ in range(3)]
    ioctl(fd, nr, "IIQQQ", crtc, 256, *[place for _, place in kept])
    return [list(struct.unpack("<256H", held.raw)) for held, _ in kept]

def shown(fd, pixel=0x204080):
    """crtc, ids of its properties; the screen has one colour."""
    enable(fd)
    crtc, fb, view, pitch = show(fd)
    view[:] = struct.pack("<I", pixel) * (len(view) // 4)
    return crtc, properties(fd, crtc)
'''


def colour_of(device: DrmDevice, expected: tuple[int, int, int]) -> None:
    """The whole screen has it."""
    image = np.asarray(device.screenshot())
    assert (image == expected).all(), image[0, 0]


def test_gamma_luts_and_matrices_reach_the_screen(device: DrmDevice) -> None:
    def lut_then_matrix() -> None:
        fd = open_card()
        crtc, ids = shown(fd)
        assert value(fd, crtc, ids["GAMMA_LUT_SIZE"]) == 256
        assert "DEGAMMA_LUT" not in ids
        table = blob(fd, lut([65535 - 257 * n for n in range(256)]))
        swap = blob(fd, ctm(0, 0, 1, 1, 0, 0, 0, -0.5, 0.5))
        assert atomic(fd, {crtc: [(ids["GAMMA_LUT"], table), (ids["CTM"], swap)]}, 0) == 0
        assert value(fd, crtc, ids["GAMMA_LUT"]) == table
        ioctl(fd, 0xBE, "I", table)  # it is the CRTC's now
        assert value(fd, crtc, ids["GAMMA_LUT"]) == table
        assert refused(fd, 0xAC, "IIQ", table, 0, 0) == 0

    run_client(device, lut_then_matrix, helpers=PROPERTIES + COLOURS)
    colour_of(device, (0x7F, 0xE0, 0xE0))

    def legacy_ramps_end_the_matrix() -> None:
        fd = open_card()
        crtc, ids = shown(fd)
        assert ramps(fd, crtc, [0] * 256, 0xA4) == [[n << 8 for n in range(256)]] * 3
        assert atomic(fd, {crtc: [(ids["CTM"], blob(fd, ctm(*[0.25] * 9)))]}, 0) == 0
        ramps(fd, crtc, [n * 257 for n in range(256)])
        assert value(fd, crtc, ids["CTM"]) == 0
        assert value(fd, crtc, ids["GAMMA_LUT"]) != 0
        assert ramps(fd, crtc, [0] * 256, 0xA4) == [[n * 257 for n in range(256)]] * 3

    run_client(device, legacy_ramps_end_the_matrix, helpers=PROPERTIES + COLOURS)
    colour_of(device, (0x20, 0x40, 0x81))  # 128 * 257 to the nearest of 8 bits

    def only_a_matrix() -> None:
        fd = open_card()
        crtc, ids = shown(fd)
        assert atomic(fd, {crtc: [(ids["GAMMA_LUT"], 0)]}, 0) == 0
        assert atomic(fd, {crtc: [(ids["CTM"], blob(fd, ctm(*[0.25] * 9)))]}, 0) == 0

    run_client(device, only_a_matrix, helpers=PROPERTIES + COLOURS)
    colour_of(device, (0x38, 0x38, 0x38))
    assert not device.reporter.items


def test_values_that_the_kernel_refuses(device: DrmDevice) -> None:
    def client() -> None:
        fd = open_card()
        crtc, ids = shown(fd)

        def tried(name, data):
            return atomic(fd, {crtc: [(ids[name], blob(fd, data))]}, 0)

        assert tried("CTM", bytes(64)) == tried("CTM", bytes(80)) == errno.EINVAL
        assert tried("CTM", ctm(1, 0, 0, 0, -1, 0, 0, 0, 1)) == 0
        assert tried("CTM", struct.pack("<9Q", (1 << 32) + 1, *[0] * 8)) == errno.EINVAL
        assert tried("GAMMA_LUT", bytes(2044)) == errno.EINVAL
        assert atomic(fd, {crtc: [(ids["GAMMA_LUT"], 99999)]}, 0) == errno.EINVAL
        assert atomic(fd, {crtc: [(ids["GAMMA_LUT_SIZE"], 256)]}, 0) == errno.EINVAL
        for entries in (1, 100, 255, 257, 512):
            assert tried("GAMMA_LUT", bytes(8 * entries)) == 0, entries

    run_client(device, client, helpers=PROPERTIES + COLOURS)
    assert {item.code for item in device.reporter.items} == {"DRM-027"}


def test_colours_set_while_the_crtc_is_off_do_not_reach_the_hardware(device: DrmDevice) -> None:
    """vc4.ko writes them with the change that sets them, to a CRTC that is on."""

    def client() -> None:
        fd = open_card()
        crtc, ids = shown(fd)
        assert atomic(fd, {crtc: [(ids["ACTIVE"], 0)]}) == 0
        assert atomic(fd, {crtc: [(ids["GAMMA_LUT"], blob(fd, lut([0] * 256)))]}, 0) == 0
        assert atomic(fd, {crtc: [(ids["ACTIVE"], 1)]}) == 0

    run_client(device, client, helpers=PROPERTIES + COLOURS)
    colour_of(device, (0x20, 0x40, 0x80))

    def starts_again() -> None:
        fd = open_card()
        crtc, ids = shown(fd)
        assert atomic(fd, {crtc: [(ids["GAMMA_LUT"], blob(fd, lut([0xFFFF] * 256)))]}, 0) == 0
        assert atomic(fd, {crtc: [(ids["GAMMA_LUT"], 0)]}, 0) == 0
        assert atomic(fd, {crtc: [(ids["ACTIVE"], 0)]}) == 0
        assert atomic(fd, {crtc: [(ids["ACTIVE"], 1)]}) == 0

    run_client(device, starts_again, helpers=PROPERTIES + COLOURS)
    colour_of(device, (255, 255, 255))  # the driver loads its tables when the CRTC starts


def test_the_same_mode_in_another_blob_is_no_change_of_the_mode(device: DrmDevice) -> None:
    def client() -> None:
        fd = open_card()
        crtc, ids = shown(fd)
        mode = next(m for m in modes(fd, resources(fd)[1]) if (m[1], m[6]) == (640, 480))
        same = struct.pack("<" + MODE, *mode[:-2], 0, b"another name")
        other = struct.pack("<" + MODE, mode[0] + 500, *mode[1:])
        assert atomic(fd, {crtc: [(ids["MODE_ID"], blob(fd, same))]}, 0) == 0
        assert atomic(fd, {crtc: [(ids["MODE_ID"], blob(fd, other))]}, 0) == errno.EINVAL
        assert atomic(fd, {crtc: [(ids["MODE_ID"], blob(fd, other))]}) == 0

    run_client(device, client, helpers=PROPERTIES + COLOURS)


def test_tables_are_rounded_to_eight_bits_and_matrices_to_nine() -> None:
    colours = Colours()
    assert colours.gamma is None
    colours.set_table(struct.pack("<4H", 0x017F, 0x0180, 0xFFFF, 7))
    ramps = colours.gamma
    assert ramps is not None
    assert [ramp[:2] for ramp in ramps] == [b"\1\1", b"\2\1", b"\xff\1"]
    colours.set_matrix(struct.pack("<9Q", ONE, ONE - 1, SIGN | ONE >> 1, *[1 << 22] * 6), has_mode=True)
    assert colours.matrix == Matrix((511, 511, -256, *[0] * 6))
    assert fits(struct.pack("<9Q", *[SIGN | ONE] * 9))
    assert not fits(struct.pack("<9Q", *[0] * 8, SIGN | ONE + 1))
    ramp = struct.pack("<256H", *range(256))
    assert table_of(ramp, ramp[::-1], ramp)[:8] == struct.pack("<4H", 0, 0xFF00, 0, 0)

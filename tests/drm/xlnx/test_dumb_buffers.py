# ruff: noqa: F821, RUF059, PT018 - clients are other programs
"""Dumb buffers of the ZynqMP's display driver: flags, pitch, alignment, mapping."""

from collections.abc import Callable

import pytest
from tests.support.drm_client import run_client

from vc4lab.drm.cpu_memory.profiles import Attribute
from vc4lab.drm.device.device import DrmDevice
from vc4lab.drm.objects.memory import PAGE
from vc4lab.drm.xlnx.buffers import XlnxObject, align, is_cached, pitch_of

Make = Callable[..., DrmDevice]

CACHE = [  # flags' bits 2:1, default mode, cached
    (0b00, 0, False),
    (0b00, 1, True),
    (0b00, 7, True),
    (0b10, 0, False),
    (0b10, 1, False),
    (0b11, 0, True),
    (0b11, 1, True),
    (0b01, 0, False),
    (0b01, 1, False),
]
"""The article's table."""


@pytest.mark.parametrize(("bits", "default", "cached"), CACHE)
@pytest.mark.parametrize("scanout", [0, 1])
def test_flags_and_default_mode_choose_the_cache(bits: int, default: int, cached: bool, scanout: int) -> None:
    assert is_cached(bits << 1 | scanout, default) is cached
    assert is_cached(bits << 1 | scanout | 0xFFFFFFF8, default) is cached


def test_the_table_as_a_program_gets_it(make_device: Make) -> None:
    device = make_device(device="xlnx")

    def client() -> None:
        fd = open_card()
        for default in (0, 1):
            set_param(fd, 4, default)
            for bits in range(8):
                handle, pitch, size = dumb_of(fd, 100, 4, 32, bits)
                print(default, bits, pitch, size, flush=True)

    made = []
    inner = device.buffers.create

    def create(size: int, kind: str, *, private: bool = False) -> object:
        made.append(inner(size, kind, private=private))
        return made[-1]

    device.buffers.create = create  # type: ignore[method-assign, assignment]
    lines = run_client(device, client).split("\n")
    for target, line in zip(made, lines, strict=False):
        default, bits, pitch, size = map(int, line.split())
        assert isinstance(target, XlnxObject)
        assert target.is_cached is is_cached(bits, default)
        assert (target.attribute is Attribute.CACHED) is target.is_cached
        assert target.kind == ("scan-out" if bits & 1 else "dumb")
        assert pitch == 512  # no alignment of their own: the scan-out's for all
        assert size == 2048
        assert target.size == target.driver_size == 4096
    assert len(made) == 16


@pytest.mark.parametrize(
    ("width", "bits", "flags", "alignment", "asked", "pitch"),
    [
        (800, 32, 1, 8, 0, 3328),  # scan-out: the display's 256
        (800, 32, 0, 8, 0, 3200),
        (801, 32, 0, 8, 0, 3208),
        (800, 32, 0, 0, 0, 3328),  # no alignment: the display's
        (3, 1, 0, 1, 0, 1),
        (801, 32, 0, 8, 4000, 4000),  # what the driver would do with a pitch that it saw
        (801, 32, 0, 8, 4001, 3208),
        (801, 32, 0, 8, 3200, 3204),  # aligned but too small: no longer aligned
        (100, 32, 0, 3, 0, 400),  # ALIGN by what is no power of two, then the least
        (100, 32, 0, 0xFFFFFFFF, 0, 400),
    ],
)
def test_pitch(width: int, bits: int, flags: int, alignment: int, asked: int, pitch: int) -> None:
    assert pitch_of(width, bits, flags, alignment, asked) == pitch


def test_align_is_the_kernels() -> None:
    assert align(400, 256) == 512
    assert align(400, 3) == 400  # & ~2
    assert align(0xFFFFFFF0, 256) == 0


def test_pitch_and_size_of_the_caller_count_for_nothing(make_device: Make) -> None:
    """Linux zeroes them before the driver sees them."""
    device = make_device(device="xlnx", params={"dumb_alignment_size": 8})

    def client() -> None:
        fd = open_card()
        assert dumb_of(fd, 801, 10, 32, 0, pitch=4000, size=1 << 20)[1:] == (3208, 32080)
        assert dumb_of(fd, 801, 10, 32, 1)[1:] == (3328, 33280)
        assert dumb_of(fd, 801, 10, 16, 0)[1:] == (1608, 16080)
        for width, height, bpp in ((0, 1, 32), (1, 0, 32), (1, 1, 0), (1, 1, 65), (1 << 17, 1, 32)):
            assert refused(fd, 0xB2, "IIIIIIQ", height, width, bpp, 0, 0, 0, 0) == errno.EINVAL
        assert refused(fd, 0xB2, "IIIIIIQ", 65536, 65536, 64, 0, 0, 0, 0) == errno.ENOMEM

    run_client(device, client)


def test_mapping(make_device: Make) -> None:
    device = make_device(device="xlnx")

    def client() -> None:
        fd = open_card()
        handle, pitch, size = dumb_of(fd, 256, 5, 32, 6)
        assert size == 5120
        offset = ioctl(fd, 0xB3, "IIQ", handle, 0, 0)[2]
        view = mmap.mmap(fd, size, offset=offset)
        assert len(view) == 5120 and view[:] == bytes(5120)

        def gives(length, place, file=fd):
            try:
                mmap.mmap(file, length, offset=place)
            except OSError as error:
                return error.errno
            return 0

        assert gives(8192, offset) == 0
        assert gives(8193, offset) == errno.EINVAL  # the kernel refuses; no SIGBUS to be had
        assert gives(4096, offset + 4096) == errno.EINVAL  # only from the beginning on
        assert gives(4096, 0) == errno.EINVAL

    run_client(device, client)


def test_a_mapping_of_a_dma_buf_shows_its_beginning(make_device: Make) -> None:
    """The fault handler counts from the start of the mapping, whatever the offset."""
    device = make_device(device="xlnx")

    def client() -> None:
        fd = open_card()
        handle, pitch, size = dumb_of(fd, 1024, 4, 32, 0)
        view = map_dumb(fd, handle, size)
        for page in range(4):
            view[4096 * page] = page + 1
        dma_buf = export(fd, handle)
        assert os.lseek(dma_buf, 0, os.SEEK_END) == 16384
        second = mmap.mmap(dma_buf, 4096, offset=8192)
        print(second[0])

    assert run_client(device, client).strip() == "1"


def fault(target: XlnxObject, offset: int) -> int | None:
    """Page frame for the first touch `offset` bytes into a mapping; None is SIGBUS."""
    if target.driver_size - offset < PAGE:
        return None
    return (target.address + offset) // PAGE


def test_the_fault_handlers_rule() -> None:
    target = XlnxObject(0x1000_0000, 8192, 5120, "dumb")
    assert [fault(target, offset) for offset in (0, 4095, 4096)] == [0x10000, 0x10000, 0x10001]
    assert fault(target, 4097) is None  # less than a page is left: SIGBUS
    assert fault(target, 8192) is None
    target.driver_size = 0  # as an imported one's
    assert fault(target, 0) is None

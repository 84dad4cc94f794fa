# ruff: noqa: F821, F841, RUF059 - clients are other programs
"""Buffers between the display's driver and the GPU's, in every direction."""

from collections.abc import Callable

import pytest
from tests.support.drm_client import run_client

from vc4lab.drm.cpu_memory.profiles import Attribute
from vc4lab.drm.device.device import DrmDevice
from vc4lab.drm.objects.gem import contiguous_size
from vc4lab.drm.uapi.results import Refused
from vc4lab.drm.xlnx.buffers import XlnxBuffers, XlnxImport

Make = Callable[..., DrmDevice]


def test_every_direction(make_device: Make) -> None:
    device = make_device(device="xlnx")

    def client() -> None:
        show, gpu, again = open_card(), open_card("renderD128"), open_card()

        # display to GPU: what is drawn there is the display's memory
        handle, pitch, size = dumb_of(show, 64, 64, 32, 6)
        view = map_dumb(show, handle, size)
        dma_buf = export(show, handle)
        there = imported(gpu, dma_buf)
        assert imported(gpu, dma_buf) == there, "the same handle again"
        place = ioctl(gpu, 0x44, "IIQ", there, 0, 0)[2]
        mmap.mmap(gpu, size, offset=place)[:4] = b"draw"
        assert view[:4] == b"draw"

        # back to the display: its own object
        back = export(gpu, there)
        assert imported(show, back) == handle
        second = imported(again, back)
        ioctl(again, 0xB3, "IIQ", second, 0, 0)  # it can be mapped there: it is no import

        # GPU to display
        bo = create_bo(gpu, 65536)
        on_show = imported(show, export(gpu, bo))
        map_bo(gpu, bo, 65536)[100:104] = b"bobo"
        assert refused(show, 0xB3, "IIQ", on_show, 0, 0) == errno.EINVAL
        offset = ioctl(gpu, 0x44, "IIQ", bo, 0, 0)[2]
        view = mmap.mmap(show, 65536, offset=offset)  # goes to the exporter
        assert view[100:104] == b"bobo"
        assert add_fb(show, 64, 64, 256, on_show)
        assert imported(gpu, export(show, on_show)) == bo

        # the importer keeps the memory when the exporter's handle is gone
        ioctl(gpu, 0x09, "II", bo, 0, direction=1)
        assert view[100:104] == b"bobo"
        os.close(dma_buf)
        assert imported(gpu, export(show, on_show)) != 0
        print("ok")

    assert run_client(device, client).strip() == "ok"


def test_an_import_notes_neither_cache_nor_size(make_device: Make) -> None:
    device = make_device(device="xlnx")
    gpu = device.drivers["renderD128"].buffers
    show = device.buffers
    assert isinstance(show, XlnxBuffers)
    bo = gpu.hold(gpu.create(8192, "bo"))
    buffer = gpu.export(bo)
    seen = show.hold(show.import_buffer(buffer))
    assert isinstance(seen, XlnxImport)
    assert (seen.is_cached, seen.driver_size, seen.size) == (False, 0, 8192)
    assert seen.address == seen.kernel_address == bo.address
    assert seen.table == [(bo.address, 8192)]
    assert seen.attribute is Attribute.WRITE_COMBINED
    seen.seqno, seen.was_mapped = 5, True
    assert (bo.seqno, bo.was_mapped) == (5, True)
    bo.seqno = 0
    show.drop(seen)
    gpu.dma_buf_released(buffer)
    gpu.drop(bo)
    gpu.reclaim()


def test_a_cached_buffer_is_cached_for_the_gpus_programs_too(make_device: Make) -> None:
    device = make_device(device="xlnx", params={"dumb_cache_default_mode": 1})

    def client() -> None:
        show, gpu = open_card(), open_card("renderD128")
        imported(gpu, export(show, dumb_of(show, 64, 64, 32, 0)[0]))
        ioctl(gpu, 0x47, "IIQ", 0, 0, 0)

    seen = []
    gpu = device.drivers["renderD128"].buffers
    device.supervisor.on_call = lambda call, answer: seen.extend(
        imported.attribute for imported in gpu.imports.values()
    )
    run_client(device, client)
    assert set(seen) == {Attribute.CACHED}


def test_pieces_must_lie_one_after_the_other(make_device: Make) -> None:
    assert contiguous_size([(0, 4096), (4096, 4096)]) == 8192
    assert contiguous_size([(0, 4096), (8192, 4096), (12288, 4096)]) == 4096
    device = make_device(device="xlnx")
    gpu, show = device.drivers["renderD128"].buffers, device.buffers
    for exporter, importer in ((gpu, show), (show, gpu)):
        made = exporter.hold(exporter.create(8192, "bo"))
        buffer = exporter.export(made)
        buffer.pieces = [(made.address, 4096), (made.address + 8192, 4096)]
        with pytest.raises(Refused) as caught:
            importer.import_buffer(buffer)
        assert caught.value.number == 22
        assert not importer.imports
        exporter.dma_buf_released(buffer)
        exporter.drop(made)


def test_a_shared_buffer_is_not_purged(make_device: Make) -> None:
    """Its memory would reach another owner while the display still shows it."""
    device = make_device(device="xlnx", gpu_memory=1 << 20)

    def client() -> None:
        show, gpu = open_card(), open_card("renderD128")
        bo = create_bo(gpu, 512 << 10)
        on_show = imported(show, export(gpu, bo))
        assert ioctl(gpu, 0x4B, "IIII", bo, 1, 0, 0)[2] == 1
        assert refused(gpu, 0x43, "IIII", 768 << 10, 0, 0, 0) == errno.ENOMEM
        assert ioctl(gpu, 0x4B, "IIII", bo, 0, 0, 0)[2] == 1

    run_client(device, client)


def test_what_is_no_dma_buf(make_device: Make) -> None:
    device = make_device(device="xlnx")

    def client() -> None:
        show = open_card()
        assert refused(show, 0x2E, "IIi", 0, 0, -1) == errno.EBADF
        assert refused(show, 0x2E, "IIi", 0, 0, show) == errno.EINVAL
        dma_buf = export(show, dumb_of(show, 64, 64, 32, 6)[0])
        data = bytearray(8)
        for flags in (1, 2, 3, 5, 6, 7):  # no hooks: it succeeds and maintains nothing
            data[:] = flags.to_bytes(8, "little")
            fcntl.ioctl(dma_buf, 0x40086200, data)

    run_client(device, client)

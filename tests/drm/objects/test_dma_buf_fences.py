# ruff: noqa: F821 - clients are other programs
"""Sync files of dma-bufs (Linux 6.0): what a buffer waits for as a file, and files it waits for."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.drm_client import run_client
from tests.support.live_jobs import held_jobs, prepare, run_live

from vc4lab.drm.device.device import DrmDevice
from vc4lab.drm.objects.dma_bufs import IMPORT_SYNC_FILE, MAX_ATTACHED, DmaBufCalls
from vc4lab.drm.objects.fences import Fence
from vc4lab.drm.uapi.results import Refused


def test_a_sync_file_of_a_dma_buf_is_done_when_the_jobs_are(
    device: DrmDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For readers when the job that draws into it is, for writers when all are."""

    def client() -> None:
        live = Live(sys.argv[1])
        drawn = export(live.fd, live.handles[live.colour])
        used = next(n for n, view in enumerate(live.views) if view is not None and n != live.colour)
        read = export(live.fd, live.handles[used])

        def sync_file(number, flags):
            data = bytearray(struct.pack("<Ii", flags, -7))
            fcntl.ioctl(number, 0xC0086202, data)
            assert struct.unpack_from("<I", data)[0] == flags
            return struct.unpack_from("<i", data, 4)[0]

        def done(number):
            return bool(select.select([number], [], [], 0)[0])

        READ, WRITE = 1, 2
        assert done(sync_file(drawn, READ | WRITE)), "a stub for what nothing uses"
        seqno = live.submit()
        asked = [(n, f) for n in (drawn, read) for f in (READ, WRITE, READ | WRITE)]
        files = [sync_file(*one) for one in asked]
        assert [done(file) for file in files] == [False] * 3 + [True, False, False]
        assert all(fcntl.fcntl(file, fcntl.F_GETFD) == fcntl.FD_CLOEXEC for file in files)
        assert refused(live.fd, 0x41, "QQ", seqno, 0) == errno.ETIME, "the job is too fast"
        live.go()
        assert select.select([files[0]], [], [], 60)[0]
        assert refused(live.fd, 0x41, "QQ", seqno, 0) == 0
        print("done")

    held_jobs(monkeypatch, tmp_path)
    prepare("tri_amd64", tmp_path)
    assert run_live(device, client, str(tmp_path)) == "done\n"


def test_what_uses_a_dma_buf_waits_for_a_sync_file_that_was_put_in(
    device: DrmDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def client() -> None:
        live = Live(sys.argv[1])
        drawn = export(live.fd, live.handles[live.colour])
        card = open_card()
        handle, pitch, _ = dumb(card, 640, 480)
        other = export(card, handle)
        IN, OUT = select.POLLIN, select.POLLOUT
        poller = select.poll()
        poller.register(other, IN | OUT)
        epoll = select.epoll()
        epoll.register(other, IN | OUT)

        def look():
            seen = [dict(way.poll(0)).get(other, 0) for way in (poller, epoll)]
            return seen[0] if seen[0] == seen[1] else seen

        def put(flags):
            """The job's fence into a buffer that the job does not use."""
            data = bytearray(struct.pack("<Ii", 2, 0))
            fcntl.ioctl(drawn, 0xC0086202, data)
            (file,) = struct.unpack_from("<i", data, 4)
            fcntl.ioctl(other, 0x40086203, struct.pack("<Ii", flags, file))
            os.close(file)

        def sync(flags):
            fcntl.ioctl(other, 0x40086200, struct.pack("<Q", flags))

        assert look() == IN | OUT
        seqno = live.submit()
        put(1)  # it reads: readers need not wait
        assert look() == IN
        sync(1)
        assert refused(live.fd, 0x41, "QQ", seqno, 0) == errno.ETIME, "the job is too fast"
        live.go()
        sync(2)
        assert refused(live.fd, 0x41, "QQ", seqno, 0) == 0
        assert look() == IN | OUT
        for way in (poller, epoll):
            seqno = live.submit()
            put(3)
            assert look() == 0
            assert refused(live.fd, 0x41, "QQ", seqno, 0) == errno.ETIME, "the job is too fast"
            live.go()
            assert way.poll(60 if way is epoll else 60_000)
            assert refused(live.fd, 0x41, "QQ", seqno, 0) == 0
        # the screen shows it after that
        crtc, connector, _ = resources(card)
        mode = next(m for m in modes(card, connector) if (m[1], m[6]) == (640, 480))
        fb = add_fb(card, 640, 480, pitch, handle)
        set_crtc(card, crtc, connector, fb, mode)
        seqno = live.submit()
        put(2)
        flip(card, crtc, fb)
        assert refused(live.fd, 0x41, "QQ", seqno, 0) == errno.ETIME, "the job is too fast"
        live.go()
        assert len(events(card)) == 1
        assert refused(live.fd, 0x41, "QQ", seqno, 0) == 0
        print("done")

    held_jobs(monkeypatch, tmp_path)
    prepare("tri_amd64", tmp_path)
    assert run_live(device, client, str(tmp_path)) == "done\n"


def test_what_linux_refuses(device: DrmDevice) -> None:
    def client() -> None:
        fd = open_card("renderD128")
        there = export(fd, create_bo(fd, 4096))
        plain = os.open("/dev/null", os.O_RDWR)

        def error(request, *values):
            try:
                fcntl.ioctl(there, request, bytearray(struct.pack("<Ii", *values)))
            except OSError as error:
                return error.errno
            return 0

        get, put = 0xC0086202, 0x40086203
        for flags in (0, 4, 5, 1 << 31):
            assert error(get, flags, 0) == errno.EINVAL
            assert error(put, flags, plain) == errno.EINVAL
        for number in (-1, plain, there, fd, 999):
            assert error(put, 3, number) == errno.EINVAL, number
        libc = ctypes.CDLL(None, use_errno=True)
        libc.ioctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p]
        held = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        held[0:8] = struct.pack("<Ii", 3, 0)
        place = ctypes.addressof(ctypes.c_char.from_buffer(held))
        libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        assert libc.mprotect(place, 4096, mmap.PROT_READ) == 0
        before = len(os.listdir("/proc/self/fd"))
        for request, address in ((get, 8), (put, 8), (get, place)):
            assert libc.ioctl(there, request, address) == -1
            assert ctypes.get_errno() == errno.EFAULT
        assert len(os.listdir("/proc/self/fd")) == before, "a file was left"
        assert error(0xC0086204, 3, 0) == errno.ENOTTY

    run_client(device, client)


def test_fences_that_are_not_done_do_not_fill_memory() -> None:
    fences = [Fence() for _ in range(MAX_ATTACHED + 1)]
    taken = iter(fences)
    looks: list[str] = []
    gpu: Any = SimpleNamespace(watchers=(), fence_after=lambda seqno: Fence(done=True))
    syncobjs: Any = SimpleNamespace(fence_in=lambda caller, number: next(taken))
    calls = DmaBufCalls(gpu, syncobjs, lambda: looks.append("woken"))
    target = SimpleNamespace(fences=())
    caller: Any = SimpleNamespace(read=lambda address, size: b"\x02\0\0\0\x05\0\0\0")
    opened: Any = SimpleNamespace(object=target)
    for _ in range(MAX_ATTACHED):
        assert calls.ioctl(opened, caller, IMPORT_SYNC_FILE, 0) == 0
    with pytest.raises(Refused) as refused:
        calls.ioctl(opened, caller, IMPORT_SYNC_FILE, 0)
    assert os.strerror(refused.value.number) == "Cannot allocate memory"
    woken = len(looks)
    for fence in fences:
        fence.signal()
    assert len(looks) == woken + MAX_ATTACHED

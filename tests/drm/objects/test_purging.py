# ruff: noqa: F821 - clients are other programs
"""Buffers that their owners do not need: what may be done with them, and what goes when."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.drm_client import run_client
from tests.support.live_jobs import held_jobs, prepare, run_live
from tests.support.supervised import need_supervisor

from vc4lab.drm.device.device import DrmDevice
from vc4lab.drm.device.gpu import Job
from vc4lab.qpu.text.assembler import assemble


@pytest.fixture
def small() -> Iterator[DrmDevice]:
    """A device with 16 MiB."""
    need_supervisor()
    with DrmDevice(paced=False, threads=1, gpu_memory=16 << 20) as made:
        yield made


def test_a_purged_buffers_place_is_another_ones(small: DrmDevice) -> None:
    def client() -> None:
        fd, other = open_card("renderD128"), open_card("renderD128")
        size = 4 << 20
        mine = create_bo(fd, size)
        offset = ioctl(fd, 0x44, "IIQ", mine, 0, 0)[2]
        assert ioctl(fd, 0x4B, "IIII", mine, 1, 0, 0)[2] == 1
        theirs = [create_bo(other, size) for _ in range(4)]
        places = [ioctl(other, 0x44, "IIQ", handle, 0, 0)[2] for handle in theirs]
        assert offset in places
        map_bo(other, theirs[places.index(offset)], size)[0:6] = b"secret"
        assert ioctl(fd, 0x4B, "IIII", mine, 0, 0, 0)[2] == 0
        try:
            print(mmap.mmap(fd, size, offset=offset)[0:6])
        except OSError as error:
            print(error.errno == errno.EINVAL)
        assert refused(fd, 0x44, "IIQ", mine, 0, 0) == errno.EINVAL
        assert refused(fd, 0x2D, "IIi", mine, 2, -1) == errno.EINVAL
        assert refused(fd, 0x43, "IIII", size, 0, 0, 0) == errno.ENOMEM

    assert run_client(small, client) == "True\n"


def test_what_is_used_is_not_purged(small: DrmDevice) -> None:
    """On the screen, exported now or once: it stays. Mapped or only in a frame buffer it goes."""

    def client() -> None:
        fd = open_card()
        size = 4 << 20
        framed, shared, free = [create_bo(fd, size) for _ in range(3)]
        mapped, once_shared = [create_bo(fd, size // 2) for _ in range(2)]
        view = map_bo(fd, mapped, size // 2)
        view[0:4] = b"mine"
        fb = add_fb(fd, 1024, 1024, 4096, framed)
        crtc, connector, _ = resources(fd)
        mode = next(m for m in modes(fd, connector) if (m[1], m[6]) == (640, 480))
        set_crtc(fd, crtc, connector, fb, mode)
        number = ioctl(fd, 0x2D, "IIi", shared, 2, -1)[2]
        os.close(ioctl(fd, 0x2D, "IIi", once_shared, 2, -1)[2])
        time.sleep(0.1)
        handles = (mapped, framed, shared, once_shared, free)
        for handle in handles:
            assert ioctl(fd, 0x4B, "IIII", handle, 1, 0, 0)[2] == 1
        create_bo(fd, size)
        kept = [ioctl(fd, 0x4B, "IIII", handle, 0, 0, 0)[2] for handle in handles]
        assert kept == [0, 1, 1, 1, 0], kept
        theirs = map_bo(fd, create_bo(fd, size // 2), size // 2)
        theirs[0:6] = b"secret"
        assert refused(fd, 0x43, "IIII", size // 2, 0, 0, 0) == errno.ENOMEM
        assert view[0:4] == bytes(4), "zeros, and nothing of who has the memory now"
        view[0:4] = b"mine"
        assert theirs[0:6] == b"secret"
        assert refused(fd, 0x44, "IIQ", mapped, 0, 0) == errno.EINVAL
        os.close(number)

    run_client(small, client)
    small.supervisor.descriptors.sweep()
    assert (small.buffers.count, small.buffers.bytes) == (0, 0)


def test_what_its_owner_does_not_need_is_not_exported(small: DrmDevice) -> None:
    def client() -> None:
        fd = open_card()
        handle = create_bo(fd, 4096)
        ioctl(fd, 0x4B, "IIII", handle, 1, 0, 0)
        assert refused(fd, 0x2D, "IIi", handle, 2, -1) == errno.EINVAL
        ioctl(fd, 0x4B, "IIII", handle, 0, 0, 0)
        assert ioctl(fd, 0x2D, "IIi", handle, 2, -1)[2] >= 0

    run_client(small, client)


def test_memory_that_was_mapped_when_its_buffer_went_is_used_again(small: DrmDevice) -> None:
    def client() -> None:
        fd = open_card()
        size = 12 << 20
        for _ in range(3):
            handle = create_bo(fd, size)
            view = map_bo(fd, handle, size)
            view[0:4] = b"mine"
            ioctl(fd, 0x09, "II", handle, 0, direction=1)
            assert refused(fd, 0x43, "IIII", size, 0, 0, 0) == errno.ENOMEM
            assert view[0:4] == b"mine"
            view.close()

    run_client(small, client)


def test_a_buffer_whose_dma_buf_finds_no_descriptor_goes_with_its_handle(small: DrmDevice) -> None:
    def client() -> None:
        import resource

        fd, *_ = [open_card() for _ in range(100)]  # as many as its window has, and then
        handle = create_bo(fd, 12 << 20)
        free = os.dup(0)
        os.close(free)
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (free, before[1]))  # as many as it may have
        assert refused(fd, 0x2D, "IIi", handle, 2, -1) == errno.EMFILE
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        ioctl(fd, 0x09, "II", handle, 0, direction=1)
        create_bo(fd, 12 << 20)

    run_client(small, client)


def test_jobs_need_their_buffers(small: DrmDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held_jobs(monkeypatch, tmp_path)
    expected = prepare("tri_amd64", tmp_path)

    def client() -> None:
        live = Live(sys.argv[1])

        def advise(value):
            return ioctl(live.fd, 0x4B, "IIII", live.handles[live.colour], value, 0, 0)[2]

        size = len(live.views[live.colour])
        offset = ioctl(live.fd, 0x44, "IIQ", live.handles[live.colour], 0, 0)[2]
        live.views[live.colour].close()
        seqno = live.submit()
        assert advise(1) == 1
        rest = []
        while True:  # all there is
            try:
                rest.append(create_bo(live.fd, 64 << 10))
            except OSError:
                break
        assert refused(live.fd, 0x41, "QQ", seqno, 0) == errno.ETIME, "the job was too quick"
        assert advise(0) == 1
        live.go()
        live.views[live.colour] = mmap.mmap(live.fd, size, offset=offset)
        live.finish(seqno)
        live.views[live.colour].close()
        advise(1)
        for call in (live.submit, lambda: mmap.mmap(live.fd, size, offset=offset)):
            try:
                call()
            except OSError as error:
                print(error.errno == errno.EINVAL)
        advise(0)
        seqno = live.submit()
        live.go()
        ioctl(live.fd, 0x41, "QQ", seqno, 10**11)
        advise(1)
        assert refused(live.fd, 0x43, "IIII", 1 << 20, 0, 0, 0) == errno.ENOMEM
        assert advise(0) == 0
        try:
            live.submit()
        except OSError as error:
            print(error.errno == errno.EINVAL)

    assert run_live(small, client, str(tmp_path)) == "True\n" * 3
    assert (tmp_path / "drawn").read_bytes() == expected


def test_a_job_that_waits_for_room_keeps_its_buffers(
    small: DrmDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The queue is full, another thread closes the handles: nothing of it reaches the job."""
    from vc4lab.drm.device import vc4

    held_jobs(monkeypatch, tmp_path)
    monkeypatch.setattr(vc4, "MAX_WAITING", 1)
    waiting, submit = [], small.gpu.submit

    def counted(job: Job) -> None:
        submit(job)
        waiting.append(small.gpu.submitted - small.gpu.finished)

    monkeypatch.setattr(small.gpu, "submit", counted)
    expected = prepare("tri_amd64", tmp_path)

    def client() -> None:
        live, other = Live(sys.argv[1]), Live(sys.argv[1])
        other.submit()
        done = []
        thread = threading.Thread(target=lambda: done.append(live.submit()))
        thread.start()
        begun = False
        while not begun:  # ioctl of x86-64 and arm64
            with open(f"/proc/self/task/{thread.native_id}/syscall") as file:
                begun = file.read().split()[0] in ("16", "29")
        kept = live.views[live.colour]
        for handle in live.handles:
            ioctl(live.fd, 0x09, "II", handle, 0, direction=1)
        live.go()
        thread.join()
        live.go()
        ioctl(live.fd, 0x41, "QQ", done[0], 10**11)
        with open(sys.argv[1] + "/drawn", "wb") as file:
            file.write(kept[:])

    run_live(small, client, str(tmp_path))
    assert waiting == [1, 1], "never two at once"
    assert (tmp_path / "drawn").read_bytes() == expected


def test_the_holder_of_the_memory_is_named(small: DrmDevice) -> None:
    """A program whose buffers another one has no memory left for would only draw black."""

    def client() -> None:
        greedy, other = open_card("renderD128"), open_card("renderD128")
        create_bo(other, 1 << 20)
        for _ in range(14):
            create_bo(greedy, 1 << 20)
        for _ in range(2):
            assert refused(other, 0x43, "IIII", 2 << 20, 0, 0, 0) == errno.ENOMEM
        create_bo(other, 1 << 20)
        assert refused(greedy, 0x43, "IIII", 1 << 20, 0, 0, 0) == errno.ENOMEM

    run_client(small, client)
    first, second = [item for item in small.reporter.items if item.code == "DRM-026"]
    name, _, text = first.message.partition(": ")
    assert name.endswith("]")
    assert text == (f"no memory for a buffer of 2097152 bytes: 15 of 16 MiB are in use, 14 by {name}")
    assert "1048576 bytes: 16 of 16 MiB" in second.message


def test_a_lack_of_memory_for_shaders_is_named(small: DrmDevice) -> None:
    def client() -> None:
        fd = open_card("renderD128")
        size = 1 << 20
        _held, place = buffer(bytes.fromhex(sys.argv[1]).ljust(size, b"\0"))
        for _ in range(63):
            ioctl(fd, 0x45, "IIQII", size, 0, place, 0, 0)
        assert refused(fd, 0x45, "IIQII", size, 0, place, 0, 0) == errno.ENOMEM
        create_bo(fd, size)

    run_client(small, client, assemble("nop\nthrend\nnop\nnop").bytes.hex())
    (lack,) = small.reporter.items
    assert lack.code == "DRM-026"
    assert "no memory for a shader of 1048576 bytes: 63 of 63 MiB are in use, 63 by" in lack.message


def test_a_buffer_that_went_is_not_shown(small: DrmDevice) -> None:
    """Its frame buffer is there, but the flip is refused, as where Linux prepares a plane."""

    def client() -> None:
        fd = open_card()
        crtc, fb, _, _ = show(fd)
        handle = create_bo(fd, 640 * 480 * 4)
        other = add_fb(fd, 640, 480, 2560, handle)
        ioctl(fd, 0x4B, "IIII", handle, 1, 0, 0)
        assert refused(fd, 0xB0, "IIIIQ", crtc, other, 1, 0, 0) == errno.EINVAL
        while not refused(fd, 0x43, "IIII", 1 << 20, 0, 0, 0):
            pass
        assert ioctl(fd, 0x4B, "IIII", handle, 0, 0, 0)[2] == 0, "its frame buffer keeps it not"
        assert refused(fd, 0xB0, "IIIIQ", crtc, other, 1, 0, 0) == errno.EINVAL
        flip(fd, crtc, fb)
        ioctl(fd, 0xAF, "I", other)

    run_client(small, client)


def test_mappings_that_are_gone_do_not_use_up_the_host_s_files() -> None:
    """Each mapping has a description of its buffer's file; after many had to be kept, those that
    are gone are looked for again only when files are short."""
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (1000, 1000))\n"
        "from tests.drm.objects.test_purging import maps_many\n"
        "from tests.support.drm_client import run_client\n"
        "from vc4lab.drm.device.device import DrmDevice\n"
        "with DrmDevice(paced=False, threads=1) as device:\n"
        "    print(run_client(device, maps_many), end='')\n"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120
    )
    assert (out.returncode, out.stdout) == (0, "done\n"), out.stderr


def maps_many() -> None:
    fd = open_card("renderD128")
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long)
    libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    for _ in range(3):
        held = []
        for _ in range(345):
            handle = create_bo(fd, 4096)
            offset = ioctl(fd, 0x44, "IIQ", handle, 0, 0)[2]
            held.append((handle, libc.mmap(None, 4096, 3, mmap.MAP_SHARED, fd, offset)))
        time.sleep(1.2)  # all are looked at, and held
        held.pop()  # the newest stays
        for handle, place in held:
            libc.munmap(place, 4096)
            ioctl(fd, 0x09, "II", handle, 0, direction=1)
    print("done")

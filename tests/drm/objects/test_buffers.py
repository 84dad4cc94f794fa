# ruff: noqa: F821, PT017, RUF059 - clients are other programs
"""Buffers between programs: handles, names, mappings, dma-bufs, memory that comes back clean."""

from tests.support.drm_client import run_client

from vc4lab.drm.device.device import DrmDevice
from vc4lab.drm.objects.memory import CLIENTS, DEFAULT_BYTES


def test_a_mapping_is_the_guests_memory(device: DrmDevice) -> None:
    def client() -> None:
        fd = open_card()
        handle = create_bo(fd, 5000)
        offset = ioctl(fd, 0x44, "IIQ", handle, 0, 0)[2]
        view = mmap.mmap(fd, 8192, offset=offset)
        view[4096:4104] = b"to guest"
        ioctl(fd, 0x44, "IIQ", handle, 0, 0)
        print(offset)

    seen = []
    device.supervisor.on_call = lambda call, answer: seen.append(device.memory.guest.read(CLIENTS + 4096, 8))
    offset = int(run_client(device, client))
    assert offset == CLIENTS
    assert b"to guest" in seen


def test_only_own_buffers_can_be_mapped(device: DrmDevice) -> None:
    def client() -> None:
        fd, other = open_card(), open_card("renderD128")
        handle = create_bo(fd, 8192)
        offset = ioctl(fd, 0x44, "IIQ", handle, 0, 0)[2]

        def gives(file, size, place, flags=mmap.MAP_SHARED):
            try:
                mmap.mmap(file, size, flags=flags, offset=place)
            except OSError as error:
                return error.errno
            return 0

        assert gives(fd, 8192, offset) == 0
        assert gives(fd, 4096, offset + 4096) == 0
        assert gives(fd, 12288, offset) == errno.EINVAL
        assert gives(fd, 4096, offset + 8192) == errno.EINVAL
        assert gives(fd, 4096, 0) == errno.EINVAL
        assert gives(other, 8192, offset) == errno.EINVAL
        assert gives(fd, 8192, offset, mmap.MAP_PRIVATE) == errno.EINVAL
        ioctl(fd, 0x09, "II", handle, 0, direction=1)
        assert gives(fd, 8192, offset) == errno.EINVAL
        assert refused(fd, 0x44, "IIQ", 99, 0, 0) == errno.EINVAL

    run_client(device, client)


def test_freed_memory_never_reaches_the_next_owner(device: DrmDevice) -> None:
    def client() -> None:
        fd, other = open_card(), open_card("renderD128")
        for size in (4096, 1 << 20):
            kept = []
            for number in range(8):
                handle = create_bo(fd, size)
                view = map_bo(fd, handle, size)
                view[:] = bytes([number + 1]) * size
                ioctl(fd, 0x09, "II", handle, 0, direction=1)
                if number % 2:
                    kept.append(view)  # a program may go on using what it freed
                else:
                    view.close()
            for view in kept:
                view[0:4] = b"mine"
            for _ in range(20):
                fresh = map_bo(other, create_bo(other, size), size)
                assert fresh[:] == bytes(size)

    run_client(device, client)


def test_memory_still_mapped_is_not_given_away(device: DrmDevice) -> None:
    def client() -> None:
        fd = open_card()
        size = 100 << 20
        first = create_bo(fd, size)
        view = map_bo(fd, first, size)
        ioctl(fd, 0x09, "II", first, 0, direction=1)
        view[0:5] = b"still"
        handles = []
        while True:
            try:
                handles.append(create_bo(fd, size))
            except OSError as error:
                assert error.errno == errno.ENOMEM
                break
        for handle in handles:
            other = map_bo(fd, handle, size)
            assert other[0:5] == bytes(5)
            other[0:5] = b"other"
        assert view[0:5] == b"still"
        view.close()
        again = map_bo(fd, create_bo(fd, size), size)
        assert again[0:5] == bytes(5)

    run_client(device, client)


def test_handles_are_small_and_used_again(device: DrmDevice) -> None:
    def client() -> None:
        fd, other = open_card(), open_card()
        assert [create_bo(fd, 1) for _ in range(3)] == [1, 2, 3]
        assert create_bo(other, 1) == 1
        ioctl(fd, 0x09, "II", 2, 0, direction=1)
        assert refused(fd, 0x09, "II", 2, 0, direction=1) == errno.EINVAL
        assert create_bo(fd, 1) == 2
        assert refused(fd, 0x43, "IIII", 0, 0, 0, 0) == errno.EINVAL
        assert refused(fd, 0x43, "IIII", 4096, 1, 0, 0) == errno.EINVAL
        assert refused(fd, 0x43, "IIII", 0xFFFFFFFF, 0, 0, 0) == errno.ENOMEM

    run_client(device, client)


def test_names_are_global(device: DrmDevice) -> None:
    def client() -> None:
        fd, other = open_card(), open_card()
        handle = create_bo(fd, 4096)
        name = ioctl(fd, 0x0A, "II", handle, 0)[1]
        assert ioctl(fd, 0x0A, "II", handle, 0)[1] == name
        if os.geteuid():  # not let in; an administrator needs not be
            assert refused(other, 0x0B, "IIQ", name, 0, 0) == errno.EACCES
        ioctl(fd, 0x11, "I", ioctl(other, 0x02, "I", 0, direction=2)[0], direction=1)
        _, theirs, size = ioctl(other, 0x0B, "IIQ", name, 0, 0)
        assert size == 4096
        map_bo(fd, handle, 4096)[0:4] = b"same"
        assert map_bo(other, theirs, 4096)[0:4] == b"same"
        ioctl(fd, 0x09, "II", handle, 0, direction=1)
        assert map_bo(other, theirs, 4096)[0:4] == b"same"
        assert refused(other, 0x0B, "IIQ", 999, 0, 0) == errno.ENOENT

    run_client(device, client)


def test_a_dma_buf_goes_from_file_to_file(device: DrmDevice) -> None:
    def client() -> None:
        fd, other = open_card(), open_card("renderD128")
        handle = create_bo(fd, 8192)
        map_bo(fd, handle, 8192)[0:6] = b"shared"
        number = ioctl(fd, 0x2D, "IIi", handle, 0o2000000 | 2, -1)[2]
        assert os.lseek(number, 0, os.SEEK_END) == 8192
        assert os.fstat(number).st_size == 8192
        theirs = ioctl(other, 0x2E, "IIi", 0, 0, number)[0]
        assert ioctl(other, 0x2E, "IIi", 0, 0, number)[0] == theirs
        assert ioctl(fd, 0x2E, "IIi", 0, 0, number)[0] == handle
        assert map_bo(other, theirs, 8192)[0:6] == b"shared"
        flags = bytearray(struct.pack("<Q", 3))
        fcntl.ioctl(number, 0x40086200, flags)
        os.close(number)
        ioctl(fd, 0x09, "II", handle, 0, direction=1)
        assert map_bo(other, theirs, 8192)[0:6] == b"shared"
        assert refused(other, 0x2E, "IIi", 0, 0, 0) == errno.EBADF
        assert refused(other, 0x2E, "IIi", 0, 0, other) == errno.EINVAL

    run_client(device, client)


def test_a_dma_buf_passed_over_a_socket_can_be_sought_and_imported(device: DrmDevice) -> None:
    def client() -> None:
        fd = open_card()
        handle = create_bo(fd, 8192)
        map_bo(fd, handle, 8192)[0:5] = b"bytes"
        number = ioctl(fd, 0x2D, "IIi", handle, 2, -1)[2]
        ours, theirs = socket.socketpair()
        socket.send_fds(ours, [b"x"], [number])
        os.close(number)
        low = socket.recv_fds(theirs, 1, 1)[1][0]
        assert low < 900
        assert os.lseek(low, 0, os.SEEK_END) == 8192
        assert os.lseek(low, 0, os.SEEK_SET) == 0
        assert os.lseek(low, 0, os.SEEK_END) == 8192
        assert os.fstat(low).st_size == 8192
        other = open_card("renderD128")
        theirs = ioctl(other, 0x2E, "IIi", 0, 0, low)[0]
        assert map_bo(other, theirs, 8192)[0:5] == b"bytes"
        assert mmap.mmap(low, 8192)[0:5] == b"bytes"
        assert ioctl(other, 0x2E, "IIi", 0, 0, low)[0] == theirs

    run_client(device, client)


def test_a_dma_buf_can_be_mapped(device: DrmDevice) -> None:
    def client() -> None:
        fd = open_card()
        create_bo(fd, 4096)
        handle = create_bo(fd, 3 * 4096)
        number = ioctl(fd, 0x2D, "IIi", handle, 2, -1)[2]
        view = map_bo(fd, handle, 3 * 4096)
        view[0:5] = b"first"
        view[8192:8196] = b"last"
        mine = mmap.mmap(number, 3 * 4096)
        assert mine[0:5] == b"first"
        assert mine[8192:8196] == b"last"
        mine[4096:4099] = b"mid"
        assert view[4096:4099] == b"mid"
        part = mmap.mmap(number, 4096, offset=8192)
        assert part[0:4] == b"last"
        libc = ctypes.CDLL(None, use_errno=True)  # Python would look at the size itself
        libc.mmap.argtypes = [ctypes.c_void_p, *[ctypes.c_size_t] + [ctypes.c_int] * 3, ctypes.c_long]
        libc.mmap.restype = ctypes.c_long
        for size, offset in ((4 * 4096, 0), (8192, 8192), (4096, 12288), (4096, 1 << 40)):
            found = libc.mmap(None, size, 3, 1, number, offset)
            assert (found, ctypes.get_errno()) == (-1, errno.EINVAL), (size, offset)
        threads = [threading.Thread(target=lambda: mmap.mmap(number, 4096).close()) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        os.close(fd)
        assert mine[0:5] == b"first"

    run_client(device, client)


def test_a_number_that_is_closed_and_opened_again_maps_nothing_unchecked() -> None:
    """A thread maps a place that no buffer has while another reopens the descriptor."""

    def client() -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.argtypes = [ctypes.c_void_p, *[ctypes.c_size_t] + [ctypes.c_int] * 3, ctypes.c_long]
        libc.mmap.restype = ctypes.c_long
        number = open_card()
        ended = threading.Event()

        def reopen():
            for _ in range(500):
                os.close(number)
                assert open_card() == number
            ended.set()

        thread = threading.Thread(target=reopen)
        thread.start()
        seen = set()
        while not ended.is_set():
            found = libc.mmap(None, 4096, 3, 1, number, 1 << 30)
            seen.add((found, ctypes.get_errno()))
        thread.join()
        assert (-1, errno.EINVAL) in seen
        assert seen <= {(-1, errno.EBADF), (-1, errno.EINVAL)}, seen

    with DrmDevice(gpu_memory=1 << 20) as device:
        run_client(device, client)


def test_dumb_buffers(device: DrmDevice) -> None:
    def client() -> None:
        fd = open_card()
        handle, pitch, size = dumb(fd, 100, 10)
        assert (pitch, size) == (448, 8192)
        view = map_dumb(fd, handle, size)
        view[0:4] = b"abcd"
        ioctl(fd, 0xB4, "I", handle)
        for width, height, bpp in ((0, 1, 32), (1, 0, 32), (1, 1, 0), (1, 1, 65), (1 << 20, 1, 32)):
            assert refused(fd, 0xB2, "IIIIIIQ", height, width, bpp, 0, 0, 0, 0) == errno.EINVAL
        assert refused(fd, 0xB2, "IIIIIIQ", 65536, 65536, 32, 0, 0, 0, 0) == errno.ENOMEM

    run_client(device, client)


def test_tiling_labels_and_advice(device: DrmDevice) -> None:
    def client() -> None:
        fd = open_card()
        handle = create_bo(fd, 4096)
        tiled = 0x0700000000000001
        assert ioctl(fd, 0x49, "IIQ", handle, 0, 0)[2] == 0
        ioctl(fd, 0x48, "IIQ", handle, 0, tiled)
        assert ioctl(fd, 0x49, "IIQ", handle, 0, 0)[2] == tiled
        assert refused(fd, 0x48, "IIQ", handle, 0, 5) == errno.EINVAL
        assert refused(fd, 0x49, "IIQ", 77, 0, 0) == errno.ENOENT
        held, place = buffer(b"my label")
        ioctl(fd, 0x4A, "IIQ", handle, 8, place)
        assert ioctl(fd, 0x4B, "IIII", handle, 1, 0, 0)[2] == 1
        assert ioctl(fd, 0x4B, "IIII", handle, 0, 0, 0)[2] == 1
        assert refused(fd, 0x4B, "IIII", handle, 7, 0, 0) == errno.EINVAL

    run_client(device, client)


def test_what_nobody_needs_is_purged_when_memory_is_short(device: DrmDevice) -> None:
    def client() -> None:
        fd = open_card()
        size = 100 << 20
        handles = [create_bo(fd, size) for _ in range(5)]
        assert refused(fd, 0x43, "IIII", size, 0, 0, 0) == errno.ENOMEM
        ioctl(fd, 0x4B, "IIII", handles[2], 1, 0, 0)
        fresh = create_bo(fd, size)
        assert ioctl(fd, 0x4B, "IIII", handles[2], 0, 0, 0)[2] == 0
        assert refused(fd, 0x44, "IIQ", handles[2], 0, 0) == errno.EINVAL
        assert map_bo(fd, fresh, size)[0:4] == bytes(4)
        for handle in [*handles, fresh]:
            ioctl(fd, 0x09, "II", handle, 0, direction=1)

    run_client(device, client)


def test_memory_is_given_back_when_the_last_file_closes(device: DrmDevice) -> None:
    def client() -> None:
        fd = open_card("renderD128")
        for _ in range(4):
            handle = create_bo(fd, 1 << 20)
            view = map_bo(fd, handle, 1 << 20)
            view[:] = bytes([1]) * len(view)
            ioctl(fd, 0x09, "II", handle, 0, direction=1)
        os._exit(0)  # with all of them mapped

    run_client(device, client)
    device.supervisor.descriptors.sweep()
    assert device.buffers.retired_bytes == 0
    assert device.memory.clients.free == [(CLIENTS, DEFAULT_BYTES)]

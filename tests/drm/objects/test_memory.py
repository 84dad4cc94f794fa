# ruff: noqa: B023, F821, F841, PT017 - clients are other programs
"""What a program can reach of the memory: the buffers whose handles its file has, and no more."""

import fcntl
import os
from collections.abc import Callable

import pytest
from tests.support.drm_client import run_client

from vc4lab.drm.device.device import DrmDevice
from vc4lab.drm.objects.memory import CLIENTS, LISTS, PAGE, SHADERS, TILE_MEMORY, GpuMemory
from vc4lab.qpu.text.assembler import assemble

GET_SEALS = 1034


def test_no_descriptor_leads_to_what_was_checked() -> None:
    """Shaders, lists and tile memory lie outside of the files that programs get."""
    memory = GpuMemory(1 << 20)
    file = memory.files[memory.take(PAGE)].descriptor
    for address in (SHADERS, TILE_MEMORY, LISTS):
        memory.guest.write(address, b"checked")
        assert os.pread(file, 7, address) == bytes(7)
        os.pwrite(file, b"changed", address)
        assert memory.guest.read(address, 7) == b"checked"
    os.pwrite(file, b"clients", CLIENTS)
    assert memory.guest.read(CLIENTS, 7) == b"clients"


def test_a_buffers_file_has_nothing_else() -> None:
    memory = GpuMemory(1 << 20)
    first, second, third = (memory.take(2 * PAGE) for _ in range(3))
    for number, address in enumerate((first, second, third)):
        memory.guest.write(address, b"buffer %d" % number)
    file = memory.files[second].descriptor
    assert os.pread(file, 8, second) == b"buffer 1"
    os.pwrite(file, b"changed!", first)
    assert memory.guest.read(first, 8) == b"buffer 0"
    assert os.pread(file, 8, third) == b""
    with pytest.raises(PermissionError):
        os.pwrite(file, b"changed!", third)
    again = os.open(f"/proc/self/fd/{file}", os.O_RDWR)  # as programs may have it
    fcntl.lockf(again, fcntl.LOCK_EX)
    memory.give(second, 2 * PAGE)
    memory.guest.write(memory.take(2 * PAGE), b"the next")
    assert os.pread(again, 8, second) in (bytes(8), b"buffer 1")
    os.close(again)


def test_the_files_keep_their_sizes() -> None:
    memory = GpuMemory(1 << 20)
    file = memory.files[memory.take(PAGE)].descriptor
    assert fcntl.fcntl(file, GET_SEALS) == 7
    for size in (0, CLIENTS + (2 << 20)):
        with pytest.raises(PermissionError):
            os.ftruncate(file, size)


def shader() -> str:
    """Code that the kernel takes, in hexadecimal."""
    return assemble("nop\nthrend\nnop\nnop").bytes.hex()


def test_a_mapping_does_not_reach_other_buffers(device: DrmDevice) -> None:
    """Places of other files' buffers, of shaders, of freed buffers, and past the end."""

    def client() -> None:
        fd, other = open_card(), open_card("renderD128")
        code, place = buffer(bytes.fromhex(sys.argv[1]))
        shader = ioctl(fd, 0x45, "IIQII", len(code.raw), 0, place, 0, 0)[3]
        mine, theirs = create_bo(fd, 4096), create_bo(other, 4096)
        map_bo(other, theirs, 4096)[0:6] = b"secret"
        offset = ioctl(other, 0x44, "IIQ", theirs, 0, 0)[2]

        def gives(file, size, place):
            try:
                return mmap.mmap(file, size, offset=place)[0:6]
            except OSError as error:
                return error.errno

        assert refused(fd, 0x44, "IIQ", shader, 0, 0) == errno.EINVAL
        for place in (0, 0x100000, 0x4000000, 0x8000000, offset, 1 << 29, 1 << 40, 1 << 62):
            assert gives(fd, 4096, place) == errno.EINVAL, hex(place)
        assert gives(fd, 1 << 40, offset) == errno.EINVAL
        assert gives(other, 4096, offset) == b"secret"
        ioctl(other, 0x09, "II", theirs, 0, direction=1)
        assert gives(other, 4096, offset) == errno.EINVAL

    run_client(device, client, shader())


def test_a_mapping_does_not_grow_over_its_neighbour(device: DrmDevice) -> None:
    def client() -> None:
        fd, other = open_card(), open_card("renderD128")
        handle, theirs = create_bo(fd, 8192), create_bo(other, 8192)
        map_bo(other, theirs, 4096)[0:6] = b"secret"
        view = map_bo(fd, handle, 8192)
        place = ctypes.addressof(ctypes.c_char.from_buffer(view))
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mremap.restype = ctypes.c_void_p
        libc.mremap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int]
        libc.remap_file_pages.argtypes = [
            ctypes.c_void_p,
            ctypes.c_size_t,
            ctypes.c_int,
            ctypes.c_size_t,
            ctypes.c_int,
        ]

        def grown(old, new):
            found = libc.mremap(place, old, new, 1)
            return 0 if found != 2**64 - 1 else ctypes.get_errno()

        assert grown(8192, 1 << 16) == errno.EFAULT
        assert grown(0, 1 << 16) == errno.EFAULT
        assert libc.remap_file_pages(place, 4096, 0, (place >> 12) + 2, 0) == -1
        assert ctypes.get_errno() == errno.EINVAL
        assert view[:] == bytes(8192)
        assert grown(8192, 4096) == 0
        private = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)  # others grow as ever
        private.resize(1 << 20)
        private[-1:] = b"x"

    run_client(device, client)


def test_reading_writing_and_resizing_are_refused(device: DrmDevice) -> None:
    def client() -> None:
        fd, other = open_card(), open_card("renderD128")
        handle = create_bo(other, 4096)
        view = map_bo(other, handle, 4096)
        view[0:6] = b"secret"
        offset = ioctl(other, 0x44, "IIQ", handle, 0, 0)[2]
        shared = ioctl(other, 0x2D, "IIi", handle, 2, -1)[2]
        libc = ctypes.CDLL(None, use_errno=True)
        libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long]

        def punched(number):
            if libc.fallocate(number, 3, offset, 4096):
                raise OSError(ctypes.get_errno(), "")

        held = bytearray(6)
        for number in (fd, other, shared):
            for call in (
                lambda: os.pread(number, 6, offset),
                lambda: os.preadv(number, [held], offset),
                lambda: os.pwrite(number, b"change", offset),
                lambda: os.pwritev(number, [b"change"], offset),
                lambda: os.write(number, b"change"),
                lambda: os.ftruncate(number, 0),
                lambda: os.truncate(number, 1 << 40),
                lambda: os.posix_fallocate(number, 0, 1 << 40),
                lambda: punched(number),
            ):
                try:
                    call()
                except OSError as error:
                    assert error.errno in (errno.EINVAL, errno.ESPIPE, errno.EACCES), error
                else:
                    raise AssertionError("not refused")
        assert view[0:6] == b"secret"

    run_client(device, client)


def test_the_next_owner_of_a_shaders_place_finds_zeros(device: DrmDevice) -> None:
    def client() -> None:
        fd = open_card("renderD128")
        code, place = buffer(bytes.fromhex(sys.argv[1]))
        handle = ioctl(fd, 0x45, "IIQII", len(code.raw), 0, place, 0, 0)[3]
        ioctl(fd, 0x09, "II", handle, 0, direction=1)

    run_client(device, client, shader())
    first = device.memory.shaders.take(PAGE)
    assert first == SHADERS
    assert device.memory.guest.read(first, PAGE) == bytes(PAGE)
    device.memory.shaders.give(first, PAGE)


def test_what_a_program_held_is_free_as_soon_as_it_has_ended(make_device: Callable[..., DrmDevice]) -> None:
    """As in Linux: memory and the display are the next program's, however soon that comes."""

    def client() -> None:
        watcher = open_card("renderD128")
        for _ in range(8):
            child = os.fork()
            if child == 0:
                try:
                    card = open_card()
                    handle = create_bo(card, 12 << 20)
                    map_bo(card, handle, 12 << 20)[0:4] = b"mine"
                    os._exit(refused(card, 0x1E, "", direction=0))
                except OSError as error:
                    os._exit(error.errno)
            assert os.waitpid(child, 0)[1] == 0
        create_bo(watcher, 12 << 20)
        print("free")

    assert run_client(make_device(gpu_memory=16 << 20), client) == "free\n"


def test_a_file_that_was_opened_before_gets_the_display_of_one_that_ended(device: DrmDevice) -> None:
    def client() -> None:
        second = open_card()
        ioctl(second, 0x1F, "", direction=0)  # who once had it needs no rights to ask for it again
        first = open_card()
        assert refused(second, 0x1E, "", direction=0) == errno.EBUSY
        end, begin = os.pipe()
        child = os.fork()
        if child == 0:  # has the first one until it ends
            os.close(begin)
            os.read(end, 1)
            os._exit(0)
        os.dup2(0, first)
        assert refused(second, 0x1E, "", direction=0) == errno.EBUSY
        os.write(begin, b"x")
        os.waitpid(child, 0)
        print(refused(second, 0x1E, "", direction=0))

    assert run_client(device, client) == "0\n"

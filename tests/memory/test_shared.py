"""Guest memory on a descriptor: the same bytes in every process that maps it."""

import mmap
import os

import pytest

from vc4lab.memory import MEMORY_SIZE, GuestMemory, SharedFile

PLACE = 0x1000_0000
SIZE = 1 << 20


@pytest.mark.parametrize("guard", [False, True])
def test_a_mapping_of_the_file_and_guest_memory_are_the_same_bytes(guard: bool) -> None:
    shared = SharedFile(PLACE, SIZE)
    memory = GuestMemory(guard=guard, shared=[shared])
    with mmap.mmap(shared.descriptor, SIZE, offset=PLACE) as client:
        memory.set_u32(PLACE + 8, 0x1234_5678)
        assert client[8:12] == bytes.fromhex("78563412")
        client[4096:4100] = b"abcd"
        assert memory.read(PLACE + 4096, 4) == b"abcd"
        memory.set_u32(PLACE - 4, 7)  # before the file: private
        memory.set_u32(PLACE + SIZE, 9)
        assert os.pread(shared.descriptor, 4, PLACE - 4) == bytes(4)


def test_released_pages_read_as_zero_everywhere() -> None:
    shared = SharedFile(PLACE, SIZE)
    memory = GuestMemory(shared=[shared])
    memory.fill(PLACE, 3 * 4096, 0xAA)
    with mmap.mmap(shared.descriptor, SIZE, offset=PLACE) as client:
        shared.release(PLACE + 4096, 4096)
        assert client[4096:8192] == bytes(4096)
        assert client[4095] == client[8192] == 0xAA
        assert memory.read(PLACE + 4096, 4096) == bytes(4096)


def test_no_process_can_change_the_size() -> None:
    shared = SharedFile(PLACE, SIZE)
    for size in (0, PLACE + 2 * SIZE):
        with pytest.raises(PermissionError):
            os.ftruncate(shared.descriptor, size)
    with pytest.raises(OSError, match="not permitted"):
        os.posix_fallocate(shared.descriptor, 0, PLACE + 2 * SIZE)


def test_offsets_can_begin_elsewhere() -> None:
    shared = SharedFile(PLACE, SIZE, start=PLACE)
    memory = GuestMemory(shared=[shared])
    memory.set_u8(PLACE + 5, 42)
    assert os.pread(shared.descriptor, 1, 5) == b"\x2a"
    assert os.fstat(shared.descriptor).st_size == SIZE


def test_what_lies_outside_of_the_address_space_is_refused() -> None:
    for address, size in ((1, 4096), (0, 100), (MEMORY_SIZE, 4096), (0, 0)):
        with pytest.raises(ValueError, match="shared memory"):
            SharedFile(address, size)

"""Guest memory: no address leaves it, ranges wrap, views share."""

import ctypes
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vc4lab.memory import MEMORY_MASK, MEMORY_SIZE, GuestMemory, SharedFile
from vc4lab.memory.host import MAPS_OVER


@pytest.fixture(scope="module")
def memory() -> GuestMemory:
    return GuestMemory()


def test_scalars_and_aliases(memory: GuestMemory) -> None:
    memory.set_u32(0xC0001000, 0x12345678)
    assert memory.u32(0x1000) == 0x12345678
    assert (memory.u8(0x1001), memory.u16(0x40001002), memory.u64(0x1000)) == (0x56, 0x1234, 0x12345678)
    memory.set_u64(0x1008, -1)
    memory.set_u16(0x1008, 0)
    memory.set_u8(0x100F, 0x1FF)
    assert memory.u64(0x1008) == 0xFFFFFFFFFFFF0000
    assert ctypes.c_uint32.from_address(memory.base + 0x1000).value == 0x12345678


def test_the_end(memory: GuestMemory) -> None:
    memory.set_u64(MEMORY_SIZE - 1, 0x1122334455667788)
    assert memory.u64(MEMORY_MASK) == 0x1122334455667788, "a scalar at the end uses the pad"
    memory.write(MEMORY_SIZE - 2, b"abcd")
    assert memory.read(0, 2) == b"cd"
    assert memory.read(MEMORY_SIZE - 2, 4) == b"abcd"
    assert bytes(memory.view(MEMORY_SIZE - 2, 4)) == b"abcd"
    memory.fill(MEMORY_SIZE - 1, 3, 7)
    assert memory.read(MEMORY_SIZE - 2, 5) == b"a\x07\x07\x07\x00"


def test_views_share(memory: GuestMemory) -> None:
    words = memory.array(0x2000, 4, "<u4")
    words[:] = [1, 2, 3, 4]
    assert memory.u32(0x2008) == 3
    memory.view(0x2000, 1)[0] = 9
    assert words[0] == 9
    assert memory.array(0x2000, 2, numpy.float32).dtype == numpy.float32


def test_populated() -> None:
    small = GuestMemory(1 << 20)
    assert small.contains(0xFFFFF)
    assert not small.contains(0xFFFFF, 2)
    assert not small.contains(1 << 20)
    with pytest.raises(ValueError, match="guest RAM"):
        GuestMemory(0)


@pytest.mark.parametrize("place", ["before", "after", "far after"])
def test_guard_pages_end_the_process(place: str) -> None:
    """In a process of its own, because nothing but a signal can come of it."""
    offset = {"before": -1, "after": "MEMORY_SIZE + PAD", "far after": (1 << 32) + (1 << 31)}
    code = (
        "import ctypes, resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n"
        "from vc4lab.memory.guest import *\n"
        "memory = GuestMemory(guard=True); memory.set_u32(MEMORY_SIZE - 1, 5)\n"
        f"ctypes.memset(memory.base + {offset[place]}, 0, 1)\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60)
    assert result.returncode == -signal.SIGSEGV, result.stderr


@given(st.integers(0, (1 << 34)), st.integers(-5, 200), st.binary(max_size=64))
def test_any_address_is_safe(address: int, size: int, data: bytes) -> None:
    memory = _SHARED
    memory.write(address, data)
    assert memory.read(address, len(data)) == data
    assert len(memory.view(address, size)) == max(size, 0)
    memory.set_u64(address, address)
    assert memory.u64(address) == address


_SHARED = GuestMemory()


def test_holds() -> None:
    memory = GuestMemory()
    memory.write(0x1000, b"picture")
    assert memory.holds(0x1000, b"picture")
    assert memory.holds(0xC0001000, b"picture"), "an alias is the same place"
    assert not memory.holds(0x1000, b"pictura")
    assert memory.holds(0x1000, b"")
    assert memory.holds(0x1001, b"a nict one", 3, 3)
    assert memory.holds(0x1000, b"a picture", 2)
    assert not memory.holds(0x1000, b"a picture", 1)
    assert memory.holds(0x1000, b"a picture", 20, 4), "nothing is left"
    memory.write(MEMORY_SIZE - 3, b"abcdef")
    assert memory.holds(MEMORY_SIZE - 3, b"abcdef"), "over the end"
    assert not memory.holds(MEMORY_SIZE - 3, b"abcdeg")


@pytest.mark.parametrize("size", [1, 64, 1024, 1025, 5000])
def test_is_clear(size: int) -> None:
    memory = GuestMemory()
    start = 0x2000
    assert memory.is_clear(start, 0)
    assert memory.is_clear(start, size)
    for at in sorted({0, size // 2, size - 1}):
        memory.write(start + at, b"x")
        assert not memory.is_clear(start, size)
        assert memory.is_clear(start, at)
        assert memory.is_clear(start + at + 1, size)
        memory.write(start + at, b"\0")
    memory.write(start, b"x" * size)
    assert not memory.is_clear(start, size), "each byte is as the one before"
    memory.write(size - 1, b"x")
    assert not memory.is_clear(MEMORY_SIZE - 1, size + 1), "over the end"
    assert memory.is_clear(MEMORY_SIZE - 1, size)


def test_clear_and_pages_of_a_file(tmp_path: Path) -> None:
    memory = GuestMemory()
    base = memory.base
    memory.write(0x3000, b"old")
    memory.write(MEMORY_SIZE - 4, b"last")
    memory.clear()
    assert (memory.base, memory.u64(0x3000), memory.u32(MEMORY_SIZE - 4)) == (base, 0, 0)
    path = tmp_path / "pages"
    path.write_bytes(bytes(4096) + b"a" * 4096 + b"b" * 4096)
    with path.open("rb") as file:
        assert not memory.map_copy(0x2000, 4096, file.fileno(), 100)
        assert not memory.map_copy(MEMORY_SIZE, 4096, file.fileno(), 0)
        assert memory.map_copy(0x2000, 8192, file.fileno(), 4096) == MAPS_OVER
    if MAPS_OVER:
        memory.write(0x2FFE, b"new!")
        assert memory.read(0x2FFD, 6) == b"anew!b"
        assert path.read_bytes()[8190:8194] == b"aabb", "the file stays"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems place memory otherwise")
def test_code_made_later_reaches_the_libraries() -> None:
    """Where it does not, the emulator calls its own functions indirectly, at up to twice the time."""
    text = (
        "import ctypes; from vc4lab.memory import GuestMemory, lazy_zeros; import vc4lab.soc.machine; "
        "from vc4lab.soc.cores.engine.engine_patches import address_of; "
        "boards = [GuestMemory() for _ in range(3)]; place = lazy_zeros(32 << 20); "
        "print(address_of('uc_emu_start') - ctypes.addressof(ctypes.c_char.from_buffer(place)))"
    )
    result = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert abs(int(result.stdout)) < 1 << 31


def test_shared_memory_is_cleared_in_place() -> None:
    file = SharedFile(0, 1 << 20)
    memory = GuestMemory(shared=[file])
    memory.write(0x5000, b"shared")
    memory.clear()
    assert os.pread(file.descriptor, 6, 0x5000) == bytes(6)
    assert not memory.map_copy(0, 4096, file.descriptor, 0)

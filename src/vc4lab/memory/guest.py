"""Guest RAM: one block of host memory that CPU, GPU and clients share without copies.

At power-on RAM holds noise, always the same: one file without a name has a piece of noise; it is mapped
again and again, privately, so that a page of its own is made only when something is written. A GiB takes
512 calls and a millisecond.
"""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import os
import struct
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from vc4lab.memory.host import (
    MAPS_OVER,
    PAGE,
    clear,
    copy,
    keep_large_apart,
    large_pages,
    lazy_zeros,
    libc,
    share,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy

PERIOD = 1 << 21
"""Bytes after which the noise repeats."""
SEED = b"vc4lab: RAM at power-on"


@cache
def pattern() -> bytes:
    """`PERIOD` bytes of noise: what is at an address is at that address modulo `PERIOD`."""
    return hashlib.shake_128(SEED).digest(PERIOD)


@cache
def _file() -> int:
    """A descriptor of a file with the pattern, for as long as the process lives."""
    descriptor = os.memfd_create("noise", os.MFD_CLOEXEC)
    with os.fdopen(os.dup(descriptor), "wb") as file:
        file.write(pattern())
    return descriptor


def part(address: int, size: int) -> bytes:
    """The noise at an address."""
    start = address % PERIOD
    if start + size <= PERIOD:
        return pattern()[start : start + size]
    whole = pattern() * (2 + size // PERIOD)
    return whole[start : start + size]


def map_noise(host: int, address: int, size: int) -> None:
    """Map noise at a place of the host's memory that stands for an address. Raises OSError."""
    end = address + size
    while address < end:
        offset = address % PERIOD
        count = min(PERIOD - offset, end - address)
        copy(host, count, _file(), offset)
        host, address = host + count, address + count


ADDRESS_BITS = 30
MEMORY_SIZE = 1 << ADDRESS_BITS
MEMORY_MASK = MEMORY_SIZE - 1
"""The two top bits of a bus address choose a cache alias; the rest is the place in RAM."""
BUS_PERIPHERALS = 0x7E
"""Byte 3 of the bus addresses at which the device registers are."""

PAD = 1 << 16
"""Bytes after the block that native code may touch when an access starts at its very end."""

FEW, STEP = 1024, 64
"""Up to so many bytes Python compares as quickly as C, which has to be called; and so many zeros that a range
begins with say that it holds zeros only, if each byte is as the one so far before."""
GUARD = 4 << 30
"""Bytes of inaccessible address space on each side of a guarded block: more than any 32-bit offset
reaches."""

LIBRARIES = 400 << 20
"""Address space that must be free besides: some of the libraries that are loaded later do not say
that they lack memory, but end the process (OpenBLAS, the translator of the CPU's emulator)."""
NEAR = 768 << 20
"""Address space left free between the libraries and guest memory, if there is so much, less than would hold
another one: code made later reaches what it calls there. The CPU's emulator has two calls in each block."""

_U16 = struct.Struct("<H")
_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")


class Mappable(Protocol):
    """Can take the place of a piece of guest memory: a `SharedFile`."""

    address: int

    def map_over(self, host_address: int) -> None:
        """Put it in the place of what is mapped there."""


class GuestMemory:
    """1 GiB of guest address space, zero at first; untouched pages cost nothing.

    `fill_with_noise` makes a range what RAM is at power-on; `noise` says which (start and end).

    Every address is masked by `MEMORY_MASK`, so no guest address leaves the block. A scalar access
    at the very end reaches into the pad, exactly as native code does; a longer range wraps to
    address 0. All values are little endian.

    Parameters
    ----------
    ram_bytes
        How much of the address space is populated RAM, for blocks that want to report an access
        outside of it. The whole 1 GiB is mapped in any case.
    guard
        Surround block and pad with address space that cannot be accessed, so that native code which
        leaves them ends in a segmentation fault at once (for tests). None: if the environment has
        a VC4LAB_GUARD. Raises OSError where mprotect fails, MemoryError without address space.
    shared
        Files that lie at their places in the address space instead of private memory: other
        processes that map them see the same bytes.
    """

    def __init__(
        self, ram_bytes: int = MEMORY_SIZE, *, guard: bool | None = None, shared: Sequence[Mappable] = ()
    ) -> None:
        if not 0 < ram_bytes <= MEMORY_SIZE:
            raise ValueError(f"guest RAM of {ram_bytes} bytes: 1 to {MEMORY_SIZE} possible")
        keep_large_apart()
        self.noise: tuple[int, int] | None = None
        self.ram_bytes = ram_bytes
        if guard is None:
            guard = bool(os.environ.get("VC4LAB_GUARD"))
        margin = GUARD if guard else 0
        size = MEMORY_SIZE + PAD
        for room in (NEAR, LIBRARIES):
            try:
                with lazy_zeros(room):  # the kernel places what is mapped next below it
                    self._map = lazy_zeros(size + 2 * margin)
                break
            except OSError:  # not one about a file that is being read at the moment
                continue
        else:
            raise MemoryError("no address space for guest RAM")
        self._bytes = memoryview(self._map)[margin : margin + size]
        self.base: int = ctypes.addressof(ctypes.c_char.from_buffer(self._bytes))
        """Host address of guest address 0: native address = base + (guest & MEMORY_MASK)."""
        if guard:
            _forbid(self.base - margin, margin)
            _forbid(self.base + size, margin)
        self._shared: dict[int, Mappable] = {}
        """Files that lie over the memory, by address; their descriptors stay open."""
        for file in shared:
            self.lay_over(file)

    def __repr__(self) -> str:
        return f"<GuestMemory of {self.ram_bytes / (1 << 20):g} MiB>"

    # -- scalars ---------------------------------------------------------------------------------

    def u8(self, address: int) -> int:
        """The byte at `address`."""
        return self._bytes[address & MEMORY_MASK]

    def u16(self, address: int) -> int:
        """The 16-bit value at `address` (any alignment)."""
        value: int = _U16.unpack_from(self._bytes, address & MEMORY_MASK)[0]
        return value

    def u32(self, address: int) -> int:
        """The 32-bit value at `address` (any alignment)."""
        value: int = _U32.unpack_from(self._bytes, address & MEMORY_MASK)[0]
        return value

    def u64(self, address: int) -> int:
        """The 64-bit value at `address` (any alignment)."""
        value: int = _U64.unpack_from(self._bytes, address & MEMORY_MASK)[0]
        return value

    def set_u8(self, address: int, value: int) -> None:
        """Store the low 8 bits of `value`."""
        self._bytes[address & MEMORY_MASK] = value & 0xFF

    def set_u16(self, address: int, value: int) -> None:
        """Store the low 16 bits of `value`."""
        _U16.pack_into(self._bytes, address & MEMORY_MASK, value & 0xFFFF)

    def set_u32(self, address: int, value: int) -> None:
        """Store the low 32 bits of `value`."""
        _U32.pack_into(self._bytes, address & MEMORY_MASK, value & 0xFFFFFFFF)

    def set_u64(self, address: int, value: int) -> None:
        """Store the low 64 bits of `value`."""
        _U64.pack_into(self._bytes, address & MEMORY_MASK, value & 0xFFFFFFFFFFFFFFFF)

    # -- as Python reads bytes --------------------------------------------------------------------

    def __getitem__(self, place: int | slice) -> int | bytes:
        """A byte, or the bytes of a range: `memory[0x8000:0x8010]`. Steps must be 1."""
        if isinstance(place, slice):
            start, size = _range(place)
            return self.read(start, size)
        return self.u8(place)

    def __setitem__(self, place: int | slice, value: int | bytes) -> None:
        """Store a byte, or bytes that fit the range exactly."""
        if not isinstance(place, slice):
            self.set_u8(place, int(value))
            return
        start, size = _range(place)
        data = bytes(value)
        if len(data) != size:
            raise ValueError(f"{len(data)} bytes for a range of {size}")
        self.write(start, data)

    # -- ranges ----------------------------------------------------------------------------------

    def read(self, address: int, size: int) -> bytes:
        """A copy of `size` bytes (at most the whole memory), wrapping at the end."""
        start = address & MEMORY_MASK
        size = min(max(size, 0), MEMORY_SIZE)
        end = start + size
        if end <= MEMORY_SIZE:
            return bytes(self._bytes[start:end])
        return bytes(self._bytes[start:MEMORY_SIZE]) + bytes(self._bytes[: end - MEMORY_SIZE])

    def write(self, address: int, data: bytes | bytearray | memoryview) -> None:
        """Store `data`, wrapping at the end; what exceeds the whole memory is dropped."""
        start = address & MEMORY_MASK
        source = memoryview(data).cast("B")[:MEMORY_SIZE]
        first = min(len(source), MEMORY_SIZE - start)
        self._bytes[start : start + first] = source[:first]
        if first < len(source):
            self._bytes[: len(source) - first] = source[first:]

    def fill(self, address: int, size: int, byte: int = 0) -> None:
        """Set `size` bytes to `byte`, wrapping at the end."""
        start = address & MEMORY_MASK
        size = min(max(size, 0), MEMORY_SIZE)
        first = min(size, MEMORY_SIZE - start)
        ctypes.memset(self.base + start, byte & 0xFF, first)
        if first < size:
            ctypes.memset(self.base, byte & 0xFF, size - first)

    def clear(self) -> None:
        """All bytes become 0; private memory is given back to the host."""
        self.noise = None
        if MAPS_OVER and not self._shared:
            clear(self.base, MEMORY_SIZE)
            return
        for address in range(0, MEMORY_SIZE, PAD):
            if self.array(address, PAD // 8, "u8").any():
                self.fill(address, PAD)

    def lay_over(self, file: Mappable) -> None:
        """Let a file lie at its place instead of what was there. Raises OSError."""
        file.map_over(self.base + file.address)
        self._shared[file.address] = file

    def take_away(self, address: int, size: int) -> None:
        """The file at an address does not lie there any more: zeros do. Raises OSError."""
        clear(self.base + address, size)
        del self._shared[address]

    def fill_with_noise(self, start: int, end: int) -> None:
        """Let whole pages of memory that nothing has written hold noise, the same each time.

        Raises ValueError for a range that is none of whole pages within the memory.
        """
        if start % PAGE or end % PAGE or not 0 <= start < end <= MEMORY_SIZE:
            raise ValueError(f"noise from 0x{start:x} to 0x{end:x}: not pages of guest memory")
        self.noise = start, end
        if MAPS_OVER and not self._shared:
            map_noise(self.base + start, start, end - start)
            return
        self.write(start, part(start, end - start))

    def at_power_on(self, address: int, size: int) -> bytes:
        """Return the bytes that a range held before anything was written; it must not wrap."""
        if self.noise is None:
            return bytes(size)
        first, last = (max(address, min(at, address + size)) for at in self.noise)
        return bytes(first - address) + part(first, last - first) + bytes(address + size - last)

    def is_untouched(self, address: int, size: int) -> bool:
        """Whether a range holds what it held at power-on."""
        start = address & MEMORY_MASK
        if self.noise is None:
            return self.is_clear(start, size)
        at = start % PERIOD
        if self.noise[0] <= start < self.noise[1] - size and at + size <= PERIOD:
            return self.holds(start, pattern(), at, size)
        return self.holds(start, self.at_power_on(start, size))

    def map_copy(self, address: int, size: int, descriptor: int, offset: int) -> bool:
        """Let pages be those of a file, which is read where they are touched and not written.

        False: it cannot be done here, and nothing has changed. The file must not shrink as long as
        the memory is used: access to what it has lost kills the process.
        """
        whole = not (address % PAGE or size % PAGE or offset % PAGE)
        inside = 0 <= address <= MEMORY_SIZE - size
        if self._shared or not (MAPS_OVER and whole and inside):
            return False
        try:
            copy(self.base + address, size, descriptor, offset)
        except OSError:
            return False
        return True

    def prefer_large_pages(self, address: int, size: int) -> None:
        """Let the host use its large pages in a range, if it has any: for what is written whole.

        A page of 4 KiB costs 1.6 us when it is touched first, one of 2 MiB 150.
        """
        start = address & MEMORY_MASK
        large_pages(self.base + start, min(max(size, 0), MEMORY_SIZE - start))

    def holds(self, address: int, data: bytes, at: int = 0, size: int | None = None) -> bool:
        """Whether these bytes are found at `address`; by far the quickest way to compare many.

        at, size: a part of `data`, all from `at` on if None.
        """
        left = max(len(data) - at, 0)
        size = left if size is None else min(size, left)
        start = address & MEMORY_MASK
        if size <= FEW and start + size <= MEMORY_SIZE:
            return bytes(self._bytes[start : start + size]) == data[at : at + size]
        compare = _memcmp()
        if compare is None or start + size > MEMORY_SIZE:
            return self.read(address, size) == data[at : at + size]
        there = ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0
        return bool(compare(self.base + start, there + at, size) == 0)

    def is_clear(self, address: int, size: int) -> bool:
        """Whether a range holds zeros only; nothing is made to compare it with."""
        start = address & MEMORY_MASK
        compare = _memcmp()
        if size <= FEW or compare is None or start + size > MEMORY_SIZE:
            return not self.read(start, size).strip(b"\0")
        first = self.base + start
        return self.is_clear(start, STEP) and compare(first, first + STEP, size - STEP) == 0

    def view(self, address: int, size: int) -> memoryview:
        """`size` bytes in place. A range over the end is a read-only, wrapped copy instead."""
        start = address & MEMORY_MASK
        size = min(max(size, 0), MEMORY_SIZE)
        if start + size <= MEMORY_SIZE:
            return self._bytes[start : start + size]
        return memoryview(self.read(address, size))

    def array(self, address: int, count: int, dtype: Any = "u1") -> numpy.ndarray:
        """`count` elements of `dtype` in place as a numpy array (a copy if the range wraps)."""
        import numpy

        kind = numpy.dtype(dtype)
        count = min(max(count, 0), MEMORY_SIZE // kind.itemsize)
        return numpy.frombuffer(self.view(address, count * kind.itemsize), dtype=kind)

    def contains(self, address: int, size: int = 1) -> bool:
        """Whether the range lies in populated RAM, without wrapping."""
        start = address & MEMORY_MASK
        return 0 <= size <= self.ram_bytes - start


@cache
def _memcmp() -> Any:
    """The C library's function, which works in place; None where it is not found."""
    try:
        function = ctypes.CDLL(None).memcmp
    except (OSError, AttributeError, TypeError):
        return None
    function.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
    return function


def _range(place: slice) -> tuple[int, int]:
    """Start and size of a slice of addresses."""
    if place.step not in (None, 1):
        raise ValueError("a range of guest memory has no step")
    start = place.start or 0
    stop = MEMORY_SIZE if place.stop is None else place.stop
    if start < 0 or stop < 0:
        raise ValueError("guest addresses are not negative")
    return start, max(stop - start, 0)


def _forbid(address: int, size: int) -> None:
    """Take all access to pages away. Raises OSError."""
    library = ctypes.CDLL(None, use_errno=True)
    library.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    if library.mprotect(address, size, 0):
        raise OSError(ctypes.get_errno(), "mprotect of guard pages failed")


_SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW
_KEEP_SIZE, _PUNCH_HOLE = 1, 2


class SharedFile:
    """`size` bytes of the guest's address space from `address` on, zero at first.

    A byte's offset in the file is its guest address minus `start` (0 by default, so that offsets
    are addresses; what lies before `address` is then never used). The file can neither shrink nor
    grow: a process that maps it cannot make another one's access fail. Untouched pages cost
    nothing.
    """

    def __init__(self, address: int, size: int, *, start: int = 0, name: str = "guest") -> None:
        if address % PAGE or size % PAGE or start % PAGE or size <= 0:
            raise ValueError("shared memory begins and ends with a page")
        if not 0 <= start <= address or address + size > MEMORY_SIZE:
            raise ValueError("shared memory outside of the guest's address space")
        self.address = address
        self.size = size
        self.start = start
        self.descriptor = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.descriptor, address + size - start)
        fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, _SEALS)
        self.inode = os.fstat(self.descriptor).st_ino
        """Its number, by which /proc names it."""

    def __del__(self) -> None:
        descriptor = getattr(self, "descriptor", -1)
        if descriptor >= 0:
            os.close(descriptor)

    def map_over(self, host_address: int) -> None:
        """Put the file in the place of what is mapped there. Raises OSError."""
        offset = self.address - self.start
        share(host_address, self.size, self.descriptor, offset)

    def release(self, address: int, size: int) -> None:
        """Give whole pages back: they read as zero from now on, everywhere. Raises OSError."""
        if address % PAGE or size % PAGE or address < self.address:
            raise ValueError("not pages of this file")
        mode = _KEEP_SIZE | _PUNCH_HOLE
        if libc().fallocate(self.descriptor, mode, address - self.start, size):
            raise OSError(ctypes.get_errno(), "pages of guest memory cannot be released")

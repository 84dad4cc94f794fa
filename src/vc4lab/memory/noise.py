"""What RAM holds at power-on: noise, always the same, that takes memory only where it is written.

One file without a name has a piece of noise; it is mapped again and again, privately, so that a
page of its own is made only when something is written. A GiB takes 512 calls and a millisecond.
"""

from __future__ import annotations

import hashlib
import os
from functools import cache

from vc4lab.memory.mappings import copy

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

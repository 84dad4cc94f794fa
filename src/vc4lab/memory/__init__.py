"""Guest RAM, shared by CPU, GPU and clients without copies."""

from vc4lab.memory.guest import (
    ADDRESS_BITS,
    BUS_PERIPHERALS,
    MEMORY_MASK,
    MEMORY_SIZE,
    PAD,
    GuestMemory,
)
from vc4lab.memory.shared import SharedFile

__all__ = [
    "ADDRESS_BITS",
    "BUS_PERIPHERALS",
    "MEMORY_MASK",
    "MEMORY_SIZE",
    "PAD",
    "GuestMemory",
    "SharedFile",
]

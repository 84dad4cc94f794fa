"""Trapped instructions that native code does: a hook of the engine at each place.

Hooks stand at virtual addresses, where another program may have other code; so a hook knows where
the host has the word, and leaves to Python what is not the instruction that it does.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from vc4lab.simd import Struct, Value, call_pointer, i32, ptr, staged, store
from vc4lab.soc.native import SliceState

ON_INSTRUCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_void_p)


class PlaceState(Struct):
    """A place: what of its core the hook needs, where its word is, and Python for another word."""

    owner = ptr
    code = ptr
    other = ptr


@staged
def go_on_after(
    engine: Value,
    executed: SliceState,
    address: Value,
    write_register: Value,
    pc_register: Value,
    scratch: Value,
) -> None:
    """The instruction of 4 bytes at `address` is done: the core goes on with the next one.

    What follows in its block is counted when it comes. `scratch`: where the new PC may be kept.
    """
    rest = executed.block + executed.block_size - address - 4
    if rest > 0:
        executed.count = executed.count - rest.shr(2)
    store(scratch, address + 4)
    call_pointer(write_register, i32, (ptr, i32, ptr), engine, pc_register, scratch)


def host_address(function: Any) -> int:
    """The host address of a function of ctypes."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0


class NativePlace:
    """One hook.

    Parameters
    ----------
    function, owner
        Host addresses of the function and of what it needs of its core.
    code
        Host address of the word.
    python
        Does other instructions, given the address and the size.
    """

    def __init__(self, function: int, owner: int, code: int, python: Callable[[int, int], None]) -> None:
        self._function = function
        self._python = ON_INSTRUCTION(lambda _engine, address, size, _data: python(address, size))
        self._state = PlaceState(owner=owner, code=code, other=host_address(self._python))

    def move(self, code: int) -> None:
        """The address belongs to another page of memory now."""
        self._state.code = code

    @property
    def hook(self) -> tuple[int, int]:
        """For the engine: host addresses of the function and of its state."""
        return self._function, self._state.address

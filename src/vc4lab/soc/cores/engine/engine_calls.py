"""The engine's C functions with other prototypes: addresses of native code go in unwrapped."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

from unicorn import UcError

from vc4lab.soc.cores.engine.engine_patches import address_of, library

KNOWN_VERSION = (2, 1)
"""The offsets below were found in this version of the engine."""
PLACES_AT, COUNT_AT = 56, 12
"""In a hook: where its table of the pieces of code that it sees is; in that: how many."""
MONITOR_AT_64, MONITOR_AT_32, NO_MONITOR = 12072, 3816, (1 << 64) - 1
"""Place of the last load-exclusive's address in the engine's copy, and its value for none."""
SYNDROME_AT, STATUS_AT, FAULT_ADDRESS_AT = 3064, 3068, 3072
SLOT, VALUES = 5, {7: 4, 5: 3}
"""Size of the engine's description of a system register, in units of 64 bits, and the place of the
value in it, by how many numbers name it: seven in AArch32 (a coprocessor's), five in AArch64."""

EVERYWHERE = 1, 0
"""First and last address of a hook that has no range, as the engine has it."""

START = (ctypes.c_void_p, *(ctypes.c_uint64,) * 3, ctypes.c_size_t)
"""Types of what `uc_emu_start` gets: engine, where it begins and ends, time, instructions."""

Name = int | tuple[int, ...]
"""A register's number, or for a system register the engine's numbers of it."""
Call = Callable[[Any, Any, int], int]


class FaultStatus(NamedTuple):
    """An abort as the engine knows it: its syndrome, its status in AArch32, its address."""

    syndrome: int
    status: int
    address: int


NO_FAULT = FaultStatus(0, 0, 0)


class Layout(NamedTuple):
    """Buffers of the batches of the same registers, of all cores: made once.

    `numbers` are the engine's, `words` what describes the system registers, with values of 0; a
    register has `places` bytes into that, its value the element `value` of it.
    """

    numbers: Any
    words: bytes
    places: tuple[int, ...]
    value: int


@cache
def layout_of(coprocessor: int, names: tuple[Name, ...]) -> Layout:
    """Lay out a `RegisterBatch`."""
    at_value = VALUES[max((len(name) for name in names if not isinstance(name, int)), default=7)]
    words = bytearray(8 * SLOT * len(names))
    numbers, places = [], []
    for slot, name in enumerate(names):
        at = 8 * SLOT * slot
        numbers.append(name if isinstance(name, int) else coprocessor)
        places.append(at + 8 * at_value if isinstance(name, int) else at)
        if not isinstance(name, int):
            struct.pack_into(f"={len(name)}I", words, at, *name)
    return Layout((ctypes.c_int * len(names))(*numbers), bytes(words), tuple(places), at_value)


class RegisterBatch:
    """Some registers of one core, read or written by one call of the engine, in a fixed order.

    The engine's Python binding needs two microseconds for each register; exceptions need a dozen. A
    guest that does nothing but svc takes 70 % more CPU time when they are read one by one.

    Parameters
    ----------
    read, write
        The engine's functions for it: numbers, places of the values, how many.
    coprocessor
        The engine's register number that stands for all registers of coprocessors.
    """

    STEP = 8 * SLOT

    def __init__(self, read: Call, write: Call, coprocessor: int, names: Sequence[Name]) -> None:
        numbers, words, places, at_value = layout_of(coprocessor, tuple(names))
        size = len(places)
        self._buffer = (ctypes.c_uint64 * (SLOT * size)).from_buffer_copy(words)
        base = ctypes.addressof(self._buffer)
        self._numbers = numbers
        self._places = (ctypes.c_void_p * size)(*[base + place for place in places])
        self._size = size
        self._read, self._write = (partial(call, numbers, self._places, size) for call in (read, write))
        self._first = base + 8 * at_value
        self._values: Any = memoryview(self._buffer).cast("B").cast("Q")[at_value::SLOT]

    @property
    def addresses(self) -> tuple[int, int, int, int]:
        """For native code: numbers, places, first value (others are `STEP` apart), how many."""
        numbers, places = ctypes.addressof(self._numbers), ctypes.addressof(self._places)
        return numbers, places, self._first, self._size

    def read(self) -> list[int]:
        """The registers' values now."""
        if self._read():
            raise RuntimeError("the CPU engine does not know a register")
        values: list[int] = self._values.tolist()
        return values

    def write(self, *values: int) -> None:
        """Write all of them, the first one first."""
        for slot, value in enumerate(values):
            self._values[slot] = value
        if self._write():
            raise RuntimeError("the CPU engine does not know a register")


@cache
def _version() -> tuple[int, int]:
    """The engine's version."""
    from unicorn.unicorn_py3 import unicorn as binding

    major, minor, *_ = binding.uc_version()
    return major, minor


class EngineCalls:
    """Calls one core's engine by functions that Python's binding of it has not."""

    def __init__(self, engine: Any) -> None:
        self._library = library()
        self._handle = ctypes.c_void_p(engine._uch.value)
        self.handle: int = engine._uch.value
        self._start = self._library.uc_emu_start
        self._start.argtypes = START
        self._version = _version()
        self.stop: Callable[[], int] = partial(self._library.uc_emu_stop, self._handle)
        """Let the engine come back, as its binding does it, in half of the time."""
        self._engine = engine
        self._context: Any = None
        """The engine's copy of its state that the status of aborts is read from."""

    def start(self, begin: int, end: int) -> None:
        """Let the core run; as the binding does it, in half of its time.

        Raises
        ------
        UcError, and what a hook in Python has raised.
        """
        self._engine._hook_exception = None
        self.look_at_end(self._start(self._handle, begin, end, 0, 0))

    def look_at_end(self, error: int) -> None:
        """The core has run: raise what ended that, if something did; `error`: its number."""
        if error:
            raise UcError(error)  # type: ignore[no-untyped-call]
        raised, self._engine._hook_exception = self._engine._hook_exception, None
        if raised is not None:
            raise raised

    @staticmethod
    def address_of(name: str) -> int:
        """Host address of one of the engine's functions."""
        return address_of(name)

    def add_hook(
        self, kind: int, function: int, state: int, *more: int, span: tuple[int, int] = EVERYWHERE
    ) -> int:
        """Let the engine call native code at every event of a kind, or in a range of addresses.

        `more`: which instruction; `span`: the first and the last address. The result is the
        engine's handle of the hook.
        """
        begin, end = span
        hook = ctypes.c_size_t()
        error = self._library.uc_hook_add(
            self._handle,
            ctypes.byref(hook),
            ctypes.c_int(kind),
            ctypes.c_void_p(function),
            ctypes.c_void_p(state),
            ctypes.c_uint64(begin),
            ctypes.c_uint64(end),
            *map(ctypes.c_int, more),
        )
        if error:
            raise RuntimeError(f"the CPU engine rejects a hook (error {error})")
        return hook.value

    def remove_hook(self, hook: int) -> None:
        """Take a hook away; between two runs of the engine."""
        self._library.uc_hook_del(self._handle, ctypes.c_size_t(hook))

    def places_of(self, hook: int) -> int:
        """How many pieces of code the engine remembers of a hook; 0 if this version is not known.

        It forgets none, also when the code has gone, so that it can translate them anew when the
        hook is taken away.
        """
        if self._version != KNOWN_VERSION:
            return 0
        table = ctypes.c_void_p.from_address(hook + PLACES_AT).value or 0
        return ctypes.c_uint32.from_address(table + COUNT_AT).value if table else 0

    def map_window(self, base: int, size: int, functions: tuple[int, int, int]) -> None:
        """Send loads and stores in a window to native functions (`Bus.native_window`)."""
        read, write, state = (ctypes.c_void_p(address) for address in functions)
        error = self._library.uc_mmio_map(
            self._handle, ctypes.c_uint64(base), ctypes.c_size_t(size), read, state, write, state
        )
        if error:
            raise RuntimeError(f"the CPU engine rejects a device window (error {error})")

    def batch(self, coprocessor: int, names: Sequence[Name]) -> RegisterBatch:
        """These registers, to be read or written together."""
        library, handle = self._library, self._handle
        read = partial(library.uc_reg_read_batch, handle)
        write = partial(library.uc_reg_write_batch, handle)
        return RegisterBatch(read, write, coprocessor, names)

    @property
    def context(self) -> int:
        """Host address of the copy that `uc_context_save` makes; 0 if this version is not known."""
        if self._version != KNOWN_VERSION:
            return 0
        if self._context is None:
            self._context = self._engine.context_save()
        return int(self._context._context.value)

    def fault_status(self) -> FaultStatus:
        """Read the status of an abort, in its hook: only the engine's saved context shows it."""
        at = self.context
        if not at:
            return NO_FAULT
        self._library.uc_context_save(self._handle, self._context._context)
        return FaultStatus(
            ctypes.c_uint32.from_address(at + SYNDROME_AT).value,
            ctypes.c_uint32.from_address(at + STATUS_AT).value,
            ctypes.c_uint64.from_address(at + FAULT_ADDRESS_AT).value,
        )

    def monitors(self, at: int) -> bool:
        """Whether a load-exclusive has left the core's monitor armed; `at`: where the copy has it.

        True if this version of the engine is not known.
        """
        context = self.context
        if not context:
            return True
        self._library.uc_context_save(self._handle, self._context._context)
        return ctypes.c_uint64.from_address(context + at).value != NO_MONITOR

    def translate(self, address: int, right: int) -> int | None:
        """The physical address of a virtual one, None if none is."""
        place = ctypes.c_uint64()
        error = self._library.uc_vmem_translate(
            self._handle, ctypes.c_uint64(address), ctypes.c_int(right), ctypes.byref(place)
        )
        return None if error else place.value

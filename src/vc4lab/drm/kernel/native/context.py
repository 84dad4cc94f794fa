"""What the compiled builder shares with Python: one block per thread, and tables made once."""

from __future__ import annotations

import ctypes
import struct
import threading
from typing import Any

from vc4lab.simd import Struct, i64, ptr

DONE, UNUSUAL = 0, 1
"""What a kernel returns. UNUSUAL: Python has to look, and has its reasons in words."""
NO_WORD = 0xFFFFFFFF
"""Stands for a texture parameter that a request does not have."""
USE_BYTES = 12
"""Bytes of a shader state: attributes with EXTENDED, highest index, buffer of the fragment code."""
EXTENDED = 0x100
STREAM_HEAD = 16
"""Bytes before the requests of a stream: words, requests, resets, whether it switches threads."""
REQUEST_BYTES = 20
"""Bytes of a request: whether it is direct, words with the base, the clamp or P1, P2, P3."""


class JobContext(Struct):
    """One job: its streams, where the results go, and how far the builder has come."""

    bin_size = i64
    records_size = i64
    words_size = i64
    buffer_count = i64
    memory = ptr
    """Host address of guest address 0."""
    limit = i64
    """Guest address at which memory ends."""
    tile_memory = i64
    tile_memory_size = i64
    lists = i64
    """Where the binning list goes."""
    first_record = i64
    uses = ptr
    room = i64
    """Shader states for which `uses` has room."""
    # results
    bin_end = i64
    next_record = i64
    next_uniforms = i64
    tiles_x = i64
    tiles_y = i64
    tile_lists = i64
    use_count = i64
    next_word = i64


INPUTS = struct.Struct("<12Q")
"""All members before the results; written at once, because each member alone takes as long."""


class RenderContext(Struct):
    """One rendering list: bytes of its first, its other and its last tiles, and their order."""

    first = ptr
    first_size = i64
    middle = ptr
    middle_size = i64
    last = ptr
    last_size = i64
    start_x = i64
    start_y = i64
    step_x = i64
    step_y = i64
    columns = i64
    rows = i64
    bin_tiles_x = i64
    full_res_per_row = i64


class Scratch(threading.local):
    """Per thread: the block of the job at hand, and room for its shader states."""

    def __init__(self) -> None:
        self.job = JobContext()
        self.address: int = self.job.address
        self._room = 0
        self._place = 0
        self._uses: Any = None
        self.uses = memoryview(b"")
        """The rows as 32-bit numbers."""

    def begin(self, room: int, *inputs: int) -> None:
        """Fill the block for a job of at most `room` shader states. `inputs`: up to `uses`."""
        if not room <= self._room <= 16 * max(room, 4096):  # nor is very much kept
            self._room = max(room, 256)
            self._uses = ctypes.create_string_buffer(self._room * USE_BYTES)
            self.uses = memoryview(self._uses).cast("B").cast("I")
            self._place = ctypes.addressof(self._uses)
        INPUTS.pack_into(self.job, 0, *inputs, self._place, room)

"""Shared by the builder and Python: one block per thread, and numbers of findings."""

from __future__ import annotations

import ctypes
import struct
import threading
from enum import IntEnum
from typing import Any

from vc4lab.simd import Struct, Value, const, i32, i64, ptr, staged

NO_WORD = 0xFFFFFFFF
"""Stands for a texture parameter that a request does not have."""
USE_BYTES = 16
"""Bytes of a shader state: attributes with EXTENDED, highest index, buffer of the fragment code,
byte of the binning list."""
EXTENDED = 0x100
STREAM_HEAD = 16
"""Bytes before the requests of a stream: words, requests, resets, whether it switches threads."""
REQUEST_BYTES = 20
"""Bytes of a request: whether it is direct, words with the base, the clamp or P1, P2, P3."""


class Finding(IntEnum):
    """Why the builder stopped. Nearly all refuse the job; `findings.py` has the words."""

    DONE = 0
    # the record of the binning list at `position`
    BAD_RECORD = 1
    NOT_STARTED = 2
    NO_END = 3
    SECOND_MODE = 4
    NO_TILES = 5
    REFUSED_MODE = 6
    BAD_START = 7
    NOT_AT_END = 8
    TOO_MANY_STATES = 9
    STATE_WITH_ADDRESS = 10
    DRAW_WITHOUT_STATE = 11
    LARGE_INDEX = 12
    """A warning: the job goes on when it is reported (`reported`)."""
    BAD_HANDLE = 13
    INDICES_OUTSIDE = 14
    BAD_VERTICES = 15
    # the shader record `use_number`; `item` is a number of its program's requests, or attributes
    SHORT_RECORDS = 16
    BAD_CODE_BUFFER = 17
    CODE_WITH_OFFSET = 18
    UNKNOWN_SHADER = 19
    """The job goes on when the shader is checked."""
    BAD_THREADS = 20
    SHORT_UNIFORMS = 21
    BAD_TEXTURE_BUFFER = 22
    BAD_TEXTURE = 23
    BAD_ATTRIBUTE_BUFFER = 24
    ATTRIBUTE_OUTSIDE = 25


class TextureFinding(IntEnum):
    """Why a texture or a lookup of memory is refused (`reason`, with up to two `values`)."""

    ACCEPTED = 0
    TYPE = 1
    TWO_STRIDES = 2
    NO_STRIDE = 3
    END = 4
    """Level 0 ends at byte `value`."""
    LEVEL = 5
    """Level `value` of `more` bytes begins before the buffer."""
    LOOKUP_BASE = 6
    LOOKUP_CLAMP = 7


@staged
def found(finding: IntEnum) -> Value:
    """The result of a kernel."""
    return const(i32, int(finding))


class JobContext(Struct):
    """One job: its streams, where the results go, and how far the builder has come."""

    bin_size = i64
    records_size = i64
    words_size = i64
    buffer_count = i64
    memory = ptr
    """Host address of guest address 0."""
    tile_memory = i64
    tile_memory_size = i64
    lists = i64
    """The address that the binning list is written to."""
    first_record = i64
    uses = ptr
    room = i64
    """Shader states for which `uses` has room."""
    # where it goes on
    bin_end = i64
    next_record = i64
    reported = i64
    """Byte of the binning list up to which warnings were reported."""
    position = i64
    """Byte of the binning list where the record at hand begins."""
    handle = i64
    started = i64
    ends = i64
    tiles_x = i64
    use_count = i64
    use_number = i64
    use_record = i64
    """Byte of the stream where the record at hand begins."""
    use_address = i64
    next_uniforms = i64
    next_word = i64
    # results
    tiles_y = i64
    tile_lists = i64
    program = i64
    item = i64
    reason = i64
    value = i64
    more = i64


BEGINNING = struct.Struct("<25Q")
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
        lists, first_record = inputs[-2:]
        BEGINNING.pack_into(
            self.job, 0, *inputs, self._place, room,
            lists, first_record, *[0] * 9, first_record, 0, 0,
        )  # fmt: skip

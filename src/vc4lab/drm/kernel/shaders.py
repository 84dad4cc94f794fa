"""Shaders that were checked: once, when their buffer is made, as the kernel does."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from vc4lab.drm.kernel.shader_rules import Violation, check_shader
from vc4lab.drm.kernel.streams import Stream
from vc4lab.drm.uapi.submit import Buffer
from vc4lab.qpu.isa.encoding import INSTRUCTION_BYTES, words_of
from vc4lab.qpu.program.program import DEFAULT_LIMIT
from vc4lab.qpu.program.reader import program_at

if TYPE_CHECKING:
    from vc4lab.memory import GuestMemory

_row = struct.Struct("<IIQ").pack
"""A buffer in compiled code's form: address, size, place of its stream's table."""
MAX_TABLES = 256
MAX_TABLE = 256
"""Buffers of a job whose table is remembered."""
Streams = list[Stream | None]


class KnownShaders:
    """Shaders that were checked before, by the addresses of their buffers.

    Parameters
    ----------
    memory
        Where buffers lie whose content can change: a shader counts as known as long as its code is
        still there. None: buffers that nothing can write after they were checked.
    """

    def __init__(self, memory: GuestMemory | None = None) -> None:
        self._memory = memory
        self._streams: dict[int, Stream] = {}
        self._tables: dict[int, tuple[tuple[Buffer, ...], Streams, bytes]] = {}

    def add(self, address: int, stream: Stream) -> None:
        """Remember the shader whose buffer begins there, instead of the one that was there."""
        self._streams[address] = stream
        self._tables.clear()

    def table(self, buffers: tuple[Buffer, ...]) -> tuple[Streams, bytes]:
        """The shaders in a job's buffers, and the buffers in compiled code's form.

        Where nothing can write them, they are remembered for this very tuple. Raises struct.error.
        """
        kept = self._tables.get(id(buffers))
        if kept is not None and kept[0] is buffers:
            return kept[1], kept[2]
        streams: Streams = []
        rows = []
        for buffer in buffers:
            stream = self.find(buffer.address, buffer.size) if buffer.shader else None
            streams.append(stream)
            place = stream.table_address if stream is not None else 0
            rows.append(_row(buffer.address, buffer.size, place))
        row_bytes = b"".join(rows)
        if self._memory is None and len(buffers) <= MAX_TABLE:
            if len(self._tables) >= MAX_TABLES:
                self._tables.clear()
            self._tables[id(buffers)] = buffers, streams, row_bytes
        return streams, row_bytes

    def find(self, address: int, size: int) -> Stream | None:
        """The shader in that buffer, if it was checked before."""
        stream = self._streams.get(address)
        if stream is None or self._memory is None:
            return stream
        same = stream.size == size and self._memory.holds(address, stream.code)
        return stream if same else None


def analyse(memory: GuestMemory, address: int, size: int) -> Stream:
    """Check a shader's buffer as the kernel does when it is made. Raises Violation."""
    length = INSTRUCTION_BYTES * min(size // INSTRUCTION_BYTES, DEFAULT_LIMIT)
    checked = check_shader(words_of(memory.read(address, length)))
    program = program_at(memory, address, limit=checked.length)
    for problem in program.problems:
        if problem.code == "QPU-047":  # breakpoints are not the kernel's business
            continue
        index = (problem.address - address) // INSTRUCTION_BYTES
        raise Violation("DRM-011", 2, index, problem.message)
    return Stream.of(program, checked, size)

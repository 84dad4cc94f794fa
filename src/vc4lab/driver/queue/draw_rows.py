"""Draws that Mesa's stream has in a row, added to the frame at hand by one native pass.

What a draw is prepared for is its state, by the places of its blocks, and its numbers: such draws
are looked up here and placed (`draws/placing.py`), most of them with vertices of their own. At
anything else (a clear, another frame buffer, a draw that is not known or that looked at what has
changed since) the pass stops; the processor executes that row as a command, and the pass goes on.
"""

from __future__ import annotations

import ctypes
import struct
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from vc4lab.driver.commands import commands as c
from vc4lab.driver.commands.blocks import STAGE_PARTS
from vc4lab.driver.draws.placing import Constants, Vertices, is_current, place
from vc4lab.driver.draws.plans import Placed, Sink
from vc4lab.memory.native import host, word_at
from vc4lab.mesa.protocol.fields import WORD
from vc4lab.mesa.protocol.limits import VERTEX_BUFFERS
from vc4lab.mesa.protocol.work_commands import Clear, DrawVbo
from vc4lab.mesa.state import draw_run as runs
from vc4lab.mesa.state.pipe import buffer_offsets
from vc4lab.mesa.state.walk import BUFFER_WORDS, CLEAR_WORDS, INDICES_WORDS, OFFSET_WORD, Row
from vc4lab.simd.kernel import kernel, staged
from vc4lab.simd.members import Array, i1, i32, i64, ptr
from vc4lab.simd.memory import load, store
from vc4lab.simd.native import NativeFunction, build
from vc4lab.simd.struct import Struct
from vc4lab.simd.value import Value, const, select

if TYPE_CHECKING:
    from vc4lab.driver.commands.stored_blocks import BlockWriter, SharedState
    from vc4lab.driver.draws.frame_draws import FrameDraws
    from vc4lab.driver.draws.prepared import PreparedDraw
    from vc4lab.driver.gpu.memory import GpuMemory

KNOWN = 1 << 13
"""Room for known draws; half of it is used, so that a free one is near."""
HINTS = ("min_index", "max_index")
"""Fields of a draw that its prepared form does not depend on."""
START, COUNT, BIAS = OWN = tuple(DrawVbo.specs[name].at for name in ("start", "count", "index_bias"))
"""Words of a draw that say which vertices it has."""
NUMBERS = tuple(
    sorted(
        {
            spec.at
            for name, spec in DrawVbo.specs.items()
            if name not in HINTS and spec.at < DrawVbo.lengths[0]
        }
    )
)
"""The words of a draw that it depends on."""
MOST_OFFSETS = 8
"""Offsets of buffers that belong to a draw that cannot move."""
STATE_WORDS = 1 + 2 * len(STAGE_PARTS)
"""Words of a key that are the places of the blocks of its state."""
KIND_WORDS = STATE_WORDS + len(NUMBERS) + 1
"""The last one: how many offsets follow, or MOVES."""
KEY_WORDS = KIND_WORDS + MOST_OFFSETS
MOVES = -1
PRIME = 0x9E3779B1 - (1 << 32)
_KEPT = struct.Struct(f"<{3 + STATE_WORDS}I")
"""A screen's words of a state (`DrawRun.kept`): the generation of the writer's blocks, the number
of offsets of its buffers, the address of its frame buffer's block, those of its blocks."""
OFFSETS, FRAMEBUFFER, BLOCKS = 1, 2, 3
_OFFSETS = struct.Struct(f"<{VERTEX_BUFFERS + 1}I")
assert _KEPT.size <= WORD * runs.KEPT_WORDS


class Known(Struct):
    """A known draw: its key, and what is added to a frame."""

    placed = ptr
    """0: a free row."""
    key = Array(i32, KEY_WORDS)


class Pass(Struct):
    """The pass over the rows of a run: what it reads, and how far it is."""

    memory = ptr
    sink = ptr
    known = ptr
    fresh = ptr
    """Known draws that the frame had none of before, by their numbers."""
    data = ptr
    rows = ptr
    kept = ptr
    vertex = ptr
    """Constants of rows that have none of their own, and their bytes."""
    fragment = ptr
    vertex_size = i32
    fragment_size = i32
    count = i32
    next = i32
    """The first row that is in no frame."""
    generation = i32
    fresh_count = i32
    vertex_place = i32
    """Whose constants are in GPU memory for look-ups, and where; 0: nowhere."""
    vertex_address = i32
    fragment_place = i32
    fragment_address = i32
    slot = i32
    """The slot of the draw that the pass stopped at if it moves, and if not; -1: it did not stop
    at one, or it has too many offsets."""
    fixed_slot = i32
    before = Array(i32, VERTEX_BUFFERS + 1)
    """Offsets of buffers where a row has none, the last one of the index buffer."""
    offsets = Array(i32, VERTEX_BUFFERS + 1)
    """Offsets of the draw at hand."""
    key = Array(i32, KEY_WORDS)
    """The key of that draw if it moves, and if not."""
    fixed_key = Array(i32, KEY_WORDS)


@staged
def _read_key(p: Any, draw: Value, kept: Value) -> None:
    """The key of a draw, without the numbers of its vertices."""
    for number in range(STATE_WORDS):
        store(p.key + 4 * number, load(i32, kept + 4 * (BLOCKS + number)))
    for number, word in enumerate(NUMBERS, STATE_WORDS):
        value = const(i32, 0) if word in OWN else load(i32, draw + 4 * word)
        store(p.key + 4 * number, value)
    store(p.key + 4 * (KIND_WORDS - 1), const(i32, MOVES))


@staged
def _fix_key(p: Any, draw: Value, count: Value) -> Value:
    """The key of a draw that does not move, after the other one is there; whether it has one."""
    for number in range(KIND_WORDS - 1):
        store(p.fixed_key + 4 * number, load(i32, p.key + 4 * number))
    for number, word in enumerate(NUMBERS, STATE_WORDS):
        if word in OWN:
            store(p.fixed_key + 4 * number, load(i32, draw + 4 * word))
    store(p.fixed_key + 4 * (KIND_WORDS - 1), count)
    for number in range(MOST_OFFSETS):
        value = select(count.ugt(number), load(i32, p.offsets + 4 * number), const(i32, 0))
        store(p.fixed_key + 4 * (KIND_WORDS + number), value)
    return count.ule(MOST_OFFSETS)


@staged
def _find(p: Any, place: Value, words: int) -> Value:
    """The number of the row with a key of so many words, or of a free one."""
    key = const(i32, 0)
    for number in range(words):
        key = (key ^ load(i32, place + 4 * number)) * PRIME
        key = key ^ key.shr(15)
    slot = key & (KNOWN - 1)
    looking = const(i1, True)
    while looking:
        row: Any = Known.at(p.known + slot.zext(i64) * Known.size)
        looking = row.placed != const(ptr, 0)
        if looking:
            differs = const(i32, 0)
            for number in range(words):
                differs |= load(i32, row.key + 4 * number) ^ load(i32, place + 4 * number)
            looking = differs != 0
            if looking:
                slot = (slot + 1) & (KNOWN - 1)
    return slot


@staged
def _read_offsets(p: Any, row: Any, count: Value) -> None:
    """The offsets of a row's buffers."""
    number: Any
    has_buffers, has_indices = row.buffers >= 0, row.indices >= 0
    first = word_at(p.data, row.buffers + OFFSET_WORD)
    source = select(has_buffers, first, p.before)
    size = select(has_buffers, const(i32, BUFFER_WORDS), const(i32, 1))
    for number in range(count):
        store(word_at(p.offsets, number), load(i32, word_at(source, number * size)))
    last = word_at(p.data, row.indices + INDICES_WORDS - 1)
    source = select(has_indices, last, p.before + 4 * VERTEX_BUFFERS)
    store(word_at(p.offsets, count), load(i32, source))


@staged
def _for_look_ups(p: Any, words: Value, size: Value) -> Value:
    """Constants in GPU memory: their address, 0 if there is no room."""
    sink: Any = Sink.at(p.sink)
    number: Any
    address: Any = (sink.arena + 15) & -16
    if size <= sink.arena_end - address:
        sink.arena = address + size
        to = host(p.memory, address)
        for number in range(size.shr(2)):
            store(word_at(to, number), load(i32, word_at(words, number)))
    else:
        address = const(i32, 0)
    found: Value = address
    return found


@staged
def _constants(p: Any, row: Any, draw: Any) -> tuple[Constants, Constants]:
    """Those of both stages; where the draw looks some up, they are in GPU memory."""
    has_vertex, has_fragment = row.vertex >= 0, row.fragment >= 0
    vertex = select(has_vertex, word_at(p.data, row.vertex), p.vertex)
    fragment = select(has_fragment, word_at(p.data, row.fragment), p.fragment)
    vertex_size = select(has_vertex, row.vertex_words * 4, p.vertex_size)
    fragment_size = select(has_fragment, row.fragment_words * 4, p.fragment_size)
    if draw.look_up_count != 0:
        if (p.vertex_address == 0) | (p.vertex_place != row.vertex):
            p.vertex_place = row.vertex
            p.vertex_address = _for_look_ups(p, vertex, vertex_size)
        if (p.fragment_address == 0) | (p.fragment_place != row.fragment):
            p.fragment_place = row.fragment
            p.fragment_address = _for_look_ups(p, fragment, fragment_size)
    return (
        Constants(vertex, vertex_size, p.vertex_address),
        Constants(fragment, fragment_size, p.fragment_address),
    )


@staged
def _add_one(p: Any, row: Any, draw: Value, slot: Value, moves: bool) -> Value:
    """Add the known draw at a slot, if there is one; whether it is in the frame."""
    placed = Known.at(p.known + slot.zext(i64) * Known.size).placed
    added: Any = placed != const(ptr, 0)
    if added:
        known: Any = Placed.at(placed)
        sink: Any = Sink.at(p.sink)
        added = is_current(sink, known, known.moving_seen_count if moves else known.seen_count)
        if added:
            start, count, bias = (load(i32, draw + 4 * word) for word in OWN)
            vertices = Vertices(const(i1, moves), start, count, bias, p.offsets)
            added = place(p.sink, placed, _constants(p, row, known), vertices)
            if added & (known.job != sink.job):
                known.job = sink.job
                store(word_at(p.fresh, p.fresh_count), known.number)
                p.fresh_count = p.fresh_count + 1
    is_added: Value = added
    return is_added


@kernel(args=(ptr,), returns=None)
def _add(context: Value) -> None:
    p: Any = Pass.at(context)
    going = p.next < p.count
    while going:
        row: Any = Row.at(p.rows + p.next.zext(i64) * Row.size)
        kept = p.kept + row.state.zext(i64) * (WORD * runs.KEPT_WORDS)
        draw = word_at(p.data, row.draw)
        going = load(i32, kept) == p.generation
        going &= (load(i32, draw - 4) & 0xFF) == DrawVbo.number
        p.slot = -1
        p.fixed_slot = -1
        if going:
            count = load(i32, kept + 4 * OFFSETS)
            _read_offsets(p, row, count)
            _read_key(p, draw, kept)
            p.slot = _find(p, p.key, KIND_WORDS)
            going = _add_one(p, row, draw, p.slot, True)
            if going == 0:
                if _fix_key(p, draw, count + 1):
                    p.fixed_slot = _find(p, p.fixed_key, KEY_WORDS)
                    going = _add_one(p, row, draw, p.fixed_slot, False)
            if going:
                p.next = p.next + 1
                going = p.next < p.count


@cache
def _native() -> NativeFunction:
    return build("gl_draw_rows", {"add": _add}, float_mode="caller", key="gl_draw_rows")["add"]


class DrawRows:
    """The pass over runs of draws, and the draws that it knows: at most `MOST`."""

    MOST = KNOWN // 2

    def __init__(self, memory: GpuMemory, writer: BlockWriter, frame: FrameDraws) -> None:
        self._memory, self._writer, self._frame = memory, writer, frame
        self._native = _native()
        self._rows = np.zeros(KNOWN * Known.size, np.uint8)
        self._fresh = np.zeros(runs.ROWS, np.int32)
        self.known: list[tuple[PreparedDraw, SharedState]] = []
        self._pass = Pass(
            memory=memory.guest.base,
            sink=frame.sink.address,
            known=self._rows.ctypes.data,
            fresh=self._fresh.ctypes.data,
            slot=-1,
            fixed_slot=-1,
        )
        self._turn = memory.states.turn
        self._run: Any = None
        self._offsets: tuple[int, ...] = ()
        self._constants: tuple[tuple[bytes, ...], ...] = ()
        """Constants of rows that have none of their own."""

    def forget(self) -> None:
        """Nothing is known any more."""
        self._rows[...] = 0
        self.known.clear()
        self._pass.slot = self._pass.fixed_slot = -1

    def begin(self, run: runs.DrawRun) -> None:
        """The rows of a run are next."""
        here, self._run = self._pass, run
        here.data, here.rows, here.count, here.next = run.address, run.rows, run.length, 0
        here.kept = run.kept.ctypes.data
        offsets = *run.offsets, *[0] * (VERTEX_BUFFERS - len(run.offsets)), run.index_offset
        if offsets != self._offsets:
            self._offsets = offsets
            ctypes.memmove(here.address + Pass.before.offset, _OFFSETS.pack(*offsets), _OFFSETS.size)
        if run.constants != self._constants:
            self._constants = run.constants
            # They live as long as the pass has their addresses.
            vertex, fragment = self._values = [
                np.frombuffer(one[0] if one else b"", np.uint8) for one in run.constants
            ]
            here.vertex, here.fragment = vertex.ctypes.data, fragment.ctypes.data
            here.vertex_size, here.fragment_size = len(vertex), len(fragment)

    def end(self) -> None:
        """The run is done."""
        self._run = None
        self._pass.slot = self._pass.fixed_slot = -1

    @property
    def left(self) -> bool:
        """Whether rows of the run are in no frame."""
        return bool(self._pass.next < self._pass.count)

    def add(self, reserve: int) -> tuple[int, list[tuple[PreparedDraw, SharedState]]]:
        """Add what is known, as long as the arena has so many bytes left.

        Returns
        -------
        tuple
            How many draws; those that the frame has for the first time, each once: prepared, and
            their state.
        """
        here, sink = self._pass, self._frame.sink
        if self._turn != self._memory.states.turn:
            # Blocks of state may lie elsewhere.
            self._turn = self._memory.states.turn
            self.forget()
        here.fresh_count = here.vertex_address = here.fragment_address = 0
        first = here.next
        while True:
            here.generation = self._writer.generation
            self._frame.take_arena()
            sink.arena_end -= reserve
            self._native(here.address)
            self._frame.give_arena()
            if not self.left or not self._keep_state():
                break
        fresh = [self.known[one] for one in self._fresh[: here.fresh_count].tolist()]
        return here.next - first, fresh

    def _row(self) -> Any:
        """The first row that is in no frame."""
        return Row.python.from_address(self._pass.rows + self._pass.next * Row.size)

    def _keep_state(self) -> bool:
        """Put the blocks of that row's state into memory; False: they are there."""
        number, writer = self._row().state, self._writer
        if self._run.kept[number, 0] == writer.generation:
            return False
        state = self._run.states[number]
        pipe_state = writer.pipe_state(state)
        stages = writer.stage_words(state.vertex) + writer.stage_words(state.fragment)
        data = _KEPT.pack(
            *(writer.generation, len(state.vertex_buffers)),
            *(writer.framebuffer(state.framebuffer), pipe_state),
            *struct.unpack(f"<{STATE_WORDS - 1}I", stages),
        )
        self._run.kept[number, : _KEPT.size // WORD] = np.frombuffer(data, np.uint32)
        return True

    def command(self) -> bytes | c.Draw:
        """The command of that row, which is executed in another way; the next one comes then.

        A clear as its bytes, by which the frame that it begins is known.
        """
        row, run, writer = self._row(), self._run, self._writer
        self._pass.next += 1
        state, place = run.states[row.state], row.draw * WORD
        if run.data[place - WORD] == Clear.number:
            framebuffer = writer.framebuffer(state.framebuffer)
            values: bytes = run.data[place : place + CLEAR_WORDS * WORD]
            return CLEAR_HEAD.pack(c.Clear.number | c.Clear.fixed << 8, framebuffer) + values
        offsets, vertices = run.offsets_of(row), 0
        if offsets != buffer_offsets(state):
            own = offsets if state.index_buffer is not None else offsets[:-1]
            vertices = writer.frame_block(struct.pack(f"<{len(own)}I", *own))
        shader_state = writer.shader_state(state, run.constants_of(row))
        asked = run.data[place : place + DrawVbo.lengths[0] * WORD]
        return c.draw_of(asked, vertices, writer.pipe_state(state), shader_state)

    def learn(self, made: PreparedDraw, shared: SharedState, *, moves: bool) -> None:
        """The draw that the pass has stopped at is this one, for the frame at hand.

        moves: also with other vertices.
        """
        here = self._pass
        slot = here.slot if moves else here.fixed_slot
        if slot < 0:
            return
        if len(self.known) >= self.MOST:
            self.forget()
            return
        block = made.placed.block
        block.framebuffer = self._frame.sink.framebuffer
        block.job = self._frame.sink.job
        block.number = len(self.known)
        self.known.append((made, shared))
        row: Any = Known.python.from_address(here.known + slot * Known.size)
        row.placed = made.placed.address
        row.key = list(here.key if moves else here.fixed_key)
        here.slot = here.fixed_slot = -1


CLEAR_HEAD = struct.Struct("<2I")
assert c.Clear.fixed == 1 + Clear.fixed

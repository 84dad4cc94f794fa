"""The attribute DMA (VCD): brings attributes of batches, or shaded vertices, into the VPM.

It reads memory without the L2 cache, and writes the VPM vertex by vertex and word by word. While the
oldest batch's bytes come, it asks for those of the next ones. Vertices that were shaded before (NV)
are done when they are there.
"""

from __future__ import annotations

from typing import Any

from vc4lab.simd import Value, call, const, i32, i64, kernel, load, max_, ptr, select, staged, store
from vc4lab.timing.compute.kinds import FRACTION, MemorySource
from vc4lab.timing.event_scheduler import Engine, count_busy, number_of, wake_self
from vc4lab.timing.graphics.kinds import GraphicsQueue, shaded_queue
from vc4lab.timing.graphics.requests import ask_memory, take_answer
from vc4lab.timing.graphics.state import Batch, Fetch
from vc4lab.timing.graphics.vertices.state import TAKEN, Attributes
from vc4lab.timing.graphics.vertices.vertex_cache import batch_at
from vc4lab.timing.queues import first_piece, is_readable, queue_at, remove_piece, write_piece

_ROUND = (1 << FRACTION) - 1


@staged
def _place(attributes: Attributes, number: Any) -> Value:
    """The place of a batch that was taken: number 0 is the oldest."""
    found: Value = ((attributes.head + number) & (TAKEN - 1)).sext(i64)
    return found


@staged
def _thread(attributes: Attributes, number: Any) -> Value:
    """Its thread."""
    return load(i32, attributes.threads + (_place(attributes, number) << 2)).sext(i64)


@staged
def _batch(attributes: Attributes, number: Any) -> Batch:
    """A batch that was taken."""
    row = load(i32, attributes.taken + (_place(attributes, number) << 2))
    batches = load(ptr, attributes.batches + (_thread(attributes, number) << 3))
    return batch_at(batches, row)


@staged
def _asked_all(attributes: Attributes) -> Value:
    """Whether all reads of the batches that were taken are under way (1)."""
    done = const(i32, 1)
    if attributes.count > 0:
        left = _batch(attributes, attributes.count - 1).fetches - attributes.asked
        done = select(left > 0, const(i32, 0), done)
    return done


@staged
def _take_batch(engine: Engine, attributes: Attributes, clock: Value) -> None:
    """Another batch, once all of the one before was asked for."""
    queue = queue_at(engine, GraphicsQueue.FETCHES, number_of(engine))
    if (attributes.count < TAKEN) & (_asked_all(attributes) != 0):
        if call(is_readable, engine.pointer, queue.pointer, clock) != 0:
            piece, place = first_piece(queue), _place(attributes, attributes.count)
            store(attributes.taken + (place << 2), piece.place.trunc(i32))
            store(attributes.threads + (place << 2), piece.tag.trunc(i32))
            call(remove_piece, engine.pointer, queue.pointer, clock)
            attributes.count = attributes.count + 1
            attributes.asked = const(i32, 0)
            if _batch(attributes, attributes.count - 1).fetches == 0:
                wake_self(engine, clock + 1)


@staged
def _ask(engine: Engine, attributes: Attributes, clock: Value) -> None:
    """Asks the memory for the next bytes of the newest batch."""
    if (attributes.open < attributes.ahead) & (_asked_all(attributes) == 0):
        batch = _batch(attributes, attributes.count - 1)
        row = (batch.first_fetch + attributes.asked).sext(i64)
        thread = _thread(attributes, attributes.count - 1)
        fetches = load(ptr, attributes.fetches + (thread << 3))
        fetch = Fetch.at(fetches + row * Fetch.size, 8)
        size = fetch.bytes
        if ask_memory(engine, MemorySource.ATTRIBUTES, fetch.location, size, clock) != 0:
            attributes.asked = attributes.asked + 1
            attributes.open = attributes.open + 1
            attributes.bytes = attributes.bytes + size
            wake_self(engine, clock + 1)


@staged
def _part(attributes: Attributes, batch: Batch) -> Value:
    """How long a batch takes to be written to the VPM."""
    vertices, words = batch.vertices.sext(i64), batch.words.sext(i64)
    return vertices * attributes.vertex_part + words * attributes.word_part


@staged
def _take_bytes(engine: Engine, attributes: Attributes, clock: Value) -> None:
    """Bytes of the oldest batch have come: they go into the VPM at their pace."""
    if attributes.count > 0:
        batch = _batch(attributes, 0)
        if attributes.back < batch.fetches:
            if take_answer(engine, MemorySource.ATTRIBUTES, clock) != 0:
                part, reads = _part(attributes, batch), batch.fetches.sext(i64)
                before = attributes.back.sext(i64)
                share = part * (before + 1) // reads - part * before // reads
                attributes.time_part = max_(attributes.time_part, clock << FRACTION) + share
                attributes.back = attributes.back + 1
                attributes.open = attributes.open - 1
                if attributes.back == batch.fetches:
                    wake_self(engine, (attributes.time_part + _ROUND) >> FRACTION)


@staged
def _hand_on(engine: Engine, attributes: Attributes, clock: Value) -> None:
    """The oldest batch is in the VPM: it is to be shaded, or is done."""
    if attributes.count > 0:
        batch = _batch(attributes, 0)
        asked = (attributes.count > 1) | (attributes.asked >= batch.fetches)
        if asked & (attributes.back >= batch.fetches):
            end = (attributes.time_part + _ROUND) >> FRACTION
            if clock < end:
                wake_self(engine, end)
            else:
                thread = _thread(attributes, 0)
                row = load(i32, attributes.taken + (_place(attributes, 0) << 2)).sext(i64)
                cluster = number_of(engine)
                number = shaded_queue(cluster, thread.trunc(i32))
                shaded = queue_at(engine, GraphicsQueue.SHADED, number)
                batches = queue_at(engine, GraphicsQueue.BATCHES, cluster)
                in_memory = batch.shader < 0
                batch.done = select(in_memory, const(i32, 1), batch.done)
                wrote = call(
                    write_piece,
                    engine.pointer, select(in_memory, shaded.pointer, batches.pointer),
                    clock, clock + 1, thread, row, thread,
                )  # fmt: skip
                if wrote != 0:
                    attributes.head = (attributes.head + 1) & (TAKEN - 1)
                    attributes.count = attributes.count - 1
                    attributes.back = const(i32, 0)
                    count_busy(engine, _part(attributes, batch) >> FRACTION)
                    wake_self(engine, clock + 1)


@kernel(args=(ptr, ptr, i64))
def step_attributes(address: Value, state: Value, clock: Value) -> None:
    """Hands a batch on, takes bytes that have come and another batch, and asks for bytes."""
    engine, attributes = Engine.at(address), Attributes.at(state)
    _hand_on(engine, attributes, clock)
    _take_bytes(engine, attributes, clock)
    _take_batch(engine, attributes, clock)
    _ask(engine, attributes, clock)

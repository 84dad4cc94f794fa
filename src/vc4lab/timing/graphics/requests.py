"""Reads and writes of guest memory by modules that draw; each of them is a source of its own, and
so are those of one kind in several clusters.
"""

from __future__ import annotations

from typing import Any

from vc4lab.simd import Value, call, i64, staged
from vc4lab.timing.compute.kinds import SOURCE_BITS, QueueKind
from vc4lab.timing.compute.sdram import answer_queue
from vc4lab.timing.event_scheduler import Engine, number_of
from vc4lab.timing.queues import is_readable, queue_at, remove_piece, write_piece


@staged
def _source(engine: Engine, source: int) -> Value:
    """The source with the cluster of the module that is called now."""
    return (number_of(engine).sext(i64) << SOURCE_BITS) + int(source)


@staged
def ask_memory(engine: Engine, source: int, location: Value, size: Any, clock: Value) -> Value:
    """Asks for bytes to be moved: 1, or 0 if there is no room; then the module is called again."""
    requests = queue_at(engine, QueueKind.MEMORY_REQUESTS, 0)
    return call(
        write_piece,
        engine.pointer, requests.pointer, clock, clock + 1,
        _source(engine, source), location, size,
    )  # fmt: skip


@staged
def take_answer(engine: Engine, source: int, clock: Value) -> Value:
    """1 if bytes that this source asked for have come; else it is called when they do."""
    number = answer_queue(_source(engine, source))
    answers = queue_at(engine, QueueKind.MEMORY_ANSWERS, number)
    came = call(is_readable, engine.pointer, answers.pointer, clock)
    if came != 0:
        call(remove_piece, engine.pointer, answers.pointer, clock)
    return came

"""Reads and writes of guest memory by modules that draw; each of them is a source of its own."""

from __future__ import annotations

from typing import Any

from vc4lab.simd import Value, call, const, i32, i64, staged
from vc4lab.timing.clockwork import (
    Engine,
    is_readable,
    queue_at,
    remove_piece,
    write_piece,
)
from vc4lab.timing.compute.kinds import QueueKind


@staged
def ask_memory(engine: Engine, source: int, location: Value, size: Any, clock: Value) -> Value:
    """Asks for bytes to be moved: 1, or 0 if there is no room; then the module is called again."""
    requests = queue_at(engine, QueueKind.MEMORY_REQUESTS, const(i32, 0))
    return call(
        write_piece,
        engine.pointer, requests.pointer, clock, clock + 1,
        const(i64, int(source)), location, size,
    )  # fmt: skip


@staged
def take_answer(engine: Engine, source: int, clock: Value) -> Value:
    """1 if bytes that this source asked for have come; else it is called when they do."""
    answers = queue_at(engine, QueueKind.MEMORY_ANSWERS, const(i32, int(source)))
    came = call(is_readable, engine.pointer, answers.pointer, clock)
    if came != 0:
        call(remove_piece, engine.pointer, answers.pointer, clock)
    return came

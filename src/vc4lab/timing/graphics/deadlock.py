"""A model of frames that stands still: which queues are full, and who waits for whom."""

from __future__ import annotations

import ctypes
from typing import Any

from vc4lab.timing.compute.kinds import Cause
from vc4lab.timing.graphics.kinds import SHADER_CAUSE_TEXT
from vc4lab.timing.graphics.shaders.state import Segment, ShaderQpu
from vc4lab.timing.graphics.state import Shader, TaskKind
from vc4lab.timing.machine import Machine


def deadlock(machine: Machine) -> list[str]:
    """Lines about a model in which nothing happens any more, though a frame is not done."""
    lines = ["the model stands still before the frame is done:"]
    states = machine.states
    reader = states["rendering_list"][0]
    lines.append(
        f"rendering_list: at step {reader.step}, {reader.tiles - reader.tiles_done} tiles ahead of "
        "the tile buffer"
    )
    clusters = zip(states["setup"], states["front_end"], states["tile_buffer"], strict=True)
    for cluster, (setup, front, tile) in enumerate(clusters):
        if setup.list:
            waits = " waits for shaded vertices of" if setup.starved else ""
            at = f"primitive {setup.following} (list {setup.list - 1})"
            lines.append(f"setup {cluster}:{waits} {at}")
        if front.primitive:
            at = f"primitive {front.primitive - 1}, vector {front.vector}"
            lines.append(f"front_end {cluster}: {at}")
        at = f"{tile.written} vectors, operation {tile.work - 1}"
        lines.append(f"tile_buffer {cluster}: {at}")
    for name, queues in machine.queues.items():
        for number, queue in enumerate(queues):
            if not queue.count:
                continue
            full = "full" if queue.count >= queue.capacity else f"{queue.count} pieces"
            reader_name, place = machine.names[queue.reader]
            waiting = [
                f"{one} {at}"
                for bit, (one, at) in enumerate(machine.names)
                if queue.writers[bit >> 6] >> (bit & 63) & 1
            ]
            writers = f"; {', '.join(waiting)} waits for room" if waiting else ""
            lines.append(f"queue {name} {number}: {full}, read by {reader_name} {place}{writers}")
    return lines


def standing_threads(machine: Machine) -> list[str]:
    """Lines about threads that have not ended, if nothing happens any more."""
    lines = []
    for number, qpu in enumerate(machine.states["qpu"]):
        if not isinstance(qpu, ShaderQpu.python):  # a stand-in
            continue
        for thread in (qpu.first, qpu.second):
            if thread.alive:
                lines.append(f"QPU {number}, {_task(thread)}: {_waits(qpu, thread)}")
    return lines


def _task(thread: Any) -> str:
    what = "vector" if thread.kind == TaskKind.FRAGMENTS else "batch"
    return f"{what} {thread.task}"


def _waits(qpu: Any, thread: Any) -> str:
    """Report the place at which a thread waits, and for what."""
    shader = Shader.python.from_address(thread.shader)
    if thread.step >= thread.steps:
        place = "at its end"
    else:
        route = ctypes.c_int32.from_address(thread.route + 4 * thread.step)
        segment = Segment.python.from_address(thread.segments + Segment.size * route.value)
        first = int(segment.first) + int(thread.issued)
        place = f"at 0x{(shader.code + 8 * first) & 0xFFFFFFFF:08x}"
    cause = Cause(thread.cause)
    if thread.waits:
        return f"{place}, gave way to the other thread"
    if qpu.current != thread.number + 1:
        return f"{place}, has not begun"
    return f"{place}: {SHADER_CAUSE_TEXT.get(cause, 'its turn')}"

"""QPUs whose shaders wait for ever: which thread, where, and for what."""

from __future__ import annotations

import ctypes
from typing import Any

from vc4lab.timing.compute.kinds import Cause
from vc4lab.timing.graphics.kinds import SHADER_CAUSE_TEXT
from vc4lab.timing.graphics.shaders.state import Segment, ShaderQpu
from vc4lab.timing.graphics.state import Shader, TaskKind
from vc4lab.timing.machine import Machine


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

"""The reference interpreter's half of a draw: the QPU interpreter on numpy words, native TLB and TMU.

The pipeline with engine "interpreter" writes each block to the `FragmentQueue` of its thread and
calls back here when that is full, or the list ends. Only QPU instructions are interpreted; depth
test, colour writes and texture samples are the staged functions of the compiled engines, built on
their own, so they agree.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from vc4lab.interruption import Interrupted, came, is_overdue
from vc4lab.qpu.run.environment import LeftProgram, Unsupported
from vc4lab.v3d.reference.draw import registered
from vc4lab.v3d.state import tile_context as tc
from vc4lab.v3d.state.tile_context import FragmentQueue, TileContext

FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)

Shade = Callable[..., Any]

QUEUES_RUN = [0]
"""Queues of blocks interpreted so far, by all threads: the progress that a watchdog sees."""


def run_waiting(context: int, params: int, shade: Shade | None = None) -> int:
    """Run the blocks that wait in the queue of a TileContext (host addresses); a status.

    shade: what runs them, with the arguments of `shade_queue`; None: that.
    """
    queue = ctypes.c_uint64.from_address(context + TileContext.batch.offset).value
    waiting = ctypes.c_int32.from_address(queue + FragmentQueue.count.offset)
    count, waiting.value = waiting.value, 0
    draw = registered(params)
    if draw is None or draw.failure is not None:
        return tc.STATUS_UNSUPPORTED
    decides = draw.alone or draw.proven
    if draw.termination.unproven and not decides:
        return tc.STATUS_UNPROVEN
    from vc4lab.v3d.reference.queue import shade_queue

    if is_overdue():
        draw.failure = Interrupted(came())
        return tc.STATUS_UNSUPPORTED
    QUEUES_RUN[0] += 1  # two threads that count as one do no harm

    granted = ctypes.c_int32.from_address(context + TileContext.budget.offset).value
    try:
        (shade or shade_queue)(draw, context, params, queue, count, draw.budget(granted))
    except LeftProgram as verdict:
        place = context + TileContext.left.offset
        ctypes.c_uint32.from_address(place).value = verdict.target
        return tc.STATUS_LEFT
    except Unsupported as verdict:
        if verdict.code == "QPU-041":  # which may be different in another tile
            if decides:
                return tc.STATUS_ENDLESS
            draw.termination.unproven = True
            return tc.STATUS_UNPROVEN
        draw.failure = verdict
        return tc.STATUS_UNSUPPORTED
    except Exception as error:  # native code cannot pass it on: the report does
        draw.failure = error
        return tc.STATUS_UNSUPPORTED
    return tc.STATUS_OK


_callback = FUNCTION(run_waiting)


def batch_callback() -> int:
    """Host address of the C function for `TileContext.callback`."""
    address = ctypes.cast(_callback, ctypes.c_void_p).value
    assert address is not None
    return address

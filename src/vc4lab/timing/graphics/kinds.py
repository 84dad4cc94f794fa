"""Numbers of the modules and queues that draw; they go on where those of user programs end.

The event scheduler calls modules by their number, so the topology of a frame has the modules of user
programs first (`compute/kinds.py`), then these, in this order; queues likewise.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from vc4lab.timing.compute.kinds import Cause, ModuleKind, QueueKind


class GraphicsModule(IntEnum):
    """The modules that draw. README.md has what each does."""

    BINNING_LIST = len(ModuleKind)
    RENDERING_LIST = len(ModuleKind) + 1
    VERTEX_CACHE = len(ModuleKind) + 2
    ATTRIBUTES = len(ModuleKind) + 3
    BINNER = len(ModuleKind) + 4
    SETUP = len(ModuleKind) + 5
    FRONT_END = len(ModuleKind) + 6
    TILE_BUFFER = len(ModuleKind) + 7
    SHADER_SCHEDULER = len(ModuleKind) + 8
    GLOBAL_SCHEDULER = len(ModuleKind) + 9


class GraphicsQueue(IntEnum):
    """The queues between them. README.md has what their pieces mean."""

    BINNING_GROUPS = len(QueueKind)
    RENDERING_GROUPS = len(QueueKind) + 1
    FETCHES = len(QueueKind) + 2
    BATCHES = len(QueueKind) + 3
    BINNED = len(QueueKind) + 4
    PRIMITIVES = len(QueueKind) + 5
    SET_UP = len(QueueKind) + 6
    VECTORS = len(QueueKind) + 7
    SHADERS = len(QueueKind) + 8
    SHADED = len(QueueKind) + 9
    PIXELS = len(QueueKind) + 10
    TILE_WORK = len(QueueKind) + 11
    TILE_DONE = len(QueueKind) + 12
    COMMANDS = len(QueueKind) + 13


def shaded_queue(cluster: Any, thread: Any) -> Any:
    """The number of a cluster's queue SHADED for a list thread."""
    return cluster * 2 + thread


SHADER_CAUSE_TEXT = {
    Cause.INSTRUCTIONS: "instruction cache",
    Cause.UNIFORMS: "uniforms",
    Cause.TMU_RESULT: "TMU result",
    Cause.TMU_ROOM: "TMU request queue full",
    Cause.SFU: "SFU in use by another QPU",
    Cause.VPM_READ: "VPM",
    Cause.SCOREBOARD: "scoreboard",
    Cause.VARYINGS: "varyings",
    Cause.THREAD_SWITCH: "the other thread",
    Cause.TILE_BUFFER: "tile buffer load",
    Cause.OUTPUT: "no room for what it made",
}
"""Why a shader does not go on."""

"""Numbers that native code and Python share: kinds of modules and queues, causes of stalls."""

from __future__ import annotations

from enum import IntEnum, IntFlag


class ModuleKind(IntEnum):
    """The modules, in the order in which the event scheduler calls those that are due together."""

    HOST = 0
    SCHEDULER = 1
    SDRAM = 2
    L2 = 3
    INSTRUCTION_CACHE = 4
    UNIFORM_CACHE = 5
    TMU = 6
    LOADER = 7
    STORER = 8
    QPU = 9


class QueueKind(IntEnum):
    """The queues between them."""

    PROGRAMS = 0
    LAUNCHES = 1
    L2_REQUESTS = 2
    L2_ANSWERS = 3
    TMU_REQUESTS = 4
    TMU_RESULTS = 5
    MEMORY_REQUESTS = 6
    MEMORY_ANSWERS = 7


class MemorySource(IntEnum):
    """Who asks the SDRAM; those that read have an answer queue of the same number."""

    L2 = 0
    LOADER = 1
    STORER = 2
    BINNING_LIST = 3
    RENDERING_LIST = 4
    ATTRIBUTES = 5
    TILE_LOADS = 6
    TILE_STORES = 7
    TILE_LISTS = 8


WRITERS = (MemorySource.STORER, MemorySource.TILE_STORES, MemorySource.TILE_LISTS)
"""Sources that get no answers."""

ANSWERS = max(source for source in MemorySource if source not in WRITERS) + 1
"""Queues of memory answers that a cluster has, by source."""

SOURCE_BITS = 4
"""A source's number; the bits above it are those of the cluster that it is in."""


class Cause(IntEnum):
    """Why a QPU does not issue."""

    NONE = 0
    INSTRUCTIONS = 1
    UNIFORMS = 2
    TMU_RESULT = 3
    TMU_ROOM = 4
    SFU = 5
    VPM_READ = 6
    VPM_WRITE = 7
    LOAD_START = 8
    STORE_START = 9
    LOAD_WAIT = 10
    STORE_WAIT = 11
    MUTEX = 12
    SEMAPHORE = 13
    SCOREBOARD = 14
    VARYINGS = 15
    THREAD_SWITCH = 16
    TILE_BUFFER = 17
    OUTPUT = 18
    NO_PROGRAM = 19


CAUSES = 20
"""Places in tables of causes."""

CAUSE_TEXT = {
    Cause.INSTRUCTIONS: "instruction cache",
    Cause.UNIFORMS: "uniforms",
    Cause.TMU_RESULT: "TMU result",
    Cause.TMU_ROOM: "TMU request queue full",
    Cause.SFU: "SFU in use by another QPU",
    Cause.VPM_READ: "VPM read set-up",
    Cause.VPM_WRITE: "VPM write queue full",
    Cause.LOAD_START: "DMA load engine in use",
    Cause.STORE_START: "DMA store engine in use",
    Cause.LOAD_WAIT: "waits for its DMA load",
    Cause.STORE_WAIT: "waits for its DMA store",
    Cause.MUTEX: "mutex",
    Cause.SEMAPHORE: "semaphore",
    Cause.NO_PROGRAM: "no program",
}
"""The causes of user programs, in words; `graphics/kinds.py` has those of shaders."""


class Flag(IntFlag):
    """Names a need of an instruction that the rest of the chip must meet."""

    UNIFORM = 1 << 0
    SECOND_UNIFORM = 1 << 1
    LOOKUP0 = 1 << 2
    LOOKUP1 = 1 << 3
    PARAMETER = 1 << 4
    RESULT0 = 1 << 5
    RESULT1 = 1 << 6
    SFU = 1 << 7
    VPM_READ = 1 << 8
    VPM_WRITE = 1 << 9
    LOAD_START = 1 << 10
    STORE_START = 1 << 11
    LOAD_WAIT = 1 << 12
    STORE_WAIT = 1 << 13
    ACQUIRE = 1 << 14
    RELEASE = 1 << 15
    RAISE = 1 << 16
    LOWER = 1 << 17
    BRANCH = 1 << 18
    END = 1 << 19
    RECORDED = 1 << 20
    VARYING = 1 << 21
    TILE = 1 << 22
    TILE_LOAD = 1 << 23
    LOCK = 1 << 24
    UNLOCK = 1 << 25
    SWITCH = 1 << 26
    LAST_SWITCH = 1 << 27
    VPM_SETUP = 1 << 28
    MOVES_UNIFORMS = 1 << 29


OF_SHADERS = (
    Flag.VARYING | Flag.TILE | Flag.TILE_LOAD | Flag.LOCK | Flag.UNLOCK | Flag.SWITCH
    | Flag.LAST_SWITCH | Flag.VPM_SETUP | Flag.MOVES_UNIFORMS
)  # fmt: skip
"""Flags that user programs do not have (varyings, the tile buffer and its scoreboard, another
thread), or that are recorded of them."""

LOCAL = Flag.BRANCH | Flag.END | OF_SHADERS
"""Needs that no other module sees."""

FRACTION = 10
"""Bits after the point of clocks that are no whole numbers."""

LINE = 64
LINE_BITS = 6
"""Bytes of a line of every cache."""

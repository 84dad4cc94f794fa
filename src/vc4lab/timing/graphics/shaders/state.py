"""The memory of QPUs that run shaders: segments of programs, threads, the QPU."""

from __future__ import annotations

from vc4lab.simd import Array, Struct, i32, i64, nested, ptr
from vc4lab.timing.compute.kinds import CAUSES
from vc4lab.timing.compute.state import MAX_CLUSTERS, Qpu

MAX_SLICES = 4 * MAX_CLUSTERS
"""Slices of a chip at most."""
THREADS = 2
"""Threads of a QPU."""
SLOTS = 256
"""Turns of a unit that are kept (a power of two), more than a QPU runs ahead."""
READS = 8
"""Varyings whose reads a thread remembers, the most that its queue holds."""
RESULTS = 8
"""Results of a TMU that a thread remembers, more than its queue holds."""
REQUEST_WORDS = 8
"""Words of a request at most: its parameters may be written more often than there is room for."""


class Segment(Struct):
    """Instructions of a program of which nothing but the first one has to wait.

    meets: the needs of its first instruction (`Flag`); UNIFORM: it reads the first word of a line,
    MOVES_UNIFORMS: `line` is fetched from now on. first, slots: its instructions. words: of the TMU
    request that its first instruction completes. line: of uniforms (from the one with the program's
    first word on) that is fetched. uniforms: words read. tile: accesses to the tile buffer.
    executed, stalls: how often it was run, and clocks that the first instruction waited.
    """

    meets = i32
    first = i32
    slots = i32
    words = i32
    line = i32
    uniforms = i32
    tile = i32
    unused = i32
    executed = i64
    stalls = Array(i64, CAUSES)


class Thread(Struct):
    """A thread of a QPU.

    alive: it has a task; order: the number of its start among those of the QPU. waits: it gave way
    to the other thread; ordered: it goes on only when older ones have ended; switched: the segment
    it is at need not give way again. locked: 1 while it holds the tile, 2 afterwards.
    announced: its end is signalled. given: when its QPU got it, maybe before the thread before had
    ended; uniforms and varyings come from then on.
    step, steps: the segments of its run, from `route` on; issued: instructions of the one it is at.
    due: when its next instruction could issue; cause: what it waits for.
    line: of instructions, the last one that was there; cached: all of its program was in the cache
    when it began, when that had had so many misses.
    line_at, line_comes: when the line of uniforms that was asked for last is there, if that is
    known; uniform_line: the first one. requested, arrived, taken: of each TMU, results; ready: when
    they came, complete_at: the last of them. words: in the request queues, up to `room`.
    varyings, read: varyings read, and when. accesses: to the tile buffer.
    """

    shader = ptr
    segments = ptr
    route = ptr
    alive = i32
    kind = i32
    task = i32
    order = i32
    number = i32
    step = i32
    steps = i32
    waits = i32
    ordered = i32
    switched = i32
    locked = i32
    cause = i32
    accesses = i32
    cached = i32
    line_comes = i32
    requests = i32
    varyings = i32
    issued = i32
    room = i32
    announced = i32
    due = i64
    given = i64
    started = i64
    line = i64
    line_at = i64
    uniform_line = i64
    vpm_at = i64
    complete_at = i64
    misses = i64
    requested = Array(i32, 4)
    arrived = Array(i32, 4)
    taken = Array(i32, 4)
    words = Array(i32, 4)
    ready = Array(i64, 4 * RESULTS)
    read = Array(i64, READS)


class ShaderQpu(Struct):
    """A QPU that runs shaders. It begins with what user programs have of one.

    current: the thread that runs + 1. free_at: when the next one can. order: threads started.
    idle: clocks in which threads waited and none could run. tasks: by `TaskKind`; busy: clocks of
    their instructions; spent: from their beginnings to their ends.
    """

    common = nested(Qpu)
    first = nested(Thread)
    second = nested(Thread)
    free_at = i64
    idle = i64
    tasks = Array(i64, 4)
    busy = Array(i64, 4)
    spent = Array(i64, 4)
    current = i32
    order = i32


class ShadingFigures(Struct):
    """Figures of the QPUs, in clocks, and turns of units that they share.

    ..._turns: of each slice (VPM: of each cluster) who has which turn (`needs.take_turn`).
    """

    varying_interval = i64
    varying_latency = i64
    tile_latency = i64
    first_uniforms = i64
    varying_depth = i32
    request_words = i32
    sfu_turns = Array(i64, MAX_SLICES * SLOTS)
    varying_turns = Array(i64, MAX_SLICES * SLOTS)
    vpm_turns = Array(i64, MAX_CLUSTERS * SLOTS)

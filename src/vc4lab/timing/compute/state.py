"""The memory of the modules that take part in user programs."""

from __future__ import annotations

from vc4lab.simd import Array, Struct, i32, i64, nested, ptr
from vc4lab.timing.compute.kinds import CAUSES, SOURCE_BITS
from vc4lab.v3d.user_programs.recording.format import MAX_LINES

MAX_QPUS = 16
"""QPUs of a cluster at most."""
MAX_CLUSTERS = 4
WAITERS = 8
"""Waiters of a slice: two threads of each QPU."""
VECTORS = 32
"""Requests of a QPU whose addresses are kept, more than its queues hold."""
IN_FLIGHT = 16
"""Vectors that a TMU works on at most, and lines that a cache waits for."""
TEXELS = IN_FLIGHT
"""In the tag of a TMU's request to the L2 cache, above its vector: texels are looked up."""
SOURCES = 1 << SOURCE_BITS
"""Places in tables of who asks the memory."""
LINES = 256
"""Lines of a vector that a TMU keeps, more than the lanes of a trilinear sample have."""
MAX_BANKS = 64
MAX_REQUESTS = 32
"""Reads, and writes, that the memory's controller has at a time at most."""


CUT_OFF = 2
"""`Qpu.ended` of a program whose record stops before its end."""


class Figures(Struct):
    """The chip's figures, in clocks, and what QPUs share.

    slices: of a cluster; a chip without a global scheduler has one.

    Figures that end in _part are in units of 1 / 1024 (`FRACTION`).
    """

    slices = i32
    qpus = i32
    tmus = i32
    ahead = i32
    clusters = i32
    unused = i32
    slot = i64
    launch = i64
    start_interval = i64
    tmu_latency = i64
    lane_clocks = i64
    texel_line_clocks = i64
    tmu_vectors = i32
    result_depth = i32
    l2_latency = i64
    l2_interval = i64
    l2_texel_interval = i64
    sdram_latency = i64
    row_bits = i32
    bank_mask = i32
    burst_bits = i32
    reads = i32
    writes = i32
    bunch = i32
    overlap = i32
    burst_part = i64
    port_byte_part = i64
    open_part = i64
    active_part = i64
    precharge_part = i64
    precharge_all_part = i64
    read_part = i64
    write_part = i64
    read_write_part = i64
    write_read_part = i64
    read_close_part = i64
    write_close_part = i64
    lead_part = i64
    refresh_part = i64
    refresh_interval_part = i64
    others_interval_part = i64
    load_row_part = i64
    load_word_part = i64
    load_ahead = i32
    store_row_part = i64
    store_word_part = i64
    vpm_latency = i64
    vpm_interval = i64
    sfu_interval = i64
    uniform_line_clocks = i64
    mutex = i32
    mutex_last = i32
    mutex_waiting = i64
    semaphores = Array(i32, 16)
    semaphore_waiting = Array(i64, 16)
    semaphore_last = Array(i32, 16)
    sfu_free = Array(i64, 4)
    vpm_free = i64


class Code(Struct):
    """An instruction of a program, and what was seen of it. following: the one after it or -1."""

    flags = i32
    following = i32
    location = i32
    number = i32
    executed = i64
    stalls = Array(i64, CAUSES)


class Piece(Struct):
    """A part of a program: its address, the index of its first instruction, and how many it has."""

    location = i32
    first = i32
    count = i32
    unused = i32


class Qpu(Struct):
    """A QPU with a program.

    slice, cluster: where it is, counted over the chip; port: its number in its slice.
    task, wanted: number of the program that it has, and of one that it is to get, or -1. programs,
    done: how many it began, and instructions of those that have ended.
    code, pieces: of its program. record, next_word, words: the words recorded, which of them comes
    next, and how many there are.
    executed, known: instructions done, and those for which the record is complete; final: there
    will be no more. due: when the next instruction could issue; cause, since: what it waits for.
    branch…, end…: what happens in so many instructions (site + 1). stream: address of the next
    uniform; ahead: words that are there; uniform_…: the line they are in, what the stream waits
    for (`slice_caches.py`), the line that comes, when, and whether it is wanted no more.
    """

    code = ptr
    pieces = ptr
    record = ptr
    piece_count = i32
    number = i32
    slice = i32
    port = i32
    running = i32
    ended = i32
    final = i32
    site = i32
    next_word = i64
    words = i64
    executed = i64
    known = i64
    due = i64
    since = i64
    started = i64
    stopped = i64
    line = i64
    fetching = i32
    cause = i32
    branch1 = i32
    branch2 = i32
    branch3 = i32
    end1 = i32
    end2 = i32
    stream = i32
    ahead = i32
    uniform_wait = i32
    uniform_stale = i32
    uniform_line = i64
    uniform_next = i64
    uniform_ready = i64
    vpm_ready = i64
    vpm_written0 = i64
    vpm_written1 = i64
    loading = i32
    storing = i32
    noswap = i32
    vector = i32
    lookups = i64
    uniforms = i64
    done = i64
    programs = i32
    task = i32
    wanted = i32
    cluster = i32
    stalls = Array(i64, CAUSES)
    vectors = Array(i32, MAX_LINES * VECTORS)
    vector_lines = Array(i32, VECTORS)


class Tags(Struct):
    """The contents of a cache: lines, and when each was used last; sets is a power of two."""

    lines = ptr
    used = ptr
    sets = i32
    ways = i32
    stamp = i64
    hits = i64
    misses = i64


class SliceCache(Struct):
    """The instruction or the uniform cache of a slice. wanted: the line that each waiter waits for.

    pending: lines asked for; asked: whether the L2 cache has the request.
    """

    tags = nested(Tags)
    slice = i32
    source = i32
    count = i32
    unused = i32
    wanted = Array(i64, WAITERS)
    waits = Array(i32, WAITERS)
    pending = Array(i64, IN_FLIGHT)
    asked = Array(i32, IN_FLIGHT)


class Tmu(Struct):
    """A TMU. Vectors in flight: whose they are, lines missing, the earliest clock of the result.

    lines: what the newest vector still asks the L2 cache for; texels: whether they are a texture's
    (1), or at addresses of the program's (0). looked_up: lines of the newest vector, those of
    several quads as often. held: results of a QPU on their way
    or not read yet. tag: of the requests in flight.
    """

    tags = nested(Tags)
    slice = i32
    unit = i32
    source = i32
    last = i32
    head = i32
    count = i32
    sent = i32
    lines_left = i32
    texels = i32
    looked_up = i32
    accept_at = i64
    lines = Array(i64, LINES)
    tag = Array(i64, IN_FLIGHT)
    owner = Array(i32, IN_FLIGHT)
    missing = Array(i32, IN_FLIGHT)
    ready = Array(i64, IN_FLIGHT)
    held = Array(i32, 4)


class L2(Struct):
    """The L2 cache. Lines that it waits for: source and tag of the request, and whether it came."""

    tags = nested(Tags)
    accept_at = i64
    depth = i32
    count = i32
    pending = Array(i64, IN_FLIGHT)
    source = Array(i64, IN_FLIGHT)
    tag = Array(i64, IN_FLIGHT)
    state = Array(i32, IN_FLIGHT)


class MemoryRequest(Struct):
    """A request that the memory's controller has. passed: how many later ones were done first."""

    place = i64
    source = i64
    bytes = i64
    arrived_part = i64
    passed = i64


class Bank(Struct):
    """A bank of the SDRAM. row: the open one, or -1. column_part: from when on its columns can be
    read; ready_part: from when on it can be closed, or opened if it is closed.
    """

    row = i64
    column_part = i64
    ready_part = i64


class Sdram(Struct):
    """The memory: banks, the end of the last transfer each way, requests that its controller has.

    commanded_part: when the commands of the last request are out.
    writers: sources that write, a bit each. bunch_left: writes of a bunch that are still to do.
    bytes: moved for each source. other: the next read of the ARM or the display; others_part: when
    it comes; others_last: the last request was one.
    """

    free_part = i64
    read_end_part = i64
    write_end_part = i64
    commanded_part = i64
    refresh_part = i64
    writers = i64
    row_misses = i64
    turns = i64
    refreshes = i64
    others_part = i64
    other = nested(MemoryRequest)
    read_count = i32
    write_count = i32
    bunch_left = i32
    writing = i32
    others_last = i32
    unused = i32
    bytes = Array(i64, SOURCES)
    banks = Array(i64, 3 * MAX_BANKS)
    reads = Array(i64, 5 * MAX_REQUESTS)
    writes = Array(i64, 5 * MAX_REQUESTS)


class Dma(Struct):
    """An engine that moves blocks between memory and VPM. waiting: QPUs that want it, a bit each.

    time_part: when the last row was through.
    """

    busy = i32
    owner = i32
    rows = i32
    sent = i32
    back = i32
    row_bytes = i32
    location = i64
    pitch = i64
    pace_part = i64
    time_part = i64
    waiting = i64
    last = i32
    unused = i32
    started = i64
    transfers = i64
    bytes = i64


ASKED = 64
"""Programs that the host may be about to write."""


class Host(Struct):
    """Who writes SRQPC: programs asked for (QPU and number), and how many of them were written.

    held: a program has ended, and it is not known yet whether the host asks for another one before
    it looks. knows: it does not.
    """

    starts = Array(i32, 2 * ASKED)
    asked = i32
    written = i32
    held = i32
    knows = i32


class Scheduler(Struct):
    """The QPU scheduler. usable: QPUs that user programs may have, a bit each."""

    accept_at = i64
    usable = i64

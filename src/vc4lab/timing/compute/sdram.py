"""The SDRAM and its controller: LPDDR2 with banks, open rows, refreshes, and a bus both ways.

The controller keeps requests that have come, reads and writes apart, and does next the one whose
data can be on the bus first: a row that is open before one that is not, whatever came earlier.
Writes wait until there is a bunch of them or nothing to read, because turning the bus round takes
time. Unless it may prepare several at once (`overlap`), commands of a request come after those of
the one before: rows are not opened while the bus moves other data. Times are in units of 1 / 1024
clock of the V3D (names that end in _part): the memory has a clock of its own.
"""

from __future__ import annotations

from vc4lab.simd import Value, call, const, i32, i64, kernel, load, max_, ptr, select, staged, store
from vc4lab.timing.compute.kinds import ANSWERS, FRACTION, LINE_BITS, SOURCE_BITS, QueueKind
from vc4lab.timing.compute.state import MAX_BANKS, SOURCES, Bank, Figures, MemoryRequest, Sdram
from vc4lab.timing.event_scheduler import Engine, count_busy, wake_self
from vc4lab.timing.queues import first_piece, is_readable, queue_at, remove_piece, wait_for_room, write_piece

PATIENCE = 16
"""So many later requests may pass the oldest one."""

OTHERS = SOURCES - 1
"""The source number of the ARM and the display."""

OTHERS_PLACE, OTHERS_BYTES = 0x3C000000, 1 << 23
"""Address at which those two read, and bytes until they begin again: a 1080p frame of 32-bit pixels."""


@staged
def _bank(sdram: Sdram, figures: Figures, row: Value) -> Bank:
    """The bank that a row is in."""
    number = row & figures.bank_mask.sext(i64)
    return Bank.at(sdram.banks + number * Bank.size, 8)


@staged
def _request(base: Value, index: Value | int) -> MemoryRequest:
    number = const(i32, 0) + index
    return MemoryRequest.at(base + number.sext(i64) * MemoryRequest.size, 8)


# -- requests that wait


@staged
def _is_write(sdram: Sdram, source: Value) -> Value:
    """Whether a source writes; the others read, and get an answer."""
    return (sdram.writers.shr(source & (SOURCES - 1)) & 1) != 0


@staged
def _take(engine: Engine, sdram: Sdram, figures: Figures, clock: Value) -> None:
    """A request comes from its queue, if there is room for one of its kind."""
    requests = queue_at(engine, QueueKind.MEMORY_REQUESTS, const(i32, 0))
    if call(is_readable, engine.pointer, requests.pointer, clock) != 0:
        piece = first_piece(requests)
        source, place, size = piece.source, piece.place, piece.tag
        writes = _is_write(sdram, source)
        count = select(writes, sdram.write_count, sdram.read_count)
        if count < select(writes, figures.writes, figures.reads):
            base = select(writes, sdram.writes, sdram.reads)
            request = _request(base, count)
            request.place = place
            request.source = source
            request.bytes = max_(size, const(i64, 1))
            request.arrived_part = clock << FRACTION
            request.passed = const(i64, 0)
            one = select(writes, const(i32, 1), const(i32, 0))
            sdram.write_count = sdram.write_count + one
            sdram.read_count = sdram.read_count + (1 - one)
            call(remove_piece, engine.pointer, requests.pointer, clock)


@staged
def _forget(sdram: Sdram, base: Value, index: Value, writes: Value) -> None:
    """A request is done; the ones after it move up."""
    count = select(writes, sdram.write_count, sdram.read_count)
    for number in range(index, count - 1):
        to, following = _request(base, number), _request(base, number + 1)
        to.place = following.place
        to.source = following.source
        to.bytes = following.bytes
        to.arrived_part = following.arrived_part
        to.passed = following.passed
    one = select(writes, const(i32, 1), const(i32, 0))
    sdram.write_count = sdram.write_count - one
    sdram.read_count = sdram.read_count - (1 - one)


@staged
def _direction(sdram: Sdram, figures: Figures) -> Value:
    """Whether it is the turn of a write: of a bunch, or of any while there is nothing to read."""
    if sdram.bunch_left <= 0:
        sdram.bunch_left = select(sdram.write_count >= figures.bunch, figures.bunch, const(i32, 0))
    if sdram.write_count == 0:
        sdram.bunch_left = const(i32, 0)
    return (sdram.bunch_left > 0) | (sdram.read_count == 0)


# -- banks


@staged
def _refresh(sdram: Sdram, figures: Figures, now: Value) -> None:
    """Refreshes that were due close all rows, and take all banks for their time.

    Of several in a time without work only the last one can be in the way.
    """
    if now >= sdram.refresh_part:
        missed = (now - sdram.refresh_part).udiv(figures.refresh_interval_part)
        start: Value = sdram.refresh_part + missed * figures.refresh_interval_part
        for number in range(MAX_BANKS):
            bank = Bank.at(sdram.banks + number * Bank.size, 8)
            start = select(bank.row >= 0, max_(start, bank.ready_part), start)
        end = start + figures.precharge_all_part + figures.refresh_part
        for number in range(MAX_BANKS):
            bank = Bank.at(sdram.banks + number * Bank.size, 8)
            bank.row = const(i64, -1)
            bank.ready_part = end
        sdram.refreshes = sdram.refreshes + missed + 1
        sdram.refresh_part = sdram.refresh_part + (missed + 1) * figures.refresh_interval_part


@staged
def _data_at(sdram: Sdram, figures: Figures, request: MemoryRequest, writes: Value) -> Value:
    """When the data of a request could begin on the bus."""
    row = request.place.shr(figures.row_bits.sext(i64))
    bank = _bank(sdram, figures, row)
    close = select(bank.row >= 0, figures.precharge_part, const(i64, 0))
    begin = max_(request.arrived_part, sdram.commanded_part)
    opened = max_(begin, bank.ready_part) + close + figures.open_part
    column = select(bank.row == row, max_(begin, bank.column_part), opened)
    written = max_(column + figures.write_part, sdram.read_end_part + figures.read_write_part)
    read = max_(column, sdram.write_end_part + figures.write_read_part) + figures.read_part
    return max_(select(writes, written, read), sdram.free_part)


@kernel(args=(ptr, ptr, ptr, i32, i32), returns=i32)
def choose(address: Value, of_chip: Value, base: Value, count: Value, writing: Value) -> Value:
    """The number of the request whose data can begin first; the oldest one if it waited long."""
    sdram, figures = Sdram.at(address), Figures.at(of_chip)
    writes = writing != 0
    chosen = const(i32, 0)
    if _request(base, const(i32, 0)).passed < PATIENCE:
        first = _data_at(sdram, figures, _request(base, const(i32, 0)), writes)
        for number in range(1, count):
            data = _data_at(sdram, figures, _request(base, number), writes)
            chosen = select(data < first, number, chosen)
            first = select(data < first, data, first)
    return chosen


@staged
def _transfer(figures: Figures, place: Value, size: Value) -> Value:
    """How long the data are on the bus: whole bursts, or what the V3D's port takes."""
    bits = figures.burst_bits.sext(i64)
    bursts = (place + size - 1).shr(bits) - place.shr(bits) + 1
    return max_(bursts * figures.burst_part, size * figures.port_byte_part)


@staged
def answer_queue(source: Value) -> Value:
    """The number of the queue with the answers to a source: those of each cluster in a row."""
    cluster, kind = source.shr(SOURCE_BITS), source & (SOURCES - 1)
    return (cluster * ANSWERS + kind).trunc(i32)


@staged
def _answer(engine: Engine, figures: Figures, request: MemoryRequest, end: Value, clock: Value) -> None:
    """The data go to the module that asked."""
    source = request.source
    answers = queue_at(engine, QueueKind.MEMORY_ANSWERS, answer_queue(source))
    there = (end + ((1 << FRACTION) - 1)).shr(FRACTION)
    ready = max_(there, clock) + figures.sdram_latency
    line = request.place >> LINE_BITS
    call(
        write_piece,
        engine.pointer, answers.pointer, clock, ready, source, line, request.bytes,
    )  # fmt: skip


@staged
def _move(
    engine: Engine,
    sdram: Sdram,
    figures: Figures,
    request: MemoryRequest,
    writes: Value,
    data: Value,
    clock: Value,
    answers: bool = True,
) -> None:
    """Moves the data of a request; its row is opened, and who reads gets an answer."""
    source, place, size = request.source, request.place, request.bytes
    row = place.shr(figures.row_bits.sext(i64))
    bank = _bank(sdram, figures, row)
    if bank.row != row:
        column = data - select(writes, figures.write_part, figures.read_part)
        bank.row = row
        bank.column_part = column
        bank.ready_part = column - figures.open_part + figures.active_part
        sdram.row_misses = sdram.row_misses + 1
    end = data + _transfer(figures, place, size)
    if figures.overlap == 0:
        sdram.commanded_part = end - select(writes, figures.write_part, figures.read_part)
    may_close = select(
        writes, end + figures.write_close_part, end - figures.read_part + figures.read_close_part
    )
    bank.ready_part = max_(bank.ready_part, may_close)
    way = writes.zext(i32)
    if way != sdram.writing:
        sdram.turns = sdram.turns + 1
        sdram.writing = way
    worked = end.shr(FRACTION) - max_(sdram.free_part, request.arrived_part).shr(FRACTION)
    count_busy(engine, max_(worked, const(i64, 0)))
    sdram.free_part = end
    tally = sdram.bytes + ((source & (SOURCES - 1)) << 3)
    store(tally, load(i64, tally, 8) + size, 8)
    if writes:
        sdram.write_end_part = end
        sdram.bunch_left = sdram.bunch_left - 1
    else:
        sdram.read_end_part = end
        if answers:
            _answer(engine, figures, request, end, clock)


@staged
def _serve_others(engine: Engine, sdram: Sdram, figures: Figures, clock: Value) -> None:
    """A read for the ARM or the display, which come at a steady rate and first.

    They read on and on; of several in a time without work only the last one can be in the way. A
    request of the V3D that waits comes between two of them.
    """
    now = clock << FRACTION
    interval = figures.others_interval_part
    waiting = sdram.read_count + sdram.write_count > 0
    turn = ~(waiting & (sdram.others_last != 0))
    if (interval > 0) & (now >= sdram.others_part) & turn:
        sdram.others_last = const(i32, 1)
        missed = (now - sdram.others_part).udiv(interval)
        other = sdram.other
        other.arrived_part = sdram.others_part + missed * interval
        passed = (missed + 1) * other.bytes
        other.place = OTHERS_PLACE + ((other.place + passed) & (OTHERS_BYTES - 1))
        tally = sdram.bytes + (OTHERS << 3)
        store(tally, load(i64, tally, 8) + missed * other.bytes, 8)
        sdram.others_part = other.arrived_part + interval
        reads = const(i32, 0) != 0
        data = _data_at(sdram, figures, other, reads)
        _move(engine, sdram, figures, other, reads, data, clock, answers=False)


@staged
def _has_room(engine: Engine, request: MemoryRequest, writes: Value) -> Value:
    """Whether the answer to a request can be written; else the module is called when it can."""
    room = writes.zext(i32)
    if room == 0:
        answers = queue_at(engine, QueueKind.MEMORY_ANSWERS, answer_queue(request.source))
        room = (answers.count < answers.capacity).zext(i32)
        if room == 0:
            wait_for_room(engine, answers)
    return room


@kernel(args=(ptr, ptr, i64))
def step_sdram(address: Value, state: Value, clock: Value) -> None:
    """Takes a request, and begins the next one when its first command is due."""
    engine, sdram = Engine.at(address), Sdram.at(state)
    figures = Figures.at(engine.chip)
    _refresh(sdram, figures, clock << FRACTION)
    _serve_others(engine, sdram, figures, clock)
    _take(engine, sdram, figures, clock)
    if sdram.read_count + sdram.write_count > 0:
        writes = _direction(sdram, figures)
        base = select(writes, sdram.writes, sdram.reads)
        count = select(writes, sdram.write_count, sdram.read_count)
        index = call(choose, state, engine.chip, base, count, writes.zext(i32))
        request = _request(base, index)
        data = _data_at(sdram, figures, request, writes)
        due = max_(data - figures.lead_part, const(i64, 0)).shr(FRACTION)
        if due > clock:
            wake_self(engine, due)
        elif _has_room(engine, request, writes) != 0:
            sdram.others_last = const(i32, 0)
            if index > 0:
                oldest = _request(base, const(i32, 0))
                oldest.passed = oldest.passed + 1
            _move(engine, sdram, figures, request, writes, data, clock)
            _forget(sdram, base, index, writes)
            requests = queue_at(engine, QueueKind.MEMORY_REQUESTS, const(i32, 0))
            if sdram.read_count + sdram.write_count + requests.count > 0:
                wake_self(engine, clock + 1)

"""The chip while user programs run: fed with what they did, it says when they do it."""

from __future__ import annotations

import ctypes
from array import array
from typing import TYPE_CHECKING, Any

from vc4lab.timing.boards import BoardSpeed
from vc4lab.timing.chip import BadChip, Chip
from vc4lab.timing.compute.board_memory import begin_memory, memory_figures
from vc4lab.timing.compute.decode import needs
from vc4lab.timing.compute.kinds import CAUSES, FRACTION, LINE
from vc4lab.timing.compute.state import ASKED, Code, Figures, Piece
from vc4lab.timing.compute.topology import topology_of
from vc4lab.timing.event_scheduler import Pause
from vc4lab.timing.machine import Machine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vc4lab.qpu.program.program import Program

ONE = 1 << FRACTION
_PAD = (0,) * 32
"""Words after a record, more than an entry has."""

HELD_WORDS = 1 << 21
"""Words of a program's record that are kept until it is known when another one starts."""

_BEGIN = (
    "site", "ended", "executed", "next_word", "words", "noswap", "branch1", "branch2", "branch3",
    "end1", "end2", "cause", "fetching", "vpm_ready",
)  # fmt: skip
"""Fields of a QPU that are 0 when its program begins."""


class NotTimed(ValueError):  # noqa: N818 - said to the user as it is
    """The model cannot time something; the text says what."""


def _part(clocks: float) -> int:
    return round(clocks * ONE)


class Listing:
    """A program in the model's memory: what its instructions need, and what was seen of each."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.size = 0
        self.storage: Any = None
        self.grow(program)

    def grow(self, program: Program) -> None:
        """More of it is known."""
        count = len(program.words)
        storage = (ctypes.c_char * (Code.size * max(count, 1)))()
        if self.storage is not None:
            ctypes.memmove(storage, self.storage, Code.size * self.size)
        for site, need in enumerate(needs(program)):
            code = Code.python.from_buffer(storage, Code.size * site)
            following = program.after(site)
            code.flags, code.number = need.flags, need.semaphore
            code.following = -1 if following is None else following
            code.location = ctypes.c_int32(program.address_of(site)).value
        self.program, self.size, self.storage = program, count, storage
        bounds = program.code
        self.pieces = (ctypes.c_char * (Piece.size * len(bounds)))()
        first = 0
        for number, (address, code_bytes) in enumerate(bounds):
            piece = Piece.python.from_buffer(self.pieces, Piece.size * number)
            piece.location = ctypes.c_int32(address & 0xFFFFFFFF).value
            piece.first, piece.count = first, len(code_bytes) // 8
            first += piece.count
        self.piece_count = len(bounds)

    def holds(self, program: Program) -> bool:
        """Whether it is the same program, of which more or less is known."""
        mine, other = self.program, program
        count = min(len(mine.words), len(other.words))
        same = mine.address == other.address and mine.words[:count] == other.words[:count]
        return same and mine.pieces[:1] == other.pieces[:1]

    @property
    def address(self) -> int:
        """Address of the instructions in the host's memory."""
        return ctypes.addressof(self.storage)

    def code(self, site: int) -> Any:
        """An instruction."""
        return Code.python.from_buffer(self.storage, Code.size * site)

    def stalls(self, site: int) -> list[int]:
        """Clocks that an instruction waited, by cause."""
        stalls = self.code(site).stalls
        return [int(stalls[cause]) for cause in range(CAUSES)]


class _Feed:
    """A program that was started: what it did, as far as it is known and not yet used.

    known: instructions for which the record is complete. qpu: the one that has it, if it began.
    """

    def __init__(self, listing: Listing, uniforms: int) -> None:
        self.listing, self.uniforms = listing, uniforms
        self.words = array("I")
        self.known = 0
        self.qpu: Any = None


def figures_of(chip: Chip, speed: BoardSpeed) -> Figures:
    """The figures of a chip on a board, as the modules have them."""
    whole, real = chip.whole, chip.real
    return Figures(
        **memory_figures(chip, speed),
        clusters=1,
        slices=whole("slices", "count"),
        qpus=whole("slices", "qpus"),
        tmus=whole("tmu", "per_slice"),
        ahead=whole("uniform_cache", "ahead"),
        slot=whole("qpu", "slot"),
        launch=whole("scheduler", "launch"),
        start_interval=whole("scheduler", "interval"),
        tmu_latency=whole("tmu", "latency"),
        lane_clocks=whole("tmu", "vector_clocks"),
        texel_line_clocks=whole("tmu", "line_clocks"),
        tmu_vectors=whole("tmu", "vectors"),
        result_depth=whole("queues.tmu_results", "depth"),
        l2_latency=whole("l2", "latency"),
        l2_interval=whole("l2", "interval"),
        l2_texel_interval=whole("l2", "texel_interval"),
        load_row_part=_part(real("load", "row_clocks")),
        load_word_part=_part(real("load", "word_clocks")),
        load_ahead=whole("load", "ahead"),
        store_row_part=_part(real("store", "row_clocks")),
        store_word_part=_part(real("store", "word_clocks")),
        vpm_latency=whole("vpm", "read_latency"),
        vpm_interval=whole("vpm", "interval"),
        sfu_interval=whole("sfu", "interval"),
        uniform_line_clocks=whole("uniform_cache", "line_clocks"),
    )


def place_modules(machine: Machine, chip: Chip, qpus: Sequence[Any], figures: Figures) -> None:
    """Says each module where it belongs. qpus: the state (`Qpu`) of each QPU."""
    states = machine.states
    per_slice, tmus = chip.whole("slices", "qpus"), chip.whole("tmu", "per_slice")
    for number, qpu in enumerate(qpus):
        qpu.number, qpu.slice, qpu.port = number, *divmod(number, per_slice)
        qpu.cluster = qpu.slice // chip.whole("slices", "count")
        qpu.line = qpu.uniform_line = -1
        for unit in range(tmus):
            tmu = qpu.slice * tmus + unit
            machine.set_reader("tmu_requests", number * tmus + unit, "tmu", tmu)
    source = 0
    for kind in ("instruction_cache", "uniform_cache"):
        for number, cache in enumerate(states[kind]):
            cache.slice, cache.source = number, source
            source += 1
    for number, tmu in enumerate(states["tmu"]):
        tmu.slice, tmu.unit = divmod(number, tmus)
        tmu.source = source
        source += 1
    states["l2"][0].depth = chip.whole("l2", "misses")
    begin_memory(states["sdram"][0], chip, figures)


CACHES = ("instruction_cache", "uniform_cache", "tmu", "l2")


def make_caches(machine: Machine, chip: Chip) -> list[Any]:
    """Gives each cache its lines, all empty; what is returned keeps them alive."""
    kept: list[Any] = []
    for kind in CACHES:
        lines = chip.whole(kind, "bytes") // LINE
        ways = chip.whole(kind, "ways")
        for cache in machine.states[kind]:
            held = (ctypes.c_int64 * lines)(*([-1] * lines))
            used = (ctypes.c_int64 * lines)()
            kept += [held, used]
            cache.tags.lines, cache.tags.used = map(ctypes.addressof, (held, used))
            cache.tags.sets, cache.tags.ways = lines // ways, ways
    return kept


class ComputeModel:
    """A chip on a board."""

    def __init__(self, chip: Chip, speed: BoardSpeed) -> None:
        self.chip = chip
        self.figures = figures_of(chip, speed)
        topology = topology_of(chip)
        self.machine = Machine(topology, self.figures.address, "compute")
        self.slices, self.per_slice = chip.whole("slices", "count"), chip.whole("slices", "qpus")
        self.tmus = chip.whole("tmu", "per_slice")
        self.qpus = self.machine.states["qpu"]
        self.listings: list[Listing] = []
        self._feeds: list[_Feed] = []
        self._last: dict[int, _Feed] = {}
        self._seen = 0
        self._complete = 0
        place_modules(self.machine, chip, self.qpus, self.figures)
        for qpu in self.qpus:
            qpu.task = qpu.wanted = -1
        self._kept = make_caches(self.machine, chip)

    # -- programs --------------------------------------------------------------------------------

    def start(self, qpu: int, uniforms: int, program: Program, seen: int = 0) -> int:
        """SRQPC is written; the program's number. Raises BadChip.

        seen: programs that the host had seen ended.
        """
        if qpu >= len(self.qpus):
            raise BadChip(
                f"{self.chip.place('slices', 'count')}: {len(self.qpus)} QPUs, but the program "
                f"was started on QPU {qpu}; start it on fewer"
            )
        if seen > self._seen:
            self._seen = seen
            self._go_on()
        known = [one for one in self.listings if one.holds(program)]
        listing = known[0] if known else Listing(program)
        if not known:
            self.listings.append(listing)
        task = len(self._feeds)
        self._feeds.append(_Feed(listing, uniforms))
        host = self.host
        if host.asked - host.written >= ASKED:
            self._go_on()
        place = 2 * (host.asked % ASKED)
        host.starts[place], host.starts[place + 1] = qpu, task
        host.asked += 1
        host.held = 0
        self.machine.states["scheduler"][0].usable |= 1 << qpu
        self.machine.call("host", 0, self.machine.engine.clock)
        return task

    def _go_on(self) -> None:
        """The host waits for what it has asked for: nothing else comes before."""
        self.host.knows = 1
        self.advance()
        self.host.knows = 0

    @property
    def host(self) -> Any:
        """Who writes SRQPC."""
        return self.machine.states["host"][0]

    def _show(self, state: Any, listing: Listing) -> None:
        state.code, state.pieces = listing.address, ctypes.addressof(listing.pieces)
        state.piece_count = listing.piece_count

    def _load(self, state: Any) -> None:
        """A QPU gets the program that it wants."""
        before = self._last.get(state.number)
        if before is not None:
            state.done += state.executed
            before.qpu, before.words = None, array("I")
        feed = self._last[state.number] = self._feeds[state.wanted]
        feed.qpu = state
        state.task, state.wanted = state.wanted, -1
        self._show(state, feed.listing)
        for name in _BEGIN:
            setattr(state, name, 0)
        state.line = -1
        state.stream = ctypes.c_int32(feed.uniforms).value
        state.known, state.final = feed.known, self._complete
        words, feed.words = feed.words, array("I")
        self._extend(feed, words)

    @staticmethod
    def _extend(feed: _Feed, record: Sequence[int]) -> None:
        """More words for the QPU that has a program."""
        state = feed.qpu
        words = feed.words[state.next_word : state.words]
        words.extend(record)
        state.next_word, state.words = 0, len(words)
        words.extend(_PAD)
        feed.words = words
        state.record = words.buffer_info()[0]

    def feed(self, task: int, program: Program, record: Sequence[int], executed: int) -> None:
        """A program has done more."""
        feed = self._feeds[task]
        listing = feed.listing
        if len(program.words) > listing.size:
            listing.grow(program)
            for other in self._last.values():
                if other.listing is listing:
                    self._show(other.qpu, listing)
        feed.known = executed
        if feed.qpu is None:
            feed.words.extend(record)
        elif record:
            self._extend(feed, record)
        if feed.qpu is not None and not feed.qpu.final:
            feed.qpu.known = executed
        if len(feed.words) > HELD_WORDS:
            self._go_on()

    def end_feed(self) -> None:
        """No program does any more."""
        self._complete = 1
        self.host.knows, self.host.held = 1, 0
        for feed in self._last.values():
            feed.qpu.final = 1

    def advance(self) -> bool:
        """Moves on as far as is known; whether nothing is left to do."""
        engine = self.machine.engine
        if self.host.knows:
            self.host.held = 0
        while not self.host.held:
            engine.short_of_work = -1
            if self.machine.run() is Pause.IDLE:
                return True
            name, number = self.machine.short_of_work
            state = self.machine.states[name][number]
            if state.wanted < 0:
                break
            self._load(state)
        return False

    @property
    def started(self) -> list[int]:
        """QPUs that got a program."""
        return sorted(self._last)

    @property
    def queued(self) -> int:
        """Programs that have no QPU yet."""
        return len(self._feeds) - sum(int(qpu.programs) for qpu in self.qpus)

    def listing_of(self, qpu: int) -> Listing:
        """The program of a QPU."""
        return self._last[qpu].listing

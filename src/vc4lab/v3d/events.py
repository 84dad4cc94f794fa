"""Events of a V3D that may be observed: one kind for each thing that happens in it.

`v3d.listeners.frame_done.subscribe(lambda event: print(event.frames))`: any number of listeners for each
kind. They only observe: none changes a byte of what is drawn or selects another implementation. Where native
code has to say more than it does otherwise, it is compiled from the same source with recording added, and
called only while there is a listener (`FrameDrawn`, `RecordExecuted`, `RecordsNoted`, `ListBinned`,
`FrameWork`, `ProgramRecorded`), or notes each draw, of which Python makes events afterwards (`MemoryUse`).
Events come in the thread that accesses the V3D's registers, never in those that draw tiles. A listener may
read the values of registers, but must not access the V3D's bus. When it raises, the work at hand is done to
its end, and the access to the bus that had it done raises (`V3D.read`, `write`, `settle`; where there is
guest time, the event at which the work shows).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from array import array

    from vc4lab.qpu.program.program import Program
    from vc4lab.records.codes import ListPrimitive
    from vc4lab.records.payload import Payload
    from vc4lab.v3d.job_time import JobCounts


class RegisterWritten(NamedTuple):
    """A register is about to be written; user programs that this lets run first have run.

    All that the write has done is done inside of it, except what guest time holds back.
    """

    offset: int
    value: int


class PoweredOn(NamedTuple):
    """The V3D is as it was when it was switched on: its power domain was off."""


class JobStarted(NamedTuple):
    """A list thread runs from now on: a list starts, or goes on after a halt.

    `thread` is 0 for binning, 1 for rendering; `address` is its current address, `end` its end.
    """

    thread: int
    address: int
    end: int


class JobEnded(NamedTuple):
    """A list thread has stopped, at the end of its list, at a halt or with an error."""

    thread: int
    address: int
    error: bool


class RecordExecuted(NamedTuple):
    """A list thread has come to a record and executes it; `record` is its class, `address` its own.

    Each record of the list and of what it jumps to is reported once, in order. The list of thread 1
    comes first up to the end of its frame, that of a tile (from a record 17 up to the Return) when
    the frame is drawn, before its `DrawPrepared` and `FrameDrawn`; these are in the order of the
    tiles. Of what native code executes on its own the events come when it returns, at the latest
    where the thread stops or a flush or frame ends. A record that does not exist is not executed.
    """

    thread: int
    address: int
    record: type[Payload]


class RecordsNoted(NamedTuple):
    """Records as of `RecordExecuted`, in the same order, many at once.

    `notes` has eight bytes each: the address, the id. `pieces`: of records of tile lists, for each
    (i32) the piece of list that it is in, by its number in the frame; None of others.
    """

    thread: int
    notes: bytes
    pieces: bytes | None = None


class BinningDone(NamedTuple):
    """A flush shows: `flushes` is register BFC, `INTCTL` has FLDONE."""

    flushes: int


class FrameDone(NamedTuple):
    """The end of a frame shows: `frames` is register RFC, `INTCTL` has FRDONE."""

    frames: int


class FrameStored(NamedTuple):
    """A frame is in memory, where its time is not over before `moment` (ns of guest time).

    `ranges`: guest address and size of the rows that its stores have written.
    """

    ranges: list[tuple[int, int]]
    moment: int


class InterruptLine(NamedTuple):
    """The level of the interrupt line has changed."""

    level: bool


class MemoryUse(NamedTuple):
    """A job names a range of memory that the V3D reads or writes; not each access to it.

    `record` is where it names it, if that is known. Uses by native code are reported when Python
    runs next: after a stretch of a binning list, and when the draws of a frame are ready.
    """

    use: Use
    address: int
    size: int
    record: int | None = None


class CachesCleared(NamedTuple):
    """SLCACTL or L2CACTL was written."""

    register: str
    value: int


class ProgramKind(Enum):
    """Purposes of programs."""

    COORDINATE = "coordinate"
    VERTEX = "vertex"
    FRAGMENT = "fragment"
    USER = "user"


class ProgramCompiled(NamedTuple):
    """Native code of a program is there, compiled or from a cache, after so many milliseconds.

    A shader has code of its own for each draw state in which the V3D meets it, a user program when
    it begins. Not reported: code for values that the first one cannot compute, and for where a user
    program goes on to. Nothing is compiled of programs that the interpreter runs.
    """

    kind: ProgramKind
    address: int
    words: tuple[int, ...]
    milliseconds: float


class ProgramsRun(NamedTuple):
    """User programs that were queued are about to run, or (`over`) have run as far as they can.

    `requested`: inside of the write of SRQPC, because there was no room for another.
    """

    requested: bool
    over: bool


class ProgramStarted(NamedTuple):
    """A user program has got a QPU: what SRQPC, SRQUA and SRQUL were, and the code's bytes."""

    address: int
    uniforms: int
    length: int
    size: int


class ProgramStored(NamedTuple):
    """A user program has ended, but its time is not over before `moment` (ns of guest time).

    `ranges`: guest address and size of what its DMA has written, as far as it was noted. Only where
    the host's read of a register has made the program run.
    """

    ranges: list[tuple[int, int]]
    moment: int


class ProgramEnded(NamedTuple):
    """A user program has ended: its QPU, what SRQPC and SRQUA were, and what it has done."""

    qpu: int
    address: int
    uniforms: int
    counts: JobCounts


class ProgramRecorded(NamedTuple):
    """A user program has done this since the last of these events; the first comes at its start.

    Programs that start while there is a listener are recorded: native code is compiled once more
    for it. Only what has to be known beyond the program itself is: branches, addresses, shapes.

    Attributes
    ----------
    qpu, serial
        Where it runs, and its number among all programs started.
    uniforms
        What SRQUA was.
    program
        Its code, as far as it is known now.
    executed
        Instructions since it began; the record is complete for these.
    record
        Words of 32 bits, see `user_programs/recording/format.py`.
    ended
        Whether it has come to its end.
    seen
        Programs that had ended when the host last waited or looked, before it asked for this one.
    """

    qpu: int
    serial: int
    uniforms: int
    program: Program
    executed: int
    record: array[int]
    ended: bool
    seen: int = 0


class PreparedPipeline(Protocol):
    """The pipeline of a draw's primitives, as far as its event says: see `fragment/pipeline.py`."""

    @property
    def key(self) -> Any:
        """The program, and the draw state that it was compiled for."""

    @property
    def address(self) -> int:
        """The host's address of its entry point."""


class FrameTiles(NamedTuple):
    """The tiles of a frame, or of a part of one, are about to be drawn, or (`over`) are stored.

    All draws are prepared.

    Attributes
    ----------
    surfaces
        Of the frame, and those that it loads and stores besides: `state.frame_mode.Surface`.
    full
        Guest address and bytes of each tile in full resolution that is loaded or stored.
    pieces
        First and last address of each piece of list that is drawn; the last is None for a tile
        list, which goes on up to its Return.
    stores
        How many tiles are stored into one of `surfaces`.
    """

    surfaces: Sequence[Any]
    full: Sequence[tuple[int, int]]
    pieces: Sequence[tuple[int, int | None]]
    stores: int
    over: bool = False


class DrawPrepared(NamedTuple):
    """A draw of a frame is ready to be drawn: all primitives with the same state, in any tiles.

    The event comes when all draws of the frame are prepared, in the order in which the tile lists
    have them. Draws of a binning list are the records 32 and 33 of `RecordExecuted`.

    Attributes
    ----------
    record
        Address of its first primitives: a compressed list, or a primitive record of the rendering
        list; None if no list of it came to its end.
    shader
        Address of its shader record, of the program if record 67 named that; None without either.
    primitive, primitives
        Their kind, and how many there are in all tiles.
    vertices
        How many different vertices they have; 0 if their coordinates stand in the list.
    pipeline
        What draws them; None if they are left out (there was a message).
    """

    record: int | None
    shader: int | None
    primitive: ListPrimitive | int
    primitives: int
    vertices: int
    pipeline: PreparedPipeline | None


class TileDrawn(NamedTuple):
    """A tile was drawn: its first pixel, and what drawing it took, by the names in `COUNTERS`.

    Of those, the ones that only count for performance counters are 0 unless they count
    (`PerformanceCounters.everything`). `clocks` is how long the chip takes for it, see `job_time`.
    """

    x: int
    y: int
    clocks: int
    counters: Mapping[str, int]


class FrameDrawn(NamedTuple):
    """Tiles of a frame were drawn and stored, in this order: a frame may be drawn in parts.

    `address`, `width` and `height` are those of record 113.
    """

    address: int
    width: int
    height: int
    tile_width: int
    tile_height: int
    tiles: tuple[TileDrawn, ...]


class ListBinned(NamedTuple):
    """The draws up to a flush have been binned; the event comes before the flush shows.

    Attributes
    ----------
    draws
        A `state.binning_work.DrawBinned` for each.
    shaders
        The shader records (`state.shader_record`) that they name, by kind and word.
    totals
        What the binner had counted at the end, in the order of `DrawBinned.before`.
    tiles
        The grid, in tiles.
    initial_bytes, block_bytes
        Of a tile's first block of list memory, and of others.
    """

    draws: bytes
    shaders: Mapping[tuple[int, int], Any]
    totals: tuple[int, ...]
    tiles: tuple[int, int]
    initial_bytes: int
    block_bytes: int


class DrawWork(NamedTuple):
    """A draw of `FrameWork`; `state` is a RenderState, `shader` what it names, if that exists.

    `textures`: a `tmu.state.TextureDescriptor` for each of `pipeline.key.textures`, or None.
    """

    state: Any
    shader: Any
    record: int | None
    primitives: int
    vertices: int
    pipeline: PreparedPipeline | None
    textures: Sequence[Any]


class FrameWork(NamedTuple):
    """The pieces of work in tiles that were drawn and stored, in the order of their operations.

    It comes after `FrameDrawn`. Pipelines that record count all that performance counters know.

    Attributes
    ----------
    address, width, height, multisample, wide
        Of record 113.
    tile_width, tile_height
        In pixels.
    draws
        The distinct render states.
    surfaces
        What is loaded and stored (`state.surface`), by the numbers that operations have.
    ops, chains
        Operations (`tiles.job.TileOp`), and where each chain of them begins (i32, and the end).
    pieces, piece_first
        Start and end of each piece of list (i32), and its first list (i32, and the end).
    segments, sizes
        Lists: a `tile_lists.scan_context.Segment`, a `tile_lists.list_vertices.ListSize` each.
    vertices
        Numbers of the vertices (u32) of all lists.
    lists, blocks, requests, lines
        What drawing recorded: `state.tile_context`.
    lost
        How many records found no room: what is there is not all.
    """

    address: int
    width: int
    height: int
    multisample: bool
    wide: bool
    tile_width: int
    tile_height: int
    draws: tuple[DrawWork, ...]
    surfaces: Sequence[Any]
    ops: bytes
    chains: bytes
    pieces: bytes
    piece_first: bytes
    segments: bytes
    sizes: bytes
    vertices: bytes
    lists: bytes
    blocks: bytes
    requests: bytes
    lines: bytes
    lost: int


class Use(Enum):
    """Uses of memory: words for messages, code of the message if it lies outside RAM."""

    LIST = "a control list", "CLE-003"
    TILE_MEMORY = "tile allocation memory", "CLE-003"
    TILE_STATE = "the tile state array", "CLE-003"
    TILE_LIST = "a tile's list", "CLE-003"
    OVERSPILL = "the overspill block (BPOA)", "CLE-003"
    SHADER_RECORD = "a shader record", "CLE-003"
    CODE = "a QPU program", "MEM-001"
    UNIFORMS = "a uniform stream", "MEM-001"
    TEXTURE = "a texture", "MEM-001"
    ATTRIBUTES = "a vertex attribute array", "MEM-001"
    INDICES = "an index array", "MEM-001"
    LOOKUPS = "memory that a program looks up", "MEM-001"
    SURFACE = "the frame buffer of the rendering mode (113)", "CLE-003"

    def __init__(self, words: str, code: str) -> None:
        self.words = words
        self.code = code
        self.number = len(type(self).__members__)

    __hash__ = object.__hash__  # an Enum's own is written in Python

    @property
    def is_read(self) -> bool:
        """Whether the V3D reads there what the program has written."""
        return self not in (Use.TILE_MEMORY, Use.TILE_LIST, Use.TILE_STATE, Use.OVERSPILL, Use.SURFACE)

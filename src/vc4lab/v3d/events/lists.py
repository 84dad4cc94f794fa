"""What happens in the list threads, and what the V3D shows of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from vc4lab.records.payload import Payload
    from vc4lab.v3d.memory_uses import Use


class ThreadState(Protocol):
    """A list thread, as far as its events say: see `cle/thread.py`."""

    number: int
    end: int
    current: int
    running: bool
    error: bool


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

"""Runs the lists of a frame again, with what recording knows of them; memory is afterwards as before.

A V3D of its own takes the lists that another one was started with last. What they write is saved before
they write it: the memory of tile lists when they start, surfaces when tiles are about to be drawn.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from vc4lab.capture.errors import CaptureError
from vc4lab.debug.kept_memory import KeptMemory, TooLarge
from vc4lab.diagnostics import Reporter
from vc4lab.jobs.start import begin_with, start_of
from vc4lab.jobs.walk import stored_ranges
from vc4lab.options import GpuOptions
from vc4lab.records.control import parse_list
from vc4lab.records.declarations import TileBinningMode
from vc4lab.timing.frames.feed import FrameFeed
from vc4lab.v3d.core import V3D
from vc4lab.v3d.registers import BY_NAME

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vc4lab.memory import GuestMemory
    from vc4lab.timing.frames.frame import Frame
    from vc4lab.v3d.events import FrameTiles, FrameWork, ListBinned, RecordsNoted

MOST_RECORDS = 1 << 16
"""Records of a list after which its mode record is not looked for any more."""
MOST_SAVED = 128 << 20
"""Bytes of memory that a frame may write."""
RESET = 1 << 15
"""CTnCS: reset the thread."""


@dataclass
class Lists:
    """The lists of a frame: address and end of that for binning, and of that for rendering, or None."""

    binning: tuple[int, int] | None
    rendering: tuple[int, int] | None


@dataclass
class Rerun:
    """Holds what the lists did when they ran again.

    Attributes
    ----------
    v3d
        The V3D that ran them; its binner has the vertices of the last draw.
    frames
        Tables of the tiles that were drawn, part by part.
    works
        The events that they were made of, with the render states.
    binned
        Flushes that were complete.
    records
        Address and id of the records that each list thread executed, without those of tile lists.
    tiles
        Of each part what it has loaded and stored.
    """

    v3d: V3D
    frames: list[Frame] = field(default_factory=list)
    works: list[FrameWork] = field(default_factory=list)
    binned: list[ListBinned] = field(default_factory=list)
    records: tuple[list[tuple[int, int]], list[tuple[int, int]]] = field(default_factory=lambda: ([], []))
    tiles: list[FrameTiles] = field(default_factory=list)


def run_again(v3d: V3D, lists: Lists) -> Rerun | None:
    """Run lists on memory as it is now; None if that cannot be done.

    They write too much, wait for something, or the V3D's state cannot be taken over.
    """
    memory = v3d.memory
    options = GpuOptions(threads=1, unknowns=v3d.unknowns, forgiving=True)
    other = V3D(memory, Reporter(), options=options)
    try:
        begin_with(other, start_of(v3d), "")
    except CaptureError:
        return None
    saved = KeptMemory(memory, MOST_SAVED)
    found = Rerun(other)
    heard = other.listeners
    heard.frame_tiles.subscribe(lambda event: _tiles(found, saved, event))
    heard.frame_work.subscribe(found.works.append)
    heard.list_binned.subscribe(found.binned.append)
    heard.records_noted.subscribe(lambda event: _records(found, event))
    try:
        saved.take(_tile_memory(memory, lists.binning))
        if v3d.binning.overspill_size:
            saved.take([(v3d.values["BPOA"], v3d.binning.overspill_size)])
        with FrameFeed(other) as feed:
            for number, one in enumerate((lists.binning, lists.rendering)):
                other.write(BY_NAME[f"CT{number}CS"].offset, RESET)
                if one is not None:
                    other.write(BY_NAME[f"CT{number}CA"].offset, one[0])
                    other.write(BY_NAME[f"CT{number}EA"].offset, one[1])
            found.frames = feed.take()
        if any(thread.running or thread.error for thread in other.threads):
            return None  # it lacks something that the first run had: overspill memory, say
    except TooLarge:
        return None
    finally:
        saved.put_back()
    return found


def _tile_memory(memory: GuestMemory, binning: tuple[int, int] | None) -> Iterable[tuple[int, int]]:
    """Address and size of what the mode records of a binning list name."""
    if binning is None:
        return
    for record in parse_list(memory.read, *binning, follow=True, limit=MOST_RECORDS):
        if isinstance(record.payload, TileBinningMode):
            yield int(record.payload.address), int(record.payload.memory_size)


def _tiles(found: Rerun, saved: KeptMemory, event: FrameTiles) -> None:
    if event.over:
        found.tiles.append(event)
        return
    saved.take(stored_ranges(event.surfaces, event.full))


def _records(found: Rerun, event: RecordsNoted) -> None:
    if event.pieces is None:
        words = memoryview(event.notes).cast("I")
        found.records[event.thread].extend(zip(words[::2], words[1::2], strict=True))

"""The chip while frames are drawn: fed with their tables, it says when each is done.

::

    model = FrameModel(chip, speeds_of(chip).of_board["pi1"])
    for timing in model.run(frames):
        print(timing.clocks)

Thread 0 bins a frame while thread 1 renders the one before. Both begin when the rendering of the
one before that, and the binning of what is rendered now, are done; all caches are empty then, as
Linux clears them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator
from typing import Any

from vc4lab.timing.boards import BoardSpeed
from vc4lab.timing.chip import Chip
from vc4lab.timing.compute.kinds import FRACTION
from vc4lab.timing.compute.model import CACHES, figures_of, make_caches, place_modules
from vc4lab.timing.compute.state import Figures, Qpu
from vc4lab.timing.declare import StandsStill
from vc4lab.timing.event_scheduler import Pause
from vc4lab.timing.frames.frame import Frame
from vc4lab.timing.graphics.accounts import Accounts
from vc4lab.timing.graphics.clusters import preparation as clusters
from vc4lab.timing.graphics.feed import Feed, tile_size
from vc4lab.timing.graphics.result import FrameTiming
from vc4lab.timing.graphics.state import PLACE_BITS, GraphicsFigures, RasterFigures, Work
from vc4lab.timing.graphics.tables import Tables
from vc4lab.timing.graphics.topology import frame_topology
from vc4lab.timing.machine import Machine

BINNING, RENDERING = 0, 1
"""List threads."""

_PARTS = {
    "list_byte_part": ("rendering_list", "byte_clocks"),
    "list_record_part": ("rendering_list", "record_clocks"),
    "setup_varying_part": ("setup", "varying_clocks"),
    "quad_part": ("front_end", "quad_clocks"),
    "pixel_quad_part": ("tile_buffer", "quad_clocks"),
    "load_byte_part": ("tile_buffer", "load_clocks"),
    "store_byte_part": ("tile_buffer", "store_clocks"),
}
_WHOLE = {
    "list_line": ("rendering_list", "line"),
    "list_ahead": ("rendering_list", "ahead"),
    "list_tiles": ("rendering_list", "tiles"),
    "locks": ("tile_buffer", "locks"),
    "whole_quads": ("tile_buffer", "whole_quads"),
    "kept": ("vertex_cache", "kept"),
    "setup_clocks": ("setup", "clocks"),
    "setup_reversed_clocks": ("setup", "reversed_clocks"),
    "setup_latency": ("setup", "latency"),
    "primitive_clocks": ("front_end", "primitive_clocks"),
    "front_latency": ("front_end", "latency"),
    "tile_clocks": ("tile_buffer", "tile_clocks"),
    "burst": ("tile_buffer", "burst"),
    "loads_ahead": ("tile_buffer", "loads_ahead"),
    "shader_launch": ("shaders", "launch"),
    "shader_interval": ("shaders", "interval"),
}


QUAD = 2
"""Pixels of a quad, across and down."""


def _fill(figures: RasterFigures, chip: Chip) -> None:
    for name, (section, key) in _PARTS.items():
        setattr(figures, name, round(chip.real(section, key) * (1 << FRACTION)))
    for name, (section, key) in _WHOLE.items():
        setattr(figures, name, chip.whole(section, key))
    across, down = tile_size(chip)
    if chip.whole("tile_buffer", "square") > QUAD:
        figures.whole_quads = 1
    figures.places = (down // 2 - 1 << PLACE_BITS) + across // 2


class FrameModel:
    """A chip on a board."""

    def __init__(self, chip: Chip, speed: BoardSpeed, feed: Feed | None = None) -> None:
        self.chip = chip
        self.feed = feed or Feed(chip)
        self.figures = GraphicsFigures()
        plain = figures_of(chip, speed)
        ctypes.memmove(self.figures.address, plain.address, Figures.size)
        _fill(self.figures.raster, chip)
        self.machine = Machine(frame_topology(chip, self.feed.parts), self.figures.address, self.feed.name)
        states = self.machine.states
        qpus = [Qpu.python.from_address(state.address) for state in states["qpu"]]
        place_modules(self.machine, chip, qpus, plain)
        self._kept = make_caches(self.machine, chip)
        clusters.prepare(self.machine, self.figures, chip)
        self._empty = Tables.nothing()
        self.tables = [self._empty, self._empty]
        self._works: list[Any] = [Work(), Work()]
        self.feed.prepare(self.machine, self.figures)

    # -- frames ----------------------------------------------------------------------------------

    def run(self, frames: Iterable[Frame]) -> Iterator[FrameTiming]:
        """The timing of each frame, as soon as it is known. Raises StandsStill."""
        accounts = Accounts(self.machine, self.feed)
        rendered: Tables | None = None
        binned, number = 0, -1
        for frame in frames:
            tables = self.feed.tables(frame)
            started = int(self.machine.engine.clock)
            found = self._stage(tables, rendered)
            if rendered is not None:
                first = binned if number == 0 else 0
                yield accounts.take(number, rendered, started, found, binned, first)
            else:
                accounts.restart()
            rendered, binned, number = tables, found[BINNING], number + 1
        if rendered is not None:
            started = int(self.machine.engine.clock)
            found = self._stage(None, rendered)
            first = binned if number == 0 else 0
            yield accounts.take(number, rendered, started, found, binned, first)

    def _stage(self, binned: Tables | None, rendered: Tables | None) -> tuple[int, int]:
        """One frame is binned while another is rendered; clocks of both."""
        machine = self.machine
        start = int(machine.engine.clock)
        self._load(BINNING, binned)
        self._load(RENDERING, rendered)
        self._clear_caches()
        machine.call("binning_list", 0, start)
        machine.call("rendering_list", 0, start)
        if machine.run() is not Pause.IDLE:
            raise StandsStill("a module of frames asked for more of a record")
        if (binned and not self.feed.binned(machine)) or (rendered and not self._rendered(rendered)):
            raise StandsStill("\n".join(self.feed.standing(machine)))
        ends = [int(tile.finished_at) for tile in machine.states["tile_buffer"]]
        end = max(ends) if rendered else start
        return (self.feed.binning_end(machine) - start if binned else 0), end - start

    def _load(self, thread: int, tables: Tables | None) -> None:
        """Shows a thread's modules the tables of a frame."""
        chosen = tables or self._empty
        work = chosen.work(thread, self.feed.shared())
        self.tables[thread], self._works[thread] = chosen, work
        self.figures.works[thread] = work.address
        clusters.reset(self.machine, self.figures, thread)
        self.feed.reset(self.machine, thread, chosen)
        if thread == RENDERING:
            states = self.machine.states
            clock = int(self.machine.engine.clock)
            _set(states["rendering_list"][0], step=0, begun=0, fetching=0, fetched=0, away=0,
                 came=0, tiles=0, tiles_done=0)  # fmt: skip
            for setup in states["setup"]:
                _set(setup, list=0, free_at=0, shaded=0, begun=0, spent=0)
            for front in states["front_end"]:
                _set(front, primitive=0, free_at=0, ended=clock)
            for tile in states["tile_buffer"]:
                _set(tile, vectors=0, written=0, work=0, finished_at=clock, tiles=0)

    def _clear_caches(self) -> None:
        for kind in CACHES:
            for cache in self.machine.states[kind]:
                count = 8 * cache.tags.sets * cache.tags.ways
                ctypes.memset(cache.tags.lines, 0xFF, count)

    def _rendered(self, tables: Tables) -> bool:
        """Whether everything of the rendering list is done."""
        states, work = self.machine.states, self._works[RENDERING]
        reader, buffers = states["rendering_list"][0], states["tile_buffer"]
        assert tables.rendering is not None
        written = sum(int(tile.written) for tile in buffers)
        tiles = sum(int(tile.tiles) for tile in buffers)
        done = reader.step == work.step_count and written == work.vector_count
        return bool(done and tiles == len(tables.rendering.frame.tiles))


def _set(state: Any, **values: int) -> None:
    for name, value in values.items():
        setattr(state, name, value)

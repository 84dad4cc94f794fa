"""Draws a frame: tile lists → draws → pipelines and shaded vertices → tiles on worker threads.

Python touches each distinct render state once; lists, primitives, vertices and pixels are native.
Source: hardware reference 1.2, 3.3, 7.10.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from vc4lab.records.declarations import StoreGeneral
from vc4lab.v3d.fragment.surface import Surface
from vc4lab.v3d.fragment.tile_job import Draw, NativeFrame
from vc4lab.v3d.fragment.tiles import TileScheduler
from vc4lab.v3d.geometry.direct_lists import DirectLists
from vc4lab.v3d.geometry.tile_lists import ScanResult, scan_tile_lists
from vc4lab.v3d.lists.draws import DrawPreparer
from vc4lab.v3d.lists.lint import Lint
from vc4lab.v3d.lists.render_state import default_state, state_bytes

if TYPE_CHECKING:
    from vc4lab.diagnostics import Reporter
    from vc4lab.memory import GuestMemory
    from vc4lab.v3d.lists.collector import Collector
    from vc4lab.v3d.lists.rendering import FrameMode
    from vc4lab.v3d.unknowns import Unknowns


class FrameRenderer:
    """The rendering half of the V3D below its control list; keeps state from frame to frame."""

    def __init__(
        self,
        memory: GuestMemory,
        reporter: Reporter,
        *,
        unknowns: Unknowns,
        engine: str,
        threads: int | None,
        lint: Lint | None = None,
    ) -> None:
        self.memory = memory
        self.reporter = reporter
        self.unknowns = unknowns
        self.threads = threads
        self.state = state_bytes(default_state())
        self.index_error = False
        self._frame: NativeFrame | None = None
        self._direct = DirectLists(memory, reporter, unknowns)
        self._mode: FrameMode | None = None
        self._shape: tuple[int, list[int], Any] | None = None
        self.lint = lint or Lint(reporter)
        self.preparer = DrawPreparer(
            memory, reporter, unknowns=unknowns, engine=engine, lint=self.lint
        )

    @cached_property
    def scheduler(self) -> TileScheduler:
        """The worker threads; made at the first frame, because that compiles the tile loop."""
        return TileScheduler(self.threads, self.unknowns)

    def forget_state(self) -> None:
        """The state of the rendering list is as after power on."""
        self.state = state_bytes(default_state())

    def events(self) -> dict[str, int]:
        """What the tile threads counted since the start."""
        return self.scheduler.counters() if "scheduler" in self.__dict__ else {}

    def draw(self, mode: FrameMode, collector: Collector) -> None:
        """Renders what was collected: when this returns, its stores are in guest memory."""
        pieces = collector.pieces()
        direct = self._direct
        if direct.count:
            direct = self._direct = DirectLists(self.memory, self.reporter, self.unknowns)
        scan = scan_tile_lists(self.memory, pieces, self.state, depth=0, direct=direct)
        self.index_error |= direct.index_error
        self.state = scan.final_bytes
        self._report_errors(scan)
        tile = mode.tile(self.unknowns)
        self.lint.frame(mode, tile, scan.entries)
        ops, chains, count = collector.arrays()
        if not count:
            return
        draws = self.preparer.prepare_all(scan, mode.layout, direct.address, mode.vg_mask)
        payloads = collector.surfaces
        shape = count, payloads, draws.table
        frame = self._frame
        if frame is not None and mode is self._mode and shape == self._shape:
            frame.renew(ops, chains, scan.segments, scan.tile_offsets)
        else:
            self._mode, self._shape = mode, shape
            self._frame = frame = NativeFrame(
                self.memory,
                *mode.drawn_size(self.unknowns),
                draws=draws,
                surfaces=_surfaces(mode, payloads),
                ops=ops,
                chains=chains,
                count=count,
                segments=scan.segments,
                piece_first=scan.tile_offsets,
                tile=tile,
                layout=mode.layout,
            )
        self._run(frame, draws)

    def _run(self, frame: NativeFrame, draws: Sequence[Draw]) -> None:
        result = self.scheduler.run(frame)
        for number in result.bad_lists:
            self.reporter.report(
                "CLE-017", f"a compressed primitive list of draw {number} does not end"
            )
        for number in result.unsupported:
            self.preparer.report_unsupported(draws[number])

    def _report_errors(self, scan: ScanResult) -> None:
        for error in scan.errors:
            self.reporter.report(
                "CLE-034",
                f"a tile list has {error.text} (byte 0x{error.byte:02x}); the rest of this list is"
                " left out",
                address=error.address,
            )


def _surfaces(mode: FrameMode, payloads: list[int]) -> list[Surface]:
    """Surface 0 is that of record 113, the others are payloads of records 28 and 29."""
    shape = mode.width, mode.height, mode.wide_colour
    return [mode.surface, *(_surface(payload, *shape) for payload in payloads[1:])]


@lru_cache(maxsize=256)
def _surface(payload: int, width: int, height: int, wide: bool) -> Surface:
    record = StoreGeneral(payload)
    return Surface(
        record.address,
        width,
        height,
        int(record.tiling),
        int(record.format),
        int(record.buffer),
        int(record.decimate),
        wide,
    )

"""Draws a frame: tile lists → draws → pipelines and shaded vertices → tiles on worker threads.

Python touches each distinct render state once; lists, primitives, vertices and pixels are native.
Source: hardware reference 1.2, 3.3, 7.10.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from vc4lab.bounded import Bounded
from vc4lab.listeners import AnyListener
from vc4lab.records.declarations import StoreGeneral
from vc4lab.v3d.checks.hints import Lint
from vc4lab.v3d.draws.preparation import DrawPreparer
from vc4lab.v3d.events import FrameDrawn, FrameTiles
from vc4lab.v3d.job_time import JobCounts
from vc4lab.v3d.ptb.direct_lists import DirectLists
from vc4lab.v3d.services import Services
from vc4lab.v3d.state.frame_mode import Surface
from vc4lab.v3d.state.render_state import default_state, state_bytes
from vc4lab.v3d.state.tile_context import WORK_COUNTERS
from vc4lab.v3d.tile_lists.scanner import ListScanner
from vc4lab.v3d.tiles.job import Draw, NativeFrame
from vc4lab.v3d.tiles.threads import NO_FAILURES, RenderResult, TileThreads

if TYPE_CHECKING:
    from vc4lab.v3d.draws.frame_draws import FrameDraws
    from vc4lab.v3d.draws.work import WorkReporter
    from vc4lab.v3d.state.frame_mode import FrameMode
    from vc4lab.v3d.state.native_records import RecordNotes
    from vc4lab.v3d.tile_lists.scan_context import ScanError, ScanResult
    from vc4lab.v3d.tiles.collector import Collector
    from vc4lab.v3d.unknowns import Unknowns


MOST_FRAMES = 64
"""Whose arrays are kept: some kilobytes each."""


class FrameRenderer:
    """The rendering half of the V3D below its control list; keeps state from frame to frame."""

    def __init__(self, services: Services, lint: Lint, notes: RecordNotes) -> None:
        self.services, self.lint = services, lint
        self.memory, self.reporter = memory, reporter = services.memory, services.reporter
        self.listeners = listeners = services.listeners
        self._any_listener = AnyListener(listeners.frame_tiles, listeners.frame_drawn, listeners.frame_work)
        self.unknowns = unknowns = services.unknowns
        self.index_error = False
        self.drawn = self.refused = 0
        """Draws since the last end of a frame, by whether they could be drawn."""
        self.stored: list[tuple[int, int]] = []
        """Guest address and size of what was stored since the last end of a frame, if that is
        listened to."""
        self._counted = (0,) * (1 + len(WORK_COUNTERS))
        self._direct = DirectLists(memory, reporter, unknowns)
        self._scanner = ListScanner(
            memory,
            self._direct.expand,
            depth=0,
            separate_format=unknowns["tile_list_format"] == "separate",
            notes=notes,
        )
        self._broken: dict[str, tuple[str, int]] = {}
        self._mode: FrameMode | None = None
        self._tile = 0, 0
        self._frames: Bounded[tuple[int, ...], tuple[FrameMode, NativeFrame]] = Bounded(MOST_FRAMES)
        """By mode, number of chains and surfaces: drivers draw to the same few again and again."""
        self._tile_threads: TileThreads | None = None  # made when needed, see v3d/README.md
        self._reporter: WorkReporter | None = None
        self.preparer = DrawPreparer(services, lint)
        self._endless = self.preparer.vertices.endless

    @property
    def tile_threads(self) -> TileThreads:
        """The worker threads; made at the first frame, because that compiles the tile loop."""
        threads, services = self._tile_threads, self.services
        if threads is None:
            threads = self._tile_threads = TileThreads(
                None, self.unknowns, interrupts=services.interrupts, team=services.team
            )
        return threads

    @property
    def progress(self) -> tuple[int, ...] | None:
        """See `TileThreads.progress`."""
        return self._tile_threads.progress if self._tile_threads is not None else None

    def work_so_far(self, is_taken: bool) -> Sequence[int]:
        """Quads shaded and tiles moved since the start; is_taken: `take_counts` was called after the last."""
        return self._counted[1:3] if is_taken else self._work()[:2]

    def _work(self) -> list[int]:
        threads = self._tile_threads
        return threads.work() if threads is not None else [0] * len(WORK_COUNTERS)

    def abandon(self) -> None:
        """Give up the frame that is being drawn: `draw` raises Abandoned; from any thread."""
        if self._tile_threads is not None:
            self._tile_threads.abandon()

    def take_counts(self) -> JobCounts:
        """Take the counts of what was rendered since the last call."""
        totals = self.preparer.vertices.instructions, *self._work()
        shading, *work = map(int.__sub__, totals, self._counted)
        self._counted = totals
        return JobCounts(0, 0, shading, *work)

    def begin_list(self) -> None:
        """A rendering list starts: programs that did not end before may be tried again."""
        if self._endless:
            self._endless.clear()

    def reset_state(self) -> None:
        """The state of the rendering list is as after power on."""
        self._scanner.set_state(state_bytes(default_state()))

    def events(self) -> dict[str, int]:
        """Count what the tile threads did since the start."""
        return self._tile_threads.counters() if self._tile_threads is not None else {}

    def draw(self, mode: FrameMode, collector: Collector) -> None:
        """Renders what was collected: when this returns, its stores are in guest memory."""
        if mode is not self._mode:
            self._mode = mode
            self._tile = mode.tile(self.unknowns)
        scan = self._scan(collector)
        self.lint.frame(mode, self._tile, scan.entries)
        if not collector.context.chain_count:
            return
        draws = self.preparer.prepare_all(scan, mode.layout, mode.vg_mask)
        frame = self._native_frame(mode, collector, scan, draws)
        if self._any_listener.present:
            result = self._draw_observed(frame, mode, collector, scan, draws)
        else:
            result = (self._tile_threads or self.tile_threads).run(frame)
        if self.listeners.frame_stored.subscriptions:
            self.stored += frame.stored()
        preparer = self.preparer
        if preparer.late.met:
            preparer.late.report()
        self.drawn += scan.draw_count
        if result is not NO_FAILURES or preparer.refused:
            refused = preparer.refused + len(result.bad_lists) + len(result.unsupported)
            preparer.refused = 0
            self.refused += refused
            self.drawn -= refused
            self._report_draws(result, draws)

    def _native_frame(
        self, mode: FrameMode, collector: Collector, scan: ScanResult, draws: FrameDraws
    ) -> NativeFrame:
        """The frame's arrays: those of an earlier frame if it had the same mode and surfaces."""
        ops, chains, count = collector.arrays()
        surfaces = collector.surfaces
        key = id(mode), count, *surfaces
        known = self._frames.get(key)
        if known is not None and known[0] is mode and known[1].draws is draws.table:
            frame = known[1]
            frame.renew(ops, chains, scan.segments, scan.tile_offsets)
            return frame
        frame = NativeFrame(
            self.memory,
            *mode.drawn_size(self.unknowns),
            draws=draws,
            surfaces=_surfaces(mode, surfaces, self.unknowns),
            ops=ops,
            chains=chains,
            count=count,
            segments=scan.segments,
            piece_first=scan.tile_offsets,
            tile=self._tile,
            layout=mode.layout,
        )
        self._frames[key] = mode, frame
        return frame

    def _draw_observed(
        self,
        frame: NativeFrame,
        mode: FrameMode,
        collector: Collector,
        scan: ScanResult,
        draws: Sequence[Draw],
    ) -> RenderResult:
        """Draws the tiles, and emits what listeners want to know of them."""
        drawn = bool(self.listeners.frame_drawn.subscriptions)
        works = bool(self.listeners.frame_work.subscriptions)
        moved = self._emit_moved(mode, collector) if self.listeners.frame_tiles.subscriptions else None
        result = self.tile_threads.run(frame, record=drawn, works=works)
        if moved is not None:
            self.listeners.frame_tiles.emit(moved._replace(over=True))
        if drawn:
            self._emit_tiles(frame, mode)
        if works:
            self._emit_work(frame, mode, collector, scan, draws)
        return result

    def _emit_moved(self, mode: FrameMode, collector: Collector) -> FrameTiles:
        """Emits what the frame is about to load and store; the event."""
        from vc4lab.v3d.draws.moved_tiles import frame_tiles

        event = frame_tiles(_surfaces(mode, collector.surfaces, self.unknowns), collector.context)
        self.listeners.frame_tiles.emit(event)
        return event

    def _emit_tiles(self, frame: NativeFrame, mode: FrameMode) -> None:
        """Emits what each tile took to listeners."""
        from vc4lab.v3d.tiles.job import tiles_drawn

        event = FrameDrawn(mode.address, mode.width, mode.height, *self._tile, tiles_drawn(frame))
        self.listeners.frame_drawn.emit(event)

    def _emit_work(
        self,
        frame: NativeFrame,
        mode: FrameMode,
        collector: Collector,
        scan: ScanResult,
        draws: Sequence[Draw],
    ) -> None:
        """Emits the pieces of work of the tiles to listeners."""
        from vc4lab.v3d.draws.work import WorkReporter

        if self._reporter is None:
            self._reporter = WorkReporter(self.preparer)
        event = self._reporter.event(mode, frame, self.tile_threads, collector, scan, draws)
        self.listeners.frame_work.emit(event)

    def _scan(self, collector: Collector) -> ScanResult:
        """The lists of all pieces, in order."""
        scanner, pieces = self._scanner, collector.context
        if self._direct.count:  # what the frame before had
            self._direct = DirectLists(self.memory, self.reporter, self.unknowns)
            scanner.use(self._direct.expand)
        scan = scanner.scan(pieces.pieces, pieces.piece_ends, pieces.piece_count)
        if self._direct.index_error:
            self.index_error = True
        if scan.errors:
            self._report_lists(scan.errors)
        return scan

    def _report_lists(self, errors: Sequence[ScanError]) -> None:
        """Reports each kind of fault in lists once, with the first list that has it."""
        kinds: dict[str, list[ScanError]] = {}
        for error in errors:
            kinds.setdefault(error.text, []).append(error)
        for text, found in kinds.items():
            if text not in self._broken:
                first = found[0]
                others = f", and that of {len(found) - 1} more" if len(found) > 1 else ""
                where = self.lint.addresses.about_tile_list(first.address)
                self._broken[text] = (
                    f"a tile list has {text} (byte 0x{first.byte:02x}); the rest of this list is"
                    f" left out{others}{where}",
                    first.address,
                )
            message, address = self._broken[text]
            for _ in found:
                self.reporter.report("CLE-034", message, address=address)

    def _report_draws(self, result: RenderResult, draws: Sequence[Draw]) -> None:
        for number in result.bad_lists:
            self.reporter.report("CLE-017", f"a compressed primitive list of draw {number} does not end")
        for number in result.endless:
            self.preparer.report_stopped(draws[number])
        for number, target in result.left.items():
            self.preparer.report_stopped(draws[number], target)
        for number in result.unsupported:
            self.preparer.report_unsupported(draws[number])


def _surfaces(mode: FrameMode, payloads: list[int], unknowns: Unknowns) -> list[Surface]:
    """Surface 0 is that of record 113, the others are payloads of records 28 and 29."""
    shape = mode.width, mode.height, mode.wide_colour
    return [mode.surface(unknowns), *(_surface(payload, *shape) for payload in payloads)]


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

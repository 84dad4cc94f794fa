"""The tile loop: threads take chains of tile operations from a shared counter and run them.

The loop itself is native; Python only starts it, once a frame. The picture does not depend on the
number of threads, because chains share nothing but the surfaces they store to.

The loop, transfers of tiles and setups are compiled, and their sources imported, when they are needed.
"""

from __future__ import annotations

import ctypes
import threading
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from vc4lab.qpu.run.environment import INSTRUCTION_BUDGET
from vc4lab.simd import Function, NativeFunction, NativeModule, Value, build, ptr
from vc4lab.simd.team import PART_ARGUMENTS, Team
from vc4lab.v3d.pse.setup import Raster, raster
from vc4lab.v3d.reference.fragment import QUEUES_RUN
from vc4lab.v3d.services import FRAGMENTS, ShaderInterrupts
from vc4lab.v3d.state import tile_context as tc
from vc4lab.v3d.state.frame_mode import MULTISAMPLE, WIDE, TransferKey
from vc4lab.v3d.tiles.job import FIRST_BUDGET, NativeFrame, recorded
from vc4lab.v3d.tiles.worker import TerminationTrial, Worker
from vc4lab.v3d.unknowns import DEFAULT_UNKNOWNS, Unknowns


@lru_cache(maxsize=16)
def tile_functions(
    unknowns: Unknowns = DEFAULT_UNKNOWNS, target: Any = None, recording: bool = False, works: bool = False
) -> NativeModule:
    """Native `run_tiles(job, thread)`; `recording`: the variant that fills `TileJob.records`,
    `works`: the one that fills `TileJob.works`.
    """

    def body(job: Value, thread: Value) -> None:
        from vc4lab.v3d.tiles.loop import run_tiles

        run_tiles(unknowns, job, thread, recording, works)

    functions = {"run_tiles": Function(args=PART_ARGUMENTS, returns=None, body=body)}
    key = f"tiles-{unknowns.digest()}{'-recording' * recording}{'-works' * works}"
    return build("tiles", functions, target=target, float_mode="default", key=key)


@lru_cache(maxsize=128)
def transfer_function(
    key: TransferKey, unknowns: Unknowns = DEFAULT_UNKNOWNS, target: Any = None
) -> NativeFunction:
    """Native `(context, op)` that stores or loads a tile."""

    def body(context: Value, op: Value) -> None:
        from vc4lab.v3d.tlb.stores import transfer

        transfer(context, op, key, unknowns)

    functions = {"move": Function(args=(ptr, ptr), returns=None, body=body)}
    name = f"transfer-{key}-{unknowns.digest()}"
    return build("transfer", functions, target=target, float_mode="default", key=name)["move"]


@lru_cache(maxsize=16)
def triangle_setup(
    index_bits: int, raster: Raster, target: Any = None, weights: str = "plain"
) -> NativeFunction:
    """Native `(context, params, batch)`: fills the `TriangleBatch` with what comes next.

    It leaves the float mode alone: pipelines call it in theirs. weights: as for
    `setup.substitute_clipped`.
    """

    def body(context: Value, params: Value, batch: Value) -> None:
        from vc4lab.v3d.pse.triangle_setup import next_batch

        next_batch(context, params, batch, index_bits, raster, weights)

    functions = {"setup": Function(args=(ptr, ptr, ptr), returns=None, body=body)}
    key = f"triangles-{index_bits}-{raster}-{weights}"
    return build("setup", functions, target=target, float_mode="default", key=key)["setup"]


@dataclass
class RenderResult:
    """The result of a frame: draws that a list error or their program stopped."""

    bad_lists: list[int] = field(default_factory=list)
    unsupported: list[int] = field(default_factory=list)
    endless: list[int] = field(default_factory=list)
    left: dict[int, int] = field(default_factory=dict)
    """The address for which execution left a draw's program, where no code can lie."""
    exact_tiles: int = 0


NO_FAILURES = RenderResult()
"""The result of a frame in which nothing happened; it is never changed."""


NO_MORE_CHAINS = 1 << 30


class Abandoned(Exception):  # noqa: N818 - it was asked for
    """A frame was given up before its end, by `TileThreads.abandon`."""


class TileThreads:
    """Runs frames with the threads of a team. They start at the first frame worth sharing: one that
    only clears and stores tiles is limited by memory, and waking threads would cost more.

    Parameters
    ----------
    threads
        How many work on a frame, the calling one included; one per processor by default. Of a
        `team`, its own.
    interrupts
        Where programs interrupt the host.
    team
        The threads, which may be shared; a team of its own by default.
    """

    def __init__(
        self,
        threads: int | None = None,
        unknowns: Unknowns = DEFAULT_UNKNOWNS,
        target: Any = None,
        interrupts: ShaderInterrupts | None = None,
        team: Team | None = None,
    ) -> None:
        self.team = team or Team(threads)
        self.threads = self.team.threads
        self._run_tiles = tile_functions(unknowns, target)["run_tiles"]
        self._variant = False, False
        self._unknowns, self._target = unknowns, target
        self.interrupts = interrupts or ShaderInterrupts()
        self._setups: dict[int, NativeFunction] = {}
        self._contexts = (ctypes.c_uint64 * self.threads)()
        self._workers: list[Worker] = []
        self._add_worker()
        self._lock = threading.Lock()
        self._transfers: dict[tuple[int, int, int, bool, int], NativeFunction] = {}
        self._running: NativeFrame | None = None
        self._passes = 0
        self._abandoned = False

    def run(self, frame: NativeFrame, *, record: bool = False, works: bool = False) -> RenderResult:
        """Renders a frame; tiles that need it are rendered again with exact pipelines.

        `record`: with a `TileRecord` of each tile, by the variant of the loop that writes them.
        `works`: with pieces of work (`recorded`), by another; pipelines are to record them, too.

        Raises Abandoned.
        """
        with self._lock:
            self._abandoned = False
            frame.job.budget = FIRST_BUDGET  # a frame before may have been given up
            if not frame.provided:
                frame.provided = True
                frame.job.contexts = ctypes.addressof(self._contexts)
                for number in range(len(frame.surface_list)):
                    self.provide(frame, number, to_memory=True)
                    self.provide(frame, number, to_memory=False, only_known=True)
            if record:
                frame.provide_records()
            if works:
                frame.provide_works()
                for worker in self._workers:
                    worker.begin_work()
            if (record, works) != self._variant:
                self._choose(record, works)
            self.render_pass(frame, frame.count)
            return _Rerun(self, frame, self._workers).run() if frame.job.failed else NO_FAILURES

    def _choose(self, recording: bool, works: bool) -> None:
        """Which variant of the tile loop runs from now on."""
        if self._variant[1] and not works:
            for worker in self._workers:
                worker.end_work()
        self._variant = recording, works
        functions = tile_functions(self._unknowns, self._target, recording, works)
        self._run_tiles = functions["run_tiles"]

    def recorded(self, frame: NativeFrame) -> tuple[dict[str, bytes], int]:
        """Take what the run of a frame with `works` recorded: see `work_memory.recorded`."""
        return recorded(frame, [worker.work for worker in self._workers if worker.work is not None])

    def provide(self, frame: NativeFrame, number: int, to_memory: bool, only_known: bool = False) -> None:
        """Finds what moves tiles between the tile buffer and a surface; compiles it if new."""
        mode = frame.job.mode
        surface = frame.surface_list[number]
        key = surface.tiling, surface.format, surface.buffer, to_memory, mode
        function = self._transfers.get(key)
        if function is None:
            if only_known:
                return
            transfer_key = surface.transfer_key(to_memory, bool(mode & MULTISAMPLE), bool(mode & WIDE))
            function = transfer_function(transfer_key, self._unknowns, self._target)
            self._transfers[key] = function
        frame.set_transfer(number, to_memory, function.address)

    def provide_setup(self, number: int) -> None:
        """Compiles a triangle setup, for all threads."""
        bits, separate = tc.TRIANGLE_SETUPS[number]
        weights = self._unknowns["clip_weights"]
        points = raster(self._unknowns, separate)
        function = triangle_setup(bits, points, self._target, weights)
        self._setups[number] = function
        for worker in self._workers:
            worker.context.setups[number] = function.address

    def give_blocks_to(self, callback: int) -> None:
        """Interpreted blocks go to a C function (host address), as `TileContext.callback` has it."""
        for worker in self._workers:
            worker.context.callback = callback

    @property
    def context(self) -> int:
        """Host address of the `TileContext` of the calling thread, which draws a chain that is alone."""
        return self._workers[0].address

    @property
    def recorded_blocks(self) -> int:
        """Bytes of `BlockWork` that the calling thread has recorded."""
        work = self._workers[0].work
        return 0 if work is None else int(work.work.blocks.used)

    def counters(self) -> dict[str, int]:
        """Totals of `COUNTERS` since the start."""
        totals = dict.fromkeys(tc.COUNTERS, 0)
        for worker in self._workers:
            for name, value in zip(tc.COUNTERS, worker.totals, strict=True):
                totals[name] += value
        return totals

    def work(self) -> list[int]:
        """Totals since the start of the counters named in `WORK_COUNTERS`."""
        parts = [worker.totals[tc.FIRST_WORK_COUNTER :] for worker in self._workers]
        return parts[0] if len(parts) == 1 else [sum(part) for part in zip(*parts, strict=True)]

    def close(self) -> None:
        """Ends the threads. The next frame starts others."""
        self.team.close()

    @property
    def progress(self) -> tuple[int, ...] | None:
        """Changes with each finished tile or queue of interpreted blocks; None: no tile runs.

        May be read from any thread.
        """
        frame = self._running
        return None if frame is None else (self._passes, frame.job.next, QUEUES_RUN[0])

    def abandon(self) -> None:
        """Give up the frame that runs, after the draws in tiles at hand; from any thread."""
        frame = self._running
        if frame is None:
            return
        self._abandoned = True
        frame.job.budget = 0
        for worker in self._workers:
            worker.context.budget = 0
        frame.job.next = NO_MORE_CHAINS

    def render_pass(self, frame: NativeFrame, chains: int) -> None:
        """Runs the chains that the frame has in order. Raises Abandoned."""
        self._passes += 1
        self._running = frame
        try:
            self._run(frame, chains)
        finally:
            self._running = None
        if self._abandoned:
            raise Abandoned

    def _run(self, frame: NativeFrame, chains: int) -> None:
        if self.threads == 1 or chains == 1 or not frame.is_work:
            self._run_tiles.call(frame.address, 0)
            return
        helpers = min(self.threads, chains) - 1
        if helpers > self.team.helpers:
            self.team.provide(helpers)
            while len(self._workers) <= self.team.helpers:
                self._add_worker()
        if self.team.helpers:
            self.team.run(self._run_tiles.address, frame.address, helpers)
        else:
            self._run_tiles.call(frame.address, 0)

    def _add_worker(self) -> None:
        worker = Worker(self.interrupts.place(FRAGMENTS))
        for number, function in self._setups.items():
            worker.context.setups[number] = function.address
        if self._variant[1]:
            worker.begin_work()
        self._contexts[len(self._workers)] = worker.address
        self._workers.append(worker)


class _Rerun:
    """Renders again the chains of a frame that a draw stopped, until none is left.

    Chains whose program used up its first budget come last, with the whole one: one chain, then
    two, four, … at a time, in order. So an endless program uses the whole budget in one of them
    (or in no more than have ended before), and the picture does not depend on the threads.
    """

    def __init__(self, threads: TileThreads, frame: NativeFrame, workers: list[Worker]) -> None:
        self.threads = threads
        self.frame = frame
        self.result = RenderResult()
        self.trial = TerminationTrial(frame, workers)
        self.exact: dict[int, int] = {}
        """Entry points of exact pipelines, by draw."""
        self.aside: list[int] | None = []
        """Chains whose programs need the whole budget; None: they have it now."""

    def run(self) -> RenderResult:
        """Renders them; what happened in the frame."""
        result, unproven = self.result, list[int]()
        self._repeat(unproven)
        self._prove(unproven)
        reference = bool(unproven)
        todo, size, self.aside = sorted(self.aside or ()), 1, None
        self.frame.job.budget = INSTRUCTION_BUDGET
        while todo:
            group, todo = todo[:size], todo[size:]
            if not reference:
                late: list[int] = []
                self._render(group, late)
                group, reference = late, bool(late)
            self._prove(group)
            size *= 2
        for numbers in (result.bad_lists, result.unsupported, result.endless):
            numbers[:] = sorted(set(numbers))
        return result

    def _prove(self, chains: list[int]) -> None:
        """Renders chains with interpreted programs that take long: compiled code first, then the
        interpreter where that has ended.
        """
        while chains:
            unproven: list[int] = []
            with self.trial.compiled_instead():
                self._pass(chains)
                # the interpreter meets what is not simulated, too, and knows what to report
                failures = [row for row in self.frame.failed() if row[2] != tc.STATUS_UNSUPPORTED]
            with self.trial.proven():
                self._render(sorted({*chains}.difference(row[0] for row in failures)), unproven)
            chains = sorted({*self._replace(failures, unproven), *unproven})

    def _render(self, chains: list[int], unproven: list[int]) -> None:
        """Renders chains again, until only those set aside and the unproven are left."""
        if chains:
            self._pass(chains)
            self._repeat(unproven)

    def _repeat(self, unproven: list[int]) -> None:
        """Renders failed chains until only those set aside and the unproven are left."""
        while failed := self._replace(self.frame.failed(), unproven):
            self._pass(failed)

    def _pass(self, chains: list[int]) -> None:
        self.frame.again(chains)
        self.threads.render_pass(self.frame, len(chains))

    def _replace(self, failed: list[tuple[int, int, int, int]], unproven: list[int]) -> list[int]:
        """Replaces or leaves out draws that failed; returns the chains to render again.

        `unproven` gets those where compiled code has to show that an interpreted program ends.
        """
        frame, result = self.frame, self.result
        chains, provided = [], set()
        renewed: dict[int, int] = {}
        for chain, number, status, target in failed:
            if status == tc.STATUS_ENDLESS and self.aside is not None:
                self.aside.append(chain)
                continue
            if status == tc.STATUS_UNPROVEN:
                unproven.append(chain)
                continue
            chains.append(chain)
            if status == tc.STATUS_NEEDS_TRANSFER:
                if number not in provided:
                    self.threads.provide(frame, number >> 1, to_memory=bool(number & 1))
                    provided.add(number)
                continue
            if status >= tc.STATUS_NEEDS_SETUP:
                self.threads.provide_setup(status - tc.STATUS_NEEDS_SETUP)
                continue
            function = 0  # leaves the draw out
            if status == tc.STATUS_DEOPT:
                draw = frame.draw_list[number]
                result.exact_tiles += 1
                if number not in self.exact and draw.fallback:
                    times = sum(row[1:3] == (number, tc.STATUS_DEOPT) for row in failed)
                    self.exact[number] = draw.fallback(times / frame.count)
                function = self.exact.get(number, 0)
                self._with_twins(number, function)
            elif status == tc.STATUS_BAD_LIST:
                result.bad_lists.append(number)
            elif status == tc.STATUS_LEFT:
                reached = getattr(frame.draw_list, "reached", None)
                anew = None if reached is None else reached(number, target)
                if anew is not None:
                    self.exact.pop(number, None)
                    function = renewed[number] = anew.function
                    frame.draws[2 * number + 1] = anew.params
                elif number in renewed:  # by another chain, with this target, too
                    function = renewed[number]
                else:
                    result.left[number] = target
            elif status == tc.STATUS_ENDLESS:
                if number not in result.endless:
                    result.endless.append(number)
                    self._give_up(number)
            else:
                result.unsupported.append(number)
            frame.draws[2 * number] = function
        return chains

    def _with_twins(self, number: int, function: int) -> None:
        """Later draws with the pipeline that gave up begin with its exact twin, too: of many
        draws with one program, each would stop its tiles again.
        """
        draws = self.frame.draws
        before = draws[2 * number]
        if before != function:
            for later in range(number + 1, len(self.frame.draw_list)):
                if draws[2 * later] == before:
                    draws[2 * later] = function

    def _give_up(self, number: int) -> None:
        """Leaves out all draws with the program of a draw."""
        draws = self.frame.draw_list
        program = draws[number].program
        for k in range(len(draws) if program is not None else 0):
            if draws[k].program == program:
                self.frame.draws[2 * k] = 0

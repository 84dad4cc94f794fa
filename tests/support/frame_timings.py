"""Frames of recorded jobs, and timings that are made up: for tests of what is done with them."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from vc4lab.drm.recorded.replay import replay
from vc4lab.timing.chip import Chip
from vc4lab.timing.frames.frame import Frame
from vc4lab.timing.graphics.result import DrawTiming, FrameTiming, ModuleUse, ShaderUse
from vc4lab.timing.result import CacheUse, HotInstruction, QueueUse
from vc4lab.v3d.counters import SOURCES

JOBS = Path(__file__).parents[1] / "data" / "vc4-jobs"


@cache
def recorded(name: str) -> tuple[Frame, ...]:
    """The frames of a recorded run."""
    found: list[Frame] = []
    replay(JOBS / name, on_work=lambda _name, frames: found.extend(frames))
    return tuple(found)


def frame_timing(clocks: int = 1000, draws: int = 2, queue: str = "vectors") -> FrameTiming:
    """A frame that the QPUs bound."""
    half = clocks // 2
    return FrameTiming(
        number=0,
        clocks=clocks,
        binning=clocks // 4,
        rendering=clocks,
        tiles=4,
        vectors=80,
        quads=198,
        primitives=20,
        batches=3,
        tile_clocks={"drawing": half, "loading": 0, "storing": half},
        draws=tuple(
            DrawTiming(n, 0x1000 + n, clocks - n * half, half, 9, n * half, clocks, 10, 99, 40)
            for n in range(draws)
        ),
        modules=(
            ModuleUse("sdram", 0, clocks // 5, 0, clocks - clocks // 5),
            *(ModuleUse("qpu", n, clocks * 9 // 10, 0, clocks // 10) for n in range(12)),
            ModuleUse("front_end", 0, clocks // 3, clocks - clocks // 3, 0),
            ModuleUse("host", 0, 0, 0, clocks),
        ),
        queues=(QueueUse(queue, 0, 40, 8, 8, 3.5, half),),
        caches=(CacheUse("tmu", 0, 90, 10), CacheUse("l2", 0, 8, 2)),
        memory_bytes={"tmu": 4096, "tiles": 65536},
        events=12,
        shaders=(
            ShaderUse(
                "fragment", 1, 0x2000, 40, 400, 3 * half, {"TMU result": half},
                (HotInstruction(0x2008, "nop ; nop ; ldtmu0", 40, half, {"TMU result": half}),),
            ),
        ),
        notes=("a <note> & more",),
        counters={source.id: 777 for source in SOURCES if not source.modelled},
    )  # fmt: skip


class FakeMachine:
    """A machine with one module and one queue, for `Sampler`."""

    def __init__(self) -> None:
        from vc4lab.timing.event_scheduler import Engine, Instance
        from vc4lab.timing.queues import QueueState

        self.engine = Engine()
        self.names = [("qpu", 0)]
        self.instances = [Instance()]
        self.queues = {"vectors": [QueueState()]}

    turn = 1
    on_turn: Any = None

    def step(self, clocks: int, busy: int) -> None:
        """Time goes on."""
        self.engine.clock += clocks
        self.instances[0].busy += busy
        self.queues["vectors"][0].filled += 2 * clocks
        self.queues["vectors"][0].changed_at = self.engine.clock
        if self.on_turn is not None:
            self.on_turn()


class FakeModel:
    """Takes 1000 clocks for a frame and a chip's slot of 4; a quarter less for a slot of 1. The
    first frame has to be binned before it."""

    def __init__(self, chip: Chip, memory: float) -> None:
        self.chip, self.memory = chip, memory
        self.machine = FakeMachine()

    def run(self, frames: Iterable[Frame]) -> Iterator[FrameTiming]:
        """The timings."""
        slot, slices = self.chip.whole("qpu", "slot"), self.chip.whole("slices", "count")
        clocks = (500 + 125 * slot) * 3 // slices
        for number, _ in enumerate(frames):
            for _ in range(10):
                self.machine.step(clocks // 10, clocks // 20)
            one = frame_timing(clocks)
            yield replace(one, clocks=clocks + (0 if number else one.binning), number=number)

"""Holds the model's results of frames: clocks, who was busy, and where each draw's clocks went."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from vc4lab.timing.result import CacheUse, HotInstruction, QueueUse


@dataclass(frozen=True)
class DrawTiming:
    """A draw, a distinct render state of the frame, in all tiles.

    Attributes
    ----------
    draw, record
        Number among the frame's draws, guest address of its first list.
    clocks
        In the front end: from the end of the piece before to the end of a piece of this draw,
        summed over its pieces. Clocks in which the front end waits count for the draw it waits for.
    busy, setup
        Clocks at work for it in the front end, and in the setup engine.
    first, last
        From the beginning of rendering: its first piece in the front end, and the end of its last.
    primitives, quads, vectors
        With pixels; quads that they cover; vectors for the fragment program.
    batches
        Batches of vertices that were shaded or fetched for rendering.
    """

    draw: int
    record: int
    clocks: int
    busy: int
    setup: int
    first: int
    last: int
    primitives: int
    quads: int
    vectors: int
    batches: int = 0


@dataclass(frozen=True)
class ModuleUse:
    """A module: clocks at work, with work done but no room for it, and the rest: without work."""

    module: str
    number: int
    busy: int
    blocked: int
    starved: int


@dataclass(frozen=True)
class ShaderUse:
    """A program of a frame: threads that ran it, clocks they waited by cause, hot instructions.

    kind: fragment, vertex or coordinate. draw: that uses it.
    """

    kind: str
    draw: int
    code: int
    threads: int
    instructions: int
    clocks: int
    stalls: Mapping[str, int]
    hot: tuple[HotInstruction, ...] = ()


@dataclass(frozen=True)
class FrameTiming:
    """A frame. `modules` to `memory_bytes` are of the clocks in which it was rendered, with what
    the binning of the frame after it did meanwhile.

    Attributes
    ----------
    number
        From 0 on.
    clocks
        From the end of the frame before (or of its own binning, if that was later) to its end; of
        the first frame with its binning.
    binning, rendering
        Clocks of each, from its beginning to its end.
    tiles, vectors, quads, primitives
        That went through.
    tile_clocks
        Clocks of the tile buffer: drawing, loading, storing.
    counters
        The performance counters that the functional core does not know, by number (`counters.py`).
    """

    number: int
    clocks: int
    binning: int
    rendering: int
    tiles: int
    vectors: int
    quads: int
    primitives: int
    batches: int
    tile_clocks: Mapping[str, int]
    draws: tuple[DrawTiming, ...]
    modules: tuple[ModuleUse, ...]
    queues: tuple[QueueUse, ...]
    caches: tuple[CacheUse, ...]
    memory_bytes: Mapping[str, int]
    events: int
    shaders: tuple[ShaderUse, ...] = ()
    notes: tuple[str, ...] = field(default=())
    counters: Mapping[int, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return asdict(self)

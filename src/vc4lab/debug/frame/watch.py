"""Watches one pixel of a tile while the interpreter runs the fragment programs of the tile's blocks.

The block with the pixel runs alone, through an environment that notes what it reads and writes. Other
blocks are left out: what they do to the tile buffer, they do to other pixels.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from vc4lab.qpu.run.wide import WideInterpreter
from vc4lab.simd.eager_wide import Diverged
from vc4lab.v3d.reference import tlb
from vc4lab.v3d.reference.environment import QueueEnvironment
from vc4lab.v3d.reference.fragment import FUNCTION, run_waiting
from vc4lab.v3d.reference.queue import Shared
from vc4lab.v3d.state.frame_mode import PLANE_BYTES, SAMPLE_BYTES, TileLayout
from vc4lab.v3d.state.tile_context import BlockWork, DrawParams, FragmentBatch, FragmentQueue, TileContext

if TYPE_CHECKING:
    from vc4lab.qpu.run.interpreter import Step
    from vc4lab.qpu.run.wide import Lanes, Words
    from vc4lab.v3d.reference.draw import ReferenceDraw
    from vc4lab.v3d.tiles.threads import TileThreads

STENCIL_BITS = 8
ACCESS_NAMES = {
    tlb.WRITE_Z: "depth", tlb.WRITE_COLOUR: "colour", tlb.WRITE_MASK: "mask",
    tlb.WRITE_STENCIL: "stencil setup", tlb.WRITE_FLAGS: "sample flags", tlb.WRITE_REVERSE: "facing",
    tlb.LOAD_COLOUR: "colour read", tlb.LOAD_MASK: "mask read", tlb.LOAD_COVERAGE: "coverage read",
}  # fmt: skip
"""Kinds of accesses to the tile buffer, in words."""


class PixelState(NamedTuple):
    """A pixel in the tile buffer.

    Attributes
    ----------
    colours
        Of each sample its words: one, or two (red and green; blue and alpha) of 64-bit colours.
    depths, stencils
        Of each sample: 24 and 8 bits.
    """

    colours: tuple[tuple[int, ...], ...]
    depths: tuple[int, ...]
    stencils: tuple[int, ...]


class TileWrite(NamedTuple):
    """An access of a program to the tile buffer, as the watched pixel sees it.

    Attributes
    ----------
    kind
        `reference.tlb`: WRITE_Z, WRITE_COLOUR …
    sample, word
        Which part of the colour; sample -1: each.
    value
        What the program has written in the pixel's lane (or read, of loads).
    takes_part
        Whether the instruction's condition held in the lane.
    """

    kind: int
    sample: int
    word: int
    value: int
    takes_part: bool


class Texel(NamedTuple):
    """A texture request: its number in the program, the coordinates as words, what came."""

    number: int
    coordinates: tuple[int, ...]
    words: tuple[int, ...]


class ProgramStep(NamedTuple):
    """An instruction of the program: address, text, registers that it wrote: name, value, mask."""

    address: int
    text: str
    writes: tuple[tuple[str, tuple[int, ...], tuple[bool, ...] | None], ...]


@dataclass
class WatchedBlock:
    """A block with the pixel, shaded.

    Attributes
    ----------
    record
        Its number among the `BlockWork` of the thread.
    state
        Number of the render state among those of the frame.
    lane
        Of the pixel, 0 to 15; lane & ~3 is its quad.
    samples
        Those of the pixel that the primitive covers, as bits.
    left
        Those that were on when the program ended.
    depth
        Interpolated at the pixel's centre, 24 bits; `steps` adds to it for each sample.
    reverse
        Whether the primitive faces backwards.
    w, varyings
        As the program has them: W, and VP and C of each varying.
    before, after
        The pixel in the tile buffer.
    order
        Its number among the blocks that were watched.
    """

    record: int
    state: int
    lane: int
    samples: int
    left: int
    depth: int
    steps: tuple[int, ...]
    reverse: bool
    w: float
    varyings: tuple[float, ...]
    draw: ReferenceDraw
    uniforms_address: int
    before: PixelState
    after: PixelState
    writes: list[TileWrite] = field(default_factory=list)
    texels: list[Texel] = field(default_factory=list)
    uniforms: list[int] = field(default_factory=list)
    program: list[ProgramStep] = field(default_factory=list)
    params: bytes = b""
    order: int = 0


class Moment(NamedTuple):
    """The moment before a block's program begins, to run it from there again.

    Attributes
    ----------
    draw
        As the interpreter knows it; its program.
    context, params, queue
        Bytes of the thread's `TileContext` with the tile buffer, of the `DrawParams`, and of a
        `FragmentQueue` with this one block.
    lane
        Of the pixel.
    """

    draw: ReferenceDraw
    context: bytes
    params: bytes
    queue: bytes
    lane: int


class WatchedEnvironment(QueueEnvironment):
    """The environment of the block with the pixel, which runs alone."""

    def __init__(self, shared: Any, block: WatchedBlock) -> None:
        super().__init__(shared, np.arange(1))
        self._block = block

    def uniform(self) -> Words:
        word = super().uniform()
        self._block.uniforms.append(int(word[0]))
        return word

    def _sample(self, number: int, coordinates: list[Words], parameters: list[Words]) -> list[Words]:
        words = super()._sample(number, coordinates, parameters)
        places = tuple(_at(word, self._block.lane) for word in coordinates)
        self._block.texels.append(Texel(number, places, tuple(_at(word, self._block.lane) for word in words)))
        return words

    def _note(
        self, kind: int, values: Words, masks: Lanes | None, place: tuple[int | None, int] = (0, 0)
    ) -> None:
        super()._note(kind, values, masks, place)
        sample, word = place
        if kind < tlb.LOAD_COLOUR:
            self._add(kind, sample, word, values, masks)

    def _load(self, kind: int, place: tuple[int, int] = (0, 0)) -> Words:
        result = super()._load(kind, place)
        self._add(kind, *place, result, None)
        return result

    def _add(self, kind: int, sample: int | None, word: int, values: Words, masks: Lanes | None) -> None:
        lane = self._block.lane
        number = tlb.EACH_SAMPLE if sample is None else sample
        on = True if masks is None else bool(_at(masks, lane))
        self._block.writes.append(TileWrite(kind, number, word, _at(values, lane), on))


def _at(word: Any, lane: int) -> int:
    """A lane of a word of one block."""
    return int(np.broadcast_to(word, (*word.shape[:-1], 16)).reshape(-1, 16)[0, lane])


class PixelWatch:
    """Records what a pixel's blocks do; `attach` has the interpreter of a V3D call it.

    x, y: of the pixel in the frame. program: programs are traced, instruction by instruction. wanted:
    number of the block whose `moment` is kept; -1: none is.
    """

    def __init__(self, x: int, y: int, layout: TileLayout, *, program: bool, wanted: int = -1) -> None:
        self.x, self.y, self.layout, self._wanted = x, y, layout, wanted
        self.moment: Moment | None = None
        self.blocks: list[WatchedBlock] = []
        self._program = program
        self._callback = FUNCTION(lambda context, params: run_waiting(context, params, self._shade))
        self._threads: TileThreads | None = None

    def attach(self, threads: TileThreads) -> None:
        """Blocks of these threads come here."""
        self._threads = threads
        address = ctypes.cast(self._callback, ctypes.c_void_p).value
        assert address is not None
        threads.give_blocks_to(address)

    def _shade(
        self, draw: ReferenceDraw, context: int, params: int, queue: int, count: int, budget: int
    ) -> None:
        size = FragmentBatch.size // 4
        memory: Any = (ctypes.c_uint32 * (count * size)).from_address(queue + FragmentQueue.size)
        words = np.frombuffer(memory, np.uint32).reshape(count, size)
        at = [FragmentBatch.offset(name) // 4 for name in ("x", "y")]
        found = (words[:, at[0] : at[0] + 16] == self.x) & (words[:, at[1] : at[1] + 16] == self.y)
        for row in np.flatnonzero(found.any(axis=1)).tolist():
            lane = int(found[row].argmax())
            self._one(draw, context, params, queue, row, (lane, count), budget)

    def _one(
        self, draw: ReferenceDraw, context: int, params: int, queue: int, row: int,
        where: tuple[int, int], budget: int,
    ) -> None:  # fmt: skip
        """The block with the pixel, in a lane; `where` also says how many blocks wait."""
        lane, count = where
        shared = Shared(draw, context, params, queue + row * FragmentBatch.size, 1)
        shared.budget = budget
        block = self._begin(draw, context, params, shared, lane)
        if block.order == self._wanted:
            self.moment = Moment(
                draw,
                ctypes.string_at(context, TileContext.size),
                block.params,
                bytes(FragmentQueue.size)
                + ctypes.string_at(shared.queue + FragmentQueue.size, FragmentBatch.size),
                lane,
            )
        block.record = self.recorded // BlockWork.size - count + row
        environment = WatchedEnvironment(shared, block)
        hook = (lambda step: block.program.append(kept_step(step))) if self._program else None
        interpreter = WideInterpreter(draw.program, environment, settings=draw.key.unknowns, trace=hook)
        if interpreter.advance(budget):
            raise Diverged  # which one block cannot
        shared.finish()
        block.left = int(shared.column("flags", 1, lane)[0, 0])
        block.after = self._pixel(context)
        self.blocks.append(block)

    @property
    def recorded(self) -> int:
        """Bytes of blocks that the thread with the pixel's tile has recorded so far."""
        return self._threads.recorded_blocks if self._threads is not None else 0

    def pixel(self) -> PixelState | None:
        """The pixel in the tile buffer as it is now; None: nothing was attached."""
        return self._pixel(self._threads.context) if self._threads is not None else None

    def _begin(
        self, draw: ReferenceDraw, context: int, params: int, shared: Shared, lane: int
    ) -> WatchedBlock:
        def number(name: str, at: int = 0) -> int:
            return int(shared.column(name, 1, at)[0, 0])

        count = number("n_varyings")
        slopes = [number("varyings_vp", 16 * k + lane) for k in range(count)]
        constants = [number("varyings_c", k) for k in range(count)]
        floats = np.array([number("w", lane), *slopes, *constants], np.uint32).view(np.float32).tolist()
        pairs = zip(floats[1 : 1 + count], floats[1 + count :], strict=True)
        w = floats[0]
        steps = [number("z_steps", k) for k in range(4)] if self.layout.multisample else []
        before = self._pixel(context)
        return WatchedBlock(
            0,
            ctypes.c_int32.from_address(context + TileContext.draw.offset).value,
            lane,
            number("flags", lane),
            0,
            number("z", lane),
            tuple(step - (1 << 32) if step >> 31 else step for step in steps),
            bool(number("reverse")),
            w,
            tuple(slope * w + constant for slope, constant in pairs),
            draw,
            number("uniforms"),
            before,
            before,
            params=ctypes.string_at(params, DrawParams.size),
            order=len(self.blocks),
        )

    def _pixel(self, context: int) -> PixelState:
        """The pixel in the tile buffer now."""
        layout = self.layout
        tile_x, tile_y = (
            ctypes.c_int32.from_address(context + getattr(TileContext, name).offset).value
            for name in ("tile_x", "tile_y")
        )
        x, y = self.x - tile_x, self.y - tile_y
        place = (y >> 1) * layout.quad_row_bytes + (x >> 1) * layout.quad_bytes + (y & 1) * 8 + (x & 1) * 4
        colour, zs = (context + getattr(TileContext, name).offset + place for name in ("colour", "zs"))

        def word(at: int) -> int:
            return ctypes.c_uint32.from_address(at).value

        samples = range(layout.samples)
        colours = tuple(
            tuple(word(colour + SAMPLE_BYTES * k + PLANE_BYTES * part) for part in range(layout.words))
            for k in samples
        )
        words = [word(zs + SAMPLE_BYTES * k) for k in samples]
        return PixelState(
            colours, tuple(one >> STENCIL_BITS for one in words), tuple(one & 255 for one in words)
        )


def kept_step(step: Step) -> ProgramStep:
    """An instruction as it is kept: all lanes of the one block."""
    writes = []
    for name, value, mask in step.writes:
        lanes = tuple(np.broadcast_to(value, (*value.shape[:-1], 16)).reshape(-1, 16)[0].tolist())
        masks = None
        if mask is not None:
            masks = tuple(np.broadcast_to(mask, (*mask.shape[:-1], 16)).reshape(-1, 16)[0].tolist())
        writes.append((name, lanes, masks))
    return ProgramStep(step.address, step.text, tuple(writes))

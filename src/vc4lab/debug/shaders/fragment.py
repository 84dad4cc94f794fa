"""A fragment program, stepped on its block of 4x4 pixels: registers, varyings, texels, tile buffer.

The block is taken out of the tile as it was when its program began (`frame/watch.py`), with a copy of
the tile buffer, and runs in the environment of the reference interpreter. Accesses to the tile buffer
are made at once: with one block that is what making them at the end comes to.
"""

from __future__ import annotations

import copy
import ctypes
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from vc4lab.debug.frame.watch import ACCESS_NAMES, STENCIL_BITS
from vc4lab.debug.shaders.listing import KnownProgram, Meanings, source_of
from vc4lab.debug.shaders.qpu import ShaderQpu, words_of
from vc4lab.debug.stage import Row, Section, Stage
from vc4lab.debug.state import lanes_of
from vc4lab.diagnostics import Reporter
from vc4lab.qpu.run.environment import REFERENCE_BUDGET
from vc4lab.qpu.run.wide import WideInterpreter
from vc4lab.v3d.reference import tlb
from vc4lab.v3d.reference.environment import QueueEnvironment
from vc4lab.v3d.reference.queue import Shared
from vc4lab.v3d.state.frame_mode import PLANE_BYTES, SAMPLE_BYTES
from vc4lab.v3d.state.tile_context import TileContext

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from vc4lab.debug.frame.watch import Moment
    from vc4lab.debug.stepped import Observer
    from vc4lab.memory import GuestMemory
    from vc4lab.qpu.run.environment import Noted
    from vc4lab.qpu.run.wide import Lanes, Words
    from vc4lab.v3d.state.frame_mode import TileLayout

COORDINATES = "strb"


class TileAccessed(NamedTuple):
    """An access of the program to the tile buffer: what is meant, 16 words, the lanes that take part."""

    kind: int
    sample: int | None
    word: int
    values: list[int]
    lanes: list[bool]


class Sampled(NamedTuple):
    """A texture request: its number, coordinates and results, 16 words each."""

    number: int
    coordinates: list[list[int]]
    results: list[list[int]]


class SavedFragment(NamedTuple):
    """The state of a block between two instructions."""

    fields: tuple[Any, ...]
    requests: Noted
    context: bytes
    queue: bytes
    accessed: tuple[TileAccessed, ...]
    sampled: tuple[Sampled, ...]


class SteppedFragment(QueueEnvironment):
    """The environment of the one block; `accessed` and `sampled` are what it has done so far."""

    def __init__(self, shared: Shared, observer: Observer) -> None:
        super().__init__(shared, np.arange(1))
        self.observer = observer
        self.accessed: list[TileAccessed] = []
        self.sampled: list[Sampled] = []

    def carrying_out(self) -> AbstractContextManager[Any]:
        """Nothing is staged here."""
        return nullcontext()

    @property
    def uniform_address(self) -> int:
        """Guest address of the next word of the stream."""
        return self.pointer

    @property
    def varyings_read(self) -> int:
        """How many varyings were read."""
        return self._varying

    def setups(self) -> dict[str, int]:
        """Fragment programs have no VPM."""
        return {}

    def uniform(self) -> Words:
        self.observer.read(self.observer.base + self.pointer, 4)
        return super().uniform()

    def breakpoint(self) -> None:
        """The session has stopped before it; going on passes over it."""

    def _sample(self, number: int, coordinates: list[Words], parameters: list[Words]) -> list[Words]:
        found = super()._sample(number, coordinates, parameters)
        places = [words_of(word) for word in coordinates]
        self.sampled.append(Sampled(number, places, [words_of(word) for word in found]))
        return found

    def _note(
        self, kind: int, values: Words, masks: Lanes | None, place: tuple[int | None, int] = (0, 0)
    ) -> None:
        super()._note(kind, values, masks, place)
        if kind < tlb.LOAD_COLOUR:
            self._add(kind, place, values, masks)
            self.make()

    def _load(self, kind: int, place: tuple[int, int] = (0, 0)) -> Words:
        result = super()._load(kind, place)
        self._add(kind, place, result, None)
        return result

    def _add(self, kind: int, place: tuple[int | None, int], values: Words, masks: Lanes | None) -> None:
        lanes = [True] * 16 if masks is None else [bool(on) for on in lanes_of(masks)]
        self.accessed.append(TileAccessed(kind, *place, words_of(values), lanes))

    # -- keeping and restoring ---------------------------------------------------------------------

    def saved(self) -> SavedFragment:
        """The state between two instructions."""
        fields = self.pointer, self._varying, copy.copy(self.accesses), self._flags_changed
        context, queue = (ctypes.string_at(*place) for place in self._memory)
        noted = self.requests.noted()
        return SavedFragment(fields, noted, context, queue, tuple(self.accessed), tuple(self.sampled))

    def restore(self, saved: SavedFragment) -> None:
        """Back to a state."""
        self.pointer, self._varying, accesses, self._flags_changed = saved.fields
        self.accesses = copy.copy(accesses)
        self.pending.clear()
        self.requests.recall(saved.requests)
        for (place, size), data in zip(self._memory, (saved.context, saved.queue), strict=True):
            ctypes.memmove(place, data, size)
        self.accessed, self.sampled = list(saved.accessed), list(saved.sampled)

    @property
    def _memory(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Host address and bytes of what the program changes: the tile buffer, and its block."""
        shared: Any = self.shared
        return (shared.context, TileContext.size), (shared.queue, shared.bytes)


class _Block(Shared):
    """A block taken out of its tile, in host memory of its own."""

    def __init__(self, moment: Moment) -> None:
        self.kept = [
            ctypes.create_string_buffer(data, len(data) + 64)
            for data in (moment.context, moment.params, moment.queue)
        ]
        self.bytes = len(moment.queue)
        context, params, queue = map(ctypes.addressof, self.kept)
        self.interrupt = ctypes.c_uint8()
        place = context + TileContext.interrupts.offset
        ctypes.c_uint64.from_address(place).value = ctypes.addressof(self.interrupt)
        super().__init__(moment.draw, context, params, queue, 1)


class FragmentStage(Stage):
    """The program of a fragment on its block of 4x4 pixels.

    Attributes
    ----------
    lane
        Of the pixel that was asked for.
    keep
        Objects whose host memory the block refers to.
    """

    def __init__(
        self, memory: GuestMemory, moment: Moment, code: int, keep: object,
        known: KnownProgram | None = None,
    ) -> None:  # fmt: skip
        self.lane, self.keep = moment.lane, keep
        draw = moment.draw
        program = draw.program if draw.program.address else replace(draw.program, address=code)
        block = _Block(moment)
        self.block, self.layout = block, draw.key.layout
        uniforms = int(block.column("uniforms", 1)[0, 0])
        self.meanings = Meanings(memory, program, uniforms, known)
        super().__init__(memory, source_of("fragment", program, self.meanings, known), Reporter())
        self.environment = SteppedFragment(block, self.observer)
        machine = WideInterpreter(program, self.environment, settings=draw.key.unknowns)
        self.qpus[0] = ShaderQpu(machine, self.environment, REFERENCE_BUDGET)
        self._requests = [one for one in program.texture_requests if not one.is_direct]
        self.sections = (
            Section("pixels", "pixels of the block", self._pixels),
            Section("varyings", "varyings", self._varyings),
            Section("texels", "texture requests", self._texels),
            Section("tile", "tile buffer", self._tile),
            Section("writes", "accesses to the tile buffer", self._writes),
        )

    def meaning(self, address: int) -> str:
        return self.meanings.of(address)

    def report(self, qpu: Any) -> None:
        if qpu.code and not self.reporter.counts[qpu.code]:
            self.reporter.report(qpu.code, qpu.reason, address=qpu.address)

    def lanes(self, name: str) -> Any:
        """x, y, covered, colour, depth, stencil of each lane (of the first sample)."""
        if name in ("x", "y"):
            return self.block.column(name)[0]
        if name == "covered":
            return self.block.column("flags")[0]
        if name == "colour":
            return self.plane("colour", 0)
        if name in ("depth", "stencil"):
            words = self.plane("zs", 0)
            return words >> STENCIL_BITS if name == "depth" else words & 0xFF
        return None

    def plane(self, name: str, sample: int, word: int = 0) -> Any:
        """The words of the tile buffer at the 16 pixels: of a sample, and of a 64-bit colour word 0 or 1."""
        layout: TileLayout = self.layout
        place = int(self.block.column("place", 1)[0, 0]) + SAMPLE_BYTES * sample + PLANE_BYTES * word
        start = self.block.context + getattr(TileContext, name).offset + place
        quads = [layout.quad_row_bytes * (quad >> 1) + layout.quad_bytes * (quad & 1) for quad in range(4)]
        found = [ctypes.c_uint32.from_address(start + quads[k >> 2] + 4 * (k & 3)).value for k in range(16)]
        return np.array(found, np.uint32)

    # -- what is shown -----------------------------------------------------------------------------

    def _pixels(self) -> list[Row]:
        rows = [Row(name, words_of(self.lanes(name)), form="int") for name in ("x", "y")]
        rows.append(Row("covered", words_of(self.lanes("covered")), "samples that are on"))
        rows.append(Row("lane", (), f"the pixel that was asked for is lane {self.lane}"))
        return rows

    def _varyings(self) -> list[Row]:
        """VP * W + C, as interpolation has them."""

        def floats(words: Any) -> Any:
            return np.ascontiguousarray(words).view(np.float32)

        rows, block = [], self.block
        w = floats(block.column("w")[0])
        for number in range(int(block.column("n_varyings", 1)[0, 0])):
            slope = floats(block.column("varyings_vp", 16, 16 * number)[0])
            constant = floats(block.column("varyings_c", 1, number)[0])
            with np.errstate(all="ignore"):
                value = (slope * w + constant).astype(np.float32)
            note = "read" if number < self.environment.varyings_read else ""
            rows.append(Row(f"varying {number}", words_of(value.view(np.uint32)), note, "float"))
        rows.append(Row("W", words_of(block.column("w")[0]), "ra15 at the start", "float"))
        return rows

    def _texels(self) -> list[Row]:
        rows = []
        for place, one in enumerate(self.environment.sampled):
            rows.append(Row(f"request {place}", (), self._texture(one.number)))
            asked = self._requests[one.number].coordinates if one.number < len(self._requests) else "st"
            for name, words in zip(COORDINATES, one.coordinates, strict=False):
                if name in asked:
                    rows.append(Row(f"  {name}", words, form="float"))
            rows += [Row("  result", words) for words in one.results]
        return rows

    def _texture(self, number: int) -> str:
        """Describe the texture that a request samples."""
        textures = self.meanings.textures
        return textures[number] if number < len(textures) else f"texture of request {number}"

    def _tile(self) -> list[Row]:
        rows, layout = [], self.layout
        for sample in range(layout.samples):
            of = f" {sample}" if layout.samples > 1 else ""
            for word in range(layout.words):
                part = f".{word}" if layout.words > 1 else ""
                rows.append(Row(f"colour{of}{part}", words_of(self.plane("colour", sample, word))))
            words = self.plane("zs", sample)
            rows.append(Row(f"depth{of}", words_of(words >> STENCIL_BITS)))
            rows.append(Row(f"stencil{of}", words_of(words & 0xFF)))
        return rows

    def _writes(self) -> list[Row]:
        rows = []
        for one in self.environment.accessed:
            of = "" if one.sample is None or self.layout.samples == 1 else f" of sample {one.sample}"
            part = f", word {one.word}" if self.layout.words > 1 else ""
            on = "".join("1" if on else "." for on in one.lanes)
            rows.append(Row(f"{ACCESS_NAMES[one.kind]}{of}{part}", one.values, f"lanes {on}"))
        return rows

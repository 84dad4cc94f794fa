"""One block as the golden interpreter sees it: its inputs as numpy words, native TLB and TMU."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from vc4lab.qpu.environment import Environment
from vc4lab.v3d.fragment.accesses import ColourAccesses
from vc4lab.v3d.fragment.standalone import coverage_function, tlb_functions
from vc4lab.v3d.fragment.tile_context import (
    COUNTERS,
    DrawParams,
    FragmentBatch,
    TileContext,
)
from vc4lab.v3d.fragment.tlb import ALL_SAMPLES, DepthTest
from vc4lab.v3d.fragment.tmu_kernels import sampler_module
from vc4lab.v3d.fragment.tmu_requests import Requests

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from vc4lab.v3d.fragment.interpreted import GoldenDraw

    Words = NDArray[np.uint32]
    Lanes = NDArray[np.bool_]


class NumpyFragmentEnvironment(Environment):
    """One block as the interpreter sees it. Words are uint32 arrays of 16 lanes."""

    def __init__(self, draw: GoldenDraw, context: int, params: int) -> None:
        import numpy as np

        self.np = np
        self.draw = draw
        self.context = context
        self.params = params
        address = ctypes.c_uint64.from_address(context + TileContext.offset("batch")).value
        self.batch = address
        key = draw.key
        self.layout = key.layout
        test = DepthTest(key.layout, key.depth_function, key.z_update)
        self.native = tlb_functions(test, key.counting)
        self.accesses = ColourAccesses(key.layout)
        self.pointer = self._word("uniforms")
        self._array("stencil", 8)[:] = 0
        self._varying = 0
        self._requests = Requests(
            draw.requests,
            len(key.textures),
            sample=self._sample,
            lookup=self._lookup,
            skip_uniform=self._skip_uniform,
            zero=lambda: self._splat(0),
        )

    def _word(self, name: str) -> int:
        return ctypes.c_uint32.from_address(self.batch + FragmentBatch.offset(name)).value

    def _array(self, name: str, count: int = 16, start: int = 0) -> Words:
        place = self.batch + FragmentBatch.offset(name) + 4 * start
        words: Any = (ctypes.c_uint32 * count).from_address(place)
        return self.np.frombuffer(words, self.np.uint32)

    def _splat(self, word: int) -> Words:
        return self.np.full(16, word & 0xFFFFFFFF, self.np.uint32)

    def _lanes(self, mask: Lanes) -> Words:
        return self.np.ascontiguousarray(mask).astype(self.np.uint32)

    # -- inputs ------------------------------------------------------------------------------

    def initial_registers(self) -> dict[tuple[str, int], Words]:
        return {("a", 15): self._array("w").copy(), ("b", 15): self._array("z").copy()}

    def uniform(self) -> Words:
        word = self.draw.memory.u32(self.pointer)
        self.pointer = (self.pointer + 4) & 0xFFFFFFFF
        return self._splat(word)

    def uniforms_address(self, value: Words, relative: bool) -> None:
        base = self.pointer if relative else 0
        self.pointer = (base + int(value[0])) & 0xFFFFFFFF

    def varying(self) -> tuple[Words, Words]:
        number = self._varying
        self._varying += 1
        if number >= self._word("n_varyings"):
            return self._splat(0), self._splat(0)
        slopes = self._array("varyings_vp", 16, 16 * number).copy()
        return slopes, self._splat(int(self._array("varyings_c", 1, number)[0]))

    def x_coord(self) -> Words:
        return self._array("x").copy()

    def y_coord(self) -> Words:
        return self._array("y").copy()

    def element_number(self) -> Words:
        return self.np.arange(16, dtype=self.np.uint32)

    def qpu_number(self) -> Words:
        return self._splat(0)

    def ms_flags(self) -> Words:
        flags = self._array("flags")
        return flags & self.np.uint32(1) if self.draw.key.one_flag else flags.copy()

    def rev_flag(self) -> Words:
        return self._splat(self._word("reverse"))

    def set_ms_flags(self, value: Words, mask: Lanes) -> None:
        flags = self._array("flags")
        new = value & (1 if self.draw.key.one_flag else ALL_SAMPLES)
        if self.layout.samples == 1:
            new = self.np.where(new != 0, ALL_SAMPLES, 0).astype(self.np.uint32)
        flags[mask] = new[mask]

    def set_rev_flag(self, value: Words, mask: Lanes) -> None:
        if mask[0]:
            self._array("reverse", 1)[0] = int(value[0]) & 1

    def _count(self, name: str, amount: int) -> None:
        place = TileContext.offset("counters") + 4 * COUNTERS.index(name)
        ctypes.c_int32.from_address(self.context + place).value += amount

    # -- texture unit ------------------------------------------------------------------------

    def tmu_write(self, unit: int, register: str, value: Words, mask: Lanes, site: int) -> None:
        if register == "s" and self.draw.key.counting:
            self._count("texture_quads", self._word("valid").bit_count())
        self._requests.write(unit, register, value, site)

    def tmu_load(self, unit: int) -> Any:
        return self._requests.load(unit)

    def _lookup(self, addresses: Words) -> Words:
        result = self._splat(0)
        words = self.np.ascontiguousarray(addresses)
        self.native["direct"](self.draw.memory.base, words.ctypes.data, result.ctypes.data)
        return result

    def _sample(self, number: int, coordinates: list[Words]) -> list[Words]:
        kind = self.draw.key.textures[number]
        inputs = self.np.concatenate(coordinates)
        place = self.params + DrawParams.offset("textures") + 8 * number
        descriptor = ctypes.c_uint64.from_address(place).value
        outputs = self.np.zeros(32, self.np.uint32)
        native = sampler_module(kind)["sample"]
        native(descriptor, self.draw.memory.base, inputs.ctypes.data, outputs.ctypes.data)
        return [outputs[:16], outputs[16:]][: kind.result_words]

    def _skip_uniform(self) -> None:
        self.pointer = (self.pointer + 4) & 0xFFFFFFFF

    def tmu_noswap(self, value: Words) -> None:
        pass

    # -- tile buffer -------------------------------------------------------------------------

    def _masked(self, name: str, value: Words, mask: Lanes) -> None:
        words, lanes = self.np.ascontiguousarray(value), self._lanes(mask)
        self.native[name](self.context, words.ctypes.data, lanes.ctypes.data)

    def tlb_z(self, value: Words, mask: Lanes) -> None:
        self._masked("z", value, mask)

    def tlb_colour(self, value: Words, mask: Lanes, all_samples: bool) -> None:
        self._choose(self.accesses.write(all_samples))
        self._masked("colour", value, mask)

    def _choose(self, place: tuple[int | None, int]) -> None:
        """Says which sample and word the next colour access means."""
        sample, word = place
        self._array("colour_sample", 1)[0] = 0xFFFFFFFF if sample is None else sample
        self._array("colour_word", 1)[0] = word

    def tlb_colour_load(self) -> Words:
        self._choose(self.accesses.load())
        result = self._splat(0)
        self.native["load"](self.context, result.ctypes.data)
        return result

    def tlb_alpha_mask(self, value: Words, mask: Lanes) -> None:
        if self.draw.key.vg_mask:
            self._masked("mask", value, mask)

    def tlb_alpha_load(self) -> Words:
        result = self._splat(0)
        if self.draw.key.vg_mask:
            self.native["load_mask"](self.context, result.ctypes.data)
        return result

    def tlb_coverage_load(self) -> Words:
        result = self._splat(0)
        module = coverage_function(self.draw.key.coverage_reads)
        module["load_coverage"](self.context, result.ctypes.data)
        return result

    def tlb_stencil(self, value: Words) -> None:
        lane = int(self.draw.key.unknowns["stencil_setup_lane"])
        self.native["stencil"](self.context, ctypes.c_int32(int(value[lane])).value)

    def scoreboard_wait(self) -> None:
        pass

    def scoreboard_unlock(self) -> None:
        pass

    def thread_switch(self, last: bool) -> None:
        pass

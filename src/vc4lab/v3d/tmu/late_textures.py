"""Textures whose parameters are only known while a program runs.

A program may compute where its texture parameters lie, or find them by the way it took. Native code
looks such parameters up among those that were met before; for new ones it calls the host, which
describes the texture and finds a sampler for it. Source: hardware reference 4.11, 6.1.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakValueDictionary

from vc4lab.simd.floatmode import call_pointer
from vc4lab.simd.kernel import call, kernel
from vc4lab.simd.members import Array, i32, i32x16, ptr
from vc4lab.simd.memory import alloca, load, store
from vc4lab.simd.struct import Struct
from vc4lab.simd.value import Value, const, splat
from vc4lab.v3d.tmu.texture_slots import PARAMETERS, TextureSlot, fill_slot, padded, same_parameters
from vc4lab.v3d.tmu.texture_state import TextureDescriptor, TextureKind, describe_texture

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from vc4lab.diagnostics import Reporter
    from vc4lab.v3d.unknowns import Unknowns

MAX_TEXTURES = 256
"""Textures of this kind in one frame; more of them return 0."""

_LANE_BYTES = 64
_RESOLVE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_uint64)


class LateTable(Struct):
    """The table that native code works on. resolve: C function (host address of a `LateRequest`) -> index
    of a slot, -1 if there is no more room. last: the slot used last, a guess for the next."""

    memory = ptr
    resolve = ptr
    count = i32
    last = i32
    slots = Array(TextureSlot, MAX_TEXTURES)


class LateRequest(Struct):
    """One request: S, T, R, B, where its result goes, its parameters, where they were read."""

    coordinates = Array(i32x16, 4)
    results = Array(i32x16, 2)
    parameters = Array(i32, PARAMETERS)
    used = i32


@kernel(args=(ptr, ptr), returns=None)
def sample_request(table: Value, request: Value) -> None:
    """Executes a LateRequest."""
    t = LateTable.at(table)
    q = LateRequest.at(request)
    slots, parameters = t.slots, q.parameters
    found: Any = t.last
    if not same_parameters(slots + found * TextureSlot.size, parameters, q.used):
        found = const(i32, -1)
        for index in range(t.count):
            if same_parameters(slots + index * TextureSlot.size, parameters, q.used):
                found = index
                break
        if found < 0:
            found = call_pointer(t.resolve, i32, (ptr,), request)
        if found >= 0:
            t.last = found
    results = q.results
    if found >= 0:
        s = TextureSlot.at(slots + found * TextureSlot.size)
        call_pointer(
            s.sampler, None, (ptr, ptr, ptr, ptr),
            s.descriptor, t.memory, q.coordinates, results,
            float_mode="keep",
        )  # fmt: skip
    else:
        store(results, splat(const(i32, 0)), 64)


def sample_late(table: Value, coordinates: Sequence[Value], parameters: Sequence[Value]) -> Value:
    """The result of a request of 16 lanes with the given parameter words (scalars)."""
    request = alloca(LateRequest.size)
    q = LateRequest.at(request)
    for k, lanes in enumerate(coordinates):
        store(q.coordinates + k * _LANE_BYTES, lanes, 64)
    for k in range(PARAMETERS):
        word = parameters[k] if k < len(parameters) else const(i32, 0)
        store(q.parameters + k * 4, word)
    q.used = const(i32, len(parameters))
    call(sample_request, table, request)
    return load(i32x16, q.results, 64)


class LateTexture(NamedTuple):
    """A texture that a program asked for, with its parameters, all of which count."""

    words: tuple[int, ...]
    kind: TextureKind
    descriptor: TextureDescriptor


_tables: WeakValueDictionary[int, LateTextures] = WeakValueDictionary()


def late_textures_at(address: int) -> LateTextures:
    """The textures whose table is at a host address, for the reference interpreter."""
    return _tables[address]


class LateTextures:
    """The table of one V3D, and the textures met since the last report.

    Worker threads use it; `begin` and `report` belong to the thread that starts them, and are only
    needed if there are any (`met`: textures by their parameters).
    """

    def __init__(self, memory_base: int, reporter: Reporter, unknowns: Unknowns) -> None:
        self.reporter, self.unknowns = reporter, unknowns
        self.table = LateTable()
        self.table.memory = memory_base
        self._callback = _RESOLVE(self._resolve)
        self.table.resolve = ctypes.cast(self._callback, ctypes.c_void_p).value or 0
        self._lock = threading.Lock()
        self.met: dict[tuple[int, ...], LateTexture] = {}
        self._numbers: dict[tuple[int, ...], int] = {}
        self._samplers: list[Any] = []
        self._news: list[LateTexture] = []
        self._full = False
        _tables[self.table.address] = self

    def begin(self) -> None:
        """Makes room before a frame; no program runs."""
        if len(self.met) > MAX_TEXTURES // 2:
            self.table.count = self.table.last = 0
            ctypes.memset(self.table.address + LateTable.slots.offset, 0, MAX_TEXTURES * TextureSlot.size)
            for known in (self.met, self._numbers, self._samplers):
                known.clear()

    def report(self) -> None:
        """Reports findings about the textures that were met."""
        if not (self._news or self._full):
            return
        with self._lock:
            news, self._news = self._news, []
            full, self._full = self._full, False
        for met in news:
            describe_texture(
                *padded(met.words), len(met.words), unknowns=self.unknowns, reporter=self.reporter
            )
            if met.kind.result_words > 1:
                self.reporter.report(
                    "TMU-012", f"a texture of type {met.kind.type.name} at 0x{met.words[0]:08x}"
                )
        if full:
            self.reporter.report("TMU-013", f"more than {MAX_TEXTURES} textures in one frame")

    def find(self, words: tuple[int, ...]) -> LateTexture | None:
        """The texture with these 1 to 4 parameters, None if there are too many."""
        with self._lock:
            return self._find(words)

    def sample(
        self,
        base: int,
        coordinates: list[NDArray[np.uint32]],
        parameters: list[NDArray[np.uint32]],
        count: int,
    ) -> list[NDArray[np.uint32]]:
        """The reference form of a request, as `sample_many`; `parameters` are words of one element."""
        import numpy as np

        from vc4lab.v3d.tmu.kernels import sample_many

        met = self.find(tuple(int(word.flat[0]) for word in parameters))
        if met is None:
            return [np.zeros((count, 16), np.uint32)]
        return sample_many(met.kind, met.descriptor.address, base, coordinates, count)[:1]

    def _find(self, words: tuple[int, ...]) -> LateTexture | None:
        met = self.met.get(words)
        if met is None:
            if len(self.met) >= MAX_TEXTURES:
                self._full = True
                return None
            kind, descriptor = describe_texture(*padded(words), len(words), unknowns=self.unknowns)
            met = self.met[words] = LateTexture(words, kind, descriptor)
            self._news.append(met)
        return met

    def _resolve(self, request: int) -> int:
        from vc4lab.v3d.tmu.kernels import sampler_module

        used = ctypes.c_int32.from_address(request + LateRequest.used.offset).value
        place = request + LateRequest.parameters.offset
        words = tuple(ctypes.c_uint32.from_address(place + 4 * k).value for k in range(used))
        with self._lock:
            if words in self._numbers:  # another thread was faster
                return self._numbers[words]
            met = self._find(words)
            if met is None:
                return -1
            number = int(self.table.count)
            module = sampler_module(met.kind)
            self._samplers.append(module)
            fill_slot(self.table.slots[number], words, met.kind, met.descriptor, module)
            self._numbers[words] = number
            self.table.count = number + 1
            return number

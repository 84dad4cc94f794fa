"""The texture unit as callable functions: one request of 16 lanes from and to numpy arrays.

The reference interpreter executes QPU instructions in Python but samples with the same native code
as the JIT; these are the wrappers it calls, also used by tests and benchmarks.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from vc4lab.memory.native import StreamMemory, TouchedLines
from vc4lab.simd import Function, Target, build, const, host_target, i32, i32x16, load, ptr, staged, store
from vc4lab.v3d.tmu.sampler import direct_lookup, sample
from vc4lab.v3d.tmu.texture_state import TextureDescriptor, TextureKind

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from vc4lab.memory import GuestMemory
    from vc4lab.simd import NativeModule, Value

_LANE_BYTES = 64
_ALL_QUADS = 0x1111


@lru_cache(maxsize=256)
def sampler_module(kind: TextureKind, target: Target | None = None) -> NativeModule:
    """Native module with one entry for one texture kind.

    ``sample(descriptor, memory_base, words, results)``: ``words`` points to S, T, R, B of 16 lanes
    each, ``results`` receives 16 words (32 for RGBA64).
    """

    def one(descriptor: Value, memory: Value, words: Value, results: Value) -> None:
        s, t, r, b = (load(i32x16, words + n * _LANE_BYTES) for n in range(4))
        found = sample(kind, descriptor, memory, s, t, r, b)
        for n, word in enumerate(found if isinstance(found, tuple) else (found,)):
            store(results + n * _LANE_BYTES, word)

    entry = Function((ptr, ptr, ptr, ptr), None, one, name="sample")
    return build(
        f"tmu-{kind.type.name.lower()}",
        {"sample": entry},
        target=target or host_target(),
        float_mode="qpu",
        key=repr(kind),
    )


@lru_cache(maxsize=256)
def recording_module(kind: TextureKind) -> NativeModule:
    """As `sampler_module`, with a fifth argument: a `Stream` that takes the lines of memory, quad by quad,
    that the texels lie in.
    """

    def one(*arguments: Value) -> None:
        descriptor, memory, words, results, stream = arguments
        s, t, r, b = (load(i32x16, words + n * _LANE_BYTES) for n in range(4))
        lines = TouchedLines(stream, const(i32, _ALL_QUADS))
        found = sample(kind, descriptor, memory, s, t, r, b, lines=lines)
        for n, word in enumerate(found if isinstance(found, tuple) else (found,)):
            store(results + n * _LANE_BYTES, word)

    entry = Function((ptr, ptr, ptr, ptr, ptr), None, one, name="sample")
    name = f"tmu-recording-{kind.type.name.lower()}"
    return build(name, {"sample": entry}, float_mode="qpu", key=repr(kind))


@lru_cache(maxsize=256)
def many_sampler(kind: TextureKind) -> Any:
    """Native ``(descriptor, memory_base, words, results, count)``: `count` requests in a row.

    Each has 64 words (S, T, R, B of 16 lanes) and leaves 32.
    """

    @staged
    def all_of(descriptor: Value, memory: Value, words: Value, results: Value, count: Value) -> Any:
        while count > 0:
            s, t, r, b = (load(i32x16, words + n * _LANE_BYTES) for n in range(4))
            found = sample(kind, descriptor, memory, s, t, r, b)
            for n, word in enumerate(found if isinstance(found, tuple) else (found,)):
                store(results + n * _LANE_BYTES, word)
            words, results, count = words + 4 * _LANE_BYTES, results + 2 * _LANE_BYTES, count - 1

    entry = Function((ptr, ptr, ptr, ptr, i32), None, all_of, name="samples")
    name = f"tmu-many-{kind.type.name.lower()}"
    return build(name, {"samples": entry}, float_mode="qpu", key=repr(kind))["samples"]


def sample_many(
    kind: TextureKind, descriptor: int, base: int, coordinates: list[NDArray[np.uint32]], count: int
) -> list[NDArray[np.uint32]]:
    """The result words of `count` requests of 16 lanes, each of shape (count, 16).

    `descriptor` and `base` (guest memory) are host addresses; `coordinates`: words of S, T, R and
    B, of shape (count, 16), or (16,) if all requests have the same.
    """
    import numpy as np

    words = np.empty((count, 4, 16), np.uint32)
    for n, coordinate in enumerate(coordinates):
        words[:, n] = coordinate
    results = np.empty((count, 2, 16), np.uint32)
    many_sampler(kind)(descriptor, base, words.ctypes.data, results.ctypes.data, count)
    return [results[:, n] for n in range(kind.result_words)]


def sample_words(
    kind: TextureKind,
    descriptor: TextureDescriptor,
    memory: GuestMemory,
    s: NDArray[np.uint32],
    t: NDArray[np.uint32],
    r: NDArray[np.uint32],
    b: NDArray[np.uint32],
    *,
    target: Target | None = None,
) -> NDArray[np.uint32]:
    """Result words of one request: coordinates as float words of 16 lanes, 16 words out.

    RGBA64 returns 32 words: 16 times RG, then 16 times BA. Same bits as inside a shader.
    """
    import numpy as np

    words = np.concatenate([s, t, r, b]).astype(np.uint32, copy=False)
    if words.shape != (64,):
        raise ValueError("S, T, R and B have 16 lanes each")
    results = np.empty(16 * kind.result_words, np.uint32)
    entry = sampler_module(kind, target)["sample"]
    entry(descriptor.address, memory.base, words.ctypes.data, results.ctypes.data)
    return results


def sample_recorded(
    kind: TextureKind,
    descriptor: TextureDescriptor,
    memory: GuestMemory,
    coordinates: list[NDArray[np.uint32]],
    stream: StreamMemory,
) -> NDArray[np.uint32]:
    """As `sample_words`; the stream takes the lines of memory that the texels lie in."""
    import numpy as np

    words = np.concatenate(coordinates).astype(np.uint32, copy=False)
    results = np.empty(16 * kind.result_words, np.uint32)
    recording_module(kind)["sample"](
        descriptor.address, memory.base, words.ctypes.data, results.ctypes.data, stream.stream.address
    )
    return results


def lookup_words(memory: GuestMemory, addresses: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Direct memory lookup of 16 addresses: 32-bit words, low two address bits ignored."""
    return lookup_at(memory.base, addresses)


def lookup_at(base: int, addresses: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """As `lookup_words`, for guest memory at host address ``base``; any number of words side by side, of
    shape (count, 16), or (1,) for one address in all lanes.
    """
    import numpy as np

    masked = np.array(np.broadcast_to(addresses, (*addresses.shape[:-1], 16)), np.uint32, order="C")
    results = np.empty(masked.shape, np.uint32)
    place, there = masked.ctypes.data, results.ctypes.data
    _lookup_module()["lookup"](base, place, there, masked.size // 16)
    return results


@lru_cache(maxsize=1)
def _lookup_module() -> Any:
    @staged
    def lookup(memory: Value, addresses: Value, results: Value, count: Value) -> Any:
        while count > 0:
            store(results, direct_lookup(memory, load(i32x16, addresses)))
            addresses, results = addresses + _LANE_BYTES, results + _LANE_BYTES
            count = count - 1

    entry = Function((ptr, ptr, ptr, i32), None, lookup, name="lookup")
    return build("tmu-lookup", {"lookup": entry}, float_mode="qpu")

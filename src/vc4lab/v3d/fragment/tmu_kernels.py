"""The texture unit as callable functions: one request of 16 lanes from and to numpy arrays.

The golden interpreter executes QPU instructions in Python but samples with the same native code
as the JIT; these are the wrappers it calls, also used by tests and benchmarks.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from vc4lab.simd import Function, Target, build, host_target, i32x16, load, ptr, store
from vc4lab.v3d.fragment.texture_state import TextureDescriptor, TextureKind
from vc4lab.v3d.fragment.tmu import direct_lookup, sample

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from vc4lab.memory import GuestMemory
    from vc4lab.simd import NativeModule, Value

_LANE_BYTES = 64


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


def lookup_words(memory: GuestMemory, addresses: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Direct memory lookup of 16 addresses: 32-bit words, low two address bits ignored."""
    return lookup_at(memory.base, addresses)


def lookup_at(base: int, addresses: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """The same for guest memory at host address ``base``."""
    import numpy as np

    masked = (np.asarray(addresses, np.uint32)).copy()
    results = np.empty(16, np.uint32)
    _lookup_module()["lookup"](base, masked.ctypes.data, results.ctypes.data)
    return results


@lru_cache(maxsize=1)
def _lookup_module() -> Any:
    def lookup(memory: Value, addresses: Value, results: Value) -> None:
        store(results, direct_lookup(memory, load(i32x16, addresses)))

    entry = Function((ptr, ptr, ptr), None, lookup, name="lookup")
    return build("tmu-lookup", {"lookup": entry}, float_mode="qpu")

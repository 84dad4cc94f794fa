"""The native sampler beside its definition: one request on both, on noise."""

from functools import cache

import numpy as np
from tests.support.texture_reference import ReferenceSampler

from vc4lab.memory import GuestMemory
from vc4lab.records.texture import TextureConfig
from vc4lab.simd import Target, host_target, targets
from vc4lab.v3d.tmu.kernels import sample_words
from vc4lab.v3d.tmu.texture_state import TextureDescriptor, TextureKind, describe_texture
from vc4lab.v3d.unknowns import DEFAULT_UNKNOWNS

BASE = 0x400000
TARGETS = targets()
ZEROS = [0] * 16
SPECIAL = [
    0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0x80000000, 0x00000001, 0x807FFFFF, 0x7F7FFFFF,
    0xFF7FFFFF, 0x4B800001, 0xCB7FFFFF, 0x00800000, 0x80800000, 0x3F7FFFFF, 0x4F000000, 0xCF000001,
]  # fmt: skip
"""Infinite, NaN, denormal and huge float words."""


@cache
def memory() -> GuestMemory:
    """6 MiB of noise around BASE."""
    ram = GuestMemory()
    ram.write(0x200000, np.random.default_rng(7).integers(0, 256, 6 << 20, np.uint8).tobytes())
    return ram


def words(values) -> list[int]:
    return np.asarray(values, np.float32).view(np.uint32).tolist()


def check(
    config: TextureConfig | tuple[int, ...],
    s: list[int],
    t: list[int],
    r: list[int] = ZEROS,
    b: list[int] = ZEROS,
    *,
    only: tuple[Target, ...] | None = None,
    unknowns=DEFAULT_UNKNOWNS,
) -> TextureKind:
    parameters = config.parameters() if isinstance(config, TextureConfig) else config
    kind, descriptor = describe_texture(*parameters, 4, unknowns=unknowns)
    wanted = reference(kind, descriptor).sample(s, t, r, b)
    arrays = [np.array(values, np.uint32) for values in (s, t, r, b)]
    for target in only or (host_target(),):
        got = sample_words(kind, descriptor, memory(), *arrays, target=target).tolist()
        assert got == wanted, (kind, target)
    return kind


def reference(kind: TextureKind, descriptor: TextureDescriptor) -> ReferenceSampler:
    ram = memory()

    def fetch(address: int, size: int) -> int:
        return int.from_bytes(ram.read(address, size), "little")

    return ReferenceSampler(kind, descriptor, fetch)


def coordinates(seed: int, low: float = -2.2, high: float = 3.2) -> list[int]:
    rng = np.random.default_rng(seed)
    values = rng.uniform(low, high, 16).astype(np.float32)
    values[:8] = [0.0, 1.0, 0.5, -1e-9, 1 - 2**-24, 2.0, -1.0, 1 / 3]
    return words(rng.permutation(values))


def quads(seed: int, spread: float) -> tuple[list[int], list[int]]:
    """Coordinates of four quads with a footprint of roughly ``spread`` of the texture."""
    rng = np.random.default_rng(seed)
    base = np.repeat(rng.uniform(0, 1, (2, 4)), 4, axis=1)
    steps = rng.uniform(-spread, spread, (2, 16)) * np.repeat([[0.01, 0.1, 1, 3]], 4, axis=1)
    both = (base + steps).astype(np.float32)
    return words(both[0]), words(both[1])


def cube_block(
    middle: tuple[float, float, float], step: float, *, scale: float = 1.0
) -> tuple[list[int], list[int], list[int]]:
    """Directions of a 4x4 pixel block of a plane that is seen from the middle of a cube.

    `middle` is that of the first quad. The largest component of each becomes `scale`, as a program
    divides by it.
    """
    lanes = np.arange(16)
    x, y = (lanes >> 1 & 2) + (lanes & 1), (lanes >> 2 & 2) + (lanes >> 1 & 1)
    axis = np.array(middle) / np.linalg.norm(middle)
    right = np.cross(axis, (0.3, 0.5, -0.8))
    up = np.cross(axis, right)
    xyz = axis[:, None] + step * (np.outer(right, x - 0.5) + np.outer(up, y - 0.5))
    xyz = xyz * scale / np.abs(xyz).max(axis=0)
    return words(xyz[0]), words(xyz[1]), words(xyz[2])


def golden_words(
    config: TextureConfig, s: list[int], t: list[int], b: list[int] = ZEROS, unknowns=DEFAULT_UNKNOWNS
) -> list[int]:
    """What the definition says of the noise."""
    kind, descriptor = describe_texture(*config.parameters(), 4, unknowns=unknowns)
    return reference(kind, descriptor).sample(s, t, ZEROS, b)

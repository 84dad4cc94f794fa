"""The lines of memory that a request is recorded with: those that its definition reads."""

import numpy as np
import pytest
from tests.support.texture_reference import ReferenceSampler
from tests.v3d.tmu.sampling import BASE, ZEROS, coordinates, memory, quads, words

from vc4lab.memory.native import LINE_SHIFT, QUAD_SHIFT, Stream, StreamMemory, TouchedLines
from vc4lab.records.texture import MinFilter, TextureConfig, TextureType, Wrap
from vc4lab.simd import Function, Value, build, const, i32, i32x16, load, ptr, store
from vc4lab.v3d.tmu.sampler import sample
from vc4lab.v3d.tmu.texture_state import describe_texture

ALL_QUADS = 0x1111


def noted(
    config: TextureConfig,
    s: list[int],
    t: list[int],
    r: list[int] = ZEROS,
    *,
    shared: bool = False,
    taking: int = ALL_QUADS,
    room: int = 1 << 12,
) -> tuple[list[tuple[int, int]], list[int], int]:
    """(quad, line) in order, the result words, and what was lost."""
    kind, descriptor = describe_texture(*config.parameters(), 4)

    def entry(d: Value, ram: Value, source: Value, results: Value, stream: Value) -> None:
        lanes = [load(i32x16, source + 64 * n) for n in range(4)]
        lines = TouchedLines(stream, const(i32, taking))
        store(results, sample(kind, d, ram, *lanes, shared=shared, lines=lines))

    module = build("lines", {"f": Function((ptr,) * 5, None, entry)}, float_mode="qpu")
    stream = Stream()
    kept = StreamMemory(stream, room)
    source = np.array([s, t, r, ZEROS], np.uint32)
    results = np.zeros(16, np.uint32)
    places = (descriptor.address, memory().base, source.ctypes.data, results.ctypes.data)
    module["f"](*places, stream.address)
    found = np.frombuffer(kept.content, np.uint32)
    pairs = zip((found >> QUAD_SHIFT).tolist(), (found & 0xFFFFFF).tolist(), strict=True)
    return list(pairs), results.tolist(), int(stream.lost)


def read(config: TextureConfig, s: list[int], t: list[int], r: list[int]) -> set[int]:
    """The lines that the definition reads."""
    kind, descriptor = describe_texture(*config.parameters(), 4)
    lines: set[int] = set()

    def fetch(address: int, size: int) -> int:
        lines.add(address >> LINE_SHIFT)
        return int.from_bytes(memory().read(address, size), "little")

    ReferenceSampler(kind, descriptor, fetch).sample(s, t, r, ZEROS)
    return lines


def one_quad(values: list[int], quad: int) -> list[int]:
    """All quads are as one of them."""
    return values[4 * quad : 4 * quad + 4] * 4


CONFIGS = [
    TextureConfig(base=BASE, width=256, height=256, mag_filter=0, min_filter=MinFilter.LINEAR),
    TextureConfig(base=BASE, width=256, height=256, mag_filter=1, min_filter=MinFilter.NEAREST),
    TextureConfig(base=BASE, width=100, height=60, mag_filter=0, min_filter=MinFilter.NEAREST),
    TextureConfig(
        base=BASE, width=64, height=64, mag_filter=0, min_filter=MinFilter.LINEAR,
        wrap_s=Wrap.BORDER, wrap_t=Wrap.MIRROR,
    ),
    TextureConfig(
        base=BASE, type=TextureType.ETC1, width=128, height=128, mag_filter=0,
        min_filter=MinFilter.LINEAR, flip_y=True,
    ),
    TextureConfig(
        base=BASE, type=TextureType.ALPHA, width=512, height=512, levels=10, mag_filter=0,
        min_filter=MinFilter.LINEAR_MIP_NEAREST,
    ),
    TextureConfig(
        base=BASE, width=512, height=512, levels=10, mag_filter=0,
        min_filter=MinFilter.LINEAR_MIP_LINEAR,
    ),
]  # fmt: skip


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("config", CONFIGS, ids=lambda c: f"{c.type.name}-{c.min_filter!r}")
def test_the_lines_are_those_that_the_definition_reads(config: TextureConfig, shared: bool) -> None:
    for seed in range(6):
        s, t = quads(seed, (0.002, 0.05, 0.4)[seed % 3])
        if seed == 5:
            s, t = coordinates(1), coordinates(2)
        whole, _, _ = noted(config, s, t, shared=shared)
        for quad in range(4):
            alone = one_quad(s, quad), one_quad(t, quad)
            mine = [line for number, line in whole if number == quad]
            assert len(mine) == len(set(mine)) or config.min_filter >= MinFilter.NEAREST_MIP_LINEAR
            assert set(mine) == read(config, *alone, ZEROS), (seed, quad)


def test_what_is_sampled_is_the_same() -> None:
    from vc4lab.v3d.tmu.kernels import sample_words

    for config in CONFIGS:
        s, t = quads(3, 0.1)
        kind, descriptor = describe_texture(*config.parameters(), 4)
        arrays = [np.array(values, np.uint32) for values in (s, t, ZEROS, ZEROS)]
        plain = sample_words(kind, descriptor, memory(), *arrays).tolist()
        assert noted(config, s, t)[1] == plain


def test_only_quads_that_take_part() -> None:
    s, t = quads(1, 0.05)
    whole = noted(CONFIGS[0], s, t)[0]
    some = noted(CONFIGS[0], s, t, taking=0x1010)[0]
    assert some == [pair for pair in whole if pair[0] in (1, 3)]
    assert not noted(CONFIGS[0], s, t, taking=0)[0]


def test_a_border_is_not_read() -> None:
    outside = words(np.full(16, 5.0))
    assert not noted(CONFIGS[3], outside, words(np.full(16, 0.5)))[0]


def test_what_finds_no_room_is_counted() -> None:
    s, t = quads(1, 0.05)
    found, result, lost = noted(CONFIGS[0], s, t, room=64)
    assert (found, lost) == ([], 1)
    assert result == noted(CONFIGS[0], s, t)[1]

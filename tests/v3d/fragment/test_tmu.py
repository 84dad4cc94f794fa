"""The native sampler against its definition: types, layouts, filters, wraps, hostile words."""

import random
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from vc4lab.memory import GuestMemory
from vc4lab.records.texture import MinFilter, TextureConfig, TextureType, Wrap
from vc4lab.simd import (
    FP_INVALID,
    FP_OVERFLOW,
    Function,
    Target,
    build,
    call_with_flags,
    host_target,
    i32,
    i32x16,
    load,
    ptr,
    store,
    targets,
)
from vc4lab.v3d.fragment.texture_reference import ReferenceSampler
from vc4lab.v3d.fragment.texture_state import (
    LevelLayout,
    TextureDescriptor,
    TextureKind,
    describe_texture,
)
from vc4lab.v3d.fragment.tmu import sample
from vc4lab.v3d.fragment.tmu_kernels import lookup_words, sample_words
from vc4lab.v3d.unknowns import DEFAULT_UNKNOWNS

BASE = 0x400000
TARGETS = targets()
ZEROS = [0] * 16


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
    golden = reference(kind, descriptor).sample(s, t, r, b)
    arrays = [np.array(values, np.uint32) for values in (s, t, r, b)]
    for target in only or (host_target(),):
        got = sample_words(kind, descriptor, memory(), *arrays, target=target).tolist()
        assert got == golden, (kind, target)
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


SPECIAL = [
    0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0x80000000, 0x00000001, 0x807FFFFF, 0x7F7FFFFF,
    0xFF7FFFFF, 0x4B800001, 0xCB7FFFFF, 0x00800000, 0x80800000, 0x3F7FFFFF, 0x4F000000, 0xCF000001,
]  # fmt: skip


@pytest.mark.parametrize("texture_type", list(TextureType))
@pytest.mark.parametrize("size", [(16, 8), (64, 64), (200, 150)])
def test_types_and_layouts(texture_type: TextureType, size: tuple[int, int]) -> None:
    width, height = size
    for filter_code in (0, 1):
        config = TextureConfig(
            base=BASE, type=texture_type, width=width, height=height,
            mag_filter=filter_code, min_filter=filter_code, wrap_t=Wrap.CLAMP,
            etc_flip=width == 64,
        )  # fmt: skip
        only = tuple(TARGETS) if width == 64 else None
        check(config, coordinates(1), coordinates(2), only=only)


@pytest.mark.parametrize("wrap", [(s, t) for s in Wrap for t in Wrap])
def test_wrap_modes(wrap: tuple[Wrap, Wrap]) -> None:
    for filter_code, size in ((0, (800, 600)), (1, (800, 600)), (0, (1, 1)), (0, (128, 2048))):
        config = TextureConfig(
            base=BASE, width=size[0], height=size[1], mag_filter=filter_code,
            min_filter=filter_code, wrap_s=wrap[0], wrap_t=wrap[1],
        )  # fmt: skip
        border = [0x11223344] * 16
        check(config, coordinates(3), coordinates(4), border)
        check(config, SPECIAL, coordinates(4), border)
        check(config, coordinates(5), SPECIAL, border)


@pytest.mark.parametrize("texture_type", list(TextureType))
def test_border_colour_layouts(texture_type: TextureType) -> None:
    filter_code = 1 if texture_type is TextureType.S16 else 0
    config = TextureConfig(
        base=BASE, type=texture_type, width=64, height=64, mag_filter=filter_code,
        min_filter=filter_code, wrap_s=Wrap.BORDER, wrap_t=Wrap.BORDER,
    )  # fmt: skip
    check(config, coordinates(6), coordinates(7), [0xA1B2C3D4] * 16)


def quads(seed: int, spread: float) -> tuple[list[int], list[int]]:
    """Coordinates of four quads with a footprint of roughly ``spread`` of the texture."""
    rng = np.random.default_rng(seed)
    base = np.repeat(rng.uniform(0, 1, (2, 4)), 4, axis=1)
    steps = rng.uniform(-spread, spread, (2, 16)) * np.repeat([[0.01, 0.1, 1, 3]], 4, axis=1)
    both = (base + steps).astype(np.float32)
    return words(both[0]), words(both[1])


@pytest.mark.parametrize("min_filter", list(MinFilter))
@pytest.mark.parametrize("mag_filter", [0, 1])
def test_mip_modes(min_filter: MinFilter, mag_filter: int) -> None:
    for seed, (width, height, levels) in enumerate([(512, 512, 10), (800, 600, 4), (64, 8, 16)]):
        config = TextureConfig(
            base=BASE, width=width, height=height, levels=levels, mag_filter=mag_filter,
            min_filter=min_filter,
        )  # fmt: skip
        for spread in (0.002, 0.02, 0.3):
            s, t = quads(seed, spread)
            check(config, s, t)
            check(config, s, t, b=words(np.linspace(-3, 3, 16)))
        check(config, SPECIAL, coordinates(9), b=SPECIAL, only=tuple(TARGETS))


@pytest.mark.parametrize("texture_type", [TextureType.RGB565, TextureType.ALPHA, TextureType.ETC1])
def test_trilinear_of_other_types(texture_type: TextureType) -> None:
    config = TextureConfig(
        base=BASE, type=texture_type, width=128, height=256, levels=8, mag_filter=0,
        min_filter=MinFilter.LINEAR_MIP_LINEAR, wrap_s=Wrap.MIRROR,
    )  # fmt: skip
    s, t = quads(11, 0.1)
    check(config, s, t)


def screen_block(
    seed: int, size: tuple[int, int], texels_per_pixel: float
) -> tuple[list[int], list[int]]:
    """Affine coordinates of a rotated 4x4 pixel block, as a drawn triangle has them."""
    rng = np.random.default_rng(seed)
    lanes = np.arange(16)
    x, y = (lanes >> 1 & 2) + (lanes & 1), (lanes >> 2 & 2) + (lanes >> 1 & 1)
    turn = rng.uniform(0, 2 * np.pi)
    cos, sin = np.cos(turn) * texels_per_pixel, np.sin(turn) * texels_per_pixel
    u = rng.uniform(-0.5, 1.5) * size[0] + x * cos - y * sin
    v = rng.uniform(-0.5, 1.5) * size[1] + x * sin + y * cos
    return words(u / size[0]), words(v / size[1])


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.level)
@pytest.mark.parametrize(
    "texture_type", [TextureType.RGBA8888, TextureType.RGB565, TextureType.LUMINANCE]
)
def test_coherent_batches(texture_type: TextureType, target: Target) -> None:
    """Batches inside a few utiles, some crossing tile borders and the edges of the image."""
    for number, size in enumerate([(256, 256), (16, 16), (200, 150), (4, 2)]):
        wrap = Wrap(number)
        config = TextureConfig(
            base=BASE, type=texture_type, width=size[0], height=size[1], mag_filter=0,
            min_filter=0, wrap_s=wrap, wrap_t=wrap, flip_y=number == 1,
        )  # fmt: skip
        for seed in range(12):
            s, t = screen_block(seed, size, (0.01, 0.25, 1.0)[seed % 3])
            check(config, s, t, only=(target,))


def test_coherent_batches_of_levels_and_faces() -> None:
    for min_filter in (MinFilter.LINEAR_MIP_NEAREST, MinFilter.LINEAR_MIP_LINEAR):
        config = TextureConfig(
            base=BASE, width=128, height=128, levels=8, mag_filter=0, min_filter=min_filter
        )
        for seed in range(12):
            s, t = screen_block(seed, (128, 128), (0.5, 1.5, 6.0)[seed % 3])
            check(config, s, t)
    config = TextureConfig(
        base=BASE, width=64, height=64, mag_filter=0, min_filter=0, cube=True, cube_stride=0x8000
    )
    for seed in range(12):
        s, t = screen_block(seed, (64, 64), 0.5)
        check(config, s, t, words(np.full(16, 1.0 if seed & 1 else -1.0)))


def test_shared_functions_give_the_same_words() -> None:
    for wrap, min_filter in (
        (Wrap.BORDER, MinFilter.LINEAR),
        (Wrap.REPEAT, MinFilter.LINEAR_MIP_LINEAR),
    ):
        config = TextureConfig(
            base=BASE, width=64, height=64, levels=4, mag_filter=0, min_filter=min_filter,
            wrap_s=wrap,
        )  # fmt: skip
        kind, descriptor = describe_texture(*config.parameters(), 4)

        def entry(d, ram, source, results, kind=kind):
            s, t, r, b = (load(i32x16, source + 64 * n) for n in range(4))
            first = sample(kind, d, ram, s, t, r, b, shared=True)
            second = sample(kind, d, ram, s, t, r, b, shared=True)
            store(results, first)
            store(results + 64, second)

        module = build("shared", {"f": Function((ptr,) * 4, None, entry)})
        s, t = quads(20, 0.1)
        border, bias = [0x11223344] * 16, words(np.full(16, 0.5))
        source = np.array([s, t, border, bias], np.uint32)
        results = np.zeros(32, np.uint32)
        module["f"](descriptor.address, memory().base, source.ctypes.data, results.ctypes.data)
        golden = reference(kind, descriptor).sample(s, t, border, bias)
        assert results.tolist() == golden * 2


def test_explicit_level_reads_exactly_that_level() -> None:
    ram = GuestMemory()
    config = TextureConfig(
        base=BASE, width=64, height=64, levels=7, mag_filter=0, explicit_lod=True,
        min_filter=MinFilter.LINEAR_MIP_NEAREST,
    )  # fmt: skip
    kind, descriptor = describe_texture(*config.parameters(), 4)
    assert kind.explicit_lod
    assert kind.layout is LevelLayout.MIXED
    sizes = [64 * 64 * 4, 32 * 32 * 4, 16 * 16 * 4, 8 * 8 * 4, 64, 64, 64]
    address = BASE
    for level, size in enumerate(sizes):
        address -= size if level else 0
        ram.fill(address, size, 0x10 + level)
    half = np.full(16, 0.5, np.float32).view(np.uint32)
    zero = np.zeros(16, np.uint32)
    for level in range(7):
        b = np.full(16, level, np.float32).view(np.uint32)
        got = sample_words(kind, descriptor, ram, half, half, zero, b)
        assert set(got.tolist()) == {0x01010101 * (0x10 + level)}


def test_cube_maps() -> None:
    for filter_code, levels in ((0, 1), (1, 1), (MinFilter.LINEAR_MIP_LINEAR, 4)):
        config = TextureConfig(
            base=BASE, width=64, height=64, levels=levels, cube=True, cube_stride=0x8000,
            mag_filter=filter_code & 1, min_filter=filter_code,
        )  # fmt: skip
        rng = np.random.default_rng(12)
        xyz = rng.uniform(-1, 1, (3, 16))
        xyz /= np.abs(xyz).max(axis=0)
        check(config, *(words(axis) for axis in xyz))
        check(config, SPECIAL, SPECIAL[::-1], words(np.linspace(-1, 1, 16)))


def test_flipped_and_child_images() -> None:
    config = TextureConfig(
        base=BASE, width=256, height=128, mag_filter=0, min_filter=0, flip_y=True,
    )  # fmt: skip
    check(config, coordinates(13), coordinates(14))
    config = TextureConfig(
        base=BASE, width=256, height=128, mag_filter=0, min_filter=0, child=(100, 40, 50, 33),
    )  # fmt: skip
    assert check(config, coordinates(13), coordinates(14)).child


@pytest.mark.parametrize(
    "switch",
    [
        {"tmu_filter_rounding": "once"},
        {"tmu_lod_log2": "linear"},
        {"tmu_lod_lane": "lane"},
        {"tmu_lod_footprint": "sum"},
    ],
)
def test_switches(switch: dict[str, str]) -> None:
    unknowns = DEFAULT_UNKNOWNS.with_(**switch)
    changed = False
    for explicit in (False, True):
        config = TextureConfig(
            base=BASE, width=256, height=256, levels=8, mag_filter=0, explicit_lod=explicit,
            min_filter=MinFilter.LINEAR_MIP_LINEAR,
        )  # fmt: skip
        s, t = quads(15, 0.05)
        b = words(np.linspace(0, 4, 16))
        check(config, s, t, b=b, unknowns=unknowns)
        changed |= golden_words(config, s, t, b, unknowns) != golden_words(config, s, t, b)
    assert changed


def golden_words(
    config: TextureConfig,
    s: list[int],
    t: list[int],
    b: list[int] = ZEROS,
    unknowns=DEFAULT_UNKNOWNS,
) -> list[int]:
    """What the definition says of the noise."""
    kind, descriptor = describe_texture(*config.parameters(), 4, unknowns=unknowns)
    return reference(kind, descriptor).sample(s, t, ZEROS, b)


@pytest.mark.parametrize(
    ("name", "choice", "texture_type"),
    [
        ("tmu_yuyv_order", "uyv", TextureType.YUYV422R),
        ("tmu_yuyv_order", "vuy", TextureType.YUYV422R),
        ("tmu_alpha_colour", "alpha", TextureType.A4),
        ("tmu_alpha_colour", "alpha", TextureType.A1),
        ("tmu_bw1_utile", "64x8", TextureType.BW1),
        ("tmu_bw1_utile", "64x8", TextureType.A1),
    ],
)
def test_switches_of_single_types(name: str, choice: str, texture_type: TextureType) -> None:
    """Levels of all sizes, so that both tiled layouts come; every target."""
    unknowns = DEFAULT_UNKNOWNS.with_(**{name: choice})
    for size, levels in (((256, 256), 1), ((1024, 512), 1), ((40, 20), 1), ((1024, 512), 8)):
        if texture_type is TextureType.YUYV422R and levels > 1:
            continue
        config = TextureConfig(
            base=BASE, type=texture_type, width=size[0], height=size[1], levels=levels,
            mag_filter=0, min_filter=MinFilter.LINEAR_MIP_NEAREST if levels > 1 else 0,
        )  # fmt: skip
        only = tuple(TARGETS) if size == (256, 256) else None
        s, t = quads(32, 0.05)
        check(config, s, t, only=only, unknowns=unknowns)
        assert golden_words(config, s, t, unknowns=unknowns) != golden_words(config, s, t)


def test_a_bit_texture_with_wide_utiles() -> None:
    """The first 64 bits are the first row of the picture."""
    ram = GuestMemory()
    ram.write(BASE, bytes([0xFF] * 8 + [0] * 56))
    config = TextureConfig(
        base=BASE, type=TextureType.BW1, width=64, height=16, mag_filter=1, min_filter=1
    )
    s = (np.arange(16, dtype=np.float32) * 4 + 2) / 64
    t = np.full(16, 0.5 / 16, np.float32)
    zero = np.zeros(16, np.uint32)
    for choice, white in (("32x16", 8), ("64x8", 16)):
        unknowns = DEFAULT_UNKNOWNS.with_(tmu_bw1_utile=choice)
        kind, descriptor = describe_texture(*config.parameters(), unknowns=unknowns)
        found = sample_words(
            kind, descriptor, ram, s.view(np.uint32), t.view(np.uint32), zero, zero
        )
        assert (found == 0xFFFFFFFF).sum() == white, choice


@pytest.mark.parametrize("wrap", list(Wrap))
def test_infinite_coordinates_can_be_far_away(wrap: Wrap) -> None:
    unknowns = DEFAULT_UNKNOWNS.with_(tmu_not_finite="far")
    for levels, min_filter in ((1, MinFilter.NEAREST), (6, MinFilter.LINEAR_MIP_LINEAR)):
        config = TextureConfig(
            base=BASE, width=64, height=64, levels=levels, mag_filter=1, min_filter=min_filter,
            wrap_s=wrap, wrap_t=wrap,
        )  # fmt: skip
        only = tuple(TARGETS) if wrap is Wrap.CLAMP else None
        check(config, SPECIAL, SPECIAL[::-1], b=SPECIAL, only=only, unknowns=unknowns)
        check(config, SPECIAL, coordinates(40), b=ZEROS, only=only, unknowns=unknowns)
    cube = replace(config, cube=True, cube_stride=0x8000)
    check(cube, SPECIAL, SPECIAL[::-1], coordinates(41), unknowns=unknowns)
    if wrap is Wrap.CLAMP:
        edge = replace(config, levels=1, min_filter=MinFilter.NEAREST)
        infinity, middle, one = [0x7F800000] * 16, words([0.5] * 16), words([1.0] * 16)
        far = golden_words(edge, infinity, middle, unknowns=unknowns)
        assert far == golden_words(edge, one, middle)
        assert golden_words(edge, infinity, middle) == golden_words(edge, ZEROS, middle)


def test_where_one_level_gives_way_to_the_next() -> None:
    """Explicit levels around every half, in the steps of 1/256 that there are."""
    config = TextureConfig(
        base=BASE, width=64, height=64, levels=7, mag_filter=1, explicit_lod=True,
        min_filter=MinFilter.NEAREST_MIP_NEAREST,
    )  # fmt: skip
    s, t = coordinates(30), coordinates(31)
    for level in range(7):
        for step in (-1, 126, 127, 128, 129):
            check(config, s, t, b=words([level + step / 256] * 16))
    both = replace(config, min_filter=MinFilter.LINEAR)  # magnified: nearest, up to 0
    for step in (-1, 0, 1):
        check(both, s, t, b=words([step / 256] * 16))


def test_short_samples_can_sit_high() -> None:
    unknowns = DEFAULT_UNKNOWNS.with_(tmu_short_position="high")
    for texture_type in (TextureType.S8, TextureType.S16, TextureType.S16F):
        config = TextureConfig(base=BASE, type=texture_type, width=32, height=32)
        s, t = coordinates(16), coordinates(17)
        check(config, s, t, unknowns=unknowns)
        low = golden_words(config, s, t)
        assert golden_words(config, s, t, unknowns=unknowns) == [word << 16 for word in low]


@pytest.mark.parametrize("texture_type", [TextureType.S16F, TextureType.RGBA64])
@pytest.mark.parametrize("choice", ["round", "truncate", "point"])
def test_half_floats_are_filtered(texture_type: TextureType, choice: str) -> None:
    """Noise holds every kind of half: denormal, infinite, NaN; no float flag is raised."""
    unknowns = DEFAULT_UNKNOWNS.with_(tmu_half_filter=choice)
    config = TextureConfig(
        base=BASE, type=texture_type, width=256, height=128, levels=7, mag_filter=0,
        min_filter=MinFilter.LINEAR_MIP_LINEAR, wrap_s=Wrap.BORDER,
    )  # fmt: skip
    only = tuple(TARGETS) if choice == "round" else None
    for seed, spread in ((21, 0.05), (22, 0.002), (23, 2.0)):
        s, t = quads(seed, spread)
        kind = check(config, s, t, [0x3C00C001] * 16, only=only, unknowns=unknowns)
        assert kind.min_linear == (choice != "point")
        default = golden_words(config, s, t)
        assert (golden_words(config, s, t, unknowns=unknowns) != default) == (choice != "round")
    nearest = TextureConfig(
        base=BASE, type=texture_type, width=256, height=128, mag_filter=1, min_filter=0
    )
    check(nearest, *quads(24, 0.01), unknowns=unknowns)


def test_half_way_between_two_halves() -> None:
    """1.0 and 2.0, columns of an S16F texture, at known weights."""
    ram = GuestMemory()
    ram.write(BASE, np.tile(np.array([1.0, 2.0], np.float16), 32).tobytes())
    config = TextureConfig(
        base=BASE, type=TextureType.S16F, width=2, height=1, mag_filter=0, min_filter=0,
        wrap_s=Wrap.CLAMP, wrap_t=Wrap.CLAMP,
    )  # fmt: skip
    kind, descriptor = describe_texture(*config.parameters())
    positions = np.array([0.0, 0.25, 0.3125, 0.375, 0.5, 0.625, 0.75, 1.0] * 2, np.float32)
    zero = np.zeros(16, np.uint32)
    found = sample_words(kind, descriptor, ram, positions.view(np.uint32), zero, zero, zero)
    halves = found.astype(np.uint16).view(np.float16)[:8].tolist()
    assert halves == [1.0, 1.0, 1.125, 1.25, 1.5, 1.75, 2.0, 2.0]


def test_constant_picture_stays_constant() -> None:
    ram = GuestMemory()
    ram.fill(BASE - 0x100000, 0x200000, 0xFF)
    config = TextureConfig(
        base=BASE, width=64, height=64, levels=7, mag_filter=0,
        min_filter=MinFilter.LINEAR_MIP_LINEAR,
    )  # fmt: skip
    kind, descriptor = describe_texture(*config.parameters())
    s, t = (np.array(c, np.uint32) for c in quads(18, 0.1))
    zero = np.zeros(16, np.uint32)
    assert set(sample_words(kind, descriptor, ram, s, t, zero, zero).tolist()) == {0xFFFFFFFF}


def test_direct_lookup() -> None:
    addresses = np.array([BASE + 4 * n + (n & 3) for n in range(15)] + [BASE | 0xC0000000])
    got = lookup_words(memory(), addresses.astype(np.uint32))
    golden = [memory().u32(int(a) & 0x3FFFFFFC) for a in addresses]
    assert got.tolist() == golden


def test_hostile_parameter_words_describe_and_stay_in_memory() -> None:
    """Any words: a kind, a descriptor, and samples equal to the definition's (few kinds built)."""
    rng = random.Random(19)
    for _ in range(12):
        parameters = tuple(rng.getrandbits(32) for _ in range(4))
        s = [rng.getrandbits(32) for _ in range(16)]
        t = [rng.getrandbits(32) for _ in range(16)]
        check(parameters, s, t, s, t)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.level)
@pytest.mark.parametrize("wrap", list(Wrap))
def test_no_coordinate_raises_sticky_float_flags(wrap: Wrap, target: Target) -> None:
    """The QPU's fast path takes them for a sign of infinities in the shader's own arithmetic."""
    config = TextureConfig(
        base=BASE, width=64, height=64, levels=4, mag_filter=0, wrap_s=wrap, wrap_t=wrap,
        min_filter=MinFilter.NEAREST_MIP_LINEAR, cube=wrap is Wrap.BORDER, cube_stride=0x8000,
    )  # fmt: skip
    kind, descriptor = describe_texture(*config.parameters(), 4)

    def lookup(d, memory, words, results):
        s, t, r, b = (load(i32x16, words + 64 * n) for n in range(4))
        store(results, sample(kind, d, memory, s, t, r, b))

    inner = Function((ptr, ptr, ptr, ptr), None, lookup, name="lookup")

    def entry(d, memory, words, results):
        return call_with_flags(inner, d, memory, words, results)[1]

    module = build("flags", {"f": Function((ptr,) * 4, i32, entry)}, target=target)
    results = np.zeros(16, np.uint32)
    for turn in range(4):
        values = [np.roll(np.array(SPECIAL, np.uint32), n * turn) for n in range(4)]
        source = np.concatenate(values)
        flags = module["f"](
            descriptor.address, memory().base, source.ctypes.data, results.ctypes.data
        )
        assert flags & (FP_INVALID | FP_OVERFLOW) == 0

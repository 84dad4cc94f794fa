"""The native sampler against its definition: types, layouts, filters, wraps, hostile words."""

import random
from dataclasses import replace

import numpy as np
import pytest
from tests.v3d.tmu.sampling import BASE, SPECIAL, TARGETS, check, coordinates, memory, quads, reference, words

from vc4lab.memory import GuestMemory
from vc4lab.records.texture import MinFilter, TextureConfig, TextureType, Wrap
from vc4lab.simd import (
    FP_INVALID,
    FP_OVERFLOW,
    Function,
    Target,
    build,
    call_with_flags,
    i32,
    i32x16,
    load,
    ptr,
    store,
)
from vc4lab.v3d.tmu.kernels import lookup_words, sample_words
from vc4lab.v3d.tmu.sampler import sample
from vc4lab.v3d.tmu.texture_state import LevelLayout, describe_texture


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


@pytest.mark.parametrize(
    "texture_type",
    [
        TextureType.RGBA8888, TextureType.RGBX8888, TextureType.RGBA4444, TextureType.RGBA5551,
        TextureType.RGB565,
    ],
)  # fmt: skip
def test_border_colours_with_four_channels_are_the_result_word(texture_type: TextureType) -> None:
    """Far outside there is nothing else, filtered or not: red in byte 0, alpha in byte 3."""
    for filter_code in (0, 1):
        config = TextureConfig(
            base=BASE, type=texture_type, width=64, height=64, mag_filter=filter_code,
            min_filter=filter_code, wrap_s=Wrap.BORDER, wrap_t=Wrap.BORDER,
        )  # fmt: skip
        kind, descriptor = describe_texture(*config.parameters(), 2)
        far, border = np.array(words([1.9] * 16), np.uint32), np.full(16, 0xA1B2C3D4, np.uint32)
        found = sample_words(kind, descriptor, memory(), far, far, border, np.zeros_like(far))
        assert set(found.tolist()) == {0xA1B2C3D4}


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


def screen_block(seed: int, size: tuple[int, int], texels_per_pixel: float) -> tuple[list[int], list[int]]:
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
@pytest.mark.parametrize("texture_type", [TextureType.RGBA8888, TextureType.RGB565, TextureType.LUMINANCE])
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


@pytest.mark.parametrize("texels_per_pixel", [0.5, 1.4, 2.0, 2.6, 3.5])
@pytest.mark.parametrize("texture_type", [TextureType.RGBA8888, TextureType.RGBA4444, TextureType.ALPHA])
def test_batches_over_more_utiles(texture_type: TextureType, texels_per_pixel: float) -> None:
    """Minified without mip levels: 2x2, 3x3 and more utiles, at every edge of the image."""
    for number, size in enumerate([(256, 256), (64, 32), (200, 150), (24, 40)]):
        for nearest in (0, 1):
            config = TextureConfig(
                base=BASE, type=texture_type, width=size[0], height=size[1], mag_filter=nearest,
                min_filter=nearest, wrap_s=Wrap(number), wrap_t=Wrap(3 - number),
            )  # fmt: skip
            for seed in range(6):
                s, t = screen_block(seed, size, texels_per_pixel)
                check(config, s, t)


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
    for wrap, min_filter in ((Wrap.BORDER, MinFilter.LINEAR), (Wrap.REPEAT, MinFilter.LINEAR_MIP_LINEAR)):
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
        wanted = reference(kind, descriptor).sample(s, t, border, bias)
        assert results.tolist() == wanted * 2


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


def test_flipped_and_child_images() -> None:
    config = TextureConfig(
        base=BASE, width=256, height=128, mag_filter=0, min_filter=0, flip_y=True,
    )  # fmt: skip
    check(config, coordinates(13), coordinates(14))
    config = TextureConfig(
        base=BASE, width=256, height=128, mag_filter=0, min_filter=0, child=(100, 40, 50, 33),
    )  # fmt: skip
    assert check(config, coordinates(13), coordinates(14)).child


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
    reference = [memory().u32(int(a) & 0x3FFFFFFC) for a in addresses]
    assert got.tolist() == reference


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
@pytest.mark.parametrize("mip", [True, False])
def test_no_coordinate_raises_sticky_float_flags(wrap: Wrap, mip: bool, target: Target) -> None:
    """The QPU's fast path takes them for a sign of infinities in the shader's own arithmetic."""
    config = TextureConfig(
        base=BASE, width=64, height=64, levels=4 if mip else 1, mag_filter=0, wrap_s=wrap,
        wrap_t=wrap, min_filter=MinFilter.NEAREST_MIP_LINEAR if mip else MinFilter.LINEAR,
        cube=mip and wrap is Wrap.BORDER, cube_stride=0x8000,
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
        flags = module["f"](descriptor.address, memory().base, source.ctypes.data, results.ctypes.data)
        assert flags & (FP_INVALID | FP_OVERFLOW) == 0

"""The other choices of what is not documented of textures: native sampler and definition agree."""

from dataclasses import replace

import numpy as np
import pytest
from tests.support.texture_layouts import tile
from tests.v3d.tmu.sampling import (
    BASE,
    SPECIAL,
    TARGETS,
    ZEROS,
    check,
    coordinates,
    cube_block,
    golden_words,
    quads,
    reference,
    words,
)

from vc4lab.images.tiling import Tiling
from vc4lab.memory import GuestMemory
from vc4lab.records.texture import MagFilter, MinFilter, TextureConfig, TextureType, Wrap
from vc4lab.v3d.tmu.kernels import sample_words
from vc4lab.v3d.tmu.texture_state import describe_texture
from vc4lab.v3d.unknowns import DEFAULT_UNKNOWNS


@pytest.mark.parametrize(
    "switch",
    [
        {"tmu_filter_rounding": "once"},
        {"tmu_filter_rounding": "truncate"},
        {"tmu_filter_weights": "7"},
        {"tmu_filter_weights": "7", "tmu_filter_rounding": "once"},
        {"tmu_coordinate_bits": "12"},
        {"tmu_lod_log2": "linear"},
        {"tmu_lod_lane": "quad"},
        {"tmu_bias_lane": "quad"},
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


@pytest.mark.parametrize("turned", [False, True])
def test_steps_count_up_to_the_size_of_the_texture(turned: bool) -> None:
    """S steps by 34.3 texels of 32: level 5 alone, as on a Raspberry Pi 3; T can go further.

    turned: the other way round.
    """
    ram = GuestMemory()
    width, height = (64, 32) if turned else (32, 64)
    config = TextureConfig(
        base=BASE, width=width, height=height, levels=7, mag_filter=1,
        min_filter=MinFilter.NEAREST_MIP_LINEAR,
    )  # fmt: skip
    _, descriptor = describe_texture(*config.parameters())
    ends = [BASE + 32 * 64 * 4, *descriptor.base]
    for level in range(7):
        start = descriptor.base[level]
        ram.write(start, bytes([42 * level] * (ends[level] - start)))
    zero = np.zeros(16, np.uint32)
    lane = np.arange(16)
    column, row = lane % 2, lane // 2 % 2
    for step_s, step_t, limited, free in (
        (34.3 / 32, 14 / 64, 210, 214),
        (54.5 / 32, 56.6 / 64, 245, 245),  # T is the larger one
        (0.5, 0.9, 246, 246),
        (34.3 / 32, 128.2 / 64, 252, 252),
    ):
        s = (column * np.float32(step_s) - 3).astype(np.float32)
        t = (row * np.float32(step_t) + 2).astype(np.float32)
        if turned:
            s, t = t, s
        for choice, value in (("size", limited), ("any", free)):
            unknowns = DEFAULT_UNKNOWNS.with_(tmu_lod_step=choice)
            kind, descriptor = describe_texture(*config.parameters(), unknowns=unknowns)
            found = sample_words(kind, descriptor, ram, s.view(np.uint32), t.view(np.uint32), zero, zero)
            assert set(found.view(np.uint8)) == {value}, (step_s, step_t, choice)
            check(config, words(s), words(t), unknowns=unknowns)


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
    config = TextureConfig(base=BASE, type=TextureType.BW1, width=64, height=16, mag_filter=1, min_filter=1)
    s = (np.arange(16, dtype=np.float32) * 4 + 2) / 64
    t = np.full(16, 0.5 / 16, np.float32)
    zero = np.zeros(16, np.uint32)
    for choice, white in (("32x16", 8), ("64x8", 16)):
        unknowns = DEFAULT_UNKNOWNS.with_(tmu_bw1_utile=choice)
        kind, descriptor = describe_texture(*config.parameters(), unknowns=unknowns)
        found = sample_words(kind, descriptor, ram, s.view(np.uint32), t.view(np.uint32), zero, zero)
        assert (found == 0xFFFFFFFF).sum() == white, choice


@pytest.mark.parametrize("wrap", list(Wrap))
def test_levels_that_are_no_power_of_two(wrap: Wrap) -> None:
    """Level 1 of 40x24 is 20x12, at the corner of a room of 32x16."""
    room = np.zeros((16, 32), np.uint32)
    room[:12, :20] = np.arange(1, 241).reshape(12, 20)
    config = TextureConfig(
        base=BASE, width=40, height=24, levels=2, mag_filter=1,
        min_filter=MinFilter.NEAREST_MIP_NEAREST, wrap_s=wrap, wrap_t=wrap, explicit_lod=True,
    )  # fmt: skip
    ram = GuestMemory()
    ram.write(BASE - room.nbytes, bytes(tile(room, 32, Tiling.LT)))
    columns = np.arange(16)
    s = ((columns + 0.5) / 20).astype(np.float32)
    t = np.full(16, 11.5 / 12, np.float32)
    one = np.full(16, 0x3F800000, np.uint32)
    zero = np.zeros(16, np.uint32)
    for choice, column, row in (("halved", columns, 11), ("room", (columns + 0.5) * 32 // 20, 15)):
        unknowns = DEFAULT_UNKNOWNS.with_(tmu_level_size=choice)
        kind, descriptor = describe_texture(*config.parameters(), unknowns=unknowns)
        found = sample_words(kind, descriptor, ram, s.view(np.uint32), t.view(np.uint32), zero, one)
        assert np.array_equal(found, room[row, column.astype(int)]), choice
        check(config, words(s), words(t), b=words(np.ones(16)), unknowns=unknowns)


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


def test_the_border_colour_of_4444_reversed() -> None:
    unknowns = DEFAULT_UNKNOWNS.with_(tmu_border_4444="reversed")
    for texture_type, due in ((TextureType.RGBA4444, 0xD4C3B2A1), (TextureType.RGBA5551, 0xA1B2C3D4)):
        config = TextureConfig(
            base=BASE, type=texture_type, width=64, height=64, mag_filter=0, min_filter=0,
            wrap_s=Wrap.BORDER, wrap_t=Wrap.BORDER,
        )  # fmt: skip
        border = [0xA1B2C3D4] * 16
        check(config, coordinates(6), coordinates(7), border, unknowns=unknowns)
        kind, descriptor = describe_texture(*config.parameters(), 2, unknowns=unknowns)
        far = words([1.9] * 16)
        assert reference(kind, descriptor).sample(far, far, border, ZEROS) == [due] * 16


def test_cube_maps_can_take_each_lanes_own_face() -> None:
    unknowns = DEFAULT_UNKNOWNS.with_(tmu_cube_lod="each_face")
    config = TextureConfig(
        base=BASE, width=64, height=64, levels=7, cube=True, cube_stride=0x8000, mag_filter=0,
        min_filter=MinFilter.LINEAR_MIP_LINEAR,
    )  # fmt: skip
    s, t, r = cube_block((1.0, 1.0, 0.2), 0.05)
    check(config, s, t, r, unknowns=unknowns)
    words_of = [
        reference(*describe_texture(*config.parameters(), 4, unknowns=choice)).sample(s, t, r, ZEROS)
        for choice in (unknowns, DEFAULT_UNKNOWNS)
    ]
    assert words_of[0] != words_of[1]


@pytest.mark.parametrize("min_filter", [MinFilter.NEAREST_MIP_NEAREST, MinFilter.NEAREST_MIP_LINEAR])
def test_small_levels_of_detail_are_magnified(min_filter: MinFilter) -> None:
    """MAGFILT linear, MINFILT nearest: up to a LOD of 0.5 the four texels of level 0 blend."""
    s, t = coordinates(21), coordinates(22)

    def sampled(lod: float, mag: MagFilter, choice: str, smallest: MinFilter) -> list[int]:
        unknowns = DEFAULT_UNKNOWNS.with_(tmu_magnified_below=choice)
        config = TextureConfig(
            base=BASE, width=64, height=64, levels=7, mag_filter=mag, min_filter=smallest,
            explicit_lod=True,
        )  # fmt: skip
        b = words([lod] * 16)
        check(config, s, t, b=b, unknowns=unknowns)
        return golden_words(config, s, t, b, unknowns)

    linear, nearest = MagFilter.LINEAR, MagFilter.NEAREST
    blended = sampled(-1.0, linear, "gl", min_filter)
    assert sampled(0.5, linear, "gl", min_filter) == blended
    assert sampled(0.51, linear, "gl", min_filter) != blended
    assert sampled(0.2, linear, "zero", MinFilter.NEAREST_MIP_NEAREST) == sampled(
        -1.0, nearest, "gl", min_filter
    )
    # The other minifications begin right above 0.
    few = MinFilter.LINEAR_MIP_LINEAR
    assert sampled(0.2, linear, "gl", few) == sampled(0.2, linear, "zero", few) != blended


def test_cube_maps_repeat_inside_their_faces() -> None:
    """A linear sample at the edge of a face blends with the opposite edge."""
    direction = (1.0, -0.999, 0.3)
    s, t, r = (words([part] * 16) for part in direction)
    found: dict[tuple[Wrap, str], list[int]] = {}
    for wrap in Wrap:
        for choice in ("programmed", "clamp"):
            unknowns = DEFAULT_UNKNOWNS.with_(tmu_cube_wrap=choice)
            config = TextureConfig(
                base=BASE, width=16, height=16, cube=True, cube_stride=0x8000,
                mag_filter=MagFilter.LINEAR, min_filter=MinFilter.LINEAR, wrap_s=wrap, wrap_t=wrap,
            )  # fmt: skip
            check(config, s, t, r, unknowns=unknowns)
            kind, descriptor = describe_texture(*config.parameters(), 4, unknowns=unknowns)
            found[wrap, choice] = reference(kind, descriptor).sample(s, t, r, ZEROS)
    clamped = found[Wrap.CLAMP, "clamp"]
    assert found[Wrap.REPEAT, "programmed"] != clamped
    assert all(found[wrap, "clamp"] == clamped for wrap in Wrap)
    assert found[Wrap.BORDER, "programmed"] == found[Wrap.CLAMP, "programmed"] == clamped


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
    nearest = TextureConfig(base=BASE, type=texture_type, width=256, height=128, mag_filter=1, min_filter=0)
    check(nearest, *quads(24, 0.01), unknowns=unknowns)

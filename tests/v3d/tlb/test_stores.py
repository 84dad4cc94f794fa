"""Tile stores and loads against the golden image layouts: every format, partial tiles."""

from itertools import product

import numpy as np
import pytest
from tests.support.frame_work import FrameWork
from tests.support.texture_layouts import tile as tiled

from vc4lab.images.tiling import Tiling, detile, image_bytes
from vc4lab.memory import GuestMemory
from vc4lab.simd import targets
from vc4lab.v3d.state.frame_mode import COLOUR, MASK, PART_COLOUR, PART_ZS, Z_ONLY, ZS, Surface, TileLayout
from vc4lab.v3d.tiles.threads import TileThreads
from vc4lab.v3d.tlb.stores import BAYER
from vc4lab.v3d.unknowns import DEFAULT_UNKNOWNS

SOURCE, TARGET = 0x100000, 0x200000
SIZES = [(64, 64), (100, 70), (3, 5), (130, 66)]


def pattern(width, height, bits=32):
    rng = np.random.default_rng(width * height)
    return rng.integers(0, 1 << bits, (height, width), dtype=np.uint64)


def put(memory, surface, image):
    stride = surface.pitch if surface.tiling == 0 else None
    data = tiled(image.astype(f"<u{surface.bits // 8}"), surface.bits, Tiling(surface.tiling),
                 stride)  # fmt: skip
    memory.write(surface.address, data)


def get(memory, surface):
    size = image_bytes(surface.width, surface.height, surface.bits, Tiling(surface.tiling))
    stride = surface.pitch if surface.tiling == 0 else None
    size = max(size, surface.pitch * surface.height if stride else 0)
    return detile(memory.read(surface.address, size), surface.width, surface.height, surface.bits,
                  Tiling(surface.tiling), stride)  # fmt: skip


def copy(source, target, memory, unknowns=DEFAULT_UNKNOWNS, machine=None):
    """Loads every tile of `source` and stores it to `target`."""
    work = FrameWork(memory, target.width, target.height)
    for row, column in product(range(-(-target.height // 64)), range(-(-target.width // 64))):
        work.begin_chain()
        work.tile(column, row)
        work.load(source)
        work.store(target)
    tile_threads = TileThreads(1, unknowns, machine)
    tile_threads.run(work.native())
    tile_threads.close()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("source", "target"), list(product(range(3), range(3))))
def test_words_survive_every_layout(size, source, target):
    memory = GuestMemory()
    image = pattern(*size)
    a, b = Surface(SOURCE, *size, source), Surface(TARGET, *size, target)
    put(memory, a, image)
    memory.fill(TARGET - 64, 0x20000, 0xEE)
    copy(a, b, memory)
    assert (get(memory, b) == image).all()
    # Nothing outside the picture: as many foreign bytes as pixels.
    changed = np.frombuffer(memory.read(TARGET - 64, 0x20000), "<u4") != 0xEEEEEEEE
    assert changed.sum() <= size[0] * size[1]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("tiling", range(3))
def test_565_round_trip(size, tiling):
    memory = GuestMemory()
    image = pattern(*size, 16)
    a, b = Surface(SOURCE, *size, tiling, 2), Surface(TARGET, *size, tiling, 2)
    put(memory, a, image)
    copy(a, b, memory)
    assert (get(memory, b) == image).all()


def five(x):
    raised = x + (x >= 128)
    return (raised + 3 - (raised >> 5)) >> 3


def six(x):
    return (x + (x <= 84) - (x >= 171).astype(int)) >> 2


@pytest.mark.parametrize("rounding", ["round", "truncate"])
def test_undithered_565(rounding):
    memory = GuestMemory()
    ramp = np.arange(256, dtype=np.uint32).reshape(4, 64)
    image = ramp | (255 - ramp) << 8 | ramp << 16
    a, b = Surface(SOURCE, 64, 4), Surface(TARGET, 64, 4, 0, 2)
    put(memory, a, image)
    copy(a, b, memory, DEFAULT_UNKNOWNS.with_(rounding_565=rounding))
    x, y = ramp.astype(int), 255 - ramp.astype(int)
    red, green = (five(x), six(y)) if rounding == "round" else (x >> 3, y >> 2)
    assert (get(memory, b) == (red << 11 | green << 5 | red)).all()


def test_565_becomes_whole_colours():
    """Loaded and stored as 32 bits: expanded as texels are, and opaque."""
    memory = GuestMemory()
    halves = (np.arange(4096, dtype=np.uint32) * 16 + np.arange(4096) % 16).reshape(64, 64)
    a, b = Surface(SOURCE, 64, 64, 0, 2), Surface(TARGET, 64, 64)
    put(memory, a, halves)
    copy(a, b, memory)
    red, green, blue = halves >> 11, halves >> 5 & 63, halves & 31
    words = red * 33 >> 2 | (green * 65 >> 4) << 8 | (blue * 33 >> 2) << 16 | 0xFF000000
    assert (get(memory, b) == words).all()


@pytest.mark.parametrize("tiling", range(3))
def test_dithered_565(tiling):
    memory = GuestMemory()
    image = np.full((8, 64), 0x00808080, np.uint32) + np.arange(64, dtype=np.uint32) * 0x010101
    a, b = Surface(SOURCE, 64, 8), Surface(TARGET, 64, 8, tiling, 1)
    put(memory, a, image)
    copy(a, b, memory)
    y, x = np.mgrid[0:8, 0:64]
    step = np.array(BAYER)[(y & 3) * 4 + (x & 3)]
    value = (image & 255).astype(int)
    red, green = (np.minimum(value + (step >> 1), 255) >> 3, np.minimum(value + (step >> 2), 255) >> 2)
    assert (get(memory, b) == (red << 11 | green << 5 | red)).all()


def test_every_target_stores_the_same():
    memory = GuestMemory()
    image = pattern(100, 70)
    source = Surface(SOURCE, 100, 70, 1)
    put(memory, source, image)
    pictures = []
    for machine in targets():
        for tiling, format_ in product(range(3), range(3)):
            target = Surface(TARGET, 100, 70, tiling, format_)
            memory.fill(TARGET, 0x10000)
            copy(source, target, memory, machine=machine)
            pictures.append(memory.read(TARGET, 0x10000))
    count = len(pictures) // len(targets())
    for k, picture in enumerate(pictures):
        assert picture == pictures[k % count]


@pytest.mark.parametrize(("choice", "bare"), [("zero", 0xABCDEF00), ("stored", 0xABCDEF12)])
def test_zs_z_only_and_clear(choice, bare):
    memory = GuestMemory()
    work = FrameWork(memory, 64, 64)
    work.tile(0, 0)
    work.clear(0x11223344, 0xABCDEF12)
    for number, buffer in enumerate((COLOUR, ZS, Z_ONLY)):
        work.store(Surface(TARGET + 0x10000 * number, 64, 64, buffer=buffer))
    TileThreads(1, DEFAULT_UNKNOWNS.with_(z_only_stencil=choice)).run(work.native())
    for number, word in enumerate((0x11223344, 0xABCDEF12, bare)):
        assert set(np.unique(memory.array(TARGET + 0x10000 * number, 4096, "<u4"))) == {word}


def test_full_resolution_dump_returns_what_it_saved():
    memory = GuestMemory()
    image = pattern(64, 64)
    put(memory, Surface(SOURCE, 64, 64), image)
    work = FrameWork(memory, 64, 64)
    work.tile(0, 0)
    work.load(Surface(SOURCE, 64, 64))
    work.clear(None, 0x77777700)
    work.store_full(SOURCE + 0x10000, PART_COLOUR)
    work.store_full(SOURCE + 0x20000, PART_ZS)
    work.store_full(SOURCE + 0x30000)
    work.clear(0, 0)
    work.load_full(SOURCE + 0x10000, PART_COLOUR)
    work.load_full(SOURCE + 0x20000, PART_ZS)
    work.store(Surface(TARGET, 64, 64))
    work.store(Surface(TARGET + 0x10000, 64, 64, buffer=ZS))
    TileThreads(1).run(work.native())
    assert (memory.array(TARGET, 4096, "<u4").reshape(64, 64) == image).all()
    assert (memory.array(TARGET + 0x10000, 4096, "<u4") == 0x77777700).all()
    both = memory.read(SOURCE + 0x30000, 0x8000)
    assert both == memory.read(SOURCE + 0x10000, 0x4000) + memory.read(SOURCE + 0x20000, 0x4000)
    quad = memory.array(SOURCE + 0x10000, 8, "<u4")
    assert list(quad) == [*image[0, :2], *image[1, :2], *image[0, 2:4], *image[1, 2:4]]


def test_surfaces_at_the_end_of_memory_and_odd_addresses_are_harmless():
    memory = GuestMemory()
    for address, (tiling, format_) in product((0x3FFFFFF0, 0xFFFFFFF0, 0x12345), product(range(3), range(3))):
        work = FrameWork(memory, 2048, 2048)
        work.tile(255, 255)
        work.tile(31, 31)
        work.clear(1, 2)
        work.store(Surface(address, 2048, 2048, tiling, format_))
        work.load(Surface(address, 2048, 2048, tiling, format_))
        TileThreads(1).run(work.native())


def test_tiles_outside_the_frame_store_nothing():
    memory = GuestMemory()
    work = FrameWork(memory, 40, 40)
    work.tile(1, 0)
    work.clear(0xFFFFFFFF, 0)
    work.store(Surface(TARGET, 40, 40))
    TileThreads(1).run(work.native())
    assert not memory.array(TARGET, 8192, "<u4").any()


@pytest.mark.parametrize("tiling", range(3))
@pytest.mark.parametrize("size", SIZES)
def test_vg_masks_are_bytes(size, tiling):
    memory = GuestMemory()
    image = pattern(*size, 8)
    a, b = Surface(SOURCE, *size, 0, buffer=MASK), Surface(TARGET, *size, tiling, buffer=MASK)
    put(memory, a, image)
    memory.fill(TARGET - 64, 0x20000, 0xEE)
    copy(a, b, memory)
    assert (get(memory, b) == image).all()
    copy(b, Surface(a.address + 0x40000, *size, 0, buffer=MASK), memory)
    assert (get(memory, Surface(a.address + 0x40000, *size, 0, buffer=MASK)) == image).all()


@pytest.mark.parametrize("multisample", [False, True])
@pytest.mark.parametrize(("source", "target"), list(product(range(3), range(3))))
def test_64_bit_pixels_survive_every_layout(source, target, multisample):
    layout = TileLayout(multisample, wide=True)
    width, height = (32, 16) if multisample else (64, 32)
    for size in ((100, 70), (3, 5), (129, 33)):
        memory = GuestMemory()
        image = pattern(*size, 64)
        a = Surface(SOURCE, *size, source, wide=True)
        b = Surface(TARGET, *size, target, wide=True)
        put(memory, a, image)
        memory.fill(TARGET - 64, 0x20000, 0xEE)
        work = FrameWork(memory, *size, tile_width=width, tile_height=height, layout=layout)
        for row, column in product(range(-(-size[1] // height)), range(-(-size[0] // width))):
            work.begin_chain()
            work.tile(column, row)
            work.load(a)
            work.store(b)
        TileThreads(1).run(work.native())
        assert (get(memory, b) == image).all()
        changed = np.frombuffer(memory.read(TARGET - 64, 0x20000), "<u8") != 0xEEEEEEEEEEEEEEEE
        assert changed.sum() <= size[0] * size[1]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("format_", "tiling"), list(product((0, 1, 2), (0, 1, 2))))
@pytest.mark.parametrize("colours", [(0xFF204080, 0xFF204080), (0xFF204080, 0x10FF0033)])
def test_a_tile_that_is_only_cleared_is_stored_like_one_that_was_loaded(size, format_, tiling, colours):
    """Two ways to the same tile: the store of a tile of one colour takes a path of its own."""
    memory = GuestMemory()
    unknowns = DEFAULT_UNKNOWNS.with_(clear_colour_words="columns")
    image = np.empty((size[1], size[0]), np.uint64)
    image[:, 0::2], image[:, 1::2] = colours
    source = Surface(SOURCE, *size, 1)
    put(memory, source, image)
    loaded = Surface(TARGET, *size, tiling, format_)
    cleared = Surface(TARGET + 0x40000, *size, tiling, format_)
    memory.fill(TARGET, 0x80000, 0xEE)
    copy(source, loaded, memory, unknowns)
    work = FrameWork(memory, *size)
    for row, column in product(range(-(-size[1] // 64)), range(-(-size[0] // 64))):
        work.begin_chain()
        work.tile(column, row)
        work.clear(colours[0], None, colours[1])
        work.store(cleared)
    tile_threads = TileThreads(1, unknowns)
    tile_threads.run(work.native())
    tile_threads.close()
    assert memory.read(loaded.address, 0x40000) == memory.read(cleared.address, 0x40000)
    assert (get(memory, cleared) != 0xEEEEEEEE).any()

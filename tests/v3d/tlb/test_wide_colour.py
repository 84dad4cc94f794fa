"""64-bit colour frames: two words a sample, each with its own load and write."""

import numpy as np
import pytest
from tests.support.frame_work import FrameWork
from tests.v3d.fragment.scene import COLOUR_AT, COLOUR_DUMP, Scene, coverage, words
from tests.v3d.fragment.test_multisample import covered, pixels, random_triangles

from vc4lab.memory import GuestMemory
from vc4lab.simd import targets
from vc4lab.v3d.state.frame_mode import PART_COLOUR, Surface, TileLayout
from vc4lab.v3d.state.tile_context import FragmentKey
from vc4lab.v3d.tiles.threads import TileThreads
from vc4lab.v3d.unknowns import DEFAULT_UNKNOWNS

WIDTH, HEIGHT = 100, 70
CLEAR = 0x1111222233334444
END = "nop ; nop ; thrend\n nop ; nop\n nop ; nop ; sbdone"
BLEND = words(f"""
    nop ; nop ; sbwait
    nop ; nop ; loadc
    add r0, r4, unif ; nop
    nop ; nop ; loadc
    add r1, r4, unif ; nop
    mov tlbc, r0
    mov tlbc, r1
    {END}
""")
STEP = "nop ; nop ; loadc\n add r0, r4, r1\n mov tlbm, r0\n add r1, r1, unif\n"
SAMPLES = words("mov r1, unif\n nop ; nop ; sbwait\n" + STEP * 8 + END)
LOOP = words(f"""
    mov r1, unif
    mov r2, unif
    nop ; nop ; sbwait
loop:
    nop ; nop ; loadc
    add r0, r4, r1
    mov tlbm, r0
    add r1, r1, unif
    sub.setf r2, r2, 1
    brr.any_zc -, loop
    nop
    nop
    nop
    {END}
""")


def wide_scene(multisample: bool) -> Scene:
    tile = (32, 16) if multisample else (64, 32)
    layout = TileLayout(multisample, wide=True)
    return Scene(WIDTH, HEIGHT, layout=layout, tile=tile, clear_colour=CLEAR)


def draw(scene: Scene, **options) -> np.ndarray:
    """Renders; the pixels as 64-bit words."""
    store = Surface(COLOUR_AT, WIDTH, HEIGHT, wide=True)
    scene.render(store=store, **options)
    return scene.memory.array(COLOUR_AT, WIDTH * HEIGHT, "<u8").reshape(HEIGHT, WIDTH).copy()


def test_two_words_are_loaded_and_written():
    scene = wide_scene(False)
    expected = np.full((HEIGHT, WIDTH), CLEAR, np.uint64)
    for k, points in enumerate(random_triangles(20, 50, 9), 1):
        scene.add(FragmentKey(program=BLEND), pixels(points), uniforms=(k, 0x100 * k))
        expected[coverage(points, WIDTH, HEIGHT)] += np.uint64(0x100 * k << 32 | k)
    assert (draw(scene) == expected).all()
    variants = [{"engine": engine} for engine in ("exact", "interpreter")]
    variants += [{"threads": 8}, *({"target": target} for target in targets())]
    for options in variants:
        assert (draw(scene, **options) == expected).all()


def all_samples(scene: Scene) -> np.ndarray:
    """Both words of every sample as the dump has them: (height, width, 4) of 64 bits."""
    rows, columns = scene.grid
    y, x, s = np.mgrid[0:16, 0:32, 0:4]
    place = ((x & ~1) * 32 + (y & ~1) * 512 + s * 16 + (y & 1) * 8 + (x & 1) * 4) // 4
    result = np.zeros((rows * 16, columns * 32, 4), np.uint64)
    for number, (row, column) in enumerate(np.ndindex(rows, columns)):
        data = scene.memory.array(COLOUR_DUMP + 16384 * number, 4096, "<u4").astype(np.uint64)
        both = data[place] | data[place + 2048] << np.uint64(32)
        result[16 * row : 16 * row + 16, 32 * column : 32 * column + 32] = both
    return result[:HEIGHT, :WIDTH]


@pytest.mark.parametrize("looping", [False, True])
def test_eight_accesses_reach_four_samples(looping):
    scene = wide_scene(True)
    expected = np.full((HEIGHT, WIDTH, 4), CLEAR, np.uint64)
    increments = [k * 0x1001 for k in range(1, 9)]
    values = np.cumsum([7, *increments])[:8].astype(np.uint64)
    step = values[::2] | values[1::2] << np.uint64(32)
    for points in random_triangles(6, 40, 4):
        uniforms = (7, 8, *increments) if looping else (7, *increments)
        key = FragmentKey(program=LOOP if looping else SAMPLES, code_address=0x4000)
        scene.add(key, pixels(points), uniforms=uniforms)
        expected += covered(points, WIDTH, HEIGHT) * step
    for engine in ("fast", "exact", "interpreter"):
        image = draw(scene, engine=engine)
        assert (all_samples(scene) == expected).all()
        assert (image == expected[:, :, 0]).all()  # raw: sample 0


@pytest.mark.parametrize("choice", ["halves", "pixels"])
def test_dumps_come_back(choice):
    memory = GuestMemory()
    data = np.random.default_rng(2).integers(0, 1 << 32, 4096, dtype=np.uint32)
    memory.write(0x10000, data.tobytes())
    work = FrameWork(memory, 64, 32, tile_height=32, layout=TileLayout(wide=True))
    work.tile(0, 0)
    work.load_full(0x10000, PART_COLOUR)
    work.store(Surface(0x20000, 64, 32, wide=True))
    work.store_full(0x30000, PART_COLOUR)
    TileThreads(1, DEFAULT_UNKNOWNS.with_(dump_64_bit=choice)).run(work.native())
    assert memory.read(0x30000, 16384) == data.tobytes()
    second = data[2048] if choice == "halves" else data[1]
    assert list(memory.array(0x20000, 2, "<u4")) == [data[0], second]


def test_clear_words_in_32_bit_frames():
    for choice, odd in (("first", 1), ("columns", 2)):
        memory = GuestMemory()
        work = FrameWork(memory, 64, 64)
        work.tile(0, 0)
        work.clear(1, 0, 2)
        work.store(Surface(0x20000, 64, 64))
        TileThreads(1, DEFAULT_UNKNOWNS.with_(clear_colour_words=choice)).run(work.native())
        image = memory.array(0x20000, 4096, "<u4").reshape(64, 64)
        assert (image[:, 0::2] == 1).all()
        assert (image[:, 1::2] == odd).all()

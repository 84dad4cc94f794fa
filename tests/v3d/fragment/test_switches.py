"""Undocumented behaviour of fragments and of the tile buffer: every choice, every engine."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.support.frame_work import FrameWork
from tests.v3d.fragment.scene import Scene, vertex, words

from vc4lab.memory import GuestMemory
from vc4lab.v3d.state.frame_mode import MASK, PART_MASK, ZS, Surface, TileLayout
from vc4lab.v3d.state.tile_context import FragmentKey
from vc4lab.v3d.tiles.threads import TileThreads
from vc4lab.v3d.unknowns import DEFAULT_UNKNOWNS

ENGINES = ("fast", "exact", "interpreter")
END = """
    nop ; nop ; thrend
    nop ; nop
    nop ; nop ; sbdone
"""


def program(text: str) -> tuple[int, ...]:
    return words("nop ; nop ; sbwait\n" + text + END)


def full(depth: float = 0.5) -> list[list[int]]:
    return [vertex(0, 0, depth), vertex(40, 0, depth), vertex(0, 40, depth)]


def drawn(scene: Scene, **choices: str) -> tuple[Any, Any]:
    """Colour and depth with these choices, the same on every engine."""
    unknowns = DEFAULT_UNKNOWNS.with_(**choices)
    results = []
    for engine in ENGINES:
        image = scene.render(engine, unknowns=unknowns)
        results.append((image, scene.depth()))
    for image, depth in results[1:]:
        assert np.array_equal(image, results[0][0])
        assert np.array_equal(depth, results[0][1])
    return results[0]


def small(text: str, uniforms: tuple[int, ...] = (), **fields: Any) -> Scene:
    """A frame of 16x16 pixels that one triangle fills."""
    scene = Scene(16, 16)
    scene.add(FragmentKey(program=program(text), **fields), full(), uniforms=uniforms)
    return scene


@pytest.mark.parametrize(
    ("name", "choice", "text", "uniforms"),
    [
        ("unmapped_read", "zero", "mov r0, ra33", ()),
        ("uniform_read_twice", "two", "add r0, ra32, rb32\nadd r0, r0, unif", (1, 2, 4)),
        ("same_destination", "add", "mov r1, unif\nmov r2, 3\nmov r0, r1 ; mov r0, r2", (1,)),
        ("underflow_sign", "kept", "mov r0, unif\nfmul r0, r0, unif", (0x80800000, 0x3F000000)),
        ("recip_one", "model", "mov recip, unif\nnop\nnop\nmov r0, r4", (0x3F800000,)),
    ],
)  # fmt: skip
def test_unknowns_of_the_qpu_reach_fragment_programs(
    name: str, choice: str, text: str, uniforms: tuple[int, ...]
) -> None:
    scene = small(text + "\nmov tlbc, r0", uniforms)
    assert not np.array_equal(drawn(scene)[0], drawn(scene, **{name: choice})[0])


def test_a_texture_behind_two_uniforms_of_one_instruction() -> None:
    """The stream of a program counts them; so its texture parameters are where they are."""
    from vc4lab.qpu.program.program import Program

    twice = DEFAULT_UNKNOWNS.with_(uniform_read_twice="two")
    text = "add r0, ra32, rb32\nmov t0t, 0\nmov t0s, 0\nnop ; nop ; ldtmu0\nmov tlbc, r4"
    found = Program(program(text)), Program(program(text)).under(twice)
    assert [one.texture_requests[0].uniforms for one in found] == [(1, 2), (2, 3)]
    assert [len(one.uniform_sites) for one in found] == [3, 4]


def test_ms_flags_of_one_sample() -> None:
    scene = small("mov r0, ms_flags\nmov tlbc, r0")
    assert set(np.unique(drawn(scene)[0])) == {15}
    assert set(np.unique(drawn(scene, ms_flags_single="one")[0])) == {1}
    scene = small("mov ms_flags, unif\nnop\nnop\nmov tlbc, unif", (2, 7))
    assert set(np.unique(drawn(scene, ms_flags_write="all")[0])) == {7}
    choices = {"ms_flags_single": "one", "ms_flags_write": "all"}
    assert set(np.unique(drawn(scene, **choices)[0])) == {0}


def multisampled(scene: Scene) -> Scene:
    """The same frame with four samples a pixel."""
    scene.layout, scene.tile = TileLayout(multisample=True), (32, 32)
    scene.draws = [(replace(key, oversample=True), params, at) for key, params, at in scene.draws]
    return scene


@pytest.mark.parametrize("samples", [1, 4])
def test_what_a_write_of_ms_flags_acts_on(samples: int) -> None:
    """Flags of odd columns off: without a depth test, with one, and read after the write."""
    off = "mov r0, x_coord\nand.setf r0, r0, 1\nmov.zc ms_flags, 0\nnop\nnop\n"
    depth, colour, read = "mov tlbz, unif\nnop\nnop\n", "mov tlbc, unif", "mov tlbc, ms_flags"
    even, every = [7, 0], [7, 7]
    expected = {
        ("tlb_z", off + colour): every,
        ("tlb_z", off + depth + colour): even,
        ("tlb_z", off + read): [15, 0],
        ("nothing", off + colour): every,
        ("nothing", off + depth + colour): every,
        ("nothing", off + read): [15, 15],
        ("all", off + colour): even,
        ("all", off + depth + colour): even,
    }
    for (choice, text), row in expected.items():
        uniforms = (9, 7) if "tlbz" in text else (7,)
        scene = small(text, uniforms, z_update=True, depth_function=7)
        if samples > 1:
            scene = multisampled(scene)
        image, zs = drawn(scene, ms_flags_write=choice)
        assert (image == np.array(row * 8)).all(), (choice, text)
        if "tlbz" in text:
            assert (zs[:, 0] >> 8 == 9).all()
            assert (zs[:, 1] >> 8 == (9 if choice == "nothing" else 0xFFFFFF)).all()


def test_two_depth_tests_with_flags_of_one_half_each() -> None:
    """As Broadcom's driver draws front and back faces of one vector (HW-2924): each lane is tested
    and drawn once, by the write of TLB_Z whose flags have it.
    """
    text = """
        mov r0, x_coord ; mov r1, unif
        and.setf -, r0, r1
        mov r2, ms_flags
        nop
        mov.zc ms_flags, 0
        nop
        mov tlbz, unif
        mov tlbc, unif
        mov.zs r2, 0
        nop
        mov ms_flags, r2
        nop
        mov tlbz, unif
        mov tlbc, unif
    """
    for samples in (1, 4):
        scene = small(text, (1, 5, 6, 8, 9), z_update=True, depth_function=7)
        if samples > 1:
            scene = multisampled(scene)
        image, zs = drawn(scene)
        assert (image == np.array([6, 9] * 8)).all()
        assert (zs >> 8 == np.array([5, 8] * 8)).all()


def test_lane_of_the_stencil_setup() -> None:
    """Lane 15 replaces the stencil by 15, lane 0 by 0."""
    text = "mov r0, elem_num\nshl r0, r0, 8\nor r0, r0, unif\nmov tlb_stencil, r0\nmov tlbz, 0"
    word = 3 << 30 | 3 << 28 | 2 << 25 | 2 << 22 | 2 << 19 | 7 << 16 | 0xFF
    scene = small(text, (word,), z_update=True)
    scene.clear_zs = 0x77
    assert set(np.unique(drawn(scene)[1] & 255)) == {0}
    assert set(np.unique(drawn(scene, stencil_setup_lane="15")[1] & 255)) == {15}


def sloped(low: float, high: float, **fields: Any) -> tuple[FragmentKey, list[list[int]]]:
    key = FragmentKey(program=program("mov tlbz, rb15\nmov tlbc, unif"), z_update=True, **fields)
    return key, [vertex(0, 0, low), vertex(32, 0, high), vertex(0, 32, low)]


def test_pixels_beyond_the_z_planes() -> None:
    """The limit lies between the first and the second pixel of a quad."""
    key, corners = sloped(0.0, 1.0)
    scene = Scene(16, 16)
    scene.add(key, corners, uniforms=(1,), z_max=7 / 32)
    assert np.nonzero(drawn(scene)[0][0])[0].max() == 6
    assert np.nonzero(drawn(scene, z_clip_pixels="quads")[0][0])[0].max() == 7


@pytest.mark.parametrize("size", [16, 64])
def test_rounding_of_depth(size: int) -> None:
    key, corners = sloped(0.1, 0.1003)
    scene = Scene(size, size)
    scene.add(key, corners, uniforms=(1,))
    choices = ("truncate", "nearest", "times_2_24")
    low, high, settled = (drawn(scene, depth_rounding=choice)[1] >> 8 for choice in choices)
    covered = drawn(scene)[0] != 0
    assert set(np.unique((high - low)[covered])) == {0, 1}
    assert set(np.unique((settled - low)[covered])) == {0, 1}


@pytest.mark.parametrize("primitive", ["triangles", "lines", "points"])
@pytest.mark.parametrize(
    ("zs", "steps"), [(0.0, 0), (0.5, 0x800000), (0.75, 0xC00000), (1 - 2.0**-24, 0xFFFFFF), (1.0, 0xFFFFFF)]
)
def test_depth_in_steps(primitive: str, zs: float, steps: int) -> None:
    """Zs x 2^24, which saturates; the other choices know 2^24 - 1 steps."""
    key = FragmentKey(program=program("mov tlbz, rb15\nmov tlbc, unif"), primitive=primitive, z_update=True)
    corners = {"triangles": full(zs), "lines": [vertex(0, 8, zs), vertex(16, 8, zs)]}
    scene = Scene(16, 16)
    points = corners.get(primitive, [vertex(8, 8, zs)])
    scene.add(key, points, uniforms=(1,), line_width=4.0, point_size=4.0)
    image, depth = drawn(scene)
    assert set(np.unique(depth[image != 0] >> 8)) == {steps}
    for choice, half in (("truncate", 0.0), ("nearest", 0.5)):
        depth = drawn(scene, depth_rounding=choice)[1]
        assert set(np.unique(depth[image != 0] >> 8)) == {int(zs * 0xFFFFFF + half)}


@pytest.mark.parametrize("primitive", ["triangles", "lines", "points"])
def test_units_of_the_depth_offset(primitive: str) -> None:
    """For depths around 1/16 a step of a float32 is 1/16 to 1/8 of a step of 24 bits."""
    text = program("mov tlbz, rb15\nmov tlbc, unif")
    key = FragmentKey(program=text, primitive=primitive, z_update=True, depth_offset=True)
    corners = {"triangles": full(0.0625), "lines": [vertex(0, 8, 0.0625), vertex(16, 8, 0.0625)]}
    scene = Scene(16, 16)
    points = corners.get(primitive, [vertex(8, 8, 0.0625)])
    scene.add(key, points, uniforms=(1,), depth_units=512.0, line_width=4.0, point_size=4.0)
    plain = 0.0625 * 2**24
    image, depth = drawn(scene)
    assert set(np.unique(depth[image != 0] >> 8)) == {plain + 512}
    depth = drawn(scene, depth_offset_unit="float")[1]
    assert set(np.unique(depth[image != 0] >> 8)) == {plain + 512 // 8}


@pytest.mark.parametrize("unit", ["one", "float"])
def test_a_depth_offset_of_each_of_many_triangles(unit: str) -> None:
    """A long program shades quads of several triangles together; each has an offset of its own."""
    text = "mov r0, 0\n" + "add r0, r0, 1\n" * 40 + "mov tlbz, rb15\nmov tlbc, unif"
    key = FragmentKey(program=program(text), z_update=True, depth_function=1, depth_offset=True)
    scene, plain = Scene(32, 32), Scene(32, 32)
    for one, offset in ((scene, True), (plain, False)):
        rng = np.random.default_rng(4)
        for colour in (5, 6):
            corners = []
            for _ in range(60):
                x, y = rng.uniform(0, 28, 2)
                corners += [
                    vertex(x + dx, y + dy, rng.uniform(0.2, 0.8))
                    for dx, dy in ((0, 0), (rng.uniform(2, 6), 0), (0, rng.uniform(2, 6)))
                ]
            one.add(
                replace(key, depth_offset=offset), corners, uniforms=(colour,),
                depth_factor=1.5, depth_units=64.0,
            )  # fmt: skip
    image, depth = drawn(scene, depth_offset_unit=unit)
    assert set(np.unique(image)) == {0, 5, 6}
    assert (depth != drawn(plain, depth_offset_unit=unit)[1]).sum() > 200


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("choice", ["quads", "rows"])
def test_dumps_of_one_sample(wide: bool, choice: str) -> None:
    """What is loaded from a dump is stored as a picture, and dumped as it was."""
    memory = GuestMemory()
    data = np.random.default_rng(3).integers(0, 1 << 32, 8192, dtype=np.uint32)
    memory.write(0x10000, data.tobytes())
    height = 32 if wide else 64
    work = FrameWork(memory, 64, height, tile_height=height, layout=TileLayout(wide=wide))
    work.tile(0, 0)
    work.load_full(0x10000)
    work.store(Surface(0x20000, 64, height, wide=wide))
    work.store(Surface(0x40000, 64, 64, buffer=ZS))
    work.store_full(0x30000)
    TileThreads(1, DEFAULT_UNKNOWNS.with_(dump_single=choice)).run(work.native())
    assert memory.read(0x30000, 32768) == data.tobytes()
    picture = memory.array(0x20000, 4096, "<u4")
    depth = memory.array(0x40000, 64 * height, "<u4")
    y, x = np.mgrid[0:height, 0:64]
    place = y * 64 + x
    if choice == "quads":
        place = (y // 2 * 512 + x // 2 * 16 + (y & 1) * 8 + (x & 1) * 4) // 4
    assert np.array_equal(depth.reshape(height, 64), data[4096 + place])
    words = picture.reshape(height, 64, -1)
    assert np.array_equal(words[..., 0], data[place])
    if wide:
        assert np.array_equal(words[..., 1], data[2048 + place])


@pytest.mark.parametrize(("choice", "size"), [("words", 4), ("bytes", 1)])
def test_masks_in_dumps(choice: str, size: int) -> None:
    memory = GuestMemory()
    values = np.random.default_rng(4).integers(0, 256, 4096).astype(f"<u{size}")
    memory.write(0x10000, values.tobytes())
    work = FrameWork(memory, 64, 64)
    work.tile(0, 0)
    work.load_full(0x10000, PART_MASK)
    work.store(Surface(0x20000, 64, 64, buffer=MASK))
    work.store_full(0x30000, PART_MASK)
    TileThreads(1, DEFAULT_UNKNOWNS.with_(dump_mask=choice)).run(work.native())
    assert memory.read(0x30000, 4096 * size) == values.tobytes()
    assert memory.read(0x30000 + 4096 * size, 64) == bytes(64)
    y, x = np.mgrid[0:64, 0:64]
    place = (y // 2 * 512 + x // 2 * 16 + (y & 1) * 8 + (x & 1) * 4) // 4
    stored = memory.array(0x20000, 4096, "u1").reshape(64, 64)
    assert np.array_equal(stored, values[place])


@pytest.mark.parametrize("text", ["mov r0, ra33", "mov r0, unif\nmov r1, ra15\nmov r0, ra39", "mov r0, rb33"])
def test_programs_that_see_their_lane_are_not_packed(text: str) -> None:
    """Small triangles and a long program: quads of several triangles would share a run."""
    scene = Scene(64, 64)
    key = FragmentKey(program=program(text + "\nnop" * 45 + "\nmov tlbc, r0"))
    corners = []
    for k in range(60):
        x, y = 1.3 + k * 7 % 60, 1.7 + k * 11 % 60
        corners += [vertex(x, y), vertex(x + 2.6, y), vertex(x, y + 2.6, 0.5, 0.5)]
    scene.add(key, corners, uniforms=(5,))
    drawn(scene)

"""Points, lines, clip records and broken lists."""

import struct

import numpy as np
import pytest
from tests.support.programs import GOURAUD
from tests.v3d.fragment.scene import FLAT, Scene, vertex, words

from vc4lab.v3d.state.tile_context import FragmentKey

END = """
    nop ; nop ; sbwait
    mov tlbc, {colour} ; nop ; thrend
    nop ; nop
    nop ; nop ; sbdone
"""
COLOUR = words(GOURAUD + END.format(colour="r3"))
LINE = words(
    """
    mov r0, vary
    nop
    fadd r0, r0, r5 ; mov r1, vary
    nop ; mov r3.8a, r0
    fmul r1, r1, ra15
    fadd r1, r1, r5
    nop ; mov r3.8b, r1
    mov r2, 1
    shl r2, r2, 15
    shl r2, r2, 1
    or r3, r3, r2
"""
    + END.format(colour="r3")
)
ENGINES = ("fast", "exact", "interpreter")


@pytest.mark.parametrize("in_vertex", [False, True])
def test_point_is_a_square_with_coordinates(in_vertex):
    scene = Scene(40, 40)
    key = FragmentKey(program=COLOUR, primitive="points", n_varyings=1, point_size_in_vertex=in_vertex)
    point = [0.25] if not in_vertex else [16.0, 0.25]
    scene.add(key, [vertex(20, 18, 0.5, 0.5, *point)], point_size=16.0 if not in_vertex else 3.0)
    pictures = [scene.render(engine) for engine in ENGINES]
    image = pictures[0]
    assert all((other == image).all() for other in pictures)
    y, x = np.nonzero(image)
    assert (x.min(), x.max(), y.min(), y.max()) == (12, 27, 10, 25)
    assert len(x) == 256
    red, green, blue = image & 255, image >> 8 & 255, image >> 16 & 255
    column, row = np.meshgrid(np.arange(16) + 0.5, np.arange(16) + 0.5)
    inner = np.s_[10:26, 12:28]
    assert np.abs(red[inner] - column / 16 * 255).max() <= 1
    assert np.abs(green[inner] - (255 - row / 16 * 255)).max() <= 1
    assert set(np.unique(blue[inner])) == {64}


@pytest.mark.parametrize("in_vertex", [False, True])
def test_points_larger_than_512_pixels(in_vertex):
    """They act as points of 512, their coordinates too."""
    key = FragmentKey(program=COLOUR, primitive="points", n_varyings=1, point_size_in_vertex=in_vertex)
    pictures = {}
    for size in (512.0, 528.0, 4096.0, float("inf")):
        scene = Scene(300, 8)
        point = [size, 1.0] if in_vertex else [1.0]
        scene.add(key, [vertex(10, 4, 0.5, 1.0, *point)], point_size=3.0 if in_vertex else size)
        for engine in ENGINES:
            pictures[size, engine] = scene.render(engine)
    first = pictures[512.0, "fast"]
    assert all(np.array_equal(picture, first) for picture in pictures.values())
    assert np.array_equal(np.nonzero(first[0])[0], np.arange(266))


def test_small_points_hit_one_pixel():
    scene = Scene(16, 16)
    key = FragmentKey(program=words(FLAT), primitive="points")
    scene.add(key, [vertex(5.5, 7.5), vertex(9, 3)], uniforms=(1,), point_size=1.0)
    assert list(zip(*np.nonzero(scene.render()), strict=True)) == [(2, 8), (7, 5)]


@pytest.mark.parametrize("flip", [False, True])
@pytest.mark.parametrize("steep", [False, True])
def test_line_covers_its_width(flip, steep):
    a, b = (4.0, 10.0), (36.0, 18.0)
    if steep:
        a, b = a[::-1], b[::-1]
    ends = [b, a] if flip else [a, b]
    scene = Scene(40, 40)
    key = FragmentKey(program=LINE, primitive="lines", n_varyings=1)
    scene.add(key, [vertex(*ends[0], 0.5, 1, 0.0), vertex(*ends[1], 0.5, 0.5, 1.0)], line_width=4.0)
    pictures = [scene.render(engine) for engine in ENGINES]
    image = pictures[0]
    assert all((other == image).all() for other in pictures)
    if steep:
        image = image.T
    covered = image != 0
    columns = np.nonzero(covered.any(axis=0))[0]
    assert (columns.min(), columns.max()) == (4, 35)
    assert set(covered[:, 4:36].sum(axis=0)) == {4}
    centre = 10 + (np.arange(40) + 0.5 - 4) / 4
    side = (np.arange(40)[:, None] + 0.5 - centre[None, :]) / 4 + 0.5
    red = image & 255
    flipped = (red / 255 - (1 - side))[covered]
    straight = (red / 255 - side)[covered]
    assert min(np.abs(flipped).max(), np.abs(straight).max()) < 0.01
    t = (np.arange(40) + 0.5 - 4) / 32
    t = 1 - t if flip else t
    expected = t * 0.5 / ((1 - t) + t * 0.5)
    green = (image >> 8 & 255) / 255
    assert np.abs(green - expected[None, :])[covered].max() < 0.005


def test_rectangular_lines_are_an_option():
    key = FragmentKey(program=words(FLAT), primitive="lines")
    counts = []
    for shape in ("parallelogram", "rectangle"):
        scene = Scene()
        keyed = FragmentKey(
            program=key.program, primitive="lines", unknowns=key.unknowns.with_(line_shape=shape)
        )
        scene.add(keyed, [vertex(10, 10), vertex(40, 40)], uniforms=(1,), line_width=8.0)
        counts.append(int((scene.render() != 0).sum()))
    assert abs(counts[0] - 240) < 10
    assert abs(counts[1] - 240 * 2**0.5) < 20


def clip_record(memory, address, entries):
    for number, (x, y, z, w, weights) in enumerate(entries):
        data = struct.pack("<hhff3f", round(x * 16), round(y * 16), z, w, *weights)
        memory.write(address + 32 * number, data)


def test_clip_record_replaces_flagged_vertices():
    """A triangle cut at half of two edges equals the small triangle drawn directly."""
    corners = [(0.0, 0.0), (64.0, 0.0), (0.0, 64.0)]
    colours = [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)]
    key = FragmentKey(program=COLOUR, n_varyings=3)
    vertices = [vertex(*p, 0.5, 1.0, *c) for p, c in zip(corners, colours, strict=True)]
    scene = Scene()
    record = 0x50000
    clip_record(scene.memory, record, [(32, 0, 0.5, 1.0, (0.5, 0.5, 0)), (0, 32, 0.5, 1.0, (0.5, 0, 0.5))])
    data = b"\x31" + struct.pack("<I", record | 0b110) + b"\x81" + struct.pack("<3H", 0, 1, 2)
    scene.add_list(key, vertices, data + b"\x80")
    clipped = scene.render()
    assert (clipped == scene.render("interpreter")).all()
    direct = Scene()
    half = [vertex(0, 0, 0.5, 1, 1, 0, 0), vertex(32, 0, 0.5, 1, 0.5, 0.5, 0)]
    direct.add(key, [*half, vertex(0, 32, 0.5, 1, 0.5, 0, 0.5)])
    assert (clipped == direct.render()).all()
    assert clipped.any()


def test_only_the_first_primitive_of_a_clipped_list_is_clipped():
    key = FragmentKey(program=words(FLAT))
    scene = Scene()
    clip_record(scene.memory, 0x50000, [(8, 0, 0.5, 1.0, (1, 0, 0))])
    absolute = b"\x81" + struct.pack("<3H", 0, 1, 2)
    data = b"\x31" + struct.pack("<I", 0x50000 | 0b010) + absolute
    corners = [vertex(0, 0), vertex(32, 0), vertex(0, 32)]
    scene.add_list(key, corners, data + b"\x80", (1,))
    small = int((scene.render() != 0).sum())
    scene.draws.clear()
    scene.add_list(key, corners, data + absolute + b"\x80", (1,))
    assert int((scene.render() != 0).sum()) > 3 * small


def test_flat_varyings_of_a_clipped_primitive_keep_the_last_vertex():
    key = FragmentKey(program=COLOUR, n_varyings=3, flat_flags=7)
    scene = Scene()
    clip_record(scene.memory, 0x50000, [(0, 32, 0.5, 1.0, (0.5, 0, 0.5))])
    data = b"\x31" + struct.pack("<I", 0x50000 | 0b100) + b"\x81" + struct.pack("<3H", 0, 1, 2)
    corners = [vertex(0, 0, 0.5, 1, 1, 1, 1), vertex(32, 0, 0.5, 1, 1, 1, 1)]
    scene.add_list(key, [*corners, vertex(0, 64, 0.5, 1, 0, 0, 1)], data + b"\x80")
    assert set(np.unique(scene.render())) == {0, 0xFF0000}


def test_endless_list_ends_with_a_status():
    scene = Scene()
    key = FragmentKey(program=words(FLAT))
    address = (scene.next_list + 31) & ~31
    scene.next_list = address
    scene.add_list(key, [vertex(0, 0)] * 3, b"\x30\x82\x00\x00" + b"\0" * 28, (1,))
    scene.render()
    assert scene.result is not None
    assert scene.result.bad_lists == [0]


def test_indices_beyond_the_buffer_are_clamped():
    scene = Scene()
    key = FragmentKey(program=words(FLAT))
    corners = [vertex(0, 0), vertex(32, 0), vertex(0, 32)]
    scene.add(key, corners, [(0, 1, 60000), (0xFFFF, 1, 0)], uniforms=(1,))
    assert scene.render().any()


def test_a_draw_without_vertices_draws_nothing():
    scene = Scene()
    corners = [vertex(0, 0), vertex(32, 0), vertex(0, 32)]
    scene.add(FragmentKey(program=words(FLAT)), corners, uniforms=(1,), vertex_count=0)
    scene.draws[0][1].vertices = 0
    assert not scene.render().any()


def test_random_lists_and_vertices_are_harmless():
    rng = np.random.default_rng(3)
    for primitive in ("triangles", "lines", "points"):
        key = FragmentKey(program=COLOUR, primitive=primitive, n_varyings=3, z_update=True)
        for _ in range(10):
            scene = Scene(100, 64)
            vertices = rng.integers(0, 1 << 32, (40, 6), dtype=np.uint64).tolist()
            data = b"\x30" + rng.integers(0, 48, 60, dtype=np.uint8).tobytes()
            scene.add_list(key, vertices, data + b"\x80", point_size=9.0, line_width=5.0)
            image = scene.render()
            assert (image == scene.render("exact")).all()

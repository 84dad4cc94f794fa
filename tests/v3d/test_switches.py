"""Undocumented behaviour of lists and of the rasteriser that other tests do not tell apart."""

import numpy as np
import pytest
from tests.support.frames import BACKGROUND, RED, Frame, solid
from tests.support.jobs import CT0CA, CT0EA, nv_vertex, viewport
from tests.v3d.fragment.scene import Scene, vertex
from tests.v3d.fragment.test_primitives import LINE
from tests.v3d.tile_lists.test_xy_lists import XY_RHT, trapezoid, xy_list
from tests.v3d.tlb.test_stores import SOURCE, TARGET, copy, get, put

from vc4lab.memory import GuestMemory
from vc4lab.records.control import build
from vc4lab.v3d.registers import BY_NAME, ThreadControl
from vc4lab.v3d.state.frame_mode import Surface
from vc4lab.v3d.state.tile_context import FragmentKey
from vc4lab.v3d.unknowns import DEFAULT_UNKNOWNS

ENGINES = ("jit", "interpreter")


def start(frame: Frame, data: bytes) -> ThreadControl:
    """Runs a binning list; CT0CS after it."""
    place = frame.job.put(data)
    frame.v3d.write(CT0CA, place)
    frame.v3d.write(CT0EA, place + len(data))
    return ThreadControl(frame.v3d.read(BY_NAME["CT0CS"].offset))


@pytest.mark.parametrize(("choice", "error"), [("1", 1), ("2", 0)])
def test_sub_lists_in_sub_lists(choice: str, error: int) -> None:
    frame = Frame(unknowns=DEFAULT_UNKNOWNS.with_(sublist_depth=choice))
    inner = frame.job.put(build(1) + build(18))
    outer = frame.job.put(build(17, address=inner) + build(18))
    assert error == start(frame, build(17, address=outer) + build(1)).CTERR
    assert frame.reporter.has("CLE-005") == bool(error)


@pytest.mark.parametrize(("choice", "counts"), [("sent", (1, 0)), ("own", (0, 1))])
def test_whose_semaphore_is_shown(choice: str, counts: tuple[int, int]) -> None:
    """Thread 0 increments, no thread waits."""
    frame = Frame(unknowns=DEFAULT_UNKNOWNS.with_(ctsema=choice))
    body = frame.job.binning(viewport(frame.job), flush=build(7) + build(4))
    frame.v3d.write(CT0CA, body[0])
    frame.v3d.write(CT0EA, body[1])
    shown = [ThreadControl(frame.v3d.read(BY_NAME[name].offset)).CTSEMA for name in ("CT0CS", "CT1CS")]
    assert tuple(shown) == counts


@pytest.mark.parametrize(("choice", "tiles"), [("used", 1), ("ignored", 4)])
def test_the_clip_window_in_the_binner(choice: str, tiles: int) -> None:
    frame = Frame(unknowns=DEFAULT_UNKNOWNS.with_(binner_clip_window=choice))
    places = [(5, 5), (120, 8), (8, 120), (120, 120), (8, 120), (120, 8)]
    vertices = b"".join(nv_vertex(x, y, 0.5, 1.0) for x, y in places)
    state = viewport(frame.job) + build(102, left=4, bottom=4, width=50, height=50)
    body = state + frame.nv_shader(solid(RED), vertices) + build(33, mode=4, length=6)
    begin, end, lists = frame.job.binning(body)
    frame.v3d.write(CT0CA, begin)
    frame.v3d.write(CT0EA, end)
    used = [frame.job.memory.u8(lists + 32 * tile) != 18 for tile in range(4)]
    assert sum(used) == tiles


@pytest.mark.parametrize("engine", ENGINES)
def test_a_resolved_store_without_decimate(engine: str) -> None:
    """Records 24 and 25 average, whatever record 113 says of it."""

    def stored(decimate: int, **choices: str) -> np.ndarray:
        frame = Frame(tile=(32, 32), unknowns=DEFAULT_UNKNOWNS.with_(**choices), engine=engine)
        vertices = b"".join(nv_vertex(x, y, 0.5, 1.0) for x, y in ((3, 3), (20, 4), (7, 29)))
        four = bytes([96]) + (3 | 1 << 6).to_bytes(3, "little")
        shader = frame.nv_shader(solid(RED), vertices)
        state = viewport(frame.job) + four + bytes([56, 0x12]) + shader
        triangle = bytes([48, 0x81]) + bytes([0, 0, 1, 0, 2, 0, 0x80])
        return frame.render(state + triangle, multisample=1, decimate=decimate)

    average = stored(1)
    assert len(np.unique(average[:32, :32])) == 5  # 0 to 4 samples
    assert np.array_equal(stored(0), average)
    first = stored(0, resolve_without_decimate="sample_0")
    assert set(np.unique(first[:32, :32])) == {RED, BACKGROUND}
    assert np.array_equal(stored(1, resolve_without_decimate="sample_0"), average)


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
@pytest.mark.parametrize("binner", ["used", "ignored"])
@pytest.mark.parametrize("at", [(9, 70), (0, 70), (9, 0), (0, 0)])
@pytest.mark.parametrize("choice", ["wraps", "both", "each", "nothing"])
def test_clip_windows_without_pixels(choice: str, at: tuple[int, int], binner: str, engine: str) -> None:
    """Pixels that are left of a window of these sizes, and what the hint says."""
    left, bottom = at
    whole, strip, column, none = (128, 128), (128, 9), (20, 128), (0, 0)
    expected = {
        "both": {(0, 0): whole, (0, 9): none, (20, 0): none},
        "each": {(0, 0): whole, (0, 9): strip, (20, 0): column},
        "nothing": {(0, 0): none, (0, 9): none, (20, 0): none},
        "wraps": {
            (0, 0): whole if at == (0, 0) else none,
            (0, 9): strip if left == 0 else none,
            (20, 0): column if bottom == 0 else none,
        },
    }[choice]
    unknowns = DEFAULT_UNKNOWNS.with_(clip_window_empty=choice, binner_clip_window=binner)
    places = [(0, 0), (300, 0), (0, 300)]
    vertices = b"".join(nv_vertex(x, y, 0.5, 1.0) for x, y in places)
    for (width, height), size in expected.items():
        frame = Frame(unknowns=unknowns, engine=engine)
        state = viewport(frame.job) + build(102, left=left, bottom=bottom, width=width, height=height)
        shader = frame.nv_shader(solid(RED), vertices)
        picture = frame.bin(state + shader + build(33, mode=4, length=3))
        rows, columns = np.nonzero(picture == RED)
        assert (len(set(columns)), len(set(rows))) == size, (width, height)
        (hint,) = [item.message for item in frame.reporter.items if item.code == "CLE-026"]
        assert ("nothing is drawn" in hint) == (size == none)
        assert ("limits nothing" in hint) == (size == whole)


@pytest.mark.parametrize("engine", ["fast", "interpreter"])
def test_the_side_of_a_line_where_its_coordinate_is_0(engine: str) -> None:
    """The picture with the other choice has the sides exchanged."""
    pictures = []
    for choice in ("left-is-0", "left-is-1"):
        scene = Scene(40, 40)
        key = FragmentKey(program=LINE, primitive="lines", n_varyings=1)
        ends = [vertex(4, 20, 0.5, 1, 0.25), vertex(36, 20, 0.5, 1, 0.25)]
        scene.add(key, ends, line_width=8.0)
        unknowns = DEFAULT_UNKNOWNS.with_(line_coordinate=choice)
        pictures.append(scene.render(engine, unknowns=unknowns)[16:24, 4:36] & 255)
    first, second = (picture.astype(int) for picture in pictures)
    assert first[0, 0] < first[7, 0]
    assert np.abs(first - second[::-1]).max() <= 1
    assert (first != second).any()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("choice", "drawn"), [("edge", 1), ("any", 2)])
def test_facing_of_trapezoids(engine: str, choice: str, drawn: int) -> None:
    """One goes up, one down, and only one face is enabled."""
    unknowns = DEFAULT_UNKNOWNS.with_(rht_facing=choice)
    found = 0
    for edge in (((50.0, 10.0), (80.0, 90.0)), ((80.0, 90.0), (50.0, 10.0))):
        frame = Frame(engine=engine, unknowns=unknowns)
        state = viewport(frame.job, 1) + frame.vg_shader(solid(RED))
        picture = frame.render(state + xy_list(edge, form=XY_RHT))
        found += bool((picture == RED).any())
    assert found == drawn


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("binned", [False, True])
@pytest.mark.parametrize(("choice", "boundary"), [("moved", 10.0), ("fixed", 20.0)])
def test_the_boundary_of_trapezoids(engine: str, binned: bool, choice: str, boundary: float) -> None:
    frame = Frame(engine=engine, unknowns=DEFAULT_UNKNOWNS.with_(rht_boundary_offset=choice))
    edge = ((100.0, 5.0), (60.0, 110.0))
    state = viewport(frame.job) + build(103, x=-10 * 16, y=6 * 16)
    state += frame.vg_shader(solid(RED)) + build(100, x=20 * 16)
    if binned:
        data = b"".join(round(v * 16).to_bytes(2, "little") for corner in edge for v in corner)
        body = build(41, type=1, length=2, address=frame.job.put(data, 4))
        picture = frame.bin(state + body)
    else:
        picture = frame.render(state + xy_list(edge, form=XY_RHT))
    expected = trapezoid(frame, (90, 11), (50, 116), boundary)
    assert ((picture == RED) == expected).all()
    assert (picture[~expected] == BACKGROUND).all()


def test_dithered_stores_without_a_pattern() -> None:
    """They are then like undithered ones (format 2 of record 28)."""
    stored = {}
    for choice in ("bayer", "none"):
        unknowns = DEFAULT_UNKNOWNS.with_(dither_565=choice)
        for form in (1, 2):
            memory = GuestMemory()
            source, target = Surface(SOURCE, 64, 8), Surface(TARGET, 64, 8, 0, form)
            put(memory, source, np.arange(512, dtype=np.uint32).reshape(8, 64) % 64 * 0x040404)
            copy(source, target, memory, unknowns)
            stored[choice, form] = get(memory, target)
    assert (stored["none", 1] == stored["none", 2]).all()
    assert (stored["bayer", 1] != stored["bayer", 2]).any()
    assert (stored["bayer", 2] == stored["none", 2]).all()

"""What fragment programs read: facing, varyings, results of lookups; and what they cannot have."""

from dataclasses import replace

import numpy as np
import pytest
from tests.support.frames import BACKGROUND, GREEN, RED, Frame, solid
from tests.support.jobs import nv_vertex, viewport
from tests.v3d.fragment.scene import Scene, vertex
from tests.v3d.fragment.test_switches import drawn, full, program, small

from vc4lab.records.control import build
from vc4lab.v3d.state.render_state import CLOCKWISE_IS_FORWARD, ENABLE_FORWARD, ENABLE_REVERSE
from vc4lab.v3d.state.tile_context import MAX_VARYINGS, FragmentKey

ENGINES = ("jit", "interpreter")
LEFT, RIGHT = ((2, 2), (30, 2), (2, 60)), ((62, 2), (34, 2), (62, 60))
ARRAY = build(33, mode=4, length=3, first=0)
BOTH_FACES = ENABLE_FORWARD | ENABLE_REVERSE


def faced(text: str, corners: list[list[int]], facing: int, uniform: int = 0) -> set[int]:
    """The colours of a triangle that fills the frame."""
    scene = Scene(16, 16)
    scene.add(FragmentKey(program=program(text)), corners, uniforms=(uniform,), facing=facing)
    return set(np.unique(drawn(scene)[0]).tolist())


def test_programs_see_which_way_a_triangle_turns() -> None:
    """full() goes round counter-clockwise, with y upwards."""
    text = "mov tlbc, rev_flag"
    clockwise = BOTH_FACES | CLOCKWISE_IS_FORWARD
    assert faced(text, full(), BOTH_FACES) == {0}
    assert faced(text, full()[::-1], BOTH_FACES) == {1}
    assert faced(text, full(), clockwise) == {1}
    assert faced(text, full()[::-1], clockwise) == {0}


def test_programs_turn_a_triangle_round() -> None:
    """Bit 0 of what they write is the flag from then on."""
    for value in (0, 1, 2, 3):
        text = "mov rev_flag, unif\nnop\nnop\nmov tlbc, rev_flag"
        for corners in (full(), full()[::-1]):
            assert faced(text, corners, BOTH_FACES, value) == {value & 1}


def test_varyings_after_the_last_are_zero() -> None:
    """Also where a primitive drawn before has more of them."""
    read = "mov r0, vary\nnop\nor r0, r0, r5\nnop\n"
    both = FragmentKey(program=program(2 * read + "mov tlbc, r0"), n_varyings=2)
    first = replace(both, n_varyings=1, program=program(read + "mov tlbc, r0"))
    after = replace(both, n_varyings=1)
    for key, colour in ((first, 3.0), (both, 4.0), (after, 0.0)):
        scene = Scene(16, 16)
        count = key.n_varyings
        for one, n in ((both, 2), (key, count)):
            corners = [(0, 0), (40, 0), (0, 40)]
            scene.add(one, [vertex(*at, 0.5, 1.0, *(3.0, 4.0)[:n]) for at in corners])
        assert set(np.unique(drawn(scene)[0]).tolist()) == {int(np.float32(colour).view(np.uint32))}


@pytest.mark.parametrize(
    ("primitive", "own", "shape"),
    [("points", 2, {"point_size": 6.0}), ("lines", 1, {"line_width": 4.0}), ("triangles", 0, {})],
)
@pytest.mark.parametrize("flat", [0, 1, 2, 3])
def test_flat_varyings_are_those_of_the_last_vertex(
    primitive: str, own: int, shape: dict[str, float], flat: int
) -> None:
    """Points and lines begin with coordinates of their own, which are never flat."""
    values = [(3.0, 0.5), (4.0, 0.5), (5.0, 0.25)]
    places = [(8, 8), (8, 14), (14, 8)]
    count = {"points": 1, "lines": 2, "triangles": 3}[primitive]
    corners = [vertex(*places[k], 0.5, 1.0, *values[k]) for k in range(count)]
    skip = "mov r0, vary\nnop\n"
    for number in range(2):
        text = skip * (own + number) + "mov r0, vary\nnop\nfadd tlbc, r0, r5"
        key = FragmentKey(program=program(text), primitive=primitive, n_varyings=2, flat_flags=flat)
        scene = Scene(16, 16)
        scene.add(key, corners, **shape)
        found = set(np.unique(drawn(scene)[0]).tolist()) - {0}
        last = int(np.float32(values[count - 1][number]).view(np.uint32))
        if flat >> number & 1 or primitive == "points":
            assert found == {last}
        elif number == 0:
            assert len(found) > 1, "it changes from pixel to pixel"


def test_lanes_have_their_numbers_and_one_qpu() -> None:
    image = drawn(small("mov r0, elem_num\nshl r0, r0, 8\nor tlbc, r0, qpu_num"))[0]
    assert set(np.unique(image[:4, :4]).tolist()) == {256 * lane for lane in range(16)}


# -- programs that are refused ------------------------------------------------------------------


def corners_of(corners: tuple[tuple[int, int], ...], varyings: int = 0) -> bytes:
    return b"".join(nv_vertex(x, y, 0.5, 1.0, *[0.0] * varyings) for x, y in corners)


def beside_a_good_one(engine: str, text: str, varyings: int = 0) -> tuple[Frame, np.ndarray]:
    """A frame whose left triangle is red, and whose right one has this program."""
    frame = Frame(64, 64, engine=engine)
    body = viewport(frame.job) + frame.nv_shader(solid(RED), corners_of(LEFT)) + ARRAY
    body += frame.nv_shader(text, corners_of(RIGHT, varyings), varyings) + ARRAY
    return frame, frame.bin(body)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_result_that_was_not_requested(engine: str) -> None:
    """The draw is left out with one message, the others of the frame are drawn."""
    text = "nop ; nop ; sbwait\nnop ; nop ; ldtmu0\nmov tlbc, r4 ; nop ; thrend\n"
    frame, picture = beside_a_good_one(engine, text + "nop\nnop ; nop ; sbdone\n")
    assert frame.reporter.counts["FRG-003"] == 1
    assert [item.code for item in frame.reporter.items] == ["FRG-003"]
    assert set(np.unique(picture[:, :32])) == {RED, BACKGROUND}
    assert set(np.unique(picture[:, 32:])) == {BACKGROUND}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("varyings", [MAX_VARYINGS, MAX_VARYINGS + 1])
def test_more_varyings_than_fit(engine: str, varyings: int) -> None:
    frame, picture = beside_a_good_one(engine, solid(GREEN), varyings)
    fits = varyings <= MAX_VARYINGS
    assert [item.code for item in frame.reporter.items] == ([] if fits else ["FRG-007"])
    assert set(np.unique(picture[:, :32])) == {RED, BACKGROUND}
    assert set(np.unique(picture[:, 32:])) == ({GREEN, BACKGROUND} if fits else {BACKGROUND})


SLOTS = "nop\n" * 3


@pytest.mark.parametrize("engine", ENGINES)
def test_a_texture_request_over_two_blocks(engine: str) -> None:
    """A branch goes up to the S write after T: from top to bottom S is a lookup of memory."""
    text = f"nop ; nop ; sbwait\nbrr second\n{SLOTS}first:\nmov t0s, 0 ; nop\n"
    text += "nop ; nop ; ldtmu0\nmov tlbc, r4 ; nop ; thrend\nnop\nnop ; nop ; sbdone\n"
    text += f"second:\nmov t0t, 0 ; nop\nbrr first\n{SLOTS}"
    frame, picture = beside_a_good_one(engine, text)
    assert [item.code for item in frame.reporter.items] == ["FRG-002"]
    assert set(np.unique(picture[:, :32])) == {RED, BACKGROUND}
    assert set(np.unique(picture[:, 32:])) == {BACKGROUND}

"""How large a picture is in a window, and where."""

from hypothesis import given
from hypothesis import strategies as st

from vc4lab.viewer.fitting import Place, Size, first_size, place

SIZES = st.tuples(st.integers(1, 4096), st.integers(1, 4096))


def test_small_pictures_open_whole_times_as_large() -> None:
    assert first_size((640, 480), (1920, 1080)) == (640, 480)
    assert first_size((320, 240), (1920, 1080)) == (960, 720)
    assert first_size((64, 48), (1024, 768)) == (768, 576)
    assert first_size((1920, 1080), (1366, 768)) == (1092, 614)


def test_borders_and_places() -> None:
    there = place((64, 48), (320, 120))
    assert there == Place(80, 0, 160, 120, 2.5)
    assert there.to_picture((80, 0)) == (0, 0)
    assert there.to_picture((239, 119)) == (63, 47)
    assert there.to_picture((79, 120)) == (-1, 48)


@given(SIZES, SIZES)
def test_it_fits_and_touches_two_edges(picture: Size, window: Size) -> None:
    left, top, width, height, _scale = there = place(picture, window)
    assert 1 <= width <= window[0]
    assert 1 <= height <= window[1]
    assert width == window[0] or height == window[1]
    assert 0 <= left <= window[0] - width
    assert 0 <= top <= window[1] - height
    assert there.to_picture((left, top)) == (0, 0)

"""Terminal preview and recordings."""

import re

import pytest
from PIL import Image

from vc4lab.viewer import Recorder, preview

MS = 1_000_000


def test_preview_is_two_pixels_a_character():
    image = Image.new("RGB", (4, 4))
    image.putpixel((0, 0), (255, 0, 0))
    image.putpixel((0, 1), (0, 255, 0))
    lines = preview(image, 4).split("\n")
    assert len(lines) == 2
    assert lines[0].startswith("\x1b[38;2;255;0;0;48;2;0;255;0m▀")
    assert all(line.endswith("\x1b[0m") for line in lines)
    assert [len(re.sub(r"\x1b\[[^m]*m", "", line)) for line in lines] == [4, 4]


@pytest.mark.parametrize("size", [(1, 1), (640, 480), (3, 500), (500, 3)])
def test_preview_of_any_size(size):
    lines = preview(Image.new("RGB", size, (9, 9, 9)), 40).split("\n")
    assert len(re.sub(r"\x1b\[[^m]*m", "", lines[0])) == min(40, size[0])


@pytest.mark.parametrize("suffix", [".gif", ".webp", ".png"])
def test_recordings_keep_order_and_time(tmp_path, suffix):
    recorder = Recorder(tmp_path / f"film{suffix}")
    assert not recorder.save()
    colours = [(200, 0, 0), (0, 200, 0), (0, 0, 200)]
    for number, colour in enumerate(colours):
        recorder.add(Image.new("RGB", (8, 8), colour), 40 * MS * number)
        assert not recorder.wants(40 * MS * number + MS)
        recorder.add(Image.new("RGB", (8, 8)), 40 * MS * number + MS)
    assert len(recorder) == 3
    assert recorder.save()
    with Image.open(tmp_path / f"film{suffix}") as film:
        assert film.n_frames == 3
        for number, colour in enumerate(colours):
            film.seek(number)
            seen = film.convert("RGB").getpixel((4, 4))
            assert all(abs(a - b) < 10 for a, b in zip(seen, colour, strict=True))


def test_long_recordings_are_thinned(tmp_path):
    recorder = Recorder(tmp_path / "film.gif")
    for number in range(2000):
        recorder.add(Image.new("RGB", (4, 4), (number % 256, 0, 0)), 40 * MS * number)
    assert len(recorder) <= 600


def test_other_suffixes_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"\.gif"):
        Recorder(tmp_path / "film.mp4")


@pytest.mark.parametrize("suffix", [".gif", ".webp", ".png"])
def test_a_picture_that_stands_still_is_kept_as_long(tmp_path, suffix):
    films = []
    for name, again in (("one", False), ("two", True)):
        recorder = Recorder(tmp_path / f"{name}{suffix}")
        picture = Image.new("RGB", (8, 8), (200, 0, 0))
        recorder.add(picture, 0)
        for number in range(1, 10):
            if again:
                recorder.add_again(40 * MS * number)
            else:
                recorder.add(picture, 40 * MS * number)
        recorder.add(Image.new("RGB", (8, 8)), 400 * MS)
        assert recorder.save()
        films.append(recorder.path.read_bytes())
    assert films[0] == films[1]


def test_the_picture_that_is_left_is_not_dropped(tmp_path):
    recorder = Recorder(tmp_path / "film.png")
    recorder.add(Image.new("RGB", (4, 4), (0, 0, 200)), 0)
    left = Image.new("RGB", (4, 4), (200, 0, 0))
    assert not recorder.wants(MS)
    recorder.add_last(left, MS)
    assert recorder.save()
    with Image.open(recorder.path) as film:
        assert film.n_frames == 2
        film.seek(1)
        assert film.convert("RGB").getpixel((0, 0)) == (200, 0, 0)


@pytest.mark.parametrize("suffix", [".gif", ".webp", ".png"])
def test_another_mode_keeps_its_shape_in_the_recording(tmp_path, suffix):
    recorder = Recorder(tmp_path / f"film{suffix}")
    sizes = [(40, 30), (80, 30), (10, 40), (20, 15), (1, 4000)]
    for number, size in enumerate(sizes):
        recorder.add(Image.new("RGB", size, (250, 250, 250)), 40 * MS * number)
    assert recorder.save()
    bright = []
    with Image.open(recorder.path) as film:
        assert film.size == sizes[0]
        for number in range(len(sizes)):
            film.seek(number)
            bright.append(film.convert("L").point(lambda v: 255 if v > 128 else 0).getbbox())
    whole, wide, high, small, _line = bright
    assert whole == small == (0, 0, 40, 30)
    assert wide == (0, 7, 40, 22)
    assert high == (16, 0, 24, 30)

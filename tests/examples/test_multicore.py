"""multicore: every core's band against mathematics done anew, and whole lines from all of them."""

import random
import re
from pathlib import Path

import pytest

from vc4lab.soc.machine import Machine, Stop

CARD = Path(__file__).parents[2] / "examples" / "multicore" / "sdcard"
WIDTH, HEIGHT, CORES = 640, 480, 4
BAND = HEIGHT // CORES
LABEL = (90, 34)
CENTRE = -0.7455, 0.1119
STEP = int(0.0055 / WIDTH * (1 << 26)) / (1 << 26)  # the program has 26 bits after the point
MOST = 200
# Channels (red 0, green 1, blue 2) of a band's colours: the first of a pair is not the smaller one.
TINTS = [[(2, 1), (1, 0)], [(1, 0), (1, 2)], [(0, 1), (1, 2)], [(0, 2), (2, 1)]]


def escape_time(point: complex) -> int:
    z = 0j
    for step in range(MOST + 40):
        if abs(z) > 4:
            return step
        z = z * z + point
    return MOST + 40


def escapes(x: int, y: int) -> bool | None:
    """Whether a pixel's point leaves the circle of radius 4 in time; None if that is close."""
    middle = complex(CENTRE[0] + (x - WIDTH / 2) * STEP, CENTRE[1] + (y - HEIGHT / 2) * STEP)
    places = [middle + STEP * offset for offset in (0, 0.3, -0.3, 0.3j, -0.3j)]
    times = [escape_time(place) for place in places]
    if max(times) - min(times) > 40 or abs(times[0] - MOST) < 40:
        return None
    return times[0] < MOST


@pytest.mark.parametrize("board", ["pi2", "pi3"])
def test_four_cores_draw_a_band_each(board: str) -> None:
    machine = Machine(CARD, board=board)
    result = machine.run(seconds=10)
    assert result.reason is Stop.HALTED, result.message
    assert [item.code for item in machine.reporter.items] == ["SOC-093"], "its caches are on"

    words = machine.uart.text
    line = re.compile(
        r"multicore: .*|core [0-3]: (\d+ %|awake at \d+ us|my band took \d+ ms)"
        r"|480 rows by four cores in \d+ ms|done"
    )
    for text in words.splitlines():
        assert line.fullmatch(text), text  # two cores never speak at the same time
    for core in range(CORES):
        said = re.findall(rf"core {core}: (\d+) %", words)
        assert said == ["25", "50", "75", "100"]
        assert f"core {core}: my band took" in words
        assert (f"core {core}: awake" in words) == (core > 0)
    # All of them at the same time: none is done before all have begun.
    assert words.index("took") > max(words.index(f"core {core}: 25 %") for core in range(CORES))

    image = machine.screen.image
    assert image is not None
    picture = image.convert("RGB")
    assert picture.size == (WIDTH, HEIGHT)
    places = random.Random(2835)
    looked = 0
    while looked < 400:
        x, y = places.randrange(WIDTH), places.randrange(HEIGHT)
        core, row = divmod(y, BAND)
        leaves = escapes(x, y)
        if leaves is None or (x < LABEL[0] and row < LABEL[1]):
            continue
        looked += 1
        pixel = picture.getpixel((x, y))
        assert isinstance(pixel, tuple)
        assert (pixel != (0, 0, 0)) == leaves, (x, y)
        if leaves:
            assert all(pixel[a] >= pixel[b] for a, b in TINTS[core]), (x, y, pixel)

"""qpu_sum: the same numbers added up here, and bars as high as they should be."""

from itertools import islice
from pathlib import Path

import pytest

from vc4lab.soc.machine import Machine, Stop

CARD = Path(__file__).parents[2] / "examples" / "qpu_sum" / "sdcard"
QPUS, PART = 12, 256 * 16
BAR_UNIT, BOTTOM = 320_000, 350
BLUE, ORANGE = (90, 170, 255), (255, 170, 40)


def noise():
    value = 1
    while True:
        value ^= value << 13 & 0xFFFFFFFF
        value ^= value >> 17
        value ^= value << 5 & 0xFFFFFFFF
        yield value


def part_sums() -> list[int]:
    numbers = noise()
    return [
        sum((value >> 16) * (part + 1) * (QPUS - part) >> 6 for value in islice(numbers, PART))
        for part in range(QPUS)
    ]


@pytest.mark.parametrize("board", ["zero", "pi2", "pi3"])
def test_twelve_qpus_add_up_an_array(board: str) -> None:
    machine = Machine(CARD, board=board)
    result = machine.run(seconds=10)
    assert result.reason is Stop.HALTED, result.message
    assert not machine.reporter.items
    sums = part_sums()
    words = machine.uart.text
    for who in ("CPU", "TMU, QUEUE", "DMA, FIRMWARE"):
        assert f"{who}: {sum(sums)} in " in words
    assert "all sums agree" in words

    image = machine.screen.image
    assert image is not None
    picture = image.convert("RGB")
    for part, value in enumerate(sums):
        for way, colour in enumerate((BLUE, ORANGE)):
            x = 40 + 47 * part + 20 * way + 9
            top = BOTTOM - value // BAR_UNIT
            assert picture.getpixel((x, BOTTOM - 1)) == colour
            assert picture.getpixel((x, top)) == colour
            assert picture.getpixel((x, top - 1)) != colour


def test_the_queue_and_the_firmware_start_each_program_once() -> None:
    machine = Machine(CARD)
    machine.run(seconds=10)
    completed = machine.v3d.read(0x43C) >> 16 & 0xFF
    assert completed == QPUS  # counted anew by the second run

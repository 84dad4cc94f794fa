"""irq_timer: every interrupt counted and shown, the LED in step, the core asleep in between."""

from itertools import pairwise
from pathlib import Path

import pytest

from vc4lab.soc.board import BOARDS
from vc4lab.soc.machine import Machine, Stop

CARD = Path(__file__).parents[2] / "examples" / "irq_timer" / "sdcard"
PERIODS_MS = (100, 250, 40)
COLOURS = ((60, 220, 90), (255, 170, 40), (90, 170, 255))
OFF = (44, 50, 66)
LAMPS = 20
LED_ON_PI3 = 130 - 128  # of the firmware's GPIO expander


def lamp(ticks: int) -> int:
    """There and back again."""
    place = ticks % (2 * (LAMPS - 1))
    return min(place, 2 * (LAMPS - 1) - place)


def lamp_colours(machine: Machine, row: int) -> list[object]:
    image = machine.screen.image
    assert image is not None
    picture = image.convert("RGB")
    return [picture.getpixel((40 + 28 * at + 12, 40 + 140 * row + 48 + 12)) for at in range(LAMPS)]


@pytest.mark.parametrize("board", list(BOARDS))
def test_ticks_are_counted_shown_and_blinked(board: str) -> None:
    machine = Machine(CARD, board=board)
    result = machine.run(seconds=2.03)
    assert result.reason is Stop.SECONDS, result.message
    assert not machine.reporter.items

    timers = 2 if BOARDS[board].local is None else 3
    counts = [2000 // period for period in PERIODS_MS[:timers]]
    names = ("SYSTEM TIMER", "ARM TIMER", "CORE TIMER")
    lines = machine.uart.text.splitlines()[1:]
    assert len(lines) == 2
    for seconds, line in enumerate(lines, 1):
        moment, ticks = line.split(" us: ")
        assert int(moment) == pytest.approx(seconds * 1_000_000, abs=500)
        assert ticks == ", ".join(
            f"{name} {count * seconds // 2}" for name, count in zip(names, counts, strict=False)
        )

    for row, count in enumerate(counts):
        lit = [COLOURS[row] if at == lamp(count) else OFF for at in range(LAMPS)]
        assert lamp_colours(machine, row) == lit

    # It sleeps: of a second's 500 million instructions hardly any are executed.
    assert machine.counter.count < 20_000_000


@pytest.mark.parametrize("board", [name for name, row in BOARDS.items() if row.led_gpio])
def test_the_led_blinks_on_its_pin(board: str) -> None:
    machine = Machine(CARD, board=board)
    machine.run(seconds=0.95)
    row = BOARDS[board]
    changes = [event for event in machine.gpio.log if event.pin == row.led_gpio]
    assert len(changes) >= 9
    blinks = changes[-9:]  # before them it may have been switched off
    assert [event.level ^ row.led_inverted for event in blinks] == [1, 0] * 4 + [1]
    for before, after in pairwise(blinks):
        assert after.at - before.at == pytest.approx(100_000_000, abs=20_000)


def test_the_led_of_a_pi3_is_switched_by_the_firmware() -> None:
    machine = Machine(CARD, board="pi3")
    for seconds, level in ((0.55, 1), (0.1, 0), (0.1, 1)):
        machine.run(seconds=seconds)
        assert machine.videocore.expander[LED_ON_PI3] == level

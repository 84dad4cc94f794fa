"""Mistakes that people make: the first message names each, and nothing misleads."""

import pytest
from tests.mistakes.mistakes import MISTAKES, Mistake
from tests.mistakes.scene import EXAMPLES, Scene

from vc4lab.diagnostics import Reporter
from vc4lab.soc.devices.serial.serial import SerialPort
from vc4lab.soc.machine import Machine

ABOUT_PICTURES = ("DRAW-", "SOC-14")


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda one: one.name)
def test_the_first_message_names_the_mistake(mistake: Mistake) -> None:
    scene = Scene(mistake.example, mistake.change)
    scene.machine.run()
    found = scene.reporter.items
    assert found, "nothing is reported"
    assert found[0].code == mistake.code, scene.reporter.summary()
    assert mistake.words in found[0].message
    others = {item.code for item in found} - {mistake.code}
    assert others <= mistake.others, scene.reporter.summary()


@pytest.mark.parametrize("example", ["triangle", "vertex_shader"])
def test_without_a_mistake_nothing_is_reported(example: str) -> None:
    scene = Scene(example, lambda _scene: None)
    scene.machine.run()
    assert not scene.reporter.items, scene.reporter.summary()
    assert scene.machine.screen.image is not None


@pytest.mark.parametrize("example", ["framebuffer", "gears", "naan", "qpu_sum", "irq_timer", "audio"])
def test_the_other_examples_have_their_pictures(example: str) -> None:
    reporter = Reporter()
    Machine(EXAMPLES / example / "sdcard", reporter=reporter, serial=SerialPort()).run(frames=2, seconds=1.0)
    assert not [item for item in reporter.items if item.code.startswith(ABOUT_PICTURES)]

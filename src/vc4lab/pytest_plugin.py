"""A pytest fixture for people who test bare-metal programs.

def test_it_draws(pi):
    machine = pi("sdcard")
    machine.run(frames=1)
    assert machine.screen.image.getpixel((320, 240)) == (255, 0, 0)

What the program printed and what vc4lab had to say is shown with a test that fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from vc4lab.soc.machine import Machine


@pytest.fixture
def pi(request: pytest.FixtureRequest) -> Iterator[Callable[..., Machine]]:
    """`pi(card, typed="", **options)`: a `vc4lab.Machine` with a program in it.

    The card is a folder or an image, looked for beside the test's file first; `typed` is typed on
    its serial line; the options are those of `Machine`.
    """
    machines: list[Machine] = []

    def boot(path: str | Path, *, typed: str | bytes = "", **options: Any) -> Machine:
        from vc4lab.soc.machine import Machine

        beside = request.path.parent / path
        machine = Machine(beside if beside.exists() else path, **options)
        if typed:
            machine.serial.type(typed)
        machines.append(machine)
        return machine

    yield boot
    for number, machine in enumerate(machines, 1):
        title = "vc4lab" if len(machines) == 1 else f"vc4lab machine {number}"
        if machine.uart.text:
            request.node.add_report_section("teardown", f"{title}: serial line", machine.uart.text)
        if machine.reporter.items:
            said = "\n".join(str(item) for item in machine.reporter.items)
            request.node.add_report_section("teardown", f"{title}: diagnostics", said)

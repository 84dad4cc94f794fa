"""Pytest fixtures for tests of bare-metal programs, of Linux programs that use the GPU, of Linux.

def test_it_draws(pi):
    machine = pi("sdcard")
    machine.run(frames=1)
    assert machine.screen.image.getpixel((320, 240)) == (255, 0, 0)

def test_the_cube(drm):
    result = drm(modes="640x480").run(["kmscube"], frames=3)
    assert result.screen.image.size == (640, 480)

def test_in_linux(linux):
    assert linux().run(["kmscube"], frames=3).code is None
    assert linux().screen.image.size == (1920, 1080)

What the program printed and what vc4lab had to say is shown with a test that fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from vc4lab.drm.device.device import DrmDevice
    from vc4lab.linux.running import Linux
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


@pytest.fixture
def drm(request: pytest.FixtureRequest) -> Iterator[Callable[..., DrmDevice]]:
    """`drm(modes="800x600", **options)`: a `vc4lab.DrmDevice` that Linux programs run on.

    The options are those of `DrmDevice`; pictures come as fast as programs make them unless
    `paced=True`. Where programs cannot be supervised, the test is skipped.
    """
    from vc4lab.drm.device.host import why_not

    if why_not():
        pytest.skip(f"programs cannot run on a virtual GPU here: {why_not()}")
    devices: list[DrmDevice] = []

    def make(**options: Any) -> DrmDevice:
        from vc4lab.drm.device.device import DrmDevice

        made = DrmDevice(**{"paced": False, **options})
        devices.append(made)
        return made

    yield make
    for number, device in enumerate(devices, 1):
        device.close()
        title = "vc4lab" if len(devices) == 1 else f"vc4lab device {number}"
        if device.reporter.items:
            said = "\n".join(str(item) for item in device.reporter.items)
            request.node.add_report_section("teardown", f"{title}: diagnostics", said)


@pytest.fixture
def linux(request: pytest.FixtureRequest) -> Iterator[Callable[..., Linux]]:
    """`linux(cores=1, append="", programs=())`: a booted `vc4lab.Linux` from a saved state.

    The options are those of `LinuxPlan`; the same options give the same system as before within a
    test. Where `vc4lab linux --setup` has not been run, the test is skipped.
    """
    from vc4lab.linux.boots import BootFailed, LinuxPlan
    from vc4lab.linux.running import Linux

    booted: dict[LinuxPlan, Linux] = {}

    def boot(**options: Any) -> Linux:
        plan = LinuxPlan(**options)
        if plan not in booted:
            try:
                booted[plan] = Linux.booted(plan)
            except BootFailed as reason:
                pytest.skip(f"Linux cannot be booted here: {reason}")
        return booted[plan]

    yield boot
    for made in booted.values():
        if made.machine.reporter.items:
            said = "\n".join(str(item) for item in made.machine.reporter.items)
            request.node.add_report_section("teardown", "vc4lab linux: diagnostics", said)

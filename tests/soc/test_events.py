"""What listeners of a machine hear."""

from collections.abc import Callable
from pathlib import Path

import pytest

from vc4lab.soc import events, hardware
from vc4lab.soc import machine as machine_module
from vc4lab.soc.events import RunEnded, V3DMade, Vsync
from vc4lab.soc.machine import Machine, Stop
from vc4lab.v3d.events import FrameDone

GEARS = Path(__file__).parents[2] / "examples" / "gears" / "sdcard"


def test_vsyncs_and_the_end_of_a_run() -> None:
    machine = Machine(GEARS)
    heard: list[object] = []
    numbers: list[int] = []
    machine.listeners.vsync.subscribe(heard.append)
    machine.listeners.run_ended.subscribe(heard.append)
    one = machine.listeners.vsync.subscribe(lambda event: numbers.append(event.number))
    result = machine.run(seconds=0.1)
    one.close()
    assert heard[:-1] == [Vsync(number) for number in range(1, machine.vsyncs + 1)]
    assert heard[-1] == RunEnded(result)
    assert numbers == [event.number for event in heard[:-1] if isinstance(event, Vsync)]
    before = len(numbers)
    machine.run(seconds=0.1)
    assert len(numbers) == before


def test_the_v3d_is_heard_from_its_first_job_on() -> None:
    machine = Machine(GEARS)
    frames: list[FrameDone] = []
    made: list[V3DMade] = []
    machine.listeners.v3d_made.subscribe(made.append)
    machine.listeners.v3d_made.subscribe(
        lambda event: event.v3d.listeners.frame_done.subscribe(frames.append)
    )
    machine.run(frames=2)
    assert [event.v3d for event in made] == [machine.v3d]
    assert frames[0] == FrameDone(1)
    assert len(frames) >= 2


def test_what_a_listener_raises_ends_the_run_and_no_more() -> None:
    def fails(_event: object) -> None:
        raise LookupError("not found")

    machine, other = Machine(GEARS), Machine(GEARS)
    listening: list[Callable[[], None]] = []

    def listen(event: V3DMade) -> None:
        listening.append(event.v3d.listeners.frame_done.subscribe(fails).close)

    machine.listeners.v3d_made.subscribe(listen)
    with pytest.raises(LookupError, match="not found"):
        machine.run(frames=2)
    listening[0]()
    vsync = machine.listeners.vsync.subscribe(fails)
    with pytest.raises(LookupError, match="not found"):
        machine.run(seconds=0.1)
    vsync.close()
    assert machine.run(frames=2).reason is Stop.FRAMES
    other.run(frames=machine.frames.count)
    image, expected = machine.screen.image, other.screen.image
    assert image is not None
    assert expected is not None
    assert image.tobytes() == expected.tobytes()


def test_no_event_is_made_without_a_listener(monkeypatch: pytest.MonkeyPatch) -> None:
    def made(*_arguments: object) -> None:
        raise AssertionError("an event that no one hears")

    for module in (events, hardware, machine_module):
        for name in ("Vsync", "RunEnded", "V3DMade"):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, made)
    machine = Machine(GEARS, forgiving=True)  # else frames without a picture are listened for
    machine.run(frames=2)
    machine.listeners.vsync.subscribe(lambda _event: None)
    with pytest.raises(AssertionError, match="no one hears"):
        machine.run(frames=2)


def test_the_old_attributes_take_one_listener_each() -> None:
    machine = Machine(GEARS)
    vsyncs: list[int] = []
    ends: list[object] = []
    machine.on_vsync = lambda: vsyncs.append(machine.vsyncs)
    machine.on_end = ends.append
    result = machine.run(seconds=0.1)
    assert vsyncs == list(range(1, machine.vsyncs + 1))
    assert ends == [result]

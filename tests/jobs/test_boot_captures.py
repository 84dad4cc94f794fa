"""Jobs of board programs, captured and run again: the same bytes, whatever frame a capture begins with."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import ImageChops

from vc4lab.jobs.load import open_jobs
from vc4lab.jobs.model import JobsCapture, Origin, PagesLoaded, Settled, Stored, Written, Zeroed
from vc4lab.jobs.player import JobsPlayer
from vc4lab.jobs.recorder import JobsRecorder
from vc4lab.jobs.store import save_jobs
from vc4lab.soc.debug.captured import capture
from vc4lab.soc.machine import Machine

EXAMPLES = Path(__file__).parents[2] / "examples"


def captured(name: str, frames: int, *, ram: str = "zero", **options: object) -> JobsRecorder:
    """What an example has the V3D do."""
    machine = Machine(EXAMPLES / name / "sdcard", ram=ram)
    recorder = JobsRecorder(JobsCapture("boot", name), **options)  # type: ignore[arg-type]
    capture(machine, recorder)
    machine.run(frames=frames, seconds=1.0)
    recorder.close()
    return recorder


def replayed(found: JobsCapture) -> JobsPlayer:
    """Runs a capture, all of whose surfaces must come out as they were."""
    player = JobsPlayer(found)
    for frame, result in player.play():
        assert result.stored, f"nothing of frame {frame.number} can be compared"
        assert not result.differing
        assert result.image is not None
        assert result.image.size == (640, 480)
    return player


@pytest.mark.parametrize("name", ["gears", "naan", "triangle", "vertex_shader", "qpu_sum"])
def test_the_first_frame_comes_out_the_same(name: str, tmp_path: Path) -> None:
    recorder = captured(name, 1)
    path = tmp_path / "x.vc4cap"
    save_jobs(recorder.capture, path)
    found = open_jobs(path)
    assert [one.number for one in found.frames] == [1]
    assert found.frames[0].events == recorder.capture.frames[0].events
    replayed(found)


@pytest.mark.parametrize("ram", ["zero", "noise"])
def test_a_capture_may_begin_in_the_middle(ram: str) -> None:
    recorder = captured("gears", 4, ram=ram, first=3, last=4)
    assert [one.number for one in recorder.capture.frames] == [3, 4]
    assert recorder.is_done
    first, second = recorder.capture.frames
    assert first.start is not None
    assert second.start is None
    replayed(recorder.capture)


def test_the_picture_is_the_one_that_was_shown(tmp_path: Path) -> None:
    recorder = captured("gears", 2, first=2)
    shown = recorder.capture.frames[0].picture
    result = JobsPlayer(recorder.capture).run(recorder.capture.frames[0])
    assert result.image is not None
    assert not isinstance(shown, bytes | None)
    assert ImageChops.difference(result.image, shown.convert("RGB")).getbbox() is None


def test_pages_are_kept_once() -> None:
    """What the program has not changed since the frame before is not kept again."""
    frames = captured("naan", 3).capture.frames
    pages = [sum(one.pages for one in f.events if isinstance(one, PagesLoaded | Zeroed)) for f in frames]
    assert pages[0] > 60
    assert max(pages[1:]) < 30


def test_other_memory_is_noticed() -> None:
    """A page less, and the replay says so: the check sums are of what was drawn."""
    found = captured("naan", 1).capture
    events = found.frames[0].events
    largest = max((one for one in events if isinstance(one, PagesLoaded)), key=lambda one: one.pages)
    events.remove(largest)
    result = JobsPlayer(found).run(found.frames[0])
    assert result.differing


def test_events_say_where_they_come_from() -> None:
    events = captured("qpu_sum", 1).capture.frames[0].events
    assert any(isinstance(one, Origin) and one.text.startswith("0x0000") for one in events)
    places = [place for place, one in enumerate(events) if isinstance(one, Settled)]
    starts = [n for n, one in enumerate(events) if isinstance(one, Written) and one.register == "SRQPC"]
    assert places
    assert starts[0] < places[0]
    assert any(isinstance(one, Stored) for one in events[places[0] :])


def test_a_full_capture_says_so_and_keeps_what_it_has() -> None:
    said: list[str] = []
    recorder = captured("naan", 3, limit=16 << 12, tell=said.append)
    assert recorder.is_full
    assert len(said) == 1
    assert "full" in said[0]
    assert not recorder.capture.frames
    whole = captured("gears", 3)
    room = len(whole.capture.pages or ()) << 12
    less = captured("gears", 3, limit=room - 4096, tell=said.append)
    assert less.is_full
    assert [one.number for one in less.capture.frames] == [1, 2]
    replayed(less.capture)


def test_frames_around_a_message() -> None:
    """Each of these stands alone: it can be run without those before."""
    machine = Machine(EXAMPLES / "gears" / "sdcard")
    recorder = JobsRecorder(JobsCapture("boot"), on="CLE-001")
    capture(machine, recorder)
    machine.frames.listeners.append(
        lambda count: machine.reporter.report("CLE-001", "for a test") if count == 3 else None
    )
    machine.run(frames=6)
    recorder.close()
    frames = recorder.capture.frames
    assert [one.number for one in frames] == [3, 4, 5]
    assert all(one.start is not None for one in frames)
    replayed(recorder.capture)
    del frames[0]
    replayed(recorder.capture)


def test_no_message_no_frames() -> None:
    assert not captured("gears", 2, on="CLE-001").capture.frames


def test_nothing_listens_without_a_capture() -> None:
    """And it ends when the last frame was shown."""
    recorder = captured("gears", 3, first=1, last=2)
    assert recorder.is_done
    assert [one.number for one in recorder.capture.frames] == [1, 2]
    machine = Machine(EXAMPLES / "gears" / "sdcard")
    capture(machine, recorder)
    machine.run(frames=2)
    heard = vars(machine.v3d.listeners)
    watched = ("register_written", "frame_tiles", "memory_used", "programs_run", "powered_on")
    assert not any(heard[name].subscriptions for name in watched)

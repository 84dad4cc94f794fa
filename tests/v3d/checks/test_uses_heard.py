"""Who listens for uses of memory hears of all of them, and nothing is drawn another way for it."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.support.frames import Frame

from vc4lab.diagnostics import Reporter
from vc4lab.drm.kernel.hardware import run_job
from vc4lab.drm.recorded.jobs import RecordedRun
from vc4lab.v3d.cle import binning_context
from vc4lab.v3d.core import V3D
from vc4lab.v3d.events import MemoryUse, Use

JOBS = Path(__file__).parents[2] / "data" / "vc4-jobs"
RUNS = ("glmark2_ideas", "glmark2_bump_bump-render_normals", "kmscube_smooth", "sdl_testdraw2")


class Run:
    """A recorded run, again and again."""

    def __init__(self, name: str, *, threads: int = 1) -> None:
        self.run = RecordedRun(JOBS / name, Reporter())
        self.reporter = Reporter()
        self.v3d = V3D(self.run.memory, self.reporter, threads=threads)
        self.python = 0
        """Draws and modes that met Python, of both lists; not record 113, which has one way."""
        self._count()

    def _count(self) -> None:
        def counted(function: Any) -> Any:
            def call(*arguments: Any, **options: Any) -> Any:
                self.python += 1
                return function(*arguments, **options)

            return call

        lint, ranges = self.v3d.lint, self.v3d.binning.ranges
        lint.binning_mode = counted(lint.binning_mode)  # type: ignore[method-assign]
        ranges.draw = counted(ranges.draw)  # type: ignore[method-assign]
        preparer: Any = self.v3d.frames.preparer
        preparer.find = counted(preparer.find)

    def draw(self) -> bytes:
        """Draws all jobs; the bytes of all buffers."""
        self.python = 0
        parts = []
        for job in self.run.jobs:
            assert run_job(self.v3d, job.build(self.run.memory))
            for buffer in job.submit.buffers:
                parts.append(self.run.memory.read(buffer.address, buffer.size))
        return b"".join(parts)

    def heard(self) -> list[MemoryUse]:
        """What is told while all jobs are drawn once."""
        heard: list[MemoryUse] = []
        with self.v3d.listeners.memory_used.subscribe(heard.append):
            self.draw()
        return heard


def test_the_first_tile_list_of_each_frame_is_named() -> None:
    frame = Frame()
    heard: list[MemoryUse] = []
    frame.v3d.listeners.memory_used.subscribe(heard.append)
    lists = []
    for _ in range(3):
        start, end, tiles = frame.job.binning(b"")
        frame.job.run(frame.v3d, (start, end), frame.job.rendering(tiles, frame.surface))
        lists.append(tiles)
    assert [use.address for use in heard if use.use is Use.TILE_LIST] == lists
    assert len(set(lists)) == 3


@pytest.mark.parametrize("name", RUNS)
def test_what_was_met_before_names_what_it_named_when_it_was_new(name: str) -> None:
    new, known = Run(name), Run(name)
    for _ in range(3):
        known.draw()
    expected, heard = new.heard(), known.heard()
    assert new.python > 0
    assert known.python == 0, "a listener makes nothing meet Python"
    assert Counter(heard) == Counter(expected)
    kinds = {use.use for use in heard}
    wanted = {Use.LIST, Use.TILE_MEMORY, Use.TILE_STATE, Use.CODE, Use.UNIFORMS, Use.SURFACE}
    assert kinds >= wanted | {Use.SHADER_RECORD, Use.ATTRIBUTES}
    assert new.reporter.items == known.reporter.items


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", RUNS)
def test_a_listener_changes_no_byte(name: str, threads: int) -> None:
    plain, listened = Run(name, threads=threads), Run(name, threads=threads)
    for number in range(4):
        if number % 2:
            heard: list[MemoryUse] = []
            with listened.v3d.listeners.memory_used.subscribe(heard.append):
                there = listened.draw()
            assert len(heard) > 10
        else:
            there = listened.draw()
        assert there == plain.draw()
        assert listened.python == plain.python
    assert plain.reporter.counts == listened.reporter.counts


def test_notes_beyond_the_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """The native stops for Python to look, and goes on by itself."""
    whole, pieces = Run("glmark2_ideas"), Run("glmark2_ideas")
    for run in (whole, pieces):
        for _ in range(3):
            run.draw()
    expected = whole.heard()
    monkeypatch.setattr(binning_context, "MAX_NOTES", 3)
    assert pieces.heard() == expected
    assert pieces.python == 0
    assert not pieces.v3d.binning.native.context.note_count


def test_who_has_left_costs_no_notes() -> None:
    run = Run("tri_arm64")
    for _ in range(3):
        run.draw()
    run.heard()
    context = run.v3d.binning.native.context
    assert context.note_room
    run.draw()
    assert not context.note_room
    assert not context.note_count

"""Who listens for uses of memory hears of all of them, and nothing is drawn another way for it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.support.golden_lists import in_python

from vc4lab.diagnostics import Reporter
from vc4lab.drm.kernel.hardware import run_job
from vc4lab.drm.recorded.jobs import RecordedRun
from vc4lab.v3d.cle import binning, walk
from vc4lab.v3d.core import V3D
from vc4lab.v3d.events import MemoryUse
from vc4lab.v3d.memory_uses import Use

JOBS = Path(__file__).parents[2] / "data" / "vc4-jobs"
RUNS = ("glmark2_ideas", "glmark2_bump_bump-render_normals", "kmscube_smooth", "sdl_testdraw2")


class Run:
    """A recorded run, again and again."""

    def __init__(self, name: str, *, native: bool = True, threads: int = 1) -> None:
        self.run = RecordedRun(JOBS / name, Reporter())
        self.reporter = Reporter()
        self.v3d = V3D(self.run.memory, self.reporter, threads=threads)
        self.python = 0
        """Draws and modes that met Python, of both lists; not record 113, which has one way."""
        if not native:
            in_python(self.v3d)
            preparer: Any = self.v3d.frames.preparer
            fill = preparer._draws.fill
            preparer._draws.fill = lambda *a, **o: fill(*a, **(o | {"native": False}))
        self._count()

    def _count(self) -> None:
        def counted(function: Any) -> Any:
            def call(*arguments: Any) -> Any:
                self.python += 1
                return function(*arguments)

            return call

        table = self.v3d.executor._tables[0]
        for identity in (32, 33, 112):
            table[identity] = counted(table[identity])
        draws: Any = self.v3d.frames.preparer._draws
        draws._prepare = counted(draws._prepare)

    def draw(self) -> bytes:
        """Draws all jobs; the bytes of all buffers."""
        self.python = 0
        out = b""
        for job in self.run.jobs:
            assert run_job(self.v3d, job.build(self.run.memory))
            for buffer in job.submit.buffers:
                out += bytes(self.run.memory.read(buffer.address, buffer.size))
        return out

    def heard(self) -> list[MemoryUse]:
        """What is told while all jobs are drawn once."""
        heard: list[MemoryUse] = []
        with self.v3d.listeners.memory_used.subscribe(heard.append):
            self.draw()
        return heard


@pytest.mark.parametrize("name", RUNS)
def test_native_code_names_what_python_names(name: str) -> None:
    golden, fast = Run(name, native=False), Run(name)
    for _ in range(3):
        golden.draw()
        fast.draw()
    expected, heard = golden.heard(), fast.heard()
    assert golden.python > 0
    assert fast.python == 0, "a listener makes nothing meet Python"
    assert Counter(heard) == Counter(expected)
    kinds = {use.use for use in heard}
    wanted = {Use.LIST, Use.TILE_MEMORY, Use.TILE_STATE, Use.CODE, Use.UNIFORMS, Use.SURFACE}
    assert kinds >= wanted | {Use.SHADER_RECORD, Use.ATTRIBUTES}
    assert golden.reporter.items == fast.reporter.items


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
    """The walker stops for Python to look, and goes on by itself."""
    whole, pieces = Run("glmark2_ideas"), Run("glmark2_ideas")
    for run in (whole, pieces):
        for _ in range(3):
            run.draw()
    expected = whole.heard()
    for module in (walk, binning):
        monkeypatch.setattr(module, "MOST_NOTES", 3)
    assert pieces.heard() == expected
    assert pieces.python == 0
    assert not pieces.v3d.binning._walker.context.note_count


def test_who_has_left_costs_no_notes() -> None:
    run = Run("tri_arm64")
    for _ in range(3):
        run.draw()
    run.heard()
    context = run.v3d.binning._walker.context
    assert context.note_room
    run.draw()
    assert not context.note_room
    assert not context.note_count

"""Pipelines that are drawn with again and again are compiled once more, thoroughly.

The first build of a pipeline is quick, because a frame waits for it. Now and then (`LOOK_AFTER`)
the draws of a frame are looked at. What an earlier look has seen, too, is compiled by all of LLVM's
optimisations beside the frames, in a process of its own, and takes the place of the first build
between two frames. Both give the same bytes. The disk cache keeps it: the next start begins with
it.

The thread that waits for that process also gives back the code that was replaced, and what the
compiler has used of the heap for first builds: without it that stays (82 of 148 MiB after the 22
recorded runs).
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Iterable
from itertools import cycle
from typing import TYPE_CHECKING

from vc4lab.memory.host import give_back
from vc4lab.qpu.run.environment import Unsupported
from vc4lab.simd import seconds_since_build
from vc4lab.v3d.draws.thorough_process import ThoroughProcess
from vc4lab.v3d.fragment.pipeline import thorough_pipeline

if TYPE_CHECKING:
    from vc4lab.v3d.fragment.pipeline import Pipeline

LOOK_AFTER = 11, 13, 17, 19, 23
"""Frames from one look to the next, in turn. A picture of a program may take ten frames of the V3D
or fifty, always in the same order, and each of them is to be seen.
"""
MAX_SEEN = 1024
"""Pipelines that are remembered from one look to another."""
PAUSE = 0.2
"""Seconds before each build, and between two looks whether it may begin."""
SETTLED = 2.0
"""Seconds since the last build that a frame waited for: it has the cores first."""
IDLE = 20.0
"""Seconds for which the process stays without work."""
NAME = "vc4lab-refining"
"""The thread's."""
MAX_ASKED = 64
"""Pipelines of one V3D that wait for the thread."""

Refined = dict[int, "Pipeline"]
"""The thorough build by the `id` of the first one."""


class _Builder:
    """The thread that builds; it ends with the last build, or with the program."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[tuple[Pipeline, deque[tuple[Pipeline, Pipeline]]]] = deque()
        self._replaced: deque[Pipeline] = deque()
        self._runs = False

    def ask(self, pipeline: Pipeline, done: deque[tuple[Pipeline, Pipeline]]) -> None:
        """Puts (`pipeline`, its thorough build) into `done` some time."""
        with self._lock:
            self._waiting.append((pipeline, done))
            self._start()

    def let_go(self, replaced: Iterable[Pipeline]) -> None:
        """Gives code back that nothing draws with any more. In a frame that would wait for what is
        being compiled.
        """
        with self._lock:
            self._replaced.extend(replaced)
            self._start()

    def _start(self) -> None:
        if not self._runs:
            self._runs = True
            threading.Thread(target=self._run, name=NAME).start()

    def _run(self) -> None:
        process = ThoroughProcess(threading.main_thread().is_alive)
        try:
            self._work(process)
        finally:
            process.end()

    def _work(self, process: ThoroughProcess) -> None:
        program = threading.main_thread()
        worked = -math.inf
        while True:
            program.join(PAUSE)
            if self._replaced:
                self._replaced.clear()
                give_back()
            if program.is_alive() and self._waiting and seconds_since_build() < SETTLED:
                continue
            with self._lock:
                if not program.is_alive():
                    self._waiting.clear()
                if not self._waiting:
                    rests = program.is_alive() and time.monotonic() - worked < IDLE
                    if self._replaced or rests:
                        continue
                    self._runs = False
                    return
                pipeline, done = self._waiting.popleft()
            try:
                done.append((pipeline, thorough_pipeline(pipeline.key, compiled=process.build)))
            except (Unsupported, MemoryError, RuntimeError):
                continue  # the first build stays
            finally:
                worked = time.monotonic()
                del pipeline, done
            give_back()


_builder = _Builder()


class Refiner:
    """Which pipelines of one V3D come again, and what has become of them."""

    def __init__(self) -> None:
        self._pauses = cycle(LOOK_AFTER)
        self.left = next(self._pauses)
        """Frames until `look` is to be called; who draws them counts."""
        self._seen: dict[int, Pipeline] = {}
        """Pipelines that looks have seen, by `id`; kept, so that no other gets its `id`."""
        self._asked: dict[int, Pipeline] = {}
        self._done: deque[tuple[Pipeline, Pipeline]] = deque()

    def look(self, drawn: Iterable[Pipeline]) -> Refined:
        """Takes the pipelines of a frame; returns those that are to be replaced from now on."""
        self.left = next(self._pauses)
        unrefined = {id(pipeline): pipeline for pipeline in drawn if not pipeline.thorough}
        for number, pipeline in unrefined.items():
            if number not in self._seen:
                if len(self._seen) >= MAX_SEEN:
                    del self._seen[next(iter(self._seen))]
                self._seen[number] = pipeline
            elif number not in self._asked and len(self._asked) < MAX_ASKED:
                self._asked[number] = pipeline
                _builder.ask(pipeline, self._done)
        refined = {}
        while self._done:
            pipeline, thorough = self._done.popleft()
            refined[id(pipeline)] = thorough
        return refined

    def let_go(self, refined: Refined) -> None:
        """Nothing draws with the first builds of these any more."""
        replaced = [self._asked.pop(number) for number in refined]
        for number in refined:
            self._seen.pop(number, None)
        _builder.let_go(replaced)

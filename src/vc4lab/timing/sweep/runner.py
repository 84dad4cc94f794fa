"""Runs the points of a sweep: on all cores of this machine, or by a scheduler of Dask.

A point is anything that has a key; the work on it is a function of a module (workers import it by its name).
Where no outcome comes of a point, `broken` makes one of the point and a sentence.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Protocol, TypeVar


class Keyed(Protocol):
    """Can be a point: its key names it to a scheduler, equal ones are run once."""

    @property
    def key(self) -> str: ...


Point = TypeVar("Point", bound=Keyed)
Outcome = TypeVar("Outcome")

TIMEOUT = 10
"""Seconds that a scheduler has to answer."""
AHEAD = 4
"""Points of each process that wait for it."""


class NoScheduler(ValueError):  # noqa: N818 - said to the user as it is
    """Dask is not installed, or its scheduler does not answer; in words."""


def run_points(
    work: Callable[[Point], Outcome],
    points: Sequence[Point],
    broken: Callable[[Point, str], Outcome],
    *,
    processes: int | None = None,
    scheduler: str | None = None,
) -> Iterator[Outcome]:
    """Yield the result of each point, by the workers of a scheduler if its address is given, else here.

    Raises NoScheduler.
    """
    if scheduler is not None:
        return run_by_scheduler(work, points, broken, scheduler)
    return run_here(work, points, broken, processes)


def run_here(
    work: Callable[[Point], Outcome],
    points: Sequence[Point],
    broken: Callable[[Point, str], Outcome],
    processes: int | None = None,
) -> Iterator[Outcome]:
    """Yield the result of each point once it is done; points of one run go to the same processes."""
    count = min(processes or os.cpu_count() or 1, max(len(points), 1))
    if count == 1:
        yield from map(work, points)
        return
    pool = ProcessPoolExecutor(count, multiprocessing.get_context("spawn"))
    try:
        left = iter(points)
        running = {}
        for point in left:
            running[pool.submit(work, point)] = point
            if len(running) >= AHEAD * count:
                break
        while running:
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                point = running.pop(future)
                try:
                    yield future.result()
                except BrokenProcessPool:
                    yield broken(point, "its process ended")
                    return
                following = next(left, None)
                if following is not None:
                    running[pool.submit(work, following)] = following
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def run_by_scheduler(
    work: Callable[[Point], Outcome],
    points: Sequence[Point],
    broken: Callable[[Point, str], Outcome],
    address: str,
) -> Iterator[Outcome]:
    """Yield results as `run_here` does, by the workers of a Dask scheduler, which see the same paths.

    Raises NoScheduler.
    """
    try:
        from distributed import Client, as_completed
    except ImportError:
        raise NoScheduler("--scheduler: Dask is not installed; pip install 'vc4lab[sweep]'") from None
    try:
        client = Client(address, timeout=TIMEOUT)
    except (OSError, ValueError, TypeError) as error:
        text = " ".join(str(error).split())[:200] or "no answer"
        raise NoScheduler(f"--scheduler {address[:80]}: {text}") from None
    with client:
        futures = {client.submit(work, point, key=point.key): point for point in points}
        for future in as_completed(futures):
            failure = future.exception()
            if failure is None:
                yield future.result()
            else:
                text = " ".join(str(failure).split())[:200]
                yield broken(futures[future], f"{type(failure).__name__}: {text}")

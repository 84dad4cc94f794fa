"""Answers to a system call that are no numbers: a refusal, and one that is not known yet."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar


class Refused(Exception):  # noqa: N818 - an answer, not a fault
    """The answer is an errno; `why` says it in words for traces."""

    def __init__(self, number: int, why: str = "") -> None:
        super().__init__(why or os.strerror(number))
        self.number = number
        self.why = why


def invalid(why: str = "") -> Refused:
    """EINVAL."""
    return Refused(errno.EINVAL, why)


def missing(why: str = "") -> Refused:
    """ENOENT."""
    return Refused(errno.ENOENT, why)


T = TypeVar("T")


def found(thing: T | None, what: str) -> T:
    """Give the result of a look-up. Raises Refused (ENOENT) if that is nothing."""
    if thing is None:
        raise missing(f"no {what}")
    return thing


@dataclass(slots=True, eq=False)  # not frozen: that takes three times as long to make
class Later:
    """The answer is not known yet.

    `done` gives the result (0 or more, or a negative errno) as soon as there is one, else None; it
    is asked again after everything that happens. At `deadline` (seconds of time.monotonic) it is
    asked for the last time; then the answer is `late`.
    """

    done: Callable[[], int | None]
    deadline: float | None = None
    late: int = -errno.ETIME
    watch: int | None = None
    """A descriptor that becomes readable when it is worth asking."""
    drop: Callable[[], None] | None = None
    """Called once when the answer was given or the caller is gone."""
    when: Callable[[Callable[[], None]], None] | None = None
    """Takes what to call once `done` has a result, from any thread: the answer is then given from
    there, and nothing else is asked or woken for it. It needs no `drop`, no `watch`, and writes
    nothing to the program."""

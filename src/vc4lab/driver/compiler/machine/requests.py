"""Texture requests on their way: what the texture unit's queue takes, in order."""

from __future__ import annotations

from typing import NamedTuple

from vc4lab.driver.compiler.machine.code import Op, Request


class Capacity(NamedTuple):
    """What the texture unit's queues hold of a program."""

    words: int
    requests: int


SINGLE, THREADED = Capacity(8, 4), Capacity(4, 2)
"""A program that is alone in its processor, and one of two threads."""
TEXTURE_LATENCY = 9
"""Instructions for which other work is preferred to waiting for a sample."""


class Requests:
    """Requests that are begun, and those whose results are not fetched."""

    def __init__(self, capacity: Capacity = SINGLE) -> None:
        self._capacity = capacity
        self.lock: Request | None = None
        """A request that is begun and not complete: no other may begin."""
        self._waiting: list[Request] = []
        """Those whose results are not fetched, in order."""

    def may_go_on(self, op: Op) -> bool:
        """Whether a texture request may begin or go on, or its result be fetched."""
        request = op.request
        assert request is not None
        if op.signal is not None:
            return bool(self._waiting) and self._waiting[0] is request and self.lock is not request
        if self.lock is not None:
            return self.lock is request
        if len(self._waiting) >= self._capacity.requests or any(one.waiting for one in request.writes[:-1]):
            return False
        words = sum(len(one.writes) for one in self._waiting)
        return not words or words + len(request.writes) <= self._capacity.words

    def put(self, op: Op, now: int) -> None:
        """A write or a fetch of a request is in instruction `now`."""
        request = op.request
        assert request is not None
        if op.signal is not None:
            self._waiting.pop(0)
            return
        request.sent += 1
        self.lock = None if op is request.writes[-1] else request
        if op is request.writes[-1]:
            self._waiting.append(request)
            assert request.load is not None
            request.load.soft = now + TEXTURE_LATENCY

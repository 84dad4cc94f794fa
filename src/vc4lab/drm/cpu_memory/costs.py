"""The cost of accesses by a profile, and the resulting frame rate."""

from __future__ import annotations

from dataclasses import dataclass

from vc4lab.drm.cpu_memory.profiles import Attribute, Profile


@dataclass(frozen=True)
class Cost:
    """Seconds of the processor: by the profile's own rates, and by the ends of their ranges."""

    seconds: float = 0.0
    least: float = 0.0
    most: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.seconds + other.seconds, self.least + other.least, self.most + other.most)

    def per(self, count: int) -> Cost:
        """The part of one of so many frames."""
        count = max(1, count)
        return Cost(self.seconds / count, self.least / count, self.most / count)


def cost_of(profile: Profile, attribute: Attribute, read: float, written: float) -> Cost:
    """Reading and writing so many bytes of touched pages."""
    reads, writes = profile.read[attribute], profile.write[attribute]
    read *= profile.reread
    return Cost(
        read / reads.rate + written / writes.rate,
        read / reads.high + written / writes.high,
        read / reads.low + written / writes.low,
    )


def rate_with(measured: float, before: Cost, now: Cost) -> tuple[float, float, float]:
    """Frames a second when a frame's accesses cost `now`, not `before` as when it was measured.

    By the profile's rates, then the least and the most that their ranges allow.
    """
    rest = 1.0 / measured
    return (
        1.0 / max(1e-9, rest - before.seconds + now.seconds),
        1.0 / max(1e-9, rest - before.least + now.most),
        1.0 / max(1e-9, rest - before.most + now.least),
    )

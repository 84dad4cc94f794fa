"""Events of a virtual DRM device that may be observed, besides its V3D's (`v3d/events/`).

Each kind has its listeners (`vc4lab.listeners`) where it happens: `Gpu.job_taken`, `job_counted` and
`job_done`, `Supervisor.call_answered`, `Screen.handed_over`, `CpuMemory.frame_counted`.

Those of the GPU come in the GPU's thread, as do those of the V3D; the others come in the thread
that runs `DrmDevice.run`. When a listener raises, the job or the system call at hand is finished,
the programs are ended, and `DrmDevice.run` raises.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from vc4lab.drm.objects.gem_objects import GemObject
    from vc4lab.drm.processes.notifications import Notification
    from vc4lab.drm.supervisor.answers import Answer
    from vc4lab.drm.uapi.results import Refused
    from vc4lab.drm.uapi.submit import Submit


class JobTaken(NamedTuple):
    """A job is about to run: its name, what the program handed in, and its buffers."""

    name: str
    program: str
    submit: Submit
    objects: Sequence[GemObject]


class JobCounted(NamedTuple):
    """A job is through: its name and what the performance counters counted in it, by source."""

    name: str
    counters: Mapping[int, int]


class JobDone(NamedTuple):
    """A job is through; programs that wait for it go on after this."""

    seqno: int
    ready: float
    """When it was handed in, and the fence that it waits for was done: seconds of
    time.monotonic."""


class CallAnswered(NamedTuple):
    """A system call of a program, and the answer it is about to get."""

    call: Notification
    answer: Answer | Refused


class HandedOver(NamedTuple):
    """A program has handed a new picture over, which is not shown yet."""


HANDED_OVER = HandedOver()

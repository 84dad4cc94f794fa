"""Whether this host can run programs on a virtual device."""

from __future__ import annotations

from functools import cache

from vc4lab.drm.device.device import DrmDevice
from vc4lab.drm.processes.started import NotPossible


@cache
def why_not() -> str:
    """Why programs cannot be supervised here; empty if they can. Tried once, with `true`.

    Any other exception is a bug, and not caught.
    """
    try:
        with DrmDevice() as device:
            device.run(["true"], arm64=False)
    except NotPossible as reason:
        return str(reason)
    return ""

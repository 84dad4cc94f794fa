"""Which driver answers at which node: its open files, its buffers, its table of ioctls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from vc4lab.drm.device.core import CAPABILITIES, Core
from vc4lab.drm.device.gem import Buffers
from vc4lab.drm.uapi.ioctls import Call, Ioctl, Result

NAMES = ("vc4", "xlnx")
"""What `--device` takes: the driver of the display."""
SYNC_OBJECTS = 0x13

Table = dict[int, tuple[Ioctl, Callable[[Call], Result]]]


@dataclass
class Driver:
    """One driver of the kernel; the same number may mean different calls to two of them."""

    core: Core
    buffers: Buffers
    table: Table = field(default_factory=dict)


def core_of(name: str, unique: str) -> Core:
    """What a driver says of itself."""
    if name == "vc4":
        return Core("vc4", "20140616", "Broadcom VC4 graphics", unique)
    capabilities = {**CAPABILITIES, SYNC_OBJECTS: 0}
    return Core(
        "xlnx", "20130509", "Xilinx DRM KMS Driver", unique, number=(1, 0, 0),
        capabilities=capabilities,
    )  # fmt: skip

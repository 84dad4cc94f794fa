"""vc4lab: the Raspberry Pi's VideoCore IV GPU as software."""

from __future__ import annotations

TYPE_CHECKING = False  # that of typing; importing it would delay the start
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from vc4lab.drm.device.device import DrmDevice
    from vc4lab.kernels import Kernel
    from vc4lab.kernels.python import qpu_kernel
    from vc4lab.linux.running import Linux
    from vc4lab.recordings.capture import Capture
    from vc4lab.soc.machine import Machine

__all__ = ["Capture", "DrmDevice", "Kernel", "Linux", "Machine", "__version__", "examples", "qpu_kernel"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """The large classes, imported when they are wanted: other tools start without them."""
    if name == "Machine":
        from vc4lab.soc.machine import Machine

        return Machine
    if name == "DrmDevice":
        from vc4lab.drm.device.device import DrmDevice

        return DrmDevice
    if name == "Kernel":
        from vc4lab.kernels import Kernel

        return Kernel
    if name == "Capture":
        from vc4lab.recordings.capture import Capture

        return Capture
    if name == "Linux":
        from vc4lab.linux.running import Linux

        return Linux
    if name == "qpu_kernel":
        from vc4lab.kernels.python import qpu_kernel

        return qpu_kernel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def examples() -> Path:
    """The folder of the example programs: those of the checkout, or those of the wheel."""
    from pathlib import Path

    package = Path(__file__).parent
    installed = package / "data" / "examples"
    return installed if installed.is_dir() else package.parents[1] / "examples"

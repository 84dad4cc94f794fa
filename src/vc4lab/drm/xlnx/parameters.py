"""Parameters of the display driver: two settings of the module, and the ioctls about them.

The settings are the driver's, not a file's. They are what `--param` says, what a program wrote
into /sys/module/…/parameters, or what SET_PARAM stored, whichever came last.
"""

from __future__ import annotations

from collections.abc import Mapping

from vc4lab.drm.nodes.tree import Tree
from vc4lab.drm.uapi.ioctls import Call, ioctl
from vc4lab.drm.uapi.results import invalid

IDENTIFIER = 0x5362_0C75
SCANOUT_ALIGNMENT = 256
"""A multiple, in bytes, that the display's DMA asks of a pitch."""
MODULE = "/sys/module/xlnx_drm/parameters"
ALIGNMENT, CACHE_DEFAULT = "dumb_alignment_size", "dumb_cache_default_mode"
SETTINGS = {ALIGNMENT: 0, CACHE_DEFAULT: 0}
"""Their defaults, those of the kernel's configuration."""
MAX_VALUE = (1 << 32) - 1

# DRM_XLNX_PARAM_…
DRIVER_IDENTIFIER, SCANOUT_ALIGNMENT_SIZE, DUMB_ALIGNMENT_SIZE = 0, 1, 2
DUMB_CACHE_AVAILABLE, DUMB_CACHE_DEFAULT_MODE = 3, 4
SETTABLE = {DUMB_ALIGNMENT_SIZE: ALIGNMENT, DUMB_CACHE_DEFAULT_MODE: CACHE_DEFAULT}
FIXED = {DRIVER_IDENTIFIER: IDENTIFIER, SCANOUT_ALIGNMENT_SIZE: SCANOUT_ALIGNMENT, DUMB_CACHE_AVAILABLE: 1}


def check_settings(values: Mapping[str, int]) -> dict[str, int]:
    """All settings, those not named at their default. Raises ValueError."""
    for name, value in values.items():
        if name not in SETTINGS:
            raise ValueError(f"no parameter is called {name!r}; there are {', '.join(SETTINGS)}")
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_VALUE:
            raise ValueError(f"{name}: {value!r} is not a whole number from 0 to {MAX_VALUE}")
    return {**SETTINGS, **values}


class Parameters:
    """The settings, and GET_PARAM and SET_PARAM."""

    def __init__(self, tree: Tree, values: Mapping[str, int] | None = None) -> None:
        self.tree = tree
        self._values = check_settings(values or {})
        for name, value in self._values.items():
            tree.file(f"{MODULE}/{name}", f"{value}\n", is_writable=True)

    def __getitem__(self, name: str) -> int:
        """A setting; what a program wrote into its file counts if it is a number."""
        words = self.tree.text_of(f"{MODULE}/{name}").split(None, 1)
        try:
            value = int(words[0], 0) if words else -1
        except ValueError:
            value = -1  # the kernel would have refused the text
        if 0 <= value <= MAX_VALUE:
            self._values[name] = value
        return self._values[name]

    def __setitem__(self, name: str, value: int) -> None:
        self._values[name] = value
        self.tree.set_text(f"{MODULE}/{name}", f"{value}\n")

    @ioctl(0x40, "XLNX_GET_PARAM", "u32 param, u32 pad, u64 value", render=True)
    def get_param(self, call: Call) -> None:
        a = call.args
        if a.pad:
            raise invalid("pad is not 0")
        if a.param in SETTABLE:
            a.value = self[SETTABLE[a.param]]
        elif a.param in FIXED:
            a.value = FIXED[a.param]
        else:
            raise invalid(f"parameter {a.param}")

    @ioctl(0x41, "XLNX_SET_PARAM", "u32 param, u32 pad, u64 value", render=True)
    def set_param(self, call: Call) -> None:
        a = call.args
        if a.pad:
            raise invalid("pad is not 0")
        if a.param not in SETTABLE:
            raise invalid(f"parameter {a.param} cannot be set")
        self[SETTABLE[a.param]] = a.value & MAX_VALUE

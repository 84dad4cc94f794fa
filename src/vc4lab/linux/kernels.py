"""The kernel that was brought, the device trees of boards, and the kernel's command line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from vc4lab.drm.setup.places import Brought

PACKAGES = ("linux-image-arm64", "busybox-static")
"""What Linux needs besides the programs of `vc4lab drm`."""
TREES = {"pi3": "broadcom/bcm2837-rpi-3-b.dtb"}
"""Boards that Debian's kernel for arm64 starts on, with the file of its device tree."""
CONSOLE = "console=ttyS1,115200"
"""The mini UART: in Debian's trees the other one belongs to Bluetooth."""
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class Kernel:
    """A kernel and what belongs to it."""

    release: str
    image: Path
    trees: Path
    """The folder of its device trees."""

    def tree(self, board: str) -> Path:
        """The device tree of a board in TREES."""
        return self.trees / TREES[board]


def find_kernel(brought: Brought) -> Kernel | None:
    """The newest kernel among the unpacked packages that has its modules and trees."""
    found = []
    for image in (brought.tree / "boot").glob("vmlinuz-*"):
        release = image.name.removeprefix("vmlinuz-")
        trees = brought.tree / "usr/lib" / f"linux-image-{release}"
        if (brought.tree / "usr/lib/modules" / release).is_dir() and trees.is_dir():
            found.append(Kernel(release, image, trees))
    return max(found, key=lambda kernel: _version(kernel.release), default=None)


def _version(release: str) -> tuple[int, ...]:
    return tuple(int(number) for number in _NUMBER.findall(release))


def command_line(cores: int, append: str = "") -> str:
    """What the kernel gets. A core that Linux does not know of is not started at all."""
    return " ".join(filter(None, (CONSOLE, f"nr_cpus={cores}", append)))

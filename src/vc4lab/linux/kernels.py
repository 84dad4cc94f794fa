"""The kernel that was brought, the device trees of boards, and the kernel's command line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from vc4lab.drm.setup.places import ARM64, Brought

PACKAGES = ("linux-image-arm64", "busybox-static")
"""Packages that Linux for arm64 needs besides the programs of `vc4lab drm`."""
PACKAGES_32 = {
    "armhf": ("linux-image-armmp", "busybox-static"),
    "armel": ("linux-image-rpi", "busybox-static"),
}
"""For the other architectures; the programs come with them, since nothing else brings them."""
PROGRAM_PACKAGES = ("kmscube", "glmark2-es2-drm", "libdrm-tests", "drm-info")


class Target(NamedTuple):
    """A board under a kernel of Debian's: the file of its device tree, its console.

    Where the PL011 belongs to Bluetooth, the console is the mini UART.
    """

    tree: str
    console: str


PL011, MINI_UART = "ttyAMA0,115200", "ttyS1,115200"
TARGETS = {
    ("pi3", "arm64"): Target("broadcom/bcm2837-rpi-3-b.dtb", MINI_UART),
    ("pi3", "armhf"): Target("bcm2837-rpi-3-b.dtb", MINI_UART),
    ("pi2", "armhf"): Target("bcm2836-rpi-2-b.dtb", PL011),
    ("zero", "armel"): Target("bcm2835-rpi-zero.dtb", PL011),
    ("pi1", "armel"): Target("bcm2835-rpi-b-plus.dtb", PL011),
}
"""By board and architecture; the first architecture of a board is what it gets unasked."""


def packages_of(architecture: str) -> tuple[str, ...]:
    """Return the packages that --setup brings for Linux."""
    if architecture == ARM64:
        return PACKAGES
    return (*PACKAGES_32[architecture], *PROGRAM_PACKAGES)


def architecture_of(board: str, wanted: str | None = None) -> str:
    """The architecture for a board. Raises UnknownTarget."""
    found = [arch for name, arch in TARGETS if name == board]
    if not found:
        boards = ", ".join(dict.fromkeys(name for name, _arch in TARGETS))
        raise UnknownTarget(f"{board}: Debian's kernels start on {boards}")
    if wanted is not None and wanted not in found:
        raise UnknownTarget(f"{wanted}: a {board} starts Debian's kernel for {', '.join(found)}")
    return wanted or found[0]


class UnknownTarget(ValueError):  # noqa: N818 - said to the user as it is
    """There is no kernel for the board; the text says for which there is one."""


_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class Kernel:
    """A kernel and what belongs to it."""

    release: str
    image: Path
    trees: Path
    """The folder of its device trees."""
    architecture: str = ARM64

    def tree(self, board: str) -> Path:
        """The device tree of a board."""
        return self.trees / TARGETS[board, self.architecture].tree


def find_kernel(brought: Brought) -> Kernel | None:
    """The newest kernel among the unpacked packages that has its modules and trees."""
    found = []
    for image in (brought.tree / "boot").glob("vmlinuz-*"):
        release = image.name.removeprefix("vmlinuz-")
        trees = brought.tree / "usr/lib" / f"linux-image-{release}"
        if (brought.tree / "usr/lib/modules" / release).is_dir() and trees.is_dir():
            found.append(Kernel(release, image, trees, brought.architecture))
    return max(found, key=lambda kernel: _version(kernel.release), default=None)


def _version(release: str) -> tuple[int, ...]:
    return tuple(int(number) for number in _NUMBER.findall(release))


MEMORY = {ARM64: "cma=256M initramfs_options=size=80%,huge=within_size"}
"""By architecture: contiguous memory for pictures and textures, as on boards that
`dtoverlay=vc4-kms-v3d` sets up; Debian's device trees have 64 MiB, in which glmark2's refract and
desktop do not draw at 1920x1080. The root is unpacked before that memory counts as the kernel's,
and half of the rest, which Linux gives it by itself, would be too little. Of its 230 MB most lie in
four libraries: in large pages they are unpacked in half the time."""


STEADY = "norandmaps"
"""Programs lie at the same addresses each time. Unicorn remembers by its address each piece of code
that a hook has seen, for ever: with random addresses this process grows by 5 MB with each glmark2.
The guest's /proc/sys/kernel/randomize_va_space brings them back."""

UNTESTED = "cryptomgr.notests"
"""Linux tests its own ciphers at each start: private keys of RSA are a seventh of the boot.
`--append cryptomgr.notests=0` brings the tests back."""


def command_line(console: str, cores: int, append: str = "", memory: str = "") -> str:
    """Return the kernel's command line; of what it is given twice, the kernel takes the last.

    A core that Linux does not know of is not started at all.
    """
    words = f"console={console}", f"nr_cpus={cores}", STEADY, UNTESTED, memory, append
    return " ".join(filter(None, words))

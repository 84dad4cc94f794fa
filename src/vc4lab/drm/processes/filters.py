"""The seccomp filter: which system calls of a program come to the supervisor.

Everything else goes to the kernel at full speed. Device descriptors lie at numbers of the window
`WINDOW`, so that a filter, which sees only registers, can distinguish them.
"""

from __future__ import annotations

import mmap
import socket
import struct
from dataclasses import dataclass, field

from vc4lab.drm.processes.machines import Machine
from vc4lab.drm.uapi.numbers import (
    AT_EMPTY_PATH,
    DMA_BUF_TYPE,
    DRM_TYPE,
    EVDEV_TYPE,
    FAULTS_TYPE,
    SYNC_FILE_TYPE,
)

WINDOW = range(900, 1000)
"""Numbers of device descriptors: below 1024, so that select() takes them."""

INPUT_WINDOW = range(800, 900)
"""Numbers of input devices' descriptors: the kernel serves them, but for fstat and ioctl."""

NOTIFY, ALLOW = 0x7FC00000, 0x7FFF0000
_LOAD, _RETURN, _AND = 0x20, 0x06, 0x54
_EQUAL, _GREATER, _GREATER_EQUAL, _ANY_BIT = 0x15, 0x25, 0x35, 0x45
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_EVENT_ROOM = 1024
"""drmHandleEvent reads into so many bytes."""

ALWAYS = (
    "open", "openat", "openat2", "stat", "lstat", "statx", "readlink", "readlinkat", "access",
    "faccessat", "faccessat2", "fstatfs", "epoll_create", "epoll_create1", "kcmp",
    "getxattr", "lgetxattr", "listxattr", "llistxattr", "mremap", "remap_file_pages", "execve",
    "execveat", "chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "lchown", "fchown", "fchownat",
    "userfaultfd",
)  # fmt: skip
"""They take a path, or are rare."""

BY_DESCRIPTOR = {
    "read": 0, "write": 0, "close": 0, "fstat": 0, "lseek": 0, "pread64": 0, "pwrite64": 0,
    "readv": 0, "writev": 0, "preadv": 0, "pwritev": 0, "preadv2": 0, "pwritev2": 0, "dup": 0,
    "dup2": 0, "dup3": 0, "fcntl": 0, "ftruncate": 0, "fallocate": 0, "sendfile": 0,
    "copy_file_range": 0, "epoll_ctl": 2,
}  # fmt: skip
"""Only on descriptors of the window: the number of the argument that says which."""

DEEP = ("fstat", "newfstatat", "epoll_ctl")
"""Always in deep mode, for device descriptors that arrive over sockets at other numbers."""

IOCTL_TYPES = (DRM_TYPE, DMA_BUF_TYPE, SYNC_FILE_TYPE, FAULTS_TYPE)
NETLINK, EVENTS = socket.AF_NETLINK, 15
"""Family and protocol of the sockets by which the kernel and udev speak of devices."""
IOCTL_MARK = 0x7663_346C
"""Upper half of the offset of a pwrite64 that stands for an ioctl; no file is so large.

The lower half is the request. For programs under qemu-user, which keeps ioctls to itself.
"""


@dataclass
class _Program:
    """A classic BPF program with labels; jumps only go forward."""

    code: list[tuple[int, str | int, str | int, int]] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)

    def label(self, name: str) -> None:
        self.labels[name] = len(self.code)

    def load(self, offset: int) -> None:
        self.code.append((_LOAD, 0, 0, offset))

    def argument(self, number: int) -> None:
        """Load the low half of an argument."""
        self.load(_ARGUMENTS + 8 * number)

    def mask(self, value: int) -> None:
        self.code.append((_AND, 0, 0, value))

    def jump(self, test: int, value: int, yes: str = "", no: str = "") -> None:
        """Go to a label; without one, on to the next instruction."""
        self.code.append((test, yes or 0, no or 0, value))

    def end(self, value: int) -> None:
        self.code.append((_RETURN, 0, 0, value))

    def to_bytes(self) -> bytes:
        out = b""
        for place, (code, yes, no, value) in enumerate(self.code):
            steps = [
                self.labels[target] - place - 1 if isinstance(target, str) else target for target in (yes, no)
            ]
            out += struct.pack("<HBBI", code, *steps, value)
        return out


def build_filter(
    machine: Machine, *, deep: bool = False, inputs: bool = False, unmaps: bool = False
) -> bytes:
    """The filter as struct sock_filter's bytes.

    `inputs`: there are input devices; `unmaps`: every munmap is notified, too.
    """
    status = "status" if inputs else "descriptor 0"
    p = _Program()
    p.load(_ARCHITECTURE)
    p.jump(_EQUAL, machine.audit, no="allow")
    p.load(_NUMBER)
    calls = machine.calls
    targets = dict.fromkeys((*ALWAYS, *(("munmap",) if unmaps else ())), "notify")
    targets |= {name: f"descriptor {number}" for name, number in BY_DESCRIPTOR.items()}
    targets |= {"fstat": status, "pwrite64": "pwrite64", "socket": "socket", "ioctl": "ioctl"}
    targets |= {"mmap": "mmap", "poll": "poll", "ppoll": "poll", "select": "select"}
    targets |= {"pselect6": "select", "newfstatat": "newfstatat"}
    for name, target in targets.items():
        if name in calls:
            p.jump(_EQUAL, calls[name], "notify" if deep and name in DEEP else target)
    p.label("allow")
    p.end(ALLOW)

    p.label("ioctl")
    p.argument(1)
    p.mask(0xFF00)
    for kind in (*IOCTL_TYPES, *((EVDEV_TYPE,) if inputs else ())):
        p.jump(_EQUAL, kind << 8, "notify")
    p.end(ALLOW)

    p.label("socket")  # of device events
    p.argument(0)
    p.jump(_EQUAL, NETLINK, no="plain socket")
    p.argument(2)
    p.jump(_EQUAL, EVENTS, "notify")
    p.label("plain socket")
    p.end(ALLOW)

    p.label("pwrite64")  # an ioctl of a program under qemu
    p.load(_ARGUMENTS + 8 * 3 + 4)
    p.jump(_EQUAL, IOCTL_MARK, "notify", "descriptor 0")

    p.label("mmap")  # shared mappings of any file, private ones of device files
    p.argument(3)
    p.jump(_ANY_BIT, mmap.MAP_SHARED, no="descriptor 4")
    p.argument(4)
    p.jump(_EQUAL, 0xFFFFFFFF, no="notify")
    p.end(ALLOW)

    p.label("poll")
    p.argument(1)
    p.jump(_EQUAL, 0, no="notify")
    p.end(ALLOW)

    p.label("select")  # the highest number + 1
    p.argument(0)
    p.jump(_GREATER, 0 if deep else WINDOW.start, "notify")
    p.end(ALLOW)

    p.label("newfstatat")
    p.argument(3)
    p.jump(_ANY_BIT, AT_EMPTY_PATH, no="notify")
    if inputs:
        p.label("status")
        p.argument(0)
        p.jump(_GREATER_EQUAL, INPUT_WINDOW.stop, "descriptor 0")
        p.jump(_GREATER_EQUAL, INPUT_WINDOW.start, "notify")
        p.end(ALLOW)
    for number in (0, 2, 4):
        p.label(f"descriptor {number}")
        if number == 0 and deep:
            p.load(_NUMBER)
            p.jump(_EQUAL, calls["read"], no="window")
            p.argument(2)
            p.jump(_EQUAL, _EVENT_ROOM, "notify")
            p.label("window")
        p.argument(number)
        p.jump(_GREATER_EQUAL, WINDOW.stop, f"allow {number}")
        p.jump(_GREATER_EQUAL, WINDOW.start, "notify")
        p.label(f"allow {number}")
        p.end(ALLOW)
    p.label("notify")
    p.end(NOTIFY)
    return p.to_bytes()

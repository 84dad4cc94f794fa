"""System call numbers of the host's machine, as data.

x86-64 is what this is tried on each day. The table for arm64 hosts is from the kernel's headers; it
was run in a virtual machine with Debian's kernel 6.1, not on a board.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Machine:
    """One architecture: its number in seccomp's audit field and its system calls by name."""

    name: str
    audit: int
    seccomp: int
    calls: Mapping[str, int]


X86_64 = Machine(
    "x86_64",
    0xC000003E,
    317,
    {
        "read": 0, "write": 1, "open": 2, "close": 3, "stat": 4, "fstat": 5, "lstat": 6,
        "poll": 7, "lseek": 8, "mmap": 9, "munmap": 11, "ioctl": 16, "pread64": 17, "pwrite64": 18,
        "readv": 19, "writev": 20, "access": 21, "select": 23, "mremap": 25, "dup": 32,
        "chmod": 90, "fchmod": 91, "chown": 92, "fchown": 93, "lchown": 94, "fchownat": 260,
        "fchmodat": 268, "fchmodat2": 452,
        "dup2": 33, "socket": 41, "sendfile": 40, "execve": 59, "fcntl": 72, "ftruncate": 77,
        "readlink": 89, "fstatfs": 138,
        "getxattr": 191, "lgetxattr": 192, "listxattr": 194, "llistxattr": 195,
        "epoll_create": 213, "remap_file_pages": 216,
        "epoll_ctl": 233, "openat": 257, "newfstatat": 262,
        "readlinkat": 267, "faccessat": 269, "pselect6": 270, "ppoll": 271, "fallocate": 285,
        "epoll_create1": 291, "dup3": 292, "preadv": 295, "pwritev": 296, "kcmp": 312,
        "execveat": 322, "userfaultfd": 323, "copy_file_range": 326, "preadv2": 327, "pwritev2": 328,
        "statx": 332, "openat2": 437, "faccessat2": 439,
    },
)  # fmt: skip

ARM64 = Machine(
    "aarch64",
    0xC00000B7,
    277,
    {
        "getxattr": 8, "lgetxattr": 9, "listxattr": 11, "llistxattr": 12,
        "epoll_create1": 20, "epoll_ctl": 21, "dup": 23, "dup3": 24, "fcntl": 25, "ioctl": 29,
        "fchmod": 52, "fchmodat": 53, "fchownat": 54, "fchown": 55, "fchmodat2": 452,
        "fstatfs": 44, "ftruncate": 46, "fallocate": 47, "faccessat": 48, "openat": 56,
        "close": 57, "lseek": 62, "read": 63, "write": 64, "readv": 65, "writev": 66,
        "pread64": 67, "pwrite64": 68, "preadv": 69, "pwritev": 70, "sendfile": 71,
        "pselect6": 72, "ppoll": 73, "readlinkat": 78, "newfstatat": 79, "fstat": 80,
        "munmap": 215, "mremap": 216, "execve": 221, "mmap": 222, "remap_file_pages": 234,
        "socket": 198, "kcmp": 272, "copy_file_range": 285, "preadv2": 286, "pwritev2": 287,
        "execveat": 281, "userfaultfd": 282, "statx": 291, "openat2": 437, "faccessat2": 439,
    },
)  # fmt: skip

MACHINES = {machine.name: machine for machine in (X86_64, ARM64)}
"""By the name that uname gives."""


def host_machine() -> Machine | None:
    """The table of this host, None if there is none."""
    return MACHINES.get(platform.machine())

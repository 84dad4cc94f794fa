"""How the *at system calls are given their place (Linux include/uapi/linux/fcntl.h)."""

from __future__ import annotations

AT_FDCWD = 0xFFFFFF9C
"""-100 as an unsigned number: relative to the current directory."""
AT_SYMLINK_NOFOLLOW = 0x100
AT_EMPTY_PATH = 0x1000

"""Numbers in the arguments of system calls (Linux include/uapi/linux/fcntl.h, drm/drm.h …)."""

from __future__ import annotations

AT_FDCWD = 0xFFFFFF9C
"""-100 as an unsigned number: relative to the current directory."""
AT_SYMLINK_NOFOLLOW = 0x100
AT_EMPTY_PATH = 0x1000
DRM_TYPE, DMA_BUF_TYPE, SYNC_FILE_TYPE, EVDEV_TYPE, FAULTS_TYPE = 0x64, 0x62, 0x3E, 0x45, 0xAA
"""Second byte of an ioctl's number, what kind of file it is for: 'd', 'b', '>', 'E', and userfaultfd's."""

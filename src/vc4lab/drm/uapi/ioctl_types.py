"""Second byte of an ioctl's number: what kind of file it is for (input devices: `evdev.py`)."""

from __future__ import annotations

DRM_TYPE, DMA_BUF_TYPE, SYNC_FILE_TYPE = 0x64, 0x62, 0x3E
"""'d', 'b' and '>'."""

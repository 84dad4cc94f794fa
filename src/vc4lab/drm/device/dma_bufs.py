"""What programs do with dma-bufs: ioctls, and mapping a piece."""

from __future__ import annotations

import errno
import struct

from vc4lab.drm.device.gem_objects import DmaBuf, GemObject
from vc4lab.drm.device.gpu import Gpu
from vc4lab.drm.supervisor.answers import Caller
from vc4lab.drm.uapi.ioctl_types import DMA_BUF_TYPE
from vc4lab.drm.uapi.results import Later, Refused

DMA_BUF_SYNC = 0x40086200
DMA_BUF_NAME = DMA_BUF_TYPE, 1
_SYNC_WRITE, _SYNC_END, _SYNC_FLAGS = 2, 4, 7


def dma_buf_ioctl(
    opened: DmaBuf, caller: Caller, request: int, argument: int, gpu: Gpu
) -> int | Later:
    """Waiting for the GPU before the processor looks, and names. Raises Refused."""
    if request == DMA_BUF_SYNC:
        (flags,) = struct.unpack("<Q", caller.read(argument, 8))
        if flags & ~_SYNC_FLAGS or not flags & 3:
            raise Refused(errno.EINVAL)
        if flags & _SYNC_END:
            return 0  # processor and GPU see the same bytes
        # readers wait for the last job that draws into it, writers for all that use it
        target = opened.object
        seqno = target.seqno if flags & _SYNC_WRITE else target.write_seqno
        return gpu.wait(seqno) or 0
    if (request >> 8 & 0xFF, request & 0xFF) == DMA_BUF_NAME:
        return 0
    raise Refused(errno.ENOTTY)


def place_in_dma_buf(opened: DmaBuf, offset: int, size: int) -> tuple[int, GemObject]:
    """Where a mapping of it lies in the memory file, and the buffer. Raises Refused."""
    target = opened.object
    if offset < target.address:  # as the program sees it; later as it was changed
        offset += target.address
    if not target.address <= offset <= offset + size <= target.address + target.size:
        raise Refused(errno.EINVAL, "beyond the end of the dma-buf")
    return target.address if target.faults_from_start else offset, target

"""The listener of a seccomp filter: receive a system call, answer it, hand over a descriptor.

Source: Linux include/uapi/linux/seccomp.h and Documentation/userspace-api/seccomp_filter.rst.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import struct
from dataclasses import dataclass

from vc4lab.drm.processes.started import NotPossible

_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_VALID, _ADD_FD, _SET_FLAGS = 0x40082102, 0x40182103, 0x40082104
_SYNC_WAKE_UP = 1
_CONTINUE = 1
_SET_NUMBER, _AND_SEND = 1, 2

_NOTIFICATION = struct.Struct("<QIIiIQ6Q")
_RESPONSE = struct.Struct("<QqiI")
_ADDITION = struct.Struct("<QIIII")
_ID = struct.Struct("<Q")

RESTART = -512
"""As an answer: the kernel restarts the call or gives EINTR, as the signal's handler requires."""


@dataclass(slots=True, eq=False)
class Notification:
    """A system call that waits for its answer."""

    id: int
    tid: int
    number: int
    args: tuple[int, ...]


class Listener:
    """The supervisor's end of a filter."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        with contextlib.suppress(OSError):  # from kernel 6.6: twice as fast
            fcntl.ioctl(descriptor, _SET_FLAGS, _SYNC_WAKE_UP)

    def close(self) -> None:
        """No more answers: calls that wait end with ENOSYS."""
        os.close(self.descriptor)

    def receive(self) -> Notification | None:
        """The next call, None if it was given up in between. Raises OSError otherwise."""
        data = bytearray(_NOTIFICATION.size)
        try:
            fcntl.ioctl(self.descriptor, _RECEIVE, data)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.EINTR):
                return None
            raise
        found = _NOTIFICATION.unpack(data)
        return Notification(found[0], found[1], found[3], found[6:])

    def answer(self, call: Notification, result: int) -> bool:
        """Give a result, or a negative errno; False if the call does not wait any more."""
        if result < 0:
            return self._send(_SEND, _RESPONSE.pack(call.id, 0, result, 0))
        return self._send(_SEND, _RESPONSE.pack(call.id, result, 0, 0))

    def proceed(self, call: Notification) -> bool:
        """Let the kernel do the call as it stands. Raises NotPossible if it does not know how."""
        try:
            return self._send(_SEND, _RESPONSE.pack(call.id, 0, 0, _CONTINUE))
        except OSError as error:
            if error.errno == errno.EINVAL:  # the flag came with Linux 5.5
                raise NotPossible(
                    "the kernel cannot continue a notified call; this needs Linux 5.5"
                ) from None
            raise

    def is_valid(self, call: Notification) -> bool:
        """Whether the call still waits, so that its thread number means what it meant."""
        return self._send(_VALID, _ID.pack(call.id))

    def give(
        self,
        call: Notification,
        descriptor: int,
        number: int | None = None,
        *,
        close_on_exec: bool = False,
        reply: bool = True,
    ) -> int | None:
        """Copy a descriptor of the supervisor into the program, at a number or the lowest free one.

        With `reply` the number is the call's result. None if the call does not wait any more; a
        negative errno if the program's table is full.
        """
        flags = (_SET_NUMBER if number is not None else 0) | (_AND_SEND if reply else 0)
        mode = os.O_CLOEXEC if close_on_exec else 0
        data = bytearray(_ADDITION.pack(call.id, flags, descriptor, number or 0, mode))
        try:
            found: int | None = fcntl.ioctl(self.descriptor, _ADD_FD, data, True)
            return found
        except OSError as error:
            if error.errno == errno.ENOENT:
                return None
            return -(error.errno or errno.EBADF)

    def _send(self, request: int, data: bytes) -> bool:
        try:
            fcntl.ioctl(self.descriptor, request, bytearray(data))
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.EINPROGRESS, errno.EINTR):
                return False
            raise
        return True

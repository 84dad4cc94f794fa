"""Repeats a system call with another argument.

A filter cannot change arguments. So the call is answered with "start again", and before it does,
the thread stands still under ptrace and gets the new argument. Only for what is rare: mapping a
dma-buf, whose bytes lie elsewhere in the memory file than the program thinks.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import platform
from typing import Any

from vc4lab.drm.processes.notifications import Listener, Notification
from vc4lab.drm.uapi.results import Refused

_GET_REGISTERS, _SET_REGISTERS, _DETACH = 12, 13, 17
_SEIZE, _INTERRUPT = 0x4206, 0x4207
_ALL_THREADS = 0x4000_0000
RESTART_ALWAYS = -513
"""-ERESTARTNOINTR."""
_REGISTERS = 27
_LAST_ARGUMENT = 8
"""r9 in struct user_regs_struct of x86-64."""


def restart_with(listener: Listener, call: Notification, value: int) -> None:
    """Let the thread make its call again with its last argument changed.

    Raises Refused (ENODEV) where ptrace is not allowed or the machine's registers are not known.
    """
    if platform.machine() != "x86_64":
        raise Refused(errno.ENODEV, "calls are restarted on x86-64 only")
    library = ctypes.CDLL(None, use_errno=True)
    library.ptrace.restype = ctypes.c_long
    library.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
    if library.ptrace(_SEIZE, call.tid, None, None):
        why = os.strerror(ctypes.get_errno()).lower()
        raise Refused(errno.ENODEV, f"ptrace: {why}; a dma-buf cannot be mapped here")
    try:
        library.ptrace(_INTERRUPT, call.tid, None, None)
        listener.answer(call, RESTART_ALWAYS)
        _, status = os.waitpid(call.tid, _ALL_THREADS)
        if os.WIFSTOPPED(status):
            _change(library, call.tid, value)
    except ChildProcessError:
        pass  # it was killed
    finally:
        with contextlib.suppress(OSError):
            library.ptrace(_DETACH, call.tid, None, None)


def _change(library: Any, tid: int, value: int) -> None:
    registers = (ctypes.c_ulonglong * _REGISTERS)()
    if library.ptrace(_GET_REGISTERS, tid, None, ctypes.byref(registers)) == 0:
        registers[_LAST_ARGUMENT] = value
        library.ptrace(_SET_REGISTERS, tid, None, ctypes.byref(registers))

"""The system calls that are answered: the handler of each, and its arguments."""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from vc4lab.drm.processes.filters import IOCTL_MARK
from vc4lab.drm.supervisor.answers import Answer, Caller, Device, Outcome
from vc4lab.drm.supervisor.descriptor_calls import DescriptorCalls
from vc4lab.drm.supervisor.mapping_calls import MappingCalls
from vc4lab.drm.supervisor.mode_calls import ModeCalls
from vc4lab.drm.supervisor.path_calls import PathCalls
from vc4lab.drm.supervisor.polling import PollCalls
from vc4lab.drm.supervisor.uevents import Uevents
from vc4lab.drm.uapi.numbers import AT_FDCWD, AT_SYMLINK_NOFOLLOW, FAULTS_TYPE
from vc4lab.drm.uapi.results import Refused

NEW_FAULTS = FAULTS_TYPE << 8
"""USERFAULTFD_IOC_NEW."""
USER_MODE_ONLY = 1

Handler = Callable[[Caller, tuple[int, ...]], Answer]


@dataclass
class SystemCalls:
    """All that programs ask, each passed on to the part that knows the answer."""

    device: Device
    paths: PathCalls
    files: DescriptorCalls
    maps: MappingCalls
    modes: ModeCalls
    polls: PollCalls
    uevents: Uevents

    def table(self, numbers: Mapping[str, int]) -> dict[int, Handler]:
        """Handlers by the numbers that calls have on a machine."""
        paths, files, maps, polls = self.paths, self.files, self.maps, self.polls
        modes = self.modes
        table: dict[str, Handler] = {
            "open": lambda c, a: paths.open(c, AT_FDCWD, a[0], _int(a[1])),
            "openat": lambda c, a: paths.open(c, a[0], a[1], _int(a[2])),
            "openat2": paths.open_how,
            "stat": lambda c, a: paths.stat(c, AT_FDCWD, a[0], a[1]),
            "lstat": lambda c, a: paths.stat(c, AT_FDCWD, a[0], a[1], flags=AT_SYMLINK_NOFOLLOW),
            "newfstatat": lambda c, a: paths.stat(c, a[0], a[1], a[2], flags=_int(a[3])),
            "statx": lambda c, a: paths.stat(c, a[0], a[1], a[4], flags=_int(a[2]), extended=True),
            "fstat": lambda c, a: paths.status_of_descriptor(c, _int(a[0]), a[1]),
            "fstatfs": lambda c, a: paths.file_system(c, _int(a[0]), a[1]),
            "readlink": lambda c, a: paths.read_link(c, AT_FDCWD, a[0], a[1], _int(a[2])),
            "readlinkat": lambda c, a: paths.read_link(c, a[0], a[1], a[2], _int(a[3])),
            "access": lambda c, a: paths.access(c, AT_FDCWD, a[0], _int(a[1])),
            "faccessat": lambda c, a: paths.access(c, a[0], a[1], _int(a[2])),
            "faccessat2": lambda c, a: paths.access(c, a[0], a[1], _int(a[2])),
            "ioctl": self._ioctl,
            "socket": self._socket,
            "read": lambda c, a: files.read(c, _int(a[0]), a[1], a[2]),
            "close": lambda c, a: files.closed(),
            "dup": lambda c, a: files.duplicate(c, _int(a[0])),
            "dup2": lambda c, a: files.duplicate(c, _int(a[0]), at=_int(a[1])),
            "dup3": self._dup3,
            "fcntl": lambda c, a: files.control(c, _int(a[0]), _int(a[1]), a[2]),
            "lseek": lambda c, a: files.seek(c, _int(a[0]), a[1], _int(a[2])),
            "mmap": maps.map,
            "munmap": maps.unmap,
            "mremap": lambda c, a: maps.grow(c, a[0], a[1], a[2]),
            "remap_file_pages": lambda c, a: maps.turn(c, a[0]),
            "epoll_create": lambda c, a: files.make_poll(c, 0),
            "epoll_create1": lambda c, a: files.make_poll(c, _int(a[0])),
            "epoll_ctl": files.control_poll,
            "kcmp": files.compare,
            "chmod": lambda c, a: modes.change_mode(c, AT_FDCWD, a[0], _int(a[1])),
            "fchmod": lambda c, a: modes.change_mode_of(c, _int(a[0]), _int(a[1])),
            "fchmodat": lambda c, a: modes.change_mode(c, a[0], a[1], _int(a[2])),
            "fchmodat2": lambda c, a: modes.change_mode(c, a[0], a[1], _int(a[2]), _int(a[3])),
            "chown": lambda c, a: modes.change_owner(c, AT_FDCWD, a[0], a[1], a[2]),
            "lchown": lambda c, a: modes.change_owner(c, AT_FDCWD, a[0], a[1], a[2], AT_SYMLINK_NOFOLLOW),
            "fchown": lambda c, a: modes.change_owner_of(c, _int(a[0]), a[1], a[2]),
            "fchownat": lambda c, a: modes.change_owner(c, a[0], a[1], a[2], a[3], _int(a[4])),
            "userfaultfd": lambda c, a: _faults(_int(a[0])),
            "execve": _executes,
            "execveat": _executes,
            "poll": lambda c, a: polls.poll(c, a[0], _int(a[1]), _milliseconds(a[2])),
            "ppoll": lambda c, a: polls.poll(c, a[0], _int(a[1]), _seconds(c, a[2], 1e-9)),
            "select": lambda c, a: polls.select(c, a, _seconds(c, a[4], 1e-6)),
            "pselect6": lambda c, a: polls.select(c, a, _seconds(c, a[4], 1e-9)),
        }
        for name in ("getxattr", "lgetxattr", "listxattr", "llistxattr"):
            table[name] = lambda c, a: paths.attributes(c, a[0])
        for name in (
            *("write", "pread64", "pwrite64", "readv", "writev", "preadv", "pwritev"),
            *("preadv2", "pwritev2", "ftruncate", "fallocate", "sendfile", "copy_file_range"),
        ):
            table[name] = lambda c, a: files.refuse(c, _int(a[0]))
        table["pwrite64"] = self._write_at
        return {numbers[name]: handler for name, handler in table.items() if name in numbers}

    def _dup3(self, caller: Caller, args: tuple[int, ...]) -> Answer:
        if args[0] == args[1]:
            raise Refused(errno.EINVAL)
        return self.files.duplicate(caller, _int(args[0]), at=_int(args[1]), flags=_int(args[2]))

    def _write_at(self, caller: Caller, args: tuple[int, ...]) -> Answer:
        """pwrite64: from programs under qemu an ioctl, see setup/preload.py."""
        if args[3] >> 32 != IOCTL_MARK:
            return self.files.refuse(caller, _int(args[0]))
        answer = self._ioctl(caller, (args[0], _int(args[3]), args[1]))
        if answer is Outcome.PROCEED:
            raise Refused(errno.ENOTTY)
        return answer

    def _socket(self, caller: Caller, args: tuple[int, ...]) -> Answer:
        """A socket for device events: only those of the virtual devices, where that is possible."""
        kind = _int(args[1])
        made = self.uevents.socket(kind)
        if made is None:
            return Outcome.PROCEED
        try:
            return caller.give_copy(made, close_on_exec=bool(kind & socket.SOCK_CLOEXEC))
        finally:
            os.close(made)

    def _ioctl(self, caller: Caller, args: tuple[int, ...]) -> Answer:
        number, request, argument = args[0] & 0xFFFFFFFF, args[1] & 0xFFFFFFFF, args[2]
        if request == NEW_FAULTS:
            return _faults(argument)
        opened = caller.descriptors.find(caller, number)
        if opened is None:
            return self.device.plain_ioctl(caller, number, request, argument)
        return self.device.ioctl(opened, caller, request, argument)


def _faults(flags: int) -> Answer:
    """userfaultfd, and the ioctl of /dev/userfaultfd: only of faults in the program's own code.

    With others a read of the program's memory waits until the program serves it, and the device
    with it. Linux asks for the same flag of users without CAP_SYS_PTRACE (unprivileged_userfaultfd).
    Raises Refused (EPERM).
    """
    if not flags & USER_MODE_ONLY:
        raise Refused(errno.EPERM, "userfaultfd without UFFD_USER_MODE_ONLY")
    return Outcome.PROCEED


def _executes(caller: Caller, _args: tuple[int, ...]) -> Answer:
    """The thread gets other memory. After vfork it had that of its parent, which lives on."""
    caller.forget()
    return Outcome.PROCEED


def _int(value: int) -> int:
    return value & 0xFFFFFFFF


def _milliseconds(value: int) -> float | None:
    signed = value & 0xFFFFFFFF
    return None if signed & 0x80000000 else signed / 1000.0


def _seconds(caller: Caller, address: int, unit: float) -> float | None:
    """Seconds of a structure of seconds and a fraction in units; None without one."""
    if not address:
        return None
    seconds, fraction = struct.unpack("<qq", caller.read(address, 16))
    found: float | None = max(0.0, float(seconds) + fraction * unit)
    return found

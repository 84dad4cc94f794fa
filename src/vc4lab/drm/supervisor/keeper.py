"""A program of its own: starts a supervised program and ends all that came of it.

Run as ``python -I -S keeper.py SOCKET SECCOMP FILTER NODES PROGRAM ARGUMENTS…``; imports nothing of
vc4lab, so that it starts quickly. It goes on when the supervisor is gone, and then ends the
programs, which would get ENOSYS from every call that the supervisor answers, and removes the nodes.

To the supervisor over the socket: ``L`` with the filter's listener, ``E`` and an errno if the
program cannot be started, ``X`` and a wait status when it has ended. From it: ``Q`` if it ends the
programs on purpose.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import struct
import sys
import time

_NO_NEW_PRIVS, _SUBREAPER = 38, 36
_SET_MODE_FILTER = 1
_NEW_LISTENER, _WAIT_KILLABLE = 8, 32
_SECONDS_TO_END = 1.0
_DESCRIPTORS = 1024
"""Device descriptors have numbers of up to 999."""


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))


def main() -> int:
    """Start, wait, clean up."""
    connection = socket.socket(fileno=int(sys.argv[1]))
    connection.set_inheritable(False)
    seccomp, code = int(sys.argv[2]), bytes.fromhex(sys.argv[3])
    nodes, program = sys.argv[4], sys.argv[5:]
    library = ctypes.CDLL(None, use_errno=True)
    library.prctl(_SUBREAPER, 1, 0, 0, 0)
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # for the program; it is ended over the socket
    child = os.fork()
    if child == 0:
        _become(connection, library, seccomp, code, program)
    _wait(connection, child)
    import shutil

    shutil.rmtree(nodes, ignore_errors=True)  # the supervisor may not be there to do it
    return 0


def _become(
    connection: socket.socket, library: ctypes.CDLL, seccomp: int, code: bytes, program: list[str]
) -> None:
    """Take the filter and turn into the program."""
    try:
        for number in (
            *(signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE),
            *(signal.SIGXFSZ,),
        ):
            signal.signal(number, signal.SIG_DFL)
        _allow_descriptors()
        buffer = ctypes.create_string_buffer(code, len(code))
        argument = _Filter(len(code) // 8, ctypes.addressof(buffer))
        library.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0)
        for flags in (_NEW_LISTENER | _WAIT_KILLABLE, _NEW_LISTENER):  # the second before 5.19
            listener = library.syscall(seccomp, _SET_MODE_FILTER, flags, ctypes.byref(argument))
            if listener >= 0:
                break
        else:
            raise OSError(ctypes.get_errno(), "seccomp")
        socket.send_fds(connection, [b"L"], [listener])
        os.close(listener)
        os.execvp(program[0], program)
    except OSError as error:
        try:
            connection.send(b"E" + struct.pack("<i", error.errno or 0))
        finally:
            os._exit(127)


def _allow_descriptors() -> None:
    """Raise the limit of descriptors to what the device needs."""
    import resource

    limit, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit != resource.RLIM_INFINITY and limit < _DESCRIPTORS:
        wanted = _DESCRIPTORS if most == resource.RLIM_INFINITY else min(most, _DESCRIPTORS)
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def _wait(connection: socket.socket, child: int) -> None:
    """Until the supervisor closes the socket; then end what is left."""
    wake, sleep = socket.socketpair()
    sleep.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(sleep.fileno(), warn_on_full_buffer=False)
    import select

    poller = select.poll()
    poller.register(connection, select.POLLIN)
    poller.register(wake, select.POLLIN)
    ended = False
    quiet = False
    while True:
        while True:
            try:
                found, result = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if not found:
                break
            if found == child:
                ended = True
                with contextlib.suppress(OSError):
                    connection.send(b"X" + struct.pack("<i", result))
        for descriptor, _ in poller.poll():
            if descriptor == wake.fileno():
                wake.recv(4096)
            else:
                try:
                    data = connection.recv(1)
                except ConnectionResetError:
                    continue  # it left without reading our last message
                if data:
                    quiet = True
                    continue
                if not ended and not quiet:
                    sys.stderr.write(
                        "vc4lab drm: the device is gone; the programs that used it end, too\n"
                    )
                _end_all()
                return


def _end_all() -> None:
    """End every descendant."""
    until = time.monotonic() + _SECONDS_TO_END
    number = signal.SIGTERM
    while True:
        left = descendants(os.getpid())
        if not left:
            return
        for process in left:
            try:
                os.kill(process, number)
                if number == signal.SIGTERM:
                    os.kill(process, signal.SIGCONT)
            except OSError:
                pass
        number = signal.SIGCONT if time.monotonic() < until else signal.SIGKILL
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.01)


def descendants(parent: int) -> list[int]:
    """All processes below one."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        if fields[0] != b"Z" or int(fields[1]) == parent:
            children.setdefault(int(fields[1]), []).append(int(name))
    found: list[int] = []
    pending = [parent]
    while pending:
        for child in children.get(pending.pop(), []):
            found.append(child)
            pending.append(child)
    return found


if __name__ == "__main__":
    sys.exit(main())

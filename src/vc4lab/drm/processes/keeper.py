"""A separate process: starts a supervised program and ends all its descendants.

Run as ``python -I -S keeper.py SOCKET SECCOMP FILTER NODES PROGRAM ARGUMENTS…``; imports nothing of
vc4lab, so that it starts quickly. It goes on when the supervisor is gone, and then ends the
programs, which would get ENOSYS from every call that the supervisor answers, and removes the nodes.

To the supervisor over the socket: ``L`` with the filter's listener, ``E`` and an errno if the
program cannot be started, ``X`` and a wait status when it has ended. From it: ``I`` when a SIGINT
came to it, which the program gets if its process group did not, and ``Q`` if it ends the programs
on purpose.
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
_SIGNALS = signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP
"""Left to the program; this one is ended over the socket."""
_SAME_SECONDS = 0.5
"""Two SIGINTs so close to each other are one, to a process group."""
_LATE_SECONDS = 0.02
"""So much later one may come to this process than to the supervisor."""

_interrupted_at = float("-inf")


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
    ignored = {n for n in _SIGNALS if signal.getsignal(n) is signal.SIG_IGN}
    for number in _SIGNALS:
        signal.signal(number, _take_note if number == signal.SIGINT else signal.SIG_IGN)
    while signal.SIGINT in signal.sigpending():  # blocked until now; there is no program yet
        signal.sigwait({signal.SIGINT})
    child = os.fork()
    if child == 0:
        _become(connection, library, seccomp, code, program, ignored)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    _wait(connection, child)
    import shutil

    shutil.rmtree(nodes, ignore_errors=True)  # the supervisor may not be there to do it
    return 0


def _become(
    connection: socket.socket,
    library: ctypes.CDLL,
    seccomp: int,
    code: bytes,
    program: list[str],
    ignored: set[signal.Signals],
) -> None:
    """Take the filter and turn into the program."""
    try:
        for number in (*_SIGNALS, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)
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
        # Blocked until now: who waits for the listener gets it, also if this ends at once.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
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
                if data == b"I" and not ended:
                    _interrupt(child)
                if data:
                    quiet = quiet or data == b"Q"
                    continue
                if not quiet:  # also when the program got ENOSYS and ended before this process ran
                    sys.stderr.write(
                        "vc4lab drm: the device has ended, so the programs that used it are ended\n"
                    )
                _end_all()
                return


def _take_note(*_: object) -> None:
    global _interrupted_at
    _interrupted_at = time.monotonic()


def _interrupt(child: int) -> None:
    """SIGINT came to the supervisor: the program gets it, unless it came to this process, too."""
    if time.monotonic() - _interrupted_at > _SAME_SECONDS:
        time.sleep(_LATE_SECONDS)
    if time.monotonic() - _interrupted_at > _SAME_SECONDS:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGINT)


def _end_all() -> None:
    """End every descendant."""
    until = time.monotonic() + _SECONDS_TO_END
    number = signal.SIGTERM
    while True:
        left = descendants(os.getpid())
        if not left:
            return
        for process in left:
            with contextlib.suppress(OSError):
                os.kill(process, number)
                if number == signal.SIGTERM:
                    os.kill(process, signal.SIGCONT)
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

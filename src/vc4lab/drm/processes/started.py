"""A program and its keeper: how they are started, and how the program ended."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import gc
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from vc4lab.drm.processes.filters import WINDOW

KEEPER = Path(__file__).with_name("keeper.py")
_SIGNALS = {signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP}
PROC = Path("/proc")
_START_SECONDS = 30.0
_DESCRIPTORS = 1 << 18
_GET_DUMPABLE, _SET_DUMPABLE = 3, 4
_YOUNG, _OLD = 2, 50
"""Collections of a generation before one of the next."""


class NotPossible(Exception):  # noqa: N818 - a fact about the host
    """This host cannot supervise programs; the text says what is missing."""


class Started:
    """A program under the filter, started by a keeper that reports over a socket.

    Raises NotPossible, or OSError if there can be no more processes.
    """

    def __init__(
        self,
        program: Sequence[str],
        *,
        seccomp: int,
        code: bytes,
        root: str,
        environment: dict[str, str] | None,
        **popen: Any,
    ) -> None:
        self.connection, theirs = socket.socketpair()
        command = [
            *(sys.executable, "-I", "-S", str(KEEPER), str(theirs.fileno())),
            *(str(seccomp), code.hex(), root, *program),
        ]
        # Until the keeper has its handlers, nothing that reaches the group may end it.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        try:
            self.keeper = subprocess.Popen(command, pass_fds=[theirs.fileno()], env=environment, **popen)
        except BaseException:
            self.connection.close()
            raise
        finally:
            theirs.close()
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)

    def listener(self) -> int:
        """Wait until the filter is there; the descriptor its notifications come from."""
        self.connection.settimeout(_START_SECONDS)
        try:
            data, descriptors, _, _ = socket.recv_fds(self.connection, 1, 1)
        except OSError:
            raise NotPossible("the program's keeper did not start") from None
        if data != b"L" or not descriptors:
            number = self._number() if data == b"E" else 0
            raise NotPossible(
                f"the kernel does not accept the filter: {os.strerror(number)} (seccomp "
                "user notification; inside of a container its runtime may be using it)"
            )
        self.connection.setblocking(False)
        return descriptors[0]

    def status(self) -> int | None:
        """Read the program's wait status from the keeper. Raises OSError if it never ran."""
        kind = self.connection.recv(1)
        if kind == b"X":
            return self._number()
        if kind == b"E":
            number = self._number()
            raise OSError(number, os.strerror(number))
        return None if kind else signal.SIGKILL  # the keeper was

    def interrupt(self) -> None:
        """SIGINT came to this process; the keeper knows whether it came to the program, too."""
        with contextlib.suppress(OSError):
            self.connection.send(b"I")

    def end(self) -> None:
        """Have the keeper end what still runs."""
        with contextlib.suppress(OSError):
            self.connection.send(b"Q")  # the programs end without a word
        self.connection.close()

    def abandon(self) -> None:
        """Abandon it from another thread: the connection stays open for the first."""
        with contextlib.suppress(OSError):
            self.connection.send(b"Q")
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def _number(self) -> int:
        self.connection.setblocking(True)
        data = self.connection.recv(4, socket.MSG_WAITALL)
        return int.from_bytes(data, "little", signed=True) if len(data) == 4 else 0


def check_proc() -> None:
    """Programs are known by their numbers in /proc. Raises NotPossible."""
    try:
        shown = os.readlink(PROC / "self")
    except OSError:
        raise NotPossible("/proc is not mounted") from None
    if shown != str(os.getpid()):
        raise NotPossible(
            "/proc belongs to another PID namespace; mount this one's "
            "(bwrap --proc /proc, unshare --mount-proc)"
        )


@contextlib.contextmanager
def kept_apart() -> Iterator[None]:
    """Let other processes of the same user not look into this one: it has all buffers.

    Root may, and what may trace any process.
    """
    library = ctypes.CDLL(None)
    before = library.prctl(_GET_DUMPABLE, 0, 0, 0, 0)
    library.prctl(_SET_DUMPABLE, 0, 0, 0, 0)
    try:
        yield
    finally:
        if before == 1:  # by itself a process can only become this again
            library.prctl(_SET_DUMPABLE, 1, 0, 0, 0)


@contextlib.contextmanager
def short_collections() -> Iterator[None]:
    """Python's collector looks only at objects that are made from now on, at few of them at a time.

    At all of them (modules, compiled code) it looks for 10 ms and more, at its usual middle
    generation for almost 1 ms, in the thread that answers.
    """
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(before[0], min(before[1], _YOUNG), max(before[2], _OLD))
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def check_memory(process: int) -> None:
    """The supervisor reads and writes its programs' memory. Raises NotPossible."""
    try:
        os.close(os.open(PROC / str(process) / "mem", os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EPERM):
            raise NotPossible(f"vc4lab may not read the memory of programs{_scope()}") from None


def _scope() -> str:
    """Say what Yama has to do with it."""
    try:
        scope = int((PROC / "sys/kernel/yama/ptrace_scope").read_text())
    except (OSError, ValueError):
        return ""
    rule = {
        2: "which allows this to root only (CAP_SYS_PTRACE)",
        3: "which allows this to no process until the next boot",
    }.get(scope)
    return "" if rule is None else f" (sysctl kernel.yama.ptrace_scope is {scope}, {rule})"


def check_limit() -> None:
    """Programs' descriptors have high numbers. Raises NotPossible."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if most != resource.RLIM_INFINITY and most < WINDOW.stop:
        raise NotPossible(f"ulimit -Hn: {most} descriptors are allowed, {WINDOW.stop} are needed")


def raise_limit() -> Callable[[], None]:
    """Let this process hold copies of its programs' descriptors; the result takes that back.

    After the programs were started: theirs stays as it is.
    """
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _DESCRIPTORS if before[1] == resource.RLIM_INFINITY else min(before[1], _DESCRIPTORS)
    if before[0] != resource.RLIM_INFINITY and before[0] < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, before[1]))
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, before)

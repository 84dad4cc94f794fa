"""What a host cannot do is a reason to skip; a fault of ours is not."""

import errno
import fcntl
import os
from pathlib import Path
from typing import Any

import pytest

from vc4lab.drm.device.host import why_not
from vc4lab.drm.processes import started
from vc4lab.drm.processes.notifications import Listener, Notification
from vc4lab.drm.processes.started import NotPossible
from vc4lab.drm.supervisor.supervisor import Supervisor

probe = why_not.__wrapped__


def refuse(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def run(*_: Any, **__: Any) -> int:
        raise error

    monkeypatch.setattr(Supervisor, "run", run)


def test_what_the_host_cannot_do_is_given_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(monkeypatch, NotPossible("no seccomp"))
    assert probe() == "no seccomp"


def test_a_fault_of_ours_is_no_reason_to_skip(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(monkeypatch, OSError(errno.EBADF, os.strerror(errno.EBADF)))
    with pytest.raises(OSError, match="descriptor"):
        probe()


def test_a_kernel_that_lets_no_call_go_on_is_said_to_be_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    def ioctl(*_: Any) -> int:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    listener = Listener(os.open(os.devnull, os.O_RDONLY))
    try:
        monkeypatch.setattr(fcntl, "ioctl", ioctl)
        with pytest.raises(NotPossible, match=r"Linux 5\.5"):
            listener.proceed(Notification(1, 1, 1, ()))
    finally:
        monkeypatch.undo()
        listener.close()


def test_a_proc_that_is_not_this_namespace_s_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """bwrap --unshare-pid without --proc, unshare --pid without --mount-proc."""
    monkeypatch.setattr(started, "PROC", tmp_path)
    assert probe() == "/proc is not mounted"
    (tmp_path / "self").symlink_to("999999999")
    assert "another PID namespace" in probe()


@pytest.mark.parametrize(
    ("scope", "text"),
    [("2", "allows this to root only"), ("3", "allows this to no process"), ("1", "may not")],
)
def test_memory_that_may_not_be_read_is_named(
    scope: str, text: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Yama's scopes 2 and 3; the program, which waits for an answer, is ended."""
    (tmp_path / "self").symlink_to(str(os.getpid()))
    yama = tmp_path / "sys/kernel/yama/ptrace_scope"
    yama.parent.mkdir(parents=True)
    yama.write_text(scope + "\n")
    monkeypatch.setattr(started, "PROC", tmp_path)
    real = os.open

    def refused(path: Any, *arguments: Any, **options: Any) -> int:
        if str(path).endswith("/mem"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return real(path, *arguments, **options)

    monkeypatch.setattr(os, "open", refused)
    reason = probe()
    assert reason.startswith("vc4lab may not read the memory of programs")
    assert text in reason
    assert (scope == "1") == ("yama" not in reason)


def test_a_sandbox_that_refuses_shared_memory_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> int:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "memfd_create", refused)
    assert probe().startswith("memory that programs can map is not available: operation not ")

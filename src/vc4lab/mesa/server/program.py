"""A program on the server: its environment, its private /tmp, how it ended.

Mesa's virpipe connects to /tmp/.virgl_test, a path that cannot be changed. So that several runs do
not meet there, each program gets a /tmp of its own, in which the server's socket is.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from vc4lab.temporary import TemporaryFolder

ENTER = Path(__file__).with_name("enter.py")
TMP = Path("/tmp")
SOCKET = ".virgl_test"
"""Its name is compiled into Mesa."""
ENVIRONMENT = {"LIBGL_ALWAYS_SOFTWARE": "1", "GALLIUM_DRIVER": "virpipe", "MESA_SHADER_CACHE_DISABLE": "true"}
"""Variables that make Mesa use the server; its cache could hold shaders for other capabilities."""
REMOVED = ("MESA_LOADER_DRIVER_OVERRIDE", "LIBGL_DRIVERS_PATH")
"""Variables that would make Mesa use another driver."""
_DESCRIPTORS = 1 << 16
GRACE = 2
"""Seconds."""


class NotPossible(Exception):  # noqa: N818 - a fact about the host
    """The program cannot get a /tmp of its own here; the text says why."""


def environment_of(environment: Mapping[str, str]) -> dict[str, str]:
    """The program's environment."""
    kept = {name: value for name, value in environment.items() if name not in REMOVED}
    return {**kept, **ENVIRONMENT}


def visible_paths(program: Sequence[str], environment: Mapping[str, str], here: Path) -> list[str]:
    """Return the paths below the real /tmp that the program must see: its folder, itself, its files, X's."""
    found = [here, TMP / ".X11-unix"]
    if environment.get("XAUTHORITY"):
        found.append(Path(environment["XAUTHORITY"]))
    for word in program:
        path = Path(word)
        if path.is_absolute() and path.is_relative_to(TMP) and len(path.parts) > 2:
            found.append(path if path.is_dir() else path.parent)
    paths = [path for path in found if path.is_relative_to(TMP) and path != TMP]
    return [str(path) for path in dict.fromkeys(paths)]


class PrivateTmp:
    """A folder that becomes a program's /tmp; as a context manager it is removed at the end."""

    def __init__(self) -> None:
        self._outer = TemporaryFolder("vc4lab-gl-")
        self.path = Path(self._outer.path) / "tmp"
        self.path.mkdir()
        self.path.chmod(0o1777)

    @property
    def socket(self) -> Path:
        """The path of the socket on which the server listens."""
        return self.path / SOCKET

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._outer.remove()


class Program:
    """A started program. Raises NotPossible, or OSError if there is no such program.

    Attributes
    ----------
    descriptor
        Can be read when the program has ended.
    """

    def __init__(self, program: Sequence[str], tmp: Path | None, environment: Mapping[str, str]) -> None:
        read, write = os.pipe()
        visible = visible_paths(program, environment, Path.cwd()) if tmp is not None else []
        command = [
            *(sys.executable, "-I", "-S", str(ENTER), str(write), str(tmp or "")),
            *(*visible, "--", *program),
        ]
        try:
            self._process = subprocess.Popen(command, env=environment_of(environment), pass_fds=[write])
        except BaseException:
            os.close(read)
            raise
        finally:
            os.close(write)
        with open(read, "rb") as file:
            failure = file.read().decode(errors="replace")
        if failure:
            self._process.wait()
            _raise(failure, program[0])
        self.descriptor = os.pidfd_open(self._process.pid)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """A program that still runs is ended."""
        if self._process.poll() is None:
            self.stop()
        self._process.wait()
        os.close(self.descriptor)

    def interrupt(self) -> None:
        """Ctrl-C came here. A terminal sends it to the program, too; `kill` does not."""
        with contextlib.suppress(OSError):
            if os.tcgetpgrp(0) == os.getpgrp():
                return
        self.signal(signal.SIGINT)

    def stop(self) -> None:
        """End the program: it is asked, and has two seconds.

        One that makes an event of SIGTERM (SDL's) may wait for the server, which no longer answers.
        """
        self.signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE)
        if self._process.poll() is None:
            self._process.kill()

    def signal(self, number: int) -> None:
        """Send the program a signal."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)

    def wait(self) -> int:
        """The program's exit code; of one that a signal ended 128 + its number, as shells have."""
        code = self._process.wait()
        return 128 - code if code < 0 else code


def _raise(failure: str, name: str) -> None:
    step, _, reason = failure.partition(": ")
    if step == "P":
        raise FileNotFoundError(f"{name}: {reason.lower()}")
    raise NotPossible(f"the program cannot get a /tmp of its own ({reason.lower()})")


def raise_limit() -> None:
    """Each resource of a client has a descriptor here. After the program was started."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))

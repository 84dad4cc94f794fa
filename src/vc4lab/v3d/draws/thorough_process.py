"""A process of its own for thorough builds: it gets keys of pipelines and gives object code back.

A compiler in this process keeps a lock that first builds wait for, and leaves its heap in holes: an
hour of glmark2 in a booted Linux grew by 5 to 10 MiB, as such builds are spread over half of it.
The process starts with the first build, and ends some time after the last one or with this program.
Keys go as pickles, over a pipe that only the two have.
"""

from __future__ import annotations

import json
import os
import pickle
import select
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from vc4lab.v3d.state.tile_context import FragmentKey

START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from vc4lab.v3d.draws.thorough_process import serve; serve()"
)
SIZE = struct.Struct("<Q")
NICE = 5
"""It leaves the cores to frames."""
STEP = 200
"""Milliseconds between two looks whether the program is still there."""
MOST_BYTES = 1 << 15
"""Bytes of a key's pickle, which fit into a pipe; some 3,600 instructions. Longer ones keep their first
build.
"""
LONGEST = 300.0
"""Seconds after which a build is given up."""


class NotBuilt(RuntimeError):  # noqa: N818 - a fact about a pipeline
    """There is no object code: the first build stays."""


class ThoroughProcess:
    """The process as this one sees it; for one thread.

    `wanted` is asked while it builds; when it says no, the build is given up.
    """

    def __init__(self, wanted: Callable[[], bool] = lambda: True) -> None:
        self._wanted = wanted
        self._process: subprocess.Popen[bytes] | None = None

    def build(self, key: FragmentKey) -> bytes:
        """The object code of a pipeline, compiled thoroughly. Raises NotBuilt."""
        data = pickle.dumps(replace(key))  # without what it has worked out so far
        if len(data) > MOST_BYTES:
            raise NotBuilt("a program of this length")
        try:
            process = self._process = self._process or _started()
            assert process.stdin is not None
            process.stdin.write(SIZE.pack(len(data)) + data)
            process.stdin.flush()
            (size,) = SIZE.unpack(self._read(SIZE.size))
            image = self._read(size)
        except (OSError, NotBuilt) as error:
            self.end()
            raise NotBuilt(str(error)) from None
        if not image:
            raise NotBuilt("the compiler refused")
        return image

    def _read(self, size: int) -> bytes:
        assert self._process is not None
        assert self._process.stdout is not None
        pipe = self._process.stdout.fileno()
        replies = select.poll()  # select() has no room for descriptors from 1024 on
        replies.register(pipe, select.POLLIN)
        end = time.monotonic() + LONGEST
        data = bytearray()
        while len(data) < size:
            if not self._wanted() or time.monotonic() > end:
                raise NotBuilt("given up")
            if replies.poll(STEP):
                more = os.read(pipe, size - len(data))
                if not more:
                    raise NotBuilt("the compiler's process has ended")
                data += more
        return bytes(data)

    def end(self) -> None:
        """End the process, whatever it does."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            for pipe in (process.stdin, process.stdout):
                assert pipe is not None
                with suppress(OSError):
                    pipe.close()
            process.wait()


def _started() -> subprocess.Popen[bytes]:
    """A process that waits for keys; a terminal's signals do not reach it. Raises OSError."""
    import vc4lab

    if not sys.executable:
        raise OSError("Python's own file is not known")
    path = [str(Path(vc4lab.__file__).parents[1]), *map(str, sys.path)]
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", START, json.dumps(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def serve() -> None:
    """Build what is asked for, in the process, until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(OSError):
        os.nice(NICE)
    with open(os.dup(1), "wb") as replies:
        os.dup2(2, 1)  # what a library prints is no reply
        answer(sys.stdin.buffer, replies)


def answer(keys: IO[bytes], replies: IO[bytes]) -> None:
    """Keys in, object code out; nothing for what cannot be built."""
    from vc4lab.qpu.run.environment import Unsupported
    from vc4lab.v3d.fragment.pipeline import thorough_object

    while len(head := keys.read(SIZE.size)) == SIZE.size:
        key = pickle.loads(keys.read(*SIZE.unpack(head)))
        try:
            image = thorough_object(key)
        except (Unsupported, MemoryError, RuntimeError):
            image = b""
        replies.write(SIZE.pack(len(image)) + image)
        replies.flush()

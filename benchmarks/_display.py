"""An X server for programs that need one: Xvfb, where it is installed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def display(size: str = "800x600") -> Iterator[str | None]:
    """The name of a display that nothing else uses; None, with one line said, if Xvfb fails."""
    reader, writer = os.pipe()
    command = ["Xvfb", "-displayfd", str(writer), "-screen", "0", f"{size}x24", "-nolisten", "tcp"]
    server = subprocess.Popen(
        [*command, "-noreset"], pass_fds=[writer], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    os.close(writer)
    try:
        with os.fdopen(reader) as answer:
            number = answer.readline().strip()
        if number:
            yield f":{number}"
        else:
            print("Xvfb does not start")
            yield None
    finally:
        server.terminate()
        server.wait()

"""A program with llvmpipe after the same protocol: ``python -m benchmarks._conformance.peer``.

Debian's ``virgl_test_server`` listens in the program's own /tmp, as ``vc4lab gl`` does.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

from vc4lab.mesa.server.program import PrivateTmp, Program

STARTS = 10.0
"""Seconds that the server may take to listen."""


def main(arguments: list[str]) -> int:
    """The program's exit code."""
    program = arguments[1:] if arguments[:1] == ["--"] else arguments
    environment = dict(os.environ, LIBGL_ALWAYS_SOFTWARE="1", GALLIUM_DRIVER="llvmpipe")
    with PrivateTmp() as tmp:
        server = subprocess.Popen(
            ["virgl_test_server", "--use-egl-surfaceless", f"--socket-path={tmp.socket}"],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            end = time.monotonic() + STARTS
            while not tmp.socket.exists() and time.monotonic() < end:
                time.sleep(0.02)
            with Program(program, tmp.path, os.environ) as started:
                return started.wait()
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

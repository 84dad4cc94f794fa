"""A file of another tool → captured jobs, if it is one. What is wrong raises CaptureError."""

from __future__ import annotations

import os
from pathlib import Path

from vc4lab.capture.errors import CaptureError
from vc4lab.files import read_file, why
from vc4lab.jobs.dumps.clif_reader import MOST_TEXT, is_clif, read_clif
from vc4lab.jobs.dumps.hang_state import is_hang_state, read_hang_state
from vc4lab.jobs.dumps.list_text import NO_MEMORY, is_list_text
from vc4lab.jobs.dumps.memory_dump import MOST_BYTES
from vc4lab.jobs.model import JobsCapture

HEAD = 1 << 16
"""Bytes that say which kind of file it is."""
MOST_FILE = MOST_BYTES + MOST_TEXT


def _head(path: str | Path) -> bytes:
    """The bytes that a file begins with; none of what is no file that can be read."""
    try:
        if not os.path.isfile(path):
            return b""
        with open(path, "rb") as file:
            return file.read(HEAD)
    except (OSError, ValueError):
        return b""


def is_dump(path: str | Path) -> bool:
    """Whether a path is a file of another tool, and no archive."""
    head = _head(path)
    return is_hang_state(head) or is_clif(head) or is_list_text(head)


def dump_bytes(path: str | Path) -> bytes:
    """All of such a file. Raises CaptureError."""
    try:
        return read_file(Path(path), MOST_FILE, plain=True)
    except OSError as error:
        raise CaptureError("CAP-001", why(error), str(path)) from None


def open_dump(path: str | Path) -> JobsCapture:
    """The jobs of such a file. Raises CaptureError."""
    name, data = os.path.basename(path), dump_bytes(path)
    if is_list_text(data[:HEAD]):
        raise CaptureError("CAP-013", NO_MEMORY, name)
    dump = read_hang_state(data, name) if is_hang_state(data) else read_clif(data, name)
    try:
        return dump.capture()
    except CaptureError as error:
        raise error.within(name) from None


def read_list_text(path: str | Path) -> bytes | None:
    """A file that VC4_DEBUG=cl was printed to; None if it is another one. Raises CaptureError."""
    return dump_bytes(path) if is_list_text(_head(path)) else None

"""Files of the host: read up to a limit, written beside and renamed.

Everything that a command or the Python interface reads comes through `read_file`, `read_stream` or
`read_source`, so that a device or an endless file ends in a sentence and not in all of the memory.
What is written comes through `written_whole`, so that a full disk leaves the old file as it was.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
from collections.abc import Iterator
from typing import IO

CHUNK = 1 << 20
PREFIX = ".vc4lab-"
"""Names of files that are being written begin so."""
OPEN_FLAGS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
"""A pipe that lies where a plain file was a moment ago is not waited for."""


class Unusable(OSError):  # noqa: N818 - said to the user as it is
    """A file that exists but cannot be used; `strerror` is a sentence for the user."""

    def __init__(self, text: str, path: str | os.PathLike[str]) -> None:
        super().__init__(errno.EINVAL, text, os.fspath(path))


def size_text(size: int) -> str:
    """ "16 MiB", "1000 bytes": a limit as people read it."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} bytes"


def read_file(path: str | os.PathLike[str], limit: int, *, plain: bool = False) -> bytes:
    """All bytes of a file that has no more than `limit`; `plain`: neither device nor pipe.

    Raises OSError, always with a file name and a sentence.
    """
    if plain:
        check_plain(os.stat(path), path)
    with open(os.open(path, os.O_RDONLY | OPEN_FLAGS) if plain else path, "rb") as file:
        status = os.fstat(file.fileno())
        if plain:
            check_plain(status, path)
        if stat.S_ISREG(status.st_mode) and status.st_size > limit:
            raise _too_large(limit, path)
        data = file.read(status.st_size)  # large ones without parts that are joined
        rest = read_stream(file, limit - len(data), path)
        return data + rest if rest else data


def read_up_to(file: IO[bytes], limit: int) -> bytes:
    """The rest of a file, or its next `limit` bytes. Raises OSError.

    `file.read(limit)` takes memory for all of the limit, also where the file is short.
    """
    size = os.fstat(file.fileno()).st_size
    parts = [file.read(min(size, limit))]
    left = limit - len(parts[0])
    while left > 0 and (part := file.read(min(left, CHUNK))):
        parts.append(part)
        left -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def check_plain(status: os.stat_result, path: str | os.PathLike[str]) -> None:
    """Raises Unusable for a folder, a device or a pipe."""
    if not stat.S_ISREG(status.st_mode):
        raise Unusable("is not a regular file", path)


def read_stream(stream: IO[bytes], limit: int, name: str | os.PathLike[str]) -> bytes:
    """The rest of a stream, if it ends after no more than `limit` bytes. Raises OSError."""
    parts = []
    left = limit
    while part := stream.read(min(left, CHUNK) or 1):
        left -= len(part)
        if left < 0:
            raise _too_large(limit, name)
        parts.append(part)
    return b"".join(parts)


def _too_large(limit: int, name: str | os.PathLike[str]) -> Unusable:
    return Unusable(f"exceeds the limit of {size_text(limit)}", name)


def read_source(name: str, limit: int) -> bytes:
    """A file of the command line, or standard input for "-". Raises OSError."""
    if name != "-":
        return read_file(name, limit)
    if sys.stdin is None:
        raise Unusable("is closed", "<stdin>")
    try:
        return read_stream(sys.stdin.buffer, limit, "<stdin>")
    except OSError as error:
        if error.errno != errno.EBADF:
            raise
        raise Unusable("is closed", "<stdin>") from None


@contextlib.contextmanager
def written_whole(path: str | os.PathLike[str], *, private: bool = False) -> Iterator[IO[bytes]]:
    """A file to write, which takes its place only when the block has ended without an exception.

    Until then the old file stays, and after an exception for good. A device or pipe is written as
    it is; a link stays and what it points to is replaced. private: only the user may read and write
    it, whatever was there before.

    Raises OSError with the path's name.
    """
    target = os.path.realpath(path)
    temporary = os.path.join(os.path.dirname(target), PREFIX + os.urandom(8).hex())
    with _named(path, temporary):
        old = _status(path)
        if _is_device(path, old):
            with open(path, "wb") as file:
                yield file
            return
        if old is not None and not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
        descriptor = os.open(temporary, flags, 0o600 if private else 0o666)
        try:
            with open(descriptor, "wb") as file:
                if old is not None and not private:
                    with contextlib.suppress(OSError):  # a file system without modes
                        os.fchmod(descriptor, stat.S_IMODE(old.st_mode))
                yield file
            os.replace(temporary, target)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise


def write_file(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a whole file, or leave the old one. Raises OSError with the path's name."""
    with written_whole(path) as file:
        file.write(data)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file in UTF-8. Names of files need not be text: their other bytes are written as \\udcff.

    Raises OSError with the path's name.
    """
    write_file(path, text.encode("utf-8", "backslashreplace"))


def why(error: OSError | ValueError) -> str:
    """The sentence of an error about a file, without its name."""
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _status(path: str | os.PathLike[str]) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _is_device(path: str | os.PathLike[str], status: os.stat_result | None) -> bool:
    """Devices, pipes, and what /dev/stdout and /dev/fd/1 stand for, which others write as well."""
    if status is not None and not stat.S_ISREG(status.st_mode):
        return True
    folder = os.path.realpath(os.path.dirname(os.path.abspath(path)))
    return folder == "/dev" or folder.startswith("/proc/")


@contextlib.contextmanager
def _named(path: str | os.PathLike[str], temporary: str) -> Iterator[None]:
    """Errors name the file that was asked for, not the one beside it."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename not in (None, temporary):
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error.__cause__

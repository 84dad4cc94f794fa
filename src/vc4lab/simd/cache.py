"""Object files on disk, so that a pipeline is compiled once per machine and not once per start.

What is read here is executed, so it is trusted only when no one else can have written it
(`cache/trust.py`). Anything else is not used, with a message; the code is compiled then. An object
carries a digest of its bytes and its name: one under another's name is not its code.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import functools
import hashlib
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from vc4lab.cache.place import cache_folder
from vc4lab.cache.trust import Untrusted, open_folder, open_own

_MAGIC = b"vc4lab object 2\n"
_LIMIT = 256 << 20  # bytes; above it the files unused for longest go
_LARGEST = 64 << 20  # bytes of one object
_NEW = ".new-"
_LOOK_SECONDS = 60.0  # a process looks no more often: a full cache has 40,000 files
_LEFT_OVER = 3600.0  # seconds after which a file that was never completed goes
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def directory() -> Path:
    """Return the folder of objects: $VC4LAB_CACHE, $XDG_CACHE_HOME/vc4lab or ~/.cache/vc4lab.

    Without a home folder it is a private temporary folder, which goes when the process ends.
    """
    if _private is not None and not os.environ.get("VC4LAB_CACHE"):
        return _private
    found = cache_folder()
    if found is not None:
        return found
    home = os.environ.get("HOME", "")
    what = f"{home[:60]!r}, which is not a folder" if home else "empty"
    return _make_private(f"$HOME is {what}")


_private: Path | None = None
"""Used in place of the home folder."""
_told: set[str] = set()
_next_look = [0.0]


def _make_private(why: str) -> Path:
    global _private
    from vc4lab.temporary import TemporaryFolder

    made = TemporaryFolder("vc4lab-code-")
    _private = Path(made.path)
    process = os.getpid()

    def remove() -> None:
        if os.getpid() == process:  # not in a child
            made.remove()

    atexit.register(remove)
    _warn_once(
        "JIT-002",
        f"compiled code has no permanent place ({why}): it is kept in {_private} until the program "
        "ends; set HOME or VC4LAB_CACHE",
    )
    return _private


def _warn_once(code: str, text: str) -> None:
    """Warns once per process, on standard error unless the program set up logging."""
    if code not in _told:
        _told.add(code)
        import logging

        logging.getLogger("vc4lab").warning("vc4lab: %s: %s", code, text)


@functools.cache
def source_digest() -> str:
    """A digest of the package's sources, by size and time: a change makes cached code stale."""
    import vc4lab

    found = [getattr(vc4lab, "__version__", "")]
    todo = list(vc4lab.__path__)
    while todo:
        with os.scandir(todo.pop()) as entries:
            for entry in entries:
                if entry.name.endswith(".py"):
                    status = entry.stat()
                    found.append(f"{entry.path} {status.st_size} {status.st_mtime_ns}")
                elif "." not in entry.name and entry.is_dir() and entry.name != "__pycache__":
                    todo.append(entry.path)
    return digest(*sorted(found))


def digest(*parts: str) -> str:
    """The file name for these strings."""
    total = hashlib.sha256()
    for part in parts:
        data = part.encode()
        total.update(len(data).to_bytes(8, "little") + data)
    return total.hexdigest()


# -- places ----------------------------------------------------------------------------------------


def _open_place(name: str) -> int:
    """The folder in which the object `name` is. Raises OSError."""
    root = open_folder(str(directory()))
    try:
        return open_folder(name[:2], root)
    finally:
        os.close(root)


def _make_place(name: str) -> int:
    """The folder in which the object is to be, made if it is not there. Raises OSError."""
    try:
        os.makedirs(directory(), 0o700, exist_ok=True)
    except FileExistsError:
        pass  # no folder; opening it says so
    except OSError as error:
        if os.environ.get("VC4LAB_CACHE"):
            raise
        os.makedirs(_make_private(f"{error.filename}: {error.strerror}"), 0o700, exist_ok=True)
    root = open_folder(str(directory()))
    try:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name[:2], 0o700, dir_fd=root)
        return open_folder(name[:2], root)
    finally:
        os.close(root)


def _open_object(name: str) -> tuple[int, int]:
    """Descriptor and size of the object `name`. Raises OSError."""
    place = _open_place(name)
    try:
        return open_own(name + ".o", _READ, stat.S_IFREG, place)
    finally:
        os.close(place)


def _refuse(error: Untrusted) -> None:
    path = os.fspath(error.filename)
    if path.endswith(".o"):
        path = os.path.join(path[:2], path)
    _warn_once(
        "JIT-001",
        f"{directory() / path} {error.strerror}: compiled code is not loaded from there; delete "
        "it, and vc4lab creates it again",
    )


# -- objects ---------------------------------------------------------------------------------------


def read(name: str) -> bytes | None:
    """The object called `name`, or None if there is none that is whole and ours."""
    try:
        descriptor, size = _open_object(name)
    except Untrusted as error:
        _refuse(error)
        return None
    except OSError:
        return None
    try:
        data = os.read(descriptor, min(size, _LARGEST))
        head = len(_MAGIC)
        image = data[head + 32 :]
        if data[:head] != _MAGIC or _sum(name, image) != data[head : head + 32]:
            return None
        with contextlib.suppress(OSError):
            os.utime(descriptor)
        return image
    except OSError:
        return None
    finally:
        os.close(descriptor)


def _sum(name: str, image: bytes) -> bytes:
    total = hashlib.sha256(name.encode())  # names have one length
    total.update(image)
    return total.digest()


def write(name: str, image: bytes) -> None:
    """Keeps an object; a full or read-only disk is no error, but is reported once."""
    try:
        place = _make_place(name)
        try:
            _write(place, name + ".o", _MAGIC + _sum(name, image) + image)
        finally:
            os.close(place)
    except Untrusted as error:
        _refuse(error)
        return
    except OSError as error:
        if error.errno != errno.ENOENT:  # else another process has just deleted the folder
            _warn_once(
                "JIT-003",
                f"compiled code cannot be kept in {directory()} ({error.strerror}): the next start "
                "compiles it again",
            )
        return
    if int(name[:4], 16) % 64 == 0 and time.monotonic() >= _next_look[0]:  # now and then
        _next_look[0] = time.monotonic() + _LOOK_SECONDS
        prune(_LIMIT)


def _write(place: int, name: str, data: bytes) -> None:
    temporary = _NEW + os.urandom(16).hex()
    descriptor = os.open(temporary, _CREATE, 0o600, dir_fd=place)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
        os.replace(temporary, name, src_dir_fd=place, dst_dir_fd=place)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=place)
        raise


def prune(limit: int) -> None:
    """Deletes what was never completed, and the objects unused for longest until `limit` bytes
    remain.
    """
    try:
        root = open_folder(str(directory()))
    except OSError:
        return
    try:
        kept = []
        for path, status in _files(root):
            if not path.endswith(".o"):
                if time.time() - status.st_mtime > _LEFT_OVER:
                    _delete(root, path)
            else:
                kept.append((status.st_mtime, status.st_size, path))
        total = sum(size for _, size, _ in kept)
        for _, size, path in sorted(kept):
            if total <= limit:
                break
            _delete(root, path)
            total -= size
    finally:
        os.close(root)


def _files(root: int) -> Iterator[tuple[str, os.stat_result]]:
    """Objects and unfinished ones, as paths in the folder `root`."""
    for folder in os.listdir(root):
        if len(folder) != 2:
            continue
        with contextlib.suppress(OSError):
            place = open_folder(folder, root)
            try:
                for name in os.listdir(place):
                    if name.endswith(".o") or name.startswith(_NEW):
                        with contextlib.suppress(OSError):
                            status = os.stat(name, dir_fd=place, follow_symlinks=False)
                            yield f"{folder}/{name}", status
            finally:
                os.close(place)


def _delete(root: int, path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path, dir_fd=root)

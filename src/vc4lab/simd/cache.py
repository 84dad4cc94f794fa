"""Object files on disk, so that a pipeline is compiled once per machine and not once per start."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import threading
from pathlib import Path

_MAGIC = b"vc4lab object 1\n"
_LIMIT = 256 << 20  # bytes; above it the files unused for longest go


def directory() -> Path:
    """Where objects are kept: $VC4LAB_CACHE or ~/.cache/vc4lab."""
    chosen = os.environ.get("VC4LAB_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "vc4lab"


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
    """The file name for what these strings say."""
    total = hashlib.sha256()
    for part in parts:
        data = part.encode()
        total.update(len(data).to_bytes(8, "little") + data)
    return total.hexdigest()


def _path(name: str) -> Path:
    return directory() / name[:2] / (name + ".o")


def holds(name: str) -> bool:
    """Whether there is an object called `name`; it may still be damaged."""
    return _path(name).exists()


def read(name: str) -> bytes | None:
    """The object called `name`, or None if there is none that is whole."""
    path = _path(name)
    try:
        data = path.read_bytes()
    except OSError:
        return None
    head = len(_MAGIC)
    image = data[head + 32 :]
    if data[:head] != _MAGIC or hashlib.sha256(image).digest() != data[head : head + 32]:
        return None
    with contextlib.suppress(OSError):
        os.utime(path)
    return image


def write(name: str, image: bytes) -> None:
    """Keeps an object; a full or read-only disk is no error."""
    path = _path(name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".new-{os.getpid()}-{threading.get_ident()}")
        try:
            with open(temporary, "wb") as file:
                file.write(_MAGIC + hashlib.sha256(image).digest() + image)
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
    except OSError:
        return
    if int(name[:4], 16) % 64 == 0:  # now and then
        prune(_LIMIT)


def prune(limit: int) -> None:
    """Deletes the objects unused for longest until `limit` bytes remain."""
    entries = []
    for path in directory().glob("*/*.o"):
        with contextlib.suppress(OSError):
            status = path.stat()
            entries.append((status.st_mtime, status.st_size, path))
    total = sum(size for _, size, _ in entries)
    for _, size, path in sorted(entries, key=lambda e: e[0]):
        if total <= limit:
            break
        with contextlib.suppress(OSError):
            path.unlink()
        total -= size

"""Lists what the cache holds, by kind, and keeps all of it below a bound.

Above the bound, what vc4lab makes again by itself goes, the pieces unused for longest first. Trees
and cards need the network, so only `vc4lab cache --clear` removes them; they count, too, but leave
`ROOM` for the rest.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from vc4lab.cache.trust import check_way
from vc4lab.files import Unusable

BOUND = 4 << 30
"""Bytes of all kinds together."""
ROOM = 1 << 30
"""Bytes that what can be made again may always have: a root and a state take 540 MB."""
YOUNG = 60.0
"""Seconds after a use in which nothing goes for the bound: a command may be about to load it."""
_DRM = r"drm/[a-z]+(?:/arm[a-z]+)?"


class Busy(Unusable):
    """Another process is changing it."""


@dataclass(frozen=True)
class Kind:
    """Describes a kind of file. pattern: of its path below the cache; again: it is made when needed."""

    name: str
    title: str
    pattern: re.Pattern[str]
    again: bool = True


KINDS = (
    Kind("code", "compiled code", re.compile(r"[0-9a-f]{2}/(?:[0-9a-f]{64}\.o|\.new-\w+)")),
    Kind("states", "saved states of booted systems", re.compile(_DRM + r"/linux/[^/]+\.state")),
    Kind("roots", "roots of booted systems", re.compile(_DRM + r"/linux/(?!.*\.state).+")),
    Kind("downloads", "packages that are not unpacked", re.compile(_DRM + "/apt/archives/.+")),
    Kind("cards", "cards of --root full", re.compile(_DRM + "/full/.+"), again=False),
    Kind("trees", "unpacked packages and qemu", re.compile(_DRM + "/.+"), again=False),
)
"""The first whose pattern fits."""


@dataclass(frozen=True)
class Piece:
    """A file of the cache: bytes on the disk, and when it was used last (s)."""

    kind: Kind
    path: Path
    size: int
    used: float


def pieces(root: Path) -> Iterator[Piece]:
    """All files of the cache. Raises Untrusted, OSError."""
    check_way(root)
    todo = [str(root)]
    while todo:
        with os.scandir(todo.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    todo.append(entry.path)
                    continue
                below = os.path.relpath(entry.path, root)
                kind = next((kind for kind in KINDS if kind.pattern.fullmatch(below)), None)
                if kind is None:
                    continue
                with contextlib.suppress(FileNotFoundError):  # another process has removed it
                    status = entry.stat(follow_symlinks=False)
                    size = status.st_blocks * 512
                    yield Piece(kind, Path(entry.path), size, status.st_mtime)


def keep_within(root: Path, bound: int = BOUND, room: int = ROOM) -> None:
    """Remove what goes above the bound. A cache that cannot be read or changed stays as it is."""
    with contextlib.suppress(OSError):
        found = [*pieces(root)]
        fixed = sum(piece.size for piece in found if not piece.kind.again)
        again = sorted((p for p in found if p.kind.again), key=lambda piece: piece.used)
        left = max(bound - fixed, room)
        total = sum(piece.size for piece in again)
        for piece in again:
            if total <= left or time.time() - piece.used < YOUNG:
                break
            piece.path.unlink()
            total -= piece.size


def clear(root: Path, kinds: Iterable[str]) -> int:
    """Remove all of these kinds; the bytes. Raises Untrusted, OSError, Busy during a setup."""
    names = {*kinds}
    total = 0
    if names & {"trees", "downloads", "cards"}:
        _check_setups(root)
    for piece in list(pieces(root)):
        if piece.kind.name in names:
            with contextlib.suppress(FileNotFoundError):
                piece.path.unlink()
                total += piece.size
    if "trees" in names:
        for folder in sorted((root / "drm").glob("*")):
            _remove_empty(folder)
    return total


def _check_setups(root: Path) -> None:
    """Raises Busy while one is running, which holds its lock (`drm/setup/places.py`)."""
    for path in (*root.glob("drm/*/lock"), *root.glob("drm/*/*/lock")):
        with open(path, "rb") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except OSError:
                raise Busy("is in use: a --setup is running", path) from None


def _remove_empty(folder: Path) -> None:
    """Folders without files go, from within."""
    for place, _folders, _files in os.walk(folder, topdown=False):
        with contextlib.suppress(OSError):  # it is not empty
            os.rmdir(place)

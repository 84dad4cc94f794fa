"""The SD card: a folder, or an image with a FAT file system. Names ignore case, as on FAT."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

from vc4lab.files import read_up_to


class Card(Protocol):
    """A card as the firmware asks for its files."""

    title: str

    def find(self, name: str) -> str | None:
        """The file's own name (without folders), None if there is no such file on the card."""

    def size(self, name: str) -> int:
        """Bytes of a file that `find` has found. Raises OSError."""

    def read(self, name: str, limit: int) -> bytes:
        """At most `limit` bytes from its beginning. Raises OSError."""


def split_name(name: str) -> list[str] | None:
    """The parts of a path on the card; None if it would leave the card or makes no sense."""
    parts = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".")]
    if not parts or ".." in parts or "\0" in name:
        return None
    return parts


class FolderCard:
    """A folder of the host; links that lead out of it are not followed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.title = str(folder)

    def _path(self, name: str) -> Path | None:
        parts = split_name(name)
        if parts is None:
            return None
        here = self.folder
        for part in parts:
            exact = here / part
            try:
                if not os.path.lexists(exact):
                    names = sorted(p for p in os.listdir(here) if p.lower() == part.lower())
                    if not names:
                        return None
                    exact = here / names[0]
            except OSError:
                return None
            here = exact
        try:
            inside = here.resolve().is_relative_to(self.folder.resolve())
            return here if inside and here.is_file() else None
        except (OSError, RuntimeError):
            return None

    def find(self, name: str) -> str | None:
        path = self._path(name)
        return None if path is None else path.name

    def size(self, name: str) -> int:
        path = self._path(name)
        if path is None:
            raise FileNotFoundError(name)
        return path.stat().st_size

    def read(self, name: str, limit: int) -> bytes:
        path = self._path(name)
        if path is None:
            raise FileNotFoundError(name)
        with path.open("rb") as file:
            return read_up_to(file, limit)


class BareImage(FolderCard):
    """A kernel image by itself: its folder serves for config.txt, the kernel is the image."""

    def __init__(self, path: Path) -> None:
        super().__init__(path.parent)
        self.kernel = path

"""The files of a capture: members of a zip archive, or files of a folder.

A capture may come from a stranger. Names are checked before anything else: letters, digits and
`_ - .` between slashes, no part `.` or `..`. Archives have plain members only, stored or deflated;
what they unpack to is bounded before it is read. Links are not followed out of a folder.
"""

from __future__ import annotations

import os
import re
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol

from vc4lab.capture.errors import CaptureError
from vc4lab.files import read_file, size_text, why, written_whole

SUFFIX = ".vc4cap"
ARCHIVE_BYTES = 1 << 30
"""Bytes of a whole archive at most."""
UNPACKED_BYTES = 1 << 31
"""Bytes of all members together at most."""
MEMBER_BYTES = 1 << 28
MEMBERS = 60_000
DIRECTORY_BYTES = 16 << 20
"""Bytes of an archive's directory at most."""
NAME_LENGTH = 100
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*(/[A-Za-z0-9_-][A-Za-z0-9_.-]*)*")
_END = b"PK\5\6"
_END_BYTES = 22
_LINK, _KINDS = 0o120000, 0o170000
_ENCRYPTED = 1
_DATE = (1980, 1, 1, 0, 0, 0)
"""Date of all members: equal captures are equal files."""


class Files(Protocol):
    """Reads the files of a capture: a folder or an archive.

    Attributes
    ----------
    name
        For messages.
    is_folder
        Whether it is a folder, which people edit.
    """

    name: str
    is_folder: bool

    def __contains__(self, name: str) -> bool: ...

    def __iter__(self) -> Iterator[str]: ...

    def read(self, name: str, limit: int = MEMBER_BYTES) -> bytes:
        """A whole file. Raises CaptureError."""
        ...


def check_name(name: str) -> str:
    """The name of a file in a capture. Raises CaptureError for one that could lead elsewhere."""
    if len(name) > NAME_LENGTH or _NAME.fullmatch(name) is None:
        raise CaptureError("CAP-002", f"a file cannot have the name {name[:NAME_LENGTH]!r}")
    return name


class ArchiveFiles:
    """The members of a zip archive. Raises CaptureError for what is none, or none of ours."""

    is_folder = False

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        try:
            data = read_file(path, ARCHIVE_BYTES, plain=True)
        except OSError as error:
            raise CaptureError("CAP-001", why(error), self.name) from None
        self._check_directory(data)
        import io

        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
            raise CaptureError("CAP-001", f"no zip archive: {error}", self.name) from None
        self._members = self._checked()

    def _check_directory(self, data: bytes) -> None:
        """How large the directory is, before it is read as a whole."""
        place = data.rfind(_END, max(len(data) - _END_BYTES - 0xFFFF, 0))
        if place < 0 or len(data) < place + _END_BYTES:
            raise CaptureError("CAP-001", "no zip archive, or not the whole of it", self.name)
        count, size, start = struct.unpack_from("<HII", data, place + 10)
        if count > MEMBERS or size > DIRECTORY_BYTES or start + size > place:
            raise CaptureError("CAP-002", f"its directory has {count} files, {size} bytes", self.name)
        if data[max(place - 20, 0) : place].startswith(b"PK\6\7"):
            raise CaptureError("CAP-002", "archives of the form Zip64 are not read", self.name)

    def _checked(self) -> dict[str, zipfile.ZipInfo]:
        members: dict[str, zipfile.ZipInfo] = {}
        total = 0
        for info in self._zip.infolist():
            if info.filename.endswith("/"):
                continue
            try:
                name = check_name(info.filename)
            except CaptureError as error:
                raise error.within(self.name) from None
            mode = info.external_attr >> 16 & _KINDS
            if name in members:
                raise CaptureError("CAP-002", f"it has {name} twice", self.name)
            if mode == _LINK or info.flag_bits & _ENCRYPTED:
                raise CaptureError("CAP-002", f"{name} is no plain file", self.name)
            if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise CaptureError("CAP-002", f"{name}: neither stored nor deflated", self.name)
            total += info.file_size
            if info.file_size > MEMBER_BYTES or total > UNPACKED_BYTES:
                raise CaptureError(
                    "CAP-002",
                    f"{name}: more than {size_text(MEMBER_BYTES)}, or more than "
                    f"{size_text(UNPACKED_BYTES)} in all",
                    self.name,
                )
            members[name] = info
        return members

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def read(self, name: str, limit: int = MEMBER_BYTES) -> bytes:
        info = self._members.get(name)
        where = f"{self.name}: {name}"
        if info is None:
            raise CaptureError("CAP-003", "there is no such file", where)
        if info.file_size > limit:
            raise CaptureError("CAP-003", f"more than {size_text(limit)}", where)
        try:
            with self._zip.open(info) as file:
                data = file.read(info.file_size)
                if len(data) == info.file_size and not file.read(1):
                    return data
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError) as error:
            raise CaptureError("CAP-001", f"damaged: {error}", where) from None
        raise CaptureError("CAP-001", "damaged: its size is not what the archive says", where)


class FolderFiles:
    """The files of a folder."""

    is_folder = True

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self._path = os.path.realpath(path)

    def __contains__(self, name: str) -> bool:
        return os.path.isfile(os.path.join(self._path, check_name(name)))

    def __iter__(self) -> Iterator[str]:
        count = 0
        for folder, _folders, names in os.walk(self._path):
            for name in sorted(names):
                count += 1
                if count > MEMBERS:
                    raise CaptureError("CAP-002", f"it has more than {MEMBERS} files", self.name)
                found = os.path.relpath(os.path.join(folder, name), self._path)
                if _NAME.fullmatch(found):
                    yield found

    def read(self, name: str, limit: int = MEMBER_BYTES) -> bytes:
        where = os.path.join(self.name, check_name(name))
        target = os.path.realpath(os.path.join(self._path, name))
        if not target.startswith(self._path + os.sep):
            raise CaptureError("CAP-002", "leads out of the folder", where)
        try:
            return read_file(target, limit, plain=True)
        except FileNotFoundError:
            raise CaptureError("CAP-003", "there is no such file", where) from None
        except OSError as error:
            raise CaptureError("CAP-003", why(error), where) from None


def open_files(path: Path) -> Files:
    """A folder, or an archive. Raises CaptureError."""
    return FolderFiles(path) if path.is_dir() else ArchiveFiles(path)


def write_archive(path: Path, files: Iterable[tuple[str, bytes]]) -> None:
    """Write an archive, or leave the old one. Raises OSError, CaptureError for what is too much."""
    total = count = 0
    with written_whole(path) as out, zipfile.ZipFile(out, "w", allowZip64=False) as archive:
        for name, data in files:
            total += len(data)
            count += 1
            if len(data) > MEMBER_BYTES or total > UNPACKED_BYTES or count > MEMBERS:
                raise CaptureError("CAP-002", "these frames are more than a capture holds")
            info = zipfile.ZipInfo(check_name(name), _DATE)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            archive.writestr(info, data, compresslevel=1)


def write_folder(path: Path, files: Iterable[tuple[str, bytes]]) -> None:
    """Write a folder that is not there, or is empty. Raises OSError, CaptureError."""
    try:
        path.mkdir(parents=True)
    except FileExistsError:
        if not path.is_dir() or any(path.iterdir()):
            raise CaptureError("CAP-005", "is there already, and is not empty", str(path)) from None
    for name, data in files:
        target = path / check_name(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        with open(target, "xb") as file:
            file.write(data)

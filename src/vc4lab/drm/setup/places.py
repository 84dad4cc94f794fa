"""Folders in which --setup keeps its files, and what is installed.

Below the cache's folder (`cache/place.py`), one folder per suite of Debian::

    drm/bookworm/apt/        state of the package client: lists, downloaded packages
    drm/bookworm/tree/       the unpacked packages
    drm/bookworm/packages/   control fields of each unpacked package
    drm/bookworm/qemu-aarch64
    drm/bookworm/programs/   links to programs of the tree, by name
    drm/bookworm/bin/        the same names for shells: each starts qemu
    drm/bookworm/piglit/     what piglit's framework needs, if it was brought
    drm/bookworm/complete    written last
    drm/bookworm/armhf/      a folder of the same kind, without qemu: `vc4lab linux` for 32 bits
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from vc4lab.cache.place import cache_folder
from vc4lab.cache.trust import Untrusted, check_tree, check_way
from vc4lab.drm.setup import host_driver

SUITES = ("bookworm", "trixie")
"""The suites of Debian that were tried, the default one first."""
QEMU = "qemu-aarch64"
ARM64 = "arm64"
MULTIARCHS = {
    ARM64: "usr/lib/aarch64-linux-gnu",
    "armhf": "usr/lib/arm-linux-gnueabihf",
    "armel": "usr/lib/arm-linux-gnueabi",
}
"""Debian's architectures of a Pi, and where each has its libraries."""
MULTIARCH = MULTIARCHS[ARM64]
DRIVER = f"{MULTIARCH}/dri/{host_driver.DRIVER}"
_UNSET = ("LD_PRELOAD", host_driver.DRIVERS_PATH, "GBM_BACKENDS_PATH")
"""Variables of the host's that would lead arm64 programs astray."""
_RUN = ".run"
"""The script that the names in bin/ are links to."""


class SetupFailed(Exception):  # noqa: N818 - said to the user as it is
    """--setup cannot go on; the text says why. `output`: a file could not be written."""

    def __init__(self, text: str, *, output: bool = False) -> None:
        super().__init__(text)
        self.output = output


def base_folder() -> Path:
    """The folder of all suites. Raises SetupFailed where there is no place for it."""
    found = cache_folder()
    if found is None:
        raise SetupFailed("$HOME is not a folder; set XDG_CACHE_HOME to one")
    return found / "drm"


@dataclass(frozen=True)
class Brought:
    """The files that --setup brought of one suite, or is bringing."""

    suite: str
    folder: Path
    architecture: str = ARM64

    @property
    def multiarch(self) -> str:
        """The folder of libraries in the tree."""
        return MULTIARCHS[self.architecture]

    @property
    def tree(self) -> Path:
        return self.folder / "tree"

    @property
    def qemu(self) -> Path:
        return self.folder / QEMU

    @property
    def emulator(self) -> list[str]:
        """qemu and its options; the program follows."""
        return [str(self.qemu), "-L", "/", "-U", ",".join(_UNSET)]

    @property
    def names_folder(self) -> Path:
        """A folder for PATH."""
        return self.folder / "bin"

    @property
    def is_begun(self) -> bool:
        """Whether something is there."""
        return (self.folder / "apt").is_dir()

    @property
    def is_complete(self) -> bool:
        """Whether programs can be run."""
        runs_here = self.architecture != ARM64 or self.qemu.is_file()
        return (self.folder / "complete").is_file() and runs_here

    def check(self) -> None:
        """Whether the folder and what is started in it are trusted. Raises Untrusted."""
        for path in (self.tree, self.qemu, self.folder / "programs", self.names_folder):
            check_way(path)

    def check_all(self) -> None:
        """Whether every file is trusted: before programs of the tree run. Raises Untrusted."""
        self.check()
        check_tree(self.folder)

    def complete(self) -> None:
        """All is there."""
        (self.folder / "complete").write_text("")

    def incomplete(self) -> None:
        """Something is going to be changed."""
        (self.folder / "complete").unlink(missing_ok=True)

    # -- packages ----------------------------------------------------------------------------------

    def note(self, name: str, fields: str) -> None:
        """A package is unpacked: its file's name and control fields."""
        folder = self.folder / "packages"
        folder.mkdir(exist_ok=True)
        for older in folder.glob(f"{name.partition('_')[0]}_*"):
            older.unlink()
        beside = self.folder / "unpacked.new"
        beside.write_text(fields.rstrip("\n") + "\nStatus: install ok installed\n")
        beside.replace(folder / name)

    def unpacked(self) -> list[str]:
        """The control fields of all unpacked packages."""
        try:
            files = sorted((self.folder / "packages").iterdir())
        except OSError:
            return []
        return [file.read_text(encoding="utf-8", errors="replace") for file in files]

    def names(self) -> set[str]:
        """Names of the unpacked packages."""
        return {_field(text, "Package") for text in self.unpacked()}

    def fault(self) -> str:
        """Why the tree must be made again; empty if nothing is known."""
        others = [_field(text, "Package") for text in self.unpacked() if not self.is_fitting(text)]
        if others:
            more = f" and {len(others) - 1} more" if len(others) > 1 else ""
            return f"it has packages that are not for {self.architecture} ({others[0]}{more})"
        if self.architecture == ARM64 and self.is_complete and not (self.tree / DRIVER).is_file():
            return f"{DRIVER} is missing in it"
        return ""

    def is_fitting(self, fields: str) -> bool:
        """Whether a package with these control fields is for the tree's architecture."""
        return _field(fields, "Architecture") in (self.architecture, "all")

    def discard(self) -> None:
        """Remove all that was unpacked; what was downloaded and qemu stay. Raises OSError."""
        self.incomplete()
        for folder in (
            self.tree,
            self.folder / "packages",
            self.folder / "unpacking",
            self.folder / "programs",
            self.names_folder,
            self.folder / "piglit",
        ):
            if folder.exists():
                shutil.rmtree(folder)

    # -- programs ----------------------------------------------------------------------------------

    def add_program(self, path: str) -> None:
        """Let a program of the tree be called by its name."""
        name = os.path.basename(path)
        links = self.folder / "programs"
        for folder, target in ((links, f"../tree{path}"), (self.names_folder, _RUN)):
            folder.mkdir(exist_ok=True)
            (folder / name).unlink(missing_ok=True)
            (folder / name).symlink_to(target)
        script = self.names_folder / _RUN
        command = shlex.join([*self.emulator, str(links)])
        script.write_text(f'#!/bin/sh\nexec {command}/"${{0##*/}}" "$@"\n')
        script.chmod(0o755)

    def program(self, name: str) -> Path | None:
        """The file of a program that can be called by its name."""
        if self.architecture != ARM64:
            file = self.tree / "usr/bin" / name
            return file.resolve() if "/" not in name and file.is_file() else None
        link = self.folder / "programs" / name
        return link.resolve() if link.is_symlink() else None

    # -- one at a time -----------------------------------------------------------------------------

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """One setup at a time, of files that only the user may write. Raises SetupFailed."""
        before = os.umask(0o022)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.check()
            lock = open(self.folder / "lock", "wb")  # noqa: SIM115
        except OSError as error:
            os.umask(before)
            if isinstance(error, Untrusted):
                raise SetupFailed(str(error)) from None
            raise SetupFailed(f"{self.folder}: {(error.strerror or '').lower()}", output=True) from None
        try:
            with lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError:
                    raise SetupFailed("another vc4lab drm --setup is running") from None
                yield
        finally:
            os.umask(before)


def _field(fields: str, name: str) -> str:
    """A control field of a package."""
    start = f"{name}: "
    lines = (line for line in fields.split("\n") if line.startswith(start))
    return next(lines, start)[len(start) :].strip()


def brought(suite: str, architecture: str = ARM64) -> Brought:
    """The folder of a suite."""
    below = () if architecture == ARM64 else (architecture,)
    return Brought(suite, base_folder().joinpath(suite, *below), architecture)


def find_brought(suite: str | None = None, architecture: str = ARM64) -> Brought | None:
    """Find what programs can be run with: of that suite, else of the first that is complete.

    Raises Untrusted where others may have written it.
    """
    try:
        places = [brought(name, architecture) for name in ([suite] if suite else SUITES)]
    except SetupFailed:
        return None
    found = next((one for one in places if one.is_complete), None)
    if found is not None:
        found.check()
    return found

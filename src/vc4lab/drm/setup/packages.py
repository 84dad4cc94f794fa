"""Debian's packages, through the host's apt-get with separate state.

Nothing of the host's state is read or changed: lists, downloads and the file of installed packages
are in vc4lab's folder. Its configuration applies (proxy, passwords, timeouts), and its mirror if it
has one of Debian. apt checks the suite's Release file by the keyring of Debian's archive, the lists
by Release and each package by the lists; what is not signed is refused, whatever the host allows.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from vc4lab.drm.setup.places import Brought, SetupFailed
from vc4lab.drm.setup.tools import environment, run_tool, tool_failed

KEYRINGS = (
    "/usr/share/keyrings/debian-archive-keyring.gpg",
    "/usr/share/keyrings/debian-archive-keyring.pgp",
)
MIRROR = "http://deb.debian.org/debian"
SECURITY = "http://deb.debian.org/debian-security"
LIBRARIES = ("libgl1-mesa-dri", "libegl-mesa0", "libegl1", "libgles2", "libgbm1")
PROGRAMS = ("kmscube", "glmark2-es2-drm", "libdrm-tests", "drm-info", "libsdl2-tests")
QEMU_PACKAGES = {"bookworm": "qemu-user-static", "trixie": "qemu-user"}
"""The package with a statically linked qemu."""
_URI = re.compile(r"'[^']*' (\S+) (\d+)(?: (\w+):([0-9a-f]+))?")
_SUMS = {"SHA512": "sha512", "SHA256": "sha256", "MD5Sum": "md5"}
"""apt's names of checksums, and Python's."""
_RELEASE = re.compile(r"'([^']+)/dists/([^']+)/InRelease'")
_UNPACKED = re.compile(r"([\d.,]+) ([kMG]?)B of additional disk space")
_UNITS = {"": 1, "k": 1000, "M": 1000**2, "G": 1000**3}
_NAME = re.compile(r"[a-z0-9][a-z0-9+.-]*")

Show = Callable[[str], None]


@dataclass(frozen=True)
class PackageFile:
    """A package's file as the signed lists have it: name, bytes, checksum."""

    name: str
    size: int
    sum_name: str
    sum: str

    def is_whole(self, place: Path) -> bool:
        """Whether the file there is this one. Raises OSError."""
        algorithm = _SUMS.get(self.sum_name)
        if algorithm is None or place.stat().st_size != self.size:
            return False
        with open(place, "rb") as file:
            return hashlib.file_digest(file, algorithm).hexdigest() == self.sum


@dataclass(frozen=True)
class Wanted:
    """Packages that are not there yet."""

    names: tuple[str, ...]
    files: tuple[PackageFile, ...]
    unpacked: int
    """Bytes on the disk, as the packages say; 0 if they do not."""

    @property
    def download(self) -> int:
        """Bytes in all."""
        return sum(file.size for file in self.files)


class PackageClient:
    """apt-get for one suite."""

    def __init__(self, brought: Brought, architectures: Sequence[str]) -> None:
        self.brought = brought
        self.architectures = architectures
        self.folder = brought.folder / "apt"
        self.archives = self.folder / "archives"

    def prepare(self) -> None:
        """Lay down state and configuration. Raises SetupFailed, OSError."""
        keyring = next((file for file in KEYRINGS if os.path.exists(file)), None)
        if keyring is None:
            raise SetupFailed(
                f"the keys of Debian's archive are missing ({KEYRINGS[0]}): "
                "apt-get install debian-archive-keyring"
            )
        for name in ("lists/partial", "archives/partial", "empty/partial", "none", "cache"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        (self.folder / "debian.sources").write_text(self._sources(keyring))
        (self.folder / "apt.conf").write_text(self._configuration())

    def _sources(self, keyring: str) -> str:
        suite = self.brought.suite
        mirror, security = host_mirrors(suite)
        stanzas = [(mirror, f"{suite} {suite}-updates"), (security, f"{suite}-security")]
        return "\n".join(
            f"Types: deb\nURIs: {place}\nSuites: {suites}\nComponents: main\n"
            f"Architectures: {' '.join(self.architectures)}\nLanguages: none\n"
            f"Targets: Packages\nPDiffs: no\nSigned-By: {keyring}\n"
            for place, suites in stanzas
        )

    def _configuration(self) -> str:
        folder = self.folder
        settings = {
            "APT::Architecture": self.architectures[0],
            "APT::Install-Recommends": "false",
            "APT::Install-Suggests": "false",
            "APT::Get::AllowUnauthenticated": "false",
            "APT::Get::Assume-Yes": "true",
            "APT::Update::Error-Mode": "any",
            "APT::Sandbox::User": "root",  # _apt cannot get into a user's folder
            "Acquire::AllowInsecureRepositories": "false",
            "Acquire::AllowWeakRepositories": "false",
            "Acquire::AllowDowngradeToInsecureRepositories": "false",
            "Acquire::Check-Valid-Until": "true",
            "Acquire::Languages": "none",
            "Acquire::Retries": "2",
            "Dir::State": f"{folder}/",
            "Dir::State::lists": f"{folder}/lists/",
            "Dir::State::status": f"{folder}/status",
            "Dir::State::extended_states": f"{folder}/extended_states",
            "Dir::Cache": f"{folder}/cache/",
            "Dir::Cache::archives": f"{self.archives}/",
            "Dir::Etc::sourcelist": f"{folder}/debian.sources",
            "Dir::Etc::sourceparts": f"{folder}/none",
            "Dir::Etc::preferences": f"{folder}/none/none",
            "Dir::Etc::preferencesparts": f"{folder}/none",
            "Dir::Log": f"{folder}/",
        }
        cleared = (
            "APT::Update::Pre-Invoke", "APT::Update::Post-Invoke",
            "APT::Update::Post-Invoke-Success", "APT::Architectures", "APT::Default-Release",
            "Acquire::Languages",
        )  # fmt: skip
        lines = [f"#clear {name};" for name in cleared]
        lines += [f'{name} "{value}";' for name, value in settings.items()]
        lines += [f'APT::Architectures:: "{name}";' for name in self.architectures]
        return "\n".join(lines) + "\n"

    def _command(self, *arguments: str) -> list[str]:
        return ["apt-get", "-c", str(self.folder / "apt.conf"), *arguments]

    # -- steps -------------------------------------------------------------------------------------

    def update(self, show: Show) -> None:
        """Get the lists of packages. Raises SetupFailed."""
        self._status()
        self._with_progress(self._command("-q", "update"), show)

    def resolve(self, names: Sequence[str]) -> Wanted:
        """List what these packages need and what is not unpacked. Raises SetupFailed.

        A name without an architecture is of the first one.
        """
        first = self.architectures[0]
        names = [name if ":" in name else f"{name}:{first}" for name in names]
        self._status()
        away = f"Dir::Cache::archives={self.folder}/empty/"  # else what is downloaded is left out
        sums = "Acquire::ForceHash=SHA256"  # else MD5 is printed
        text = run_tool(self._command("-q", "-o", away, "-o", sums, "install", "--print-uris", *names))
        found = _URI.findall(text)
        size = _UNPACKED.search(text)
        unpacked = 0
        if size is not None:
            unpacked = int(float(size[1].replace(",", "")) * _UNITS[size[2]])
        files = (PackageFile(name, int(size), kind, value) for name, size, kind, value in found)
        return Wanted(tuple(names), tuple(files), unpacked)

    def discard_damaged(self, wanted: Wanted) -> list[str]:
        """Remove packages of an interrupted run that are not what the lists say; their names.

        apt-get compares only the size of a file that is there. Raises OSError.
        """
        damaged = []
        for file in wanted.files:
            place = self.archives / file.name
            if place.is_file() and not file.is_whole(place):
                place.unlink()
                damaged.append(file.name)
        return damaged

    def download(self, wanted: Wanted, show: Show) -> list[Path]:
        """Get the packages; what an interrupted run got is used. Raises SetupFailed."""
        command = self._command("-q", "install", "--download-only", *wanted.names)
        self._with_progress(command, show)
        files = [self.archives / file.name for file in wanted.files]
        for file in files:
            if not file.is_file():
                raise SetupFailed(f"apt-get: {file.name} was not downloaded")
        return files

    def present(self, wanted: Wanted) -> int:
        """Bytes of the packages that are downloaded, wholly or in part."""
        total = 0
        for file in wanted.files:
            for folder in (self.archives, self.archives / "partial"):
                with contextlib.suppress(OSError):
                    total += (folder / file.name).stat().st_size
        return total

    def _status(self) -> None:
        """Describe as installed the packages that are unpacked."""
        (self.folder / "status").write_text("\n".join(self.brought.unpacked()))

    def _with_progress(self, command: list[str], show: Show) -> None:
        with open(os.memfd_create("output"), "w+", encoding="utf-8", errors="replace") as output:
            read, write = os.pipe()
            try:
                tool = subprocess.Popen(
                    [*command[:1], "-o", f"APT::Status-Fd={write}", *command[1:]],
                    stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                    pass_fds=[write], env=environment(),
                )  # fmt: skip
            except OSError as error:
                os.close(read)
                raise SetupFailed(f"{command[0]}: {(error.strerror or '').lower()}") from None
            finally:
                os.close(write)
            try:
                with open(read, encoding="utf-8", errors="replace") as lines:
                    for line in lines:
                        fields = line.rstrip("\n").split(":", 3)
                        if fields[0] == "dlstatus" and len(fields) == 4:
                            show(f"{float(fields[2]):.0f} %")
                code = tool.wait()
            except BaseException:
                tool.terminate()
                tool.wait()
                raise
            if code:
                output.seek(0)
                raise tool_failed("apt-get", output.read())


def host_mirrors(suite: str) -> tuple[str, str]:
    """Mirrors of the suite and of its security updates: as the host has it, else Debian's."""
    try:
        text = run_tool(["apt-get", "update", "--print-uris"])
    except SetupFailed:
        text = ""
    places = {name: place for place, name in _RELEASE.findall(text) if "cdrom:" not in place}
    mirror, security = places.get(suite), places.get(f"{suite}-security")
    for name, place in places.items():
        if mirror is None and place.endswith("/debian") and not name.endswith("-security"):
            mirror = place
        if security is None and place.endswith("/debian-security"):
            security = place
    return mirror or MIRROR, security or SECURITY


def check_names(names: Sequence[str]) -> None:
    """Whether these can be packages. Raises SetupFailed."""
    for name in names:
        if not _NAME.fullmatch(name):
            raise SetupFailed(f"{name!r} is not a package name")

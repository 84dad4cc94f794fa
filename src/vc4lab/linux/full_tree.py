"""A folder with Debian's packages in it as a system would have them, without root's rights.

Owners and modes that the host's user cannot give are kept in a table, for the file system that is
made of the folder. What the packages' scripts would do is done here as far as a system needs it to
come to its login: users, PAM, host name, links.

Sources: deb(5), deb-control(5); Debian Policy 9.1.1; passwd(5), shadow(5), pam.conf(5), fstab(5),
machine-id(5).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import IO, NamedTuple

from vc4lab.drm.setup.places import SetupFailed
from vc4lab.drm.setup.tools import run_tool

MERGED = ("bin", "sbin", "lib")
"""Folders that are links to those of the same names in usr."""
LEFT_OUT = ("usr/share/doc/", "usr/share/man/", "usr/share/locale/", "usr/share/lintian/")
INFO = "var/lib/dpkg/info"
SHADOW = 42
"""Debian's group of that name, in each system."""
_SHELL_FILES = {"etc/profile": "profile", "root/.profile": "dot.profile", "root/.bashrc": "dot.bashrc"}
"""Files that base-files' script copies, and their sources."""
_PACKAGE = re.compile(r"^Package: (\S+)$", re.M)


class Owner(NamedTuple):
    """The owner and mode of a file in the guest."""

    user: int
    group: int
    mode: int
    """Permissions with setuid, setgid and sticky."""


NEW_FILE, NEW_FOLDER = Owner(0, 0, 0o644), Owner(0, 0, 0o755)
"""Owners of files and folders that no package has."""


class FullTree:
    """The folder and its table of owners; what is not in the table belongs to root.

    Parameters
    ----------
    folder
        It must not exist.
    architecture
        Debian's name of it.
    """

    def __init__(self, folder: Path, architecture: str) -> None:
        self.folder = folder
        self.architecture = architecture
        self.owners: dict[str, Owner] = {}
        """By path without the first slash."""
        self._status: list[str] = []
        for name in MERGED:
            (folder / "usr" / name).mkdir(parents=True)
            (folder / name).symlink_to(f"usr/{name}")
        for name in (INFO, "var/lib/dpkg/updates", "var/lib/dpkg/alternatives"):
            (folder / name).mkdir(parents=True)

    # -- packages ----------------------------------------------------------------------------------

    def unpack(self, package: Path) -> None:
        """Add a package's files and its row in dpkg's database. Raises SetupFailed, OSError."""
        fields = run_tool(["dpkg-deb", "-f", str(package)])
        found = _PACKAGE.search(fields)
        if found is None:
            raise SetupFailed(f"{package.name}: its control file has no name")
        name = found[1]
        command = ["dpkg-deb", "--fsys-tarfile", str(package)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as tool:
            assert tool.stdout is not None
            try:
                listed = self._extract(tool.stdout, package.name)
            except tarfile.TarError as error:
                raise SetupFailed(f"{package.name}: {error}") from None
        if tool.returncode:
            raise SetupFailed(f"{package.name}: dpkg-deb cannot read it")
        control = self.folder.with_name("control")
        shutil.rmtree(control, ignore_errors=True)
        run_tool(["dpkg-deb", "-e", str(package), str(control)])
        full = f"{name}:{self.architecture}" if "\nMulti-Arch: same" in fields else name
        for file in control.iterdir():
            if file.name != "control":
                shutil.copyfile(file, self.folder / INFO / f"{full}.{file.name}")
        shutil.rmtree(control)
        (self.folder / INFO / f"{full}.list").write_text("\n".join(["/.", *listed]) + "\n")
        head, row = f"Package: {name}\n", f"Package: {name}\nStatus: install ok unpacked\n"
        self._status.append(fields.rstrip("\n").replace(head, row, 1) + "\n")

    def _extract(self, stream: IO[bytes], package: str) -> list[str]:
        listed = []
        with tarfile.open(fileobj=stream, mode="r|") as archive:
            for member in archive:
                plain = _plain(member.name, package)
                if not plain:
                    continue
                listed.append(f"/{plain}")
                if not f"{plain}/".startswith(LEFT_OUT):
                    self._member(archive, member, plain, package)
        stream.read()  # padding: dpkg-deb writes it all
        return listed

    def _member(self, archive: tarfile.TarFile, member: tarfile.TarInfo, plain: str, package: str) -> None:
        path = _merged(plain)
        target = self.folder / path
        if not target.parent.resolve().is_relative_to(self.folder.resolve()):
            raise SetupFailed(f"{package}: /{plain} leads out of the root")
        target.parent.mkdir(parents=True, exist_ok=True)
        if member.isdir():
            if not target.is_symlink():
                target.mkdir(exist_ok=True)
        else:
            target.unlink(missing_ok=True)
            if member.issym():
                target.symlink_to(member.linkname)
                return
            if member.islnk():
                os.link(self.folder / _merged(_plain(member.linkname, package)), target)
            elif member.isreg():
                content = archive.extractfile(member)
                assert content is not None
                with target.open("wb") as file:
                    shutil.copyfileobj(content, file)
            else:
                raise SetupFailed(f"{package}: /{plain} is neither a file, a folder nor a link")
        if path not in MERGED:
            self.owners[path] = Owner(member.uid, member.gid, member.mode & 0o7777)

    # -- what the packages' scripts would do -------------------------------------------------------

    def configure(self) -> None:
        """Write what a system needs. Root has no password. Raises SetupFailed, OSError."""
        self._users()
        for kind in ("auth", "account", "password"):
            more = " nullok" if kind == "auth" else ""
            self._write(
                f"etc/pam.d/common-{kind}",
                f"{kind} [success=1 default=ignore] pam_unix.so{more}\n"
                f"{kind} requisite pam_deny.so\n{kind} required pam_permit.so\n",
            )
        session = "session required pam_permit.so\nsession required pam_unix.so\n"
        self._write("etc/pam.d/common-session-noninteractive", session)
        self._write("etc/pam.d/common-session", f"{session}session optional pam_systemd.so\n")
        for path, name in _SHELL_FILES.items():
            source = self.folder / "usr/share/base-files" / name
            if source.is_file():
                self._write(path, source.read_text())
        self._write("etc/hostname", "pi\n")
        self._write("etc/hosts", "127.0.0.1 localhost\n127.0.1.1 pi\n")
        self._write("etc/fstab", "/dev/mmcblk0 / ext4 defaults,errors=remount-ro 0 1\n")
        self._write("etc/machine-id", os.urandom(16).hex() + "\n", Owner(0, 0, 0o444))
        self._write("var/lib/dpkg/status", "\n".join(self._status))
        self._write("var/lib/dpkg/available", "")
        getty = "etc/systemd/system/getty.target.wants/getty@tty1.service"
        self._link(getty, "/lib/systemd/system/getty@.service")
        self._link("etc/localtime", "/usr/share/zoneinfo/Etc/UTC")
        self._link("usr/bin/awk", "mawk")

    def _users(self) -> None:
        place = self.folder / "usr/share/base-passwd"
        try:
            users = (place / "passwd.master").read_text()
            groups = (place / "group.master").read_text()
        except FileNotFoundError:
            raise SetupFailed("the packages have no table of users (base-passwd)") from None
        users = users.replace(":*:", ":x:") + "messagebus:x:100:107::/nonexistent:/usr/sbin/nologin\n"
        self._write("etc/passwd", users)
        self._write("etc/group", groups.replace(":*:", ":x:") + "messagebus:x:107:\n")
        rows = []
        for line in users.splitlines():
            name = line.partition(":")[0]
            rows.append(f"{name}:{'' if name == 'root' else '*'}:19700:0:99999:7:::\n")
        self._write("etc/shadow", "".join(rows), Owner(0, SHADOW, 0o640))

    def _write(self, path: str, text: str, owner: Owner = NEW_FILE) -> None:
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        self.owners[path] = owner

    def _link(self, path: str, leads_to: str) -> None:
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.is_symlink():
            target.symlink_to(leads_to)


def _plain(name: str, package: str) -> str:
    """A path of an archive without `./`; "" for the root. Raises SetupFailed."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    plain = "/".join(parts)
    if ".." in parts or any(sign in plain for sign in '"\n'):
        raise SetupFailed(f"{package}: {name[:60]!r} cannot be a path in a root")
    return plain


def _merged(path: str) -> str:
    """Return a path as it is once /bin, /sbin and /lib have become links."""
    return f"usr/{path}" if path.partition("/")[0] in MERGED and "/" in path else path

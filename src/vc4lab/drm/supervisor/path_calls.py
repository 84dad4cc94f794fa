"""System calls that take a path: those about the tree of nodes are answered here."""

from __future__ import annotations

import errno
import os
import stat
import struct
from dataclasses import dataclass

from vc4lab.drm.nodes.foreign import ForeignTree
from vc4lab.drm.nodes.tree import HostPath, Node, Tree
from vc4lab.drm.supervisor.answers import Answer, Caller, Device, Outcome
from vc4lab.drm.supervisor.file_status import FileStatus, file_system_status
from vc4lab.drm.uapi.numbers import AT_EMPTY_PATH, AT_FDCWD, AT_SYMLINK_NOFOLLOW
from vc4lab.drm.uapi.results import Refused

_CREATES = os.O_CREAT | os.O_EXCL
PREFIXES = ("/sys", "/dev/dri", "/dev/input", "/run/udev", "/proc")
"""Absolute paths that begin otherwise are the host's, unless they climb with `..`."""

DAC_OVERRIDE = 1
"""The capability to open whatever a file's mode says."""
SOFTWARE_GL = "swrast_dri.so"
"""That of Mesa before 24.3; since then libgallium has all drivers."""


@dataclass(eq=False)
class PathCalls:
    """open, stat, readlink, access and their relatives."""

    tree: Tree
    device: Device
    machine: str
    foreign: ForeignTree | None = None
    """What programs under qemu find besides the host's files."""
    seeks_software_gl: bool = False
    """Whether a program looked for the Mesa driver that draws on the processor."""

    # -- where a path leads ------------------------------------------------------------------------

    def locate(
        self,
        caller: Caller,
        directory: int,
        path: str,
        *,
        follow: bool = True,
        writes: bool = False,
        missing: int = errno.ENOENT,
    ) -> Node | HostPath | Outcome:
        """PROCEED for a path that has nothing to do with the tree. `writes`: it may be changed.

        Raises Refused with `missing` for what does not exist in the tree.
        """
        inside = False
        if not path.startswith("/"):
            if directory & 0xFFFFFFFF == AT_FDCWD:
                base = caller.directory
            else:
                base = caller.path_of(directory & 0xFFFFFFFF)
            virtual = self.tree.virtual(base)
            inside = virtual != base
            path = f"{virtual}/{path}"
        if not path.startswith(PREFIXES) and not ("/.." in path or inside):
            first = path.lstrip("/")  # // and /. are rare
            if not path.startswith(("//", "/./")) or not first.startswith(("sys", "dev", "./")):
                if self.foreign is None or writes:
                    return Outcome.PROCEED
                place = self.foreign.find(caller, path)
                return HostPath(place) if place is not None else Outcome.PROCEED
        found = self.tree.resolve(path, follow=follow)
        if found is None:
            raise Refused(missing)
        if isinstance(found, HostPath) and not inside:
            return Outcome.PROCEED
        if isinstance(found, Node) and found.is_directory and not self.tree.is_listed(found):
            return HostPath(found.path) if inside else Outcome.PROCEED
        return found

    # -- open --------------------------------------------------------------------------------------

    def open(self, caller: Caller, directory: int, address: int, flags: int) -> Answer:
        """Open a node, a file of the tree or one of the host's through the tree."""
        path = caller.text(address)
        if path.endswith(SOFTWARE_GL) or "/libgallium" in path:
            self.seeks_software_gl = True
        reopened = self._reopened(caller, path)
        if reopened is not None:
            return self._give(caller, reopened, flags)
        follow = not flags & os.O_NOFOLLOW
        writes = bool(flags & (os.O_ACCMODE | os.O_CREAT | os.O_TRUNC))
        missing = errno.EACCES if flags & os.O_CREAT else errno.ENOENT
        found = self.locate(caller, directory, path, follow=follow, writes=writes, missing=missing)
        if isinstance(found, Outcome):
            return found
        if flags & os.O_PATH and not follow and self._lies_there(caller, directory, path, found):
            return Outcome.PROCEED
        if isinstance(found, Node):
            if found.device is not None:
                if flags & os.O_DIRECTORY:
                    raise Refused(errno.ENOTDIR)
                if flags & os.O_PATH:
                    return self._give_file(caller, self.tree.root + found.path, flags)
                access = flags & os.O_ACCMODE
                wanted = (os.R_OK if access != os.O_WRONLY else 0) | (os.W_OK if access else 0)
                check_rights(caller, found, wanted)
                return self._give(caller, found.device, flags)
            if found.link is not None and not flags & os.O_PATH:
                raise Refused(errno.ELOOP)
            if not (found.is_directory or found.is_writable) and flags & os.O_ACCMODE:
                raise Refused(errno.EACCES)
            return self._give_file(caller, self.tree.root + found.path, flags)
        return self._give_file(caller, found, flags)

    def _lies_there(
        self, caller: Caller, directory: int, name: str, found: Node | HostPath
    ) -> bool:
        """Whether the directory is one of the nodes' on disk, with a link of that name.

        libudev goes from directory to directory and looks at each link itself. A descriptor of a
        link cannot be handed over, but the kernel can open that on disk.
        """
        if "/" in name or directory & 0xFFFFFFFF == AT_FDCWD:
            return False
        base = caller.path_of(directory & 0xFFFFFFFF)
        if self.tree.virtual(base) == base or not os.path.islink(f"{base}/{name}"):
            return False
        return isinstance(found, Node) or os.path.islink(found)

    def _reopened(self, caller: Caller, path: str) -> str | None:
        """The node's name when a path is /proc/…/fd/N of a device descriptor."""
        if not path.startswith("/proc/") or "/fd/" not in path:
            return None
        number = path.rpartition("/")[2]
        if not number.isdigit():
            return None
        opened = caller.find(int(number))
        node = self.tree.find(self.device.name_of(opened)) if opened is not None else None
        return node.device if node is not None else None

    def _give(self, caller: Caller, name: str, flags: int) -> Answer:
        opened = self.device.open(name, caller)
        result = None
        try:
            result = caller.descriptors.give(
                caller.listener, caller.call, caller, opened, flags=flags
            )
        finally:
            if result is None or result < 0:
                self.device.released(opened)
        return result if result is not None and result < 0 else Outcome.ANSWERED

    def _give_file(self, caller: Caller, place: str, flags: int) -> Answer:
        """A real file; a descriptor that is only a path cannot be handed over."""
        wanted = flags & ~(os.O_PATH | os.O_NOFOLLOW | _CREATES | os.O_TRUNC) | os.O_CLOEXEC
        try:
            file = os.open(place, wanted)
        except OSError as error:
            raise Refused(error.errno or errno.ENOENT) from None
        try:
            result = caller.listener.give(
                caller.call, file, close_on_exec=bool(flags & os.O_CLOEXEC)
            )
        finally:
            os.close(file)
        return result if result is not None and result < 0 else Outcome.ANSWERED

    # -- stat --------------------------------------------------------------------------------------

    def status_of(self, found: Node | HostPath, *, follow: bool) -> FileStatus:
        """What stat says about a place. Raises Refused."""
        if isinstance(found, Node) and found.device is not None:
            return FileStatus.character_device(*found.number, found.mode, found.owner)
        place = self.tree.root + found.path if isinstance(found, Node) else found
        try:
            result = os.stat(place, follow_symlinks=follow and not isinstance(found, Node))
        except OSError as error:
            raise Refused(error.errno or errno.ENOENT) from None
        status = FileStatus.of(result)
        if isinstance(found, Node) and not stat.S_ISLNK(status.mode):
            bits = 0o555 if found.is_directory else 0o644 if found.is_writable else 0o444
            status = FileStatus.of(os.stat_result((stat.S_IFMT(status.mode) | bits, *result[1:10])))
        return status

    def stat(
        self,
        caller: Caller,
        directory: int,
        address: int,
        result: int,
        *,
        flags: int = 0,
        extended: bool = False,
    ) -> Answer:
        """stat, lstat, newfstatat and statx."""
        path = caller.text(address) if address else ""
        if flags & AT_EMPTY_PATH and not path:
            return self.status_of_descriptor(
                caller, directory & 0xFFFFFFFF, result, extended=extended
            )
        follow = not flags & AT_SYMLINK_NOFOLLOW
        found = self.locate(caller, directory, path, follow=follow)
        if isinstance(found, Outcome):
            return found
        status = self.status_of(found, follow=follow)
        caller.write(result, status.statx() if extended else status.stat(self.machine))
        return 0

    def status_of_descriptor(
        self, caller: Caller, number: int, result: int, *, extended: bool = False
    ) -> Answer:
        """fstat."""
        opened = caller.find(number)
        if opened is None:
            return Outcome.PROCEED
        status = self.device.status(opened)
        caller.write(result, status.statx() if extended else status.stat(self.machine))
        return 0

    def file_system(self, caller: Caller, number: int, result: int) -> Answer:
        """fstatfs: descriptors of the tree are sysfs."""
        path = caller.path_of(number)
        if self.tree.virtual(path) == path:
            return Outcome.PROCEED
        caller.write(result, file_system_status())
        return 0

    # -- links and rights --------------------------------------------------------------------------

    def read_link(
        self, caller: Caller, directory: int, address: int, result: int, room: int
    ) -> Answer:
        """readlink, and what /proc/…/fd shows of device descriptors."""
        path = caller.text(address)
        target: str | None = None
        if path.startswith("/proc/") and "/fd/" in path:
            target = self._shown(caller, path)
            if target is None:
                return Outcome.PROCEED
        else:
            found = self.locate(caller, directory, path, follow=False)
            if isinstance(found, Outcome):
                return found
            if isinstance(found, Node):
                target = found.link
            else:
                try:
                    target = os.readlink(found)
                except OSError as error:
                    raise Refused(error.errno or errno.EINVAL) from None
        if target is None or room <= 0:
            raise Refused(errno.EINVAL)
        data = os.fsencode(target)[:room]
        caller.write(result, data)
        return len(data)

    def _shown(self, caller: Caller, path: str) -> str | None:
        number = path.rpartition("/")[2]
        whose = path.split("/")[2]
        if not number.isdigit() or whose not in ("self", "thread-self", str(caller.tid)):
            if not whose.isdigit() or int(whose) != caller.process:
                return None
        if not number.isdigit():
            return None
        opened = caller.find(int(number))
        if opened is not None:
            return self.device.name_of(opened)
        place = caller.path_of(int(number))
        virtual = self.tree.virtual(place)
        return virtual if virtual != place else None

    def access(self, caller: Caller, directory: int, address: int, mode: int) -> Answer:
        """access and faccessat."""
        found = self.locate(caller, directory, caller.text(address))
        if isinstance(found, Outcome):
            return found
        if isinstance(found, Node):
            writable = found.device is not None
            executable = found.is_directory
            if writable:
                check_rights(caller, found, mode & ~os.X_OK)
            if (mode & os.W_OK and not writable) or (mode & os.X_OK and not executable):
                raise Refused(errno.EACCES)
            return 0
        if not os.path.exists(found):  # Path's raises where one may not look
            raise Refused(errno.ENOENT)
        if not os.access(found, mode & 7):
            raise Refused(errno.EACCES)
        return 0

    def attributes(self, caller: Caller, address: int) -> Answer:
        """getxattr and its relatives: nodes have no extended attributes."""
        found = self.locate(caller, AT_FDCWD, caller.text(address), follow=False)
        if isinstance(found, Outcome):
            return found
        raise Refused(errno.EOPNOTSUPP)

    def open_how(self, caller: Caller, args: tuple[int, ...]) -> Answer:
        """openat2."""
        flags, _, _ = struct.unpack("<QQQ", caller.read(args[2], 24))
        return self.open(caller, args[0], args[1], flags & 0x7FFFFFFF)


def check_rights(caller: Caller, node: Node, wanted: int) -> None:
    """Whether the caller may open a node; `wanted` as of access(). Raises Refused (EACCES)."""
    user, group = node.owner
    shift = 6 if caller.user == user else 3 if caller.is_in_group(group) else 0
    if wanted & ~(node.mode >> shift) & 6 and not caller.may(DAC_OVERRIDE):
        raise Refused(errno.EACCES, f"{node.path} has mode {node.mode:o}")

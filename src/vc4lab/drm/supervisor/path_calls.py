"""System calls that take a path: those about the tree of nodes are answered here."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import struct
from dataclasses import dataclass, field

from vc4lab.drm.nodes.foreign import ForeignTree
from vc4lab.drm.nodes.tree import Node, Tree
from vc4lab.drm.supervisor.answers import Answer, Caller, Device, Outcome
from vc4lab.drm.supervisor.file_status import FileStatus, file_system_status
from vc4lab.drm.supervisor.places import ForeignFile, Places
from vc4lab.drm.uapi.numbers import AT_EMPTY_PATH, AT_FDCWD, AT_SYMLINK_NOFOLLOW
from vc4lab.drm.uapi.results import Refused

_CREATES = os.O_CREAT | os.O_EXCL
_BELOW = 0x08 | 0x10
"""RESOLVE_BENEATH and RESOLVE_IN_ROOT of openat2: a path never leaves the directory."""

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
    places: Places = field(init=False)
    seeks_software_gl: bool = False
    """Whether a program looked for the Mesa driver that draws on the processor."""

    def __post_init__(self) -> None:
        self.places = Places(self.tree)

    @property
    def foreign(self) -> ForeignTree | None:
        """Files that programs under qemu find besides the host's."""
        return self.places.foreign

    @foreign.setter
    def foreign(self, tree: ForeignTree | None) -> None:
        self.places.foreign = tree

    def locate(
        self, caller: Caller, directory: int, name: str, *, follow: bool = True
    ) -> Node | ForeignFile | Outcome:
        """Find what a path leads to that a program names; PROCEED for what is the kernel's.

        Raises Refused for what does not exist.
        """
        if not name:
            return Outcome.PROCEED
        path, inside = self.places.absolute(caller, directory, name)
        return self.places.locate(caller, path, inside=inside, follow=follow)

    # -- open --------------------------------------------------------------------------------------

    def open(self, caller: Caller, directory: int, address: int, flags: int) -> Answer:
        """Open a node, a file of the tree or one that only programs under qemu see."""
        name = caller.text(address)
        if not name:
            return Outcome.PROCEED
        if name.endswith(SOFTWARE_GL) or "/libgallium" in name:
            self.seeks_software_gl = True
        path, inside = self.places.absolute(caller, directory, name)
        node = self._reopened(caller, path, flags)
        if node is not None:
            return self._give(caller, node, flags)
        follow = not flags & os.O_NOFOLLOW
        writes = bool(flags & (os.O_ACCMODE | os.O_CREAT | os.O_TRUNC))
        missing = errno.EACCES if flags & os.O_CREAT else errno.ENOENT
        found = self.places.locate(caller, path, inside=inside, follow=follow, writes=writes, missing=missing)
        if isinstance(found, Outcome):
            return found
        if isinstance(found, ForeignFile):
            return self._give_foreign(caller, found, flags)
        if flags & os.O_PATH and not follow and self._lies_there(caller, directory, name):
            return Outcome.PROCEED
        if found.device is not None:
            if flags & os.O_DIRECTORY:
                raise Refused(errno.ENOTDIR)
            if not flags & os.O_PATH:
                return self._give(caller, found, flags)
        if found.link is not None and not flags & os.O_PATH:
            raise Refused(errno.ELOOP)
        if flags & os.O_ACCMODE and not flags & os.O_PATH and not self._may_write(caller, found):
            raise Refused(errno.EISDIR if found.is_directory else errno.EACCES)
        return self._give_file(caller, found, flags)

    def _may_write(self, caller: Caller, node: Node) -> bool:
        """A text that can be written belongs to the user who runs the device."""
        return node.is_writable and caller.user in (0, os.geteuid())

    def _lies_there(self, caller: Caller, directory: int, name: str) -> bool:
        """Whether the directory is one of the nodes' on disk, with a link of that name.

        libudev goes from directory to directory and looks at each link itself. A descriptor of a
        link cannot be handed over, but the kernel can open that on disk.
        """
        if "/" in name or directory & 0xFFFFFFFF == AT_FDCWD:
            return False
        base = caller.path_of(directory & 0xFFFFFFFF)
        virtual = self.tree.virtual(base)
        if virtual == base:
            return False
        try:
            return stat.S_ISLNK(self.tree.status(f"{virtual}/{name}").st_mode)
        except OSError:
            return False

    def _reopened(self, caller: Caller, path: str, flags: int) -> Node | None:
        """The node when a path names a descriptor of the device, as /proc/self/fd/N does.

        Raises Refused (ENXIO) for a dma-buf or a sync object, which Linux opens no second time.
        """
        named = self.places.descriptor(caller, path)
        if named is None:
            return None
        task, number = named
        opened = caller.descriptors.find(task, number)
        if opened is not None and not self.device.name_of(opened).startswith("/dev/"):
            if flags & os.O_PATH:
                return None
            raise Refused(errno.ENXIO, "a dma-buf or a sync object cannot be opened again")
        place = self.device.name_of(opened) if opened is not None else task.path_of(number)
        node = self.tree.find(self.tree.virtual(place)) if place.startswith("/") else None
        if node is None or (opened is None and self.tree.virtual(place) == place):
            return None
        return node if node.device is not None else None

    def _give(self, caller: Caller, node: Node, flags: int) -> Answer:
        """An open file of a device's node."""
        assert node.device is not None
        access = flags & os.O_ACCMODE
        wanted = (os.R_OK if access != os.O_WRONLY else 0) | (os.W_OK if access else 0)
        check_rights(caller, node, wanted)
        opened = self.device.open(node.device, caller)
        result = None
        try:
            result = caller.descriptors.give(caller.listener, caller.call, caller, opened, flags=flags)
        finally:
            if result is None or result < 0:
                self.device.released(opened)
        return result if result is not None and result < 0 else Outcome.ANSWERED

    def _give_file(self, caller: Caller, node: Node, flags: int) -> Answer:
        """Give what lies on disk; a descriptor that is only a path cannot be handed over.

        A directory's leads to all above it, and so out of another root: there it is another one.
        """
        kept = flags & (os.O_ACCMODE | os.O_DIRECTORY | os.O_APPEND)
        apart = node.is_directory and not caller.shares_root
        try:
            file = self.tree.open(node.path, os.O_RDONLY if flags & os.O_PATH else kept, detached=apart)
        except OSError as error:
            raise Refused(error.errno or errno.ENOENT) from None
        return self._give_opened(caller, file, flags)

    def _give_foreign(self, caller: Caller, place: str, flags: int) -> Answer:
        """A file for programs under qemu: one that each user may read, or a directory.

        A directory's descriptor leads to what is above it. So it is for the user who runs the
        device; for others, and for what is neither, the kernel looks at the host's own.
        """
        wanted = os.O_RDONLY | flags & os.O_DIRECTORY
        try:
            file = os.open(place, wanted | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError as error:
            raise Refused(error.errno or errno.ENOENT) from None
        if self._may_read(caller, os.fstat(file)):
            return self._give_opened(caller, file, flags)
        os.close(file)
        return Outcome.PROCEED

    @staticmethod
    def _may_read(caller: Caller, found: os.stat_result) -> bool:
        if caller.user in (0, os.geteuid()):
            return stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)
        return stat.S_ISREG(found.st_mode) and bool(found.st_mode & stat.S_IROTH)

    def _give_opened(self, caller: Caller, file: int, flags: int) -> Answer:
        """Hand a descriptor over and close it."""
        try:
            fcntl.fcntl(file, fcntl.F_SETFL, flags & (os.O_NONBLOCK | os.O_APPEND))
            result = caller.listener.give(caller.call, file, close_on_exec=bool(flags & os.O_CLOEXEC))
        finally:
            os.close(file)
        return result if result is not None and result < 0 else Outcome.ANSWERED

    # -- stat --------------------------------------------------------------------------------------

    def status_of(self, found: Node | ForeignFile, *, follow: bool) -> FileStatus:
        """Give the status of a place, as stat does. Raises Refused."""
        try:
            if isinstance(found, ForeignFile):
                return FileStatus.of(os.stat(found, follow_symlinks=follow))
            if found.device is not None:
                return FileStatus.character_device(*found.number, found.mode, found.owner)
            result = self.tree.status(found.path)
        except OSError as error:
            raise Refused(error.errno or errno.ENOENT) from None
        if stat.S_ISLNK(result.st_mode):
            return FileStatus.of(result)
        bits = 0o555 if found.is_directory else 0o644 if found.is_writable else 0o444
        mode = stat.S_IFMT(result.st_mode) | bits
        return FileStatus.of(os.stat_result((mode, *result[1:10])))

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
            return self.status_of_descriptor(caller, directory & 0xFFFFFFFF, result, extended=extended)
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

    def read_link(self, caller: Caller, directory: int, address: int, result: int, room: int) -> Answer:
        """readlink, and what /proc/…/fd shows of device descriptors."""
        path, inside = self.places.absolute(caller, directory, caller.text(address))
        target: str | None = None
        if self.places.descriptor(caller, path) is not None:
            target = self._shown(caller, path)
            if target is None:
                return Outcome.PROCEED
        else:
            found = self.places.locate(caller, path, inside=inside, follow=False)
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
        """Find where a descriptor leads that a path names; None: as the kernel says."""
        named = self.places.descriptor(caller, path)
        if named is None:
            return None
        task, number = named
        opened = caller.descriptors.find(task, number)
        if opened is not None:
            return self.device.name_of(opened)
        place = task.path_of(number)
        virtual = self.tree.virtual(place)
        return virtual if virtual != place else None

    def access(self, caller: Caller, directory: int, address: int, mode: int) -> Answer:
        """access and faccessat."""
        found = self.locate(caller, directory, caller.text(address))
        if isinstance(found, Outcome):
            return found
        if isinstance(found, Node):
            writable = found.device is not None or self._may_write(caller, found)
            executable = found.is_directory
            if found.device is not None:
                check_rights(caller, found, mode & ~os.X_OK)
            if (mode & os.W_OK and not writable) or (mode & os.X_OK and not executable):
                raise Refused(errno.EACCES)
            return 0
        if not os.access(found, mode & 7):
            raise Refused(errno.EACCES if os.path.lexists(found) else errno.ENOENT)
        return 0

    def attributes(self, caller: Caller, address: int) -> Answer:
        """getxattr and its relatives: nodes have no extended attributes."""
        found = self.locate(caller, AT_FDCWD, caller.text(address), follow=False)
        if isinstance(found, Outcome):
            return found
        raise Refused(errno.EOPNOTSUPP)

    def open_how(self, caller: Caller, args: tuple[int, ...]) -> Answer:
        """openat2."""
        flags, _, resolve = struct.unpack("<QQQ", caller.read(args[2], 24))
        name = caller.text(args[1])
        if resolve & _BELOW and (name.startswith("/") or ".." in name.split("/")):
            return Outcome.PROCEED
        return self.open(caller, args[0], args[1], flags & 0x7FFFFFFF)


def check_rights(caller: Caller, node: Node, wanted: int) -> None:
    """Whether the caller may open a node; `wanted` as of access(). Raises Refused (EACCES)."""
    user, group = node.owner
    shift = 6 if caller.user == user else 3 if caller.is_in_group(group) else 0
    if wanted & ~(node.mode >> shift) & 6 and not caller.may(DAC_OVERRIDE):
        raise Refused(errno.EACCES, f"{node.path} has mode {node.mode:o}")

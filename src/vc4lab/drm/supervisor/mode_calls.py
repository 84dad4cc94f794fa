"""chmod, chown and their relatives on the device's nodes: what is served has modes and owners."""

from __future__ import annotations

import errno
import stat
from dataclasses import dataclass

from vc4lab.drm.nodes.tree import Node
from vc4lab.drm.supervisor.answers import Answer, Caller, Device, Outcome
from vc4lab.drm.supervisor.path_calls import PathCalls
from vc4lab.drm.uapi.numbers import AT_EMPTY_PATH, AT_SYMLINK_NOFOLLOW
from vc4lab.drm.uapi.results import Refused

CHOWN, FOWNER = 0, 3
"""Numbers of the kernel's capabilities."""
_KEEP = 0xFFFFFFFF


@dataclass(eq=False)
class ModeCalls:
    """Changes of who may open a node. The host files that it stands for are never changed."""

    paths: PathCalls
    device: Device

    def change_mode(self, caller: Caller, directory: int, address: int, mode: int, flags: int = 0) -> Answer:
        """chmod, fchmodat and fchmodat2."""
        node = self._named(caller, directory, address, flags)
        return node if isinstance(node, Outcome) else self._set_mode(caller, node, mode)

    def change_mode_of(self, caller: Caller, number: int, mode: int) -> Answer:
        """fchmod."""
        node = self._opened(caller, number)
        return node if isinstance(node, Outcome) else self._set_mode(caller, node, mode)

    def change_owner(
        self, caller: Caller, directory: int, address: int, owner: int, group: int, flags: int = 0
    ) -> Answer:
        """chown, lchown and fchownat."""
        node = self._named(caller, directory, address, flags)
        return node if isinstance(node, Outcome) else _set_owner(caller, node, owner, group)

    def change_owner_of(self, caller: Caller, number: int, owner: int, group: int) -> Answer:
        """fchown."""
        node = self._opened(caller, number)
        return node if isinstance(node, Outcome) else _set_owner(caller, node, owner, group)

    def _named(self, caller: Caller, directory: int, address: int, flags: int) -> Node | Outcome:
        path = caller.text(address) if address else ""
        if flags & AT_EMPTY_PATH and not path:
            return self._opened(caller, directory & 0xFFFFFFFF)
        follow = not flags & AT_SYMLINK_NOFOLLOW
        found = self.paths.locate(caller, directory, path, follow=follow)
        if isinstance(found, Node) and found.device is None:
            raise Refused(errno.EPERM, "a file of the nodes' tree")
        return found if isinstance(found, Node) else Outcome.PROCEED

    def _opened(self, caller: Caller, number: int) -> Node | Outcome:
        opened = caller.find(number)
        if opened is None:
            return Outcome.PROCEED
        node = self.paths.tree.find(self.device.name_of(opened))
        if node is None:
            raise Refused(errno.EPERM, "not a node")
        return node

    def _set_mode(self, caller: Caller, node: Node, mode: int) -> Answer:
        if caller.user != node.owner[0] and not caller.may(FOWNER):
            raise Refused(errno.EPERM, f"{node.path} belongs to another user")
        node.mode = stat.S_IMODE(mode)
        return 0


def _set_owner(caller: Caller, node: Node, owner: int, group: int) -> Answer:
    wanted = tuple(
        old if new & _KEEP == _KEEP else new & _KEEP
        for old, new in zip(node.owner, (owner, group), strict=True)
    )
    if wanted != node.owner and not caller.may(CHOWN):
        raise Refused(errno.EPERM, f"{node.path} belongs to another user")
    node.owner = wanted[0], wanted[1]
    return 0

"""Leases: objects of the display that its owner hands to another program."""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Callable
from dataclasses import dataclass

from vc4lab.drm.kms import objects as o
from vc4lab.drm.kms.resources import Resources
from vc4lab.drm.kms.screen import CURSOR, PRIMARY, Screen
from vc4lab.drm.objects.core import UNIVERSAL_PLANES, Core
from vc4lab.drm.objects.files import OpenFile
from vc4lab.drm.objects.masters import Master
from vc4lab.drm.uapi.ioctls import Call, ioctl
from vc4lab.drm.uapi.results import Refused, found, invalid

MAX_OBJECTS = 1024


@dataclass(eq=False)
class Leases:
    """The ioctls of leases. `released` lets go of a file that no program has got."""

    screen: Screen
    resources: Resources
    core: Core
    released: Callable[[OpenFile], None] = lambda _file: None

    @ioctl(
        0xC6, "MODE_CREATE_LEASE",
        "u64 object_ids, u32 object_count, u32 flags, u32 lessee_id, u32 fd", master=True,
    )  # fmt: skip
    def create(self, call: Call) -> None:
        a, file = call.args, call.file
        if a.flags & ~(os.O_CLOEXEC | os.O_NONBLOCK):
            raise invalid(f"flags 0x{a.flags:x}")
        lessor = _master(file)
        if lessor.lessor is not None:
            raise invalid("a lease of what is leased")
        if a.object_count > MAX_OBJECTS:
            raise Refused(errno.ENOMEM, f"{a.object_count} objects")
        asked = struct.unpack(f"<{a.object_count}I", call.read(a.object_ids, 4 * a.object_count))
        numbers = self._leasable(file, asked) if asked else set[int]()
        taken = (lessee.objects for lessee in lessor.lessees.objects.values())
        if any(numbers & objects for objects in taken):
            raise Refused(errno.EBUSY, "one of the objects is leased already")
        lease = Master(lessor, iter(numbers))
        lent = OpenFile(file.node, call.task.process, call.task.name)
        self.core.leased(lent, lease)
        try:
            a.fd = call.task.give(lent, a.flags & os.O_CLOEXEC)
        except (Refused, OSError):
            self.released(lent)
            raise
        a.lessee_id = lease.number

    def _leasable(self, file: OpenFile, asked: tuple[int, ...]) -> set[int]:
        """The objects of a lease. Raises Refused (ENOENT, EINVAL, ENOSPC)."""
        things = [self.resources.find(file, number) for number in asked]
        kinds = {thing.kind for thing in things}
        if kinds - o.LEASABLE:
            raise invalid("objects that are never leased")
        universal = bool(file.client_caps.get(UNIVERSAL_PLANES))
        if not kinds >= {o.CRTC, o.CONNECTOR} or (universal and o.PLANE not in kinds):
            raise invalid("a lease needs a CRTC, a connector and, with universal planes, a plane")
        if len(set(asked)) < len(asked):
            raise Refused(errno.ENOSPC, "the same object twice")
        numbers = set(asked)
        if not universal:  # then those planes are the CRTC's own
            implied = {self.screen.plane(kind).id for kind in (PRIMARY, CURSOR)}
            if numbers & implied:
                raise Refused(errno.ENOSPC, "the same object twice")
            numbers |= implied
        return numbers

    @ioctl(0xC7, "MODE_LIST_LESSEES", "u32 count_lessees, u32 pad, u64 lessees_ptr", master=True)
    def list(self, call: Call) -> None:
        if call.args.pad:
            raise invalid()
        lessees = _master(call.file).lessees.objects
        numbers = sorted(number for number, lessee in lessees.items() if lessee.objects)
        _write(call, "lessees_ptr", "count_lessees", numbers)

    @ioctl(0xC8, "MODE_GET_LEASE", "u32 count_objects, u32 pad, u64 objects_ptr", master=True)
    def get(self, call: Call) -> None:
        if call.args.pad:
            raise invalid()
        master = _master(call.file)
        every = master.objects if master.lessor is not None else self.screen.numbers()
        _write(call, "objects_ptr", "count_objects", sorted(every))

    @ioctl(0xC9, "MODE_REVOKE_LEASE", "u32 lessee_id", master=True)
    def revoke(self, call: Call) -> None:
        master, number = _master(call.file), call.args.lessee_id
        owner = master.lessor or master
        lessee = found(owner.lessees.objects.get(number), f"lease {number}")
        if lessee.lessor is not master:
            raise Refused(errno.EACCES, "the lease of another")
        lessee.revoke()


def _master(file: OpenFile) -> Master:
    return found(file.master, "master")


def _write(call: Call, pointer: str, count: str, numbers: list[int]) -> None:
    """As many numbers as fit, and how many there are."""
    fitting = numbers[: getattr(call.args, count)]
    if fitting:
        call.write(getattr(call.args, pointer), struct.pack(f"<{len(fitting)}I", *fitting))
    setattr(call.args, count, len(numbers))

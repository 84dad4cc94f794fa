"""MODE_ATOMIC: changes of many properties of many objects, all or none."""

from __future__ import annotations

import errno
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from vc4lab.drm.kms import objects as o
from vc4lab.drm.kms.commits import FLIP_EVENT, Commit, Commits
from vc4lab.drm.kms.property_values import PropertyValues
from vc4lab.drm.kms.screen import Screen
from vc4lab.drm.objects.core import ATOMIC
from vc4lab.drm.objects.fences import Fence
from vc4lab.drm.objects.syncobjs import SyncObjects
from vc4lab.drm.uapi.ioctls import Call, ioctl
from vc4lab.drm.uapi.results import Later, Refused, invalid, missing

TEST_ONLY, NON_BLOCK, ALLOW_MODESET = 0x100, 0x200, 0x400
MAX_OBJECTS, MAX_PROPERTIES = 256, 4096
BLOCK = 64
"""So many numbers of an array are read at a time."""


@dataclass(eq=False)
class Atomic:
    """The atomic ioctl."""

    screen: Screen
    commits: Commits
    values: PropertyValues
    syncobjs: SyncObjects

    @ioctl(
        0xBC, "MODE_ATOMIC",
        "u32 flags, u32 count_objs, u64 objs_ptr, u64 count_props_ptr, u64 props_ptr, "
        "u64 prop_values_ptr, u64 reserved, u64 user_data",
        master=True,
    )  # fmt: skip
    def atomic(self, call: Call) -> Later | None:
        a = call.args
        if not call.file.client_caps.get(ATOMIC):
            raise invalid("the client has not enabled atomic")
        known = FLIP_EVENT | TEST_ONLY | NON_BLOCK | ALLOW_MODESET
        if a.flags & ~known or a.reserved:
            raise invalid(f"flags 0x{a.flags:x}")
        if a.flags & TEST_ONLY and a.flags & FLIP_EVENT:
            raise invalid("an event for a test-only commit")
        commit = Commit(
            call.file,
            user=a.user_data,
            wants_event=bool(a.flags & FLIP_EVENT),
            waits=not a.flags & NON_BLOCK,
            allows_mode=bool(a.flags & ALLOW_MODESET),
        )
        for thing, prop, value in self._values(call):
            self.values.take(call, commit, thing, prop, value)
        if a.flags & TEST_ONLY:
            self.commits.check(commit)
            return None
        if commit.wants_event and not commit.has_crtc:
            raise invalid("an event, and no CRTC that would send it")
        if commit.wants_event and not call.file.has_room:
            raise Refused(errno.ENOMEM, "too many unread events")
        if not commit.waits and self.screen.is_busy():
            raise Refused(errno.EBUSY, "the previous flip is still pending")
        self.commits.check(commit)
        for place in commit.out_places:
            commit.out_fence = commit.out_fence or Fence()
            number = self.syncobjs.give_file(call.task, commit.out_fence)
            call.write(place, struct.pack("<i", number))
        return self.commits.make(commit)

    def _values(self, call: Call) -> Iterator[tuple[o.DisplayObject, o.Property, int]]:
        """(object, property, value) one after the other, read when it is their turn, as Linux does:
        what is wrong first decides the answer. Raises Refused.
        """
        a = call.args
        objects, counts = _Array(call, a.objs_ptr, "I"), _Array(call, a.count_props_ptr, "I")
        props, values = _Array(call, a.props_ptr, "I"), _Array(call, a.prop_values_ptr, "Q")
        place = 0
        for number in range(a.count_objs):
            if number == MAX_OBJECTS:
                raise Refused(errno.ENOMEM, f"{a.count_objs} objects")
            thing = self.values.resources.find(call.file, objects[number])
            if not thing.properties:
                raise missing(f"object {thing.id} has no properties")
            for _ in range(counts[number]):
                if place == MAX_PROPERTIES:
                    raise Refused(errno.ENOMEM, f"more than {place} properties")
                prop = self.screen.registry.properties.get(props[place])
                if prop is None or thing.properties.get(prop.name) is not prop:
                    raise missing(f"object {thing.id} has no property {props[place]}")
                yield thing, prop, values[place]
                place += 1


class _Array:
    """Numbers in a program's memory, read when they are asked for. Raises Refused (EFAULT)."""

    def __init__(self, call: Call, place: int, code: str) -> None:
        self._call, self._place, self._code = call, place, code
        self._size = struct.calcsize(code)
        self._known: tuple[int, ...] = ()
        self._first = 0

    def __getitem__(self, number: int) -> int:
        at = number - self._first
        if not 0 <= at < len(self._known):
            place = self._place + self._size * number
            data = self._call.task.read_some(place, self._size * BLOCK)
            if len(data) < self._size:
                data = self._call.read(place, self._size)
            count = len(data) // self._size
            self._known = struct.unpack_from(f"<{count}{self._code}", data)
            self._first, at = number, 0
        return self._known[at]

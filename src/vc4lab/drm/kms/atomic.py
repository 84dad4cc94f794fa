"""MODE_ATOMIC: changes of many properties of many objects, all or none."""

from __future__ import annotations

import errno
import struct
from dataclasses import dataclass

from vc4lab.drm.device.core import ATOMIC
from vc4lab.drm.device.fences import Fence
from vc4lab.drm.device.syncobjs import SyncObjects
from vc4lab.drm.kms import objects as o
from vc4lab.drm.kms.commits import FLIP_EVENT, Commit, Commits
from vc4lab.drm.kms.property_values import PropertyValues
from vc4lab.drm.kms.screen import Screen
from vc4lab.drm.uapi.ioctls import Call, ioctl
from vc4lab.drm.uapi.results import Later, Refused, invalid, missing

TEST_ONLY, NON_BLOCK, ALLOW_MODESET = 0x100, 0x200, 0x400
MAX_OBJECTS, MAX_PROPERTIES = 256, 4096


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
        if self.screen.is_busy and not commit.waits:
            raise Refused(errno.EBUSY, "the previous flip is still pending")
        self.commits.check(commit)
        for place in commit.out_places:
            commit.out_fence = commit.out_fence or Fence()
            number = self.syncobjs.give_file(call.task, commit.out_fence)
            call.write(place, struct.pack("<i", number))
        return self.commits.make(commit)

    def _values(self, call: Call) -> list[tuple[o.DisplayObject, o.Property, int]]:
        """(object, property, value) of the whole request. Raises Refused."""
        a = call.args
        if a.count_objs > MAX_OBJECTS:
            raise invalid(f"{a.count_objs} objects")
        count = a.count_objs
        objects = struct.unpack(f"<{count}I", call.read(a.objs_ptr, 4 * count))
        counts = struct.unpack(f"<{count}I", call.read(a.count_props_ptr, 4 * count))
        total = sum(counts)
        if total > MAX_PROPERTIES:
            raise invalid(f"{total} properties")
        props = struct.unpack(f"<{total}I", call.read(a.props_ptr, 4 * total))
        values = struct.unpack(f"<{total}Q", call.read(a.prop_values_ptr, 8 * total))
        result = []
        place = 0
        for number, many in zip(objects, counts, strict=True):
            thing = self.values.resources.find(call.file, number)
            if not thing.properties:
                raise missing(f"object {number} has no properties")
            for prop_id, value in zip(
                props[place : place + many], values[place : place + many], strict=True
            ):
                prop = self.screen.registry.properties.get(prop_id)
                if prop is None or prop.name not in thing.properties:
                    raise missing(f"object {number} has no property {prop_id}")
                result.append((thing, prop, value))
            place += many
        return result

"""A property's new value as part of a change, for atomic and older clients alike."""

from __future__ import annotations

import errno
import struct
from dataclasses import dataclass

from vc4lab.drm.kms import objects as o
from vc4lab.drm.kms.colours import CTM, CTM_SIZE, LUT, LUT_ENTRY
from vc4lab.drm.kms.commits import Commit
from vc4lab.drm.kms.resources import Resources
from vc4lab.drm.kms.screen import Screen
from vc4lab.drm.objects.syncobjs import SyncObjects
from vc4lab.drm.uapi.ioctls import Call
from vc4lab.drm.uapi.results import Refused, invalid

NO_FENCE = o.U64


@dataclass(eq=False)
class PropertyValues:
    """Sets properties to what programs may set them to."""

    screen: Screen
    resources: Resources
    syncobjs: SyncObjects

    def take(self, call: Call, commit: Commit, thing: o.DisplayObject, prop: o.Property, value: int) -> None:
        """Make a value part of a change. Raises Refused."""
        if prop.flags & o.IMMUTABLE or not prop.accepts(value):
            raise invalid(f"{prop.name} = {value}")
        if value and prop.flags & o.IS_BLOB:
            self._check_blob(prop, value)
        if value and prop.flags & o.IS_OBJECT:
            if self.screen.kind_of(value) != prop.values[0]:
                raise invalid(f"{prop.name}: no object {value}")
            if prop.values[0] in o.LEASABLE and not call.file.holds(value):
                raise Refused(errno.EACCES, f"{prop.name}: object {value} is not leased to it")
        shown_by = value if prop.name == "CRTC_ID" else thing.state.get("CRTC_ID", 0)
        commit.has_crtc |= thing.kind == o.CRTC or bool(shown_by)
        if prop.name == "IN_FENCE_FD":
            if value != NO_FENCE:
                commit.fences.append(self.syncobjs.fence_in(call.task, value))
        elif prop.name == "OUT_FENCE_PTR":
            if value:
                call.write(value, struct.pack("<i", -1))
                commit.out_places.append(value)
        else:
            commit.changes[thing.id, prop.name] = value

    def _check_blob(self, prop: o.Property, number: int) -> None:
        """Check a blob's size, as drm_atomic_replace_property_blob_from_id does. Raises Refused."""
        data = self.screen.blob_data(number)
        if data is None:
            raise invalid(f"{prop.name}: no blob {number}")
        if prop.name == CTM and len(data) != CTM_SIZE:
            raise invalid(f"{prop.name} of {len(data)} bytes")
        if prop.name == LUT and len(data) % LUT_ENTRY.size:
            raise invalid(f"{prop.name} of {len(data)} bytes")

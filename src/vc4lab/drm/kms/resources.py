"""Resources of the display: connectors, encoders, CRTCs, planes, properties, blobs."""

from __future__ import annotations

import errno
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING

from vc4lab.drm.kms import objects as o
from vc4lab.drm.kms.formats import FORMATS
from vc4lab.drm.kms.modes import CRTC_FIELDS, MAX_SIDE, MODE
from vc4lab.drm.kms.screen import HDMI_A, HEIGHT_MM, OVERLAY, TMDS, WIDTH_MM, Screen
from vc4lab.drm.objects.core import ATOMIC, UNIVERSAL_PLANES
from vc4lab.drm.uapi.ioctls import Call, ioctl
from vc4lab.drm.uapi.results import Refused, found, invalid, missing
from vc4lab.scanout.colours import STEPS

if TYPE_CHECKING:
    from vc4lab.drm.objects.files import OpenFile

MAX_BLOB = 65536
CONNECTED, DISCONNECTED = 1, 2


def write_numbers(call: Call, pointer: str, count: str, numbers: list[int], code: str = "I") -> None:
    """An array as GETRESOURCES and its relatives give it: as much as fits, and its whole length.

    `pointer` and `count` are the fields that have its place and the program's room.
    """
    place, many = getattr(call.args, pointer), min(getattr(call.args, count), len(numbers))
    if place and many:
        call.write(place, struct.pack(f"<{many}{code}", *numbers[:many]))
    setattr(call.args, count, len(numbers))


class Resources:
    """The ioctls that only look."""

    def __init__(self, screen: Screen) -> None:
        self.screen = screen
        self.before_probe: Callable[[], None] = lambda: None
        """Called before a program gets to know what is plugged in."""

    def find(self, file: OpenFile, number: int, kind: int = o.ANY) -> o.DisplayObject:
        """An object that the file may see. Raises Refused (ENOENT)."""
        thing = found(self.screen.registry.find(number, kind), f"object {number}")
        if thing.kind in o.LEASABLE and not file.holds(number):
            raise missing(f"object {number} in this lease")
        return thing

    @ioctl(
        0xA0, "MODE_GETRESOURCES",
        "u64 fb_id_ptr, u64 crtc_id_ptr, u64 connector_id_ptr, u64 encoder_id_ptr, u32 count_fbs, "
        "u32 count_crtcs, u32 count_connectors, u32 count_encoders, u32 min_width, "
        "u32 max_width, u32 min_height, u32 max_height",
    )  # fmt: skip
    def get_resources(self, call: Call) -> None:
        a, screen = call.args, self.screen
        write_numbers(call, "fb_id_ptr", "count_fbs", sorted(call.file.frame_buffers))
        for name, thing in (("crtc", screen.crtc), ("connector", screen.connector)):
            shown = [thing.id] if call.file.holds(thing.id) else []
            write_numbers(call, f"{name}_id_ptr", f"count_{name}s", shown)
        write_numbers(call, "encoder_id_ptr", "count_encoders", [screen.encoder.id])
        a.min_width, a.max_width, a.min_height, a.max_height = 0, MAX_SIDE, 0, MAX_SIDE

    @ioctl(0xA1, "MODE_GETCRTC", CRTC_FIELDS)
    def get_crtc(self, call: Call) -> None:
        a, screen = call.args, self.screen
        self.find(call.file, a.crtc_id, o.CRTC)
        primary = screen.plane(1)
        a.fb_id, a.x, a.y = primary.state["FB_ID"], 0, 0
        a.gamma_size = STEPS
        mode = screen.mode
        a.mode_valid = int(mode is not None)
        for name in MODE.names:
            empty = b"" if name == "mname" else 0
            setattr(a, name, getattr(mode, name) if mode is not None else empty)

    @ioctl(
        0xA6, "MODE_GETENCODER",
        "u32 encoder_id, u32 encoder_type, u32 crtc_id, u32 possible_crtcs, u32 possible_clones",
    )  # fmt: skip
    def get_encoder(self, call: Call) -> None:
        a = call.args
        self.find(call.file, a.encoder_id, o.ENCODER)
        held = call.file.holds(self.screen.crtc.id)
        a.encoder_type, a.possible_crtcs, a.possible_clones = TMDS, int(held), 0
        a.crtc_id = self.screen.connector.state["CRTC_ID"] if held else 0

    @ioctl(
        0xA7, "MODE_GETCONNECTOR",
        "u64 encoders_ptr, u64 modes_ptr, u64 props_ptr, u64 prop_values_ptr, u32 count_modes, "
        "u32 count_props, u32 count_encoders, u32 encoder_id, u32 connector_id, "
        "u32 connector_type, u32 connector_type_id, u32 connection, u32 mm_width, "
        "u32 mm_height, u32 subpixel, u32 pad",
    )  # fmt: skip
    def get_connector(self, call: Call) -> None:
        a, screen = call.args, self.screen
        connector = self.find(call.file, a.connector_id, o.CONNECTOR)
        self.before_probe()
        modes = [m.values(preferred=n == 0) for n, m in enumerate(screen.offered)]
        if a.modes_ptr and a.count_modes >= len(modes) > 0:
            call.write(a.modes_ptr, MODE.pack_all(modes))
        a.count_modes = len(modes)
        write_numbers(call, "encoders_ptr", "count_encoders", [screen.encoder.id])
        self._properties(call, connector)
        a.encoder_id = screen.encoder.id if connector.state["CRTC_ID"] else 0
        plugged = bool(modes)
        a.connector_type, a.connector_type_id = HDMI_A, 1
        a.connection = CONNECTED if plugged else DISCONNECTED
        a.mm_width, a.mm_height = (WIDTH_MM, HEIGHT_MM) if plugged else (0, 0)
        a.subpixel, a.pad = 1, 0

    def _properties(self, call: Call, thing: o.DisplayObject) -> None:
        """An object's properties and their values; those of atomic for clients that enabled it."""
        atomic = call.file.client_caps.get(ATOMIC)
        shown = [p for p in thing.properties.values() if atomic or not p.flags & o.ATOMIC]
        if call.args.count_props >= len(shown):
            write_numbers(call, "props_ptr", "count_props", [p.id for p in shown])
            numbers = [0 if p.name == "OUT_FENCE_PTR" else thing.state[p.name] for p in shown]
            write_numbers(call, "prop_values_ptr", "count_props", numbers, "Q")
        call.args.count_props = len(shown)

    @ioctl(0xB5, "MODE_GETPLANERESOURCES", "u64 plane_id_ptr, u32 count_planes")
    def get_plane_resources(self, call: Call) -> None:
        universal = call.file.client_caps.get(UNIVERSAL_PLANES)
        planes = [p for p in self.screen.planes if universal or p.state["type"] == OVERLAY]
        held = [plane.id for plane in planes if call.file.holds(plane.id)]
        write_numbers(call, "plane_id_ptr", "count_planes", held)

    @ioctl(
        0xB6, "MODE_GETPLANE",
        "u32 plane_id, u32 crtc_id, u32 fb_id, u32 possible_crtcs, u32 gamma_size, "
        "u32 count_format_types, u64 format_type_ptr",
    )  # fmt: skip
    def get_plane(self, call: Call) -> None:
        a = call.args
        plane = self.find(call.file, a.plane_id, o.PLANE)
        held = call.file.holds(self.screen.crtc.id)
        a.crtc_id, a.fb_id = plane.state["CRTC_ID"] if held else 0, plane.state["FB_ID"]
        a.possible_crtcs, a.gamma_size = int(held), 0
        write_numbers(call, "format_type_ptr", "count_format_types", list(FORMATS))

    # -- properties --------------------------------------------------------------------------------

    @ioctl(
        0xAA, "MODE_GETPROPERTY",
        "u64 values_ptr, u64 enum_blob_ptr, u32 prop_id, u32 flags, char[32] name, "
        "u32 count_values, u32 count_enum_blobs",
    )  # fmt: skip
    def get_property(self, call: Call) -> None:
        a = call.args
        prop = found(self.screen.registry.properties.get(a.prop_id), f"property {a.prop_id}")
        a.flags, a.name = prop.flags, prop.name.encode()
        values = [number for number, _ in prop.enums] or list(prop.values)
        write_numbers(call, "values_ptr", "count_values", values, "Q")
        if a.enum_blob_ptr and a.count_enum_blobs >= len(prop.enums):
            packed = [struct.pack("<Q32s", n, text.encode()) for n, text in prop.enums]
            call.write(a.enum_blob_ptr, b"".join(packed))
        a.count_enum_blobs = len(prop.enums)

    @ioctl(0xAC, "MODE_GETPROPBLOB", "u32 blob_id, u32 length, u64 data")
    def get_prop_blob(self, call: Call) -> None:
        a = call.args
        blob = found(self.screen.blobs.get(a.blob_id), f"blob {a.blob_id}")
        if a.length >= len(blob.data):
            call.write(a.data, blob.data)
        a.length = len(blob.data)

    @ioctl(
        0xB9, "MODE_OBJ_GETPROPERTIES",
        "u64 props_ptr, u64 prop_values_ptr, u32 count_props, u32 obj_id, u32 obj_type",
    )  # fmt: skip
    def get_object_properties(self, call: Call) -> None:
        a = call.args
        self._properties(call, self.with_properties(call.file, a.obj_id, a.obj_type))

    def with_properties(self, file: OpenFile, number: int, kind: int) -> o.DisplayObject:
        """Raises Refused: ENOENT for nothing, EINVAL for what has no properties."""
        other = self.screen.kind_of(number)
        if self.screen.registry.find(number) is None and other and kind in (o.ANY, other):
            raise invalid(f"object {number} has no properties")
        thing = self.find(file, number, kind)
        if not thing.properties:
            raise invalid(f"object {number} has no properties")
        return thing

    @ioctl(0xBD, "MODE_CREATEPROPBLOB", "u64 data, u32 length, u32 blob_id")
    def create_prop_blob(self, call: Call) -> None:
        a = call.args
        if not 0 < a.length <= MAX_BLOB:
            raise invalid(f"a blob of {a.length} bytes")
        a.blob_id = self.screen.add_blob(call.read(a.data, a.length), call.file)
        call.file.blobs.add(a.blob_id)

    @ioctl(0xBE, "MODE_DESTROYPROPBLOB", "u32 blob_id")
    def destroy_prop_blob(self, call: Call) -> None:
        number = call.args.blob_id
        found(self.screen.blobs.get(number), f"blob {number}")
        if number not in call.file.blobs:
            raise Refused(errno.EPERM, f"blob {number} is another file's")
        self._drop_blob(call.file, call.args.blob_id)

    def _drop_blob(self, file: OpenFile, number: int) -> None:
        file.blobs.discard(number)
        if number in self.screen.blobs_in_use:
            self.screen.blobs[number].owner = None  # what is set stays
            return
        del self.screen.blobs[number]

    def released(self, file: OpenFile) -> None:
        """The file is gone with its blobs."""
        for number in list(file.blobs):
            self._drop_blob(file, number)

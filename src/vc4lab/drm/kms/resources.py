"""What the display has: resources, connectors, encoders, CRTCs, planes, properties, blobs."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from vc4lab.drm.device.core import ATOMIC, UNIVERSAL_PLANES
from vc4lab.drm.kms import objects as o
from vc4lab.drm.kms.formats import FORMATS
from vc4lab.drm.kms.modes import CRTC_FIELDS, MAX_SIDE, MODE
from vc4lab.drm.kms.screen import HDMI_A, HEIGHT_MM, OVERLAY, TMDS, WIDTH_MM, Screen
from vc4lab.drm.uapi.ioctls import Call, ioctl
from vc4lab.drm.uapi.results import invalid, missing

if TYPE_CHECKING:
    from vc4lab.drm.device.files import OpenFile

MAX_BLOB = 65536
CONNECTED, DISCONNECTED = 1, 2


def write_numbers(call: Call, place: int, room: int, numbers: list[int], code: str = "I") -> int:
    """An array as GETRESOURCES and its relatives give it: as much as fits. Returns its length."""
    count = min(room, len(numbers))
    if place and count:
        call.write(place, struct.pack(f"<{count}{code}", *numbers[:count]))
    return len(numbers)


class Resources:
    """The ioctls that only look."""

    def __init__(self, screen: Screen) -> None:
        self.screen = screen

    def find(self, number: int, kind: int = o.ANY) -> o.DisplayObject:
        """Raises Refused (ENOENT)."""
        return o.found(self.screen.registry.find(number, kind), f"object {number}")

    def visible(self, file: OpenFile, prop: o.Property) -> bool:
        """Only clients that enabled atomic see atomic properties."""
        return not prop.flags & o.ATOMIC or bool(file.client_caps.get(ATOMIC))

    def value(self, thing: o.DisplayObject, name: str) -> int:
        """A property's value as programs read it."""
        return 0 if name == "OUT_FENCE_PTR" else thing.state[name]

    @ioctl(
        0xA0, "MODE_GETRESOURCES",
        "u64 fb_id_ptr, u64 crtc_id_ptr, u64 connector_id_ptr, u64 encoder_id_ptr, u32 count_fbs, "
        "u32 count_crtcs, u32 count_connectors, u32 count_encoders, u32 min_width, "
        "u32 max_width, u32 min_height, u32 max_height",
    )  # fmt: skip
    def get_resources(self, call: Call) -> None:
        a, screen = call.args, self.screen
        lists = {
            "fb": ("fbs", sorted(call.file.frame_buffers)),
            "crtc": ("crtcs", [screen.crtc.id]),
            "connector": ("connectors", [screen.connector.id]),
            "encoder": ("encoders", [screen.encoder.id]),
        }
        for name, (many, numbers) in lists.items():
            room = getattr(a, f"count_{many}")
            count = write_numbers(call, getattr(a, f"{name}_id_ptr"), room, numbers)
            setattr(a, f"count_{many}", count)
        a.min_width, a.max_width, a.min_height, a.max_height = 0, MAX_SIDE, 0, MAX_SIDE

    @ioctl(0xA1, "MODE_GETCRTC", CRTC_FIELDS)
    def get_crtc(self, call: Call) -> None:
        a, screen = call.args, self.screen
        self.find(a.crtc_id, o.CRTC)
        primary = screen.plane(1)
        a.fb_id, a.x, a.y = primary.state["FB_ID"], 0, 0
        a.gamma_size = 256
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
        self.find(a.encoder_id, o.ENCODER)
        a.encoder_type, a.possible_crtcs, a.possible_clones = TMDS, 1, 0
        a.crtc_id = self.screen.connector.state["CRTC_ID"]

    @ioctl(
        0xA7, "MODE_GETCONNECTOR",
        "u64 encoders_ptr, u64 modes_ptr, u64 props_ptr, u64 prop_values_ptr, u32 count_modes, "
        "u32 count_props, u32 count_encoders, u32 encoder_id, u32 connector_id, "
        "u32 connector_type, u32 connector_type_id, u32 connection, u32 mm_width, "
        "u32 mm_height, u32 subpixel, u32 pad",
    )  # fmt: skip
    def get_connector(self, call: Call) -> None:
        a, screen = call.args, self.screen
        connector = self.find(a.connector_id, o.CONNECTOR)
        modes = [m.values(preferred=n == 0) for n, m in enumerate(screen.modes)]
        a.count_modes = call.write_list(a.modes_ptr, a.count_modes, MODE, modes)
        a.count_encoders = write_numbers(
            call, a.encoders_ptr, a.count_encoders, [screen.encoder.id]
        )
        a.count_props = self._properties(
            call, connector, a.props_ptr, a.prop_values_ptr, a.count_props
        )
        a.encoder_id = screen.encoder.id if connector.state["CRTC_ID"] else 0
        plugged = bool(modes)
        a.connector_type, a.connector_type_id = HDMI_A, 1
        a.connection = CONNECTED if plugged else DISCONNECTED
        a.mm_width, a.mm_height = (WIDTH_MM, HEIGHT_MM) if plugged else (0, 0)
        a.subpixel, a.pad = 1, 0

    def _properties(
        self, call: Call, thing: o.DisplayObject, ids: int, values: int, room: int
    ) -> int:
        shown = [p for p in thing.properties.values() if self.visible(call.file, p)]
        if room >= len(shown):
            write_numbers(call, ids, room, [p.id for p in shown])
            numbers = [self.value(thing, p.name) for p in shown]
            write_numbers(call, values, room, numbers, "Q")
        return len(shown)

    @ioctl(0xB5, "MODE_GETPLANERESOURCES", "u64 plane_id_ptr, u32 count_planes")
    def get_plane_resources(self, call: Call) -> None:
        universal = call.file.client_caps.get(UNIVERSAL_PLANES)
        planes = [p.id for p in self.screen.planes if universal or p.state["type"] == OVERLAY]
        a = call.args
        a.count_planes = write_numbers(call, a.plane_id_ptr, a.count_planes, planes)

    @ioctl(
        0xB6, "MODE_GETPLANE",
        "u32 plane_id, u32 crtc_id, u32 fb_id, u32 possible_crtcs, u32 gamma_size, "
        "u32 count_format_types, u64 format_type_ptr",
    )  # fmt: skip
    def get_plane(self, call: Call) -> None:
        a = call.args
        plane = self.find(a.plane_id, o.PLANE)
        a.crtc_id, a.fb_id = plane.state["CRTC_ID"], plane.state["FB_ID"]
        a.possible_crtcs, a.gamma_size = 1, 0
        a.count_format_types = write_numbers(
            call, a.format_type_ptr, a.count_format_types, list(FORMATS)
        )

    # -- properties --------------------------------------------------------------------------------

    @ioctl(
        0xAA, "MODE_GETPROPERTY",
        "u64 values_ptr, u64 enum_blob_ptr, u32 prop_id, u32 flags, char[32] name, "
        "u32 count_values, u32 count_enum_blobs",
    )  # fmt: skip
    def get_property(self, call: Call) -> None:
        a = call.args
        prop = o.found(self.screen.registry.properties.get(a.prop_id), f"property {a.prop_id}")
        a.flags, a.name = prop.flags, prop.name.encode()
        values = [number for number, _ in prop.enums] or list(prop.values)
        a.count_values = write_numbers(call, a.values_ptr, a.count_values, values, "Q")
        if a.enum_blob_ptr and a.count_enum_blobs >= len(prop.enums):
            packed = [struct.pack("<Q32s", n, text.encode()) for n, text in prop.enums]
            call.write(a.enum_blob_ptr, b"".join(packed))
        a.count_enum_blobs = len(prop.enums)

    @ioctl(0xAC, "MODE_GETPROPBLOB", "u32 blob_id, u32 length, u64 data")
    def get_prop_blob(self, call: Call) -> None:
        a = call.args
        blob = o.found(self.screen.blobs.get(a.blob_id), f"blob {a.blob_id}")
        if a.length >= len(blob.data):
            call.write(a.data, blob.data)
        a.length = len(blob.data)

    @ioctl(
        0xB9, "MODE_OBJ_GETPROPERTIES",
        "u64 props_ptr, u64 prop_values_ptr, u32 count_props, u32 obj_id, u32 obj_type",
    )  # fmt: skip
    def get_object_properties(self, call: Call) -> None:
        a = call.args
        thing = self.find(a.obj_id, a.obj_type)
        if not thing.properties:
            raise invalid(f"object {a.obj_id} has no properties")
        a.count_props = self._properties(call, thing, a.props_ptr, a.prop_values_ptr, a.count_props)

    @ioctl(0xBD, "MODE_CREATEPROPBLOB", "u64 data, u32 length, u32 blob_id")
    def create_prop_blob(self, call: Call) -> None:
        a = call.args
        if not 0 < a.length <= MAX_BLOB:
            raise invalid(f"a blob of {a.length} bytes")
        a.blob_id = self.screen.add_blob(call.read(a.data, a.length), call.file)
        call.file.blobs.add(a.blob_id)

    @ioctl(0xBE, "MODE_DESTROYPROPBLOB", "u32 blob_id")
    def destroy_prop_blob(self, call: Call) -> None:
        if call.args.blob_id not in call.file.blobs:
            raise missing(f"no blob {call.args.blob_id} of this file")
        self._drop_blob(call.file, call.args.blob_id)

    def _drop_blob(self, file: OpenFile, number: int) -> None:
        file.blobs.discard(number)
        if self.screen.crtc.state["MODE_ID"] == number:
            self.screen.blobs[number].owner = None  # the mode that is set stays
            return
        del self.screen.blobs[number]

    def released(self, file: OpenFile) -> None:
        """The file is gone with its blobs."""
        for number in list(file.blobs):
            self._drop_blob(file, number)

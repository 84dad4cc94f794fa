"""The ioctls from before atomic: SETCRTC, PAGE_FLIP, cursors, SETPLANE, gamma, vblank, DPMS."""

from __future__ import annotations

import errno
import time
from dataclasses import dataclass, field
from typing import Any

from vc4lab.drm.kms import objects as o
from vc4lab.drm.kms.colours import CTM, LUT, table_of
from vc4lab.drm.kms.commits import DPMS_OFF, FLIP_ASYNC, FLIP_EVENT, LONGEST_FLIP, Commit, Commits
from vc4lab.drm.kms.formats import FORMATS
from vc4lab.drm.kms.frames import FrameBuffers, Part
from vc4lab.drm.kms.modes import CRTC_FIELDS, MODE
from vc4lab.drm.kms.property_values import PropertyValues
from vc4lab.drm.kms.resources import Resources
from vc4lab.drm.kms.screen import CURSOR, PRIMARY, FrameBuffer, Screen, Waiter, passed
from vc4lab.drm.objects.files import EVENT_SEQUENCE
from vc4lab.drm.uapi.ioctls import Call, ioctl
from vc4lab.drm.uapi.results import Later, Refused, invalid
from vc4lab.scanout.colours import STEPS
from vc4lab.scanout.formats import LINEAR, fourcc

CURSOR_BUFFER, CURSOR_MOVE = 1, 2
CURSOR_SIDE = 64
VBLANK_RELATIVE, VBLANK_CRTCS, VBLANK_EVENT, VBLANK_NEXT_ON_MISS, VBLANK_SECONDARY = (
    1, 0x3E, 0x4000000, 0x10000000, 0x20000000,
)  # fmt: skip
VBLANK_SIGNAL = 0x40000000
VBLANK_KNOWN = 0x7400003F
LONGEST_VBLANK_WAIT = 3.0
"""Seconds after which a wait for a vblank is EBUSY, as in Linux."""
SEQUENCE_RELATIVE, SEQUENCE_NEXT_ON_MISS = 1, 2
KEEP = 0xFFFFFFFF
NOWHERE = dict.fromkeys(
    ("FB_ID", "CRTC_ID", *(f"{kind}_{name}" for kind in ("SRC", "CRTC") for name in "XYWH")), 0
)
"""Values of a plane's properties once an older call has taken it off the screen."""
_CURSOR = "u32 flags, u32 crtc_id, i32 x, i32 y, u32 width, u32 height, u32 handle"
_GAMMA = "u32 crtc_id, u32 gamma_size, u64 red, u64 green, u64 blue"


@dataclass(eq=False)
class Legacy:
    """The older ioctls, each as one commit."""

    screen: Screen
    commits: Commits
    resources: Resources
    frames: FrameBuffers
    values: PropertyValues
    _cursors: dict[int, FrameBuffer] = field(default_factory=dict)
    _pointer: tuple[int, int] = (0, 0)
    """The place that the cursor was moved to."""

    @ioctl(0xA2, "MODE_SETCRTC", CRTC_FIELDS, master=True)
    def set_crtc(self, call: Call) -> Later | None:
        a, screen = call.args, self.screen
        if (a.x | a.y) >> 16:
            raise Refused(errno.ERANGE, "a place beyond all frame buffers")
        self.resources.find(call.file, a.crtc_id, o.CRTC)
        commit = Commit(call.file)
        if a.mode_valid:
            self._check_held(call, screen.plane(PRIMARY))
        else:
            if a.count_connectors:
                raise invalid("connectors without a mode")
            commit.set(screen.crtc, ACTIVE=0, MODE_ID=0)
            commit.set(screen.connector, CRTC_ID=0)
            commit.set(screen.plane(PRIMARY), FB_ID=0, CRTC_ID=0)
            return self.commits.make(commit)
        if a.count_connectors != 1:
            raise invalid(f"{a.count_connectors} connectors")
        number = int.from_bytes(call.read(a.set_connectors_ptr, 4), "little")
        self.resources.find(call.file, number, o.CONNECTOR)
        if a.fb_id == KEEP:
            current = screen.frame_buffer_of(screen.plane(PRIMARY))
            if current is None:
                raise invalid("no frame buffer to keep")
            frame = current
        else:
            frame = self.frames.find(a.fb_id)
        if a.x + a.hdisplay > frame.width or a.y + a.vdisplay > frame.height:
            raise Refused(errno.ENOSPC, "the frame buffer is smaller than the mode")
        data = MODE.pack(MODE.make(**{name: getattr(a, name) for name in MODE.names}))
        blob = screen.add_blob(data)
        commit.set(screen.crtc, ACTIVE=1, MODE_ID=blob)
        commit.set(screen.connector, CRTC_ID=screen.crtc.id)
        commit.set(  # from that place on, on the whole screen
            screen.plane(PRIMARY),
            FB_ID=frame.id, CRTC_ID=screen.crtc.id, SRC_X=a.x << 16, SRC_Y=a.y << 16,
            SRC_W=a.hdisplay << 16, SRC_H=a.vdisplay << 16, CRTC_X=0, CRTC_Y=0,
            CRTC_W=a.hdisplay, CRTC_H=a.vdisplay,
        )  # fmt: skip
        try:
            return self.commits.make(commit)
        except Refused:
            screen.blobs.pop(blob, None)
            raise

    @ioctl(
        0xB0, "MODE_PAGE_FLIP",
        "u32 crtc_id, u32 fb_id, u32 flags, u32 reserved, u64 user_data", master=True,
    )  # fmt: skip
    def page_flip(self, call: Call) -> None:
        a, screen = call.args, self.screen
        if a.flags & ~(FLIP_EVENT | FLIP_ASYNC) or a.reserved:
            raise invalid(f"flags 0x{a.flags:x}")
        self.resources.find(call.file, a.crtc_id, o.CRTC)
        primary = screen.plane(PRIMARY)
        self._check_held(call, primary)
        frame = self.frames.find(a.fb_id)
        current = screen.frame_buffer_of(primary)
        if current is None:
            raise Refused(errno.EBUSY, "the CRTC has no frame buffer")
        if not screen.is_active:
            raise invalid("the CRTC is off")
        if current.format != frame.format:
            raise invalid("a flip to another format")
        if a.flags & FLIP_EVENT and not call.file.has_room:
            raise Refused(errno.ENOMEM, "too many unread events")
        commit = Commit(
            call.file, user=a.user_data, wants_event=bool(a.flags & FLIP_EVENT), waits=False,
            immediately=bool(a.flags & FLIP_ASYNC),
        )  # fmt: skip
        commit.set(primary, FB_ID=frame.id)
        self.commits.make(commit)

    def _check_held(self, call: Call, plane: o.DisplayObject) -> None:
        """A plane that the call uses without naming it. Raises Refused (EACCES)."""
        if not call.file.holds(plane.id):
            raise Refused(errno.EACCES, f"plane {plane.id} is not leased to this file")

    # -- planes and cursors ------------------------------------------------------------------------

    @ioctl(
        0xB7, "MODE_SETPLANE",
        "u32 plane_id, u32 crtc_id, u32 fb_id, u32 flags, i32 crtc_x, i32 crtc_y, u32 crtc_w, "
        "u32 crtc_h, u32 src_x, u32 src_y, u32 src_h, u32 src_w",
        master=True,
    )  # fmt: skip
    def set_plane(self, call: Call) -> Later | None:
        a = call.args
        plane = self.resources.find(call.file, a.plane_id, o.PLANE)
        commit = Commit(call.file)
        if not a.fb_id:
            commit.set(plane, **NOWHERE)
            return self.commits.make(commit)
        self.resources.find(call.file, a.crtc_id, o.CRTC)
        self.frames.find(a.fb_id)
        commit.set(
            plane,
            FB_ID=a.fb_id, CRTC_ID=a.crtc_id, SRC_X=a.src_x, SRC_Y=a.src_y, SRC_W=a.src_w,
            SRC_H=a.src_h, CRTC_X=a.crtc_x & o.U64, CRTC_Y=a.crtc_y & o.U64, CRTC_W=a.crtc_w,
            CRTC_H=a.crtc_h,
        )  # fmt: skip
        return self.commits.make(commit)

    @ioctl(0xA3, "MODE_CURSOR", _CURSOR, master=True)
    @ioctl(0xBB, "MODE_CURSOR2", f"{_CURSOR}, i32 hot_x, i32 hot_y", master=True)
    def cursor(self, call: Call) -> Later | None:
        """At once, but after a change under way of the mode or of the cursor's plane. Source: Linux
        drm_atomic_helper.c, drm_atomic_helper_async_check: the plane's state has a commit then."""
        a, screen = call.args, self.screen
        if not a.flags or a.flags & ~(CURSOR_BUFFER | CURSOR_MOVE):
            raise invalid(f"flags 0x{a.flags:x}")
        self.resources.find(call.file, a.crtc_id, o.CRTC)
        plane = screen.plane(CURSOR)
        self._check_held(call, plane)
        if a.flags & CURSOR_BUFFER:
            if a.handle and (a.width > CURSOR_SIDE or a.height > CURSOR_SIDE):
                raise invalid(f"a cursor of {a.width}x{a.height}")
        frame = self._cursor_frame(call) if a.flags & CURSOR_BUFFER and a.handle else None
        before = self.commits.under_way(plane)
        if before is None:
            self._show_cursor(a, plane, frame)
            return None
        change = before

        def done() -> int | None:
            if not change.done:
                return None
            self._show_cursor(a, plane, frame)
            return 0

        return Later(done, time.monotonic() + LONGEST_FLIP, 0)

    def _show_cursor(self, a: Any, plane: o.DisplayObject, frame: FrameBuffer | None) -> None:
        """Make the change that a call of MODE_CURSOR asks for."""
        screen = self.screen
        if a.flags & CURSOR_BUFFER:
            state = plane.state
            if frame is None:
                state.update(NOWHERE)
            else:
                state.update(FB_ID=frame.id, CRTC_ID=screen.crtc.id, SRC_X=0, SRC_Y=0)
                state.update(SRC_W=a.width << 16, SRC_H=a.height << 16)
                state.update(CRTC_W=a.width, CRTC_H=a.height)
        if a.flags & CURSOR_MOVE:
            self._pointer = a.x & o.U64, a.y & o.U64
        if plane.state["FB_ID"]:
            plane.state.update(CRTC_X=self._pointer[0], CRTC_Y=self._pointer[1])
        screen.touched()

    def _cursor_frame(self, call: Call) -> FrameBuffer:
        """The frame buffer of a legacy cursor; there is one at a time."""
        old = self.screen.plane(CURSOR).state["FB_ID"]
        if old in self._cursors and old in call.file.frame_buffers:
            self._cursors.pop(old)
            self.frames.remove(call.file, old)
        a = call.args
        if not (a.width and a.height):
            raise invalid("a cursor without pixels")
        part = Part(a.handle, a.width * 4, 0, a.height, a.width * 4)
        number = self.frames.add(call, FORMATS[fourcc("AR24")], LINEAR, [part])
        self._cursors[number] = self.screen.frame_buffers[number]
        return self._cursors[number]

    # -- gamma, DPMS -------------------------------------------------------------------------------

    @ioctl(0xA4, "MODE_GETGAMMA", _GAMMA)
    def get_gamma(self, call: Call) -> None:
        a = call.args
        self.resources.find(call.file, a.crtc_id, o.CRTC)
        if a.gamma_size != STEPS:
            raise invalid(f"{a.gamma_size} entries")
        for place, ramp in zip((a.red, a.green, a.blue), self.screen.colours.store, strict=True):
            call.write(place, ramp)

    @ioctl(0xA5, "MODE_SETGAMMA", _GAMMA, master=True)
    def set_gamma(self, call: Call) -> Later | None:
        """A new GAMMA_LUT, and no matrix. Source: Linux drm_color_mgmt.c, drm_crtc_legacy_gamma_set."""
        a, screen = call.args, self.screen
        self.resources.find(call.file, a.crtc_id, o.CRTC)
        if a.gamma_size != STEPS:
            raise invalid(f"{a.gamma_size} entries")
        red, green, blue = (call.read(p, 2 * STEPS) for p in (a.red, a.green, a.blue))
        screen.colours.store = red, green, blue
        commit = Commit(call.file)
        commit.set(screen.crtc, **{LUT: screen.add_blob(table_of(red, green, blue)), CTM: 0})
        return self.commits.make(commit)

    @ioctl(0xAB, "MODE_SETPROPERTY", "u64 value, u32 prop_id, u32 connector_id", master=True)
    def set_property(self, call: Call) -> Later | None:
        a = call.args
        return self._set(call, a.connector_id, o.CONNECTOR, a.prop_id, a.value)

    @ioctl(
        0xBA, "MODE_OBJ_SETPROPERTY",
        "u64 value, u32 prop_id, u32 obj_id, u32 obj_type", master=True,
    )  # fmt: skip
    def set_object_property(self, call: Call) -> Later | None:
        a = call.args
        return self._set(call, a.obj_id, a.obj_type, a.prop_id, a.value)

    def _set(self, call: Call, number: int, kind: int, prop_id: int, value: int) -> Later | None:
        thing = self.resources.with_properties(call.file, number, kind)
        prop = self.screen.registry.properties.get(prop_id)
        if prop is None or thing.properties.get(prop.name) is not prop:
            raise invalid(f"object {number} has no property {prop_id}")
        commit = Commit(call.file)
        self.values.take(call, commit, thing, prop, value)
        return self._set_power(commit, value) if prop.name == "DPMS" else self.commits.make(commit)

    def _set_power(self, commit: Commit, level: int) -> Later | None:
        """On or off, as a change of the CRTC that is waited for; nothing for what it is already.
        Source: Linux drivers/gpu/drm/drm_atomic_uapi.c, drm_atomic_connector_commit_dpms."""
        screen, level = self.screen, level and DPMS_OFF
        if screen.connector.state["DPMS"] == level:
            return None
        commit.set(screen.connector, DPMS=level)
        if not screen.connector.state["CRTC_ID"]:
            screen.connector.state["DPMS"] = level
            return None
        commit.set(screen.crtc, ACTIVE=int(not level))
        return self.commits.make(commit)

    # -- vblank ------------------------------------------------------------------------------------

    @ioctl(0x3A, "WAIT_VBLANK", "u32 type, u32 sequence, i64 tval_sec, i64 tval_usec")
    def wait_vblank(self, call: Call) -> Later | None:
        a, screen = call.args, self.screen
        if a.type & VBLANK_SIGNAL or a.type & ~VBLANK_KNOWN:
            raise invalid(f"type 0x{a.type:x}")
        if a.type & (VBLANK_CRTCS | VBLANK_SECONDARY) or not call.file.holds(screen.crtc.id):
            raise invalid("a CRTC that is not there")
        now = self._count_vblanks()
        wanted = (screen.sequence & ~o.U32) + a.sequence  # the nearest with these 32 bits
        wanted += ((screen.sequence - wanted + (1 << 31)) >> 32) << 32
        if a.type & VBLANK_RELATIVE:
            wanted = screen.sequence + a.sequence
            a.type &= ~VBLANK_RELATIVE
            a.sequence = wanted & o.U32
        if a.type & VBLANK_NEXT_ON_MISS and passed(screen.sequence, wanted):
            wanted = screen.sequence + 1
            a.type &= ~VBLANK_NEXT_ON_MISS
            a.sequence = wanted & o.U32
        if a.type & VBLANK_EVENT:
            waiter = Waiter(wanted & o.U64, call.file, a.tval_sec & o.U64)
            a.sequence = (screen.sequence if screen.wait_for(waiter) else wanted) & o.U32
            return None

        waits = not passed(screen.sequence, wanted)

        def fill() -> int | None:
            screen.tick(time.monotonic())  # flips of a vblank are through before programs hear of it
            came = passed(screen.sequence, wanted)
            if not came and screen.is_active:
                return None
            at = wanted if waits and came else screen.sequence  # though it may be seen late
            moment = screen.moment_of(at)
            a.sequence = at & o.U32
            a.tval_sec, a.tval_usec = int(moment), int(moment % 1 * 1e6)
            return 0

        if fill() is not None:
            return None
        vblanks = (wanted - screen.sequence) & o.U32
        screen.alarms.append(screen.moment + vblanks * screen.period)
        return Later(fill, now + LONGEST_VBLANK_WAIT, -errno.EBUSY)

    def _count_vblanks(self) -> float:
        """The time. Raises Refused (EINVAL) where no vblanks come."""
        if not self.screen.is_active:
            raise invalid("the CRTC is off")
        now = time.monotonic()
        self.screen.catch_up(now)
        return now

    @ioctl(0x3B, "CRTC_GET_SEQUENCE", "u32 crtc_id, u32 active, u64 sequence, i64 sequence_ns")
    def get_sequence(self, call: Call) -> None:
        a, screen = call.args, self.screen
        self.resources.find(call.file, a.crtc_id, o.CRTC)
        self._count_vblanks()
        a.active, a.sequence = 1, screen.sequence
        a.sequence_ns = int(screen.moment * 1e9)

    @ioctl(0x3C, "CRTC_QUEUE_SEQUENCE", "u32 crtc_id, u32 flags, u64 sequence, u64 user_data")
    def queue_sequence(self, call: Call) -> None:
        a, screen = call.args, self.screen
        self.resources.find(call.file, a.crtc_id, o.CRTC)
        if a.flags & ~(SEQUENCE_RELATIVE | SEQUENCE_NEXT_ON_MISS):
            raise invalid(f"flags 0x{a.flags:x}")
        self._count_vblanks()
        wanted = a.sequence
        if a.flags & SEQUENCE_RELATIVE:
            wanted = (wanted + screen.sequence) & o.U64
        if a.flags & SEQUENCE_NEXT_ON_MISS and passed(screen.sequence, wanted):
            wanted = screen.sequence + 1
        waiter = Waiter(wanted, call.file, a.user_data, EVENT_SEQUENCE)
        a.sequence = screen.sequence if screen.wait_for(waiter) else wanted

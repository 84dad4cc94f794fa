"""The display: one CRTC, one connector, planes, and the timing of pictures."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from vc4lab.drm.events import HANDED_OVER, HandedOver
from vc4lab.drm.kms import objects as o
from vc4lab.drm.kms.colours import CTM, LUT, Colours
from vc4lab.drm.kms.formats import in_formats
from vc4lab.drm.kms.modes import MODE, STANDARD, Mode, mode_of, refresh_of
from vc4lab.drm.objects.fences import Fence
from vc4lab.drm.objects.files import EVENT_FLIP, EVENT_VBLANK, OpenFile
from vc4lab.drm.objects.gem_objects import GemObject
from vc4lab.listeners import Listeners
from vc4lab.scanout.colours import STEPS
from vc4lab.scanout.formats import Format

if TYPE_CHECKING:
    from collections.abc import Sequence

PRIMARY, CURSOR, OVERLAY = 1, 2, 0
HDMI_A = 11
TMDS = 2
WIDTH_MM, HEIGHT_MM = 510, 290
WITHOUT_EDID = tuple(mode_of(*sides) for sides in ((1024, 768), (800, 600), (640, 480)))
"""Modes of a connector of which programs say that a screen is there."""
LONGEST_SETTLE = 1.0
"""Seconds that a picture handed over is waited for when another change takes it away."""
MAX_ZPOS = 17
"""The highest of the planes above the primary one, as Linux's driver counts them."""


@dataclass
class FrameBuffer:
    """A buffer with a shape."""

    id: int
    buffer: GemObject
    width: int
    height: int
    pitch: int
    offset: int
    format: Format
    modifier: int
    more: tuple[tuple[GemObject, int, int], ...] = ()
    """Further planes of the format: buffer, pitch, offset."""


@dataclass
class Blob:
    """Bytes as a property's value."""

    data: bytes
    owner: OpenFile | None = None


@dataclass
class Flip:
    """A state that becomes visible at a vblank."""

    file: OpenFile | None
    fences: list[Fence] = field(default_factory=list)
    user: int = 0
    wants_event: bool = False
    out_fence: Fence | None = None
    shows: bool = True
    """Whether a plane has a new picture."""
    immediately: bool = False
    done: bool = False
    handed_at: int = 0
    """The last vblank before it was handed over."""
    ready_at: int | None = None
    """The last vblank before it was handed over and its fences were done: it is for the next."""


@dataclass
class Waiter:
    """A program that waits for a vblank."""

    sequence: int
    file: OpenFile
    user: int
    kind: int = EVENT_VBLANK


class Screen:
    """The display hardware. All calls come from the supervisor's thread."""

    def __init__(self, modes: Sequence[Mode] = STANDARD, *, paced: bool = True, tiled: bool = True) -> None:
        self.registry = registry = o.Registry()
        self.modes = tuple(modes)
        """Modes of the screen that is plugged in; none without one."""
        self.forced: bool | None = None
        """Whether programs have said, by the connector's file in sysfs, that a screen is there."""
        self.paced = paced
        self.frame_buffers: dict[int, FrameBuffer] = {}
        self.blobs: dict[int, Blob] = {}
        self.colours = Colours()
        self.flips: list[Flip] = []
        self.waiters: list[Waiter] = []
        self.alarms: list[float] = []
        """When programs that wait for a vblank are to be asked."""
        self.sequence = 0
        self._flipped_at = 0
        """The vblank of the last flip: there is one a vblank."""
        self.frames = 0
        """Pictures shown."""
        self.is_over = False
        """The last picture that was wanted is shown: what programs show yet is not counted."""
        self.started = self.moment = time.monotonic()
        self._period: tuple[Blob | None, float] | None = None
        """When the last vblank was."""
        self.clock = 0.0
        """Seconds at which the last picture was shown: the vblank's, unpaced as if each picture
        stayed for one period."""
        self.on_frame: Callable[[], None] = lambda: None
        self.handed_over: Listeners[HandedOver] = Listeners()
        self.on_leaving: Callable[[], None] = lambda: None
        """Called before what is shown goes away."""
        self.in_formats = self.add_blob(in_formats(tiled))
        self.connector = registry.make(o.CONNECTOR)
        self.encoder = registry.make(o.ENCODER)
        self.crtc = registry.make(o.CRTC)
        self._make_connector()
        self._make_crtc()
        self.planes = [self._make_plane(kind) for kind in (PRIMARY, OVERLAY, CURSOR)]

    # -- objects -----------------------------------------------------------------------------------

    def _make_connector(self) -> None:
        prop = self.registry.prop
        add = self.connector.add
        add(prop("EDID", o.IS_BLOB | o.IMMUTABLE))
        states = ((0, "On"), (1, "Standby"), (2, "Suspend"), (3, "Off"))
        add(prop("DPMS", o.ENUM, enums=states))
        add(prop("link-status", o.ENUM, enums=((0, "Good"), (1, "Bad"))))
        add(prop("non-desktop", o.RANGE | o.IMMUTABLE, (0, 1)))
        add(prop("CRTC_ID", o.IS_OBJECT | o.ATOMIC, (o.CRTC,)))

    def _make_crtc(self) -> None:
        prop = self.registry.prop
        add = self.crtc.add
        add(prop("ACTIVE", o.RANGE | o.ATOMIC, (0, 1)))
        add(prop("MODE_ID", o.IS_BLOB | o.ATOMIC))
        add(prop("OUT_FENCE_PTR", o.RANGE | o.ATOMIC, (0, o.U64)))
        add(prop("VRR_ENABLED", o.RANGE, (0, 1)))
        add(prop(CTM, o.IS_BLOB))
        add(prop(LUT, o.IS_BLOB))
        add(prop("GAMMA_LUT_SIZE", o.RANGE | o.IMMUTABLE, (0, o.U32)), STEPS)

    def _make_plane(self, kind: int) -> o.DisplayObject:
        prop = self.registry.prop
        plane = self.registry.make(o.PLANE)
        kinds = ((OVERLAY, "Overlay"), (PRIMARY, "Primary"), (CURSOR, "Cursor"))
        plane.add(prop("type", o.ENUM | o.IMMUTABLE, enums=kinds), kind)
        plane.add(prop("IN_FORMATS", o.IS_BLOB | o.IMMUTABLE), self.in_formats)
        plane.add(prop("FB_ID", o.IS_OBJECT | o.ATOMIC, (o.FRAME_BUFFER,)))
        plane.add(prop("CRTC_ID", o.IS_OBJECT | o.ATOMIC, (o.CRTC,)))
        for name in ("SRC_X", "SRC_Y", "SRC_W", "SRC_H"):
            plane.add(prop(name, o.RANGE | o.ATOMIC, (0, o.U32)))
        for name in ("CRTC_X", "CRTC_Y"):
            plane.add(prop(name, o.SIGNED_RANGE | o.ATOMIC, o.I32_RANGE))
        for name in ("CRTC_W", "CRTC_H"):
            plane.add(prop(name, o.RANGE | o.ATOMIC, (0, o.I32)))
        fence = prop("IN_FENCE_FD", o.SIGNED_RANGE | o.ATOMIC, (o.U64, o.I32))
        plane.add(fence, o.U64)
        plane.add(prop("alpha", o.RANGE, (0, 0xFFFF)), 0xFFFF)
        blends = ((0, "None"), (1, "Pre-multiplied"), (2, "Coverage"))
        plane.add(prop("pixel blend mode", o.ENUM, enums=blends), 1)
        turns = ((0, "rotate-0"), (2, "rotate-180"), (4, "reflect-x"), (5, "reflect-y"))
        plane.add(prop("rotation", o.BITMASK, (0xF,), enums=turns), 1)
        if kind == PRIMARY:
            plane.add(prop("zpos", o.RANGE | o.IMMUTABLE, (0, 0)))
        else:
            order = 1 if kind == OVERLAY else MAX_ZPOS
            plane.add(prop("zpos", o.RANGE, (1, MAX_ZPOS)), order)
        return plane

    def plane(self, kind: int) -> o.DisplayObject:
        """The plane of that kind."""
        return next(plane for plane in self.planes if plane.state["type"] == kind)

    def kind_of(self, number: int) -> int | None:
        """The kind of the object with that number; None for nothing."""
        thing = self.registry.find(number)
        if thing is not None:
            return thing.kind
        others = (
            (o.FRAME_BUFFER, self.frame_buffers), (o.BLOB, self.blobs),
            (o.PROPERTY, self.registry.properties),
        )  # fmt: skip
        return next((kind for kind, table in others if number in table), None)

    def numbers(self) -> set[int]:
        """Numbers of everything that has one."""
        registry = self.registry
        return {*registry.objects, *registry.properties, *self.frame_buffers, *self.blobs}

    def blob_data(self, number: int) -> bytes | None:
        """A blob's bytes; None for none."""
        blob = self.blobs.get(number)
        return blob.data if blob is not None else None

    def add_blob(self, data: bytes, owner: OpenFile | None = None) -> int:
        """A new blob's number."""
        number = self.registry.number()
        self.blobs[number] = Blob(data, owner)
        return number

    @property
    def blobs_in_use(self) -> set[int]:
        """Those that stay whatever becomes of the file that made them."""
        return {self.in_formats, *(self.crtc.state[name] for name in ("MODE_ID", CTM, LUT))}

    @property
    def offered(self) -> tuple[Mode, ...]:
        """The modes that programs find, none for no screen."""
        if self.forced is None:
            return self.modes
        return (self.modes or WITHOUT_EDID) if self.forced else ()

    def touched(self) -> None:
        """A program drew into the buffer that is shown."""
        self.add_flip(Flip(None))

    def plug(self, modes: Sequence[Mode]) -> None:
        """A screen with these modes is plugged in from now on; without modes there is none.

        What is shown stays set, as on a real connector: programs change it when they hear of it.
        """
        self.modes = tuple(modes)

    # -- state -------------------------------------------------------------------------------------

    @property
    def mode(self) -> Any:
        """The mode that is set."""
        blob = self.blobs.get(self.crtc.state["MODE_ID"])
        return MODE.parse(blob.data) if blob is not None else None

    @property
    def is_active(self) -> bool:
        """Whether pictures come."""
        return bool(self.crtc.state["ACTIVE"] and self.crtc.state["MODE_ID"])

    def frame_buffer_of(self, plane: o.DisplayObject) -> FrameBuffer | None:
        """The frame buffer that a plane shows."""
        return self.frame_buffers.get(plane.state["FB_ID"])

    def buffers(self) -> list[GemObject]:
        """Buffers that the planes read."""
        frames = [self.frame_buffer_of(plane) for plane in self.planes]
        return [frame.buffer for frame in frames if frame is not None]

    # -- time --------------------------------------------------------------------------------------

    @property
    def period(self) -> float:
        """Seconds between vblanks. Asked for several times a frame, so kept with its mode."""
        blob = self.blobs.get(self.crtc.state["MODE_ID"])
        if self._period is None or self._period[0] is not blob:
            mode = self.mode
            self._period = blob, 1.0 / refresh_of(mode) if mode is not None else 1.0 / 60.0
        return self._period[1]

    def catch_up(self, now: float) -> None:
        """Count the vblanks that have passed. What is seen late, since the host was busy, has the
        number and the moment of the vblank that it belongs to all the same."""
        count = int((now - self.moment) / self.period + 1e-9)
        if count > 0:
            self.sequence += count
            self.moment += count * self.period

    def next_event(self) -> float | None:
        """When `tick` has something to do."""
        if not (self.flips or self.waiters or self.alarms):
            return None
        self._see_ready()
        ready = [flip for flip in self.flips if flip.ready_at is not None]
        if ready and (not self.paced or any(flip.immediately for flip in ready)):
            return 0.0
        moments = list(self.alarms)
        if ready or self.waiters:
            moments.append(self.moment + self.period)
        return min(moments) if moments else None

    def tick(self, now: float) -> None:
        """Do what is due."""
        self._see_ready()
        self.catch_up(now)
        self.alarms = [moment for moment in self.alarms if moment > now]
        if not self.paced:
            self._show_due()
        due = [w for w in self.waiters if passed(self.sequence, w.sequence)]
        due.sort(key=self._when_due)  # as they would have come in time
        for waiter in due:
            self.waiters.remove(waiter)
            at = self._when_due(waiter)
            if self.paced:
                self._show_due(at)
            self._answer(waiter, at)
        self._show_due()

    def _when_due(self, waiter: Waiter) -> int:
        """The vblank that a program has waited for."""
        return self.sequence - ((self.sequence - waiter.sequence) & o.U64)

    def _show_due(self, before: int | None = None) -> None:
        """Show the flips that are due, or those of vblanks before that one."""
        while self.flips and self._is_due(self.flips[0]):
            if before is not None and self._last_before(self.flips[0]) + 1 >= before:
                return
            flip = self.flips.pop(0)
            if flip.file is None and self.paced and self.flips and self._is_due(self.flips[0]):
                continue  # what was drawn into is seen with the flip
            if not self.paced and not self._has_vblank(flip):
                self.sequence += 1
            at = self.sequence
            if self.paced and not flip.immediately:
                at = self._last_before(flip) + 1  # though this may be looked at late
            if flip.file is not None and not flip.immediately:
                self._flipped_at = at
            self._show(flip, self.moment_of(at) if self.paced else time.monotonic(), at)

    def _is_due(self, flip: Flip) -> bool:
        """Whether a flip can be shown at the vblank that has been."""
        if flip.ready_at is None:
            return False
        return not self.paced or flip.immediately or self._has_vblank(flip)

    def _has_vblank(self, flip: Flip) -> bool:
        """Whether a vblank has been for it: one for each flip of a program."""
        return self.sequence > self._last_before(flip)

    def _last_before(self, flip: Flip) -> int:
        """The vblank after which a flip can be shown."""
        used = self._flipped_at if flip.file is not None else 0
        return max(flip.ready_at or 0, used)

    def moment_of(self, sequence: int) -> float:
        """When a vblank was."""
        return self.moment - (self.sequence - sequence) * self.period

    def _sequence_at(self, moment: float) -> int:
        """The last vblank before a moment that has been."""
        return self.sequence - max(0, math.ceil((self.moment - moment) / self.period - 1e-9))

    def _see_ready(self) -> None:
        """Note since when flips only wait for a vblank: since their last fence was done, whenever
        that is seen."""
        for flip in self.flips:
            if flip.ready_at is None and all(fence.is_done for fence in flip.fences):
                self.catch_up(time.monotonic())
                done = [self._sequence_at(fence.moment) for fence in flip.fences]
                flip.ready_at = max(flip.handed_at, *done) if done else flip.handed_at

    def wait_for(self, waiter: Waiter) -> bool:
        """A program's event at a vblank; whether that has been. Raises Refused (ENOMEM)."""
        waiter.file.promise_event()
        if passed(self.sequence, waiter.sequence):
            self._answer(waiter, self.sequence)
            return True
        self.waiters.append(waiter)
        return False

    def _answer(self, waiter: Waiter, sequence: int) -> None:
        """The event that a program waits for, of that vblank."""
        moment = self.moment_of(sequence)
        waiter.file.add_event(waiter.kind, waiter.user, moment, sequence, self.crtc.id)

    def _show(self, flip: Flip, moment: float, sequence: int) -> None:
        flip.done = True
        shows = flip.shows and not self.is_over
        if shows:
            self.frames += 1
            self.clock = moment - self.started if self.paced else self.clock + self.period
        if flip.wants_event and flip.file is not None:
            flip.file.add_event(EVENT_FLIP, flip.user, moment, sequence, self.crtc.id)
        if flip.out_fence is not None:
            flip.out_fence.signal()
        if shows:
            self.on_frame()

    def add_flip(self, flip: Flip) -> None:
        """A flip becomes visible at the next vblank after its fences are done."""
        self.catch_up(time.monotonic())
        flip.handed_at = self.sequence
        self.flips.append(flip)
        self._see_ready()
        if flip.shows and self.handed_over.subscriptions:
            self.handed_over.emit(HANDED_OVER)

    def end_waits(self) -> None:
        """The CRTC has been switched off: programs get the events that they wait for at once, of
        the last vblank. Source: Linux drivers/gpu/drm/drm_vblank.c, drm_crtc_vblank_off."""
        self.catch_up(time.monotonic())
        waiters, self.waiters = self.waiters, []
        for waiter in waiters:
            self._answer(waiter, self.sequence)

    def leave(self) -> None:
        """Let go what is shown. Changes keep their order: a picture that is handed
        over but not drawn yet is waited for and shown first, as in Linux.
        """
        until = time.monotonic() + LONGEST_SETTLE
        while self.flips:
            flip = self.flips[0]
            if not all(fence.wait(max(0.0, until - time.monotonic())) for fence in flip.fences):
                break
            self.flips.pop(0)
            self.catch_up(time.monotonic())
            last = self._last_before(flip)
            while self.paced and not flip.immediately and self.sequence <= last:
                time.sleep(max(0.0, self.moment + self.period - time.monotonic()))
                self.catch_up(time.monotonic())
            if not self.paced:
                self.sequence += 1
            self._flipped_at = self.sequence
            self._show(flip, self.moment if self.paced else time.monotonic(), self.sequence)
        self.on_leaving()

    def is_busy(self) -> bool:
        """Whether a program's flip has not become visible, after doing what is due."""
        if self.flips:
            self.tick(time.monotonic())
        return any(flip.file is not None for flip in self.flips)


def passed(sequence: int, wanted: int) -> bool:
    """Whether a vblank has been: one that is very long ago is yet to come, as in Linux."""
    return (sequence - wanted) & o.U64 <= 1 << 23

"""Changes of the display: checked as a whole, then made as a whole."""

from __future__ import annotations

import errno
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from vc4lab.drm.kms import objects as o
from vc4lab.drm.kms.colours import CTM, LUT, LUT_ENTRY, fits
from vc4lab.drm.kms.formats import FORMATS
from vc4lab.drm.kms.modes import MODE, problem_of, same_picture
from vc4lab.drm.kms.screen import Flip, Screen
from vc4lab.drm.uapi.results import Later, Refused, found, invalid
from vc4lab.scanout.colours import STEPS
from vc4lab.scanout.display_unknowns import Unknowns
from vc4lab.scanout.scaling import SCALE_BITS

if TYPE_CHECKING:
    from vc4lab.drm.device.vc4 import Vc4

DPMS_ON, DPMS_OFF = 0, 3
"""Linux's atomic drivers know no levels between."""
FLIP_EVENT, FLIP_ASYNC = 1, 2
"""Flags of a page flip and of an atomic change."""
LONGEST_FLIP = 5.0
"""Seconds after which a blocking change gives up waiting."""


@dataclass
class Commit(Flip):
    """A change that becomes visible as a flip: values by object and property name."""

    changes: dict[tuple[int, str], int] = field(default_factory=dict)
    waits: bool = True
    """The program's call ends when the change is visible."""
    allows_mode: bool = True
    changes_mode: bool = False
    """The CRTC has to stop and start again; known after the check."""
    has_crtc: bool = False
    """Whether a CRTC takes part, which sends the event."""
    out_places: list[int] = field(default_factory=list)
    """Addresses at which the program wants descriptors of fences."""

    def set(self, thing: o.DisplayObject, **values: int) -> None:
        """Values for an object's properties."""
        for name, value in values.items():
            self.changes[thing.id, name] = value


class Commits:
    """Checks and makes changes."""

    def __init__(self, screen: Screen, vc4: Vc4, unknowns: Unknowns) -> None:
        self.screen = screen
        self.vc4 = vc4
        self.refuses_shrinking = unknowns["hvs_shrink_limit"] == "refuses"

    def check(self, commit: Commit) -> None:
        """Whether the display could show that. Raises Refused."""
        screen, new = self.screen, self._states(commit)
        crtc = new[screen.crtc.id]
        blob = screen.blobs.get(crtc["MODE_ID"])
        if crtc["MODE_ID"]:
            if blob is None or len(blob.data) != MODE.size:
                raise invalid("MODE_ID is not a mode")
            problem = problem_of(MODE.parse(blob.data))
            if problem:
                raise invalid(problem)
        matrix = screen.blob_data(crtc[CTM])
        if matrix is not None and crtc[CTM] != screen.crtc.state[CTM] and not fits(matrix):
            raise invalid("a colour matrix with a number above one")
        if commit.wants_event and not (crtc["ACTIVE"] or screen.is_active):
            raise invalid("an event of a CRTC that is off and stays off")
        if crtc["ACTIVE"] and not crtc["MODE_ID"]:
            raise invalid("the CRTC is active without a mode")
        connected = new[screen.connector.id]["CRTC_ID"]
        if bool(crtc["MODE_ID"]) != bool(connected):
            raise invalid("a mode without a connector, or a connector without a mode")
        commit.changes_mode = self._changes_mode(new)
        if commit.changes_mode and not commit.allows_mode:
            raise invalid("a change of the mode without ALLOW_MODESET")
        for plane in screen.planes:
            self._check_plane(new[plane.id])

    def _states(self, commit: Commit) -> dict[int, dict[str, int]]:
        """Every object's properties after the change."""
        screen = self.screen
        new = {thing.id: dict(thing.state) for thing in (screen.crtc, screen.connector, *screen.planes)}
        for (number, name), value in commit.changes.items():
            new[number][name] = value
        return new

    def _changes_mode(self, new: dict[int, dict[str, int]]) -> bool:
        """Whether the CRTC has to stop and start again."""
        screen = self.screen
        crtc, connector = screen.crtc, screen.connector
        if new[crtc.id]["ACTIVE"] != crtc.state["ACTIVE"]:
            return True
        if new[connector.id]["CRTC_ID"] != connector.state["CRTC_ID"]:
            return True
        old, later = crtc.state["MODE_ID"], new[crtc.id]["MODE_ID"]
        return old != later and not same_picture(screen.blob_data(old), screen.blob_data(later))

    def _check_plane(self, plane: dict[str, int]) -> None:
        if bool(plane["FB_ID"]) != bool(plane["CRTC_ID"]):
            raise invalid("a plane needs both a frame buffer and a CRTC, or neither")
        if not plane["FB_ID"]:
            return
        number = plane["FB_ID"]
        frame = found(self.screen.frame_buffers.get(number), f"frame buffer {number}")
        if frame.format.code not in FORMATS:
            raise invalid(f"no plane shows {frame.format.name}")
        right = plane["SRC_X"] + plane["SRC_W"]
        bottom = plane["SRC_Y"] + plane["SRC_H"]
        if right > frame.width << 16 or bottom > frame.height << 16:
            raise Refused(errno.ENOSPC, "the source rectangle is outside the frame buffer")
        if not (plane["SRC_W"] and plane["SRC_H"] and plane["CRTC_W"] and plane["CRTC_H"]):
            raise invalid("a plane without a size")
        for place, size, source in (("CRTC_X", "CRTC_W", "SRC_W"), ("CRTC_Y", "CRTC_H", "SRC_H")):
            factor = plane[source] // plane[size]
            if o.signed(plane[place]) + plane[size] > o.I32:
                raise Refused(errno.ERANGE, "a plane outside the coordinate range")
            if not factor or (self.refuses_shrinking and factor >> SCALE_BITS):
                raise Refused(errno.ERANGE, "a plane with too large a scale factor")

    def under_way(self, plane: o.DisplayObject) -> Commit | None:
        """The last change of the mode, or of a plane, that is not visible yet."""
        if self.screen.is_busy():
            for flip in reversed(self.screen.flips):
                if isinstance(flip, Commit):
                    if flip.changes_mode or any(number == plane.id for number, _ in flip.changes):
                        return flip
        return None

    def make(self, commit: Commit) -> Later | None:
        """Check the change and make it; visible at the next vblank. Raises Refused."""
        screen = self.screen
        self.check(commit)
        if not commit.waits and screen.is_busy():
            raise Refused(errno.EBUSY, "the previous flip is still pending")
        for plane in screen.planes:
            number = commit.changes.get((plane.id, "FB_ID"), 0)
            if number and number != plane.state["FB_ID"]:
                buffer = screen.frame_buffers[number].buffer
                if buffer.was_purged or not buffer.is_needed:
                    raise invalid(f"{buffer} was marked as not needed by its owner")
        if commit.wants_event and commit.file is not None:
            commit.file.promise_event()
        commit.shows = any(name == "FB_ID" and value for (_, name), value in commit.changes.items())
        was_active = screen.is_active
        if self._apply(commit):
            commit.shows = any(screen.frame_buffer_of(plane) for plane in screen.planes)
        if not screen.is_active:  # there is no vblank to wait for
            commit.immediately = commit.waits  # else a worker of the kernel's does it: not at once
            commit.shows = False
        if not was_active and screen.is_active:  # what its planes had is seen again
            commit.shows = any(screen.frame_buffer_of(plane) for plane in screen.planes)
        for plane in screen.planes:
            frame = screen.frame_buffer_of(plane)
            fence = self.vc4.fence_of(frame.buffer) if frame else None
            if fence is not None:
                commit.fences.append(fence)
            if frame is not None:  # Linux drivers/gpu/drm/drm_gem_atomic_helper.c
                commit.fences += frame.buffer.root.attached(writes=True)
        screen.add_flip(commit)
        if not commit.waits:
            return None
        return Later(lambda: 0 if commit.done else None, time.monotonic() + LONGEST_FLIP, 0)

    def _apply(self, commit: Commit) -> bool:
        """Make the change; whether the colours of what is shown are others."""
        screen = self.screen
        gone = any(
            (name in ("FB_ID", "ACTIVE", "MODE_ID")) and not value
            for (_, name), value in commit.changes.items()
        )
        was_active, power = screen.is_active, self._power(screen)
        if gone and was_active:
            screen.leave()
        screen.catch_up(time.monotonic())  # with the period of the mode until now
        blobs, before = screen.blobs_in_use, dict(screen.crtc.state)
        things = {t.id: t for t in (screen.crtc, screen.connector, *screen.planes)}
        for (number, name), value in commit.changes.items():
            things[number].state[name] = value
        coloured = self._colour(before)
        if commit.changes_mode and screen.is_active:
            screen.colours.switched_on()
        for number in blobs - screen.blobs_in_use:
            blob = screen.blobs.get(number)
            if blob is not None and blob.owner is None:
                del screen.blobs[number]
        if was_active and not screen.is_active:
            screen.end_waits()
        if self._power(screen) != power:  # as drm_atomic_helper_update_legacy_modeset_state
            screen.connector.state["DPMS"] = DPMS_ON if screen.is_active else DPMS_OFF
        return coloured

    def _colour(self, before: dict[str, int]) -> bool:
        """Hand changes of the CRTC's colours to the hardware; whether there was something."""
        screen, state = self.screen, self.screen.crtc.state
        changed = {name for name in (CTM, LUT) if state[name] != before[name]}
        if CTM in changed:
            screen.colours.set_matrix(screen.blob_data(state[CTM]), has_mode=bool(state["MODE_ID"]))
        if changed and state["ACTIVE"]:
            table = screen.blob_data(state[LUT])
            screen.colours.set_table(table)
            entries = len(table) // LUT_ENTRY.size if table is not None else 0
            if entries > STEPS:
                self.vc4.reporter.report("DRM-027", f"GAMMA_LUT has {entries} entries", block="DRM")
        return bool(changed)

    @staticmethod
    def _power(screen: Screen) -> tuple[int, int]:
        return screen.crtc.state["ACTIVE"], screen.connector.state["CRTC_ID"]

"""Frame buffers: ADDFB, ADDFB2, RMFB, GETFB, DIRTYFB."""

from __future__ import annotations

import errno
from dataclasses import dataclass

from vc4lab.drm.device.files import OpenFile
from vc4lab.drm.device.gem import Buffers
from vc4lab.drm.kms.formats import FORMATS, LEGACY
from vc4lab.drm.kms.modes import MAX_SIDE
from vc4lab.drm.kms.screen import FrameBuffer, Screen
from vc4lab.drm.uapi.ioctls import Call, ioctl
from vc4lab.drm.uapi.results import Refused, found, invalid, missing
from vc4lab.images.tiling import round_up
from vc4lab.scanout.formats import T_TILED, TILE_PITCH, TILE_ROWS

WITH_MODIFIERS = 2
MAX_FRAME_BUFFERS = 65536
FIELDS = "u32 fb_id, u32 width, u32 height, u32 pitch, u32 bpp, u32 depth, u32 handle"
FIELDS_2 = (
    "u32 fb_id, u32 width, u32 height, u32 pixel_format, u32 flags, u32[4] handles, "
    "u32[4] pitches, u32[4] offsets, u64[4] modifier"
)


@dataclass(eq=False)
class FrameBuffers:
    """The ioctls of frame buffers."""

    screen: Screen
    buffers: Buffers
    modifiers: tuple[int, ...]

    def add(
        self, call: Call, handle: int, code: int, pitch: int, offset: int, modifier: int
    ) -> int:
        """A new frame buffer's number. Raises Refused."""
        a = call.args
        kind = FORMATS.get(code)
        if kind is None:
            raise invalid(f"format 0x{code:08x}")
        if not (0 < a.width <= MAX_SIDE and 0 < a.height <= MAX_SIDE):
            raise invalid(f"a frame buffer of {a.width}x{a.height}")
        if modifier not in self.modifiers or not kind.allows(modifier):
            raise invalid(f"{kind.name} with modifier 0x{modifier:x}")
        target = self.buffers.lookup(call.file, handle)
        if target.was_purged:
            raise invalid(f"{target} was purged")
        if target.private or target.was_purged:
            raise invalid("a shader's or a purged buffer")
        least = a.width * kind.bits // 8
        tiled = modifier == T_TILED
        rows = round_up(a.height, TILE_ROWS) if tiled else a.height
        last = pitch * (rows - 1) + (pitch if tiled else least)
        broken = tiled and pitch % TILE_PITCH
        if pitch < least or broken or offset + last > target.size:
            raise invalid(f"{a.width}x{a.height}, pitch {pitch} in {target}")
        if len(self.screen.frame_buffers) >= MAX_FRAME_BUFFERS:
            raise Refused(errno.ENOMEM, "too many frame buffers")
        number = self.screen.registry.number()
        self.screen.frame_buffers[number] = FrameBuffer(
            number, self.buffers.hold(target), a.width, a.height, pitch, offset, kind, modifier
        )
        call.file.frame_buffers.add(number)
        return number

    def remove(self, file: OpenFile, number: int) -> None:
        """Take a frame buffer away, from the screen too. Raises Refused."""
        if number not in file.frame_buffers:
            raise missing(f"no frame buffer {number} of this file")
        file.frame_buffers.discard(number)
        for plane in self.screen.planes:
            if plane.state["FB_ID"] == number:
                self.screen.leave()
                plane.state["FB_ID"] = plane.state["CRTC_ID"] = 0
                if plane is self.screen.planes[0]:
                    self.screen.crtc.state["ACTIVE"] = 0
        frame = self.screen.frame_buffers.pop(number)
        self.buffers.drop(frame.buffer)

    def released(self, file: OpenFile) -> None:
        """The file is gone with its frame buffers."""
        for number in list(file.frame_buffers):
            self.remove(file, number)

    def find(self, number: int) -> FrameBuffer:
        """Raises Refused (ENOENT)."""
        return found(self.screen.frame_buffers.get(number), f"frame buffer {number}")

    @ioctl(0xAE, "MODE_ADDFB", FIELDS)
    def add_fb(self, call: Call) -> None:
        a = call.args
        code = LEGACY.get((a.bpp, a.depth))
        if code is None:
            raise invalid(f"{a.bpp} bits of depth {a.depth}")
        modifier = self.buffers.lookup(call.file, a.handle).modifier
        a.fb_id = self.add(call, a.handle, code, a.pitch, 0, modifier)

    @ioctl(0xB8, "MODE_ADDFB2", FIELDS_2)
    def add_fb2(self, call: Call) -> None:
        a = call.args
        if a.flags & ~(1 | WITH_MODIFIERS) or a.flags & 1:
            raise invalid(f"flags 0x{a.flags:x}")
        if any(a.handles[1:]) or any(a.pitches[1:]) or any(a.offsets[1:]):
            raise invalid("formats of several planes are not supported")
        if a.flags & WITH_MODIFIERS:
            modifier = a.modifier[0]
        else:
            modifier = self.buffers.lookup(call.file, a.handles[0]).modifier
        a.fb_id = self.add(call, a.handles[0], a.pixel_format, a.pitches[0], a.offsets[0], modifier)

    @ioctl(0xAF, "MODE_RMFB", "u32 fb_id")
    def rm_fb(self, call: Call) -> None:
        self.remove(call.file, call.args.fb_id)

    @ioctl(0xAD, "MODE_GETFB", FIELDS)
    def get_fb(self, call: Call) -> None:
        a = call.args
        frame, a.handle = self._described(call)
        a.pitch, a.bpp, a.depth = frame.pitch, frame.format.bits, frame.format.depth

    def _described(self, call: Call) -> tuple[FrameBuffer, int]:
        """The frame buffer that is asked for, and a handle of its buffer for the master only."""
        a = call.args
        frame = self.find(a.fb_id)
        a.width, a.height = frame.width, frame.height
        if not call.file.is_master:
            return frame, 0
        return frame, self.buffers.add_handle(call.file, frame.buffer)

    @ioctl(0xCE, "MODE_GETFB2", FIELDS_2)
    def get_fb2(self, call: Call) -> None:
        a = call.args
        frame, handle = self._described(call)
        a.pixel_format, a.flags = frame.format.code, WITH_MODIFIERS
        a.handles, a.pitches = [handle, 0, 0, 0], [frame.pitch, 0, 0, 0]
        a.offsets, a.modifier = [frame.offset, 0, 0, 0], [frame.modifier, 0, 0, 0]

    @ioctl(
        0xB1, "MODE_DIRTYFB",
        "u32 fb_id, u32 flags, u32 color, u32 num_clips, u64 clips_ptr",
    )  # fmt: skip
    def dirty_fb(self, call: Call) -> None:
        self.find(call.args.fb_id)
        self.screen.touched()

"""Frame buffers: ADDFB, ADDFB2, RMFB, GETFB, DIRTYFB."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import Any, NamedTuple

from vc4lab.drm.kms.formats import FORMATS, LEGACY, PLANAR, SUBSAMPLED
from vc4lab.drm.kms.modes import MAX_SIDE
from vc4lab.drm.kms.objects import U32
from vc4lab.drm.kms.screen import FrameBuffer, Screen
from vc4lab.drm.objects.core import SYS_ADMIN
from vc4lab.drm.objects.files import OpenFile
from vc4lab.drm.objects.gem import Buffers
from vc4lab.drm.uapi.ioctls import Call, ioctl
from vc4lab.drm.uapi.results import Refused, found, invalid, missing
from vc4lab.images.tiling import round_up
from vc4lab.scanout.formats import T_TILED, TILE_PITCH, TILE_ROWS, Format

INTERLACED, WITH_MODIFIERS = 1, 2
MAX_FRAME_BUFFERS = 65536
FIELDS = "u32 fb_id, u32 width, u32 height, u32 pitch, u32 bpp, u32 depth, u32 handle"
FIELDS_2 = (
    "u32 fb_id, u32 width, u32 height, u32 pixel_format, u32 flags, u32[4] handles, "
    "u32[4] pitches, u32[4] offsets, u64[4] modifier"
)


class Part(NamedTuple):
    """One plane of a frame buffer's format: where it lies, its rows, the bytes that a row needs."""

    handle: int
    pitch: int
    offset: int
    rows: int
    least: int


@dataclass(eq=False)
class FrameBuffers:
    """The ioctls of frame buffers."""

    screen: Screen
    buffers: Buffers
    modifiers: tuple[int, ...]

    def add(self, call: Call, kind: Format, modifier: int, parts: list[Part]) -> int:
        """A new frame buffer's number. Raises Refused."""
        a = call.args
        if modifier not in self.modifiers or not kind.allows(modifier):
            raise invalid(f"{kind.name} with modifier 0x{modifier:x}")
        targets = [self.buffers.lookup(call.file, part.handle) for part in parts]
        for part, target in zip(parts, targets, strict=True):
            if target.private or target.was_purged:
                raise invalid("a shader's or a purged buffer")
            tiled = modifier == T_TILED
            rows = round_up(part.rows, TILE_ROWS) if tiled else part.rows
            last = part.pitch * (rows - 1) + (part.pitch if tiled else part.least)
            if (tiled and part.pitch % TILE_PITCH) or part.offset + last > target.size:
                raise invalid(f"{a.width}x{a.height}, pitch {part.pitch} in {target}")
        if len(self.screen.frame_buffers) >= MAX_FRAME_BUFFERS:
            raise Refused(errno.ENOMEM, "too many frame buffers")
        number = self.screen.registry.number()
        held = [self.buffers.hold(target) for target in targets]
        more = tuple((t, p.pitch, p.offset) for t, p in zip(held[1:], parts[1:], strict=True))
        self.screen.frame_buffers[number] = FrameBuffer(
            number, held[0], a.width, a.height, parts[0].pitch, parts[0].offset, kind, modifier,
            more,
        )  # fmt: skip
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
        for target in (frame.buffer, *(target for target, _, _ in frame.more)):
            self.buffers.drop(target)

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
        kind, parts = self._parts(a, code, [a.handle], [a.pitch], [0])
        a.fb_id = self.add(call, kind, self._modifier_of(call, a.handle), parts)

    @ioctl(0xB8, "MODE_ADDFB2", FIELDS_2)
    def add_fb2(self, call: Call) -> None:
        a = call.args
        if a.flags & ~(INTERLACED | WITH_MODIFIERS):
            raise invalid(f"flags 0x{a.flags:x}")
        with_modifiers = bool(a.flags & WITH_MODIFIERS)
        kind, parts = self._parts(a, a.pixel_format, a.handles, a.pitches, a.offsets)
        count = len(parts)
        if any(a.modifier[count:]) or (not with_modifiers and any(a.modifier)):
            raise invalid("a modifier without the flag for it, or of a plane that is not there")
        if with_modifiers and len(set(a.modifier[:count])) > 1:
            raise invalid("planes with different modifiers")
        if with_modifiers and any((*a.handles[count:], *a.pitches[count:], *a.offsets[count:])):
            raise invalid("a plane that the format has not")
        modifier = a.modifier[0] if with_modifiers else self._modifier_of(call, a.handles[0])
        a.fb_id = self.add(call, kind, modifier, parts)

    def _parts(
        self, a: Any, code: int, handles: list[int], pitches: list[int], offsets: list[int]
    ) -> tuple[Format, list[Part]]:
        """The format, and the parts of a frame buffer as asked for. Raises Refused."""
        kind = FORMATS.get(code) or PLANAR.get(code)
        if kind is None:
            raise invalid(f"format 0x{code:08x}")
        if not (0 < a.width <= MAX_SIDE and 0 < a.height <= MAX_SIDE):
            raise invalid(f"a frame buffer of {a.width}x{a.height}")
        parts = []
        for place, (bits, across, down) in enumerate(SUBSAMPLED.get(code, ((kind.bits, 1, 1),))):
            rows, least = -(-a.height // down), -(-a.width // across) * bits // 8
            handle, pitch, offset = handles[place], pitches[place], offsets[place]
            if not handle:
                raise invalid(f"plane {place} has no buffer")
            if rows * pitch + offset > U32:
                raise Refused(errno.ERANGE, f"plane {place} ends beyond 32 bits")
            if pitch < least:
                raise invalid(f"{a.width} pixels, pitch {pitch}")
            parts.append(Part(handle, pitch, offset, rows, least))
        return kind, parts

    def _modifier_of(self, call: Call, handle: int) -> int:
        """The modifier that SET_TILING gave a buffer."""
        return self.buffers.lookup(call.file, handle).modifier

    @ioctl(0xAF, "MODE_RMFB", "u32 fb_id")
    def rm_fb(self, call: Call) -> None:
        self.remove(call.file, call.args.fb_id)

    @ioctl(0xAD, "MODE_GETFB", FIELDS)
    def get_fb(self, call: Call) -> None:
        a = call.args
        if self.find(a.fb_id).more:
            raise invalid("a frame buffer of several planes")
        frame, (a.handle, *_) = self._described(call)
        a.pitch, a.bpp, a.depth = frame.pitch, frame.format.bits, frame.format.depth

    def _described(self, call: Call) -> tuple[FrameBuffer, list[int]]:
        """The frame buffer that is asked for, and new handles of its buffers: only for who has the
        display and for administrators, others get 0. The same buffer has one handle of the call's.
        """
        a = call.args
        frame = self.find(a.fb_id)
        a.width, a.height = frame.width, frame.height
        handles: list[int] = []
        if not call.file.is_master and not call.task.may(SYS_ADMIN):
            return frame, [0] * (1 + len(frame.more))
        made: dict[int, int] = {}
        for target in (frame.buffer, *(target for target, _, _ in frame.more)):
            if id(target) not in made:
                made[id(target)] = self.buffers.add_handle(call.file, target)
            handles.append(made[id(target)])
        return frame, handles

    @ioctl(0xCE, "MODE_GETFB2", FIELDS_2)
    def get_fb2(self, call: Call) -> None:
        a = call.args
        frame, handles = self._described(call)
        a.pixel_format, a.flags = frame.format.code, WITH_MODIFIERS
        places = [(frame.pitch, frame.offset), *((pitch, at) for _, pitch, at in frame.more)]
        empty = [0] * (4 - len(places))
        a.handles = [*handles, *empty]
        a.pitches = [*(pitch for pitch, _ in places), *empty]
        a.offsets = [*(offset for _, offset in places), *empty]
        a.modifier = [*(frame.modifier for _ in places), *empty]

    @ioctl(
        0xB1, "MODE_DIRTYFB",
        "u32 fb_id, u32 flags, u32 color, u32 num_clips, u64 clips_ptr",
        master=True,
    )  # fmt: skip
    def dirty_fb(self, call: Call) -> None:
        self.find(call.args.fb_id)
        self.screen.touched()

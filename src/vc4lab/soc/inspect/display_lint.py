"""Hints about a picture that comes out wrong: pitch, order, alpha, surface, not there yet.

Looks at the first pictures only. Source: hardware reference 8.7, 8.15.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vc4lab.memory import MEMORY_MASK
from vc4lab.soc.hardware import FRAMEBUFFER_CHANNEL, PROPERTY_CHANNEL, Hardware
from vc4lab.soc.videocore.framebuffer import ALPHA_REVERSED
from vc4lab.soc.videocore.mailbox import ANSWER_NS

if TYPE_CHECKING:
    from vc4lab.v3d.core import V3D
    from vc4lab.v3d.events import FrameStored

MAX_LOOKS = 16
"""Pictures that are looked at."""
TRUE_COLOUR = (24, 32)
VECTORS = 0x40
"""Bytes from address 0 on that a core may execute in an exception."""


class DisplayLint:
    """Hints about the framebuffer of a board, whose first pictures it looks at."""

    def __init__(self, hardware: Hardware) -> None:
        self._framebuffer = hardware.videocore.framebuffer
        self._reporter = hardware.reporter
        hardware.frames.listeners.append(lambda _count: self.picture())
        hardware.after_rendering = self.rendered
        hardware.mailbox.unheard = self._unheard
        if hardware.explains_pictures:
            hardware.listeners.v3d_made.subscribe(lambda made: self._watch(made.v3d))
        self._hardware = hardware
        self._looks = 0
        self._surfaces: set[Any] = set()
        self._told_overwritten = False
        self._nothing = b""
        """A picture without anything in it; programs show one for a long time."""

    def picture(self) -> None:
        """A picture is on the display."""
        if self._looks >= MAX_LOOKS or self._framebuffer.allocation is None:
            return
        data = bytes(self._framebuffer.visible())
        if len(data) != len(self._nothing):
            self._nothing = bytes(len(data))
        if data == self._nothing:
            return
        self._looks += 1
        self._look_at_pitch(data)
        self._look_at_order(data)
        self._look_at_alpha(data)

    def _look_at_pitch(self, data: bytes) -> None:
        """Bytes after a line's end belong to none, unless lines are thought to be shorter."""
        g = self._framebuffer.geometry
        line = -(-g.virtual_width * g.depth // 8)
        if line >= g.pitch:
            return
        for row in range(g.height):
            gap = data[row * g.pitch + line : (row + 1) * g.pitch]
            if gap.strip(b"\0"):
                break
        else:
            return
        column = line + len(gap) - len(gap.lstrip(b"\0"))
        self._reporter.report(
            "SOC-083",
            f"a row of the picture has {line} bytes and rows are {g.pitch} bytes apart (the "
            f"pitch), but something is written in between, after row {row}",
            address=self._framebuffer.address + (g.y + row) * g.pitch + column,
            block="framebuffer",
        )

    def _look_at_order(self, data: bytes) -> None:
        framebuffer = self._framebuffer
        g = framebuffer.geometry
        if framebuffer.order_told or g.depth not in TRUE_COLOUR:
            return
        size = g.depth // 8
        rows = (data[at : at + g.width * size] for at in range(0, g.height * g.pitch, g.pitch))
        if any(row[0::size] != row[2::size] for row in rows):
            first, other = ("red", "blue") if g.order & 1 else ("blue", "red")
            self._reporter.report(
                "SOC-084",
                f"the program does not set the pixel order; byte 0 of a pixel is {first} here, "
                f"but may be {other} on a board",
                block="framebuffer",
            )

    def _look_at_alpha(self, data: bytes) -> None:
        """Whether nothing of a picture is to be seen because all of it is transparent."""
        framebuffer = self._framebuffer
        mode = framebuffer.geometry.alpha_mode
        if not framebuffer.has_alpha:
            return
        if not any(data[part::4].strip(b"\0") for part in range(3)):
            return
        image = framebuffer.image()
        if image is not None and image.getbbox() is None and not framebuffer.blank:
            clear = 0 if mode == ALPHA_REVERSED else 255
            self._reporter.report(
                "SOC-089",
                f"the picture is transparent, so the screen is black: alpha mode is {mode}, and "
                f"all pixels have alpha {clear}",
                address=framebuffer.address,
                block="framebuffer",
            )

    def _watch(self, v3d: V3D) -> None:
        v3d.listeners.frame_stored.subscribe(self._stored)

    def _stored(self, event: FrameStored) -> None:
        """The V3D has stored a frame; into what of the program?"""
        plan = self._hardware.plan
        image = plan.address, plan.address + len(plan.image)
        for what, first, last in (("the exception vectors", 0, VECTORS), ("the program", *image)):
            for address, size in event.ranges:
                start = address & MEMORY_MASK
                if not self._told_overwritten and start < last and start + size > first:
                    self._told_overwritten = True
                    self._reporter.report(
                        "SOC-145",
                        f"the V3D stores its picture over {what} at 0x{first:08x}: it begins at "
                        f"0x{event.ranges[0][0]:08x} (record 113)",
                        address=event.ranges[0][0],
                        block="v3d",
                    )

    def rendered(self, v3d: Any) -> None:
        """The V3D has completed a frame; is its surface what the display shows?"""
        mode = getattr(getattr(v3d, "rendering", None), "mode", None)
        framebuffer = self._framebuffer
        if mode is None or framebuffer.allocation is None:
            return
        g = framebuffer.geometry
        key = mode, g, framebuffer.address
        if key in self._surfaces or len(self._surfaces) >= MAX_LOOKS:
            return
        self._surfaces.add(key)
        offset = (mode.address & MEMORY_MASK) - framebuffer.address
        if not 0 <= offset < framebuffer.allocated_size:
            return
        from vc4lab.v3d.state.frame_mode import Surface

        surface = Surface(
            mode.address, mode.width, mode.height, int(mode.tiling), int(mode.format),
            wide=mode.wide_colour,
        )  # fmt: skip
        wrong = []
        if mode.tiling:
            wrong.append("it stores tiles (T or LT format), the display reads rows")
        elif surface.bits != g.depth:
            wrong.append(f"it stores {surface.bits} bits per pixel, the framebuffer has {g.depth}")
        elif surface.pitch != g.pitch and mode.height > 1:
            wrong.append(f"its rows are {surface.pitch} bytes apart, the framebuffer's {g.pitch}")
        rows = (offset + mode.height * surface.pitch - 1) // g.pitch + 1
        if not wrong and rows > g.virtual_height:
            wrong.append(f"its {mode.height} rows extend past the framebuffer's end")
        for text in wrong:
            self._reporter.report(
                "SOC-085",
                f"the V3D renders {mode.width} x {mode.height} pixels into the framebuffer, but " + text,
                address=mode.address,
                block="framebuffer",
            )

    def _unheard(self, word: int) -> None:
        """A message is answered while the program goes on without having looked for a reply."""
        hardware = self._hardware
        channel, place = word & 15, word & ~15
        asks = channel == FRAMEBUFFER_CHANNEL
        asks |= channel == PROPERTY_CHANNEL and hardware.properties.allocates(place)
        if asks and not any(core.asleep for core in hardware.processors.running):
            time = ANSWER_NS[hardware.unknowns["mailbox_answer_time"]] // 1000
            self._reporter.report(
                "SOC-112",
                f"the framebuffer that a message asks for is there {time} us after the message was "
                "sent; the program goes on without having looked for the reply",
                address=place,
                block="mailbox",
            )

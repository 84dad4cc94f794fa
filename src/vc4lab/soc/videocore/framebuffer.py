"""The framebuffer: geometry asked for by mailbox, memory in the VideoCore's RAM, the picture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from vc4lab.images.pixels import png_bytes
from vc4lab.soc.videocore.cursor import Cursor
from vc4lab.soc.videocore.vc_memory import Allocation, VideoCoreMemory

if TYPE_CHECKING:
    from PIL import Image

    from vc4lab.diagnostics import Reporter
    from vc4lab.memory import GuestMemory

BGR, RGB = 0, 1
ALPHA_REVERSED, ALPHA_IGNORED = 1, 2
"""Alpha modes: 0 shows alpha 0 opaque, 1 shows it transparent; the background is black."""
DEPTHS = (1, 2, 4, 8, 16, 24, 32)
PITCH_ALIGNMENT = 32
LARGEST_SIDE = 4096
DIRECT = 4
"""Memory flags of the framebuffer: the uncached 0xC0000000 alias (0x40000000 on a Pi 1)."""


@dataclass(frozen=True)
class Geometry:
    """The geometry that a program can ask for. Sizes in pixels, depth in bits per pixel."""

    width: int = 640
    height: int = 480
    virtual_width: int = 640
    virtual_height: int = 480
    depth: int = 16
    x: int = 0
    y: int = 0
    order: int = RGB
    alpha_mode: int = ALPHA_IGNORED

    @property
    def pitch(self) -> int:
        """Bytes from one line to the next."""
        line = -(-self.virtual_width * self.depth // 8)
        return -(-line // PITCH_ALIGNMENT) * PITCH_ALIGNMENT

    @property
    def size(self) -> int:
        """Bytes of the whole virtual picture."""
        return self.pitch * self.virtual_height

    def has_layout_of(self, other: Geometry) -> bool:
        """Whether both have the same sizes and depth, so that a picture of one suits the other."""
        return replace(other, x=self.x, y=self.y, order=self.order, alpha_mode=self.alpha_mode) == self

    def sane(self) -> Geometry:
        """The nearest geometry the display can show."""
        width = min(max(self.width, 1), LARGEST_SIDE)
        height = min(max(self.height, 1), LARGEST_SIDE)
        virtual_width = min(max(self.virtual_width, width), 4 * LARGEST_SIDE)
        virtual_height = min(max(self.virtual_height, height), 4 * LARGEST_SIDE)
        return replace(
            self,
            width=width,
            height=height,
            virtual_width=virtual_width,
            virtual_height=virtual_height,
            depth=self.depth if self.depth in DEPTHS else 32,
            x=min(max(self.x, 0), virtual_width - width),
            y=min(max(self.y, 0), virtual_height - height),
        )


class Composition(Protocol):
    """A picture of a program that drives the display itself."""

    @property
    def composes(self) -> bool:
        """Whether it does."""

    @property
    def picture_size(self) -> tuple[int, int]:
        """Width and height in pixels."""

    def image(self) -> Image.Image | None:
        """The picture."""

    def content(self) -> bytes:
        """Everything that the picture is made of; equal bytes make equal pictures."""

    def holds(self, content: bytes) -> bool:
        """Whether `content()` is these bytes; much quicker than to look at them."""


@dataclass
class Framebuffer:
    """The display's picture in guest memory.

    Attributes
    ----------
    geometry
        What is shown, or will be once memory is allocated.
    flips
        How often the program moved the visible part (double buffering).
    """

    memory: GuestMemory
    pool: VideoCoreMemory
    reporter: Reporter
    alias: int
    geometry: Geometry = field(default_factory=Geometry)
    flips: int = 0
    allocation: Allocation | None = None
    on_flip: Callable[[], None] | None = None
    look: Callable[[int, int], memoryview] | None = None
    """How the display sees RAM, if not as the ARM does (a model of caches)."""
    order_told: bool = False
    """Whether the program has chosen a pixel order, or cannot (mailbox channel 1)."""
    blank: bool = False
    palette: list[int] = field(default_factory=lambda: [0xFF000000] * 256)
    cursor: Cursor = field(default_factory=Cursor)
    composition: Composition | None = None
    """The picture that is shown instead while it is on."""
    ignores_alpha: bool = True
    """Whether the alpha mode has no effect."""
    low_first: bool = True
    """With less than 8 bits a pixel: whether a byte's first pixel is in its low bits."""
    was_written_early: bool = False
    """Whether something had been written where it was allocated first."""
    is_wanted: bool = False
    """Whether the program has asked for something that a framebuffer has."""
    was_allocated: bool = False

    @property
    def has_alpha(self) -> bool:
        """Whether pixels may be transparent."""
        g = self.geometry
        return g.depth == 32 and g.alpha_mode < ALPHA_IGNORED and not self.ignores_alpha

    @property
    def address(self) -> int:
        """Physical address of the virtual picture, 0 if there is none."""
        return self.allocation.address if self.allocation else 0

    @property
    def bus_address(self) -> int:
        """The address that the program gets, 0 if there is no framebuffer."""
        return self.allocation.address | self.alias if self.allocation else 0

    @property
    def allocated_size(self) -> int:
        """Bytes from `address` on."""
        return self.allocation.size if self.allocation else 0

    def change(self, **wanted: int) -> None:
        """Set parts of the geometry; a change of size or depth gives the memory back."""
        if "width" in wanted and "virtual_width" not in wanted:
            wanted["virtual_width"] = wanted["width"]
            wanted["virtual_height"] = wanted["height"]
        self.order_told |= "order" in wanted
        self.is_wanted = True
        new = replace(self.geometry, **wanted).sane()
        for name, value in wanted.items():
            if getattr(new, name) != value and name != "depth":
                self._refuse(f"{name.replace('_', ' ')} {value} becomes {getattr(new, name)}")
        if wanted.get("depth", new.depth) != new.depth:
            self._refuse(f"depth {wanted['depth']} becomes {new.depth}")
        moved = (new.x, new.y) != (self.geometry.x, self.geometry.y)
        if self.allocation is not None and new.size > self.allocation.size:
            self.release()
        self.geometry = new
        if moved and self.allocation is not None:
            self.flips += 1
            if self.on_flip is not None:
                self.on_flip()

    def _refuse(self, what: str) -> None:
        self.reporter.report(
            "SOC-020", f"the display does not support this setting: {what}", block="framebuffer"
        )

    def allocate(self, alignment: int = 4096) -> bool:
        """Get memory for the geometry, cleared to black. False if there is none."""
        self.release()
        size = self.geometry.size
        self.allocation = self.pool.allocate(size, max(alignment & ~15, 4096), DIRECT)
        if self.allocation is None:
            g = self.geometry
            self.reporter.report(
                "SOC-021",
                f"no room for a framebuffer of {g.virtual_width} x {g.virtual_height} at "
                f"{g.depth} bits ({size >> 10} KiB)",
                block="framebuffer",
            )
            return False
        if not self.was_allocated:
            self.was_allocated = True
            self.was_written_early = not self.memory.is_untouched(self.allocation.address, size)
        self.memory.fill(self.allocation.address, size)
        return True

    def release(self) -> None:
        """Give the memory back."""
        if self.allocation is not None:
            self.pool.release(self.allocation.handle)
            self.allocation = None

    # -- the picture -------------------------------------------------------------------------------

    @property
    def composed(self) -> Composition | None:
        """The picture that is shown instead now."""
        composition = self.composition
        return composition if composition is not None and composition.composes else None

    @property
    def is_shown(self) -> bool:
        """Whether there is a picture on the display."""
        return self.allocation is not None or self.composed is not None

    def content(self) -> bytes:
        """The bytes that the picture on the display is made of, to compare."""
        composed = self.composed
        return bytes(self.visible()) if composed is None else composed.content()

    def holds(self, content: bytes) -> bool:
        """Whether `content()` is these bytes; much quicker than to look at them."""
        composed = self.composed
        return self.shows(content) if composed is None else composed.holds(content)

    def visible(self) -> memoryview:
        """The bytes from the first to the last visible line, empty without a framebuffer."""
        g = self.geometry
        if self.allocation is None:
            return memoryview(b"")
        look = self.look or self.memory.view
        return look(self.address + g.y * g.pitch, g.height * g.pitch)

    def shows(self, picture: bytes) -> bool:
        """Whether `visible` has these bytes; much quicker than to look at them."""
        g = self.geometry
        if self.allocation is None or self.look is not None:
            return bytes(self.visible()) == picture
        if len(picture) != g.height * g.pitch:
            return False
        return self.memory.holds(self.address + g.y * g.pitch, picture)

    @property
    def is_clear(self) -> bool:
        """Whether `visible` holds zeros only; much quicker than to look at them."""
        g = self.geometry
        if self.allocation is None or self.look is not None:
            return not bytes(self.visible()).strip(b"\0")
        return self.memory.is_clear(self.address + g.y * g.pitch, g.height * g.pitch)

    def image(self) -> Image.Image | None:
        """Make the display's picture, in RGB; None without a framebuffer."""
        from PIL import Image

        composed = self.composed
        picture = None if composed is None else composed.image()
        if picture is not None:
            return picture
        g = self.geometry
        if self.allocation is None:
            return None
        if self.blank:
            return Image.new("RGB", (g.width, g.height))
        picture = self._picture()
        self.cursor.paint(picture)
        return picture

    def _picture(self) -> Image.Image:
        """The visible part of the framebuffer."""
        from PIL import Image

        g = self.geometry
        data = bytes(self.visible())
        pitch = g.pitch
        if g.depth < 8:
            data = _unpack(data, g.depth, self.low_first)
            pitch *= 8 // g.depth
        data = data[g.x * max(g.depth, 8) // 8 :]
        missing = g.height * pitch - len(data)
        size = (g.width, g.height)
        data += bytes(missing)
        if g.depth <= 8:
            picture = Image.frombytes("P", size, data, "raw", "P", pitch)
            order = g.order if self.order_told else RGB
            picture.putpalette(_palette_bytes(self.palette, order))
            return picture.convert("RGB")
        if self.has_alpha:
            return _over_black(Image, size, data, g)
        modes = {24: ("BGR", "RGB"), 32: ("BGRX", "RGBX")}
        # "BGR;16" is the library's name for red in the top five bits.
        mode = "BGR;16" if g.depth == 16 else modes[g.depth][g.order & 1]
        return Image.frombytes("RGB", size, data, "raw", mode, g.pitch)


class Screen:
    """The display, for people."""

    def __init__(self, framebuffer: Framebuffer) -> None:
        self._framebuffer = framebuffer

    def __repr__(self) -> str:
        if self._framebuffer.composed is not None:
            width, height = self.size
            return f"<Screen {width}x{height}, composed by the HVS>"
        if self._framebuffer.allocation is None:
            return "<Screen: black, the program has no framebuffer>"
        g = self._framebuffer.geometry
        return f"<Screen {g.width}x{g.height}, {g.depth} bits per pixel>"

    @property
    def image(self) -> Image.Image | None:
        """The picture on the display as a Pillow RGB image; None while there is no framebuffer."""
        return self._framebuffer.image()

    def png(self) -> bytes | None:
        """The picture as a PNG file's bytes; None while there is no framebuffer."""
        return png_bytes(self.image)

    _repr_png_ = png

    @property
    def both_orders(self) -> Image.Image | None:
        """The picture with red and blue as they are, and beside it exchanged; None without one."""
        from PIL import Image

        image = self.image
        if image is None:
            return None
        red, green, blue = image.split()
        both = Image.new("RGB", (2 * image.width, image.height))
        both.paste(image, (0, 0))
        both.paste(Image.merge("RGB", (blue, green, red)), (image.width, 0))
        return both

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels."""
        composed = self._framebuffer.composed
        if composed is not None:
            return composed.picture_size
        geometry = self._framebuffer.geometry
        return geometry.width, geometry.height


def _unpack(data: bytes, depth: int, low_first: bool) -> bytes:
    """One byte for each pixel of 1, 2 or 4 bits."""
    import numpy as np

    shifts = np.arange(0, 8, depth, dtype=np.uint8)
    if not low_first:
        shifts = shifts[::-1]
    packed = np.frombuffer(data, np.uint8)[:, None]
    pixels = packed >> shifts & np.uint8((1 << depth) - 1)
    return pixels.tobytes()


def _over_black(image: Any, size: tuple[int, int], data: bytes, g: Geometry) -> Image.Image:
    """Pixels with alpha, without a background."""
    layout = "RGBA" if g.order & 1 else "BGRA"
    picture: Image.Image = image.frombytes("RGBA", size, data, "raw", layout, g.pitch)
    alpha = picture.getchannel("A")
    if g.alpha_mode != ALPHA_REVERSED:
        alpha = alpha.point([255 - value for value in range(256)])
    black: Image.Image = image.new("RGB", size)
    black.paste(picture.convert("RGB"), mask=alpha)
    return black


def _palette_bytes(palette: list[int], order: int) -> bytes:
    """Palette words (byte 0 is red with order RGB) in the picture library's form."""
    out = bytearray()
    for word in palette:
        rgb = word.to_bytes(4, "little")[:3]
        out += rgb if order == RGB else rgb[::-1]
    return bytes(out)

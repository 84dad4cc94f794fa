"""HVS (P + 0x400000): composes planes for the pixel valves as its display lists say.

What reads display lists is imported when a program drives the HVS.
Sources: Linux, drivers/gpu/drm/vc4/vc4_regs.h, vc4_hvs.c and vc4_plane.c.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from vc4lab.bits import sign_extend
from vc4lab.registers import Register
from vc4lab.scanout.colours import Matrix, Ramps, factor_of
from vc4lab.scanout.display_unknowns import DEFAULT_UNKNOWNS, Unknowns
from vc4lab.soc.address.block import Block
from vc4lab.soc.display.gamma import GammaRamps

if TYPE_CHECKING:
    from PIL import Image

    from vc4lab.diagnostics import Reporter
    from vc4lab.memory import GuestMemory
    from vc4lab.scanout.composer import Composer, Pixels
    from vc4lab.soc.display.planes import Plane

CHANNELS = 3
ENABLE, RESET = 1 << 31, 1 << 30
RUNS, EMPTY = 2 << 30, 1 << 28
FILL = 1 << 24
LISTS, LIST_BYTES = 0x2000, 0x4000
FRAMES = 0x3F
GAMMA = 1 << 29
TO_VALVE, NO_VALVE = 3 << 18, 3 << 18
"""The third channel's picture goes to no pixel valve while TXP takes it."""
BUS = 0x7E400000
"""The VideoCore's address of these registers."""
IDENTITIES = {"name": 0x48565320, "zero": 0}


class Hvs(Block):
    """Three channels, each with a display list and a size.

    Attributes
    ----------
    lists
        The memory of display lists.
    sent
        What it was at the last picture.
    flipped
        Called when another list is shown, or the one that is shown says something else.
    base
        Where a program finds it, for messages.
    line
        The line that a channel's pixel valve sends now.
    """

    NAME = "hvs"
    OFFSET = 0x400000
    SIZE = 0x6000
    DISPCTRL = Register(0x00)
    DISPSTAT = Register(0x04, access="w1c")
    DISPID = Register(0x08, access="r")
    DISPECTRL = Register(0x0C)
    DISPPROF = Register(0x10)
    DISPDITHER = Register(0x14)
    DISPEOLN = Register(0x18)
    DISPLIST = Register(0x20, count=CHANNELS, doc="word of the list memory")
    DISPLSTAT = Register(0x2C, access="r")
    DISPLACT = Register(0x30, access="r", count=CHANNELS, doc="the list that is shown")
    DISPCTRLX = Register(
        0x40, count=CHANNELS, stride=0x10, fields="31 enable, 30 reset, 23:12 width, 11:0 height"
    )
    DISPBKGNDX = Register(0x44, count=CHANNELS, stride=0x10, fields="29 gamma, 24 fill, 23:0 colour")
    DISPSTATX = Register(
        0x48, access="r", count=CHANNELS, stride=0x10, fields="31:30 mode, 28 empty, 17:12 frames, 11:0 line"
    )
    DISPBASEX = Register(0x4C, count=CHANNELS, stride=0x10)
    DISPALPHA2 = Register(0x70)
    GAMADDR = Register(0x78)
    OLEDOFFS = Register(0x80, fields="25:24 channel, 23:16 red, 15:8 green, 7:0 blue")
    OLEDCOEF = Register(0x84, count=3, fields="29:20 red, 19:10 green, 9:0 blue", doc="of blue, green, red")
    GAMDATA = Register(0xE0)

    def __init__(
        self, memory: GuestMemory, reporter: Reporter, base: int = BUS, unknowns: Unknowns = DEFAULT_UNKNOWNS
    ) -> None:
        super().__init__()
        self.base = base
        self.DISPID = IDENTITIES[unknowns["hvs_identity"]]
        self._gamma = GammaRamps(CHANNELS)
        self._unknowns = unknowns
        self._memory = memory
        self._reporter = reporter
        self.lists = bytearray(LIST_BYTES)
        self.sent = bytearray(LIST_BYTES)
        self.flipped: Callable[[], None] = lambda: None
        self.line: Callable[[int], int] = lambda _channel: 0
        self._checked: tuple[bytes, tuple[int, ...]] = b"", ()
        """The lists, and which are shown, when they were looked at last."""
        self._told: set[str] = set()

    def read_other(self, offset: int) -> int:
        at = offset - LISTS
        return int.from_bytes(self.lists[at : at + 4], "little") if at >= 0 else 0

    def write_other(self, offset: int, value: int) -> None:
        at = offset - LISTS
        if 0 <= at < LIST_BYTES:
            self.lists[at : at + 4] = value.to_bytes(4, "little")

    def describe(self, offset: int) -> str:
        if offset >= LISTS:
            return f"hvs.lists[{(offset - LISTS) // 4}]"
        return super().describe(offset)

    def on_read_DISPSTATX(self, channel: int) -> int:
        stored = self.values[0x48 + 0x10 * channel]
        if not self.is_on(channel):
            return EMPTY | stored
        return RUNS | stored | self.line(channel)

    @property
    def ramps(self) -> bytearray:
        """The memory of gamma ramps."""
        return self._gamma.steps

    def on_write_GAMDATA(self, value: int) -> None:
        """A step of the gamma ramps: of each channel the red ones, the green and the blue."""
        self.GAMADDR = self._gamma.write(self.GAMADDR, value)

    def is_on(self, channel: int) -> bool:
        """Whether a channel composes."""
        return self.values[0x40 + 0x10 * channel] & (ENABLE | RESET) == ENABLE

    def picture(self, channel: int) -> None:
        """A channel's picture has been sent; the next one follows the list that is chosen now."""
        if not self.is_on(channel):
            return
        at = 0x48 + 0x10 * channel
        self.values[at] = ((self.values[at] >> 12) + 1 & FRAMES) << 12
        wanted = self.values[0x20 + 4 * channel]
        changed = self.lists != self.sent and self._says_more()
        if self.values[0x30 + 4 * channel] != wanted or changed:
            self.values[0x30 + 4 * channel] = wanted
            self.flipped()
        self._check_lists()

    def _says_more(self) -> bool:
        """Whether a list that is shown was changed in its place since the last picture.

        Linux flips so where programs do not wait for the vertical blank.
        """
        from vc4lab.soc.display.planes import planes_of

        before, self.sent[:] = bytearray(self.sent), self.lists
        for channel in filter(self.is_on, range(CHANNELS)):
            start = self.values[0x30 + 4 * channel]
            if planes_of(before, start) != planes_of(self.lists, start):
                return True
        return False

    def take_list(self, channel: int) -> None:
        """A channel begins a single picture, for TXP: it follows the list that is chosen now."""
        self.values[0x30 + 4 * channel] = self.values[0x20 + 4 * channel]
        self._check_lists()

    @property
    def shown(self) -> int | None:
        """The channel whose picture people see: HDMI's before the others."""
        for channel in (1, 0, 2):  # asked at each vsync
            if self.is_on(channel) and (channel != 2 or self.DISPCTRL & TO_VALVE != NO_VALVE):
                return channel
        return None

    def size(self, channel: int) -> tuple[int, int]:
        """Width and height of a channel's picture."""
        control = self.values[0x40 + 0x10 * channel]
        return control >> 12 & 0xFFF, control & 0xFFF

    def planes(self, channel: int) -> tuple[list[Plane], str]:
        """List what a channel's list shows, and what is wrong with it."""
        from vc4lab.soc.display.planes import Damage, planes_of

        try:
            return planes_of(self.lists, self.values[0x30 + 4 * channel])
        except Damage as error:
            return [], str(error)

    def _check_lists(self) -> None:
        """Look at the lists that are shown, if they are others than at the last look."""
        shown = tuple(self.values[0x30 + 4 * channel] for channel in range(CHANNELS))
        if self._checked[1] != shown or self._checked[0] != self.lists:
            self._checked = bytes(self.lists), shown
            for channel in range(CHANNELS):
                self._check(channel)

    def _check(self, channel: int) -> None:
        """Report what is wrong with a channel's list, and what of it is not composed."""
        if not self.is_on(channel):
            return
        from vc4lab.soc.display.planes import absence, differences

        found, damage = self.planes(channel)
        if damage:
            text = f"the display list of channel {channel} {damage}"
            self._reporter.report("SOC-094", text, block="hvs")
        for plane in found:
            absent = absence(self._memory, plane)
            if absent:
                self._report("SOC-095", f"a plane is not shown: {absent}", plane.word)
            for text in () if absent else differences(plane):
                self._report("SOC-095", f"a plane is shown otherwise: {text}", plane.word)

    def _report(self, code: str, text: str, word: int | None = None) -> None:
        """Report once what is not modelled, at the list entry that first needs it."""
        if text in self._told:
            return
        self._told.add(text)
        address = None if word is None else self.base + LISTS + 4 * word
        self._reporter.report(code, text, address=address, block="hvs")

    # -- the picture -------------------------------------------------------------------------------

    @property
    def composes(self) -> bool:
        """Whether a channel composes a picture."""
        return self.shown is not None and all(self.picture_size)

    @property
    def picture_size(self) -> tuple[int, int]:
        """Width and height of the picture that people see."""
        return (0, 0) if self.shown is None else self.size(self.shown)

    def image(self) -> Image.Image | None:
        """The composed picture, None while no channel composes one."""
        channel = self.shown
        if channel is None or not all(self.picture_size):
            return None
        from vc4lab.scanout.composer import picture_of

        return picture_of(self.pixels(channel))

    def pixels(self, channel: int) -> Pixels:
        """A channel's picture: bytes blue, green, red and one without a meaning."""
        from vc4lab.soc.display.planes import shown

        colour, planes, gamma, matrix = self._scene(channel)
        scene = shown(self._memory, planes, self.size(channel), colour, self._unknowns)
        return self._composer.pixels(replace(scene, gamma=gamma, matrix=matrix))

    @cached_property
    def _composer(self) -> Composer:
        from vc4lab.scanout.composer import Composer

        return Composer(self._memory, self._unknowns)

    def content(self) -> bytes:
        """Everything that the picture is made of: what the list says, and all pixels."""
        head, places = self._sources()
        return b"".join([head, *(self._memory.view(*place) for place in places)])

    def holds(self, content: bytes) -> bool:
        """Whether `content()` is these bytes."""
        head, places = self._sources()
        if not content.startswith(head) or len(content) != len(head) + sum(s for _, s in places):
            return False
        at = len(head)
        for address, size in places:
            if not self._memory.holds(address, content, at, size):
                return False
            at += size
        return True

    def _scene(self, channel: int) -> tuple[int, list[Plane], Ramps | None, Matrix | None]:
        """A channel's background, its planes, and its gamma ramps and matrix if they change something."""
        background = self.values[0x44 + 0x10 * channel]
        gamma = self._gamma.of(channel) if background & GAMMA else None
        colour = background & 0xFFFFFF if background & FILL else 0
        return colour, self.planes(channel)[0], gamma, self._matrix(channel)

    def _matrix(self, channel: int) -> Matrix | None:
        """The matrix that mixes a channel's colours: one channel's at a time, or none's."""
        offsets = self.OLEDOFFS
        if offsets >> 24 & 3 != channel + 1:
            return None
        words = [self.values[0x84 + 4 * number] for number in (2, 1, 0)]
        factors = [factor_of(word >> low) for low in (20, 10, 0) for word in words]
        red, green, blue = (sign_extend(offsets >> low & 0xFF, 8) for low in (16, 8, 0))
        return Matrix(tuple(factors), (red, green, blue))

    def _sources(self) -> tuple[bytes, list[tuple[int, int]]]:
        """The list as bytes, and the pixels of its planes: address, size."""
        from vc4lab.soc.display.planes import absence, places_of

        channel = self.shown
        assert channel is not None
        colour, planes, gamma, matrix = self._scene(channel)
        said = [replace(plane, word=0) for plane in planes]
        head = f"{self.picture_size} {colour:06x} {gamma} {matrix} {said}\0".encode()
        composed = [plane for plane in planes if not absence(self._memory, plane)]
        return head, [place for plane in composed for place in places_of(plane)]

"""What vc4.ko's planes show in Debian, beside plain Python: each format, part, flip and alpha."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from tests.linux.guest_programs import send
from tests.support.scanout_reference import reference

from vc4lab.linux.running import Linux
from vc4lab.memory import GuestMemory
from vc4lab.scanout.composer import BLEND_COVERAGE, BLEND_NONE, BLEND_PREMULTIPLIED, Plane, Shown
from vc4lab.scanout.formats import T_TILED, Format, fourcc

REGION = 96, 64
PLANES = 4
"""Shown at a time, each display's primary plane among them."""
WHOLE = 0, 0, 40 << 16, 36 << 16
PART = 5 << 16, 7 << 16, 20 << 16, 16 << 16
ROTATE_0, ROTATE_180, REFLECT_X, REFLECT_Y = 1, 4, 16, 32
BLENDS = BLEND_PREMULTIPLIED, BLEND_COVERAGE, BLEND_NONE
"""In the order of DRM's numbers."""
ABSENT = 0, 0
KEEP = 99
CHANNELS = {
    "XR24": (32, (16, 8), (8, 8), (0, 8), ABSENT), "AR24": (32, (16, 8), (8, 8), (0, 8), (24, 8)),
    "XB24": (32, (0, 8), (8, 8), (16, 8), ABSENT), "AB24": (32, (0, 8), (8, 8), (16, 8), (24, 8)),
    "RG16": (16, (11, 5), (5, 6), (0, 5), ABSENT), "BG16": (16, (0, 5), (5, 6), (11, 5), ABSENT),
    "XR15": (16, (10, 5), (5, 5), (0, 5), ABSENT), "AR15": (16, (10, 5), (5, 5), (0, 5), (15, 1)),
    "RG24": (24, (16, 8), (8, 8), (0, 8), ABSENT), "BG24": (24, (0, 8), (8, 8), (16, 8), ABSENT),
}  # fmt: skip
"""Bits of a pixel, lowest bit and width of red, green, blue and alpha."""


@cache
def pattern(size: int, seed: int) -> bytes:
    """What the client writes into a buffer."""
    out = bytearray()
    for _byte in range(size):
        seed = seed * 1664525 + 1013904223 & 0xFFFFFFFF
        out.append(seed >> 24)
    return bytes(out)


@dataclass(frozen=True)
class Asked:
    """A plane as a client asks for it."""

    name: str = "XR24"
    tiled: bool = False
    size: tuple[int, int] = (40, 36)
    source: tuple[int, int, int, int] = WHOLE
    place: tuple[int, int] = (8, 6)
    shown: tuple[int, int] | None = None
    alpha: int = 0xFFFF
    blend: int = 0
    rotation: int = ROTATE_0

    @property
    def target(self) -> tuple[int, int, int, int]:
        return (*self.place, *(self.shown or (self.source[2] >> 16, self.source[3] >> 16)))

    @property
    def pitch(self) -> int:
        least = self.size[0] * CHANNELS[self.name][0] // 8
        return -(-least // 128) * 128 + (128 if self.tiled else 16)

    @property
    def bytes(self) -> int:
        return self.pitch * (-(-self.size[1] // 32) * 32)

    @property
    def argument(self) -> str:
        """For the client."""
        return ",".join(
            map(str, [
                fourcc(self.name), T_TILED if self.tiled else 0, *self.size, 0, 0, 0,
                self.pitch, 0, 0, self.bytes, *self.source, *self.target, self.alpha, self.blend,
                self.rotation, KEEP, KEEP,
            ])
        )  # fmt: skip

    def composed(self, address: int, origin: tuple[int, int]) -> Plane:
        """For the reference."""
        bits, *channels = CHANNELS[self.name]
        x, y, width, height = self.target
        turned = self.rotation & ROTATE_180
        mirrored = tuple(bool(self.rotation & bit) != bool(turned) for bit in (16, 32))
        return Plane(
            address, self.pitch, *self.size, Format(self.name, bits, 0, *channels), self.tiled,
            self.source, (x - origin[0], y - origin[1], width, height), self.alpha >> 8,
            BLENDS[self.blend], (mirrored[0], mirrored[1]),
        )  # fmt: skip


def wanted(asked: list[Asked], origin: tuple[int, int], first: int = 1) -> np.ndarray:
    """Of a region; `first` is the number of its lowest plane."""
    memory, at, planes = GuestMemory(1 << 20), 0, []
    for number, plane in enumerate(asked, first):
        memory.write(at, pattern(plane.bytes, number))
        planes.append(plane.composed(at, origin))
        at += plane.bytes
    return np.array(reference(Shown(*REGION, tuple(planes)), memory))


class Screen:
    """A guest with the client."""

    def __init__(self, guest: Linux, folder: Path) -> None:
        self.guest = guest
        self.program = send(guest, "planes", folder)

    def show(self, *arguments: str, origin: tuple[int, int] = (0, 0), regions: int = 1) -> np.ndarray:
        """The picture of regions that stand side by side."""
        done = self.guest.run(f"{self.program} {' '.join(arguments)} & sleep 0.1")
        assert done.output == "shown\n"
        left, top = origin
        picture = np.asarray(self.guest.screen.image)
        part = picture[top : top + REGION[1], left : left + regions * REGION[0]].copy()
        self.guest.run("killall planes; sleep 0.05")
        return part

    def check(self, *asked: Asked, origin: tuple[int, int] = (0, 0)) -> None:
        found = self.show(*(one.argument for one in asked), origin=origin)
        assert np.array_equal(found, wanted([*asked], origin)), asked

    def check_each(self, scenes: list[list[Asked]]) -> None:
        """Each in a region of its own, as many at a time as there are planes."""
        while scenes:
            count = next(n for n in range(len(scenes), 0, -1) if sum(map(len, scenes[:n])) <= PLANES)
            now, scenes = scenes[:count], scenes[count:]
            moved = [
                [replace(one, place=(one.place[0] + REGION[0] * n, one.place[1])) for one in scene]
                for n, scene in enumerate(now)
            ]
            found = self.show(*(one.argument for scene in moved for one in scene), regions=count)
            first = 1
            for n, scene in enumerate(moved):
                left = REGION[0] * n
                due = wanted(scene, (left, 0), first)
                assert np.array_equal(found[:, left : left + REGION[0]], due), scene
                first += len(scene)


@pytest.fixture
def screen(linux: Callable[..., Linux], tmp_path: Path) -> Screen:
    return Screen(linux(), tmp_path)


BELOW = Asked(size=(80, 50), source=(0, 0, 80 << 16, 50 << 16), place=(0, 0))


def test_formats_flips_parts_and_sizes(screen: Screen) -> None:
    scenes = [[BELOW, Asked(name)] for name in CHANNELS]
    scenes += [[Asked(name, tiled=True)] for name in CHANNELS if CHANNELS[name][0] != 24]
    flips = REFLECT_X, REFLECT_Y, REFLECT_X | REFLECT_Y
    for rotation in (ROTATE_180, *(ROTATE_0 | flip for flip in flips), ROTATE_180 | REFLECT_X):
        scenes += [[Asked(tiled=tiled, rotation=rotation)] for tiled in (False, True)]
    large = 37 << 16, 45 << 16, 50 << 16, 48 << 16
    for rotation in (ROTATE_0, ROTATE_180):
        scenes.append([Asked(source=PART, rotation=rotation)])
        scenes.append([Asked(source=PART, tiled=True, rotation=rotation)])
        scenes.append([Asked("RG16", True, (200, 100), large, rotation=rotation)])
    for shown in ((80, 60), (20, 18), (13, 50), (41, 36)):
        scenes += [[Asked(shown=shown, tiled=True)], [Asked(shown=shown, rotation=ROTATE_180)]]
    screen.check_each(scenes)
    assert not screen.guest.machine.reporter.items


def test_planes_that_leave_the_screen(screen: Screen) -> None:
    for place in ((-10, -9), (-10, 4)):
        for tiled in (False, True):
            screen.check(Asked(tiled=tiled, place=place))
            screen.check(Asked(tiled=tiled, place=place, rotation=ROTATE_180))
    above = [Asked(tiled=tiled, place=(3, -7)) for tiled in (False, True)]
    screen.check_each([[one] for plane in above for one in (plane, replace(plane, rotation=ROTATE_180))])
    corner = 1920 - REGION[0], 1080 - REGION[1]
    for rotation in (ROTATE_0, ROTATE_180):
        screen.check(Asked(tiled=True, place=(1900, 1060), rotation=rotation), origin=corner)
    assert not screen.guest.machine.reporter.items


def test_alpha(screen: Screen) -> None:
    over = [Asked(alpha=0x8000)]
    for blend in range(3):
        over += [Asked("AR24", alpha=alpha, blend=blend) for alpha in (0xFFFF, 0x8000, 0x1234, 0)]
        over.append(Asked("AR15", alpha=0x4000, blend=blend))
    screen.check_each([[BELOW, one] for one in over])
    assert not screen.guest.machine.reporter.items


SAND = {64: 3, 128: 4, 256: 5}
"""Numbers of the modifiers with columns of so many bytes; the column's height is in the rest."""
ENCODINGS = {0: (0.299, 0.587, 0.114), 1: (0.2126, 0.7152, 0.0722), 2: (0.2627, 0.678, 0.0593)}
"""Parts of red, green and blue in the brightness of BT.601, BT.709 and BT.2020."""
SWAPPED = "NV21", "NV61", "YV12", "YV16"
QUARTERED = "NV12", "NV21", "YU12", "YV12"


@dataclass(frozen=True)
class Yuv:
    """A plane of brightness and colour; sand: bytes of a column."""

    name: str
    sand: int = 0
    size: tuple[int, int] = (40, 36)
    source: tuple[int, int, int, int] = WHOLE
    rotation: int = ROTATE_0
    encoding: int = 1
    full: bool = False
    left: int = 0

    @property
    def rows(self) -> int:
        """Of colour."""
        return self.size[1] // (2 if self.name in QUARTERED else 1)

    @property
    def layout(self) -> tuple[int, tuple[int, ...], tuple[int, ...], int]:
        """Modifier, offsets, pitches, bytes."""
        width, height = self.size
        if self.sand:
            column, columns = height + self.rows + 4, -(-width // self.sand)
            pitch = columns * self.sand
            modifier = 7 << 56 | column << 8 | SAND[self.sand]
            return modifier, (0, self.sand * height, 0), (pitch, pitch, 0), pitch * column
        if self.name.startswith("NV"):
            return 0, (0, 64 * height, 0), (64, 64, 0), 64 * (height + self.rows)
        second = 64 * height + 48 * self.rows
        return 0, (0, 64 * height, second), (64, 48, 48), second + 48 * self.rows

    @property
    def argument(self) -> str:
        modifier, offsets, pitches, size = self.layout
        shown = self.source[2] >> 16, self.source[3] >> 16
        return ",".join(
            map(str, [
                fourcc(self.name), modifier, *self.size, *offsets, *pitches, size, *self.source,
                self.left, 0, *shown, 0xFFFF, 0, self.rotation, self.encoding, int(self.full),
            ])
        )  # fmt: skip

    def part(self, data: bytes, number: int) -> np.ndarray:
        """All samples of Y, Cb or Cr."""
        _modifier, offsets, pitches, _size = self.layout
        width, rows = (self.size[0] // 2, self.rows) if number else self.size
        step, first = 1, 0
        if number and self.name in SWAPPED:
            number = 3 - number
        if number and self.name.startswith("NV"):
            step, first, number = 2, number - 1, 1
        x, y = first + step * np.arange(width), np.arange(rows)[:, None]
        place = y * pitches[number] + x
        if self.sand:
            column = self.size[1] + self.rows + 4
            place = x // self.sand * self.sand * column + y * self.sand + x % self.sand
        return np.frombuffer(data, np.uint8)[offsets[number] + place].astype(float)

    def picture(self, data: bytes) -> np.ndarray:
        x, y, width, height = (number >> 16 for number in self.source)
        half = 2 if self.name in QUARTERED else 1
        luma = self.part(data, 0)[y : y + height, x : x + width]
        first, second = (
            _between(self.part(data, n)[y // half :, x // 2 :], width, height, half) - 128 for n in (1, 2)
        )
        if not self.full:
            luma, first, second = (luma - 16) * 255 / 219, first * 255 / 224, second * 255 / 224
        red_part, green_part, blue_part = ENCODINGS[self.encoding]
        red, blue = luma + 2 * (1 - red_part) * second, luma + 2 * (1 - blue_part) * first
        green = (luma - red_part * red - blue_part * blue) / green_part
        made = np.clip(np.stack([red, green, blue], 2), 0, 255)
        return made[::-1, ::-1] if self.rotation == ROTATE_180 else made


def _between(samples: np.ndarray, width: int, height: int, half: int) -> np.ndarray:
    """Colour of each pixel: three parts of the nearest sample, one of the next."""
    rows = samples[: height // half, : width // 2]
    x, y = np.arange(width), np.arange(height)
    near_x, near_y = x // 2, y // half
    far_x = (near_x + (x % 2) * 2 - 1).clip(0, rows.shape[1] - 1)
    far_y = (near_y + (y % 2) * 2 - 1).clip(0, rows.shape[0] - 1) if half == 2 else near_y
    across = (3 * rows[:, near_x] + rows[:, far_x]) / 4
    return np.asarray((3 * across[near_y] + across[far_y]) / 4)


def test_brightness_and_colour(screen: Screen) -> None:
    """Linux gives its matrices in 256ths, so colours are near the exact ones."""
    part = 4 << 16, 6 << 16, 30 << 16, 24 << 16
    wide = 140 << 16, 6 << 16, 80 << 16, 24 << 16
    asked = [Yuv(name) for name in ("YU16", "YV16", "YU12", "YV12", "NV12", "NV21", "NV16", "NV61")]
    asked += [Yuv(one.name, source=part, rotation=ROTATE_180) for one in asked]
    asked += [Yuv("NV12", encoding=n, full=full) for n in range(3) for full in (False, True)]
    for sand in SAND:
        asked += [Yuv("NV12", sand), Yuv("NV21", sand, rotation=ROTATE_180)]
        asked.append(Yuv("NV12", sand, (300, 36), wide))
    for start in range(0, len(asked), PLANES):
        beside = [replace(one, left=n * REGION[0]) for n, one in enumerate(asked[start : start + PLANES])]
        found = screen.show(*(one.argument for one in beside), regions=len(beside))
        for number, one in enumerate(beside, 1):
            picture = one.picture(pattern(one.layout[-1], number))
            height, width, _channels = picture.shape
            assert np.abs(found[:height, one.left : one.left + width] - picture).max() < 3, one
    assert not screen.guest.machine.reporter.items

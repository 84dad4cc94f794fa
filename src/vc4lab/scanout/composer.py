"""Planes over each other, as a picture."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy

from vc4lab.scanout.colours import ONE, Matrix, Ramps
from vc4lab.scanout.display_unknowns import DEFAULT_UNKNOWNS, Unknowns
from vc4lab.scanout.formats import TILE_PITCH, Format, Yuv, convert, room
from vc4lab.scanout.formats import picture_of as converted
from vc4lab.scanout.native.colours import Colours, corrector
from vc4lab.scanout.native.compose import CONSTANT, COPY, COVERAGE, PREMULTIPLIED, composer
from vc4lab.scanout.native.lines import BLOCK
from vc4lab.scanout.native.lines import Layer as NativeLayer
from vc4lab.scanout.scaling import Axis, Span, axis_of

if TYPE_CHECKING:
    from PIL.Image import Image

    from vc4lab.memory import GuestMemory

Pixels = numpy.ndarray[Any, Any]
Widening = tuple[int, int, int]
"""Factor, addend and shift that make 8 bits of a channel."""
OPAQUE = 255
BLEND_NONE, BLEND_PREMULTIPLIED, BLEND_COVERAGE = 0, 1, 2


@dataclass(frozen=True)
class Plane:
    """A plane that is on. Its pixels lie in guest memory; who makes it has looked that they do.

    Attributes
    ----------
    address, pitch
        Guest address of the frame buffer, and bytes from line to line (T-tiled: a line's tiles).
    width, height
        Size of the frame buffer, in pixels.
    tiled
        Whether it is T-tiled.
    source
        x, y, width, height in the frame buffer, 16.16 fixed point.
    target
        x, y, width, height on the screen, in pixels; it may reach beyond the edges.
    alpha
        Alpha of the whole plane, 0 to 255.
    blend
        One of BLEND_NONE, BLEND_PREMULTIPLIED and BLEND_COVERAGE.
    mirrored
        Left to right, top to bottom.
    yuv
        The places of its samples, instead of `address`, `pitch` and `tiled`, if it has no pixels.
    """

    address: int
    pitch: int
    width: int
    height: int
    format: Format
    tiled: bool
    source: tuple[int, int, int, int]
    target: tuple[int, int, int, int]
    alpha: int = OPAQUE
    blend: int = BLEND_PREMULTIPLIED
    mirrored: tuple[bool, bool] = (False, False)
    yuv: Yuv | None = None


@dataclass(frozen=True)
class Shown:
    """The screen's contents, width x height pixels: all that makes the picture, in any thread."""

    width: int
    height: int
    planes: tuple[Plane, ...]
    """The lowest first."""
    gamma: Ramps | None = None
    background: int = 0
    """0xRRGGBB, where no plane is."""
    matrix: Matrix | None = None
    """Comes before the ramps."""


class Composer:
    """Makes pictures of what is shown; usable from any thread, one at a time."""

    def __init__(self, memory: GuestMemory, unknowns: Unknowns = DEFAULT_UNKNOWNS) -> None:
        self._memory = memory
        self._filtered = unknowns["hvs_filter"] == "polyphase"
        self._wraps = unknowns["hvs_shrink_limit"] == "wraps"
        self._rounding = 128 if unknowns["hvs_blend_rounding"] == "nearest" else 1
        self._blends_chroma = unknowns["hvs_chroma"] == "blends"
        self._csc_rounding = 128 if unknowns["hvs_csc_rounding"] == "nearest" else 0
        self._matrix_rounding = ONE // 2 if unknowns["hvs_matrix_rounding"] == "nearest" else 0
        self._widen = _nearest if unknowns["hvs_expand"] == "nearest" else _repeated
        self._lock = threading.Lock()
        self._prepare = lru_cache(maxsize=8)(self._prepared)

    def pixels(self, shown: Shown) -> Pixels:
        """A picture, uint8 of shape (height, width, 4): blue, green, red, one without a meaning."""
        out = numpy.empty((shown.height, shown.width, 4), numpy.uint8)
        self.draw(shown, out.ctypes.data, 4 * shown.width)
        return out

    def draw(self, shown: Shown, address: int, pitch: int) -> None:
        """Draws the picture to an address of this process; pitch: bytes from line to line there."""
        with self._lock:
            steps = [self._prepare(plane, shown.width, shown.height) for plane in shown.planes]
            if not (steps and steps[0] is not None and steps[0].covers):
                _fill(shown, address, pitch)
            for step in steps:
                if step is not None:
                    step.run(address, pitch)
            if shown.gamma is not None or shown.matrix is not None:
                _correct(shown, address, pitch, self._matrix_rounding)

    def _prepared(self, plane: Plane, width: int, height: int) -> _Step | None:
        (x, y, columns, rows), (left, top, across, down) = plane.source, plane.target
        spans = (
            Span(x, columns, plane.width, left, across, width, plane.mirrored[0]),
            Span(y, rows, plane.height, top, down, height, plane.mirrored[1]),
        )
        axes = [axis_of(s, filtered=self._filtered, wraps=self._wraps) for s in spans]
        if not (axes[0].count and axes[1].count):
            return None
        covers = axes[0].count == width and axes[1].count == height
        common = self._memory.base, self._rounding, self._widen
        step = _Step(plane, axes[0], axes[1], *common, covers)
        if plane.yuv is not None:
            step.convert_first(plane.yuv, self._blends_chroma, self._csc_rounding)
        return step


class _Step:
    """The native calls for one plane, and the memory that they need."""

    def __init__(
        self,
        plane: Plane,
        across: Axis,
        down: Axis,
        base: int,
        rounding: int,
        widen: Callable[[int], Widening],
        covers: bool,
    ) -> None:
        blend = _blend_of(plane)
        self.covers = covers and blend == COPY
        self._x, self._y = across.first, down.first
        self._held: list[Any] = []
        left, right = int(across.places.min()), int(across.places.max()) + 1
        layer = NativeLayer(
            frame=0 if plane.yuv else base + plane.address, pitch=plane.pitch, tiled=plane.tiled,
            tiles=plane.pitch // TILE_PITCH, pixel_bytes=plane.format.bits // 8,
            plain=_is_plain(plane.format), left=left, right=right, count=across.count,
            blend=blend, alpha=plane.alpha, rounding=rounding,
        )  # fmt: skip
        for n, (low, bits) in enumerate(plane.format.channels):
            layer.low[n], layer.mask[n] = low, (1 << bits) - 1
            layer.factor[n], layer.plus[n], layer.down[n] = widen(bits)
        layer.raw = self._room(4 * plane.width)
        layer.line = self._room(4 * (right - left))
        layer.picked = self._room(4 * across.count)
        self._layer = layer
        self._base, self._plane = base, plane
        if plane.yuv is not None:
            self._pixels = self._room(room(plane.width, plane.height))
            layer.frame, layer.pitch, layer.tiled = self._pixels, 4 * plane.width, False
        self._first: Any = None
        self._yuv: Any = None
        if across.weights is None and down.weights is None:
            layer.rows, layer.row_count = self._keep(down.places), down.count
            layer.columns = 0 if _in_order(across) else self._keep(across.places)
            return
        self._filter(layer, across, down)

    def _filter(self, layer: NativeLayer, across: Axis, down: Axis) -> None:
        """In two steps: the lines that are needed, as wide as on the screen; then their sums."""
        top, bottom = int(down.places.min()), int(down.places.max()) + 1
        pitch = 4 * across.count + 4 * BLOCK
        between = self._room(pitch * (bottom - top))
        first = NativeLayer()
        ctypes.memmove(first.address, layer.address, NativeLayer.size)
        first.rows = self._keep(numpy.arange(top, bottom, dtype=numpy.int32))
        first.row_count, first.columns = bottom - top, self._keep(across.places)
        first.out, first.out_pitch, first.blend = between, pitch, COPY
        first.taps = across.places.shape[1]
        self._first = first, "lay"
        if across.weights is not None:
            first.weights = self._keep(across.weights)
            self._first = first, "across"
        weights = down.weights
        if weights is None:
            weights = numpy.full_like(down.places, 1 << 12)
        layer.frame, layer.pitch = between, pitch
        layer.rows, layer.row_count = self._keep(down.places - top), down.count
        layer.taps, layer.weights = down.places.shape[1], self._keep(weights)

    def _keep(self, numbers: Pixels) -> int:
        """The address of a table, which is kept, with room for a whole block at its end."""
        padded = numpy.zeros(numbers.size + BLOCK, numpy.int32)
        padded[: numbers.size] = numbers.ravel()
        padded[numbers.size :] = numbers.flat[-1]
        self._held.append(padded)
        return int(padded.ctypes.data)

    def _room(self, size: int) -> int:
        made = numpy.empty(size + 8 * BLOCK, numpy.uint8)
        self._held.append(made)
        return int(made.ctypes.data)

    def convert_first(self, yuv: Yuv, blends: bool, rounding: int) -> None:
        """Make pixels of samples before each picture."""
        size = self._plane.width, self._plane.height
        self._yuv = converted(yuv, self._base, size, self._pixels, blends=blends, rounding=rounding)

    def run(self, address: int, pitch: int) -> None:
        """Lay the plane over the picture at `address`."""
        functions = composer()
        if self._yuv is not None:
            convert(self._yuv)
        layer = self._layer
        layer.out, layer.out_pitch = address + self._y * pitch + 4 * self._x, pitch
        if self._first is None:
            functions["lay"](layer.address)
            return
        first, name = self._first
        functions[name](first.address)
        functions["along"](layer.address)


def picture_of(pixels: Pixels) -> Image:
    """A Pillow picture (RGB) of what `Composer.pixels` gives, as large."""
    from PIL import Image

    height, width = pixels.shape[:2]
    return Image.frombuffer("RGB", (width, height), pixels, "raw", "BGRX", 0, 1)


def _blend_of(plane: Plane) -> int:
    if not plane.format.has_alpha or plane.blend == BLEND_NONE:
        return COPY if plane.alpha == OPAQUE else CONSTANT
    return PREMULTIPLIED if plane.blend == BLEND_PREMULTIPLIED else COVERAGE


def _is_plain(kind: Format) -> bool:
    """Whether pixels are bytes blue, green, red, alpha already."""
    return kind.bits == 32 and kind.blue == (0, 8)


def _in_order(axis: Axis) -> bool:
    """Whether pixels follow each other as in the source."""
    places = axis.places[:, 0]
    return bool((numpy.diff(places) == 1).all())


def _repeated(bits: int) -> Widening:
    """8 bits of fewer by repeating them."""
    if not bits:
        return 0, 0, 0
    copies = -(-8 // bits)
    return sum(1 << bits * n for n in range(copies)), 0, copies * bits - 8


def _nearest(bits: int) -> Widening:
    """8 bits of fewer as the nearest number in proportion."""
    if not bits:
        return 0, 0, 0
    most = (1 << bits) - 1
    return ((255 << 16) + most // 2) // most, 1 << 15, 16


def _lines(shown: Shown, address: int, pitch: int) -> Pixels:
    """The bytes of the picture in place."""
    room = (ctypes.c_uint8 * (pitch * (shown.height - 1) + 4 * shown.width)).from_address(address)
    return numpy.ndarray((shown.height, shown.width, 4), numpy.uint8, memoryview(room), strides=(pitch, 4, 1))


def _fill(shown: Shown, address: int, pitch: int) -> None:
    """The background."""
    if shown.background:
        colour = [*shown.background.to_bytes(3, "little"), 0]
        _lines(shown, address, pitch)[:] = numpy.array(colour, numpy.uint8)
        return
    for row in range(shown.height):
        ctypes.memset(address + row * pitch, 0, 4 * shown.width)


def _correct(shown: Shown, address: int, pitch: int, rounding: int) -> None:
    """Send the picture through its matrix and its ramps."""
    colours = Colours(
        out=address, pitch=pitch, width=shown.width, height=shown.height, rounding=rounding
    )  # fmt: skip
    if shown.matrix is not None:
        colours.mixes = True
        for number, factor in enumerate(shown.matrix.factors):
            colours.factors[number] = factor
        for number, offset in enumerate(shown.matrix.offsets):
            colours.offsets[number] = offset
    table = _table(shown.gamma) if shown.gamma is not None else None
    if table is not None:
        colours.ramps = int(table.ctypes.data)
    corrector()["correct"](colours.address)


@lru_cache(maxsize=4)
def _table(ramps: Ramps) -> Pixels:
    """Ramps as the native code reads them."""
    return numpy.frombuffer(b"".join(ramps), numpy.uint8).astype(numpy.int32)

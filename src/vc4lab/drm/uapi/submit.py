"""A driver's job as the kernel receives it: struct drm_vc4_submit_cl with its streams and buffers.

The data may come from recorded files or from a program; nothing of it is trusted.
Source: Linux include/uapi/drm/vc4_drm.h.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from operator import attrgetter
from typing import Any, NoReturn

from vc4lab.bits import Bits, Layout
from vc4lab.diagnostics import Diagnostic, Reporter
from vc4lab.drm.uapi.structures import Structure
from vc4lab.records import codes

NO_BUFFER = 0xFFFFFFFF
MAX_BUFFER = 256 << 20
"""Larger buffers are refused: the contiguous memory of a Pi was never larger."""
MAX_BUFFERS = 4096
PAGE = 4096

FLAG_CLEAR = 1
FLAG_FIXED_ORDER = 2
FLAG_INCREASING_X = 4
FLAG_INCREASING_Y = 8
KNOWN_FLAGS = FLAG_CLEAR | FLAG_FIXED_ORDER | FLAG_INCREASING_X | FLAG_INCREASING_Y
FLAG_FULL_RES = 1
"""A flag of a surface that is read: the layout is that of record 26."""

SURFACES = ("color_read", "color_write", "zs_read", "zs_write", "msaa_color_write", "msaa_zs_write")

NUMBERS = {
    "shader_rec_count": 32, "width": 16, "height": 16, "min_x_tile": 8, "min_y_tile": 8,
    "max_x_tile": 8, "max_y_tile": 8, "clear_z": 32, "clear_s": 8, "flags": 32,
}  # fmt: skip
"""Fields of `Submit` that are numbers, in its order, with their bits."""
STREAMS = "bin_cl", "shader_rec", "uniforms"
"""Fields that a program hands over with a job, besides the handles of its buffers."""
_ARRAYS = *STREAMS, "bo_handles"
SUBMIT_FIELDS = ", ".join(
    [
        *(f"u64 {name}" for name in _ARRAYS),
        "u32 bin_cl_size, u32 shader_rec_size, u32 shader_rec_count, u32 uniforms_size",
        "u32 bo_handle_count, u16 width, u16 height",
        "u8 min_x_tile, u8 min_y_tile, u8 max_x_tile, u8 max_y_tile",
        *(f"u32 {name}_index, u32 {name}_offset, u16 {name}_bits, u16 {name}_flags" for name in SURFACES),
        "u32[2] clear_color, u32 clear_z, u8 clear_s, u32 flags, u64 seqno",
        "u32 perfmonid, u32 in_sync, u32 out_sync, u32 pad2",
    ]
)
SUBMIT = Structure("drm_vc4_submit_cl", SUBMIT_FIELDS)
_SHAPE = slice(SUBMIT.offsets["width"], SUBMIT.offsets["clear_color"])
_FLAGS = slice(SUBMIT.offsets["flags"], SUBMIT.offsets["flags"] + 4)
_SIZES = struct.Struct("<HHBBBB")
_SURFACE = struct.Struct("<IIHH")
_numbers_of = attrgetter(*NUMBERS)


class JobError(Exception):
    """The kernel would refuse this job; `diagnostic` says why."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(str(diagnostic))
        self.diagnostic = diagnostic


def refuse(reporter: Reporter, code: str, message: str, address: int | None = None) -> NoReturn:
    """Report and give up this job. Raises JobError."""
    raise JobError(reporter.report(code, message, address=address, block="DRM"))


class JobReporter(Reporter):
    """Findings about one job of a run, passed on under its name.

    place: what lies at an address, in words; "" for nothing known.
    """

    def __init__(self, name: str, reporter: Reporter, place: Callable[[int], str] | None = None) -> None:
        super().__init__(reporter.strict)
        self.name = name
        self.reporter = reporter
        self.place = place

    def report(self, code: str, message: str, *, address: int | None = None, **more: Any) -> Diagnostic:
        """Record a finding and return it. Raises StrictStop for an error in strict mode."""
        where = self.place(address) if self.place is not None and address is not None else ""
        if where:
            message = f"{message} (in {where})"
        return self.reporter.report(code, f"{self.name}: {message}", address=address, **more)


class LoadStoreBits(Layout, width=16):
    """`bits` of color_read, zs_read and zs_write, as in records 28 and 29."""

    buffer = Bits(2, 0, enum=codes.TileBuffer)
    tiling = Bits(5, 4, enum=codes.Tiling)
    format = Bits(9, 8, enum=codes.TileFormat)


class FrameBits(Layout, width=16):
    """`bits` of color_write, as in record 113."""

    multisample = Bits(0)
    format = Bits(3, 2, enum=codes.FrameFormat)
    decimate = Bits(5, 4, enum=codes.Decimate)
    tiling = Bits(7, 6, enum=codes.Tiling)


@dataclass(frozen=True)
class Surface:
    """struct drm_vc4_submit_rcl_surface."""

    hindex: int = NO_BUFFER
    offset: int = 0
    bits: int = 0
    flags: int = 0

    @property
    def present(self) -> bool:
        """Whether the job has this surface."""
        return self.hindex != NO_BUFFER


@dataclass(frozen=True)
class Buffer:
    """A buffer object at its place in guest memory (bytes)."""

    handle: int
    address: int
    size: int
    content: str | None = None
    """Name of its recorded content, None: zero."""
    content_size: int = 0
    shader: bool = True
    """Made as a shader buffer: its content was checked and cannot change."""
    whole: bool = False
    """All of the recorded content counts, not only what differs from the one before."""


@dataclass(slots=True)
class Submit:
    """One job. Nothing changes it; it is not frozen, because that takes four times as long to make,
    and there is one for each job.
    """

    bin_cl: bytes
    shader_rec: bytes
    uniforms: bytes
    buffers: tuple[Buffer, ...]
    shader_rec_count: int
    width: int
    height: int
    min_x_tile: int
    min_y_tile: int
    max_x_tile: int
    max_y_tile: int
    clear_z: int = 0
    clear_s: int = 0
    flags: int = 0
    surfaces: Mapping[str, Surface] = field(default_factory=dict)
    clear_color: tuple[int, int] = (0, 0)
    padding: int = 0
    """Must be 0."""
    shape: bytes = b""
    """Stands for sizes, tiles, surfaces and flags: jobs with the same have these in common. Empty
    for a job that was not handed in by a program."""

    def surface(self, name: str) -> Surface:
        """One of `SURFACES`; an absent one if the job does not have it."""
        return self.surfaces.get(name, Surface())


class FieldError(ValueError):
    """A field of the description is missing or wrong."""


def integer(table: Any, name: str, bits: int = 32) -> int:
    """An unsigned integer field of a description. Raises FieldError."""
    value = table.get(name) if isinstance(table, dict) else None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << bits:
        raise FieldError(f"field {name!r} is not an unsigned integer of {bits} bits")
    return value


def parse_surface(table: Any, name: str) -> Surface:
    """A surface of a description; absent means none. Raises FieldError."""
    entry = table.get(name)
    if entry is None:
        return Surface()
    return Surface(
        integer(entry, "hindex"),
        integer(entry, "offset"),
        integer(entry, "bits", 16),
        integer(entry, "flags", 16),
    )


def parse_buffer(entry: Any) -> Buffer:
    """A buffer of a description. Raises FieldError."""
    size = integer(entry, "size")
    content = entry.get("blob")
    if content is not None and not isinstance(content, str):
        raise FieldError("field 'blob' is not a name")
    used = integer(entry, "used_size", 64) if "used_size" in entry else size
    return Buffer(
        integer(entry, "handle"),
        integer(entry, "addr", 64),
        size,
        content,
        min(used, size),
        entry.get("shader") is not False,
        entry.get("whole") is True,
    )


def parse_submit(table: Any, bin_cl: bytes, shader_rec: bytes, uniforms: bytes) -> Submit:
    """A job from its description (the decoded submit.json) and streams. Raises FieldError."""
    if not isinstance(table, dict):
        raise FieldError("the description is not an object")
    entries = table.get("bos")
    if not isinstance(entries, list) or len(entries) > MAX_BUFFERS:
        raise FieldError(f"field 'bos' is not a list of at most {MAX_BUFFERS} buffers")
    colours = table.get("clear_color")
    if not isinstance(colours, list) or len(colours) != 2:
        raise FieldError("field 'clear_color' is not a list of two")
    buffers = tuple(parse_buffer(entry) for entry in entries)
    numbers: Any = {name: integer(table, name, bits) for name, bits in NUMBERS.items()}
    low, high = ({"clear_color": colour} for colour in colours)
    return Submit(
        bin_cl, shader_rec, uniforms, buffers, **numbers,
        surfaces={name: parse_surface(table, name) for name in SURFACES},
        clear_color=(integer(low, "clear_color"), integer(high, "clear_color")),
        padding=integer(table, "pad2") if "pad2" in table else 0,
    )  # fmt: skip


@dataclass(slots=True, eq=False)
class Shape:
    """The part of a job's description that stays from frame to frame."""

    key: bytes
    """The bytes that it was read from, and the flags."""
    surfaces: dict[str, Surface]
    writes: tuple[int, ...]
    """Indices of the buffers that are drawn into."""
    tiles: int


@lru_cache(maxsize=256)
def _shape(data: bytes, flags: bytes) -> Shape:
    surfaces = {}
    _, _, *corners = _SIZES.unpack_from(data)
    for place, name in enumerate(SURFACES):
        fields = _SURFACE.unpack_from(data, _SIZES.size + place * _SURFACE.size)
        # A multisample job without a resolved picture says so in the bits of an absent surface.
        if fields[0] != NO_BUFFER or fields[2] or fields[3]:
            surfaces[name] = Surface(*fields)
    written = [surfaces[name] for name in surfaces if name.endswith("write")]
    columns, rows = corners[2] - corners[0] + 1, corners[3] - corners[1] + 1
    return Shape(
        data + flags,
        surfaces,
        tuple(surface.hindex for surface in written if surface.present),
        max(0, columns) * max(0, rows),
    )


def shape_of(data: bytes) -> Shape:
    """The shape of a job from struct drm_vc4_submit_cl: most programs have a few."""
    return _shape(data[_SHAPE], data[_FLAGS])


def submit_of(values: Any, shape: Shape, streams: Sequence[bytes], buffers: tuple[Buffer, ...]) -> Submit:
    """The job in the form that the kernel's half takes. `streams`: list, records, uniforms."""
    fields: tuple[Any, ...] = (
        *streams, buffers, *_numbers_of(values), shape.surfaces, tuple(values.clear_color),
        values.pad2, shape.key,
    )  # fmt: skip
    return Submit(*fields)

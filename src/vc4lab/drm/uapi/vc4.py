"""struct drm_vc4_submit_cl as programs pass it, and the parameters of the device.

Source: Linux include/uapi/drm/vc4_drm.h.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from vc4lab.drm.uapi.structures import Structure
from vc4lab.drm.uapi.submit import NO_BUFFER, SURFACES, Buffer, Submit, Surface

STREAMS = "bin_cl", "shader_rec", "uniforms"
"""What a program hands over with a job, besides the handles of its buffers."""
_ARRAYS = *STREAMS, "bo_handles"
SUBMIT_FIELDS = ", ".join(
    [
        *(f"u64 {name}" for name in _ARRAYS),
        "u32 bin_cl_size, u32 shader_rec_size, u32 shader_rec_count, u32 uniforms_size",
        "u32 bo_handle_count, u16 width, u16 height",
        "u8 min_x_tile, u8 min_y_tile, u8 max_x_tile, u8 max_y_tile",
        *(
            f"u32 {name}_index, u32 {name}_offset, u16 {name}_bits, u16 {name}_flags"
            for name in SURFACES
        ),
        "u32[2] clear_color, u32 clear_z, u8 clear_s, u32 flags, u64 seqno",
        "u32 perfmonid, u32 in_sync, u32 out_sync, u32 pad2",
    ]
)
SUBMIT = Structure("drm_vc4_submit_cl", SUBMIT_FIELDS)
_SHAPE = slice(SUBMIT.offsets["width"], SUBMIT.offsets["clear_color"])
_FLAGS = slice(SUBMIT.offsets["flags"], SUBMIT.offsets["flags"] + 4)
_SIZES = struct.Struct("<HHBBBB")
_SURFACE = struct.Struct("<IIHH")
HANG_REGISTERS = (
    "CT0CA", "CT0EA", "CT1CA", "CT1EA", "CT0CS", "CT1CS", "CT00RA0", "CT01RA0", "BPCA", "BPCS",
    "BPOA", "BPOS", "VPMBASE", "DBGE", "FDBGO", "FDBGB", "FDBGR", "FDBGS", "ERRSTAT",
)  # fmt: skip
"""Registers in struct drm_vc4_get_hang_state, in its order."""
PARAMETERS = {
    3: 1,  # branches
    4: 1,  # ETC1
    5: 1,  # threaded fragment shaders
    6: 1,  # fixed order of the rendering list
    7: 1,  # MADVISE
    8: 1,  # performance monitors
}
"""Beside 0, 1 and 2: the registers V3D_IDENT0 to 2."""


@dataclass(slots=True, eq=False)
class Shape:
    """What of a job's description stays from frame to frame."""

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


def submit_of(
    values: Any, shape: Shape, streams: Sequence[bytes], buffers: tuple[Buffer, ...]
) -> Submit:
    """The job in the form that the kernel's half takes. `streams`: list, records, uniforms."""
    bin_cl, shader_rec, uniforms = streams
    return Submit(
        bin_cl,
        shader_rec,
        uniforms,
        buffers,
        values.shader_rec_count,
        values.width,
        values.height,
        values.min_x_tile,
        values.min_y_tile,
        values.max_x_tile,
        values.max_y_tile,
        shape.surfaces,
        tuple(values.clear_color),
        values.clear_z,
        values.clear_s,
        values.flags,
        values.pad2,
        shape.key,
    )

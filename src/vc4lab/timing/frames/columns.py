"""The tables of a frame as numpy arrays: their columns, and records of native code as such.

README.md says what each column means.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vc4lab.simd import Type
from vc4lab.v3d.state.tile_context import COUNTERS, LIST_COUNTERS

Table = NDArray[Any]
"""One-dimensional, with named columns."""

_WORDS = {1: "u1", 2: "u2", 4: "i4", 8: "i8"}

TILE = np.dtype(
    [
        ("x", "i4"), ("y", "i4"), ("chain", "i4"), ("first_op", "i4"), ("ops", "i4"),
        ("first_list", "i4"), ("lists", "i4"), ("records", "i4"), ("bytes", "i8"),
    ]
)  # fmt: skip
"""A tile: operations, lists, records of its list and their bytes."""

OP = np.dtype(
    [
        ("kind", "i4"), ("tile", "i4"), ("a", "u4"), ("b", "u4"), ("surface", "i4"),
        ("address", "u4"), ("bytes", "i4"),
    ]
)  # fmt: skip
"""An operation on the tile buffer, in the order of the chip."""

LIST = np.dtype(
    [
        ("tile", "i4"), ("draw", "i4"), ("address", "u4"), ("bytes", "i4"), ("primitives", "i4"),
        ("first_vertex", "i4"), ("vertices", "i4"), ("clipped", "i4"), ("clip", "u4"),
        ("drawn", "?"),
        ("first_block", "i4"), ("blocks", "i4"), *((name, "i4") for name in LIST_COUNTERS),
    ]
)  # fmt: skip
"""A compressed list in a tile."""

DRAW = np.dtype(
    [
        ("record", "i8"), ("shader", "i8"), ("form", "i4"), ("primitives", "i4"),
        ("vertices", "i4"), ("config", "u4"), ("program", "i4"), ("code", "u4"),
        ("uniforms", "u4"), ("threads", "i4"), ("varyings", "i4"), ("vertex_words", "i4"),
        ("vertex_program", "i4"), ("vertex_code", "u4"), ("vertex_uniforms", "u4"),
        ("attributes", "i4"), ("attribute_bytes", "i4"), ("early_z", "?"), ("early_z_update", "?"),
        ("coverage_pipe", "?"), ("reference", "?"),
    ]
)  # fmt: skip
"""A distinct render state of the frame."""

TEXTURE = np.dtype(
    [
        ("draw", "i4"), ("number", "i4"), ("address", "u4"), ("width", "i4"), ("height", "i4"),
        ("levels", "i4"), ("type", "i4"), ("bits", "i4"), ("layout", "i4"), ("mag_linear", "?"),
        ("min_linear", "?"), ("mips", "i4"), ("cube", "?"),
    ]
)  # fmt: skip
"""A texture request of a draw's program."""

ATTRIBUTE = np.dtype([("draw", "i4"), ("number", "i4"), ("address", "u4"), ("bytes", "i4"), ("stride", "u4")])
"""An array that the vertices of a draw are fetched from."""

RECORD = np.dtype([("address", "u4"), ("id", "u4"), ("bytes", "i4"), ("tile", "i4")])
"""A record of a control list that was executed; tile: -1 outside of tile lists."""

BINNED = np.dtype(
    [
        ("record", "u4"), ("op", "i4"), ("mode", "i4"), ("length", "i4"), ("index_bytes", "i4"),
        ("place", "u4"), ("first_vertex", "i4"), ("vertices", "i4"), ("shader", "i8"),
        ("config", "u4"), ("program", "i4"), ("code", "u4"), ("uniforms", "u4"),
        ("attributes", "i4"), ("attribute_bytes", "i4"), ("rejected", "i4"), ("clipped", "i4"),
        ("degenerate", "i4"), ("outside", "i4"), ("entries", "i4"), ("blocks", "i4"),
    ]
)  # fmt: skip
"""A draw of a binning list."""

assert set(LIST_COUNTERS) <= set(COUNTERS)


@cache
def dtype_of(struct: Any) -> np.dtype[Any]:
    """The type of a stream's records, which are a Struct of integers and arrays of them."""
    names: list[str] = []
    formats: list[Any] = []
    offsets: list[int] = []
    for name, field in struct.fields.items():
        if name == "reserved":
            continue
        names.append(name)
        offsets.append(field.offset)
        kind: Any = field.kind
        if isinstance(kind, Type):
            formats.append(_WORDS[kind.size])
        else:
            formats.append((_WORDS[kind.elem.size], (kind.count,)))
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": struct.size})


def table_of(data: bytes, struct: Any) -> Table:
    """Records of native code, not copied."""
    return np.frombuffer(data, dtype_of(struct))


def starts(counts: NDArray[Any]) -> NDArray[np.int64]:
    """Return the index at which each of the consecutive groups begins, and the end of the last."""
    found = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=found[1:])
    return found


def point_at(struct: Any, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Set a Struct's pointers, by name, to arrays that live as long as it is used; 0 if empty."""
    for name, array in arrays.items():
        assert array.flags.c_contiguous
        setattr(struct, name, array.ctypes.data if len(array) else 0)

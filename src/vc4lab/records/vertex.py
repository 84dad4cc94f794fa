"""Shaded vertices: the words a vertex or coordinate shader leaves, and NV vertices in memory.

The setup engine (PSE) reads `[Ys:Xs] [Zs] [1/Wc] [point size] varyings…`; the binner (PTB) reads
`[Xc] [Yc] [Zc] [Wc] [Ys:Xs] [Zs] [1/Wc] [point size]`; an NV vertex is an optional clip header of
four words followed by the PSE form. Source: AG100-R p. 80.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from vc4lab.bits import Bits, Layout
from vc4lab.records.fields import Fixed, Float

CLIP_HEADER = ("xc", "yc", "zc", "wc")
SCREEN = ("xs_ys", "zs", "inverse_w")


class ScreenPosition(Layout):
    """The word Ys:Xs, sixteenths of a pixel from the viewport's centre."""

    x = Fixed(15, 0)
    y = Fixed(31, 16)


class ClipVertex(Layout, width=256):
    """32 bytes of a clip record: a vertex made by the binner's clipper."""

    x = Fixed(15, 0)
    y = Fixed(31, 16)
    z = Float(63, 32)
    inverse_w = Float(95, 64)
    weight0 = Float(127, 96, doc="of original vertex 0")
    weight1 = Float(159, 128)
    weight2 = Float(191, 160, doc="unused for lines")
    unused = Bits(255, 192)


def pse_words(varyings: int, point_size: bool = False, clip_header: bool = False) -> list[str]:
    """Names of the words the setup engine expects (NV in memory: with `clip_header` if present)."""
    head = [*CLIP_HEADER] if clip_header else []
    size = ["point_size"] if point_size else []
    return [*head, *SCREEN, *size, *(f"varying{n}" for n in range(varyings))]


def ptb_words(point_size: bool = False) -> list[str]:
    """Names of the words the binner expects of a coordinate shader."""
    return [*CLIP_HEADER, *SCREEN, *(["point_size"] if point_size else [])]


@dataclass(frozen=True)
class ShadedVertex:
    """One decoded vertex; positions in pixels relative to the viewport's centre."""

    x: float
    y: float
    z: float
    inverse_w: float
    clip: tuple[float, ...] | None
    point_size: float | None
    varyings: tuple[float, ...]


def decode_vertex(words: Sequence[int], names: Sequence[str]) -> ShadedVertex:
    """A vertex from its 32-bit words, named by `pse_words` or `ptb_words`. Missing words are 0."""
    raw = dict(zip(names, [*words, *([0] * len(names))], strict=False))
    position = ScreenPosition(raw["xs_ys"] & 0xFFFFFFFF)
    return ShadedVertex(
        position.x / 16,
        position.y / 16,
        _float(raw["zs"]),
        _float(raw["inverse_w"]),
        tuple(_float(raw[name]) for name in CLIP_HEADER) if "xc" in raw else None,
        _float(raw["point_size"]) if "point_size" in raw else None,
        tuple(_float(raw[name]) for name in names if name.startswith("varying")),
    )


def _float(word: int) -> float:
    value: float = struct.unpack("<f", struct.pack("<I", word & 0xFFFFFFFF))[0]
    return value

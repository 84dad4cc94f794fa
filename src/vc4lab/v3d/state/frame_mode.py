"""The mode of a frame, as record 113 says it: the surface, the tile buffer, the size of tiles."""

from __future__ import annotations

from dataclasses import dataclass, field

from vc4lab.records.codes import Decimate, TileFormat, Tiling
from vc4lab.v3d.state.draw_input import double_buffer_halves
from vc4lab.v3d.state.surface import COLOUR, Surface
from vc4lab.v3d.state.tile_layout import TileLayout
from vc4lab.v3d.unknowns import Unknowns


def tile_size(multisample: bool, colour64: bool, double_buffer: bool = False) -> tuple[int, int]:
    """Width and height of a tile in pixels from the flags of records 112 and 113."""
    width, height = (32, 32) if multisample else (64, 64)
    if colour64 or (double_buffer and not multisample):
        height //= 2
    return width, height


@dataclass(frozen=True)
class FrameMode:
    """Record 113: the surface that records 24 and 25 store to, and its geometry."""

    address: int = 0
    width: int = 0
    height: int = 0
    multisample: bool = False
    wide_colour: bool = False
    format: int = TileFormat.RGBA8888
    tiling: int = Tiling.RASTER
    decimate: int = 0
    vg_mask: bool = False
    double_buffer: bool = False

    layout: TileLayout = field(init=False, repr=False, compare=False)
    """How the tile buffer is arranged."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "layout", TileLayout(self.multisample, self.wide_colour))

    def surface(self, unknowns: Unknowns) -> Surface:
        """What records 24 and 25 store to."""
        decimate = self.decimate
        if self.multisample and unknowns["resolve_without_decimate"] == "average":
            decimate = decimate or Decimate.X4
        return Surface(
            self.address,
            self.width,
            self.height,
            int(self.tiling),
            int(self.format),
            COLOUR,
            int(decimate),
            self.wide_colour,
        )

    def drawn_size(self, unknowns: Unknowns) -> tuple[int, int]:
        """Pixels that are drawn: more than are stored if 16 samples become one pixel."""
        quads = self.decimate == Decimate.X16 and unknowns["decimate_16"] == "quad"
        scale = 2 if self.multisample and quads else 1
        return self.width * scale, self.height * scale

    def tile(self, unknowns: Unknowns) -> tuple[int, int]:
        """Width and height of a tile in pixels."""
        halved = self.double_buffer and double_buffer_halves(unknowns)
        return tile_size(self.multisample, self.wide_colour, halved)

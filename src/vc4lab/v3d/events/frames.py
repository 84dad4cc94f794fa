"""Draws and tiles of frames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from vc4lab.records.codes import ListPrimitive


class PreparedPipeline(Protocol):
    """What draws a draw's primitives, as far as its event says: see `fragment/pipeline.py`."""

    @property
    def key(self) -> Any:
        """The program, and the draw state that it was compiled for."""

    @property
    def address(self) -> int:
        """Of its entry point, in the host's memory."""


class DrawPrepared(NamedTuple):
    """A draw of a frame is ready to be drawn: all primitives with the same state, in any tiles.

    The event comes when all draws of the frame are prepared, in the order in which the tile lists
    have them. Draws of a binning list are the records 32 and 33 of `RecordExecuted`.

    Attributes
    ----------
    record
        Address of its first primitives: a compressed list, or a primitive record of the rendering
        list; None if no list of it came to its end.
    shader
        Address of its shader record, of the program if record 67 named that; None without either.
    primitive, primitives
        Their kind, and how many there are in all tiles.
    vertices
        How many different vertices they have; 0 if their coordinates stand in the list.
    pipeline
        What draws them; None if they are left out (there was a message).
    """

    record: int | None
    shader: int | None
    primitive: ListPrimitive | int
    primitives: int
    vertices: int
    pipeline: PreparedPipeline | None


class TileDrawn(NamedTuple):
    """A tile was drawn: its first pixel, and what drawing it took, by the names in `COUNTERS`.

    Of those, the ones that only count for performance counters are 0 unless they count
    (`PerformanceCounters.everything`). `clocks` is how long the chip takes for it, see `job_time`.
    """

    x: int
    y: int
    clocks: int
    counters: Mapping[str, int]


class FrameDrawn(NamedTuple):
    """Tiles of a frame were drawn and stored, in this order: a frame may be drawn in parts.

    `address`, `width` and `height` are those of record 113.
    """

    address: int
    width: int
    height: int
    tile_width: int
    tile_height: int
    tiles: tuple[TileDrawn, ...]

"""The cost of each tile of a job: a picture with a colour for each tile, or a table."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from io import StringIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image

    from vc4lab.v3d.events import FrameDrawn

STOPS = ((8, 8, 40), (80, 20, 110), (180, 50, 100), (240, 120, 50), (250, 200, 60), (255, 255, 210))
"""Colours from no work to the most, at equal distances; the brightness rises all the way."""
OPACITY = 0.7
"""How much of a colour is seen over the job's picture, which is grey."""
LEGEND = 24
"""Pixels below the picture, for the scale."""
LABELLED = 32
"""Pixels: a tile of this width and height or more has its number in it."""
LARGEST = 1 << 12
"""Pixels: only so much of a frame's width and height is shown."""


def work_of_tiles(frames: Iterable[FrameDrawn]) -> dict[tuple[int, int], int]:
    """V3D clocks by first pixel of the tile, of all parts of a job."""
    clocks: dict[tuple[int, int], int] = {}
    for frame in frames:
        for tile in frame.tiles:
            clocks[tile.x, tile.y] = clocks.get((tile.x, tile.y), 0) + tile.clocks
    return clocks


def heat_map(title: str, frames: Sequence[FrameDrawn], background: Image | None = None) -> Image:
    """A picture of `work_of_tiles`, over `background` if that is as large as the frame."""
    from PIL import Image, ImageDraw

    last = frames[-1]
    width, height = (max(1, min(size, LARGEST)) for size in (last.width, last.height))
    clocks = work_of_tiles(frames)
    most = max(clocks.values(), default=0)
    map_ = Image.new("RGB", (width, height), STOPS[0])
    draw = ImageDraw.Draw(map_)
    for (x, y), amount in clocks.items():
        corner = x + last.tile_width - 1, y + last.tile_height - 1
        draw.rectangle(((x, y), corner), fill=colour(amount / most if most else 0.0))
    if background is not None and background.size == map_.size:
        map_ = Image.blend(background.convert("L").convert("RGB"), map_, OPACITY)
        draw = ImageDraw.Draw(map_)
    if min(last.tile_width, last.tile_height) >= LABELLED:
        for (x, y), amount in clocks.items():
            ink = (0, 0, 0) if most and amount / most > 0.5 else (255, 255, 255)
            draw.text((x + 3, y + 2), short(amount), fill=ink)
    out = Image.new("RGB", (width, height + LEGEND), (0, 0, 0))
    out.paste(map_)
    draw = ImageDraw.Draw(out)
    bar = max(1, min(120, width // 3))
    for x in range(bar):
        draw.line(((x + 4, height + 6), (x + 4, height + 17)), fill=colour(x / bar))
    captions = (
        f"0 to {most} V3D clocks per tile, {sum(clocks.values())} in all: {title}",
        f"0 to {most} V3D clocks per tile",
        f"0 to {most}",
        short(most),
    )
    left = bar + 12
    fitting = (text for text in captions if left + draw.textlength(text) < width)
    draw.text((left, height + 6), next(fitting, ""), fill=(255, 255, 255))
    return out


def colour(share: float) -> tuple[int, int, int]:
    """The colour of a share of the most work, 0 to 1."""
    place = min(max(share, 0.0), 1.0) * (len(STOPS) - 1)
    low = min(int(place), len(STOPS) - 2)
    part = place - low
    red, green, blue = (round(a + (b - a) * part) for a, b in zip(STOPS[low], STOPS[low + 1], strict=True))
    return red, green, blue


def short(amount: int) -> str:
    """A number of at most four characters: 999, 12k, 3.4M."""
    for factor, ending in ((1_000_000, "M"), (1000, "k")):
        if amount >= factor:
            number = amount / factor
            return f"{number:.1f}{ending}" if number < 10 else f"{number:.0f}{ending}"
    return str(amount)


def table(jobs: Iterable[tuple[str, FrameDrawn]], names: Sequence[str]) -> str:
    """A line for each tile, as comma-separated values; `names`: the counters that counted."""
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["job", "frame", "x", "y", "clocks", *names])
    for job, frame in jobs:
        for tile in frame.tiles:
            amounts = [tile.counters[name] for name in names]
            writer.writerow([job, f"0x{frame.address:08x}", tile.x, tile.y, tile.clocks, *amounts])
    return out.getvalue()

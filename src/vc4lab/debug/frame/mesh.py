"""The vertices of a draw: arrays, indices, where they lie on the screen, and a picture of the edges."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from vc4lab.debug.frame.places import NoSuchPlace
from vc4lab.debug.frame.tables import Table
from vc4lab.images.pixels import png_bytes
from vc4lab.qpu.run.environment import Unsupported
from vc4lab.records.control import parse_record
from vc4lab.records.states import ViewportOffset
from vc4lab.v3d.vertex.context import COORDINATE_ROWS
from vc4lab.v3d.vpm.shader_rows import LANES

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from PIL.Image import Image

    from vc4lab.debug.frame.facts import FrameFact
    from vc4lab.debug.frame.index import FrameDraw
    from vc4lab.debug.frame.runs import FrameRuns
    from vc4lab.records.shader import GlShader

MOST_VERTICES = 1 << 20
MOST_POINTS = 1 << 23
"""Points of all edges of a picture together."""
LONGEST = 4096
EDGE = (255, 196, 64)
SUBPIXELS = 16


class Mesh:
    """The mesh of a draw. Raises NoSuchPlace if its vertices stand in a list.

    Attributes
    ----------
    attributes
        By name: an array of the vertices `first` …, each a row; singles, or bytes if a row has no
        whole words.
    first
        The number of the first vertex.
    """

    def __init__(self, frame: FrameRuns, draw: FrameDraw, facts: FrameFact) -> None:
        if draw.shader is None or draw.shader.vector_graphics:
            raise NoSuchPlace(f"the vertices of draw {draw.number} are coordinates in a list")
        self._frame, self.draw = frame, draw
        self.first = max(draw.first, 0)
        self.attributes: dict[str, NDArray[Any]] = {}
        for one in facts.of_draw(draw.number).contents:
            data = facts.contents.get(one.digest)
            if one.name == "indices" or data is None or not one.row:
                continue
            kind = "<f4" if one.row % 4 == 0 else "u1"
            size = one.row // np.dtype(kind).itemsize
            self.attributes[one.name] = np.frombuffer(data, kind).reshape(-1, size)

    def __repr__(self) -> str:
        names = ", ".join(f"{name} {array.shape[1]}" for name, array in self.attributes.items())
        return f"<mesh of draw {self.draw.number}: {self.draw.length} vertices, {self.draw.mode}; {names}>"

    @cached_property
    def indices(self) -> NDArray[Any]:
        """The numbers of the vertices, in the order in which they are drawn."""
        length = min(self.draw.length, MOST_VERTICES)
        if not self.draw.index_bits:
            return np.arange(self.draw.place, self.draw.place + length)
        self._frame.stage.run(self.draw.job)
        memory = self._frame.stage.memory
        return memory.array(self.draw.place, length, f"<u{self.draw.index_bits // 8}").astype(np.int64)

    @cached_property
    def _shaded(self) -> tuple[NDArray[Any] | None, NDArray[Any]]:
        """Clip coordinates (n, 4), or None; places in pixels (n, 2) of the vertices from `first` on."""
        stage, draw = self._frame.stage, self.draw
        shader = draw.shader
        assert shader is not None
        count = min(max(draw.last - self.first + 1, 0), MOST_VERTICES)
        if not count:
            raise NoSuchPlace(f"draw {draw.number} uses no vertices")
        stage.run(draw.job, keep=draw.number)
        offset = 0.0, 0.0
        place = draw.where(ViewportOffset.id)
        if place is not None:
            record = parse_record(stage.memory.read, place)
            if isinstance(record.payload, ViewportOffset):  # lists may be written over
                offset = record.payload.x / SUBPIXELS, record.payload.y / SUBPIXELS
        if shader.gl is None:
            clip, words = None, self._shaded_words()
        else:
            rows = self._coordinates(shader.gl, count)
            clip, words = rows[:, :4].view("<f4"), rows[:, 4]
        screen = np.ascontiguousarray(words).view("<i2").reshape(-1, 2) / SUBPIXELS + offset
        return clip, screen

    def _shaded_words(self) -> NDArray[Any]:
        """The first words of vertices that were shaded beforehand. Raises NoSuchPlace."""
        for array in self.attributes.values():
            if array.dtype.itemsize == 4 and array.shape[1]:
                return array.view("<u4")[:, 0]
        raise NoSuchPlace(f"the vertices of draw {self.draw.number} have no whole words")

    def _coordinates(self, shader: GlShader, count: int) -> NDArray[Any]:
        """The rows that the coordinate program writes for each vertex: (n, rows), natively."""
        rows = COORDINATE_ROWS + int(shader.record.point_size)
        begin, end = self.first // LANES, (self.first + count - 1) // LANES + 1
        memory = np.zeros(4 * LANES * rows * (end - begin) + 64, np.uint8)
        start = -memory.ctypes.data % 64
        batches = memory[start : start + 4 * LANES * rows * (end - begin)].view("<u4")
        place = batches.ctypes.data - begin * 4 * LANES * rows
        stage = self._frame.stage.v3d.binning.coordinates
        try:
            stage.shade(shader, rows, self.first, self.first + count - 1, 0, place)
        except Unsupported as verdict:
            raise NoSuchPlace(f"the coordinate program cannot be run: {verdict}") from None
        found = batches.reshape(-1, rows, LANES).transpose(0, 2, 1).reshape(-1, rows)
        return np.ascontiguousarray(found[self.first - begin * LANES :][:count])

    @property
    def clip(self) -> NDArray[Any] | None:
        """Xc, Yc, Zc, Wc of the vertices from `first` on; None: they were shaded beforehand."""
        return self._shaded[0]

    @property
    def screen(self) -> NDArray[Any]:
        """X and Y in pixels of the vertices from `first` on, before clipping."""
        return self._shaded[1]

    @property
    def edges(self) -> NDArray[Any]:
        """Pairs of places in the arrays: the ends of each edge."""
        found, mode = self.indices - self.first, self.draw.mode
        if mode == "triangles":
            corners = found[: len(found) // 3 * 3].reshape(-1, 3)
            pairs = [corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [2, 0]]]
        elif mode == "lines":
            pairs = [found[: len(found) // 2 * 2].reshape(-1, 2)]
        elif mode == "points":
            pairs = [np.stack([found, found], axis=1)]
        else:
            pairs = [np.stack([found[:-1], found[1:]], axis=1)]
            if mode == "triangle strip":
                pairs.append(np.stack([found[:-2], found[2:]], axis=1))
            elif mode == "triangle fan":
                pairs.append(np.stack([np.full(len(found), found[0]), found], axis=1))
            elif mode == "line loop":
                pairs.append(np.stack([found[-1:], found[:1]], axis=1))
        both = np.concatenate(pairs)
        return both[((both >= 0) & (both < len(self.screen))).all(axis=1)]

    def picture(self) -> Image:
        """The edges over the picture after the draw, in dim greys. Edges beyond the eye are left out."""
        from PIL import Image as Pictures

        edges, clip = self.edges, self.clip
        if clip is not None:
            edges = edges[(clip[edges, 3] > 0).all(axis=1)]
        try:
            base = self._frame.picture_after(self.draw.number)
        except NoSuchPlace:
            base = None
        job = self._frame.jobs[self.draw.job - 1]
        width, height = job.size
        canvas = np.zeros((height, width, 3), np.uint8)
        if base is not None:
            canvas[:] = (np.asarray(base.convert("L")) // 3 + 20)[..., None]
        x, y = _points(self.screen[edges[:, 0]], self.screen[edges[:, 1]])
        inside = (x >= 0) & (x < width) & (y >= 0) & (y < height)
        canvas[y[inside], x[inside]] = EDGE
        return Pictures.fromarray(canvas)

    def _repr_png_(self) -> bytes | None:
        """The picture, in a notebook."""
        return png_bytes(self.picture())

    @property
    def table(self) -> Table[int]:
        """The vertices: their attributes, and places on the screen."""
        names = [f"{n}.{k}" for n, array in self.attributes.items() for k in range(array.shape[1])]

        def cells(row: int) -> list[Any]:
            found: list[Any] = [self.first + row]
            for array in self.attributes.values():
                found += [one.item() for one in array[min(row, len(array) - 1)]]
            return [*found, *map(float, self.screen[row])]

        return Table(range(len(self.screen)), ["vertex", *names, "x", "y"], cells)


def _points(one: NDArray[Any], two: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The pixels of lines from `one` to `two`, (n, 2) each."""
    steps = np.minimum(np.abs(two - one).max(axis=1, initial=0), LONGEST).astype(np.int64) + 1
    steps = steps[: int(np.searchsorted(np.cumsum(steps), MOST_POINTS, side="right"))]
    which = np.repeat(np.arange(len(steps)), steps)
    at = np.arange(len(which)) - np.repeat(np.cumsum(steps) - steps, steps)
    part = (at / np.maximum(steps[which] - 1, 1))[:, None]
    found = np.floor(one[which] + (two[which] - one[which]) * part).astype(np.int64)
    return found[:, 0], found[:, 1]

"""Histories of pixels and vertices as notebooks show them: tables, and the lanes of a program's run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from vc4lab.debug.frame.pixel import PixelHistory
from vc4lab.debug.frame.places import NoSuchPlace
from vc4lab.debug.frame.tables import Colour, Table
from vc4lab.debug.frame.texts import as_float, colour_text, depth_text, history_lines, touch_name
from vc4lab.debug.frame.vertex import VertexHistory, vertex_lines

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vc4lab.debug.frame.touch import Touch
    from vc4lab.debug.frame.watch import ProgramStep

LANES = 16


class LaneWrite(NamedTuple):
    """A register that an instruction wrote: the words of all lanes; mask: in which; None: in all."""

    step: ProgramStep
    register: str
    values: tuple[int, ...]
    mask: tuple[bool, ...] | None


class ShownPixel(PixelHistory):
    """The history of a pixel, which shows itself."""

    def __repr__(self) -> str:
        return "\n".join(history_lines(self))

    @property
    def table(self) -> Table[Touch]:
        """The touches with what they changed."""
        blue = self.is_blue_first

        def cells(one: Touch) -> tuple[Any, ...]:
            before, after = (Colour(colour_text(s, is_blue_first=blue)) for s in (one.before, one.after))
            depths = f"{depth_text(one.before)} → {depth_text(one.after)}"
            return touch_name(one), one.outcome, one.why, before, after, depths

        head = ("primitive", "outcome", "why", "colour before", "after", "depth")
        title = f"frame {self.frame}, pixel {self.x},{self.y}"
        return Table(self.touches, head, cells, title)

    def _repr_html_(self) -> str:
        """The table, in a notebook."""
        return self.table._repr_html_()

    def lanes(self, touch: int = -1) -> Table[LaneWrite]:
        """List the registers that each instruction of a touch's program wrote, in all lanes of the block.

        Of a history with the program's run (`frame.pixel(x, y, program=True)`). Raises NoSuchPlace.
        """
        if not -len(self.touches) <= touch < len(self.touches):
            raise NoSuchPlace(f"the pixel has no touch {touch}: it has {len(self.touches)}")
        found = self.touches[touch]
        block = found.block
        if not block.program:
            raise NoSuchPlace("there is no run of the program: ask with program=True")
        at = found.code - block.draw.program.address
        return lanes_table(block.program, f"the pixel is lane {block.lane}", at)


def lanes_table(steps: Iterable[ProgramStep], title: str, at: int = 0) -> Table[LaneWrite]:
    """The registers that instructions write, lane by lane; "·": not in this lane. at: where address 0 is."""
    rows = [LaneWrite(step, *write) for step in steps for write in step.writes]

    def cells(row: LaneWrite) -> list[Any]:
        lanes = [_lane_text(value) for value in row.values]
        if row.mask is not None:
            lanes = [text if there else "·" for text, there in zip(lanes, row.mask, strict=True)]
        return [f"{row.step.address + at:08x}", row.step.text, row.register, *lanes]

    return Table(rows, ("at", "instruction", "writes", *map(str, range(LANES))), cells, title)


def _lane_text(word: int) -> str:
    """A word as a number, if it is likely to be one, or else as its bits."""
    value = as_float(word)
    return f"{value:.4g}" if not word or 1e-6 < abs(value) < 1e9 else f"{word:08x}"


class ShownVertex(VertexHistory):
    """The history of a vertex, which shows itself."""

    def __repr__(self) -> str:
        return "\n".join(vertex_lines(self))

    def _repr_html_(self) -> str:
        """The lines, in a notebook."""
        from html import escape

        return f"<pre>{escape(repr(self))}</pre>"

    def lanes(self, program: str = "coordinate") -> Table[LaneWrite]:
        """List the registers that each instruction of the coordinate or vertex program wrote, in all lanes.

        Raises NoSuchPlace.
        """
        run = {"coordinate": self.coordinate, "vertex": self.vertex}.get(program)
        if run is None:
            raise NoSuchPlace(f"the vertex has no run of a {program[:40]!r} program")
        return lanes_table(run.steps, f"the vertex is lane {run.lane}")

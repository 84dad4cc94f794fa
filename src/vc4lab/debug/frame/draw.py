"""A draw of a captured frame as an object: pictures, state, programs, textures, mesh.

draw = frame.draw(3)
draw.picture, draw.changed      # after it; with what it changed in red
draw.state                      # a table of the records in force
draw.textures[0]                # shows its picture
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from vc4lab.debug.frame.mesh import Mesh
from vc4lab.debug.frame.tables import Table
from vc4lab.images.pixels import png_bytes
from vc4lab.jobs.fields_text import word_text
from vc4lab.jobs.pictures import difference_picture
from vc4lab.jobs.texture_views import texture_view
from vc4lab.qpu.isa.encoding import INSTRUCTION_BYTES
from vc4lab.qpu.text.disassembler import disassemble
from vc4lab.records.control import bytes_reader

if TYPE_CHECKING:
    from PIL.Image import Image

    from vc4lab.debug.frame.facts import DrawFact, FrameFact, ProgramFact, TextureFact, UniformFact
    from vc4lab.debug.frame.index import FrameDraw
    from vc4lab.debug.frame.runs import FrameRuns


class Field(NamedTuple):
    """A field of a record: the record, its guest address, name and value."""

    record: str
    address: int
    name: str
    value: str


class CapturedTexture:
    """A texture as a program of a draw sampled it.

    Attributes
    ----------
    program, request
        Kind of the program, and the number of the request.
    config
        Its parameters (`records/texture.py`).
    """

    def __init__(self, program: str, fact: TextureFact, facts: FrameFact) -> None:
        self.program, self.request, self.config = program, fact.request, fact.config
        self.fields = dict(fact.fields)
        self._data, self._address = facts.contents.get(fact.content.digest), fact.content.address

    def __repr__(self) -> str:
        return f"<texture {self.request} of the {self.program} program: {self.config.text()}>"

    @cached_property
    def picture(self) -> Image | None:
        """Its largest level; None: its format is no picture (compressed, halves), or it is a cube's."""
        from PIL import Image as Pictures

        png = self._repr_png_()
        if png is None:
            return None
        from io import BytesIO

        return Pictures.open(BytesIO(png))

    def _repr_png_(self) -> bytes | None:
        """The picture, in a notebook."""
        if self._data is None:
            return None
        found = texture_view(bytes_reader(self._data, self._address), self.config)
        return None if found is None else found.png()


class DrawProgram:
    """A program of a draw: instructions, uniforms."""

    def __init__(self, fact: ProgramFact) -> None:
        self.kind, self.address, self.words = fact.kind, fact.address, fact.words
        self._uniforms = fact.uniforms

    def __repr__(self) -> str:
        return "\n".join([f"{self.kind} program 0x{self.address:08x}", *map(self._line, range(len(self)))])

    def __len__(self) -> int:
        return len(self.words)

    def _line(self, place: int) -> str:
        at = self.address + INSTRUCTION_BYTES * place
        return f"{at:08x}  {disassemble(self.words[place], at)}"

    @property
    def listing(self) -> Table[int]:
        """Its instructions."""
        return Table(range(len(self)), ("instruction",), lambda place: (self._line(place),))

    @property
    def uniforms(self) -> Table[UniformFact]:
        """Its uniforms, without those of textures."""
        return Table(
            self._uniforms,
            ("uniform", "purpose", "value", "word"),
            lambda one: (one.number, one.purpose, word_text(one.word), f"{one.word:08x}"),
        )

    def _repr_html_(self) -> str:
        """The instructions, in a notebook."""
        from html import escape

        return f"<pre>{escape(repr(self))}</pre>"


class CapturedDraw:
    """A draw of a frame. Raises NoSuchPlace, here and where it is asked, CaptureError.

    Attributes
    ----------
    row
        Its numbers and addresses.
    """

    def __init__(self, frame: FrameRuns, row: FrameDraw, facts: FrameFact) -> None:
        self._frame, self.row, self._facts = frame, row, facts

    def __repr__(self) -> str:
        return f"<{self.row.text()}>"

    def _repr_png_(self) -> bytes | None:
        """The picture after it, in a notebook."""
        return png_bytes(self.picture)

    @property
    def picture(self) -> Image | None:
        """The picture after it, without the draws after it; None: colours are 64 bits wide."""
        return self._frame.picture_after(self.row.number)

    @property
    def before(self) -> Image | None:
        """The picture of its job before it; None as for `picture`."""
        self._frame.job_of(self.row.number)
        first = self._frame.jobs[self.row.job - 1].draws[0].number
        if self.row.number > first:
            return self._frame.picture_after(self.row.number - 1)
        return self._frame.picture_of(self._frame.jobs[self.row.job - 1], keep=first - 1)

    @property
    def changed(self) -> Image | None:
        """The picture before it in dim greys, with the pixels that it changed in red."""
        before, after = self.before, self.picture
        if before is None or after is None:
            return None
        return difference_picture(before, (np.asarray(before) != np.asarray(after)).any(axis=2))

    @cached_property
    def _fact(self) -> DrawFact:
        return self._facts.of_draw(self.row.number)

    @property
    def state(self) -> Table[Field]:
        """The fields of the records of state in force, of the shader record and of the draw's own."""
        records = (self._fact.record, *self._fact.states, *self._fact.shader)
        fields = [Field(one.title, one.address, *pair) for one in records for pair in one.fields]
        return Table(
            fields,
            ("record", "at", "field", "value"),
            lambda one: (one.record, f"0x{one.address:08x}", one.name, one.value),
        )

    @property
    def programs(self) -> Table[DrawProgram]:
        """Its programs: fragment; vertex and coordinate unless vertices were shaded beforehand."""
        return Table(
            [DrawProgram(one) for one in self._fact.programs],
            ("program", "address", "instructions", "uniforms"),
            lambda one: (one.kind, f"0x{one.address:08x}", len(one), len(one.uniforms)),
        )

    @property
    def textures(self) -> Table[CapturedTexture]:
        """The textures that its programs sample, one for each request."""
        return Table(
            [CapturedTexture(p.kind, one, self._facts) for p in self._fact.programs for one in p.textures],
            ("program", "request", "texture", "picture"),
            lambda one: (one.program, one.request, one.config.text(), one._repr_png_() or ""),
        )

    @property
    def mesh(self) -> Mesh:
        """Its vertices."""
        return Mesh(self._frame, self.row, self._facts)


def draw_table(draws: list[FrameDraw]) -> Table[FrameDraw]:
    """Draws as a table."""

    def cells(one: FrameDraw) -> tuple[Any, ...]:
        indices = f"{one.index_bits} bits" if one.index_bits else ""
        return one.number, one.job, one.mode, one.length, indices, one.binned, f"0x{one.address:08x}"

    return Table(draws, ("draw", "job", "kind", "vertices", "indices", "binned", "record at"), cells)

"""Facts about a frame that do not depend on where anything lies in memory.

A frame runs once; before the tiles of each job are drawn, memory holds all that its draws use. What
records, shader records, programs, uniforms, textures and vertices say is kept without addresses:
of what an address names, the content counts.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from vc4lab.bits import Layout
from vc4lab.debug.frame.places import NoSuchPlace
from vc4lab.records.payload import Address

if TYPE_CHECKING:
    from vc4lab.debug.frame.index import FrameDraw, FrameJob
    from vc4lab.records.texture import TextureConfig

MOST_CONTENT = 256 << 20
"""Bytes of content that are kept of a frame; of more only digests are."""
Fields = tuple[tuple[str, str], ...]
"""Names and values of fields, without addresses."""


class Contents:
    """Keeps what lay in memory, by digest, so that differences can be counted."""

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}
        self._bytes = 0

    def keep(self, data: bytes) -> str:
        """The digest of bytes, which are kept as long as there is room."""
        found = hashlib.blake2b(data, digest_size=16).hexdigest()
        if found not in self._kept and self._bytes + len(data) <= MOST_CONTENT:
            self._kept[found] = data
            self._bytes += len(data)
        return found

    def get(self, digest: str) -> bytes | None:
        """The bytes with a digest; None: they were not kept."""
        return self._kept.get(digest)


def fields_of(found: Layout) -> Fields:
    """The fields of a record without its addresses, as lists print them."""
    return tuple(
        (name, bits.text(found.value))
        for name, bits in found.layout_fields.items()
        if not isinstance(bits, Address)
    )


@dataclass(frozen=True)
class RecordFact:
    """A record of a list or of state, or a shader record: title, fields; where it lay."""

    title: str
    fields: Fields
    address: int = field(compare=False)


@dataclass(frozen=True)
class ContentFact:
    """Some content of memory.

    Attributes
    ----------
    name
        What it is.
    digest, size
        Of its bytes.
    address
        Where it lay.
    row
        Bytes from one row, vertex or index to the next in what was kept.
    first
        The number of the first of them.
    """

    name: str
    digest: str
    size: int
    address: int = field(compare=False)
    row: int = 1
    first: int = 0


@dataclass(frozen=True)
class UniformFact:
    """A uniform: its number in the text, the purpose, and its word; or what lies where it points to."""

    number: int
    purpose: str
    word: int
    target: str | None
    address: int = field(compare=False)

    @property
    def meaning(self) -> tuple[str, int | str]:
        """Return the part that is compared."""
        return self.purpose, self.word if self.target is None else self.target


@dataclass(frozen=True)
class TextureFact:
    """A texture that a program samples: its request, parameters without addresses, its content."""

    request: int
    config: TextureConfig = field(compare=False)
    fields: Fields
    content: ContentFact


@dataclass(frozen=True)
class ProgramFact:
    """A program with its uniforms and textures; kind: fragment, vertex, coordinate or user."""

    kind: str
    words: tuple[int, ...]
    uniforms: tuple[UniformFact, ...]
    textures: tuple[TextureFact, ...]
    address: int = field(compare=False)

    @property
    def meaning(self) -> tuple[Any, ...]:
        """Return the part that is compared."""
        return self.kind, self.words, tuple(one.meaning for one in self.uniforms), self.textures


@dataclass(frozen=True)
class DrawFact:
    """A draw: its record, the records of state, shader record, programs, vertices, indices."""

    draw: FrameDraw = field(compare=False)
    record: RecordFact
    states: tuple[RecordFact, ...]
    shader: tuple[RecordFact, ...]
    programs: tuple[ProgramFact, ...]
    contents: tuple[ContentFact, ...]

    @property
    def coarse(self) -> tuple[Any, ...]:
        """Kind and programs, which draws of the same thing have in common."""
        return self.record.fields, tuple((one.kind, one.words) for one in self.programs)

    @property
    def key(self) -> tuple[Any, ...]:
        """All that a draw means."""
        programs = tuple(one.meaning for one in self.programs)
        return self.record, self.states, self.shader, programs, self.contents


@dataclass(frozen=True)
class JobFact:
    """A job: its lists without state and draws, its draws, what its surfaces held afterwards."""

    job: FrameJob = field(compare=False)
    lists: tuple[tuple[str, tuple[RecordFact, ...]], ...]
    draws: tuple[DrawFact, ...]
    surfaces: tuple[ContentFact, ...]

    @property
    def coarse(self) -> tuple[Any, ...]:
        """Size and draws, which jobs that draw about the same have in common."""
        return self.job.size, tuple(one.coarse for one in self.draws)

    @property
    def key(self) -> tuple[Any, ...]:
        """All that a job means."""
        return self.lists, tuple(one.key for one in self.draws), self.surfaces


@dataclass(frozen=True)
class FrameFact:
    """A frame: its jobs, its user programs, and memory whose content it is known for."""

    number: int
    jobs: tuple[JobFact, ...]
    programs: tuple[ProgramFact, ...]
    memory: tuple[ContentFact, ...]
    contents: Contents = field(compare=False, repr=False)

    def of_draw(self, number: int) -> DrawFact:
        """The facts of a draw. Raises NoSuchPlace if the frame was given up before it, this time."""
        for job in self.jobs:
            for one in job.draws:
                if one.draw.number == number:
                    return one
        raise NoSuchPlace(f"draw {number} of frame {self.number} was not drawn again")

    @property
    def key(self) -> tuple[Any, ...]:
        """All that a frame means."""
        jobs = tuple(one.key for one in self.jobs)
        return jobs, tuple(one.meaning for one in self.programs), self.memory


def without_addresses(config: TextureConfig) -> Fields:
    """The parameters of a texture, as far as they do not say where it lies."""
    gone = "base", "cube_stride"
    return tuple((name, _word(value)) for name, value in vars(config).items() if name not in gone)


def _word(value: object) -> str:
    name = getattr(value, "name", None)
    return str(value) if name is None else str(name).lower()

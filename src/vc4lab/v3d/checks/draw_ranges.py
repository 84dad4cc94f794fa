"""The ranges of memory that one draw names: record, programs, uniforms, textures, vertices."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from vc4lab.bounded import Bounded
from vc4lab.images.tiling import mip_chain
from vc4lab.qpu.run.environment import Unsupported
from vc4lab.records.declarations import TileBinningMode
from vc4lab.records.shader import gl_record_size
from vc4lab.records.states import VgInlineShader
from vc4lab.records.texture import TextureConfig, TextureType
from vc4lab.v3d.checks.addresses import AddressCheck
from vc4lab.v3d.checks.hints import TILE_STATE_BYTES
from vc4lab.v3d.events import Use
from vc4lab.v3d.state.render_state import known_places, read_shader_record
from vc4lab.v3d.tmu.formats import FORMATS

if TYPE_CHECKING:
    from vc4lab.v3d.state.render_state import ProgramCache, ShaderRecord

CUBE_FACES = 6
MAX_SHADERS = 1024
CACHE_SWIZZLE = 3 << 10
_WORD = 0xFFFFFFFF


@lru_cache(maxsize=1024)
def texture_range(words: tuple[int, ...], bit_utile: str = "32x16") -> tuple[int, int]:
    """Bus address and bytes of a texture, all levels and faces, from its 2 to 4 parameters."""
    config = TextureConfig.parse(*(*words, 0, 0, 0)[:4])
    row = FORMATS.get(config.type, FORMATS[TextureType.RGBA8888])
    chain = mip_chain(
        config.width, config.height, row.unit_bits, config.levels,
        raster=row.type.raster, block=row.block, shape=row.utile(bit_utile),
    )  # fmt: skip
    first = min(level.offset for level in chain)
    faces = (CUBE_FACES - 1) * config.cube_stride if config.cube else 0
    return config.base + first & 0xFFFFFFFF, chain[0].size - first + faces


class DrawRanges:
    """Reports what draws use to an `AddressCheck`: each shader once, every draw for listeners.

    `binning`: the draws are those of thread 0, whose `programs` are coordinate shaders.
    """

    def __init__(self, check: AddressCheck, programs: ProgramCache, *, binning: bool) -> None:
        self.check = check
        self.programs = programs
        self.binning = binning
        self._known: Bounded[int, tuple[ShaderRecord, int, int]] = Bounded(MAX_SHADERS)
        """Shaders that were met, by their ids, and the vertices from the first to the last."""

    def forget(self) -> None:
        """Shader records that were met are looked at again."""
        self._known.clear()

    def draw(self, shader: ShaderRecord, kind: int, first: int, last: int) -> None:
        """A draw of vertices `first` to `last` with a shader state of record `kind`."""
        key = id(shader)
        low, high = first, last
        known = self._known.get(key)
        if known is not None and known[0] is shader:
            low, high = min(first, known[1]), max(last, known[2])
            if not self.check.used.subscriptions and (low, high) == known[1:]:
                return
        self._known[key] = shader, low, high
        self._ranges(shader, kind, first, last, checked=True)

    def announce(self, shader: ShaderRecord | None, kind: int, first: int, last: int) -> None:
        """Reports a draw that was executed natively to listeners; nothing is checked."""
        if shader is not None:
            with suppress(Unsupported):  # no draw that is done has such a program
                self._ranges(shader, kind, first, last, checked=False)

    def noted(self, notes: Iterable[Any]) -> None:
        """The memory of records that native binning has executed: its `Note`s, in order."""
        name = self.check.name
        for note in notes:
            record, place, size = (n & _WORD for n in (note.record, note.place, note.byte_count))
            if note.op == TileBinningMode.id:
                name(Use.TILE_MEMORY, place, size, record)
                name(Use.TILE_STATE, note.state & _WORD, TILE_STATE_BYTES * note.tiles, record)
                continue
            if size:
                name(Use.INDICES, place, size, record)
            kind = note.shader_kind
            shader = read_shader_record(self.programs.memory, kind, note.shader_word & _WORD)
            self.announce(shader, kind, note.first, note.last)

    def _ranges(self, shader: ShaderRecord, kind: int, first: int, last: int, checked: bool) -> None:
        binning = self.binning
        uses = self.check.uses if checked else self.check.name
        where = None if kind == VgInlineShader.id else shader.address
        if not binning:
            self._program(shader.code, shader.uniforms, where, checked)
        if shader.gl is not None:
            record = shader.gl.record
            arrays = shader.gl.attributes
            size = gl_record_size(len(arrays), shader.gl.extended)
            uses(Use.SHADER_RECORD, shader.address, size)
            if binning:
                self._program(record.cs_code, record.cs_uniforms, where, checked)
            else:
                self._program(record.vs_code, record.vs_uniforms, where, checked)
            selected = int(record.cs_attributes if binning else record.vs_attributes)
            for number, array in enumerate(arrays):
                if selected >> number & 1 and last >= first:
                    start = array.address + first * array.stride & 0xFFFFFFFF
                    size = (last - first) * array.stride + array.size
                    uses(Use.ATTRIBUTES, start, size, where)
        elif shader.nv is not None:
            uses(Use.SHADER_RECORD, shader.address, 16)
            if last >= first:
                stride = int(shader.nv.stride)
                start = int(shader.nv.vertices) + first * stride & 0xFFFFFFFF
                uses(Use.ATTRIBUTES, start, (last - first + 1) * stride, where)
        elif where is not None:
            uses(Use.SHADER_RECORD, shader.address, 12)

    def _program(self, code: int, uniforms: int, where: int | None, checked: bool) -> None:
        """A program, the uniforms it consumes, and the textures they name."""
        programs = self.programs
        program = programs.get(code)
        uses = self.check.uses if checked else self.check.name
        uses(Use.CODE, code, 8 * len(program.words), where)
        count = len(program.uniform_sites)
        if not count:
            return
        uses(Use.UNIFORMS, uniforms, 4 * count, where)
        stream = programs.layout(program, uniforms).places
        bit_utile = programs.unknowns["tmu_bw1_utile"]
        for request in program.texture_requests:
            places = None if request.is_direct else known_places(stream, request)
            if not places and self.check.used.subscriptions:
                self.check.name(Use.LOOKUPS, uniforms, 0, where)
            if places:
                for place in places:
                    if place >= 4 * count:
                        uses(Use.UNIFORMS, (uniforms + place) & 0xFFFFFFFF, 4, where)
                words = tuple(programs.memory.u32(uniforms + place) for place in places)
                if len(words) > 1:
                    place = (uniforms + places[0]) & 0xFFFFFFFF
                    uses(Use.TEXTURE, *texture_range(words, bit_utile), place)
                    if checked:
                        self._aligned(words[0], place)

    def _aligned(self, parameter: int, place: int) -> None:
        """A texture's address has no bits below 4 KiB: flags are there, two of them unused."""
        if parameter & CACHE_SWIZZLE:
            self.check.reporter.report(
                "MEM-002",
                f"texture parameter 0 is 0x{parameter:08x}: bits 11:10 (cache swizzle, 0 in every "
                "driver) are set; is the texture's address not a multiple of 4096?",
                address=place,
            )

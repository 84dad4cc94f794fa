"""Times a shader on the chip: it is drawn in a picture of its own, which the model times.

    taken = clocks_of(parse(text), load_chip("videocore4"), "pi3")
    taken.uses["fragment"].clocks, taken.uses["fragment"].hot

The picture has 256 x 256 pixels, of 4 x 4 squares, or of 32 x 32 for a vertex shader. Textures are of
64 x 64 texels, uniforms are 0.5 where they are floats and 4 where they are whole numbers; those of a vertex
shader are matrices that change nothing, so that its vertices are in the picture. The other stage only
passes values on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from vc4lab.diagnostics import Reporter
from vc4lab.driver.compiler.compile import USUAL, Choices
from vc4lab.driver.compiler.interface import Varying
from vc4lab.driver.compiler.ssa.from_tgsi import to_ssa
from vc4lab.driver.compiler.ssa.ops import OPS
from vc4lab.driver.compiler.tgsi.program import File, Program, Texture, print_tgsi
from vc4lab.driver.program_cache import mesa_compiler
from vc4lab.driver.screen import VideoCoreScreen
from vc4lab.mesa.protocol import messages, objects
from vc4lab.mesa.protocol.codes import Compare, MipFilter, Primitive, Stage, Swizzle, Target, Wrap
from vc4lab.mesa.protocol.formats import Format
from vc4lab.mesa.protocol.objects import BlendTarget
from vc4lab.mesa.protocol.state_commands import VertexBuffer, Viewport
from vc4lab.mesa.protocol.work_commands import Clear, DrawVbo
from vc4lab.mesa.state.pipe import (
    BoundSurface,
    BoundVertices,
    BoundView,
    Framebuffer,
    PipeState,
    Shader,
    StageState,
)
from vc4lab.mesa.store.resources import Box, Resource
from vc4lab.timing.boards import board_of, speeds_of
from vc4lab.timing.chip import Chip
from vc4lab.timing.frame_times import model_of
from vc4lab.timing.frames.feed import FrameFeed
from vc4lab.timing.frames.frame import Frame
from vc4lab.timing.graphics.result import ShaderUse

SIZE, TEXELS = 256, 64
SQUARES = {"VERT": 32, "FRAG": 4}
"""Squares of the grid, in each direction."""
TURNS = 4
"""Whole numbers among uniforms: mostly how often a loop turns."""
IN_DRAW, IN_SHADER, IN_VERTICES = 2, 8, 16
"""Gallium's bind flags: render target, sampler view, vertex buffer."""
CLEAR_ALL = 7
_SWIZZLED = "swizzle_r", "swizzle_g", "swizzle_b", "swizzle_a"
_XYZW = Swizzle.X, Swizzle.Y, Swizzle.Z, Swizzle.W
NO_VARYINGS = ("POSITION", "FACE", "PCOORD", "PSIZE")


class Taken(NamedTuple):
    """The timing of a shader.

    Attributes
    ----------
    uses
        By "fragment", "vertex" and "coordinate"; `hot` has all instructions of a program.
    varyings
        The varyings that the vertex program writes, in its order.
    """

    uses: dict[str, ShaderUse]
    varyings: tuple[Varying, ...]


class NotTimed(ValueError):  # noqa: N818 - said to the user as it is
    """The shader could not be drawn or timed; the text says why."""


def clocks_of(
    program: Program,
    chip: Chip,
    board: str = "",
    *,
    blend: BlendTarget | None = None,
    depth: bool = True,
    choices: Choices = USUAL,
) -> Taken:
    """Time the programs of a draw with a shader. Raises NotTimed."""
    found = Taken({}, ())
    for turn in range(4 if program.stage == "VERT" else 1):
        found = _timed(_Picture(program, turn, blend, depth, choices), chip, board)
        if "vertex" in found.uses:
            break
    return found


def _timed(picture: _Picture, chip: Chip, board: str) -> Taken:
    frames: list[Frame] = []
    varyings: list[tuple[Varying, ...]] = [()]
    picture.screen.listeners.draw.subscribe(lambda event: varyings.append(event.pipeline.vertex_key.varyings))
    with FrameFeed(picture.screen.runner.v3d, frames.append):
        picture.draw()
    problems = picture.problems
    if not frames:
        raise NotTimed("; ".join(problems[:2]) or "nothing was drawn")
    model = model_of(chip, speeds_of(chip).of_board[board_of(chip, board)])
    model.feed.names_all = True
    frame = frames[-1]
    try:
        *_, timing = model.run([frame, frame])
    except ValueError as error:
        raise NotTimed(str(error)) from None
    return Taken({one.kind: one for one in timing.shaders}, varyings[-1])


class _Picture:
    """The draw of one shader. turn: how the matrices lie among the uniforms of a vertex shader."""

    def __init__(
        self, program: Program, turn: int, blend: BlendTarget | None, depth: bool, choices: Choices
    ) -> None:
        self.problems: list[str] = []
        reporter = Reporter()
        reporter.listeners.append(lambda item: self.problems.append(str(item)))
        self.screen = VideoCoreScreen(reporter, mesa_compiler(choices))
        self._program = program
        self._depth = depth
        is_vertex = program.stage == "VERT"
        other = _fragment_for(program) if is_vertex else _vertex_for(program)
        own = StageState(
            Shader(Stage.VERTEX if is_vertex else Stage.FRAGMENT, print_tgsi(program)),
            (_constants(program, turn),),
            *self._textures(program),
        )
        partner = StageState(Shader(Stage.FRAGMENT if is_vertex else Stage.VERTEX, other))
        inputs = _count(program, File.IN) if is_vertex else 2
        self._state = self._made(blend, inputs, *((own, partner) if is_vertex else (partner, own)))

    def draw(self) -> None:
        """Clear, and draw the grid."""
        self.screen.clear(self._state.framebuffer, Clear(CLEAR_ALL, (0.0, 0.0, 0.0, 0.0), 1.0, 0))
        count = 6 * SQUARES[self._program.stage] ** 2
        draw = _with(
            DrawVbo, count=count, mode=Primitive.TRIANGLES, instance_count=1, max_index=count - 1, start=0
        )
        self.screen.draw(self._state, draw)
        self.screen.finish()

    def _made(
        self, blend: BlendTarget | None, inputs: int, vertex: StageState, fragment: StageState
    ) -> PipeState:
        colour = self._resource(Format.R8G8B8A8_UNORM, SIZE, IN_DRAW)
        depth = self._resource(Format.X8Z24_UNORM, SIZE, 1)
        rows = np.repeat(_grid(SQUARES[self._program.stage]), max(inputs, 1), axis=0).reshape(
            -1, 4 * max(inputs, 1)
        )
        data = np.ascontiguousarray(rows, np.float32).tobytes()
        buffer = self._resource(Format.R8_UNORM, len(data), IN_VERTICES, Target.BUFFER)
        self.screen.write(buffer, 0, Box(0, 0, 0, len(data), 1, 1), data, (0, 0))
        element = int(Format.R32G32B32A32_FLOAT)
        target = blend or _with(BlendTarget, colormask=15)
        half = SIZE / 2
        return PipeState(
            blend=_with(objects.BlendState, rt=(target,) * 8),
            rasterizer=_with(
                objects.RasterizerState,
                depth_clip=True,
                half_pixel_center=True,
                point_size=1.0,
                line_width=1.0,
            ),
            dsa=_with(
                objects.DepthStencilAlphaState,
                depth_enabled=self._depth,
                depth_func=Compare.ALWAYS,
                stencil=(_with(objects.StencilFace),) * 2,
            ),
            vertex_elements=objects.VertexElements(
                tuple(objects.VertexElement(16 * number, 0, 0, element) for number in range(inputs))
            ),
            framebuffer=Framebuffer(
                (BoundSurface(objects.Surface(0, Format.R8G8B8A8_UNORM, 0, 0, 0), colour),),
                BoundSurface(objects.Surface(0, Format.X8Z24_UNORM, 0, 0, 0), depth),
            ),
            viewports=(Viewport((half, half, 0.5), (half, half, 0.5)),),
            vertex_buffers=(BoundVertices(VertexBuffer(16 * inputs, 0, 0), buffer),),
            vertex=vertex,
            fragment=fragment,
        )

    def _resource(
        self, format_: Any, width: int, bind: int, target: Target = Target.TEXTURE_2D, layers: int = 1
    ) -> Resource:
        height = 1 if target is Target.BUFFER else width
        return self.screen.create(
            messages.ResourceCreate(0, target, format_, bind, width, height, 1, layers, 0, 0)
        )

    def _textures(self, program: Program) -> tuple[tuple[BoundView, ...], tuple[Any, ...]]:
        """A texture for each sampler, of the kind that the shader samples."""
        kinds = {
            one.sources[-1].register.number: one.texture
            for one in program.instructions
            if one.texture is not None and one.sources and one.sources[-1].register.file is File.SAMP
        }
        views, samplers = [], []
        for number in range(max(kinds, default=-1) + 1):
            kind = kinds.get(number)
            is_cube = kind in (Texture.CUBE, Texture.SHADOWCUBE)
            target = Target.TEXTURE_CUBE if is_cube else Target.TEXTURE_2D
            texture = self._resource(Format.R8G8B8A8_UNORM, TEXELS, IN_SHADER, target, 6 if is_cube else 1)
            view = _with(
                objects.SamplerView,
                format=Format.R8G8B8A8_UNORM,
                last_layer=5 if is_cube else 0,
                **dict(zip(_SWIZZLED, _XYZW, strict=True)),
            )
            views.append(BoundView(view, texture))
            wraps = dict.fromkeys(("wrap_s", "wrap_t", "wrap_r"), Wrap.CLAMP_TO_EDGE)
            sampler = _with(objects.SamplerState, **wraps, min_mip_filter=MipFilter.NONE, max_lod=1000.0)
            samplers.append(sampler)
        return tuple(views), tuple(samplers)


def _grid(squares: int) -> np.ndarray:
    """Corners of the grid's triangles: x, y, z, w."""
    corners = np.array([(0, 0), (1, 0), (0, 1), (0, 1), (1, 0), (1, 1)], np.float32)
    rows, columns = np.mgrid[:squares, :squares]
    places = np.stack((columns, rows), axis=-1).reshape(-1, 1, 2) + corners
    flat = places.reshape(-1, 2) * (2 / squares) - 1
    return np.hstack((flat, np.tile(np.array((0.25, 1.0), np.float32), (len(flat), 1))))


Made = TypeVar("Made")


def _with(kind: type[Made], **fields: Any) -> Made:
    """A state object or command, whose other fields are 0."""
    return kind(**fields)


def _count(program: Program, file: File) -> int:
    return max((one.last + 1 for one in program.declarations if one.file is file), default=0)


def _constants(program: Program, turn: int) -> bytes:
    """Uniforms as words."""
    count = 4 * _count(program, File.CONST)
    words = np.full(count, 0.5, np.float32)
    if program.stage == "VERT":
        register, component = np.divmod(np.arange(count), 4)
        words = ((register + turn) % 4 == component).astype(np.float32)
    found = words.view(np.uint32).copy()
    for value in to_ssa(program).values():
        takes = OPS[value.op].takes
        for arg, kind in zip(value.args, takes, strict=False):
            if arg.op == "uniform" and kind == "i":
                place = 4 * arg.attributes[1] + arg.attributes[2]
                if place < count:
                    found[place] = TURNS
    return found.tobytes()


def _varyings(program: Program, file: File) -> list[Any]:
    return [
        replace(one, file=File.OUT if file is File.IN else File.IN)
        for one in program.declarations
        if one.file is file
        and one.semantic is not None
        and one.semantic.name not in ("POSITION", "FACE", "PCOORD")
        if one.semantic.name != "PSIZE"
    ]


def _vertex_for(program: Program) -> str:
    """TGSI that gives each varying the second attribute."""
    lines = ["VERT", "DCL IN[0]", "DCL IN[1]", "DCL OUT[0], POSITION"]
    moves = ["MOV OUT[0], IN[0]"]
    for one in _varyings(program, File.IN):
        for number in range(one.first, one.last + 1):
            semantic = replace(one.semantic, index=one.semantic.index + number - one.first)
            lines.append(f"DCL OUT[{len(moves)}], {semantic}")
            moves.append(f"MOV OUT[{len(moves)}], IN[1]")
    return _text(lines, moves)


def _fragment_for(program: Program) -> str:
    """TGSI that adds all varyings."""
    lines = ["FRAG", "PROPERTY FS_COLOR0_WRITES_ALL_CBUFS 1"]
    sums = ["MOV TEMP[0], IMM[0].xxxx"]
    number = 0
    for one in _varyings(program, File.OUT):
        for step in range(one.last - one.first + 1):
            semantic = replace(one.semantic, index=one.semantic.index + step)
            lines.append(f"DCL IN[{number}], {semantic}, PERSPECTIVE")
            sums += [f"ADD TEMP[0].x, TEMP[0].xxxx, IN[{number}].{4 * letter}" for letter in one.mask]
            number += 1
    lines += [
        "DCL OUT[0], COLOR",
        "DCL TEMP[0]",
        "IMM[0] FLT32 {0x00000000, 0x00000000, 0x00000000, 0x00000000}",
    ]
    return _text(lines, [*sums, "MOV OUT[0], TEMP[0].xxxx"])


def _text(lines: list[str], instructions: list[str]) -> str:
    rows = [f"{number:3d}: {one}" for number, one in enumerate([*instructions, "END"])]
    return "\n".join([*lines, *rows]) + "\n"


def shares(use: ShaderUse) -> Mapping[int, tuple[float, int]]:
    """Return each instruction's clocks for a thread, and how often it was issued, by its index."""
    return {
        (one.address - use.code) // 8: (one.clocks / max(use.threads, 1), one.executed) for one in use.hot
    }

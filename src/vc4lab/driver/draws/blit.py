"""Blits as draws: a rectangle of the target, textured with the source.

Levels are sampled by their number, so that a texture's levels can be made of each other. What the
texture unit or the tile buffer cannot do (depth, parts of a colour, a level onto itself) is left to
the processor.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from vc4lab.driver.commands import commands
from vc4lab.driver.draws.textures import TYPES
from vc4lab.driver.frames.target import MAX_SIZE, ORDERS
from vc4lab.mesa.protocol import objects as declared
from vc4lab.mesa.protocol.codes import Filter, MipFilter, Primitive, Stage, Swizzle, Target, Wrap
from vc4lab.mesa.protocol.formats import Format, layout_of
from vc4lab.mesa.protocol.state_commands import Scissor, VertexBuffer, Viewport
from vc4lab.mesa.state.pipe import (
    BoundSurface,
    BoundVertices,
    BoundView,
    Framebuffer,
    PipeState,
    Shader,
    StageState,
)
from vc4lab.mesa.store.blits import linear_pair

if TYPE_CHECKING:
    from vc4lab.driver.commands.commands import Blit, Draw
    from vc4lab.driver.draws.prepared import PreparedDraw
    from vc4lab.driver.gpu.memory import GpuMemory, GpuResource

objects: Any = declared
"""Fields that are not named have their defaults, which type checkers do not see."""
make_draw: Any = commands.Draw
ALL_COLOURS = 15
CORNERS = 4
_VERTEX = Shader(
    Stage.VERTEX,
    """VERT
DCL IN[0]
DCL IN[1]
DCL OUT[0], POSITION
DCL OUT[1], GENERIC[0]
  0: MOV OUT[0], IN[0]
  1: MOV OUT[1], IN[1]
  2: END
""",
)
_FRAGMENT = Shader(
    Stage.FRAGMENT,
    """FRAG
PROPERTY FS_COLOR0_WRITES_ALL_CBUFS 1
DCL IN[0], GENERIC[0], PERSPECTIVE
DCL OUT[0], COLOR
DCL SAMP[0]
DCL TEMP[0], LOCAL
  0: TXL TEMP[0], IN[0], SAMP[0], 2D
  1: MOV OUT[0], TEMP[0]
  2: END
""",
)
_VEC4 = Format.R32G32B32A32_FLOAT
_ROW = 32
"""Bytes of a vertex: its position, and s, t, 0, level."""
_RECTANGLE = CORNERS * _ROW
MAX_KNOWN = 256
_ELEMENTS = objects.VertexElements(
    (objects.VertexElement(0, 0, 0, _VEC4), objects.VertexElement(16, 0, 0, _VEC4))
)
_BLEND = objects.BlendState(rt=(objects.BlendTarget(colormask=ALL_COLOURS),) * 8)
_RASTERIZER = objects.RasterizerState(scissor=True, half_pixel_center=True, point_size=1.0, line_width=1.0)
_DSA = objects.DepthStencilAlphaState(stencil=(objects.StencilFace(), objects.StencilFace()))
_EDGE = Wrap.CLAMP_TO_EDGE
_SAMPLERS = {
    one: objects.SamplerState(
        wrap_s=_EDGE,
        wrap_t=_EDGE,
        wrap_r=_EDGE,
        min_img_filter=one,
        mag_img_filter=one,
        min_mip_filter=MipFilter.NEAREST,
        max_lod=1000.0,
    )
    for one in Filter
}


NO_USE = (ctypes.c_uint32 * 3)()
"""Counters of the uses of rectangles, which are never written again."""


class _Rectangle:
    """Vertices that stay in GPU memory, in the place of a buffer."""

    number = -1
    is_buffer = True

    def __init__(self, address: int, size: int) -> None:
        self.address, self.size = address, size
        self.used = NO_USE


@dataclass
class KnownBlit:
    """A blit as a draw.

    Attributes
    ----------
    vertices
        Their address in GPU memory.
    covers_target
        Whether nothing of the target's level stays.
    prepared
        The prepared draw that adds it again, from the time before.
    """

    target: GpuResource
    source: GpuResource
    vertices: int
    state: PipeState
    draw: Draw
    covers_target: bool
    prepared: PreparedDraw | None = None


def is_drawn(command: Blit, target: GpuResource, source: GpuResource) -> bool:
    """Whether a blit can be a draw; what is wrong with it, others report."""
    if source.samples > 1:  # a resolve, or samples to samples
        return False
    same = target is source and command.target_level == command.source_level
    if same or command.mask != ALL_COLOURS or command.render_condition_enable:
        return False
    if target.is_buffer or source.is_buffer or command.alpha_blend:
        return False
    formats = command.target_format in ORDERS and command.source_format in TYPES
    sizes = max(target.width, target.height, source.width, source.height) <= MAX_SIZE
    levels = command.target_level <= target.last_level and command.source_level <= source.last_level
    depths = command.target_box[5], command.source_box[5]
    layers = depths == (1, 1) and min(command.target_box[2], command.source_box[2]) >= 0
    return (
        (formats and sizes and levels and layers)
        and _has_size(target, command.target_format)
        and _has_size(source, command.source_format)
        and command.target_box[2] < target.levels[0].layers
        and command.source_box[2] < source.levels[0].layers
        and not source.layout.has_depth
    )


def _has_size(resource: GpuResource, format_: Any) -> bool:
    """Whether a format's texels are as large as those of a texture."""
    layout = layout_of(format_)
    return layout is not None and layout.block_bytes == resource.layout.block_bytes


class BlitDraws:
    """Makes draws of blits. The same blit is the same draw again, until a resource goes."""

    def __init__(self, memory: GpuMemory) -> None:
        self._memory = memory
        self._vertices = memory.store(bytes(MAX_KNOWN * _RECTANGLE))
        self._known: dict[Blit, KnownBlit] = {}

    @property
    def is_full(self) -> bool:
        """Whether those that are known must be forgotten before there is another one."""
        return len(self._known) >= MAX_KNOWN

    def forget(self) -> None:
        """A resource went, or it is full. No frame may wait that has one of these draws."""
        self._known.clear()

    def of(self, command: Blit, target: GpuResource, source: GpuResource) -> KnownBlit:
        """A blit as a draw; `is_full` was asked before."""
        known = self._known.get(command)
        if known is not None and known.target is target and known.source is source:
            return known
        address = self._vertices + len(self._known) * _RECTANGLE
        if known is not None:
            address = known.vertices
        self._memory.guest.write(address, _vertices(command, target, source).tobytes())
        rectangle: Any = _Rectangle(address, _RECTANGLE)
        made = self._known[command] = KnownBlit(
            target,
            source,
            address,
            _state(command, target, source, rectangle),
            make_draw(mode=Primitive.TRIANGLE_FAN, count=CORNERS, instances=1, max_index=CORNERS - 1),
            _covers(command, target),
        )
        return made


def _covers(command: Blit, target: GpuResource) -> bool:
    x, y, _, width, height, _ = command.target_box
    level = target.levels[command.target_level]
    whole = min(x, x + width) <= 0 and max(x, x + width) >= level.width
    whole &= min(y, y + height) <= 0 and max(y, y + height) >= level.height
    return whole and not command.scissor_enable


def _state(command: Blit, target: GpuResource, source: GpuResource, rectangle: Any) -> PipeState:
    level = target.levels[command.target_level]
    layer = command.target_box[2]
    target_format, source_format = linear_pair(command.target_format, command.source_format)
    surface = objects.Surface(0, target_format, command.target_level, layer, layer)
    layer = command.source_box[2]
    view = objects.SamplerView(
        format=source_format,
        target=int(Target.TEXTURE_2D),
        first_layer=layer,
        last_layer=layer,
        last_level=command.source_level,
        swizzle_r=Swizzle.X,
        swizzle_g=Swizzle.Y,
        swizzle_b=Swizzle.Z,
        swizzle_a=Swizzle.W,
    )
    half = level.width / 2, level.height / 2
    scissor = Scissor(0, 0, level.width, level.height)
    return PipeState(
        blend=_BLEND,
        rasterizer=_RASTERIZER,
        dsa=_DSA,
        vertex_elements=_ELEMENTS,
        vertex_buffers=(BoundVertices(VertexBuffer(_ROW, 0, 0), rectangle),),
        framebuffer=Framebuffer((BoundSurface(surface, target),)),
        viewports=(Viewport((*half, 0.5), (*half, 0.5)),),
        scissors=(command.scissor[0] if command.scissor_enable else scissor,),
        vertex=StageState(_VERTEX),
        fragment=StageState(
            _FRAGMENT, views=(BoundView(view, source),), samplers=(_SAMPLERS[command.filter],)
        ),
    )


def _vertices(command: Blit, target: GpuResource, source: GpuResource) -> np.ndarray[Any, Any]:
    """Four corners (position, texture coordinates with the level) in order round the rectangle."""
    rows = np.zeros((CORNERS, 8), np.float32)
    rows[:, 3] = 1
    rows[:, 7] = command.source_level
    to, of = target.levels[command.target_level], source.levels[command.source_level]
    for axis, (size, extent) in enumerate(((to.width, of.width), (to.height, of.height))):
        ends = [command.target_box[axis], command.target_box[axis] + command.target_box[3 + axis]]
        texels = [command.source_box[axis], command.source_box[axis] + command.source_box[3 + axis]]
        order = (0, 1, 1, 0) if axis == 0 else (0, 0, 1, 1)
        rows[:, axis] = [ends[one] / (size / 2) - 1 for one in order]
        rows[:, 4 + axis] = [texels[one] / extent for one in order]
    return rows

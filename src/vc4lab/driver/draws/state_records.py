"""State records of a draw (96 to 106), and the stencil set-up words that its program writes.

Source: hardware reference 7.9.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from vc4lab.bits import Bits, Layout
from vc4lab.driver.draws.polygons import flat_varyings
from vc4lab.mesa.protocol.codes import Compare, Face, StencilOp
from vc4lab.mesa.protocol.state_commands import Viewport
from vc4lab.mesa.store.resources import Refused
from vc4lab.records import declarations as d
from vc4lab.records import states
from vc4lab.records.codes import Oversample
from vc4lab.records.control import build

if TYPE_CHECKING:
    from vc4lab.driver.compiler.interface import Varying
    from vc4lab.driver.frames.target import FrameTarget
    from vc4lab.mesa.protocol.objects import DepthStencilAlphaState, RasterizerState, StencilFace
    from vc4lab.mesa.protocol.state_commands import SetStencilRef
    from vc4lab.mesa.state.pipe import PipeState

SUBPIXELS = 16
_FIXED_MAX = (1 << 15) - 1


class Window(NamedTuple):
    """The pixels that a draw may touch: left, top, and after the last."""

    left: int
    top: int
    right: int
    bottom: int

    @property
    def is_empty(self) -> bool:
        """Whether there are none."""
        return self.left >= self.right or self.top >= self.bottom


def viewport_of(state: PipeState) -> Viewport:
    """The first viewport. Raises Refused without one, or for numbers that are none."""
    viewport = state.viewports[0] if state.viewports else None
    if viewport is None:
        raise Refused("GL-015", "there is no viewport")
    if not all(abs(number) < 1e6 for number in (*viewport.scale, *viewport.translate)):
        raise Refused("GL-015", f"a viewport of {viewport.text()}")
    return viewport


def clip_window(state: PipeState, viewport: Viewport, target: FrameTarget) -> Window:
    """Frame, viewport and scissor together: the binner clips only to a guard band."""
    half_width, half_height = abs(viewport.scale[0]), abs(viewport.scale[1])
    middle_x, middle_y = viewport.translate[0], viewport.translate[1]
    left, right = max(middle_x - half_width, 0), min(middle_x + half_width, target.width)
    top, bottom = max(middle_y - half_height, 0), min(middle_y + half_height, target.height)
    rasterizer = state.rasterizer
    scissor = state.scissors[0] if state.scissors else None
    if rasterizer is not None and rasterizer.scissor and scissor is not None:
        left, right = max(left, scissor.minx), min(right, scissor.maxx)
        top, bottom = max(top, scissor.miny), min(bottom, scissor.maxy)
    return Window(int(left), int(top), round(right), round(bottom))


def state_records(
    rasterizer: RasterizerState,
    dsa: DepthStencilAlphaState,
    viewport: Viewport,
    window: Window,
    varyings: tuple[Varying, ...],
    *,
    is_triangles: bool,
    has_depth: bool,
    is_sampled: bool = False,
) -> dict[int, bytes]:
    """The records by their ids, in the order in which lists have them.

    has_depth: the frame has a depth buffer. is_triangles: neither points nor lines. is_sampled:
    pixels of the frame have four samples.
    """
    tests_depth = dsa.depth_enabled and has_depth
    offset = is_triangles and rasterizer.offset_tri
    cull = rasterizer.cull_face if is_triangles else Face.NONE
    made = [
        build(
            states.ConfigurationBits,
            enable_forward=not cull & Face.FRONT,
            enable_reverse=not cull & Face.BACK,
            # Rows of pictures in memory go downwards.
            clockwise=rasterizer.front_ccw,
            enable_depth_offset=offset,
            # Without, all samples are covered if the pixel's centre is.
            oversample=Oversample.X4 if is_sampled and rasterizer.multisample else Oversample.NONE,
            depth_test=dsa.depth_func if tests_depth else Compare.ALWAYS,
            z_update=tests_depth and dsa.depth_writemask,
        ),
        build(states.FlatShadeFlags, flags=flat_varyings(rasterizer, varyings)),
        build(states.PointSize, point_size=max(rasterizer.point_size, 0.125)),
        build(states.LineWidth, line_width=rasterizer.line_width),
        build(states.ClipWindow, **_extent(window)),
        build(states.ViewportOffset, x=_fixed(viewport.translate[0]), y=_fixed(viewport.translate[1])),
        build(d.ClipperXyScaling, x=viewport.scale[0] * SUBPIXELS, y=viewport.scale[1] * SUBPIXELS),
        build(d.ClipperZScale, scale=viewport.scale[2], offset=viewport.translate[2]),
    ]
    if offset:
        made.append(build(states.DepthOffset, factor=rasterizer.offset_scale, units=rasterizer.offset_units))
    return {record[0]: record for record in made}


def _extent(window: Window) -> dict[str, int]:
    return {
        "left": window.left,
        "bottom": window.top,
        "width": window.right - window.left,
        "height": window.bottom - window.top,
    }


def _fixed(pixels: float) -> int:
    """In sixteenths of a pixel, as far as 16 bits reach."""
    return min(max(int(pixels * SUBPIXELS), -_FIXED_MAX - 1), _FIXED_MAX)


FRONT, BACK, BOTH = 1, 2, 3
MASK_CODES = {0x01: 0, 0x03: 1, 0x0F: 2, 0xFF: 3}
"""Write masks that the set-up of a face can name; others take a word for both faces."""
_OPS = {
    StencilOp.ZERO: 0,
    StencilOp.KEEP: 1,
    StencilOp.REPLACE: 2,
    StencilOp.INCR: 3,
    StencilOp.DECR: 4,
    StencilOp.INVERT: 5,
    StencilOp.INCR_WRAP: 6,
    StencilOp.DECR_WRAP: 7,
}


class StencilSetup(Layout):
    """One face, or both; `side` 0: full write masks instead (`StencilMasks`)."""

    side = Bits(31, 30)
    mask_code = Bits(29, 28)
    z_fail = Bits(27, 25)
    z_pass = Bits(24, 22)
    fail = Bits(21, 19)
    function = Bits(18, 16)
    reference = Bits(15, 8)
    value_mask = Bits(7, 0)


class StencilMasks(Layout):
    """Write masks of any bits."""

    back = Bits(15, 8)
    front = Bits(7, 0)


def stencil_words(dsa: DepthStencilAlphaState, reference: SetStencilRef) -> tuple[int, ...]:
    """The words of a state, in the order in which they are written; none without a test."""
    front, back = dsa.stencil
    if not front.enabled:
        return ()
    if not back.enabled:
        back = front
        words = [_setup(BOTH, front, reference.front)]
    else:
        words = [_setup(FRONT, front, reference.front), _setup(BACK, back, reference.back)]
    if not {front.writemask, back.writemask} <= MASK_CODES.keys():
        words.append(int(StencilMasks.make(front=front.writemask, back=back.writemask)))
    return tuple(words)


def _setup(side: int, face: StencilFace, reference: int) -> int:
    return int(
        StencilSetup.make(
            side=side,
            mask_code=MASK_CODES.get(face.writemask, 0),
            z_fail=_OPS[face.zfail_op],
            z_pass=_OPS[face.zpass_op],
            fail=_OPS[face.fail_op],
            function=face.func,
            reference=reference,
            value_mask=face.valuemask,
        )
    )

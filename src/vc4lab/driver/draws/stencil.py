"""Stencil set-up words, which fragment programs write to the tile buffer.

Source: hardware reference 7.9.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vc4lab.bits import Bits, Layout
from vc4lab.mesa.protocol.codes import StencilOp

if TYPE_CHECKING:
    from vc4lab.mesa.protocol.objects import DepthStencilAlphaState, StencilFace
    from vc4lab.mesa.protocol.state_commands import SetStencilRef

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

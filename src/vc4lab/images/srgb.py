"""sRGB: the curve between stored and linear colours, for what is not drawn (numpy).

Source: OpenGL 2.1 specification, section 3.8.16; GL_ARB_framebuffer_sRGB. Programs of the QPU have
the same curve in `driver/compiler/lower/srgb.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

STORED_EDGE, LINEAR_EDGE = 0.04045, 0.0031308
"""Below, the curve is a line."""
SLOPE, OFFSET, EXPONENT = 12.92, 0.055, 2.4


def linear(stored: ArrayLike) -> NDArray[Any]:
    """Linear colours of stored ones, both 0 to 1."""
    x = np.asarray(stored)
    return np.where(x <= STORED_EDGE, x / SLOPE, ((x + OFFSET) / (1 + OFFSET)) ** EXPONENT)


def stored(linear_: ArrayLike) -> NDArray[Any]:
    """Stored colours of linear ones; what is not between 0 and 1 is clamped, NaN is 0."""
    x = np.clip(np.nan_to_num(np.asarray(linear_)), 0, 1)
    curved = (1 + OFFSET) * x ** (1 / EXPONENT) - OFFSET
    found: NDArray[Any] = np.where(x <= LINEAR_EDGE, x * SLOPE, curved)
    return found

"""A matrix product: 16 rows by 48 columns of the result in registers, one matrix as uniforms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import vc4lab
from vc4lab.kernels.python import (
    Array,
    Float,
    InOut,
    Int,
    dma_store,
    index,
    me,
    mutex,
    next_uniform,
    qpus,
    setup_vpm_write,
    uniforms_at,
    unroll,
    write_vpm,
)

if TYPE_CHECKING:
    import numpy as np

COLUMNS, DEPTH = 48, 4
"""Columns of a tile; products that a turn of the inner loop adds to each of its elements."""


@vc4lab.qpu_kernel
def product(
    a: Array[Float], b: Array[Float], c: InOut[Float], p: Int, q: Int, r: Int, alpha: Float, beta: Float
) -> None:
    """c = alpha a @ b + beta c.

    a: (p, q), b: (q, r), c: (p, r). p, q, r: multiples of 16, 4 and 48.
    """
    for column in range(COLUMNS * me(), r, COLUMNS * qpus()):
        for row in range(0, p, 16):
            total = [Float(0) for _ in unroll(COLUMNS)]
            left, right = a + (row + index()) * q, b + column
            for _ in range(0, q, DEPTH):
                for k in unroll(DEPTH):
                    uniforms_at(right)
                    value = left[k]
                    for n in unroll(COLUMNS):
                        total[n] = total[n] + value * next_uniform(Float)
                    right = right + r
                left = left + DEPTH
            corner = c + (row * r + column)
            old = corner + index() * r
            for first in unroll(COLUMNS // 16):
                with mutex():  # rows of lanes become columns of memory
                    setup_vpm_write(0, vertical=True)
                    for n in unroll(16):
                        n += 16 * first
                        write_vpm(alpha * total[n] + beta * old[n])
                    dma_store(corner + 16 * first, 0, rows=16, pitch=r)


def sgemm(a: np.ndarray, b: np.ndarray, qpus: int = 12) -> np.ndarray:
    """a @ b, for matrices of any shape."""
    import numpy as np

    (p, q), r = a.shape, b.shape[1]
    extra = -p % 16, -q % DEPTH, -r % COLUMNS
    left = np.pad(a, ((0, extra[0]), (0, extra[1])))
    right = np.pad(b, ((0, extra[1]), (0, extra[2])))
    c = np.zeros((left.shape[0], right.shape[1]), np.float32)
    found = product(left, right, c, *left.shape, right.shape[1], alpha=1.0, beta=0.0, qpus=qpus)
    return found[:p, :r]


if __name__ == "__main__":
    import numpy as np

    a, b = np.random.default_rng(1).normal(size=(2, 100, 100)).astype(np.float32)
    print(np.abs(sgemm(a, b) - a @ b).max(), product.report)

"""Sums of all values up to each one: inside of a vector in four steps, from vector to vector by hand."""

import vc4lab
from vc4lab.kernels.python import Array, Float, Int, Out, broadcast, index, me, qpus, rotate


@vc4lab.qpu_kernel
def prefix_sums(x: Array[Float], sums: Out[Float], columns: Int) -> None:
    """Each row of a matrix: sums[r, c] = x[r, 0] + … + x[r, c]. columns: a multiple of 16."""
    for row in range(me(), x.length, qpus()):
        before = Float(0)
        for first in range(0, columns, 16):
            i = row * columns + first + index()
            value = x[i]
            for step in (1, 2, 4, 8):
                value = value + (rotate(value, step) if index() >= step else 0.0)
            value = value + before
            sums[i] = value
            before = broadcast(value, 15)


if __name__ == "__main__":
    import numpy as np

    print(prefix_sums(np.ones((2, 48), np.float32), columns=48, qpus=2))

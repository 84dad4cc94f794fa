"""The sum of two arrays: each QPU takes every qpus-th vector of 16 values."""

import vc4lab
from vc4lab.kernels.python import Array, Float, Out, index, me, qpus


@vc4lab.qpu_kernel
def vector_add(x: Array[Float], y: Array[Float], z: Out[Float]) -> None:
    """z = x + y. All have the same number of values, a multiple of 16."""
    for first in range(16 * me(), x.length, 16 * qpus()):
        i = first + index()  # a place for each lane
        z[i] = x[i] + y[i]


if __name__ == "__main__":
    import numpy as np

    x = np.arange(1600, dtype=np.float32)
    print(vector_add(x, x[::-1], qpus=12))

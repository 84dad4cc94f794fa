"""A layer of a small neural network: a matrix times vectors, a bias, and nothing below zero."""

import vc4lab
from vc4lab.kernels.python import Array, Float, Int, Out, index, maximum, me, qpus


@vc4lab.qpu_kernel(y="samples, outputs")
def layer(
    x: Array[Float], w: Array[Float], b: Array[Float], y: Out[Float], samples: Int, inputs: Int, outputs: Int
) -> None:
    """y = max(x @ w + b, 0).

    x: (samples, inputs), w: (inputs, outputs), b: (outputs,). outputs: a multiple of 16. Each QPU takes
    every qpus-th sample.
    """
    for sample in range(me(), samples, qpus()):
        for first in range(0, outputs, 16):
            column = first + index()
            total, p, q = b[column], x + sample * inputs, w + column
            for _ in range(0, inputs):
                total = total + p[0] * q[0]
                p, q = p + 1, q + outputs
            y[sample * outputs + column] = maximum(total, 0.0)


if __name__ == "__main__":
    import numpy as np

    x = np.eye(2, 3, dtype=np.float32)
    w = np.arange(48, dtype=np.float32).reshape(3, 16) - 8
    print(layer(x, w, np.zeros(16), samples=2, inputs=3, outputs=16))

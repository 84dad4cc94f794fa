"""An image convolved with 3 x 3 weights: neighbours through the texture unit's cache."""

import vc4lab
from vc4lab.kernels.python import Array, Float, Int, Out, index, me, qpus, unroll


@vc4lab.qpu_kernel(result="height, width")
def convolve(image: Array[Float], weights: Array[Float], result: Out[Float], width: Int, height: Int) -> None:
    """result[y, x] = the sum of weights[j, i] * image[y + j, x + i].

    image: (height + 2, width + 2), with a border. width: a multiple of 16.
    """
    w = [weights[k] for k in unroll(9)]
    pitch = width + 2
    for y in range(me(), height, qpus()):
        for first in range(0, width, 16):
            corner = image + (y * pitch + first + index())
            total = Float(0)
            for j in unroll(3):
                row = corner + pitch * j
                for i in unroll(3):
                    total = total + w[3 * j + i] * row[i]
            result[y * width + first + index()] = total


if __name__ == "__main__":
    import numpy as np

    image = np.zeros((6, 18), np.float32)
    image[2, 8] = 1
    print(convolve(image, np.arange(9).reshape(3, 3), width=16, height=4))

"""y = a * x + y, written twice: with places in arrays, and with pointers that go along.

The second way asks for the next values before it computes with those at hand, so that the texture
unit works meanwhile.
"""

import vc4lab
from vc4lab.kernels.python import Array, Float, InOut, gather, index, me, minimum, qpus, receive, store


@vc4lab.qpu_kernel
def saxpy(x: Array[Float], y: InOut[Float], a: Float) -> None:
    """Arrays of whole vectors of 16 values."""
    for first in range(16 * me(), x.length, 16 * qpus()):
        i = first + index()
        y[i] = a * x[i] + y[i]


@vc4lab.qpu_kernel
def saxpy_ahead(x: Array[Float], y: InOut[Float], a: Float) -> None:
    """The same result. Beyond the end of the arrays it looks at their last vectors again."""
    first, step, last = 16 * me(), 16 * qpus(), x.length - 16
    target = y + first
    ahead = minimum(first, last) + index()
    gather(x + ahead)
    gather(y + ahead)
    for i in range(first, x.length, step):
        ahead = minimum(i + step, last) + index()
        gather(x + ahead)
        gather(y + ahead)
        store(a * receive(Float) + receive(Float), target)
        target = target + step
    receive(Float)
    receive(Float)


if __name__ == "__main__":
    import numpy as np

    x = np.arange(1600, dtype=np.float32)
    y = np.ones_like(x)
    print(saxpy(x, y, a=2.0, qpus=12))
    for kernel in (saxpy, saxpy_ahead):
        print(kernel.timing(x, y, a=2.0).text())

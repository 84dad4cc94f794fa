"""How often each of 16 values occurs: lanes rotate past each other, QPUs add up one after the other."""

import vc4lab
from vc4lab.kernels.python import (
    Array,
    InOut,
    Int,
    dma_load,
    dma_store,
    index,
    me,
    mutex,
    qpus,
    read_vpm,
    rotate,
    setup_vpm_read,
    setup_vpm_write,
    unroll,
    write_vpm,
)


@vc4lab.qpu_kernel
def histogram(values: Array[Int], counts: InOut[Int]) -> None:
    """Add to 16 counts how often each of the numbers 0 to 15 is among the values.

    Lane j counts the values that are j: all 16 lanes of a vector come by. Other values count nowhere.
    The number of values is a multiple of 16.
    """
    mine = Int(0)
    for first in range(16 * me(), values.length, 16 * qpus()):
        found = values[first + index()]
        for turn in unroll(16):
            mine = mine + 1 if rotate(found, turn) == index() else mine
    with mutex():
        dma_load(counts, 0)
        setup_vpm_read(0, 1)
        total = read_vpm(Int) + mine
        setup_vpm_write(0)
        write_vpm(total)
        dma_store(counts, 0)


if __name__ == "__main__":
    import numpy as np

    print(histogram(np.arange(1600) % 16 // 2, np.zeros(16, np.int32), qpus=12))

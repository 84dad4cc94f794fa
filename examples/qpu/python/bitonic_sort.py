"""Sorting 64 numbers in four registers: a bitonic network between registers and between lanes."""

import vc4lab
from vc4lab.kernels.python import (
    Float,
    InOut,
    index,
    maximum,
    me,
    minimum,
    qpu_function,
    qpus,
    rotate,
    select,
    store_rows,
    unroll,
)

REGISTERS = 4
COUNT = 16 * REGISTERS


@qpu_function
def exchange(v: list[Float], distance: int, size: int) -> None:
    """One step: number i is compared with the one `distance` away; blocks of `size` alternate."""
    if distance >= 16:
        for k in unroll(REGISTERS):
            other = k ^ (distance // 16)
            if k < other:
                low, high = minimum(v[k], v[other]), maximum(v[k], v[other])
                v[k], v[other] = (low, high) if not 16 * k & size else (high, low)
        return
    for k in unroll(REGISTERS):
        is_low = (index() & distance) == 0
        partner = select(is_low, rotate(v[k], 16 - distance), rotate(v[k], distance))
        low, high = minimum(v[k], partner), maximum(v[k], partner)
        if size >= 16:
            v[k] = select(is_low, low, high) if not 16 * k & size else select(is_low, high, low)
        else:
            same = ((index() & distance) == 0) ^ ((index() & size) != 0)
            v[k] = select(same, low, high)


@vc4lab.qpu_kernel
def sort_rows(x: InOut[Float]) -> None:
    """Sort each row of a matrix with 64 columns."""
    for row in range(me(), x.length, qpus()):
        p = x + row * COUNT
        v = [p[16 * k + index()] for k in unroll(REGISTERS)]
        size = 2
        while size <= COUNT:
            distance = size // 2
            while distance:
                exchange(v, distance, size)
                distance //= 2
            size *= 2
        store_rows(v, p)


if __name__ == "__main__":
    import numpy as np

    print(sort_rows(np.arange(64, dtype=np.float32)[None, ::-1]))

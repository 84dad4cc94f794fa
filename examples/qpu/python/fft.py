"""Fourier transforms of 256 points: 16 times 16 points in registers, the VPM turns rows into columns."""

from math import cos, pi, sin

import vc4lab
from vc4lab.kernels.python import (
    Array,
    Float,
    InOut,
    Pointer,
    index,
    me,
    qpu_function,
    qpus,
    read_vpm,
    setup_vpm_read,
    setup_vpm_write,
    store_rows,
    unroll,
    write_vpm,
)

POINTS = 256
ORDER = [int(f"{k:04b}"[::-1], 2) for k in range(16)]


@qpu_function
def transform(re: list[Float], im: list[Float]) -> None:
    """16 points in each lane, in place; the results are in the order of their reversed numbers."""
    half = 8
    while half:
        for k in unroll(16):
            if not k & half:
                a, b = k, k | half
                angle = -pi * (k % half) / half
                c, s = cos(angle), sin(angle)
                x, y = re[a] - re[b], im[a] - im[b]
                re[a], im[a] = re[a] + re[b], im[a] + im[b]
                if k % half == 0:
                    re[b], im[b] = x, y
                elif k % half * 2 == half:
                    re[b], im[b] = y, -x
                else:
                    re[b], im[b] = x * c - y * s, x * s + y * c
        half //= 2


@qpu_function
def turned(rows: list[Float]) -> list[Float]:
    """16 rows as 16 columns, through this QPU's block of the VPM. Rows in reversed order."""
    setup_vpm_write(16 * me())
    for k in unroll(16):
        write_vpm(rows[ORDER[k]])
    setup_vpm_read(16 * me(), 16, vertical=True)
    return [read_vpm(Float) for _ in unroll(16)]


@qpu_function
def load_rows(x: Pointer[Float]) -> list[Float]:
    return [x[16 * k + index()] for k in unroll(16)]


@vc4lab.qpu_kernel
def fft(re: InOut[Float], im: InOut[Float], cosines: Array[Float], sines: Array[Float]) -> None:
    """Transforms of the rows of re + i im, 256 points each; at most four QPUs.

    cosines, sines: of -2 pi j k / 256 at 16 * k + j, see `twiddles`.
    """
    for row in range(me(), re.length, qpus()):
        p, q = re + row * POINTS, im + row * POINTS
        a, b = load_rows(p), load_rows(q)
        transform(a, b)
        for k in unroll(16):
            place = 16 * k + index()
            c, s = cosines[place], sines[place]
            at = ORDER[k]
            a[at], b[at] = a[at] * c - b[at] * s, a[at] * s + b[at] * c
        a, b = turned(a), turned(b)
        transform(a, b)
        store_rows([a[ORDER[k]] for k in unroll(16)], p)
        store_rows([b[ORDER[k]] for k in unroll(16)], q)


def twiddles() -> tuple[list[float], list[float]]:
    """Cosines and sines for `fft`."""
    angles = [-2 * pi * j * k / POINTS for k in range(16) for j in range(16)]
    return [cos(angle) for angle in angles], [sin(angle) for angle in angles]


if __name__ == "__main__":
    import numpy as np

    wave = np.cos(2 * pi * 5 * np.arange(POINTS) / POINTS).astype(np.float32)[None]
    re, im = fft(wave, np.zeros_like(wave), *twiddles())
    print(np.round(np.hypot(re, im)[0, :16], 3))

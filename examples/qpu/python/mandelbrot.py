"""The Mandelbrot set: a loop that goes on as long as some lane wants, and lanes that have left."""

import vc4lab
from vc4lab.kernels.python import Float, Int, Out, any_, index, me, qpus


@vc4lab.qpu_kernel(turns="height, width")
def mandelbrot(
    turns: Out[Int], width: Int, height: Int, left: Float, top: Float, step: Float, most: Int
) -> None:
    """How many turns each point stays inside of a circle of radius 2, at most `most`.

    The points are `step` apart, from (left, top) to the right and down. width: a multiple of 16. Each
    QPU takes every qpus-th row.
    """
    for row in range(me(), height, qpus()):
        y = top - Float(row) * step
        for first in range(0, width, 16):
            column = first + index()
            x = left + Float(column) * step
            re, im, count, n = x, y, Int(0), Int(0)
            inside = re * re + im * im <= 4.0
            alive = Int(-1) if inside else Int(0)
            while any_((alive != 0) & (n < most)):
                n = n + 1
                re, im = re * re - im * im + x, 2.0 * (re * im) + y
                alive = alive if re * re + im * im <= 4.0 else Int(0)
                count = count - alive
            turns[row * width + column] = count


if __name__ == "__main__":
    for line in mandelbrot(width=64, height=24, left=-2.2, top=1.2, step=0.05, most=30, qpus=12):
        print("".join(" .:-=+*#%@"[min(count // 3, 9)] for count in line))

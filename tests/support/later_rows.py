"""Published rows that were taken in after the figures were fixed: nothing was fitted to them.

They were chosen by a rule, not by their results: the source names board and clock, or has counts or
instruction slots, and the input can be made here (a program of ours of the published shape, a kernel of
the examples). A row is kept back (judged) unless its reliability is C or its program is not known
(printed). `docs/timing.md` has them as a table, those that contradict the model first, written by
`python -m tests.support.later_rows`.
"""

from functools import cache as once

from tests.support.compute import DATA, END, Board
from tests.support.frame_rows import BM, Range, megapixels, microseconds, timed
from tests.support.timing import per_round
from tests.support.timing_rows import (
    ADDRESS,
    KEPT,
    PRINTED,
    RULES,
    Row,
    as_table,
    filler,
    load_setup,
    loop,
    start,
)

from vc4lab.timing.user_programs import ProgramTiming

GROUPED = (
    "mov r3, unif\nmov r2, unif\nagain:\nmov unif_addr, r2\nnop\nnop\n{}"
    "sub.setf r3, r3, 1\nbrr.anynz again\nnop\nnop\nnop\n" + END
)
PAIRS = "fadd r2, r0, r1 ; fmul r0, r0, r1\n" * 40
FOUR_ROWS = 0x83000000 | 4 << 16 | 1 << 12
"""The set-up of a load of four rows of 16 words."""


@once
def grouped(reads: int) -> float:
    """The time of 256 uniforms in groups with 7 nops after each, as a part of the time without nops."""
    with_nops, without = (
        per_round(
            GROUPED.format(("mov r0, unif\n" * reads + filler(nops)) * (256 // reads)),
            lambda n: [[n, DATA]], 20, 60,
        )
        for nops in (7, 0)
    )  # fmt: skip
    return with_nops / without


@once
def lookup_at(distance: int) -> float:
    """Slots that a lookup of a cached line waits with so many instructions between request and signal."""
    body = "mov t0s, r1\n" + filler(distance) + "nop ; nop ; ldtmu0\n"
    count = distance + 7
    clocks = per_round(start(ADDRESS) + loop(body, count), lambda n: [[n, DATA]], 100, 300)
    return clocks / 4 - count


@once
def branch() -> float:
    """Slots that a round of a subtraction, a branch and its delay slots takes beyond its instructions."""
    return per_round(start() + loop("", 5), lambda n: [[n]], 1000, 3000) / 4 - 5


@once
def load_round(setup: int, hidden: int) -> float:
    """Slots of a round with a load and so many instructions before its wait."""
    body = "mov vr_addr, r1\n" + filler(hidden) + "mov -, vr_wait\n"
    program = start(ADDRESS, f"ldi vr_setup, {setup:#x}") + loop(body, hidden + 7)
    return per_round(program, lambda n: [[n, DATA]], 10, 110) / 4


@once
def peak() -> float:
    """Million vector instructions a second of all QPUs at 250 MHz, both ALUs busy in 40 of 45."""
    clocks = per_round(start() + loop(PAIRS, 45), lambda n: [[n]], 100, 300, qpus=12, board="pi1")
    return 12 * 45 * 250 / clocks


@once
def vector_add() -> float:
    """Million additions a second of the examples' sum of two arrays, 12 QPUs, Pi 3."""
    import numpy as np
    from examples.qpu.python.vector_add import vector_add as kernel

    x = np.ones(1 << 15, np.float32)
    return len(x) / kernel.timing(x, x, qpus=12, board="pi3").milliseconds / 1000


@once
def product() -> float:
    """Million vector instructions a second of the examples' matrix product, 12 QPUs at 250 MHz."""
    from benchmarks.compute import prepare
    from benchmarks.compute import start as begin

    board = Board("jit", budget=1 << 40)
    prepare(board.memory, 128)
    timing = ProgramTiming(board="pi1")
    with timing.listen(board.programs.listeners):
        begin(board.programs, 128)
    found = timing.result()
    return sum(one.instructions for one in found.qpus) / found.clocks * 250


def depths() -> float:
    """Milliseconds more of a frame whose depths are loaded and stored."""
    with_depths, without = (timed("depth_kept", kept=kept).rendering for kept in (True, False))
    return microseconds(with_depths - without) / 1000


VC4C = "VC4C's dependency model"
QV = "Terminus-IMRC {}, Pi 2"
ROWS = (
    Row("depths of 640x360 pixels loaded and stored again", 1, "ms", f"{BM}: about 1 ms a job", "B",
        KEPT, depths),
    Row("lookup with 8 instructions between request and signal: stall", 0, "slots", VC4C, "B", KEPT,
        lambda: lookup_at(8)),
    Row("a branch and its three delay slots: more than 4 slots", 0, "slots", "mandel-qpu, VC4CL", "A", KEPT,
        branch),
    Row("7 nops after each 16 uniforms: of the time without", 1, "", RULES, "A", KEPT, lambda: grouped(16)),
    Row("7 nops after each 32 uniforms: of the time without", 1, "", RULES, "A", KEPT, lambda: grouped(32)),
    Row("load of 16 rows of 16 words, 40 instructions before the wait: of the time with none", 1, "",
        QV.format("QV52"), "A", KEPT, lambda: load_round(load_setup(16), 40) / load_round(load_setup(16), 0)),
    Row("load of 16 rows of a word, 20 instructions before the wait: of the time with none", 1, "",
        QV.format("QV52"), "A", KEPT, lambda: load_round(load_setup(1), 20) / load_round(load_setup(1), 0)),
    Row("load of 4 rows of 16 words, 40 instructions before the wait: stall", 0, "slots",
        "Terminus-IMRC QV35 to QV44, Pi 3", "B", KEPT, lambda: load_round(FOUR_ROWS, 40) - 47),
    Row("instructions of all QPUs at 250 MHz", 750, "M/s", "bm project: the peak", "A", KEPT, peak),
    Row("a matrix product of ours, 12 QPUs at 250 MHz", 220, "M/s", "bm project: sgemm, another program", "C",
        PRINTED, product),
    Range("the sum of two arrays of ours, 12 QPUs, Pi 3", 90, "M/s", "VC4C #14, another program", "C",
        PRINTED, vector_add, 80, 100),
    Row("1080p video, T format in place of raster: of the frame rate", 36 / 10.5, "",
        "Linux, T format for a raster YV12, another program", "B", PRINTED,
        lambda: megapixels() / megapixels(raster=True)),
)  # fmt: skip


def order(row: Row) -> tuple[bool, float]:
    """What contradicts the model comes first."""
    return row.met, -row.error


def table() -> str:
    """The rows as a table of Markdown."""
    return as_table(sorted(ROWS, key=order))


if __name__ == "__main__":
    print(table())

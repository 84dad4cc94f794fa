"""Programs of random words: every one of them ends, or the model says what it waits for."""

import random
from dataclasses import replace

import pytest
from tests.support import frame_jobs
from tests.support.compute import END
from tests.support.shading import shaded

from vc4lab.qpu.isa.operations import Signal
from vc4lab.qpu.isa.registers import Write
from vc4lab.qpu.text.assembler import assemble
from vc4lab.timing.boards import speeds_of
from vc4lab.timing.chip import load_chip
from vc4lab.timing.declare import StandsStill
from vc4lab.timing.graphics.deadlock import standing_threads
from vc4lab.timing.graphics.model import FrameModel

SIGNALS = [Signal.NONE] * 4 + [signal for signal in Signal if signal != Signal.LOAD_IMMEDIATE]
WRITES = [
    Write.ACC0, Write.UNIFORMS_ADDRESS, Write.TLB_Z, Write.TLB_COLOUR_MS, Write.TLB_COLOUR_ALL,
    Write.VPM, Write.VPM_SETUP, Write.SFU_RECIP, Write.TMU0_S, Write.TMU0_T, Write.TMU0_R,
    Write.TMU1_S, Write.TMU1_T,
]  # fmt: skip


def words(draw: random.Random) -> tuple[int, ...]:
    """Half of them write to something that a shader may wait for."""
    found = []
    for _ in range(draw.randrange(1, 80)):
        word = draw.getrandbits(60) | draw.choice(SIGNALS) << 60
        if draw.random() < 0.5:
            word = word & ~(0x3F << 38) | draw.choice(WRITES) << 38
        found.append(word)
    return (*found, *assemble(END).words)


@pytest.mark.parametrize("seed", range(24))
def test_random_programs(seed: int) -> None:
    draw = random.Random(seed)
    vectors = draw.choice([1, 8, 40])
    result = shaded(
        [words(draw) for _ in range(draw.randrange(1, 3))],
        vectors,
        threads=draw.choice([1, 2]),
        qpus=draw.choice([1, 4]),
        slices=draw.choice([1, 3]),
        lines=[[[draw.randrange(1 << 20) for _ in range(draw.randrange(40))] for _ in range(5)]],
        instructions=draw.choice([0, 50, 500, 10**6]),
        places=draw.choice([1, 5, 1024]),
        batches=draw.random() < 0.2,
        complete=False,
    )
    assert (len(result.ends) == vectors) == (not standing_threads(result.machine))


def test_results_that_find_no_room_are_dropped_at_the_end() -> None:
    """Five requests, and room for four results that are never read."""
    text = "mov t0s, r0\n" * 5 + "mov tlbc, 0" + END
    assert len(shaded(text, 6, lines=[[[1]] * 5]).ends) == 6


def test_a_lone_thread_goes_on_when_there_is_no_room_for_more_results() -> None:
    text = (
        "mov t0s, r0\n" * 5 + "nop ; nop ; lthrsw\nnop\nnop\n" + "nop ; nop ; ldtmu0\n" * 5
        + "mov tlbc, 0" + END
    )  # fmt: skip
    assert len(shaded(text, 6, lines=[[[1]] * 5]).ends) == 6


def test_parameters_that_are_written_again_and_again() -> None:
    text = "mov t0t, r0\n" * 30 + "mov t0s, r0\nnop ; nop ; ldtmu0\nmov tlbc, 0" + END
    assert len(shaded(text, 6, threads=2, lines=[[[1]]]).ends) == 6


def test_a_frame_whose_shaders_wait_for_ever_says_where() -> None:
    frame = frame_jobs.triangle()
    words = assemble("mov t0s, r0\n" * 14 + "mov tlbc, 0" + END).words
    hung = replace(frame, programs=(words,) * len(frame.programs))
    chip = load_chip("videocore4")
    with pytest.raises(StandsStill, match=r"QPU 1, vector 0: at .*: TMU request queue full"):
        list(FrameModel(chip, speeds_of(chip).of_board["pi3"]).run([hung]))

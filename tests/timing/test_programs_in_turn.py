"""Programs that come to a QPU one after the other: the queue of SRQPC, and hosts that wait."""

from tests.support.compute import DATA, Board
from tests.support.timing_rows import LOAD, load_setup, loop, start

from vc4lab.timing.result import Timing
from vc4lab.timing.user_programs import ProgramTiming

ISSUES = start() + loop("", 10)
LOADS = start("mov r1, unif", f"ldi vr_setup, {load_setup(4):#x}") + loop(LOAD, 7)


def timed(rounds: list[list[int]], *, engine: str = "jit", program: str = ISSUES) -> Timing:
    """Lists of programs by their rounds; the host waits between the lists."""
    board = Board(engine, threads=1, budget=1 << 26)
    code = board.load(program)
    timing = ProgramTiming("videocore4", "pi1")
    with timing.listen(board.programs.listeners):
        for together in rounds:
            for number in together:
                board.start(code, [number, DATA])
            board.finish()
    return timing.result()


def test_a_qpu_gets_one_program_after_the_other() -> None:
    once, twice = timed([[500]]), timed([[500], [500], [500]])
    (qpu,) = twice.qpus
    assert qpu.programs == 3
    assert qpu.instructions == 3 * once.qpus[0].instructions
    assert 2.8 * once.clocks < twice.clocks < 3 * once.clocks + 100
    assert qpu.busy + sum(qpu.stalls.values()) == qpu.ended - qpu.started
    assert qpu.stalls["no program"] > 0
    assert not twice.notes


def test_programs_that_wait_in_the_queue_begin_as_qpus_become_free() -> None:
    """Thirteen programs, of which the second is short: the last one follows it."""
    timing = timed([[2000, 100, *[2000] * 10, 1000]])
    assert [qpu.programs for qpu in timing.qpus] == [1, 2, *[1] * 10]
    alone = timed([[2000] * 12])
    assert timing.clocks < alone.clocks + 50


def test_a_host_that_waits_starts_the_next_one_when_all_have_ended() -> None:
    timing = timed([[2000, 100], [1000]])
    first, second = timing.qpus
    assert first.programs == 2
    assert second.programs == 1
    assert first.ended > 40 * 3000


def test_many_rounds_of_all_qpus() -> None:
    timing = timed([[50] * 12 + [50] * 12] * 3)
    assert [qpu.programs for qpu in timing.qpus] == [6] * 12
    for qpu in timing.qpus:
        assert qpu.busy + sum(qpu.stalls.values()) == qpu.ended - qpu.started


def test_both_engines_have_the_same_clocks() -> None:
    rounds = [[20, 3, 9], [4], [7] * 14]
    assert timed(rounds, program=LOADS) == timed(rounds, engine="interpreter", program=LOADS)


def test_programs_that_never_get_a_qpu() -> None:
    board = Board("jit", threads=1)
    timing = ProgramTiming()
    waits = board.load("sacq -, 3\nnop ; nop ; thrend\nnop\nnop\n")
    with timing.listen(board.programs.listeners):
        for _ in range(12):
            board.start(waits)
        board.finish()
    assert timing.result().notes[0].startswith("QPU 0 has not ended")

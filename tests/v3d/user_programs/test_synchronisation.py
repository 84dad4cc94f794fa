"""QPUs that wait for each other: mutex, semaphores, memory; and those that wait for ever."""

from typing import Any

import numpy as np
import pytest
from tests.support.compute import DATA, END, ENGINES, Board

STORE = """
        ldi  r2, 0x1a00
        add  vw_setup, r2, qpu_num
        ldi  r2, 0x80904000
        nop                     ; mov r1, qpu_num
        shl  r1, r1, 7
        mov  vpm, r0
        add  vw_setup, r2, r1
        mov  vw_addr, unif
        mov  -, vw_wait
"""
"""Stores r0 at the address in the next uniform, through a VPM row of the QPU's own."""

COUNT_UNDER_MUTEX = """
        mov  r3, unif           # rounds
        mov  ra0, unif          # counter address
again:  mov  -, mutex
        mov  t0s, ra0
        nop ; nop ; ldtmu0
        add  r0, r4, 1
        ldi  vw_setup, 0x1a00
        mov  vpm, r0
        ldi  vw_setup, 0x80804000 | 1 << 16
        mov  vw_addr, ra0
        mov  -, vw_wait
        mov  mutex, 0
        sub.setf r3, r3, 1
        brr.anynz again
        nop
        nop
        nop
"""

PING = """
        mov  r3, unif
        mov  r0, unif
ping:   srel -, 1
        sacq -, 2
        add  r0, r0, 1
        sub.setf r3, r3, 1
        brr.anynz ping
        nop
        nop
        nop
"""
PONG = PING.replace("srel -, 1", "sacq -, 1").replace("sacq -, 2", "srel -, 2")


def both(build: Any, **options: Any) -> Any:
    """The outcome of the same programs on both engines."""
    outcomes = []
    for engine in ENGINES:
        board = Board(engine, **options)
        build(board)
        outcomes.append(board.finish())
    assert outcomes[0].differences(outcomes[1]) == []
    return outcomes[1]


def test_mutex_protects_a_counter_in_memory() -> None:
    def build(board: Board) -> None:
        code = board.load(COUNT_UNDER_MUTEX + END)
        for _ in range(12):
            board.start(code, [3, DATA])

    outcome = both(build)
    assert outcome.memory[0] == 36
    assert outcome.completed == 12
    assert not outcome.codes


def test_semaphore_ping_pong() -> None:
    def build(board: Board) -> None:
        board.start(PING + STORE + END, [20, 100, DATA])
        board.start(PONG + STORE + END, [20, 200, DATA + 64])

    outcome = both(build)
    assert set(outcome.memory[:16].tolist()) == {120}
    assert set(outcome.memory[16:32].tolist()) == {220}


def test_master_waits_for_eleven_slaves() -> None:
    """The end of hello_fft and py-videocore's sgemm: slaves raise, the master takes eleven."""
    slave = "mov r0, qpu_num" + STORE + "srel -, 0" + END
    master = "mov r0, 7\n" + "sacq -, 0\n" * 11 + STORE + "ldi irq, 1" + END

    def build(board: Board) -> None:
        board.start(master, [DATA])
        code = board.load(slave)
        for number in range(1, 12):
            board.start(code, [DATA + 64 * number])

    outcome = both(build)
    assert outcome.memory[: 16 * 12 : 16].tolist() == [7, *range(1, 12)]
    assert outcome.interrupts == 1
    assert outcome.completed == 12


def test_semaphore_saturates_at_fifteen() -> None:
    def build(board: Board) -> None:
        board.start("srel -, 4\n" * 16 + END)

    outcome = both(build)
    assert outcome.completed == 0
    assert "waits for a decrement of semaphore 4 (now 15)" in outcome.messages


def test_waiting_for_memory_that_another_program_writes() -> None:
    """A polling loop must let the other QPU run."""
    poll = "mov r0, unif\nlook: mov t0s, r0\nnop ; nop ; ldtmu0\nmov.setf r1, r4\n"
    poll += "brr.allz look\nnop\nnop\nnop"

    def build(board: Board) -> None:
        board.start(poll + END, [DATA])
        board.start("mov r0, 5" + STORE + END, [DATA])

    for engine in ENGINES:
        board = Board(engine, threads=1)
        build(board)
        assert board.finish().completed == 2


@pytest.mark.parametrize("engine", ENGINES)
def test_deadlock_names_everybody(engine: str) -> None:
    board = Board(engine)
    board.start("mov -, mutex\nsacq -, 3" + END)
    board.start("nop\nnop\nnop\nmov -, mutex\nsrel -, 3" + END)
    outcome = board.finish()
    assert outcome.codes == {"QPU-050": 1}
    assert outcome.completed == 0
    assert "QPU 0 at 0x00010008 `sacq -, 3` waits for an increment of semaphore 3 (now 0)" in (
        outcome.messages
    )
    assert "QPU 1 at" in outcome.messages
    assert "waits for the mutex, held by QPU 0" in outcome.messages


@pytest.mark.parametrize("engine", ENGINES)
def test_mutex_taken_twice(engine: str) -> None:
    board = Board(engine)
    board.start("mov -, mutex\nmov -, mutex" + END)
    assert "held by itself" in board.finish().messages


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("mov r0, vpm", "a VPM read without a read setup"),
        ("nop ; nop ; ldtmu1", "a result of TMU1 without a request"),
        ("mov t0s, 0\n" * 13, "room in the request queue of TMU0"),
    ],
)
def test_stalls_that_nobody_can_end(text: str, reason: str) -> None:
    outcome = both(lambda board: board.start(text + END))
    assert outcome.codes == {"QPU-051": 1}
    assert reason in outcome.messages
    assert outcome.completed == 0


@pytest.mark.parametrize("engine", ENGINES)
def test_endless_loop_has_a_budget(engine: str) -> None:
    board = Board(engine, budget=5000)
    board.start("forever: brr forever\nnop\nnop\nnop" + END)
    board.start("nop" + END)
    outcome = board.finish()
    assert outcome.codes == {"QPU-041": 1}
    assert outcome.completed == 1
    assert "5000 instructions without an end" in outcome.messages
    assert "VC4LAB_BUDGET" in outcome.messages


@pytest.mark.parametrize("engine", ENGINES)
def test_dma_counts_for_the_budget(engine: str) -> None:
    """16384 elements in each turn of a loop of five instructions."""
    board = Board(engine, budget=100_000)
    board.start("ldi vw_setup, 0x80004000\nforever: ldi vw_addr, 0x100000\nbrr forever\nnop\nnop\nnop" + END)
    outcome = board.finish()
    assert outcome.codes == {"QPU-041": 1}
    assert f"DMA that counts for {7 * (128 * 128 + 16)}" in outcome.messages


@pytest.mark.parametrize("engine", ENGINES)
def test_the_environment_sets_the_budget(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = "ldi r0, 2000\nagain: sub.setf r0, r0, 1\nbrr.anynz again\nnop\nnop\nnop" + END
    ignored = {text: {"QPU-060": 1} for text in ("many", "0", "-1", str(1 << 41), "9" * 5000)}
    for budget, codes in {"0x1000": {"QPU-041": 1}, "20000": {}, **ignored}.items():
        monkeypatch.setenv("VC4LAB_BUDGET", budget)
        board = Board(engine)
        board.start(counted)
        assert board.finish().codes == codes


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_threads_change_nothing(threads: int) -> None:
    program = "mov r3, unif\nmov r0, qpu_num\nmore: add r0, r0, elem_num\nsub.setf r3, r3, 1\n"
    program += "brr.anynz more\nnop\nnop\nnop\n" + STORE + END
    board = Board("jit", threads=threads)
    code = board.load(program)
    for number in range(12):
        board.start(code, [1000, DATA + 64 * number])
    outcome = board.finish()
    expected = np.arange(12)[:, None] + 1000 * np.arange(16)
    assert np.array_equal(outcome.memory[: 12 * 16].reshape(12, 16), expected)

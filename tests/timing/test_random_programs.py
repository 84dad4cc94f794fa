"""Random programs: the model goes every step that the functional core went, and no other."""

import random
from collections.abc import Sequence

import pytest
from tests.support.compute import DATA, ENGINES, Board
from tests.v3d.user_programs.test_random_programs import program

from vc4lab.qpu.isa.qpu_unknowns import QPU_UNKNOWNS
from vc4lab.timing.result import Timing
from vc4lab.timing.user_programs import ProgramTiming
from vc4lab.v3d.unknowns import DEFAULT_UNKNOWNS, Unknowns
from vc4lab.v3d.user_programs.user_program_unknowns import USER_PROGRAM_UNKNOWNS

ONE_INSTRUCTION = 2 * 17
"""Words at most of an instruction in which a program was stopped, and which does not count."""


def walked(
    programs: Sequence[Sequence[int]],
    uniforms: Sequence[int],
    engine: str = "jit",
    unknowns: Unknowns = DEFAULT_UNKNOWNS,
) -> Timing:
    """Programs timed; all that was recorded must be used."""
    board = Board(engine, budget=100_000, unknowns=unknowns)
    timing = ProgramTiming()
    with timing.listen(board.programs.listeners):
        for qpu, code in enumerate(programs):
            own = DATA + 0x20000 + 0x1000 * qpu
            board.start(code, [DATA, own, *uniforms])
        board.finish()
    result = timing.result()
    running = board.programs.running
    for model in timing.models.values():
        for number in model.started:
            qpu = model.qpus[number]
            known = running[number].instructions if number in running else qpu.known
            assert qpu.executed == known
            left = qpu.words - qpu.next_word
            assert 0 <= left <= (ONE_INSTRUCTION if number in running else 0)
    for one in result.qpus:
        assert one.busy + sum(one.stalls.values()) == one.ended - one.started
    return result


@pytest.mark.parametrize("seed", range(40))
def test_the_model_goes_the_way_of_the_program(seed: int) -> None:
    r = random.Random(seed)
    count = r.choice((1, 2, 4))
    programs = [program(r, qpu, count > 1) for qpu in range(count)]
    stream = [1 + seed % 3, *(r.getrandbits(32) for _ in range(400))]
    assert not walked(programs, stream).notes


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("number", [1, -1])
def test_whatever_is_chosen_for_what_no_one_knows(seed: int, number: int) -> None:
    rows = [*QPU_UNKNOWNS, *USER_PROGRAM_UNKNOWNS]
    chosen = Unknowns({row.name: list(row.choices)[number] for row in rows})
    r = random.Random(seed)
    programs = [program(r, qpu, True) for qpu in range(2)]
    stream = [2, *(r.getrandbits(32) for _ in range(400))]
    assert not walked(programs, stream, unknowns=chosen).notes


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seed", range(30))
def test_words_that_are_no_program(seed: int, engine: str) -> None:
    r = random.Random(seed)
    words = [r.getrandbits(64) & ~(0xF << 60) | r.choice((1, 1, 1, 13, 14, 10, 11)) << 60
             for _ in range(40)]  # fmt: skip
    words += [0x300009E7009E7000, 0x100009E7009E7000, 0x100009E7009E7000]
    walked([words], [r.getrandbits(32) for _ in range(50)], engine)

"""Programs made to be long and full of branches: what compiling them may cost, counted."""

import random

import pytest
from tests.qpu.qpu_programs import END, random_alu, random_branch
from tests.support.compute import Board

from vc4lab.qpu.jit import flow
from vc4lab.qpu.jit.flow import MAX_PLACES, Flow
from vc4lab.qpu.jit.region import Region
from vc4lab.qpu.program.program import Program
from vc4lab.qpu.run import environment
from vc4lab.qpu.run.environment import UNCOMPILED_BUDGET, Unsupported
from vc4lab.qpu.run.plan import plan
from vc4lab.simd import native
from vc4lab.v3d.unknowns import DEFAULT_UNKNOWNS
from vc4lab.v3d.user_programs.native.compiled import compile_user_program


def hostile(length: int, branches: float, seed: int = 1) -> Program:
    """Arithmetic of every kind, with branches anywhere in between."""
    r = random.Random(seed)
    words = [random_branch(r, at, length) if r.random() < branches else random_alu(r) for at in range(length)]
    return Program((*words, *END), 0x1000)


def places(program: Program) -> int:
    return len(Flow(program, [plan(w) for w in program.words], True, True, frozenset()).exits)


class TracedError(Exception):
    """Stops before LLVM: tracing says all there is to count."""


@pytest.mark.parametrize(("length", "branches"), [(250, 0.0), (700, 0.0), (400, 0.3)])
def test_text_grows_with_the_places_only(
    length: int, branches: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The compiler's input is bounded by the places, and a large one is not optimised."""
    texts: list[str] = []

    def stop(ir: str, *_: object) -> bytes:
        texts.append(ir)
        raise TracedError

    monkeypatch.setattr(native, "compile_ir", stop)
    monkeypatch.setattr(native.cache, "read", lambda slot: None)
    program = hostile(length, branches)
    with pytest.raises(TracedError):
        compile_user_program(Region.of(program, DEFAULT_UNKNOWNS), DEFAULT_UNKNOWNS, False)
    size = len(texts[0])
    assert size <= 5000 * places(program)
    assert native.effort(texts[0]) == (1 if size <= native.UNOPTIMISED_ABOVE else 0)
    if length == 700:
        assert size > native.UNOPTIMISED_ABOVE / 1.3  # long enough to show something


def test_more_places_than_the_limit_are_refused() -> None:
    program = hostile(1200, 0.33)
    with pytest.raises(Unsupported) as found:
        places(program)
    assert found.value.code == "QPU-045"
    assert places(hostile(MAX_PLACES - 3, 0)) == MAX_PLACES


def test_calls_and_returns_beyond_the_limit_are_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of 2,048 register branches may come back after each call: 4 million ways in all."""
    made: list[int] = []
    place = Flow.place
    monkeypatch.setattr(Flow, "place", lambda *a: (made.append(1), place(*a))[1])
    calls, returns = 0xFF000000FF000000, 0xFFFFFF00FFFFFF00  # colours of a tile, read as code
    with pytest.raises(Unsupported) as found:
        places(Program((*[calls] * 2048, *[returns] * 2048, *[0] * 5), 0x1000))
    assert found.value.code == "QPU-045"
    assert len(made) < 2 * MAX_PLACES


def test_a_long_program_is_compiled_in_parts() -> None:
    board = Board("jit")
    board.start("mov r0, r0\n" * (MAX_PLACES + 1) + "mov host_int, 1\nnop\nthrend\nnop\nnop")
    outcome = board.finish()
    assert board.reporter.items == []
    assert (outcome.completed, outcome.interrupts) == (1, 1)


@pytest.fixture
def tangled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs count as tangled from a length of 65 instructions on."""
    monkeypatch.setattr(flow, "PLACES_PER_INSTRUCTION", 0)


LENGTH = 200


def test_a_refused_program_still_runs(tangled: None) -> None:
    """In the interpreter: right, but slowly, and with a hint that says so."""
    board = Board("jit")
    board.start("mov r0, r0\n" * LENGTH + "mov host_int, 1\nnop\nthrend\nnop\nnop")
    outcome = board.finish()
    assert board.reporter.counts["QPU-057"] == 1
    assert outcome.completed == 1
    assert outcome.codes == {}


def test_a_refused_program_without_an_end_is_named_soon(tangled: None) -> None:
    """It has the budget of programs not meant to be interpreted, but more than its length."""
    board = Board("jit")
    board.start("mov r0, r0\n" * LENGTH + ":again\nbrr -, again\nnop\nnop\nnop")
    outcome = board.finish()
    assert "QPU-041" in outcome.codes or "QPU-001" in outcome.codes, outcome.codes
    assert max(outcome.instructions) >= UNCOMPILED_BUDGET
    assert max(outcome.instructions) <= 4 * (LENGTH + 8) + UNCOMPILED_BUDGET


def test_a_refused_program_may_execute_all_it_has(tangled: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its length counts, where that is more than the budget."""
    monkeypatch.setattr(environment, "UNCOMPILED_BUDGET", 100)
    board = Board("jit")
    board.start("mov r0, r0\n" * LENGTH + "nop\nthrend\nnop\nnop")
    outcome = board.finish()
    assert board.reporter.counts["QPU-057"] == 1
    assert (outcome.completed, outcome.codes) == (1, {})

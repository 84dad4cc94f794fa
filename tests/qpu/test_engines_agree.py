"""Interpreter, exact JIT and fast JIT give the same bits, on every instruction set level."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

from vc4lab.qpu.environment import Unsupported
from vc4lab.qpu.harness import run_program
from vc4lab.simd import Target, targets

sys.path.insert(0, str(Path(__file__).parent))
from qpu_programs import inputs, random_program

LEVELS = targets()


def compare(seed: int, branches: bool, engine: str, target: Target) -> str:
    """ "limit", "exact" or "fast": how the reference and the JIT run ended."""
    rng = random.Random(seed)
    plain = rng.random() < 0.5
    words = random_program(rng, rng.choice([5, 12, 24]), branches)
    registers, uniforms, vectors = inputs(rng, plain)
    given = {"uniforms": uniforms, "vectors": vectors}
    expected = run_program(words, registers, budget=2000, **given)
    if expected.why == "limit":
        return "limit"
    got = run_program(words, registers, engine=engine, target=target, **given)
    assert expected.differences(got) == [], f"seed {seed}"
    return "exact" if got.exact else "fast"


@pytest.mark.parametrize("target", LEVELS, ids=lambda t: t.level)
@pytest.mark.parametrize("engine", ["exact", "jit"])
@pytest.mark.parametrize("branches", [False, True], ids=["straight", "branches"])
def test_random_programs(branches: bool, engine: str, target: Target) -> None:
    first = 100 * LEVELS.index(target) + 1000 * branches
    endings = [compare(first + n, branches, engine, target) for n in range(24)]
    if engine == "jit":
        assert "fast" in endings, "some programs must stay on the fast path"


@pytest.mark.parametrize("seed", range(6))
def test_levels_agree_even_where_the_fast_path_gives_up(seed: int) -> None:
    rng = random.Random(5000 + seed)
    words = random_program(rng, 20)
    registers, uniforms, vectors = inputs(rng, True)
    given = {"uniforms": uniforms, "vectors": vectors, "engine": "fast"}
    first, *others = (run_program(words, registers, target=t, **given) for t in LEVELS)
    for other in others:
        assert first.differences(other) == []


def test_random_words_do_no_harm() -> None:
    """Any 64 bits: the outcome is a result or a verdict, never anything else."""
    rng = random.Random(77)
    verdicts = set()
    for _ in range(60):
        words = [rng.getrandbits(64) for _ in range(rng.randrange(1, 12))]
        for engine in ("interpreter", "jit", "exact"):
            try:
                verdicts.add(run_program(words, engine=engine, budget=200).why)
            except Unsupported as verdict:
                verdicts.add(verdict.code)
    assert "QPU-040" in verdicts
    assert verdicts <= {"end", "left", "limit", "QPU-040", "QPU-043", "QPU-044"}

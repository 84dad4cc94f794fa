"""Interpreter, exact JIT and fast JIT give the same bits, on every instruction set level."""

import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.qpu_runner import StagedEnvironment, run_program

from vc4lab.qpu.jit.emitter import emit_interleaved
from vc4lab.qpu.program.program import Program
from vc4lab.qpu.run.environment import RegisterKey, Unsupported
from vc4lab.simd import Function, Target, build, const, i32x16, load, ptr, store, targets

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


@pytest.mark.parametrize("branches", [False, True], ids=["straight", "branches"])
def test_interleaved_batches_are_independent(branches: bool) -> None:
    rng = random.Random(4242)
    words = random_program(rng, 16, branches)
    batches = [inputs(rng, True)[0] for _ in range(2)]
    keys = tuple(batches[0])
    size = 64 * (len(keys) + 1)
    memory = np.zeros(2 * size // 4 + 16, np.uint32)
    memory = memory[-memory.ctypes.data % 64 // 4 :]
    for n, registers in enumerate(batches):
        for k, key in enumerate(keys):
            memory[n * size // 4 + 16 * k :][:16] = registers[key]

    class Loaded(StagedEnvironment):
        def initial_registers(self) -> dict[RegisterKey, Any]:
            return {k: load(i32x16, self.base + 64 * n) for n, k in enumerate(keys)}

        def uniform(self) -> Any:
            return const(i32x16, 0)

        def vpm_read(self) -> Any:
            return const(i32x16, 0)

        def vpm_write(self, value: Any, mask: Any) -> None:
            pass

    def body(base: Any) -> None:
        envs = [Loaded(base + n * size, (0, 0), keys) for n in range(2)]
        finals = emit_interleaved(Program(tuple(words)), envs, exact=True, observe=True)
        for n, final in enumerate(finals):
            store(base + (n * size + 64 * len(keys)), final.read(("r", 1)))

    build("pair", {"run": Function((ptr,), None, body)})["run"](memory.ctypes.data)
    for n, registers in enumerate(batches):
        expected = run_program(words, registers)
        start = n * size // 4 + 16 * len(keys)
        assert memory[start : start + 16].tolist() == expected.registers["r", 1].tolist()


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

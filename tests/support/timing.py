"""User programs, run and timed."""

from collections.abc import Sequence
from typing import Any

from tests.support.compute import DATA, Board

from vc4lab.timing.chip import Chip
from vc4lab.timing.result import CacheUse, Timing
from vc4lab.timing.user_programs import ProgramTiming


def timed(
    programs: Sequence[str] | str,
    uniforms: Sequence[Sequence[int]] = ((),),
    *,
    qpus: int = 0,
    board: str = "pi2",
    chip: Chip | str = "videocore4",
    engine: str = "jit",
    data: Sequence[int] = (),
    threads: int = 1,
) -> Timing:
    """Programs, one for each QPU (or one for `qpus` of them), with their uniforms."""
    many = [programs] * max(qpus, 1) if isinstance(programs, str) else list(programs)
    machine = Board(engine, threads=threads, budget=1 << 26)
    for index, word in enumerate(data):
        machine.memory.set_u32(DATA + 4 * index, word)
    places: dict[str, int] = {}
    timing = ProgramTiming(chip, board)
    with timing.listen(machine.programs.listeners):
        for number, text in enumerate(many):
            if text not in places:
                places[text] = machine.load(text)
            machine.start(places[text], uniforms[min(number, len(uniforms) - 1)])
        machine.finish()
    return timing.result()


def cache(timing: Timing, name: str, number: int = 0) -> CacheUse:
    """What a cache counted."""
    return next(one for one in timing.caches if (one.cache, one.number) == (name, number))


def stall(timing: Timing, cause: str, qpu: int = 0) -> int:
    """Clocks that a QPU waited for a cause."""
    one = next(one for one in timing.qpus if one.qpu == qpu)
    return one.stalls[cause]


def per_round(programs: Any, uniforms: Any, short: int, long: int, **options: Any) -> float:
    """Clocks of one round of a loop: the difference of runs with a few and with more rounds.

    uniforms: rounds -> the lists of uniforms.
    """
    runs = [timed(programs, uniforms(rounds), **options).clocks for rounds in (short, long)]
    return (runs[1] - runs[0]) / (long - short)

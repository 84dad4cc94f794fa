"""The options of a V3D, collected once and passed on as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from vc4lab.diagnostics.unknown import DEFAULT_UNKNOWNS, Unknowns
from vc4lab.ranges import BUDGET, ENGINES, THREADS, check_word


@dataclass(frozen=True)
class GpuOptions:
    """The choices for one V3D.

    Attributes
    ----------
    engine
        "jit", or "interpreter" to run every QPU instruction in the reference interpreter.
    threads
        Worker threads for tiles and user programs; the number of processors by default.
    unknowns
        Choices for undocumented behaviour.
    budget
        Instructions after which a user program counts as endless; by default VC4LAB_BUDGET in the
        environment, else a number for each engine.
    forgiving
        Whether what a board would refuse, or get wrong, works where earlier versions let it work;
        of a whole board, as `unknowns`.

    Raises
    ------
    ValueError, TypeError
        None of the engines, or a number out of its range.
    """

    engine: str = "jit"
    threads: int | None = None
    unknowns: Unknowns = DEFAULT_UNKNOWNS
    budget: int | None = None
    forgiving: bool = False

    def __post_init__(self) -> None:
        check_word("engine", self.engine, ENGINES)
        THREADS.check_optional(self.threads)
        BUDGET.check_optional(self.budget)


T = TypeVar("T")


def chosen(whole: T | None, single: T) -> T:
    """Choices given as one object, or one by one: then `single` was made of them.

    Raises TypeError if both say something.
    """
    if whole is None:
        return single
    if single != type(single)():
        raise TypeError(f"choices come one by one or as a {type(single).__name__}, not both ways")
    return whole

"""Programs: compiled, and user programs started, ended and recorded."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from array import array

    from vc4lab.qpu.program.program import Program
    from vc4lab.v3d.job_time import JobCounts


class ProgramKind(Enum):
    """What a program is for."""

    COORDINATE = "coordinate"
    VERTEX = "vertex"
    FRAGMENT = "fragment"
    USER = "user"


class ProgramCompiled(NamedTuple):
    """Native code of a program is there, compiled or from a cache, after so many milliseconds.

    A shader has code of its own for each draw state in which the V3D meets it, a user program when
    it begins. Not reported: code for values that the first one cannot compute, and for where a user
    program goes on to. Nothing is compiled of programs that the interpreter runs.
    """

    kind: ProgramKind
    address: int
    words: tuple[int, ...]
    milliseconds: float


class ProgramStarted(NamedTuple):
    """A user program has got a QPU: what SRQPC, SRQUA and SRQUL were, and the code's bytes."""

    address: int
    uniforms: int
    length: int
    size: int


class ProgramEnded(NamedTuple):
    """A user program has ended: its QPU, what SRQPC and SRQUA were, and what it has done."""

    qpu: int
    address: int
    uniforms: int
    counts: JobCounts


class ProgramRecorded(NamedTuple):
    """What a user program has done since the last of these events; the first comes at its start.

    Programs that start while there is a listener are recorded: native code is compiled once more
    for it. Only what has to be known beyond the program itself is: branches, addresses, shapes.

    Attributes
    ----------
    qpu, serial
        Where it runs, and its number among all programs started.
    uniforms
        What SRQUA was.
    program
        Its code, as far as it is known now.
    executed
        Instructions since it began; the record is complete for these.
    record
        Words of 32 bits, see `user_programs/recording/format.py`.
    ended
        Whether it has come to its end.
    seen
        Programs that had ended when the host last waited or looked, before it asked for this one.
    """

    qpu: int
    serial: int
    uniforms: int
    program: Program
    executed: int
    record: array[int]
    ended: bool
    seen: int = 0

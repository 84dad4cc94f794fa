"""How a slice of a core ends."""

from __future__ import annotations

from enum import Enum

from vc4lab.soc.cores.exceptions import ArmException


class Outcome(Enum):
    """Why a slice ended."""

    LIMIT = "its time is used up"
    WAIT_FOR_INTERRUPT = "wfi"
    WAIT_FOR_EVENT = "wfe"
    BRANCH_TO_SELF = "a branch to itself"
    STORM = "a storm of exceptions"


class UnhandledException(Exception):  # noqa: N818 - an ARM exception, not a Python one
    """The guest ran into an exception and has no handler at its vector, or none that mends it."""

    def __init__(
        self, exception: ArmException, address: int, vector: int, storm: bool = False
    ) -> None:
        super().__init__(exception, address, vector)
        self.storm = storm
        """Whether it was taken again and again."""
        self.exception = exception
        self.address = address
        self.vector = vector

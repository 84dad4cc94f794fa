"""A program's texture requests as they build up: coordinates written, lookups made, results read.

One `Requests` per program run; the engine-specific part is two functions, one that samples and one
that looks memory up. Source: hardware reference 4.14, 6.1.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from vc4lab.qpu.run.environment import Environment, Noted, Unsupported

if TYPE_CHECKING:
    from vc4lab.qpu.program.program import Program

MAX_REQUESTS = 32
"""Texture requests (S writes that are not direct lookups) of one program."""

MAX_PARAMETERS = 4
"""Parameters of a request that count."""

W = TypeVar("W")
"""A word of 16 lanes: a staged value, or an array."""

Sampler = Callable[[int, list[W], list[Any]], Sequence[W]]
"""`sample(number, [s, t, r, b], parameters)`: the result vectors of texture request `number`."""

Lookup = Callable[[W], W]
"""`lookup(addresses)`: the words at 16 addresses."""


@dataclass(eq=False)
class Requests(Generic[W]):
    """The two TMU queues of one program.

    Parameters
    ----------
    numbers
        Instruction index of an S write → number of its texture request.
    count
        Texture requests that are configured.
    take_uniform
        Called for each configuration word the hardware takes from the uniform stream. What it
        returns is handed to `sample`, if it is not None.
    zero
        A vector of zeros, for coordinates that were not written.
    """

    numbers: Mapping[int, int]
    count: int
    sample: Sampler[W]
    lookup: Lookup[W]
    take_uniform: Callable[[], Any]
    zero: Callable[[], W]

    def __post_init__(self) -> None:
        self._pending: tuple[dict[str, W], dict[str, W]] = ({}, {})
        self._parameters: tuple[list[Any], list[Any]] = ([], [])
        self._results: tuple[deque[W], deque[W]] = (deque(), deque())

    def write(self, unit: int, register: str, value: W, site: int) -> None:
        """A write of S, T, R or B by the instruction at index `site`. Raises Unsupported."""
        pending = self._pending[unit]
        if register == "s" and not pending:
            self._results[unit].append(self.lookup(value))
            return
        parameters = self._parameters[unit]
        word = self.take_uniform()
        if word is not None and len(parameters) < MAX_PARAMETERS:
            parameters.append(word)
        pending[register] = value
        if register != "s":
            return
        number = self.numbers.get(site, -1)
        if not 0 <= number < self.count:
            raise Unsupported("FRG-002", f"texture request {number} has no configuration", site)
        coordinates = [pending[name] if name in pending else self.zero() for name in "strb"]
        self._results[unit].extend(self.sample(number, coordinates, list(parameters)))
        pending.clear()
        parameters.clear()

    def load(self, unit: int) -> W:
        """The oldest result of a unit. Raises Unsupported if there is none."""
        if not self._results[unit]:
            raise Unsupported("FRG-003", f"TMU{unit} result read, but no lookup was requested")
        return self._results[unit].popleft()

    def noted(self) -> Noted:
        """Requests being written and results not yet read."""
        lists = (*self._parameters, *self._results)
        shape = tuple(tuple(pending) for pending in self._pending), tuple(map(len, lists))
        values = [value for pending in self._pending for value in pending.values()]
        return Noted(shape, (*values, *chain.from_iterable(lists)))

    def recall(self, noted: Noted) -> None:
        """The opposite of `noted`."""
        (names, counts), values = noted.shape, iter(noted.values)
        for pending, known in zip(self._pending, names, strict=True):
            pending.clear()
            pending.update((name, next(values)) for name in known)
        for kept, count in zip((*self._parameters, *self._results), counts, strict=True):
            kept.clear()
            kept.extend(next(values) for _ in range(count))


class TexturingEnvironment(Environment):
    """An environment whose programs make texture requests."""

    requests: Requests[Any]

    def tmu_write(self, unit: int, register: str, value: Any, mask: Any, site: int) -> None:
        self.requests.write(unit, register, value, site)

    def tmu_load(self, unit: int) -> Any:
        return self.requests.load(unit)


def texture_numbers(program: Program) -> dict[int, int]:
    """Index of the S write's instruction → number of its texture request; no direct lookups."""
    textures = [request for request in program.texture_requests if not request.is_direct]
    return {request.instruction_index: number for number, request in enumerate(textures)}

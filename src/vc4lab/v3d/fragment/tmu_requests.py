"""A program's texture requests as they build up: coordinates written, lookups made, results read.

One `Requests` per program run; the engine-specific part is two functions, one that samples and one
that looks memory up. Source: hardware reference 4.14, 6.1.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from vc4lab.qpu.environment import Noted, Unsupported

if TYPE_CHECKING:
    from vc4lab.qpu.program import Program

MAX_REQUESTS = 32
"""Texture requests (S writes that are not direct lookups) of one program."""

Sampler = Callable[[int, list[Any]], Sequence[Any]]
"""`sample(number, [s, t, r, b])`: the result vectors of texture request `number`."""

Lookup = Callable[[Any], Any]
"""`lookup(addresses)`: the words at 16 addresses."""


class Requests:
    """The two TMU queues of one program.

    Parameters
    ----------
    numbers
        Instruction index of an S write → number of its texture request.
    count
        Texture requests that are configured.
    skip_uniform
        Called for each configuration word the hardware takes from the uniform stream.
    zero
        A vector of zeros, for coordinates that were not written.
    """

    def __init__(
        self,
        numbers: Mapping[int, int],
        count: int,
        *,
        sample: Sampler,
        lookup: Lookup,
        skip_uniform: Callable[[], None],
        zero: Callable[[], Any],
    ) -> None:
        self.numbers = numbers
        self.count = count
        self.sample = sample
        self.lookup = lookup
        self.skip_uniform = skip_uniform
        self.zero = zero
        self._pending: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
        self._results: tuple[deque[Any], deque[Any]] = (deque(), deque())

    def write(self, unit: int, register: str, value: Any, site: int) -> None:
        """A write of S, T, R or B by the instruction at index `site`. Raises Unsupported."""
        pending = self._pending[unit]
        if register == "s" and not pending:
            self._results[unit].append(self.lookup(value))
            return
        self.skip_uniform()
        pending[register] = value
        if register != "s":
            return
        number = self.numbers.get(site, -1)
        if not 0 <= number < self.count:
            raise Unsupported("FRG-002", f"texture request {number} has no configuration", site)
        coordinates = [pending[name] if name in pending else self.zero() for name in "strb"]
        self._results[unit].extend(self.sample(number, coordinates))
        pending.clear()

    def load(self, unit: int) -> Any:
        """The oldest result of a unit. Raises Unsupported if there is none."""
        if not self._results[unit]:
            raise Unsupported("FRG-003", f"TMU{unit} result read, but no lookup was requested")
        return self._results[unit].popleft()

    def noted(self) -> Noted:
        """Requests being written and results not yet read."""
        shape = tuple(tuple(pending) for pending in self._pending), tuple(map(len, self._results))
        values = [value for pending in self._pending for value in pending.values()]
        return Noted(shape, (*values, *self._results[0], *self._results[1]))

    def recall(self, noted: Noted) -> None:
        """The opposite of `noted`."""
        (names, counts), values = noted.shape, iter(noted.values)
        for pending, known in zip(self._pending, names, strict=True):
            pending.clear()
            pending.update((name, next(values)) for name in known)
        for results, count in zip(self._results, counts, strict=True):
            results.clear()
            results.extend(next(values) for _ in range(count))


def texture_numbers(program: Program) -> dict[int, int]:
    """Index of the S write's instruction → number of its texture request; no direct lookups."""
    textures = [request for request in program.texture_requests if not request.is_direct]
    return {request.instruction_index: number for number, request in enumerate(textures)}

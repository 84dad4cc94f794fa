"""A program and a rearranged one run with the same memory and uniforms, and timed: whether they leave
the same memory, and which is quicker.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from vc4lab.diagnostics import Reporter, Severity
from vc4lab.kernels.interface import Argument, Interface, InterfaceError, parse
from vc4lab.kernels.kernel import Kernel, KernelError
from vc4lab.timing.user_programs import ProgramTiming
from vc4lab.v3d.user_programs.experiment import Experiment

if TYPE_CHECKING:
    from typing import Any

LENGTH = 1536
"""Elements of an array whose interface does not say how many, and what a number is divided by so that
all twelve QPUs have work.
"""
NUMBER = 96
"""A whole number without a default."""


class Measured(NamedTuple):
    """Holds what a run left: clocks on the chip, the bytes of all memories, and codes of errors."""

    clocks: int
    memory: tuple[bytes, ...]
    errors: frozenset[str] = frozenset()


class NoTrial(Exception):  # noqa: N818 - a fact about the inputs
    """The program cannot be run with these inputs; the message says why."""


@dataclass(frozen=True)
class Trial:
    """Inputs for a program.

    Attributes
    ----------
    memory, uniforms, qpus
        As `vc4lab run` takes them; memories are filled with random numbers, if not from files.
    text
        The source, whose interface says what to run it with if there are neither memories nor
        uniforms.
    chip, board
        What it is timed on.
    """

    memory: Sequence[str] = ()
    uniforms: Sequence[str] = ()
    qpus: int = 1
    text: str = ""
    chip: str = "videocore4"
    board: str = ""
    seed: int = field(default=1)

    @property
    def is_possible(self) -> bool:
        """Whether there is anything to run it with."""
        return bool(self.memory or self.uniforms) or interface_of(self.text) is not None

    def run(self, words: Sequence[int], entry: int = 0, raw: Collection[int] = ()) -> Measured:
        """Run and time a program. entry: an instruction. Raises NoTrial, ValueError, OSError, BadChip."""
        if self.memory or self.uniforms:
            return self._with_options(words, entry, raw)
        interface = interface_of(self.text)
        if interface is None:
            raise NoTrial("there are no inputs")
        return self._with_interface(words, interface)

    def _with_options(self, words: Sequence[int], entry: int, raw: Collection[int]) -> Measured:
        code = b"".join(word.to_bytes(8, "little") for word in words)
        reporter = Reporter()
        experiment = Experiment(code, entry=8 * entry, reporter=reporter, raw=raw)
        values = np.random.default_rng(self.seed)
        for text in self.memory:
            area = experiment.add_area(text)
            if "@" not in text:
                count = area.size // 4
                experiment.memory.array(area.address, count, "f4")[:] = values.uniform(1, 2, count)
        timing = ProgramTiming(self.chip, self.board)
        with timing.listen(experiment.programs.listeners):
            report = experiment.run(self.qpus, self.uniforms)
        if report.completed < report.started:
            raise NoTrial("; ".join(report.waiting) or "it does not end")
        errors = frozenset(one.code for one in reporter.items if one.severity >= Severity.ERROR)
        areas = experiment.areas.values()
        return Measured(
            timing.result().clocks,
            tuple(bytes(experiment.memory.read(area.address, area.size)) for area in areas),
            errors,
        )

    def _with_interface(self, words: Sequence[int], interface: Interface) -> Measured:
        kernel = Kernel(words, interface=interface.comments)
        values = np.random.default_rng(self.seed)
        try:
            given = {
                one.name: _value(one, values)
                for one in interface.arguments
                if one.direction != "out" and (one.is_array or one.default is None)
            }
            result = kernel(qpus=self.qpus, **given)
            timing = kernel.timing(qpus=self.qpus, chip=self.chip, board=self.board, **given)
        except (InterfaceError, KernelError) as error:
            raise NoTrial(str(error)) from None
        results = result if isinstance(result, tuple) else (result,)
        return Measured(timing.clocks, tuple(one.tobytes() for one in results if one is not None))


def interface_of(text: str) -> Interface | None:
    """The interface that a source declares; None if it declares none that can be understood."""
    try:
        return parse(text)
    except InterfaceError:
        return None


def _value(argument: Argument, values: np.random.Generator) -> Any:
    if not argument.is_array:
        return 1.5 if argument.kind == "float" else NUMBER
    shape = (LENGTH,) if len(argument.sizes) < 2 else (NUMBER,) * len(argument.sizes)
    if argument.kind in ("float", "half"):
        return values.uniform(1, 2, shape).astype(np.float32)
    return values.integers(0, 100, shape).astype(np.int32)

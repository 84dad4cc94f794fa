"""Sets up what a session runs: an experiment's programs on their QPUs, with their source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from vc4lab.debug.history import Journal
from vc4lab.debug.qpu import Observer, SteppedQpu
from vc4lab.v3d.user_programs.experiment import CODE

if TYPE_CHECKING:
    from vc4lab.debug.source import Source
    from vc4lab.diagnostics import Diagnostic
    from vc4lab.v3d.user_programs.experiment import Experiment


class Stage:
    """The programs of an experiment that has not run.

    Attributes
    ----------
    qpus
        By number.
    journal, observer
        What was overwritten in guest memory; what the last turn has accessed there.
    """

    def __init__(
        self,
        experiment: Experiment,
        source: Source,
        qpus: int,
        uniforms: Sequence[str],
        on_message: Callable[[Diagnostic], None],
    ) -> None:
        self.experiment, self.source = experiment, source
        self.memory = experiment.memory
        programs = experiment.programs
        self.unit = programs.unit
        self.unit.interpreted = SteppedQpu
        experiment.reporter.listeners.append(on_message)
        experiment.start(qpus, uniforms)
        self.unit.prepare(programs.reserved_rows)
        self.journal = Journal(self.memory.base)
        self.observer = Observer(self.memory.base, self.journal.before_write)
        self.qpus: dict[int, SteppedQpu] = {}
        for number, qpu in sorted(programs.running.items()):
            assert isinstance(qpu, SteppedQpu)
            qpu.observer = self.observer
            self.qpus[number] = qpu

    def code_address(self, offset: int) -> int:
        """Return the address of the word at a byte offset of the program."""
        return CODE + offset

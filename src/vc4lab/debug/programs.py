"""Sets up a session of user programs: those of an experiment on their QPUs."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from vc4lab.debug.qpu import SteppedQpu
from vc4lab.debug.stage import Stage
from vc4lab.v3d.user_programs.state import vpm_bytes
from vc4lab.v3d.vpm.shader_rows import ROW_BYTES, WINDOW_ROWS

if TYPE_CHECKING:
    from vc4lab.debug.source import Source
    from vc4lab.debug.stepped import Stepped
    from vc4lab.v3d.user_programs.experiment import Experiment


class ProgramStage(Stage):
    """The programs of an experiment that has not run."""

    def __init__(
        self, experiment: Experiment, source: Source, qpus: int = 1, uniforms: Sequence[str] = ()
    ) -> None:
        super().__init__(experiment.memory, source, experiment.reporter)
        self.experiment, self.areas = experiment, experiment.areas
        programs = experiment.programs
        self.unit = programs.unit
        self.shared = self.unit.shared
        self.unit.interpreted = SteppedQpu
        experiment.start(qpus, uniforms)
        self.unit.prepare(programs.reserved_rows)
        for number, qpu in sorted(programs.running.items()):
            assert isinstance(qpu, SteppedQpu)
            qpu.observer = self.observer
            self.qpus[number] = qpu

    def report(self, qpu: Stepped) -> None:
        assert isinstance(qpu, SteppedQpu)
        if qpu.take_news():
            self.unit.report(qpu)
        self.unit.textures_met.report()

    def report_deadlock(self, text: str) -> None:
        if not self.reporter.counts["QPU-050"]:
            self.experiment.programs.report_waiting(text)

    def saved(self) -> bytes:
        return bytes(self.unit.shared)

    def restore(self, saved: bytes) -> None:
        ctypes.memmove(self.unit.shared.address, saved, len(saved))
        self.unit.textures.clear()  # what slots point to may be gone

    def vpm_rows(self) -> Any:
        data = vpm_bytes(self.unit.shared)[: WINDOW_ROWS * ROW_BYTES]
        return data.view(np.uint32).reshape(WINDOW_ROWS, ROW_BYTES // 4)

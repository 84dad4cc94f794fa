"""The registers of user programs: queue, reservations, VPM memory, and the errors of all blocks.

As in `core.py`, the behaviour of a register is a method named after it. Source: hardware reference
2.7-2.10.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vc4lab.v3d.events import ProgramStarted
from vc4lab.v3d.memory_uses import Use
from vc4lab.v3d.registers import Errors

if TYPE_CHECKING:
    from vc4lab.qpu.program.program import Program
    from vc4lab.v3d.register_owner import RegisterOwner
    from vc4lab.v3d.user_programs.qpu import Request


class ProgramRegisters:
    """What these registers of a V3D do."""

    def __init__(self, v3d: RegisterOwner) -> None:
        self._v3d = v3d
        self._values = v3d.values
        self._programs = v3d.programs
        v3d.programs.on_start = self._started

    def _started(self, request: Request, program: Program) -> None:
        v3d, size = self._v3d, 8 * len(program.words)
        if v3d.listeners.program_started.subscriptions:
            v3d.listeners.program_started.emit(
                ProgramStarted(request.code, request.uniforms, request.length, size)
            )
        uses = v3d.lint.addresses.uses
        uses(Use.CODE, request.code, size)
        count = request.length if request.limited else len(program.uniform_sites)
        if count and request.uniforms:
            uses(Use.UNIFORMS, request.uniforms, 4 * count)

    @property
    def _lists_run(self) -> bool:
        return any(thread.running for thread in self._v3d.threads)

    def _on_write_SRQPC(self, value: int) -> None:
        self._programs.request(value, self._values["SRQUA"], self._values["SRQUL"])

    def _on_read_SRQCS(self) -> int:
        self._programs.look()
        return self._programs.status()

    def _on_write_SRQCS(self, value: int) -> None:
        self._programs.control(value)

    def _on_read_ERRSTAT(self) -> int:
        v3d = self._v3d
        idle = not self._lists_run and not self._programs.busy
        return (
            self._values["ERRSTAT"]
            | self._programs.errors
            | v3d.binning.coordinates.errors
            | v3d.frames.preparer.vertices.errors
            | Errors.make(
                VCMBE=v3d.binning.index_error,
                VCMRE=v3d.frames.index_error,
                VCDI=idle and v3d.unknowns["errstat_vcdi"] == "idle",
            ).value
        )

    def _on_write_SQRSV0(self, value: int) -> None:
        self._values["SQRSV0"] = value
        self._programs.reserve(0, value)

    def _on_write_SQRSV1(self, value: int) -> None:
        self._values["SQRSV1"] = value
        self._programs.reserve(8, value)

    def _on_write_VPMBASE(self, value: int) -> None:
        if self._programs.busy or self._lists_run:
            self._values["ERRSTAT"] |= Errors.VPAEABB.mask
        self._values["VPMBASE"] = value & 0x1F
        self._programs.reserved_rows = 4 * (value & 0x1F)

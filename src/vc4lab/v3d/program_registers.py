"""The registers of user programs: queue, reservations, VPM memory, and the errors of all blocks.

Source: hardware reference 2.7-2.10.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vc4lab.registers import Block, Register
from vc4lab.v3d.memory_uses import Use
from vc4lab.v3d.user_programs.scheduler import RequestQueue
from vc4lab.v3d.vpm.errors import Errors

if TYPE_CHECKING:
    from vc4lab.qpu.program.program import Program
    from vc4lab.v3d.list_registers import RegisterOwner
    from vc4lab.v3d.user_programs.qpu import ProgramRequest


class ProgramRegisters(Block):
    """User programs, the VPM's shares, and ERRSTAT."""

    SQRSV = Register(0x410, count=2, names="SQRSV{}", doc="reserve QPUs 0-7, 8-15")
    SQCNTL = Register(0x418, doc="QPU scheduler control")
    SQCSTAT = Register(0x41C, access="r", doc="undocumented scheduler state")
    SRQPC = Register(0x430, access="w", doc="user program request: code address")
    SRQUA = Register(0x434, doc="user program request: uniforms address")
    SRQUL = Register(0x438, doc="user program request: uniforms length")
    SRQCS = Register(0x43C, fields=RequestQueue, doc="user program queue")
    VPACNTL = Register(0x500, doc="VPM allocator control")
    VPMBASE = Register(0x504, doc="VPM rows reserved for user programs")
    ERRSTAT = Register(0xF20, access="r", fields=Errors, doc="errors")
    REQUESTS = frozenset((SRQPC.offset, SRQUA.offset, SRQUL.offset))
    """A write to these lets programs that wait in the queue wait on, for those to come."""

    def __init__(self, v3d: RegisterOwner) -> None:
        super().__init__(v3d.values)
        self._v3d = v3d
        self._programs = v3d.programs
        v3d.programs.on_start = self._started

    def _started(self, request: ProgramRequest, program: Program) -> None:
        uses = self._v3d.lint.addresses.uses
        uses(Use.CODE, request.code, 8 * len(program.words))
        count = request.length if request.limited else len(program.uniform_sites)
        if count and request.uniforms:
            uses(Use.UNIFORMS, request.uniforms, 4 * count)

    @property
    def _lists_run(self) -> bool:
        return any(thread.running for thread in self._v3d.threads)

    def on_write_SRQPC(self, value: int) -> None:
        self._programs.request(value, self.values["SRQUA"], self.values["SRQUL"])

    def on_read_SRQCS(self) -> int:
        self._programs.look()
        return self._programs.status()

    def on_write_SRQCS(self, value: int) -> None:
        self._programs.control(value)

    def on_read_ERRSTAT(self) -> int:
        v3d = self._v3d
        idle = not self._lists_run and not self._programs.busy
        return (
            self.values["ERRSTAT"]
            | self._programs.errors
            | v3d.binning.coordinates.errors
            | v3d.frames.preparer.vertices.errors
            | Errors.make(
                VCMBE=v3d.binning.index_error,
                VCMRE=v3d.frames.index_error,
                VCDI=idle and v3d.unknowns["errstat_vcdi"] == "idle",
            ).value
        )

    def on_write_SQRSV(self, half: int, value: int) -> None:
        self.values[f"SQRSV{half}"] = value
        self._programs.reserve(8 * half, value)

    def on_write_VPMBASE(self, value: int) -> None:
        if self._programs.busy or self._lists_run:
            self.values["ERRSTAT"] |= Errors.VPAEABB.mask
        self.values["VPMBASE"] = value & 0x1F
        self._programs.reserved_rows = 4 * (value & 0x1F)

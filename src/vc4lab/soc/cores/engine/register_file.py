"""A core's registers, as the engine has them."""

from __future__ import annotations

from abc import ABC
from typing import Any

from vc4lab.soc.address.polling import CoreRegisters
from vc4lab.soc.cores.engine.engine_calls import EngineCalls, RegisterBatch


class RegisterFile(ABC):
    """Reads and writes the registers of a core, one at a time or all together."""

    WIDE = False
    """Whether it is AArch64."""
    LAST_ADDRESS = 0xFFFFFFFF
    PC: int
    STATUS: int
    SYSTEM: int
    """The engine's numbers of the PC, of CPSR or PSTATE, and what stands for system registers."""
    NAMES: tuple[int, ...]
    """Those of r0..r15 or x0..x30, sp."""
    STATE: tuple[int, ...]
    """Those of the integer registers and the flags."""
    _place: RegisterBatch
    """PC and STATUS, and what else `refresh` reads."""
    engine: Any
    calls: EngineCalls
    _state: RegisterBatch
    """`STATE`."""

    def state(self) -> tuple[int, ...]:
        """The integer registers and the flags, to be compared."""
        return tuple(self._state.read())

    @property
    def state_batch(self) -> RegisterBatch:
        """How `state` reads them."""
        return self._state

    @property
    def registers(self) -> CoreRegisters:
        """The integer registers and the flags, for native code."""
        numbers, places, values, count = self._state.addresses
        return CoreRegisters(
            read=self.calls.address_of("uc_reg_read_batch"),
            numbers=numbers,
            places=places,
            values=values,
            count=count,
            step=RegisterBatch.STEP,
        )

    def register(self, number: int) -> int:
        """Value of r0..r15 or x0..x30, sp. Raises ValueError for another number."""
        if not 0 <= number < len(self.NAMES):
            raise ValueError(f"register: {number} is not from 0 to {len(self.NAMES) - 1}")
        return int(self.engine.reg_read(self.NAMES[number]))

    def set_register(self, number: int, value: int) -> None:
        """Set one of r0 to r14 or x0 to x30; the others are left alone."""
        if number != len(self.NAMES) - 1:
            self.engine.reg_write(self.NAMES[number], value & self.LAST_ADDRESS)

    def system_register(self, key: tuple[int, ...]) -> int:
        """Value of a system register by the engine's name for it."""
        return int(self.engine.reg_read(self.SYSTEM, key))

    def _write(self, key: tuple[int, ...], value: int) -> None:
        """Set a system register."""
        self.engine.reg_write(self.SYSTEM, (*key, value))

    @property
    def engine_pc(self) -> int:
        """The PC while the engine runs: exact in hooks, else the block's."""
        return int(self.engine.reg_read(self.PC))

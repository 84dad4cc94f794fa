"""The Cortex-A53's own system registers in AArch64 state, which the engine does not have.

They control latencies of the L2 cache, prefetching and coherency (SMPEN), none of which has an
effect here: they keep what is written. EL1 needs bits of ACTLR_EL2 for them that the firmware's
stub does not set, so that they are undefined there.
Source: Cortex-A53 MPCore Technical Reference Manual, 4.3 (register descriptions).
"""

from __future__ import annotations

from vc4lab.soc.cores.cpu import Cpu

READS = 1 << 21
"""Set in mrs, clear in msr."""
REGISTER = 0xFFDFFFE0
SMP_ENABLED = 1 << 6
FIRST_VALUES = {
    0xD519B040: 0x03000022,  # L2CTLR_EL1: four cores, latencies as the stub sets them
    0xD519B060: 0,  # L2ECTLR_EL1
    0xD519F200: 0x090CA000,  # CPUACTLR_EL1
    0xD519F220: SMP_ENABLED,  # CPUECTLR_EL1, as the stub sets it
    0xD519F240: 0,  # CPUMERRSR_EL1
    0xD519F260: 0,  # L2MERRSR_EL1
}
"""By the msr that writes it from x0."""
ZERO = 31


class A53Registers:
    """Those of one core."""

    def __init__(self, core: Cpu) -> None:
        self._core = core
        self._values = dict(FIRST_VALUES)

    def executes(self, word: int, level: int) -> bool:
        """Do an mrs or msr of one of them at an exception level; False: it is no such one."""
        name, target = word & REGISTER, word & 31
        if level < 2 or name not in self._values:
            return False
        if word & READS:
            self._core.set_register(target, self._values[name])
        else:
            self._values[name] = 0 if target == ZERO else self._core.register(target)
        return True

"""Interrupts cores: now, once they are unmasked, or later."""

from __future__ import annotations

from vc4lab.soc.cores.cores import Core
from vc4lab.soc.cores.exceptions.exceptions import ArmException
from vc4lab.soc.cores.exceptions.outcome import INTERRUPT
from vc4lab.soc.hardware import Hardware

KINDS = (ArmException.FIQ, ArmException.IRQ)
"""In the order in which they are taken."""
PENDING = (), KINDS[1:], KINDS[:1], KINDS
"""Those that wait: bit 0 an IRQ, bit 1 an FIQ."""


class CoreInterrupts:
    """The interrupts of a board as its cores see them."""

    def __init__(self, hardware: Hardware) -> None:
        self._hardware = hardware

    def _pending(self, core: Core) -> tuple[ArmException, ...]:
        hardware = self._hardware
        if hardware.local is not None:
            return PENDING[hardware.local.pending(core.number)]
        interrupts = hardware.interrupts
        return PENDING[interrupts.pending_irq | interrupts.pending_fiq << 1]

    def look(self, cores: list[Core]) -> None:
        """Note in each core what waits for it, masked or not; `wakes` looks at that only."""
        local = self._hardware.local
        lines = None if local is None else local.look_at_lines()
        for core in cores:
            core.pending = self._pending(core) if lines is None else PENDING[lines[core.number]]

    def wakes(self, core: Core) -> bool:
        """As `wake`, when `look` was called last."""
        pending = core.pending
        if not pending or core.asleep == INTERRUPT:
            return bool(pending)
        return any(core.cpu.accepts(kind) for kind in pending)

    def can_come(self, core: Core) -> bool:
        """Whether anything can happen to a core; a masked interrupt ends only a wfi."""
        hardware = self._hardware
        awake = core.asleep != INTERRUPT
        if awake and not any(core.cpu.accepts(kind) for kind in KINDS):
            return False
        if hardware.local is not None:
            return hardware.local.can_interrupt(core.number)
        return hardware.interrupts.any_enabled

    def will_be_taken(self, core: Core) -> bool:
        """Whether the core takes one before its next instruction."""
        pending = self._pending(core)
        return bool(pending) and any(core.cpu.accepts(kind) for kind in pending)

    def wake(self, core: Core) -> bool:
        """Whether one ends what a core sleeps in; it need not be unmasked to end a wfi."""
        if core.asleep == INTERRUPT:
            return bool(self._pending(core))
        return self.will_be_taken(core)

    def deliver(self, core: Core) -> None:
        """Let the core take a waiting interrupt, or stop as soon as it unmasks one."""
        cpu, counter = core.cpu, self._hardware.counter
        pending = self._pending(core)
        for kind in pending:
            if cpu.accepts(kind):
                cpu.interrupt(kind)
                break
        if not pending:
            counter.watch_masks(0, 0, 0)
            return
        masks, register = cpu.mask_register
        counter.watch_masks(masks, cpu.cpsr & masks, register)

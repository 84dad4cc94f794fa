"""Puts the peripherals into the window that know of each other: DMA and the devices it serves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vc4lab.soc.dma import Dma, DmaUnit, Pacer
from vc4lab.soc.dma_transfer import Mover

if TYPE_CHECKING:
    from vc4lab.soc.machine import Machine

UART_RX = 14
"""Number of the device in a control block (PERMAP)."""
TYPING_NS = 1_000_000
"""How often a channel looks whether somebody typed."""


def add_dma(machine: Machine) -> Dma:
    """The DMA and its channels, on the machine's bus."""
    unit = DmaUnit(
        Mover(machine.memory, machine.bus),
        machine.clock,
        machine.interrupts,
        machine.reporter,
        lambda: machine.processors.code_changed(),
    )
    serial = machine.serial
    unit.pacers[UART_RX] = Pacer(
        lambda: len(serial._input) if serial.waiting else 0, lambda: TYPING_NS
    )
    dma = Dma(unit)
    machine.bus.attach(dma)
    for offset, channel in dma.places():
        machine.bus.attach(channel, offset)
    return dma

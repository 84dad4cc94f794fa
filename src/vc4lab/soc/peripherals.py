"""Puts the peripherals into the window that know of each other: DMA and the devices it serves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vc4lab.soc.absent import ABSENT, Usb
from vc4lab.soc.dma import Dma, DmaUnit, Pacer
from vc4lab.soc.dma_transfer import Mover
from vc4lab.soc.emmc import Emmc
from vc4lab.soc.power import ClockManager
from vc4lab.soc.pwm import Pwm
from vc4lab.soc.sd_card import SdCard

if TYPE_CHECKING:
    from vc4lab.soc.machine import Machine

PWM, EMMC, UART_RX = 5, 11, 14
"""Numbers of the devices in a control block (PERMAP)."""
CM_PWM = 0xA0
"""Offset of the PWM's control register in the clock manager."""
TYPING_NS = 1_000_000
"""How often a channel looks whether somebody typed."""


def add_absent(machine: Machine) -> None:
    """The buses to which nothing is attached."""
    for kind in ABSENT:
        machine.bus.attach(kind(machine.reporter))
    machine.bus.attach(Usb(machine.reporter, machine.clock))


def add_pwm(machine: Machine) -> Pwm:
    """The PWM, with its clock."""
    clocks = next(block for _at, block in machine.bus.blocks if isinstance(block, ClockManager))
    pwm = Pwm(machine.clock, lambda: clocks.frequency(CM_PWM), machine.reporter)
    machine.bus.attach(pwm)
    return pwm


def add_emmc(machine: Machine) -> Emmc:
    """The EMMC controller, with the card in its slot."""
    card = SdCard(machine.card_slot, machine.reporter)
    emmc = Emmc(card, machine.clock, machine.interrupts, machine.reporter)
    machine.bus.attach(emmc)
    return emmc


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
    unit.pacers[PWM] = Pacer(machine.pwm.room, machine.pwm.wait)
    unit.pacers[EMMC] = Pacer(machine.emmc.room, machine.emmc.wait)
    dma = Dma(unit)
    machine.bus.attach(dma)
    for offset, channel in dma.places():
        machine.bus.attach(channel, offset)
    return dma

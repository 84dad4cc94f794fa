"""Puts the peripherals into the window that know of each other: DMA and the devices it serves."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from vc4lab.soc.absent import I2c0, I2c1, I2c2, Spi, Spi1, Spi2
from vc4lab.soc.dma import Dma, DmaUnit, Pacer
from vc4lab.soc.dma_transfer import Mover
from vc4lab.soc.emmc import Emmc
from vc4lab.soc.pcm import Pcm
from vc4lab.soc.power import ClockManager
from vc4lab.soc.pwm import Pwm
from vc4lab.soc.sd_card import SdCard
from vc4lab.soc.usb import Usb

if TYPE_CHECKING:
    from vc4lab.soc.machine import Machine

PCM_TX, PCM_RX, PWM, EMMC, UART_RX = 2, 3, 5, 11, 14
"""Numbers of the devices in a control block (PERMAP)."""
CM_PCM, CM_PWM = 0x98, 0xA0
"""Offsets of control registers in the clock manager."""
TYPING_NS = 1_000_000
"""How often a channel looks whether somebody typed."""


def add_absent(machine: Machine) -> None:
    """The buses to which nothing is attached."""
    common = machine.reporter, machine.interrupts
    asking: set[str] = set()
    machine.bus.attach(Spi(*common))
    for controller in (I2c0, I2c1, I2c2):
        machine.bus.attach(controller(*common, asking))
    machine.bus.attach(Usb(*common, machine.clock))
    aux = machine.mini_uart
    for kind in (Spi1, Spi2):
        spi = kind(*common, partial(aux.is_enabled, kind.NUMBER), aux.update)
        aux.sources[kind.NUMBER] = partial(getattr, spi, "interrupts")
        machine.bus.attach(spi)


def _frequency(machine: Machine, control: int) -> Callable[[], float]:
    clocks = next(block for _at, block in machine.bus.blocks if isinstance(block, ClockManager))
    return lambda: clocks.frequency(control)


def add_sound(machine: Machine) -> tuple[Pwm, Pcm]:
    """The PWM and the I2S interface, with their clocks."""
    pwm = Pwm(machine.clock, _frequency(machine, CM_PWM), machine.reporter)
    pcm = Pcm(machine.reporter, machine.interrupts, machine.clock, _frequency(machine, CM_PCM))
    machine.bus.attach(pwm)
    machine.bus.attach(pcm)
    return pwm, pcm


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
    unit.pacers[UART_RX] = Pacer(lambda: serial.pending, lambda: TYPING_NS)
    unit.pacers[PCM_TX] = Pacer(machine.pcm.room, machine.pcm.wait)
    unit.pacers[PCM_RX] = Pacer(machine.pcm.data, machine.pcm.wait)
    unit.pacers[PWM] = Pacer(machine.pwm.room, machine.pwm.wait)
    unit.pacers[EMMC] = Pacer(machine.emmc.room, machine.emmc.wait)
    dma = Dma(unit)
    machine.bus.attach(dma)
    for offset, channel in dma.places():
        machine.bus.attach(channel, offset)
    return dma

"""Connects the peripherals that depend on each other: the DMA and the devices that it serves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from vc4lab.soc.devices.absent import I2c0, I2c1, I2c2, Spi, Spi1, Spi2
from vc4lab.soc.devices.dma import Dma, DmaUnit, Pacer
from vc4lab.soc.devices.dma_transfer import Mover
from vc4lab.soc.devices.pcm import Pcm
from vc4lab.soc.devices.power import ClockManager
from vc4lab.soc.devices.pwm import Pwm
from vc4lab.soc.devices.usb import Usb
from vc4lab.soc.sd.emmc import Emmc
from vc4lab.soc.sd.sd_card import SdCard

if TYPE_CHECKING:
    from vc4lab.soc.address.bus import Bus
    from vc4lab.soc.devices.interrupts import InterruptController
    from vc4lab.soc.devices.mini_uart import Auxiliary
    from vc4lab.soc.devices.serial import SerialPort
    from vc4lab.soc.sd.card_slot import CardSlot

PCM_TX, PCM_RX, PWM, EMMC, UART_RX = 2, 3, 5, 11, 14
"""Numbers of the devices in a control block (PERMAP)."""
CM_PCM, CM_PWM = 0x98, 0xA0
"""Offsets of control registers in the clock manager."""
TYPING_NS = 1_000_000
"""How often a channel looks whether something was typed."""


def add_absent(bus: Bus, interrupts: InterruptController, aux: Auxiliary) -> None:
    """The buses to which nothing is attached."""
    common = bus.reporter, interrupts
    asking: set[str] = set()
    bus.attach(Spi(*common))
    for controller in (I2c0, I2c1, I2c2):
        bus.attach(controller(*common, asking))
    bus.attach(Usb(*common, bus.clock))
    for kind in (Spi1, Spi2):
        spi = kind(*common, partial(aux.is_enabled, kind.NUMBER), aux.update)
        aux.sources[kind.NUMBER] = partial(getattr, spi, "interrupts")
        bus.attach(spi)


def _frequency(bus: Bus, control: int) -> Callable[[], float]:
    clocks = next(block for _at, block in bus.blocks if isinstance(block, ClockManager))
    return lambda: clocks.frequency(control)


def add_sound(bus: Bus, interrupts: InterruptController) -> tuple[Pwm, Pcm]:
    """The PWM and the I2S interface, with their clocks."""
    pwm = Pwm(bus.clock, _frequency(bus, CM_PWM), bus.reporter)
    pcm = Pcm(bus.reporter, interrupts, bus.clock, _frequency(bus, CM_PCM))
    bus.attach(pwm)
    bus.attach(pcm)
    return pwm, pcm


def add_emmc(bus: Bus, interrupts: InterruptController, slot: CardSlot) -> Emmc:
    """The EMMC controller, with the card in its slot."""
    card = SdCard(slot, bus.reporter)
    emmc = Emmc(card, bus.clock, interrupts, bus.reporter)
    bus.attach(emmc)
    return emmc


@dataclass(frozen=True)
class Devices:
    """Those that the DMA serves at their own pace."""

    serial: SerialPort
    pcm: Pcm
    pwm: Pwm
    emmc: Emmc


def add_dma(
    bus: Bus,
    interrupts: InterruptController,
    mover: Mover,
    devices: Devices,
    code_changed: Callable[[], None],
) -> Dma:
    """The DMA and its channels."""
    unit = DmaUnit(mover, bus.clock, interrupts, bus.reporter, code_changed)
    serial = devices.serial
    unit.pacers[UART_RX] = Pacer(lambda: serial.pending, lambda: TYPING_NS)
    unit.pacers[PCM_TX] = Pacer(devices.pcm.room, devices.pcm.wait)
    unit.pacers[PCM_RX] = Pacer(devices.pcm.data, devices.pcm.wait)
    unit.pacers[PWM] = Pacer(devices.pwm.room, devices.pwm.wait)
    unit.pacers[EMMC] = Pacer(devices.emmc.room, devices.emmc.wait)
    dma = Dma(unit)
    bus.attach(dma)
    for offset, channel in dma.places():
        bus.attach(channel, offset)
    return dma

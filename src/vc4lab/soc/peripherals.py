"""Connects the peripherals that depend on each other: the DMA and the devices that it serves."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from vc4lab.soc.address.bus import Bus
from vc4lab.soc.devices.absent import I2c0, I2c1, I2c2, Spi, Spi1, Spi2
from vc4lab.soc.devices.dma import Dma, DmaUnit, Pacer
from vc4lab.soc.devices.dma_transfer import Mover
from vc4lab.soc.devices.interrupts import InterruptController
from vc4lab.soc.devices.mini_uart import Auxiliary
from vc4lab.soc.devices.pcm import Pcm
from vc4lab.soc.devices.pwm import Pwm
from vc4lab.soc.devices.serial import SerialPort
from vc4lab.soc.devices.usb import Usb
from vc4lab.soc.sd.emmc import Emmc

PCM_TX, PCM_RX, PWM, EMMC, UART_RX = 2, 3, 5, 11, 14
"""Numbers of the devices in a control block (PERMAP)."""
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


def add_dma(
    bus: Bus,
    interrupts: InterruptController,
    mover: Mover,
    devices: tuple[SerialPort, Pcm, Pwm, Emmc],
    code_changed: Callable[[], None],
) -> Dma:
    """The DMA and its channels, some of which serve devices at their own pace."""
    unit = DmaUnit(mover, bus.clock, interrupts, bus.reporter, code_changed)
    serial, pcm, pwm, emmc = devices
    unit.pacers[UART_RX] = Pacer(lambda: serial.pending, lambda: TYPING_NS)
    unit.pacers[PCM_TX] = Pacer(pcm.room, pcm.wait)
    unit.pacers[PCM_RX] = Pacer(pcm.data, pcm.wait)
    unit.pacers[PWM] = Pacer(pwm.room, pwm.wait)
    unit.pacers[EMMC] = Pacer(emmc.room, emmc.wait)
    dma = Dma(unit)
    bus.attach(dma)
    for offset, channel in dma.places():
        bus.attach(channel, offset)
    return dma

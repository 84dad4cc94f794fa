"""A board's blocks put together: their addresses and connections.

What looks at a whole board (`inspect/`, `caches/`) and what runs its cores (`slices/`) know this class
only; `machine.py` puts them together with it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from vc4lab.diagnostics import Reporter, StrictStop
from vc4lab.memory import GuestMemory
from vc4lab.soc.address.bus import Bus
from vc4lab.soc.board import Board
from vc4lab.soc.boot.boot_plan import BootPlan
from vc4lab.soc.boot.clock_rates import CORE, PIXEL, V3D_CLOCK, VEC
from vc4lab.soc.boot.clock_rates import UART as UART_CLOCK
from vc4lab.soc.boot.linked_for_zero import LinkedForZero
from vc4lab.soc.clock import NANOSECONDS, Clock
from vc4lab.soc.cores.address_space import AddressSpace
from vc4lab.soc.cores.code.traps import CoreLinks
from vc4lab.soc.cores.cores import Cores
from vc4lab.soc.cores.cpu import Cpu
from vc4lab.soc.cores.first_state import first_prescaler, make_core
from vc4lab.soc.cores.generic_timer import GenericTimer
from vc4lab.soc.devices.buses.absent import Spi, Spi1, Spi2
from vc4lab.soc.devices.buses.i2c import EDID_ADDRESS, I2c0, I2c1, I2c2, Monitor
from vc4lab.soc.devices.buses.usb import Usb
from vc4lab.soc.devices.clock_manager import CM_PCM, CM_PWM, GENERATORS, ClockManager, Plls
from vc4lab.soc.devices.dma import Dma, DmaUnit, Dreq, Pacer
from vc4lab.soc.devices.dma_transfer import Fifo, Mover
from vc4lab.soc.devices.gpio import Gpio
from vc4lab.soc.devices.interrupts import InterruptController
from vc4lab.soc.devices.local_block import LocalBlock
from vc4lab.soc.devices.power import Bridges, PowerManager, Random, Thermometer
from vc4lab.soc.devices.serial.mini_uart import Auxiliary
from vc4lab.soc.devices.serial.serial import SerialPort
from vc4lab.soc.devices.serial.uart import ENABLE as UART_ENABLE
from vc4lab.soc.devices.serial.uart import Uart
from vc4lab.soc.devices.smi import Smi
from vc4lab.soc.devices.sound.pcm import Pcm
from vc4lab.soc.devices.sound.pwm import Pwm
from vc4lab.soc.devices.timers import ArmTimer, SystemTimer
from vc4lab.soc.devices.v3d_bridge import V3DBridge
from vc4lab.soc.display.connector import Connector, hotplug_pin
from vc4lab.soc.display.display_blocks import DisplayBlocks
from vc4lab.soc.events import MachineListeners, V3DMade
from vc4lab.soc.frames import FrameCounter
from vc4lab.soc.media.card_slot import CardSlot
from vc4lab.soc.native import SliceCounter
from vc4lab.soc.options import MachineOptions
from vc4lab.soc.sd.emmc import Emmc
from vc4lab.soc.sd.sd_card import SdCard
from vc4lab.soc.sd.sdhost import SdHost
from vc4lab.soc.videocore.edid import edid_block
from vc4lab.soc.videocore.framebuffer import Screen
from vc4lab.soc.videocore.mailbox import ANSWER_NS, Mailbox
from vc4lab.soc.videocore.properties import PropertyChannel
from vc4lab.soc.videocore.videocore import VideoCore
from vc4lab.soc.videocore.vpu.service import VpuService

SLOT_PIN, SDHOST_FUNCTION, EMMC_FUNCTION = 48, "alt0", "alt3"
"""The first of six pins that lead to the card (BCM2835 ARM Peripherals, table 6-31)."""
PL011_FUNCTION = "alt0"
"""The function of GPIO 14 and 15."""
FRAMEBUFFER_CHANNEL, PROPERTY_CHANNEL = 1, 8
"""Channels of the mailbox."""
TYPING_NS = 1_000_000
"""How often a channel of the DMA looks whether something was typed."""


class Hardware:
    """The blocks of a board, made but not running.

    Attributes
    ----------
    processors, cores
        All cores; those after the first are parked until they are released.
    before_slice
        For debuggers: called before each slice.
    after_rendering
        Called with the V3D when it has completed a frame, before the frame counts.
    places
        Writes an address, with its name in the program if it has one.
    has_caches
        Whether a model of the caches sees each access.
    is_paced
        Whether guest time is held back to the wall clock's.
    forgiving
        Whether what a board would refuse, or get wrong, works (`GpuOptions.forgiving`).
    """

    before_slice: Callable[[], None] | None = None
    after_rendering: Callable[[Any], None] | None = None
    has_caches = False
    is_paced = False

    def __init__(
        self,
        board: Board,
        plan: BootPlan,
        reporter: Reporter,
        serial: SerialPort,
        card_slot: CardSlot,
        options: MachineOptions,
        places: Callable[[int], str],
    ) -> None:
        self.board = board
        self.plan = plan
        self.reporter = reporter
        self.serial = serial
        self.card_slot = card_slot
        self.config = plan.config
        self.memory = GuestMemory(board.ram)
        self.counter = SliceCounter()
        self.clock = Clock(self.counter, board.ns_per_instruction)
        self._options = options
        self.forgiving = options.forgiving
        self.unknowns = options.gpu.unknowns
        self.listeners = MachineListeners()
        self.places = places
        self.linked_for_zero = LinkedForZero(plan)
        self.fake_vsync = self.config.flag("fake_vsync_isr")
        self.bus = Bus(board.peripherals, "P", self.clock, reporter)
        self.local_bus = Bus(board.local or 0, "L", self.clock, reporter, beside=self.bus)
        self.buses = self.bus, self.local_bus
        self.processors = Cores(plan, self.counter, self.bus)
        waits = options.gpu.unknowns["parked_cores"] == "wfe" and not self.forgiving
        self.processors.stub_waits = waits
        self._make_blocks()
        self.cores = self._make_cores()
        self.processors.add(self.cores)
        for bus in self.buses:
            bus.look_at(self.cores[0].registers)
        self.processors.others = lambda: (self.v3d_bridge.writes, self.mailbox.messages)

    # -- state of the whole ------------------------------------------------------------------------

    @property
    def seconds(self) -> float:
        """Guest time since power-on."""
        return self.clock.now / NANOSECONDS

    @property
    def cpu(self) -> Cpu:
        """The core whose turn it is."""
        return self.processors.current.cpu

    @property
    def explains_pictures(self) -> bool:
        """Whether frames and screens without a picture are explained: not those of Linux and its drivers."""
        return not (self.forgiving or self.plan.cleans_caches)

    @property
    def is_watched(self) -> bool:
        """Whether each instruction has to be seen: a debugger or a model of caches."""
        return self.before_slice is not None or self.has_caches

    def signs(self) -> tuple[int, ...]:
        """Changes when something happens that can be seen from outside."""
        return (
            self.frames.count,
            self.frames.changes,
            self.serial.sent,
            self.mailbox.messages,
            self.v3d_bridge.writes,
            self.gpio.changes,
            self.pwm.played,
        )

    @property
    def goes_on(self) -> bool:
        """Whether something happens without the cores: watchdog, DMA, V3D or firmware."""
        busy = self.dma.busy or self.v3d_bridge.is_busy or self.mailbox.is_busy
        return self.power.armed or busy

    @property
    def v3d(self) -> Any:
        """The V3D; None until the program has switched it on."""
        return self.v3d_bridge.v3d

    def report(self, code: str, text: str, address: int) -> None:
        """Report something about a core; that is no reason for strict mode to stop here."""
        try:
            self.reporter.report(code, text, address=address, block="cpu")
        except StrictStop:
            return

    def _report_of_core(self, code: str, text: str, address: int) -> None:
        """A core does something else than the program may want. Raises StrictStop."""
        self.reporter.report(code, text, address=address, block="cpu")

    # -- putting it together -----------------------------------------------------------------------

    def _make_blocks(self) -> None:
        board, clock, reporter = self.board, self.clock, self.reporter
        unknowns, cores = self.unknowns, self.processors
        self.interrupts = InterruptController(self._attention)
        self.v3d_bridge = V3DBridge(
            self._make_v3d,
            self.interrupts,
            reporter,
            self._render_done,
            clock,
            lambda: self.videocore.clock_rates[V3D_CLOCK],
        )
        self.videocore = VideoCore(
            board, self.config, self.memory, clock, reporter, self.v3d_bridge, unknowns, self.linked_for_zero
        )
        self.screen = Screen(self.videocore.framebuffer)
        self.properties = PropertyChannel(self.videocore)
        self.mailbox = Mailbox(
            self.interrupts,
            clock,
            reporter,
            {
                0: self.videocore.power_channel,
                FRAMEBUFFER_CHANNEL: self.videocore.framebuffer_channel,
                PROPERTY_CHANNEL: self.properties,
            },
            ANSWER_NS[unknowns["mailbox_answer_time"]],
            self.forgiving,
        )
        self.gpio = Gpio(clock, self.interrupts)
        self._connect_uarts()
        self.smi = Smi(self.interrupts)
        self.power = PowerManager(clock, reporter)
        self.timer = SystemTimer(clock, self.interrupts, reporter)
        rates = self.videocore.clock_rates
        main = board.arm_clock, rates[CORE], rates[V3D_CLOCK]
        plls = Plls(reporter, *main, all_run=unknowns["pll_start"] == "all")
        clocks = ClockManager(reporter, plls, rates)
        self.videocore.display_clocks = {PIXEL: plls.set_pixel_clock, VEC: clocks.start_vec}
        self.pwm = Pwm(clock, partial(clocks.frequency, CM_PWM), reporter)
        self.pcm = Pcm(reporter, self.interrupts, clock, partial(clocks.frequency, CM_PCM))
        self._make_card_controllers(clocks)
        for block in (
            self.timer,
            self.interrupts,
            ArmTimer(clock, self.interrupts, board.core_clock),
            self.mailbox,
            self.power,
            clocks,
            plls,
            Bridges(reporter),
            Thermometer(board.chip),
            Random(self.interrupts),
            self.gpio,
            self.uart,
            self.mini_uart,
            self.smi,
            self.v3d_bridge,
            self.pwm,
            self.pcm,
            self.emmc,
            self.sdhost,
        ):
            self.bus.attach(block)
        self._attach_display(plls, clocks)
        self._attach_absent()
        self.dma = self._make_dma()
        vpu = VpuService(
            self.memory, self.bus, board.core_clock, self.videocore.pool, unknowns, cores.code_changed
        )
        self.videocore.execute_code = vpu.call
        self.frames = FrameCounter(
            self.videocore.framebuffer,
            lambda: self.v3d_bridge.powered,
            lambda: self.smi.acknowledged,
            self._polls_v3d,
        )
        self.hvs.flipped = self.frames.list_changed

    def _make_card_controllers(self, clocks: ClockManager) -> None:
        """Both lead to the slot until its pins are given to one of them."""
        expected = not self.plan.cleans_caches
        card = SdCard(self.card_slot, self.reporter, is_expected=expected)
        common = card, self.clock, self.interrupts, self.reporter
        self.emmc = Emmc(*common, lambda: self._slot_function != SDHOST_FUNCTION)
        core_clock = partial(clocks.frequency, GENERATORS["VPU"])
        self.sdhost = SdHost(*common, lambda: self._slot_function != EMMC_FUNCTION, core_clock)

    @property
    def _slot_function(self) -> str:
        """The function of the pins at the slot."""
        return self.gpio.function(SLOT_PIN)

    def _render_done(self) -> None:
        """The V3D has completed a frame."""
        if self.after_rendering is not None:
            self.after_rendering(self.v3d)
        self.frames.render_done()

    def _polls_v3d(self) -> bool:
        """Whether the program reads a register of the V3D again and again."""
        polled = self.processors.polled
        return polled is not None and 0 <= polled.offset - V3DBridge.OFFSET < V3DBridge.SIZE

    def _connect_uarts(self) -> None:
        """Both UARTs as the firmware leaves them: which one the header has, and if it is on."""
        uart, asked = self.board.header_uart, self.config.flag("enable_uart")
        if self.config.frees_pl011:
            uart = PL011_FUNCTION
        ready = asked or not uart.startswith("(")
        line = self.serial, self.interrupts, self.gpio, self.reporter
        rates = self.videocore.clock_rates
        takes_time = not (self.forgiving or self.plan.cleans_caches)
        self.uart = Uart(*line, self.clock, lambda: rates[UART_CLOCK], takes_time)
        ready_mini = ready and "alt5" in uart
        self.mini_uart = Auxiliary(*line, self.clock, lambda: rates[CORE], takes_time, ready_mini)
        if asked and "alt0" in uart:
            self.uart.CR |= UART_ENABLE
        if ready:
            for pin in (14, 15):
                self.gpio.select(pin, uart.strip("()"))

    def _attach_display(self, plls: Plls, clocks: ClockManager) -> None:
        """Make the blocks that programs drive that do not leave the display to the firmware."""
        display = DisplayBlocks(
            self.memory,
            self.reporter,
            self.clock,
            self.interrupts,
            plls,
            clocks,
            self.bus.base,
            self.board.core_clock,
            self.unknowns,
        )
        self.hvs, self.pixel_valves, self.txp = display.hvs, display.valves, display.txp
        self.videocore.framebuffer.composition = self.hvs
        self.txp.written = self.processors.code_changed
        for block in display.blocks:
            self.bus.attach(block)
        self.monitor = Monitor(edid_block(*self.config.display_mode()))
        self.videocore.monitor_edid = self.monitor.tell
        pin = hotplug_pin(self.board, self.gpio, self.videocore)
        self.connector = Connector(self.monitor, display.hdmi, pin)

    def _attach_absent(self) -> None:
        """The buses to which nothing is attached."""
        bus, aux = self.bus, self.mini_uart
        common = self.reporter, self.interrupts
        asking: set[str] = set()
        bus.attach(Spi(*common))
        for kind in (I2c0, I2c1, I2c2):
            controller = kind(*common, asking)
            if kind is I2c2:
                controller.devices[EDID_ADDRESS] = self.monitor
            bus.attach(controller)
        bus.attach(Usb(*common, self.clock))
        for serial in (Spi1, Spi2):
            spi = serial(*common, partial(aux.is_enabled, serial.NUMBER), aux.update)
            aux.sources[serial.NUMBER] = partial(getattr, spi, "interrupts")
            bus.attach(spi)

    def _make_dma(self) -> Dma:
        """The DMA and its channels, some of which serve devices at their own pace."""
        mover, code_changed = Mover(self.memory, self.bus), self.processors.code_changed
        unit = DmaUnit(mover, self.clock, self.interrupts, self.reporter, code_changed)
        unit.at_once = self.forgiving
        unit.pacers[Dreq.UART_RX] = Pacer(lambda: self.serial.pending, lambda: TYPING_NS)
        unit.pacers[Dreq.UART_TX] = Pacer(self.uart.room, self.uart.wait)
        unit.pacers[Dreq.PCM_TX] = Pacer(self.pcm.room, self.pcm.wait)
        unit.pacers[Dreq.PCM_RX] = Pacer(self.pcm.data, self.pcm.wait)
        unit.pacers[Dreq.PWM] = Pacer(self.pwm.room, self.pwm.wait)
        unit.pacers[Dreq.EMMC] = Pacer(self.emmc.room, self.emmc.wait)
        unit.pacers[Dreq.SDHOST] = Pacer(self.sdhost.room, self.sdhost.wait)
        mover.fifos[SdHost.OFFSET + SdHost.FIFO] = Fifo(self.sdhost.take, self.sdhost.give)
        dma = Dma(unit)
        self.bus.attach(dma)
        for offset, channel in dma.places():
            self.bus.attach(channel, offset)
        return dma

    def _attention(self) -> None:
        """An interrupt waits: no core goes on as if nothing had happened."""
        self.clock.something_happened()
        self.counter.stop()

    def _make_cores(self) -> list[Cpu]:
        """The cores, and what they see of the address space."""
        board, cores, unknowns = self.board, self.processors, self.unknowns
        timers = [GenericTimer(self.clock, self.counter.stop) for _core in range(board.cores)]
        self.local: LocalBlock | None = None
        if board.local is not None:
            self.local = LocalBlock(
                self.interrupts,
                self.clock,
                timers,
                cores.attention,
                cores.mailed,
                first_prescaler(self.plan, unknowns),
                board.arm_clock,
            )
            self.local_bus.attach(self.local)
        cpus = [
            make_core(
                board,
                self.plan,
                unknowns,
                self.memory,
                self.counter,
                CoreLinks(
                    timer=timers[number] if board.local is not None else None,
                    cycles=lambda: self.clock.now * board.arm_clock // NANOSECONDS,
                    time_polled=self.bus.time_polled,
                    code_changed=cores.code_maintained,
                    report=self._report_of_core,
                    forgiving=self.forgiving,
                    bus=self.bus.address,
                    events=cores.events.address,
                ),
                number,
            )
            for number in range(board.cores)
        ]
        local = None if self.local is None else (self.local_bus, self.local.SIZE)
        self.address_space = AddressSpace(board, self.bus, local, self.places, unknowns)
        for cpu, following in zip(cpus, [*cpus[1:], cpus[0]], strict=True):
            self.address_space.lay_out(cpu)
            cpu.alignment.join(following.alignment)
        return cpus

    def _make_v3d(self) -> Any:
        options = self._options
        if options.v3d_factory is not None:
            return options.v3d_factory(self.memory, self.reporter)
        from vc4lab.v3d.checks.addresses import UNCACHED_ALIAS
        from vc4lab.v3d.core import V3D

        v3d = V3D(self.memory, self.reporter, options=options.gpu)
        v3d.lint.addresses.has_direct_bus = self.board.alias >> 30 == UNCACHED_ALIAS
        if self.explains_pictures:
            from vc4lab.debug.why.watch import EmptyFrames

            EmptyFrames(v3d, self.reporter)
        if self.listeners.v3d_made.subscriptions:
            self.listeners.v3d_made.emit(V3DMade(v3d))
        return v3d

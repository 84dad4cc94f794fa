"""A board's blocks put together: who is at which address, and who knows whom.

What the blocks have to say to what runs the machine are the abstract methods; the rooms that
look at a whole board (`cores.py`, `watchdog.py`, `guards.py`, `caches.py`) know this class only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from vc4lab.diagnostics import Reporter
from vc4lab.memory import GuestMemory
from vc4lab.soc.address.address_space import AddressSpace
from vc4lab.soc.address.block import Poll
from vc4lab.soc.address.bus import Bus
from vc4lab.soc.address.places import Places
from vc4lab.soc.board import Board
from vc4lab.soc.clock import NANOSECONDS, Clock
from vc4lab.soc.cores.cpu import Cpu
from vc4lab.soc.cores.generic_timer import MICROSECONDS, WHOLE, GenericTimer
from vc4lab.soc.cores.models import make_cpu
from vc4lab.soc.cores.outcome import UnhandledException
from vc4lab.soc.cores.traps import CoreLinks
from vc4lab.soc.devices.dma_transfer import Mover
from vc4lab.soc.devices.gpio import Gpio
from vc4lab.soc.devices.interrupts import InterruptController
from vc4lab.soc.devices.local_block import LocalBlock
from vc4lab.soc.devices.mini_uart import Auxiliary
from vc4lab.soc.devices.power import ClockManager, PowerManager, Random
from vc4lab.soc.devices.serial import SerialPort
from vc4lab.soc.devices.smi import Smi
from vc4lab.soc.devices.timers import ArmTimer, SystemTimer
from vc4lab.soc.devices.uart import ENABLE as UART_ENABLE
from vc4lab.soc.devices.uart import Uart
from vc4lab.soc.devices.v3d_bridge import V3DBridge
from vc4lab.soc.display_lint import DisplayLint
from vc4lab.soc.events import MachineListeners, V3DMade
from vc4lab.soc.frames import FrameCounter
from vc4lab.soc.native import SliceCounter
from vc4lab.soc.peripherals import Devices, add_absent, add_dma, add_emmc, add_sound
from vc4lab.soc.unknowns import Unknowns
from vc4lab.soc.videocore.clock_rates import V3D_CLOCK
from vc4lab.soc.videocore.framebuffer import Screen
from vc4lab.soc.videocore.mailbox import Mailbox
from vc4lab.soc.videocore.properties import PropertyChannel
from vc4lab.soc.videocore.videocore import VideoCore
from vc4lab.soc.videocore.vpu.service import VpuService

if TYPE_CHECKING:
    from vc4lab.soc.boot.boot_plan import BootPlan
    from vc4lab.soc.sd.card_slot import CardSlot

V3DSettings = tuple[str, Unknowns, Callable[[GuestMemory, Reporter], Any] | None]
"""The engine's name, the choices for undocumented hardware, and a maker for tests."""


class Hardware(ABC):
    """The blocks of a board, made but not running."""

    before_slice: Callable[[], None] | None = None
    """For debuggers: called before each slice."""

    def __init__(
        self,
        board: Board,
        plan: BootPlan,
        reporter: Reporter,
        serial: SerialPort,
        card_slot: CardSlot,
        v3d_settings: V3DSettings,
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
        self._v3d_settings = v3d_settings
        self.listeners = MachineListeners()
        self.places = Places(reporter)
        self.fake_vsync = self.config.flag("fake_vsync_isr")
        self._make_blocks()
        self.cores: list[Cpu] = self._make_cores()
        """All cores; those after the first are parked until they are released."""

    # -- what the blocks have to say ---------------------------------------------------------------

    @property
    @abstractmethod
    def cpu(self) -> Cpu:
        """The core whose turn it is."""

    @property
    @abstractmethod
    def asleep(self) -> str:
        """What the cores wait for, "" if one works."""

    @property
    @abstractmethod
    def is_watched(self) -> bool:
        """Whether each instruction has to be seen: a debugger or a model of caches."""

    @property
    @abstractmethod
    def ended(self) -> bool:
        """Whether the run is over."""

    @abstractmethod
    def start_core(self, core: int, address: int) -> bool:
        """Let a parked core begin; False if it runs already."""

    @abstractmethod
    def cores_look_again(self) -> None:
        """A core was sent an interrupt or a mailbox word."""

    @abstractmethod
    def send_event(self) -> None:
        """A core has executed SEV."""

    @abstractmethod
    def code_changed(self) -> None:
        """Code that was executed may have been written over."""

    @abstractmethod
    def signs(self) -> tuple[int, ...]:
        """Changes when something happens that can be seen from outside."""

    @abstractmethod
    def rest(self) -> None:
        """All cores wait, and time is about to skip."""

    @abstractmethod
    def report(self, code: str, text: str, address: int) -> None:
        """Report something about a core."""

    @abstractmethod
    def hang(self, text: str) -> None:
        """The program makes no progress any more."""

    @property
    @abstractmethod
    def polled(self) -> tuple[str, int, Poll] | None:
        """The register that a core polls, if no core does anything else."""

    @abstractmethod
    def pending_lines(self, core: int) -> str:
        """Names of the lines that ask a core for an interrupt now."""

    @abstractmethod
    def hang_in_interrupts(self, pc: int, core: int) -> None:
        """A core takes the same interrupt again and again."""

    @abstractmethod
    def halt(self, text: str) -> None:
        """The program has ended."""

    @abstractmethod
    def crash(self, crash: UnhandledException, reported: bool = False) -> None:
        """The program met an exception it has no handler for, or none that mends anything."""

    @abstractmethod
    def report_crash(self, crash: UnhandledException) -> None:
        """Report such an exception; the other cores may go on."""

    @abstractmethod
    def fail_lost(self, address: int) -> None:
        """The program counter has left the program."""

    @abstractmethod
    def _render_done(self) -> None:
        """The V3D has completed a frame."""

    @abstractmethod
    def _on_frame(self, count: int) -> None:
        """A frame is on the display."""

    @abstractmethod
    def _on_reset(self) -> None:
        """The watchdog has reset the board."""

    # -- state of the whole ------------------------------------------------------------------------

    @property
    def goes_on(self) -> bool:
        """Whether something happens without the cores: the watchdog, the DMA or the V3D."""
        return self.power.armed or self.dma.busy or self.v3d_bridge.is_busy

    @property
    def v3d(self) -> Any:
        """The V3D; None until the program has switched it on."""
        return self.v3d_bridge.v3d

    # -- putting it together -----------------------------------------------------------------------

    def _make_blocks(self) -> None:
        board, clock, reporter = self.board, self.clock, self.reporter
        unknowns = self._v3d_settings[1]
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
            board, self.config, self.memory, clock, reporter, self.v3d_bridge, unknowns
        )
        self.screen = Screen(self.videocore.framebuffer)
        self.display_lint = DisplayLint(self.videocore.framebuffer, reporter)
        self.mailbox = Mailbox(
            self.interrupts,
            clock,
            reporter,
            {
                0: self.videocore.power_channel,
                1: self.videocore.framebuffer_channel,
                8: PropertyChannel(self.videocore),
            },
        )
        self.gpio = Gpio(clock, self.interrupts)
        self._connect_uarts()
        self.smi = Smi(self.interrupts)
        self.power = PowerManager(clock, self._on_reset, reporter)
        self.timer = SystemTimer(clock, self.interrupts)
        self.bus = Bus(board.peripherals, "P", clock, reporter)
        for block in (
            self.timer,
            self.interrupts,
            ArmTimer(clock, self.interrupts, board.core_clock),
            self.mailbox,
            self.power,
            ClockManager(reporter),
            Random(self.interrupts),
            self.gpio,
            self.uart,
            self.mini_uart,
            self.smi,
            self.v3d_bridge,
        ):
            self.bus.attach(block)
        add_absent(self.bus, self.interrupts, self.mini_uart)
        self.pwm, self.pcm = add_sound(self.bus, self.interrupts)
        self.emmc = add_emmc(self.bus, self.interrupts, self.card_slot)
        devices = Devices(self.serial, self.pcm, self.pwm, self.emmc)
        mover = Mover(self.memory, self.bus)
        self.dma = add_dma(self.bus, self.interrupts, mover, devices, self.code_changed)
        vpu = VpuService(
            self.memory,
            self.bus,
            clock,
            board.core_clock,
            self.videocore.pool,
            unknowns,
            reporter,
            self.code_changed,
        )
        self.videocore.execute_code = vpu.call
        self.frames = FrameCounter(
            self.videocore.framebuffer,
            lambda: self.v3d_bridge.powered,
            lambda: self.smi.acknowledged,
            self._polls_v3d,
        )
        self.frames.listeners += [lambda _count: self.display_lint.picture(), self._on_frame]

    def _polls_v3d(self) -> bool:
        """Whether the program reads a register of the V3D again and again."""
        polled = self.polled
        return polled is not None and 0 <= polled[1] - V3DBridge.OFFSET < V3DBridge.SIZE

    def _connect_uarts(self) -> None:
        """Both UARTs as the firmware leaves them: which one the header has, and if it is on."""
        uart, asked = self.board.header_uart, self.config.flag("enable_uart")
        ready = asked or not uart.startswith("(")
        line = self.serial, self.interrupts, self.gpio, self.reporter
        self.uart = Uart(*line)
        self.mini_uart = Auxiliary(*line, ready and "alt5" in uart)
        if asked and "alt0" in uart:
            self.uart.CR |= UART_ENABLE
        if ready:
            for pin in (14, 15):
                self.gpio.select(pin, uart.strip("()"))

    def _attention(self) -> None:
        """An interrupt waits: no core goes on as if nothing had happened."""
        self.clock.something_happened()
        self.counter.stop()

    def _make_cores(self) -> list[Cpu]:
        """The cores, and what they see of the address space."""
        board = self.board
        attention = self.counter.stop
        timers = [GenericTimer(self.clock, attention) for _core in range(board.cores)]
        self.local_bus = Bus(board.local or 0, "L", self.clock, self.reporter)
        self.local: LocalBlock | None = None
        if board.local is not None:
            self.local = LocalBlock(
                self.interrupts,
                self.clock,
                timers,
                self.cores_look_again,
                self.start_core,
                self._first_prescaler(),
                board.arm_clock,
            )
            self.local_bus.attach(self.local)
        cpus = [
            make_cpu(
                board,
                self.plan,
                self.memory,
                self.counter,
                CoreLinks(
                    timer=timers[number] if board.local is not None else None,
                    cycles=lambda: self.clock.now * board.arm_clock // NANOSECONDS,
                    time_polled=self.bus.time_polled,
                    send_event=self.send_event,
                    code_changed=self.code_changed,
                    report=self.report,
                    bus=self.bus.address,
                ),
                number,
                self._v3d_settings[1],
            )
            for number in range(board.cores)
        ]
        local = None if self.local is None else (self.local_bus, self.local.SIZE)
        unknowns = self._v3d_settings[1]
        self.address_space = AddressSpace(board, self.bus, local, self.places, unknowns)
        for cpu in cpus:
            self.address_space.lay_out(cpu)
        return cpus

    def _first_prescaler(self) -> int:
        """The cores' timers' prescaler: the stub for AArch64 sets it, that for AArch32 does not."""
        if self._v3d_settings[1]["timer_prescaler"] == "crystal":
            return WHOLE
        return WHOLE if self.plan.wide and not self.plan.all_cores else MICROSECONDS

    def _make_v3d(self) -> Any:
        engine, unknowns, factory = self._v3d_settings
        if factory is not None:
            return factory(self.memory, self.reporter)
        from vc4lab.v3d.checks.addresses import DIRECT
        from vc4lab.v3d.core import V3D

        v3d = V3D(self.memory, self.reporter, engine=engine, unknowns=unknowns)
        v3d.lint.addresses.has_direct_bus = self.board.alias >> 30 == DIRECT
        if self.listeners.v3d_made.subscriptions:
            self.listeners.v3d_made.emit(V3DMade(v3d))
        return v3d

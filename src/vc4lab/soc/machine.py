"""A whole Pi: loads what is on the card, runs it slice by slice, and can be looked at.

Machine("sdcard").run(frames=3).screen.image.save("third.png")
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from vc4lab.diagnostics import Reporter, StrictStop
from vc4lab.memory import GuestMemory
from vc4lab.soc.board import Board, find_board
from vc4lab.soc.bus import Bus
from vc4lab.soc.clock import NANOSECONDS, Clock
from vc4lab.soc.cpu import Cpu, Outcome, UnhandledException
from vc4lab.soc.exceptions import ArmException
from vc4lab.soc.firmware import plan_boot
from vc4lab.soc.framebuffer import Screen
from vc4lab.soc.frames import FrameCounter
from vc4lab.soc.gpio import Gpio
from vc4lab.soc.idle import IdleLoop
from vc4lab.soc.interrupts import InterruptController, LocalBlock
from vc4lab.soc.mailbox import Mailbox
from vc4lab.soc.native import SliceCounter
from vc4lab.soc.open_bus import OpenBus
from vc4lab.soc.places import Places
from vc4lab.soc.power import ClockManager, PowerManager, Random
from vc4lab.soc.properties import PropertyChannel
from vc4lab.soc.result import RunResult, Stop
from vc4lab.soc.serial import SerialPort
from vc4lab.soc.smi import Smi
from vc4lab.soc.timers import ArmTimer, SystemTimer
from vc4lab.soc.uart import Auxiliary, Uart
from vc4lab.soc.v3d_bridge import V3DBridge
from vc4lab.soc.videocore import VideoCore
from vc4lab.soc.watchdog import Watchdog
from vc4lab.v3d.unknowns import DEFAULT_UNKNOWNS, Unknowns

__all__ = ["Machine", "RunResult", "Screen", "Stop"]

WINDOW = 0x01000000
ADDRESS_SPACE = 1 << 32
LONGEST_SLICE = 500_000
"""Instructions after which Python looks at the CPU in any case."""
IDLE_LOOP = "a loop that waits for memory to change"
MASKED_SLICE = 2_000
"""Instructions after which the CPU is asked again whether it takes a masked interrupt by now."""
LONGEST_MASKED_SLICE = 100_000


class Machine:
    """A board with a program in it.

    Parameters
    ----------
    path
        Folder with the contents of an SD card, or a bare kernel image.
    board
        Name of a board, see `vc4lab.soc.board.BOARDS`.
    reporter
        Receives diagnostics; a fresh one by default.
    serial
        The other end of the serial line; by default one that only collects `uart.text`.
    engine, unknowns, v3d_factory
        Of the V3D: "jit" or "interpreter", choices for undocumented hardware, a maker for tests.

    Raises
    ------
    UnknownBoard, BootError
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        board: str = "pi2",
        reporter: Reporter | None = None,
        serial: SerialPort | None = None,
        *,
        engine: str = "jit",
        unknowns: Unknowns = DEFAULT_UNKNOWNS,
        v3d_factory: Callable[[GuestMemory, Reporter], Any] | None = None,
    ) -> None:
        self.board: Board = find_board(board)
        self.reporter = reporter if reporter is not None else Reporter()
        self.serial = serial if serial is not None else SerialPort()
        self.plan = plan_boot(path, self.board, self.reporter)
        self.config = self.plan.config
        self.memory = GuestMemory(self.board.ram)
        self.counter = SliceCounter()
        self.clock = Clock(self.counter, self.board.ns_per_instruction)
        self._v3d_settings = (engine, unknowns, v3d_factory)
        self.places = Places(self.reporter)
        self._build()
        self.fake_vsync = self.config.flag("fake_vsync_isr")
        self.vsyncs = 0
        self.asleep = ""
        self.on_vsync: Callable[[], None] | None = None
        """Called at every vsync, for those who show progress."""
        self.before_slice: Callable[[], None] | None = None
        self.on_end: Callable[[RunResult], None] | None = None
        """For debuggers: called before each slice, and when a run has ended."""
        self._end: RunResult | None = None
        self._frames_wanted: int | None = None
        self._watching = True
        self._masked_slice = MASKED_SLICE
        self._vsync_period = NANOSECONDS // self.config.display_mode()[2]
        self._next_vsync = self._vsync_period
        self.clock.at(self._next_vsync, self._vsync)
        self.videocore.next_vsync = lambda: self._next_vsync
        self.plan.place(self.memory, self.board, self.reporter)
        self.cpu.start(self.plan.address, self.plan.entry_registers)
        self.places.find(path, self.plan)
        self.places.follow(self.cpu)

    def _build(self) -> None:
        board, clock, reporter = self.board, self.clock, self.reporter
        unknowns = self._v3d_settings[1]
        self.interrupts = InterruptController(self.counter.stop)
        self.v3d_bridge = V3DBridge(
            self._make_v3d, self.interrupts, reporter, lambda: self.frames.render_done()
        )
        self.videocore = VideoCore(
            board, self.config, self.memory, clock, reporter, self.v3d_bridge, unknowns
        )
        self.screen = Screen(self.videocore.framebuffer)
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
        self.uart = Uart(self.serial, self.interrupts)
        self.mini_uart = Auxiliary(self.serial, self.interrupts)
        self.gpio = Gpio(lambda: clock.now)
        self.smi = Smi(self.interrupts)
        self.power = PowerManager(clock, self._on_reset)
        self.timer = SystemTimer(clock, self.interrupts)
        self.bus = Bus(board.peripherals, "P", clock, reporter)
        for block in (
            self.timer,
            self.interrupts,
            ArmTimer(clock, self.interrupts, board.core_clock),
            self.mailbox,
            self.power,
            ClockManager(),
            Random(),
            self.gpio,
            self.uart,
            self.mini_uart,
            self.smi,
            self.v3d_bridge,
        ):
            self.bus.attach(block)
        self.frames = FrameCounter(
            self.videocore.framebuffer,
            lambda: self.v3d_bridge.powered,
            lambda: self.smi.acknowledged,
        )
        self.frames.listeners.append(self._on_frame)
        self.watchdog = Watchdog(self)
        self.cpu = Cpu(board.cpu, self.memory, board.peripherals, self.counter)
        self.cpu.map_window(board.peripherals, WINDOW, self.bus.read, self.bus.write)
        self.idle = IdleLoop(self.cpu)
        self._activity = (0, 0, 0)
        self._map_the_rest()

    def _map_the_rest(self) -> None:
        """The local block, and beyond it nothing: where bus addresses used by the ARM end up."""
        board = self.board
        self.local_bus = Bus(board.local or 0, "L", self.clock, self.reporter)
        if board.local is None:
            return
        self.local = LocalBlock(self.interrupts, lambda: self.clock.now // 1000, self._start_core)
        self.local_bus.attach(self.local)
        self.cpu.map_window(board.local, self.local.SIZE, self.local_bus.read, self.local_bus.write)
        start = board.local + self.local.SIZE
        nothing = OpenBus(start, self.counter, self.reporter, self.places)
        self.cpu.map_window(start, ADDRESS_SPACE - start, nothing.read, nothing.write)

    def _make_v3d(self) -> Any:
        engine, unknowns, factory = self._v3d_settings
        if factory is not None:
            return factory(self.memory, self.reporter)
        from vc4lab.v3d.core import V3D

        return V3D(self.memory, self.reporter, engine=engine, unknowns=unknowns)

    @property
    def cores(self) -> list[Cpu]:
        """The cores that run."""
        return [self.cpu]

    @property
    def v3d(self) -> Any:
        """The V3D; None until the program has switched it on."""
        return self.v3d_bridge.v3d

    def _repr_png_(self) -> bytes | None:
        return self.screen._repr_png_()

    @property
    def seconds(self) -> float:
        """Guest time since power-on."""
        return self.clock.now / NANOSECONDS

    # -- running -----------------------------------------------------------------------------------

    def run(self, frames: int | None = None, seconds: float | None = None) -> RunResult:
        """Run for so many more frames or guest seconds, whatever comes first.

        Without either it runs until the program ends or hangs.

        Raises
        ------
        StrictStop
            A diagnostic of a strict reporter.
        """
        if frames is not None and frames <= 0:
            return self._result(Stop.FRAMES, "no frames were asked for")
        self._end = None
        self._frames_wanted = None if frames is None else self.frames.count + frames
        self._watching = seconds is None
        self.watchdog.restart()
        deadline = None
        if seconds is not None:
            moment = self.clock.now + max(int(seconds * NANOSECONDS), 0)
            deadline = self.clock.at(moment, self._on_deadline)
        try:
            while self._end is None:
                if self.before_slice is not None:
                    self.before_slice()
                self._step()
            if self.on_end is not None:
                self.on_end(self._end)
        finally:
            if deadline is not None:
                deadline.cancel()
        return self._end

    def _step(self) -> None:
        """One slice: due events, a waiting interrupt, instructions up to the next event."""
        clock, cpu = self.clock, self.cpu
        clock.run_due()
        if self._end is not None:
            return
        limit = (clock.next_event - clock.skipped) // clock.ns_per_instruction + 1
        limit = min(limit, self.counter.count + LONGEST_SLICE)
        if self.interrupts.pending_fiq and not cpu.fast_interrupts_masked:
            cpu.interrupt(ArmException.FIQ)
        elif self.interrupts.pending_irq and self._irq_is_ours():
            if cpu.interrupts_masked:
                limit = min(limit, self.counter.count + self._masked_slice)
                self._masked_slice = min(2 * self._masked_slice, LONGEST_MASKED_SLICE)
            else:
                cpu.interrupt()
        else:
            self._masked_slice = MASKED_SLICE
        self.asleep = ""
        try:
            outcome = cpu.run(limit)
        except UnhandledException as crash:
            self._crash(crash)
            return
        self.v3d_bridge.settle()
        if outcome is Outcome.WAIT_FOR_INTERRUPT:
            self._sleep("wfi", self.interrupts.pending_irq or self.interrupts.pending_fiq)
        elif outcome in (Outcome.WAIT_FOR_EVENT, Outcome.BRANCH_TO_SELF):
            self._sleep(outcome.value, self._interrupt_will_be_taken())
        elif cpu.lost and self._end is None:
            self._fail("SOC-043", f"the CPU runs through zeros at {self.places(cpu.pc)}", cpu.pc)
        else:
            self._look_for_idle_loop()

    def _look_for_idle_loop(self) -> None:
        activity = self.bus.accesses, self.local_bus.accesses, self.cpu.exceptions_taken
        self.idle.look(touched=activity != self._activity)
        self._activity = activity
        if not self.idle.waits or self._end is not None:
            return
        if self._can_be_interrupted(awake=True):
            self.asleep = IDLE_LOOP
            self.clock.skip_to_event()
        elif self.idle.hangs:
            self.frames.finish()
            if self._end is None:
                self._hang(
                    f"the CPU at {self.places(self.cpu.pc)} waits in {IDLE_LOOP}, which nobody does"
                )

    def _interrupt_will_be_taken(self) -> bool:
        irq = self.interrupts.pending_irq and not self.cpu.interrupts_masked
        return irq or (self.interrupts.pending_fiq and not self.cpu.fast_interrupts_masked)

    def _irq_is_ours(self) -> bool:
        if self.board.local is None or self.local.irq_core == 0:
            return True
        self._start_core(self.local.irq_core, 0)
        return False

    def _sleep(self, how: str, wakes: bool) -> None:
        """The CPU has nothing to do until the next event; or it has nothing to do any more."""
        if wakes or self._end is not None:
            return
        self.asleep = how
        if self._can_be_interrupted(awake=how != "wfi"):
            self.clock.skip_to_event()
            return
        self.frames.finish()
        if self._end is not None:
            return
        if self.reporter.has("SOC-041"):
            self._hang(f"the CPU at 0x{self.cpu.pc:08x} waits ({how}) for cores that do not run")
            return
        self._finish(Stop.HALTED, f"the program has ended in {how} at {self.places(self.cpu.pc)}")

    def _can_be_interrupted(self, awake: bool) -> bool:
        """Whether anything can happen to the CPU; a masked interrupt ends only a wfi."""
        if self.power.armed:
            return True
        masked = self.cpu.interrupts_masked and self.cpu.fast_interrupts_masked
        return self.interrupts.any_enabled and not (awake and masked)

    # -- events ------------------------------------------------------------------------------------

    def _vsync(self) -> None:
        self.vsyncs += 1
        self._next_vsync = max(self._next_vsync + self._vsync_period, self.clock.now + 1)
        self.clock.at(self._next_vsync, self._vsync)
        if self.fake_vsync:
            self.smi.vsync()
        self.frames.vsync()
        self.uart.poll_input()
        self.mini_uart.poll_input()
        if self.on_vsync is not None:
            self.on_vsync()
        if self._watching and self._end is None:
            hang = self.watchdog.check(self._frames_wanted is not None)
            if hang is not None:
                self._hang(hang)

    def _on_frame(self, count: int) -> None:
        if self._frames_wanted is not None and count >= self._frames_wanted:
            self._finish(Stop.FRAMES, f"{count} frames")

    def _on_deadline(self) -> None:
        if self._frames_wanted is None:
            self._finish(Stop.SECONDS, f"{self.seconds:.3f} s of guest time")
            return
        self._hang(f"the time is over before the frames came: {self.watchdog.describe()}")

    def _on_reset(self) -> None:
        self._finish(Stop.RESET, "the program asked for a restart through the watchdog")

    def _start_core(self, core: int, _address: int) -> None:
        self.reporter.report(
            "SOC-041",
            f"core {core} is asked to work; in this version only core 0 runs",
            block="local",
        )

    def _hang(self, text: str) -> None:
        self._finish(Stop.HANG, text)
        self._tell("SOC-040", text, self.cpu.pc)

    def _crash(self, crash: UnhandledException) -> None:
        title = crash.exception.value.title
        text = (
            f"{title} at {self.places(crash.address)}, and there is no handler at its vector "
            f"0x{crash.vector:08x}"
        )
        self._fail("SOC-042", text, crash.address)

    def _fail(self, code: str, text: str, address: int) -> None:
        self._finish(Stop.CRASH, text)
        self._tell(code, text, address)

    def _tell(self, code: str, text: str, address: int) -> None:
        """Report how the run ended; that it has ended is no reason for strict mode to stop."""
        try:
            self.reporter.report(code, text, address=address, block="cpu")
        except StrictStop:
            return

    def end(self, message: str) -> None:
        """End the run at the next opportunity, because somebody outside wants it."""
        self._finish(Stop.STOPPED, message)

    def _finish(self, reason: Stop, message: str) -> None:
        if self._end is None:
            self._end = self._result(reason, message)
        self.counter.stop()

    def _result(self, reason: Stop, message: str) -> RunResult:
        return RunResult(reason, self.frames.count, self.seconds, message, self)

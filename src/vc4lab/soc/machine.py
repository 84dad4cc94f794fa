"""A whole Pi: loads the card's program, runs it slice by slice, and can be inspected.

Machine("sdcard").run(frames=3).screen.image.save("third.png")
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from vc4lab import interruption
from vc4lab.diagnostics import Reporter
from vc4lab.listeners import OneListener
from vc4lab.memory import GuestMemory
from vc4lab.options import GpuOptions, chosen
from vc4lab.ranges import FRAMES, SECONDS
from vc4lab.registers import Poll
from vc4lab.soc.board import find_board
from vc4lab.soc.board_unknowns import DEFAULT_UNKNOWNS, Unknowns
from vc4lab.soc.boot.boot_extras import BootExtras
from vc4lab.soc.boot.firmware import open_slot, place_plan, plan_boot
from vc4lab.soc.clock import NANOSECONDS
from vc4lab.soc.devices.interrupts import SMI
from vc4lab.soc.devices.serial.serial import SerialPort
from vc4lab.soc.events import RunEnded, Vsync
from vc4lab.soc.hardware import Hardware
from vc4lab.soc.inspect.display_lint import DisplayLint
from vc4lab.soc.inspect.early_reads import watch_early_reads
from vc4lab.soc.inspect.old_translations import OldTranslations
from vc4lab.soc.inspect.places import Places
from vc4lab.soc.inspect.watchdog import Watchdog, line_name
from vc4lab.soc.inspect.wrong_bank import unheard_timer, unheard_timer_text, wrong_bank, wrong_bank_text
from vc4lab.soc.options import TODAY, MachineOptions, with_firmware
from vc4lab.soc.result import RunResult, Stop
from vc4lab.soc.slices.pace import Pace
from vc4lab.soc.slices.run_end import RunEnd
from vc4lab.soc.slices.turns import Turns
from vc4lab.soc.videocore.framebuffer import Screen

if TYPE_CHECKING:
    from vc4lab.soc.caches.caches import Caches
    from vc4lab.soc.cores.cpu import Cpu
    from vc4lab.soc.inspect.guards import GuardZones

CALM_AFTER = NANOSECONDS // 2
"""Guest time without a sign of life after which a program need not be exactly at the wall's."""
HINT_VSYNCS = 8
"""Vsyncs between two looks whether a hint about caches is due."""
SETTLED = 2
"""After so many vsyncs without anything new the display shows what it will show."""

__all__ = ["Machine", "RunResult", "Screen", "Stop"]


class Machine:
    """A board with a program in it.

    Parameters
    ----------
    path
        Folder with the contents of an SD card, an image of one, or a bare kernel image.
    board
        Name of a board, see `vc4lab.soc.board.BOARDS`.
    reporter
        Receives diagnostics; a fresh one by default.
    serial
        The other end of the serial line; by default one that only collects `uart.text`.
    card
        Folder or image of the SD card that the program sees; by default what it is booted from.
    engine, unknowns, v3d_factory
        Of the V3D: "jit" or "interpreter", choices for undocumented hardware, a maker for tests.
    caches
        "check" reports where the ARM's or the V3D's caches hold old bytes, "stale" lets the others
        see them. None: no caches.
    firmware
        "2015": the board's firmware is of that year (`soc.options`); what `unknowns` decides
        otherwise than by default counts more.
    extras
        Command line, RAM disk, device tree and load address instead of the card's.
    ram
        What RAM holds at power-on, "noise" or "zero" (`MachineOptions.ram`).
    forgiving
        Whether what a board would refuse, or get wrong, works where earlier versions let it work.
    options
        All of these choices as one object, instead of them.

    Raises
    ------
    UnknownBoard, BootError
    ValueError
        `engine`, `caches`, `ram` or `firmware` is none of those there are.
    TypeError
        `options` and one of these choices.

    Attributes
    ----------
    hardware
        The board; its blocks are attributes of the machine, too.
    listeners
        The listeners; `soc/events.py` has the events.
    watches_for_hangs
        Whether a run without limits ends when the program makes no progress.
    on_vsync, on_end
        One listener each for `vsync` and `run_ended` (it gets the result).
    """

    on_vsync = OneListener("listeners.vsync", lambda _event: ())
    on_end = OneListener("listeners.run_ended", lambda event: (event.result,))

    def __init__(
        self,
        path: str | os.PathLike[str],
        board: str = "pi2",
        reporter: Reporter | None = None,
        serial: SerialPort | None = None,
        *,
        card: str | os.PathLike[str] | None = None,
        engine: str = "jit",
        unknowns: Unknowns = DEFAULT_UNKNOWNS,
        v3d_factory: Callable[[GuestMemory, Reporter], Any] | None = None,
        caches: str | None = None,
        firmware: str = TODAY,
        extras: BootExtras | None = None,
        ram: str | None = None,
        forgiving: bool = False,
        options: MachineOptions | None = None,
    ) -> None:
        choices = with_firmware(unknowns, firmware)
        gpu = GpuOptions(engine, unknowns=choices, forgiving=forgiving)
        extras = extras or BootExtras()
        single = MachineOptions(board, card, caches, extras, gpu, v3d_factory, ram=ram)
        options = chosen(options, single)
        found = find_board(options.board)
        reporter = reporter if reporter is not None else Reporter()
        self.places = Places(reporter)
        hardware = self.hardware = Hardware(
            found,
            plan_boot(path, found, reporter, options.extras, options.pins),
            reporter,
            serial if serial is not None else SerialPort(),
            open_slot(path, options.card, reporter),
            options,
            self.places,
        )
        self._translations: OldTranslations | None = None
        if not options.forgiving:
            watch_early_reads(hardware)
            if not hardware.plan.cleans_caches:
                self._translations = OldTranslations(hardware)
        self.board, self.plan, self.config = found, hardware.plan, hardware.config
        self.reporter, self.listeners = reporter, hardware.listeners
        self.memory, self.clock, self.counter = hardware.memory, hardware.clock, hardware.counter
        self.processors, self.cores = hardware.processors, hardware.cores
        self.bus, self.local_bus = hardware.bus, hardware.local_bus
        self.interrupts, self.local = hardware.interrupts, hardware.local
        self.mailbox, self.videocore = hardware.mailbox, hardware.videocore
        self.v3d_bridge, self.address_space = hardware.v3d_bridge, hardware.address_space
        self.screen, self.frames = hardware.screen, hardware.frames
        self.serial, self.gpio, self.smi = hardware.serial, hardware.gpio, hardware.smi
        self.uart, self.mini_uart = hardware.uart, hardware.mini_uart
        self.card_slot, self.emmc = hardware.card_slot, hardware.emmc
        self.pwm, self.pcm, self.dma = hardware.pwm, hardware.pcm, hardware.dma
        self.timer, self.power = hardware.timer, hardware.power
        self._end = RunEnd(hardware, self)
        self.power.on_reset = self._end.reset
        self.display_lint = DisplayLint(hardware)
        self.frames.listeners.append(self._on_frame)
        self.turns = Turns(hardware, self._end, self._rest)
        self.watchdog = Watchdog(hardware)
        self.caches: Caches | None = None
        self._told_of_caches = False
        self._told_of_bank = False
        self.guards: GuardZones | None = None
        self.vsyncs = 0
        self._pace: Pace | None = None
        self._frames_wanted: int | None = None
        self._watching = True
        self.watches_for_hangs = True
        _width, _height, rate = self.config.display_mode()
        self._vsync_period = NANOSECONDS // rate
        self._next_vsync = self._vsync_period
        self._changes_seen = -1
        self._still = 0
        """Vsyncs in a row before which nothing has happened but the vsync before."""
        self._signs: list[int] = []
        self._sign_at = 0
        """The last moment at which something could be seen from outside."""
        self.watches: list[Callable[[], list[int]]] = [self._serial_watches]
        """Each gives file descriptors that end a rest of `--realtime`."""
        self._schedule_vsync()
        self.videocore.next_vsync = lambda: self._next_vsync
        self.gpio.connect(options.pins)
        if self._ram_is_noise(options):
            self.memory.fill_with_noise(*self.plan.untouched(found))
        place_plan(self.plan, self.memory, self.reporter)
        self.processors.power_on()
        self.places.find(path, self.plan)
        self.places.follow(lambda: self.cpu)
        if self.plan.cleans_caches:
            from vc4lab.soc.inspect.kernel_places import KernelPlaces

            self.places.kernel = KernelPlaces(self.memory, self.plan, lambda: self.cpu)
        if options.caches is not None:
            from vc4lab.soc.caches.caches import Caches

            self.caches = Caches(hardware, options.caches)
            self._end.before.append(self.caches.data.drain)
            self.listeners.v3d_made.subscribe(self.caches.adopt)
        if self.reporter.strict:
            from vc4lab.soc.inspect.guards import GuardZones

            self.guards = GuardZones(hardware)

    def _ram_is_noise(self, options: MachineOptions) -> bool:
        if options.ram is not None:
            return options.ram == "noise"
        return self.reporter.strict and not options.forgiving and not self.plan.cleans_caches

    @property
    def seconds(self) -> float:
        """Guest time since power-on."""
        return self.hardware.seconds

    @property
    def cpu(self) -> Cpu:
        """The core whose turn it is."""
        return self.hardware.cpu

    @property
    def v3d(self) -> Any:
        """The V3D; None until the program has switched it on."""
        return self.hardware.v3d

    @property
    def ended(self) -> bool:
        """Whether the run is over."""
        return self._end.is_reached

    @property
    def pace(self) -> Pace | None:
        """Holds guest time back to the wall clock, if set."""
        return self._pace

    @pace.setter
    def pace(self, pace: Pace | None) -> None:
        self._pace = pace
        self.hardware.is_paced = pace is not None
        # The next vsync is soon enough, and a loop that waits for a key costs little until then.
        self.bus.asks_about_input = pace is None

    def __repr__(self) -> str:
        count, end = self.frames.count, self._end.result
        ending = f", {end.message}" if end else ""
        frames = "1 frame" if count == 1 else f"{count} frames"
        plan = f"{self.board.name} with {self.plan.name}"
        return f"<Machine {plan}: {frames}, {self.seconds:.3f} s of guest time{ending}>"

    def _repr_png_(self) -> bytes | None:
        """The picture, in a notebook."""
        return self.screen._repr_png_()

    # -- running -----------------------------------------------------------------------------------

    def run(self, frames: int | None = None, seconds: float | None = None) -> RunResult:
        """Run for so many more frames or guest seconds, whatever comes first.

        Without either it runs until the program ends or hangs.

        Raises
        ------
        KeyboardInterrupt
            Ctrl-C, between two slices of the cores; the machine can run on.
        StrictStop
            A diagnostic of a strict reporter.
        ValueError
            Less than no frames or seconds, or more than a number can be counted to.
        """
        frames, seconds = FRAMES.check_optional(frames), SECONDS.check_optional(seconds)
        if frames == 0:
            return self._end.state(Stop.FRAMES, "no frames were requested")
        self._end.result = None
        self.processors.code_changed()  # the caller may have written to memory
        self._frames_wanted = None if frames is None else self.frames.count + frames
        self._watching = seconds is None and self.watches_for_hangs
        self._changes_seen = -1
        self._still = 0
        self.watchdog.restart()
        deadline = None
        if seconds is not None:
            moment = self.clock.now + int(seconds * NANOSECONDS)
            deadline = self.clock.at(moment, self._on_deadline)
        try:
            with interruption.deferred(takes_over=True):
                result = self._run()
        finally:
            if deadline is not None:
                deadline.cancel()
        return result

    def _run(self) -> RunResult:
        while (result := self._end.result) is None:
            interruption.look()
            if self.hardware.before_slice is not None:
                self.hardware.before_slice()
            self.turns.step()
        self._drain_caches()
        self.v3d_bridge.look_at_early_reads()
        self._look_at_caches()
        self._look_at_interrupts()
        if result.reason is Stop.HALTED:
            self._look_at_core_timers()
            if self._translations is not None:
                self._translations.look(ended=True)
        self._look_for_picture(result)
        if self.listeners.run_ended.subscriptions:
            self.listeners.run_ended.emit(RunEnded(result))
        return result

    def end(self, message: str) -> None:
        """End the run at the next opportunity, because it is asked for from outside."""
        self._end.finish(Stop.STOPPED, message)

    # -- events ------------------------------------------------------------------------------------

    def _schedule_vsync(self) -> None:
        self.clock.at(
            self._next_vsync,
            self._vsync,
            lambda: not (self.hardware.fake_vsync and self.interrupts.listens(SMI)),
        )

    def _vsync(self) -> None:
        self.vsyncs += 1
        self._next_vsync = max(self._next_vsync + self._vsync_period, self.clock.now + 1)
        self._schedule_vsync()
        still = self.clock.changes == self._changes_seen
        self._still = self._still + 1 if still else 0
        if self.hardware.fake_vsync:
            self.smi.vsync()
        if not still:
            self.processors.vsync()
            self._drain_caches()
            if self.vsyncs % HINT_VSYNCS == 0:
                self._look_at_caches()
                self._look_at_interrupts()
                self.turns.parking.remind()
            if self.guards is not None:
                self.guards.check()
            if self._translations is not None:
                self._translations.look()
        self.frames.vsync(still)
        if self.pace is not None and self._still < SETTLED:
            self._keep_pace(self.pace)
        if self.pace is None or not self.pace.is_behind(self.clock.now):
            self.uart.poll_input()
            self.mini_uart.poll_input()
        if self.listeners.vsync.subscriptions:
            self.listeners.vsync.emit(Vsync(self.vsyncs))
            self.processors.code_changed()  # so may a listener
        if self._watching and not self.ended:
            hang = self.watchdog.check(self._frames_wanted is not None)
            if hang is not None:
                self._end.hang(hang)
        self._changes_seen = self.clock.changes

    def _look_at_caches(self) -> None:
        """Report once that what the others read may not be there yet on a board."""
        hardware = self.hardware
        if self.caches is not None or self._told_of_caches or self.plan.cleans_caches:
            return
        if not (self.mailbox.messages or hardware.v3d or hardware.goes_on):
            return
        for core in self.processors.running:
            if core.cpu.sets_data_cache:
                self._told_of_caches = True
                hardware.report(
                    "SOC-093",
                    f"core {core.number} has enabled the data cache (SCTLR.C), which is not "
                    "modelled: the V3D, the DMA and the firmware see its writes at once; "
                    "`--caches check` reports where they would read old bytes on a board",
                    core.cpu.pc,
                )
                return

    def _look_at_interrupts(self) -> None:
        """Report once that a line waits whose bit was set in another register."""
        if self._told_of_bank or self.plan.cleans_caches:
            return
        found = wrong_bank(self.interrupts)
        if found is not None:
            self._told_of_bank = True
            text = wrong_bank_text(*found, line_name(found[0]))
            self.hardware.report("SOC-068", text, self.cpu.pc)

    def _look_at_core_timers(self) -> None:
        """Report that a program which waits for its last interrupt has a timer that nothing hears."""
        core = unheard_timer(self.hardware)
        if core is not None:
            self.hardware.report("SOC-118", unheard_timer_text(core), self.cpu.pc)

    def _look_for_picture(self, result: RunResult) -> None:
        """Report why there is none, of a program that has nothing else to say about it."""
        if self.hardware.explains_pictures:
            from vc4lab.soc.inspect.nothing_shown import explain_black_screen

            explain_black_screen(self.hardware, result)

    def _drain_caches(self) -> None:
        """Let what modelled caches hold back go to memory."""
        if self.caches is not None:
            self.caches.data.drain()

    def _keep_pace(self, pace: Pace) -> None:
        """A vsync of a program that works, or polls."""
        _frames, *signs = self.hardware.signs()  # a picture that stands still is no sign
        signs.append(self.videocore.framebuffer.flips)
        now = self.clock.now
        if signs != self._signs:
            self._signs, self._sign_at = signs, now
        calm = now - self._sign_at > CALM_AFTER and self._frames_wanted is None
        polled = self.processors.polled
        listens = calm and polled is not None and polled.kind is Poll.INPUT
        pace.keep(now, calm, self.serial.watches() if listens else [])

    def _rest(self) -> None:
        """All cores wait: with `--realtime`, until something happens that has an effect."""
        if self.pace is None or self.pace.is_behind(self.clock.now):
            return
        moment = self.clock.next_noticed()
        if self._still < SETTLED or self._frames_wanted is not None:
            moment = min(moment, self._next_vsync)
        watched = [descriptor for watch in self.watches for descriptor in watch()]
        self.pace.rest(self.clock.now, moment, watched)

    def _serial_watches(self) -> list[int]:
        """List what to look at for typed bytes, if the program is interrupted by them."""
        if self.uart.awaits_input or self.mini_uart.awaits_input:
            return self.serial.watches()
        return []

    def _on_frame(self, count: int) -> None:
        if self._frames_wanted is not None and count >= self._frames_wanted:
            self._end.finish(Stop.FRAMES, f"{count} frames")

    def _on_deadline(self) -> None:
        if self._frames_wanted is None:
            self._end.finish(Stop.SECONDS, f"{self.seconds:.3f} s of guest time")
            return
        self._end.hang(f"the time is up before the requested frames: {self.watchdog.describe()}")

"""Breakpoints, watchpoints and single steps of one core, without moving guest time.

A stop happens in the middle of a slice, inside `Cpu.run`; while a debugger looks the slice simply
waits, and goes on afterwards with the instructions it has left. So a program that is debugged
executes the same instructions at the same guest times as one that is not.

How it works in the engine: a code hook on the address (or on all, for a step) that stops before
the instruction. Memory hooks come before the access but stop after it, with the PC still on the
instruction: in RAM it is repeated when the program goes on, which changes nothing; a register
must not be accessed twice, so there the stop waits for the end of the basic block.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from unicorn import UC_HOOK_CODE, UC_HOOK_MEM_READ, UC_HOOK_MEM_WRITE

from vc4lab.soc.cores.cpu import Cpu

WIDEST_ACCESS = 16
"""Bytes of the widest access that can reach a watched byte from below."""
MAX_WATCHED = 4096
"""Bytes one watchpoint covers at most."""
MAX_POINTS = 1000
"""Breakpoints and watchpoints of a core, so that a client cannot fill the host."""


class Watch(Enum):
    """Kinds of watchpoints; the values are the remote protocol's names."""

    WRITE = "watch"
    READ = "rwatch"
    ACCESS = "awatch"


@dataclass(frozen=True)
class StopEvent:
    """Why a core stopped: "breakpoint", "step" or a watchpoint's name with the address touched."""

    kind: str
    address: int


class Breakpoints:
    """The points of one core.

    Parameters
    ----------
    on_stop
        Called when the core stands at one of them; returns when it is to go on.
    """

    def __init__(self, cpu: Cpu, on_stop: Callable[[StopEvent], None]) -> None:
        self._cpu = cpu
        self._on_stop = on_stop
        self._hooks: dict[tuple[object, int, int], list[int]] = {}
        self._step_hook: int | None = None
        self._pass: int | None = None
        self._resumed = (-1, -1)
        self._event: StopEvent | None = None
        self.is_device: Callable[[int], bool] = lambda _address: False
        """Whether an address is no RAM: such an access cannot be repeated."""
        cpu.on_stop = self._look

    # -- points ------------------------------------------------------------------------------------

    def add_breakpoint(self, address: int) -> bool:
        """Stop before the instruction at `address`; False if there are too many points."""
        address &= ~1
        key = ("code", address, 0)
        if key in self._hooks or not self._room:
            return key in self._hooks
        handle = self._cpu.engine.hook_add(UC_HOOK_CODE, self._at_breakpoint, begin=address, end=address)
        self._hooks[key] = [handle]
        self._forget_translations()
        return True

    def remove_breakpoint(self, address: int) -> None:
        """Take a breakpoint away, if there is one."""
        self._remove(("code", address & ~1, 0))

    def add_watchpoint(self, kind: Watch, address: int, size: int) -> bool:
        """Stop at accesses to `size` bytes at `address`; False if that is too many."""
        key = (kind, address, size)
        if not 0 < size <= MAX_WATCHED or not self._room:
            return False
        if key in self._hooks:
            return True

        def on_access(engine: Any, _access: int, at: int, width: int, *_rest: object) -> None:
            if at < address + size and address < at + width:
                self._at_access(engine, kind, at)

        events = UC_HOOK_MEM_WRITE if kind is not Watch.READ else 0
        events |= UC_HOOK_MEM_READ if kind is not Watch.WRITE else 0
        begin = max(address - WIDEST_ACCESS + 1, 0)
        hook = self._cpu.engine.hook_add(events, on_access, begin=begin, end=address + size - 1)
        self._hooks[key] = [hook]
        self._forget_translations()
        return True

    def remove_watchpoint(self, kind: Watch, address: int, size: int) -> None:
        """Take a watchpoint away, if there is one."""
        self._remove((kind, address, size))

    def clear(self) -> None:
        """Take all points away."""
        for key in list(self._hooks):
            self._remove(key)
        self._no_step()
        self._pass = None
        self._event = None

    @property
    def _room(self) -> bool:
        return len(self._hooks) < MAX_POINTS

    def _remove(self, key: tuple[object, int, int]) -> None:
        for handle in self._hooks.pop(key, ()):
            self._cpu.engine.hook_del(handle)
            self._forget_translations()

    def _forget_translations(self) -> None:
        """Hooks are built into translated code, so it has to be translated again."""
        self._cpu.engine.ctl_flush_tb()

    # -- going on ----------------------------------------------------------------------------------

    def resume(self, step: bool) -> None:
        """Prepare to go on from where the core stands, to the next instruction only if `step`."""
        self._pass = self._cpu.pc
        self._resumed = self._cpu.pc, self._cpu.counter.count
        if not step:
            self._no_step()
        elif self._step_hook is None:
            self._step_hook = self._cpu.engine.hook_add(UC_HOOK_CODE, self._at_step)
            self._forget_translations()

    def _no_step(self) -> None:
        if self._step_hook is not None:
            self._cpu.engine.hook_del(self._step_hook)
            self._step_hook = None
            self._forget_translations()

    def _at_breakpoint(self, engine: Any, address: int, _size: int, _data: object) -> None:
        if self._step_hook is not None or self._event is not None:
            return
        if address == self._pass:
            self._pass = None
        else:
            self._stop(engine, StopEvent("breakpoint", address))

    def _at_step(self, engine: Any, address: int, _size: int, _data: object) -> None:
        if address == self._pass:
            self._pass = None
        elif self._event is None:
            kind = "breakpoint" if ("code", address, 0) in self._hooks else "step"
            self._stop(engine, StopEvent(kind, address))

    def _at_access(self, engine: Any, kind: Watch, address: int) -> None:
        counter = self._cpu.counter
        here = self._cpu.engine_pc, counter.count - (counter.size >> 2)
        if self._event is not None or here == self._resumed:
            return  # the access that was reported, repeated
        if self.is_device(address):
            self._event = StopEvent(kind.value, address)
            counter.stop()
        else:
            self._stop(engine, StopEvent(kind.value, address))

    def _stop(self, engine: Any, event: StopEvent) -> None:
        """Stop before the instruction; the rest of its block is not executed yet."""
        counter = self._cpu.counter
        rest = counter.block + counter.size - self._cpu.engine_pc
        if 0 < rest <= counter.size:
            counter.add(-(rest >> 2))
        self._event = event
        engine.emu_stop()

    def _look(self) -> bool:
        """The engine has come back: whether that was for a point (which has had its say)."""
        event, self._event = self._event, None
        if event is None:
            return False
        self._on_stop(event)
        return True

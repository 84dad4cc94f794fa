"""A core's code: pages are searched when they are met, trapped instructions done in Python."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from vc4lab.memory import MEMORY_MASK, GuestMemory
from vc4lab.soc.cores.code.code_pages import PAGE, CodePages, Hook
from vc4lab.soc.cores.code.native_events import ENABLED, WAITS, YIELDS, NativeEvents
from vc4lab.soc.cores.code.native_places import NativePlace
from vc4lab.soc.cores.code.traps import THUMB_EVENTS, Action, CoreLinks, Trap
from vc4lab.soc.cores.engine.register_file import RegisterFile
from vc4lab.soc.cores.exceptions.exceptions import THUMB
from vc4lab.soc.native import SliceCounter


class TrappedCode(RegisterFile):
    """Does the instructions that the engine does not do alone."""

    counter: SliceCounter
    memory: GuestMemory
    links: CoreLinks
    on_stop: Callable[[], bool] | None
    cpsr: int
    _pages: CodePages
    _events: NativeEvents
    _places: dict[int, NativePlace]
    """The trapped instructions that native code does, by address."""
    _watchers: dict[Action, Callable[[int], None]]
    """Called before an instruction instead of doing it here, with its address."""
    _onward: int | None = None
    """The address at which a trapped instruction goes on, if not after itself."""

    @abstractmethod
    def _emulate(self, action: Action, address: int) -> bool:
        """Do a trapped instruction; whether to go on after it (else the engine executes it)."""

    @abstractmethod
    def _on_invalid(self, engine: Any, _data: Any) -> bool:
        """The engine cannot decode an instruction."""

    @abstractmethod
    def set_pc(self, address: int) -> None:
        """Go on at `address` (in the same instruction set)."""

    @abstractmethod
    def translate(self, address: int) -> int | None:
        """The physical address of a virtual one as the core sees it now, None if none is."""

    def fetch(self, address: int, size: int = 4) -> int:
        """The code at a virtual address; 0 where nothing is mapped."""
        place = self.translate(address)
        if place is None:
            return 0
        return self.memory.u16(place) if size == 2 else self.memory.u32(place)

    @property
    def _waits_for_event(self) -> bool:
        """Whether it has come to an instruction that waits for an event."""
        return self._events.words[WAITS] != 0

    @_waits_for_event.setter
    def _waits_for_event(self, waits: bool) -> None:
        self._events.words[WAITS] = waits

    @property
    def yields(self) -> bool:
        """Whether what it waits by is a yield, which no core sleeps in."""
        return self._events.words[YIELDS] != 0

    @yields.setter
    def yields(self, yields: bool) -> None:
        self._events.words[YIELDS] = yields

    @property
    def executes_thumb(self) -> bool:
        """Whether the instruction of a hook that runs now is Thumb code."""
        return False

    @property
    def _traps_now(self) -> tuple[Trap, ...]:
        """Instructions that are searched for in a page that is met in the core's present state."""
        return ()

    def watch_instructions(
        self, traps: tuple[Trap, ...], watchers: dict[Action, Callable[[int], None]]
    ) -> None:
        """Call with its address before an instruction is executed; before any code has run."""
        self._pages.more_traps += traps
        self._watchers.update(watchers)

    def _meet_page(self, address: int) -> None:
        """A page is executed for the first time: hook the instructions that need help."""
        thumb = not self.WIDE and bool(self.cpsr & THUMB)
        found = self._pages.meet(address, self.translate(address), thumb, self._traps_now)
        for place, action in found:
            self._hook_place(place, action)
        if found:
            self._pages.forget_translations(address & ~(PAGE - 1))
        for place, native in self._places.items():
            code = self._host_address(place) if (place ^ address) < PAGE else None
            if code is not None:
                native.move(code)

    def _host_address(self, place: int) -> int | None:
        physical = self.translate(place)
        return None if physical is None else self.memory.base + (physical & MEMORY_MASK)

    @property
    def events(self) -> NativeEvents:
        """Its hooks at wfe, sev and sevl."""
        return self._events

    def allow_events(self) -> None:
        """Let native code go on after a wfe with an event, if Python need not see each one."""
        self._events.words[ENABLED] = self.on_stop is None and not self.links.forgiving

    def _timer_written(self, unit: int) -> None:
        """Native code has set a unit of its generic timer."""
        try:
            if self.links.timer is not None:
                self.links.timer.schedule(unit)
        except BaseException as error:
            self.counter.fail(error)

    def _meets_invalid(self) -> bool:
        """The engine cannot execute an instruction, nor can native code."""
        self.counter.note()
        try:
            return self._on_invalid(self.engine, None)
        except BaseException as error:
            self.counter.fail(error)
            self.engine.emu_stop()
            return True

    def _hook_place(self, place: int, action: Action) -> None:
        """Stop before the instruction at an address, in native code if that can do it."""
        from unicorn import UC_HOOK_CODE

        hook = self._native_hook(place, action)
        if hook is None:
            self._pages.hook(place, self._trap(action))
        else:
            self.calls.add_hook(UC_HOOK_CODE, *hook, span=(place, place))

    def _native_hook(self, place: int, action: Action) -> tuple[int, int] | None:
        """Host addresses of what the engine calls at a trapped instruction, and of its state."""
        if action is Action.CODE_CHANGED:
            return self.counter.code_hook, self.counter.address
        if action in (Action.SEND_EVENT, Action.SEND_LOCAL_EVENT):
            short = not self.WIDE and self.fetch(place, 2) in THUMB_EVENTS
            events = self._events
            return (events.sev if action is Action.SEND_EVENT else events.sevl)(short=short)
        make = self._native_places.get(action)
        code = None if make is None else self._host_address(place)
        if make is None or code is None:
            return None
        trap = self._trap(action)
        native = make(code, lambda address, size: trap(None, address, size, None))
        self._places[place] = native
        return native.hook

    @property
    def _native_places(self) -> Mapping[Action, Callable[..., NativePlace]]:
        """Makers of hooks that do such an instruction in native code."""
        return {}

    def _trap(self, action: Action) -> Hook:
        watcher = self._watchers.get(action)

        def on_instruction(_engine: Any, address: int, size: int, _data: Any) -> None:
            self.counter.note()
            try:
                if watcher is not None:
                    watcher(address)
                elif self._emulate(action, address):
                    counter = self.counter
                    rest = (counter.block + counter.size - address - size) >> 2
                    counter.add(-max(rest, 0))
                    onward, self._onward = self._onward, None
                    self.set_pc(address + size if onward is None else onward)
                    if self._waits_for_event:
                        self.engine.emu_stop()
            except BaseException as error:
                self.counter.fail(error)

        return on_instruction

    def go_on_at(self, address: int) -> None:
        """Let the trapped instruction that is being done go on there."""
        self._onward = address

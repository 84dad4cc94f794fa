"""A core's code: pages are searched when they are met, trapped instructions done in Python."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from vc4lab.soc.cores.code_pages import PAGE, CodePages, Hook
from vc4lab.soc.cores.engine_calls import EngineCalls
from vc4lab.soc.cores.exceptions import THUMB
from vc4lab.soc.cores.traps import Action, Trap
from vc4lab.soc.native import SliceCounter


class TrappedCode(ABC):
    """What of a core has to do with the instructions that the engine does not do alone."""

    WIDE: bool
    counter: SliceCounter
    calls: EngineCalls
    cpsr: int
    _pages: CodePages
    _watchers: dict[Action, Callable[[int], None]]
    """Called before an instruction instead of doing it here, with its address."""
    _waits_for_event = False
    _onward: int | None = None
    """Where a trapped instruction goes on, if not after itself."""

    @abstractmethod
    def _emulate(self, action: Action, address: int) -> bool:
        """Do a trapped instruction; whether to go on after it (else the engine executes it)."""

    @abstractmethod
    def set_pc(self, address: int) -> None:
        """Go on at `address` (in the same instruction set)."""

    @abstractmethod
    def translate(self, address: int) -> int | None:
        """The physical address of a virtual one as the core sees it now, None if none is."""

    @property
    def executes_thumb(self) -> bool:
        """Whether the instruction of a hook that runs now is Thumb code."""
        return False

    @property
    def _traps_now(self) -> tuple[Trap, ...]:
        """What is searched for in a page that is met in the core's present state."""
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

    def _hook_place(self, place: int, action: Action) -> None:
        """Stop before the instruction at an address to do it here."""
        if action is Action.CODE_CHANGED:
            from unicorn import UC_HOOK_CODE

            counter, span = self.counter, (place, place)
            self.calls.add_hook(UC_HOOK_CODE, counter.code_hook, counter.address, span=span)
            return
        self._pages.hook(place, self._trap(action))

    def _trap(self, action: Action) -> Hook:
        watcher = self._watchers.get(action)

        def on_instruction(engine: Any, address: int, size: int, _data: Any) -> None:
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
                        engine.emu_stop()
            except BaseException as error:
                self.counter.fail(error)

        return on_instruction

    def go_on_at(self, address: int) -> None:
        """Where the trapped instruction that is being done goes on."""
        self._onward = address

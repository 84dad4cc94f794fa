"""The pages that a core has executed: searched for trapped instructions, checked for writes.

Before each trapped instruction stands a hook of the engine.

The engine notices when a core changes its own code; writes of other cores, the GPU and the
firmware it does not see. So each page's checksum is kept (`page_sums.py`), and when the program
maintains its instruction cache (or a vsync passes) changed pages lose their translations.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

from vc4lab.memory import GuestMemory
from vc4lab.soc.cores.code.code_search import search
from vc4lab.soc.cores.code.page_sums import PageSums
from vc4lab.soc.cores.code.traps import Action, Trap
from vc4lab.soc.native import PAGES, SEEN, THUMB, UNSEEN, SliceCounter, page_index, page_table

PAGE = 4096
LONGEST_BLOCK = 512
"""A block that begins in a page may go on in the next."""
MAX_HOOKS = 4096
"""Hooks for trapped instructions; a hostile program gets no more."""

Hook = Callable[[Any, int, int, Any], None]
"""Called by the engine, with address and size of the instruction it comes to."""


class CodePages:
    """Executed pages of one core; `seen` is shared with the native block hook."""

    def __init__(self, engine: Any, memory: GuestMemory, counter: SliceCounter, *, wide: bool) -> None:
        self.seen = page_table()
        self._engine = engine
        self._memory = memory
        self._counter = counter
        self._wide = wide
        self.more_traps: tuple[Trap, ...] = ()
        """Searched for as well; set before any page is met."""
        self._sums = PageSums(memory.base)
        self._hooked: set[int] = set()
        self.hooks: dict[int, Any] = {}
        """The engine's handles of hooks in Python, by address."""
        self._keep: list[Hook] = []
        self._released: list[int] = []

    def meet(
        self, address: int, physical: int | None, thumb: bool, traps: tuple[Trap, ...]
    ) -> list[tuple[int, Action]]:
        """Enter the page of `address`; returns the new places to hook: address and action.

        `traps`: what is searched for in this page besides what is always.
        """
        page = address & ~(PAGE - 1)
        plain = thumb and physical == address
        self.seen[page_index(address)] = THUMB if plain else SEEN
        if physical is None:
            return []
        start = physical & ~(PAGE - 1)
        self._sums.note(page, start)
        found: list[tuple[int, Action]] = []
        raw = self._memory.read(start, PAGE + LONGEST_BLOCK)
        for offset, action in search(raw, self.more_traps + traps, wide=self._wide):
            place = page + offset
            if place not in self._hooked and len(self._hooked) < MAX_HOOKS:
                self._hooked.add(place)
                found.append((place, action))
        return found

    def pass_over(self, address: int) -> None:
        """A page whose code needs no help counts as seen."""
        self.seen[page_index(address)] = SEEN

    def hook(self, place: int, hook: Hook) -> None:
        """Call before the instruction at an address is executed."""
        from unicorn import UC_HOOK_CODE

        self._keep.append(hook)
        self.hooks[place] = self._engine.hook_add(UC_HOOK_CODE, hook, begin=place, end=place)

    def release(self, address: int) -> None:
        """The hook called now is no longer needed: the engine comes back, and goes on alone."""
        if address not in self.hooks:
            return
        counter = self._counter
        counter.add(-max(counter.block + counter.size - address >> 2, 0))
        self._released.append(address)
        counter.note()
        self._engine.emu_stop()

    def remove_released(self) -> bool:
        """Take away the hooks not needed any more; others come when their page is met again."""
        if not self._released:
            return False
        for address in self._released:
            hook = self.hooks.pop(address, None)
            self._hooked.discard(address)
            if hook is not None:
                self._engine.hook_del(hook)
                self.forget_translations(address & ~(PAGE - 1))
        self._released.clear()
        return True

    def drop_changed(self) -> None:
        """Forget the pages whose memory has changed since they were met."""
        for page in self._sums.take_changed():
            self.seen[page_index(page)] = UNSEEN
            self.forget_translations(page)

    def forget_translations(self, page: int) -> None:
        """The engine translates the page again when it is next executed."""
        self._engine.ctl_remove_cache(page, page + PAGE)

    def forget(self) -> None:
        """All pages count as new (the address space has changed)."""
        ctypes.memset(self.seen, 0, PAGES)
        self._sums.clear()


@cache
def _flush() -> Callable[[Any], int]:
    """The engine's call for that; its binding takes three times as long, and a vsync needs one."""
    from unicorn import unicorn_const as const
    from unicorn.unicorn_py3 import unicorn as binding

    what = const.UC_CTL_IO_WRITE << 30 | const.UC_CTL_TLB_FLUSH
    return lambda engine: int(binding.uclib.uc_ctl(engine, what))


def forget_addresses(engine: Any) -> None:
    """Empty the engine's TLB; where it was full, the engine takes one twice as large.

    It never grows else, and programs that draw columns touch another page with every pixel.
    """
    if _flush()(engine._uch):
        raise RuntimeError("the CPU engine does not empty its TLB")

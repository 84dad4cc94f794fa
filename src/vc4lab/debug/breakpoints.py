"""The breakpoints of a session: which there are, and whether one stops after a turn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from vc4lab.debug.expressions import Expression, ExpressionError
from vc4lab.debug.formats import word_text
from vc4lab.debug.state import QpuView
from vc4lab.debug.stops import (
    AccessBreakpoint,
    AddressBreakpoint,
    Breakpoint,
    Cause,
    MessageBreakpoint,
    Stop,
    WatchBreakpoint,
)

if TYPE_CHECKING:
    from vc4lab.debug.stage import Stage
    from vc4lab.debug.stepped import Stepped
    from vc4lab.diagnostics import Diagnostic

MOST = 1000
"""Breakpoints of a session."""
_SHOWN_LANES = 4


class Breakpoints:
    """All of a session, by number."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.items: dict[int, Breakpoint] = {}
        self._next = 1
        self._addresses: dict[int, list[AddressBreakpoint]] = {}
        self._watches: list[WatchBreakpoint] = []
        self._accesses: list[AccessBreakpoint] = []
        self._messages: list[MessageBreakpoint] = []

    def _view(self, number: int | None) -> QpuView:
        """Return the view of a QPU; None: of any one, where that makes no difference."""
        return QpuView(self.stage, self.stage.qpus[min(self.stage.qpus) if number is None else number])

    def _add(self, item: Breakpoint) -> None:
        if len(self.items) >= MOST:
            raise ExpressionError(f"a session has at most {MOST} breakpoints")
        self.items[item.number] = item
        self._next += 1
        self._sort()

    def _sort(self) -> None:
        found = self.items.values()
        self._addresses = {}
        for item in found:
            if isinstance(item, AddressBreakpoint):
                for address in item.addresses:
                    self._addresses.setdefault(address, []).append(item)
        self._watches = [item for item in found if isinstance(item, WatchBreakpoint)]
        self._accesses = [item for item in found if isinstance(item, AccessBreakpoint)]
        self._messages = [item for item in found if isinstance(item, MessageBreakpoint)]

    def add_address(self, addresses: Iterable[int], text: str = "", **options: Any) -> AddressBreakpoint:
        """Before instructions at these addresses. options: fields of `Breakpoint`."""
        places = frozenset(addresses)
        text = text or ", ".join(f"*0x{address:x}" for address in sorted(places))
        item = AddressBreakpoint(self._next, text, addresses=places, **options)
        self._add(item)
        return item

    def add_watch(self, expression: Expression, becomes: bool = False, **options: Any) -> WatchBreakpoint:
        """When a value changes; becomes: when a condition comes to hold. Raises ExpressionError."""
        item = WatchBreakpoint(self._next, expression.text, expression=expression, becomes=becomes, **options)
        item.form = expression.form(self._view(None))  # raises what is wrong with it
        self._add(item)
        return item

    def add_access(
        self, address: int, size: int, *, reads: bool, writes: bool, text: str = "", **options: Any
    ) -> AccessBreakpoint:
        """When bytes of memory are read or written."""
        text = text or f"{size} bytes at 0x{address:08x}"
        item = AccessBreakpoint(
            self._next, text, address=address, size=size, reads=reads, writes=writes, **options
        )
        self._add(item)
        return item

    def add_message(self, code: str, **options: Any) -> MessageBreakpoint:
        """When a diagnostic is reported; code: "" any."""
        item = MessageBreakpoint(self._next, code or "any message", code=code, **options)
        self._add(item)
        return item

    def delete(self, number: int) -> None:
        """Raises ExpressionError."""
        self[number]
        del self.items[number]
        self._sort()

    def __getitem__(self, number: int) -> Breakpoint:
        if number not in self.items:
            raise ExpressionError(f"there is no breakpoint {number}")
        return self.items[number]

    def arm(self) -> None:
        """Note the present values of what is watched; later ones are compared with them."""
        for item in self._watches:
            item.before.clear()
            views: dict[int | None, QpuView] = {None: self._view(None)}
            if item.expression.of_qpu:
                views = {number: self._view(number) for number in self.stage.qpus}
            for number, view in views.items():
                try:
                    item.before[number] = item.now(view)
                except ExpressionError as error:
                    item.before[number] = str(error)

    def after(
        self, qpu: Stepped, moved: bool, messages: Sequence[Diagnostic], counts: bool = True
    ) -> Stop | None:
        """Whether one stops after a QPU's turn. counts: hits are counted."""
        found: Stop | None = None
        for item, cause, text in self._met(qpu, moved, messages):
            if not item.concerns(qpu.number):
                continue
            wrong = self._condition_fails(item, qpu)
            if wrong is None:
                continue
            if counts:
                item.hits += 1
                if item.skip:
                    item.skip -= 1
                    continue
            if found is None:
                found = Stop(cause, qpu.number, text + wrong, item)
        if found is not None and found.breakpoint is not None and found.breakpoint.temporary and counts:
            self.delete(found.breakpoint.number)
        return found

    def _condition_fails(self, item: Breakpoint, qpu: Stepped) -> str | None:
        """None: the condition does not hold. Else what is wrong with it, "" for nothing."""
        if item.condition is None:
            return ""
        try:
            return "" if item.condition.holds(self._view(qpu.number)) else None
        except ExpressionError as error:
            return f" (its condition: {error})"

    def _met(
        self, qpu: Stepped, moved: bool, messages: Sequence[Diagnostic]
    ) -> list[tuple[Breakpoint, Cause, str]]:
        met: list[tuple[Breakpoint, Cause, str]] = []
        for message in self._messages if messages else ():
            item = next((one for one in messages if message.counts(one)), None)
            if item is not None:
                met.append((message, Cause.MESSAGE, f"{item.code}: {item.message}"))
        if not moved:
            return met
        for watched in self._accesses:
            access = watched.first(self.stage.observer.accesses)
            if access is not None:
                what = "writes" if access.is_write else "reads"
                text = f"QPU {qpu.number} {what} {access.size} bytes at 0x{access.address:08x}"
                met.append((watched, Cause.ACCESS, text))
        for watch in self._watches:
            text_of = self._changed(watch, qpu)
            if text_of is not None:
                met.append((watch, Cause.WATCH, text_of))
        if self._addresses and qpu.alive:
            for place in self._addresses.get(qpu.next_address, ()):
                met.append((place, Cause.BREAKPOINT, ""))
        return met

    def _changed(self, watch: WatchBreakpoint, qpu: Stepped) -> str | None:
        """Report a watched value's change in words; None: nothing that stops."""
        number = qpu.number if watch.expression.of_qpu else None
        try:
            now = watch.now(self._view(qpu.number))
        except ExpressionError as error:
            now = str(error)
        before = watch.before.get(number)
        if now == before:
            return None
        watch.before[number] = now
        if watch.becomes:
            return f"{watch.text} holds" if now else None
        return f"{watch.text}: {_difference(before, now, watch.form)}"


def _difference(before: Any, now: Any, form: str) -> str:
    """Values of lanes that changed."""
    if not isinstance(before, tuple) or not isinstance(now, tuple) or len(before) != len(now):
        return f"{_shown(before, form)} → {_shown(now, form)}"
    changed = [lane for lane in range(len(now)) if now[lane] != before[lane]]
    pairs = [(before[lane], now[lane]) for lane in changed]
    texts = [f"{word_text(old, form)} → {word_text(new, form)}" for old, new in pairs]
    if len(now) == 1 or (len(changed) == len(now) and len(set(pairs)) == 1):
        return texts[0]
    shown = [f"[{lane}] {text}" for lane, text in zip(changed, texts, strict=True)][:_SHOWN_LANES]
    return ", ".join(shown) + (", …" if len(changed) > _SHOWN_LANES else "")


def _shown(value: Any, form: str) -> str:
    if isinstance(value, tuple):
        return " ".join(word_text(word, form) for word in value)
    return str(value)

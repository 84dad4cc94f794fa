"""The control list executor (CLE): calls the handler of each record of a list.

Both list threads use it. A method says what a record *does*, and its decorator names the record's
class: here for what both lists have in common, else in `binning.py` (thread 0) and `rendering.py`
(thread 1). Source: hardware reference 3.1-3.2.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from vc4lab.memory import MEMORY_MASK
from vc4lab.records.control import RECORD_SIZES, RECORDS, foreign_to, ids_of
from vc4lab.records.declarations import (
    Branch,
    BranchToSublist,
    Halt,
    IncrementSemaphore,
    Return,
    WaitSemaphore,
)
from vc4lab.records.payload import BINNING, RENDERING, Payload
from vc4lab.v3d.cle.thread import SEMAPHORE_MAX, SEMAPHORE_STALL, ListThread
from vc4lab.v3d.events import Use
from vc4lab.v3d.services import Services
from vc4lab.v3d.state.native_records import RecordNotes
from vc4lab.v3d.tile_lists.list_end import inline_length

if TYPE_CHECKING:
    from vc4lab.v3d.checks.addresses import AddressCheck

#: A handler gets the address of its record; it may change the thread (jump, stall, stop).
Handler = Callable[[int], None]

F = TypeVar("F", bound=Callable[..., None])
_MARK = "executed_records"


def executes(*records: type[Payload]) -> Callable[[F], F]:
    """Marks the method of a stage that executes these records."""

    def mark(method: F) -> F:
        setattr(method, _MARK, (*records, *getattr(method, _MARK, ())))
        return method

    return mark


def handlers_of(stage: object) -> dict[int, Handler]:
    """The methods of a stage by the id of the records that they execute."""
    table: dict[int, Handler] = {}
    for name, method in vars(type(stage)).items():
        for record in getattr(method, _MARK, ()):
            if record.id in table:
                raise TypeError(f"{type(stage).__name__} executes {record.title} in two methods")
            table[record.id] = getattr(stage, name)
    return table


#: Records one run of a thread may execute. A frame of the largest size with every tile loaded
#: and stored twice needs under a million; more is a list that runs in a circle.
RECORD_BUDGET = 1 << 22

#: How often the same jump, with the same return addresses, may be taken in one run of both threads.
#: Lists have no conditions, so a second time already means a circle, unless the list changes.
JUMP_BUDGET = 16

NOTED = tuple(frozenset(ids_of(native=letter)) for letter in (BINNING, RENDERING))
"""Records of both threads of which the native reader notes that they are executed."""

_U32 = struct.Struct("<I")

P = TypeVar("P", bound=Payload)


class ControlListExecutor:
    """Executes the lists of both threads until each stops or stalls."""

    def __init__(
        self, services: Services, threads: tuple[ListThread, ListThread], addresses: AddressCheck
    ) -> None:
        self.services, listeners = services, services.listeners
        self.notes = RecordNotes(listeners.record_executed, listeners.records_noted)
        self.memory, self.reporter = services.memory, services.reporter
        self.threads = threads
        self.depth = int(services.unknowns["sublist_depth"])
        """How deep sub-lists may nest."""
        self.addresses = addresses
        self.waited: Callable[[int], None] = lambda _thread: None
        """Called with the number of a thread that takes an increment of the other's semaphore."""
        self.ram = self.memory.view(0, MEMORY_MASK + 1)
        self._jumps: dict[tuple[int, ...], int] = {}
        self._tables = [
            SystemRecords(self, thread).handlers(letter)
            for thread, letter in zip(threads, (BINNING, RENDERING), strict=True)
        ]

    def install(self, number: int, stage: object) -> dict[int, Handler]:
        """Adds the handlers of a stage to the table of a thread; returns those it had before."""
        before = self._tables[number]
        self._tables[number] = before | handlers_of(stage)
        return before

    def word(self, address: int) -> int:
        """The little-endian word at a guest address (used for record payloads)."""
        address &= MEMORY_MASK
        if address > MEMORY_MASK - 3:
            return self.memory.u32(address)
        return int(_U32.unpack_from(self.ram, address)[0])

    def byte(self, address: int) -> int:
        """The byte at a guest address."""
        return self.ram[address & MEMORY_MASK]

    def payload(self, address: int, kind: type[P]) -> P:
        """The fields of the record at ``address``, which the caller knows to be a ``kind``."""
        return kind.from_bytes(self.memory.read(address + 1, kind.size - 1))

    def pump(self) -> None:
        """Runs both threads, in turn, until neither can go on."""
        binning, rendering = self.threads
        self._jumps.clear()
        while True:
            if binning.running and (binning.stalled is None or self._may_go_on(binning)):
                self._run(binning)
                if rendering.running and (rendering.stalled is None or self._may_go_on(rendering)):
                    self._run(rendering)
            elif rendering.running and (rendering.stalled is None or self._may_go_on(rendering)):
                self._run(rendering)
            else:
                return

    def _may_go_on(self, thread: ListThread) -> bool:
        """Whether a stalled thread's reason has gone; only semaphore stalls end here."""
        if thread.stalled == SEMAPHORE_STALL and self.takes_increment(thread):
            thread.stalled = None
            return True
        return False

    def takes_increment(self, thread: ListThread) -> bool:
        """Whether the other thread's semaphore had an increment, which this one consumes."""
        other = self.threads[1 - thread.number]
        if other.increments:
            other.increments -= 1
            self.waited(thread.number)
            return True
        return False

    def _run(self, thread: ListThread) -> None:
        handlers, sizes, ram = self._tables[thread.number], RECORD_SIZES, self.ram
        any_listener = self.notes.any_listener
        budget = RECORD_BUDGET
        while thread.running and thread.stalled is None:
            address = thread.current
            if address == thread.end:
                thread.running = False
                return
            identity = ram[address & MEMORY_MASK]
            try:
                handler = handlers[identity]
            except KeyError:
                self._illegal(thread, address, identity)
                return
            thread.current = following = (address + sizes[identity]) & 0xFFFFFFFF
            if following > thread.end and address < thread.end:
                self.reporter.report(
                    "CLE-002",
                    f"record 0x{identity:02x} is cut off by the end of the {thread.name} list",
                    address=address,
                )
                thread.end = following
            if any_listener.present and identity not in NOTED[thread.number]:
                self.notes.emit(thread.number, address, identity)
            handler(address)
            budget -= 1
            if not budget:
                self.stall_endless_list(thread)

    def stall_endless_list(self, thread: ListThread) -> None:
        """The list never ends: stalls the thread and reports it."""
        thread.stalled = "the end of a list that has none"
        self.reporter.report(
            "CLE-006", f"the {thread.name} list loops without reaching its end", address=thread.current
        )

    def jump(self, thread: ListThread, address: int, target: int) -> None:
        """The record at ``address`` jumps to ``target``; an endless loop of jumps is reported."""
        thread.current = target
        self.addresses.uses(Use.LIST, target, 1, address)
        place = (thread.number, address & MEMORY_MASK, *thread.stack)
        trips = self._jumps[place] = self._jumps.get(place, 0) + 1
        if trips > JUMP_BUDGET:
            self.stall_endless_list(thread)

    def _illegal(self, thread: ListThread, address: int, identity: int) -> None:
        thread.stop_with_error()
        self.reporter.report(
            "CLE-001",
            f"record 0x{identity:02x} does not exist or cannot be executed by the {thread.name}"
            " thread; the thread stops with CTERR",
            address=address,
        )

    def call(self, thread: ListThread, address: int) -> None:
        """Branch to sub-list: pushes the address after the record at ``address``."""
        if len(thread.stack) >= self.depth:
            thread.stop_with_error()
            self.reporter.report(
                "CLE-005",
                f"sub-lists nest deeper than {self.depth} in the {thread.name} list",
                address=address,
            )
            return
        if thread.stack:
            self.reporter.report("CLE-036", f"a nested sub-list in the {thread.name} list", address=address)
        thread.stack.append(thread.current)
        thread.current = self.word(address + 1)
        self.addresses.uses(Use.LIST, thread.current, 1, address)

    def pass_vg_list(self, thread: ListThread, address: int, kind: int) -> int | None:
        """Goes on after the list of the record 42 at `address`; its words, None without an end."""
        start = thread.current
        length = inline_length(self.memory, start, kind)
        if length is None:
            self.reporter.report("CLE-039", "a VG list without an end code", address=address)
            thread.stop_with_error()
        else:
            self.jump(thread, address, (start + 4 * length) & 0xFFFFFFFF)
        return length

    def signal(self, thread: ListThread) -> None:
        """The pending semaphore increment of record 7 takes effect (flush, end of frame)."""
        thread.closed = True
        if not thread.increment_armed:
            return
        thread.increment_armed = False
        if thread.increments < SEMAPHORE_MAX:
            thread.increments += 1
        else:
            self.reporter.report(
                "CLE-035", f"the {thread.name} thread's semaphore is already at {SEMAPHORE_MAX}"
            )


class SystemRecords:
    """The records that mean the same in both lists, executed for one of the threads."""

    def __init__(self, executor: ControlListExecutor, thread: ListThread) -> None:
        self._executor = executor
        self._thread = thread

    def handlers(self, letter: str) -> dict[int, Handler]:
        """Those of the list of this letter, in which records of the other list do nothing."""
        foreign = {kind.id: self._does_nothing for kind in foreign_to(letter)}
        return foreign | handlers_of(self)

    def _does_nothing(self, address: int) -> None:
        identity = self._executor.byte(address)
        self._executor.reporter.report(
            "CLE-008",
            f"{RECORDS[identity].title} ({identity}) does nothing in the {self._thread.name} list",
            address=address,
        )

    @executes(Halt)
    def _halt(self, _address: int) -> None:
        self._thread.running, self._thread.halted = False, True

    @executes(Branch)
    def _branch(self, address: int) -> None:
        self._executor.jump(self._thread, address, self._executor.word(address + 1))

    @executes(BranchToSublist)
    def _call(self, address: int) -> None:
        self._executor.call(self._thread, address)

    @executes(Return)
    def _return(self, _address: int) -> None:
        thread = self._thread
        thread.returns += 1
        if thread.stack:
            thread.current = thread.stack.pop()

    @executes(IncrementSemaphore)
    def _increment(self, _address: int) -> None:
        self._thread.increment_armed = self._thread.signals = True

    @executes(WaitSemaphore)
    def _wait(self, _address: int) -> None:
        if not self._executor.takes_increment(self._thread):
            self._thread.stalled = SEMAPHORE_STALL

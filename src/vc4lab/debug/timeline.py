"""The positions of a session: turns of its QPUs, one after the other, and back to any of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from vc4lab import interruption
from vc4lab.debug.history import IDLE, Checkpoint, History
from vc4lab.v3d.user_programs.qpu import RunState

if TYPE_CHECKING:
    from vc4lab.debug.source import Source
    from vc4lab.debug.stage import Stage
    from vc4lab.debug.stepped import Stepped
    from vc4lab.diagnostics import Diagnostic
    from vc4lab.memory import GuestMemory
    from vc4lab.v3d.user_programs.experiment import Area


class Timeline:
    """Takes turns, keeps checkpoints, and goes to positions that were reached before.

    Attributes
    ----------
    stage
        What runs.
    turn
        The position: turns since the start.
    messages
        What was reported so far, each with the turn after which.
    on_message
        Called with each message as it comes, but not again while going back executes it again.
    """

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.turn = 0
        self.messages: list[tuple[int, Diagnostic]] = []
        self.on_message: Callable[[Diagnostic], object] = lambda item: None
        self._muted = False
        for item in stage.early:
            self._take_message(item)
        stage.on_message = self._take_message
        self._order = tuple(self.qpus.values())
        self._turning = self._still = 0
        self.history = History()
        self.history.keep(self._checkpoint())
        self._changes: dict[int, list[Callable[[], None]]] = {}

    @property
    def qpus(self) -> Mapping[int, Stepped]:
        """The QPUs, by number."""
        return self.stage.qpus

    @property
    def source(self) -> Source:
        """The program as its author wrote it."""
        return self.stage.source

    @property
    def memory(self) -> GuestMemory:
        """Guest memory."""
        return self.stage.memory

    @property
    def areas(self) -> Mapping[str, Area]:
        """The memories with names."""
        return self.stage.areas

    def code_address(self, offset: int) -> int:
        """Return the address of the word at a byte offset of the program."""
        return self.stage.code_address(offset)

    @property
    def alive(self) -> bool:
        """Whether any program may go on."""
        return any(qpu.alive for qpu in self._order)

    def _take_turn(self) -> tuple[Stepped, bool, list[Diagnostic]]:
        """The next QPU has its turn: (that QPU, whether it executed something, new messages)."""
        order = self._order
        while not order[self._turning].alive:
            self._turning = (self._turning + 1) % len(order)
        qpu = order[self._turning]
        self._turning = (self._turning + 1) % len(order)
        self.stage.observer.accesses.clear()
        qpu.advance()
        waits = qpu.run_state is RunState.WAITING
        self._still = self._still + 1 if waits else 0
        if self.turn == len(self.history.turns):
            self.history.turns.append(IDLE if waits else qpu.number)
        self.turn += 1
        count = len(self.messages)
        self.stage.report(qpu)
        if self.stage.journal.dropped:
            self.history.drop_before(self.stage.journal.dropped)
        if self.history.is_due(self.turn) or not self.history.checkpoints:
            self.history.keep(self._checkpoint())
        self._change_again()
        return qpu, not waits, [item for _, item in self.messages[count:]]

    def _take_message(self, item: Diagnostic) -> None:
        self.messages.append((self.turn, item))
        if not self._muted:
            self.on_message(item)

    def go_to(self, turn: int) -> None:
        """The position after so many turns, one that was reached before. Raises ValueError."""
        if not 0 <= turn <= len(self.history.turns):
            raise ValueError(f"turn {turn}: only 0 to {len(self.history.turns)} were reached")
        checkpoint = self.history.before(turn)
        if checkpoint is None:
            raise ValueError(f"turn {turn}: memory is kept from turn {self._first} on")
        if not checkpoint.turn <= self.turn <= turn:
            with interruption.deferred():
                self._restore(checkpoint)
        with self._mute(), interruption.deferred():
            while self.turn < turn:
                self._take_turn()

    @property
    def _first(self) -> int:
        return self.history.checkpoints[0].turn

    def _can_reach(self, turn: int) -> bool:
        return self.history.before(turn) is not None

    @contextmanager
    def _mute(self) -> Iterator[None]:
        """Messages are not told: they were told before."""
        before, self._muted = self._muted, True
        try:
            yield
        finally:
            self._muted = before

    def _checkpoint(self) -> Checkpoint:
        saved = {number: qpu.saved() for number, qpu in self.qpus.items()}
        return Checkpoint(
            self.turn, saved, self.stage.saved(), self.stage.journal.count, self._turning, self._still
        )

    def _restore(self, checkpoint: Checkpoint) -> None:
        self.stage.journal.undo(checkpoint.stores)
        self.stage.restore(checkpoint.shared)
        for number, saved in checkpoint.qpus.items():
            self.qpus[number].restore(saved)
        self.turn, self._turning, self._still = checkpoint.turn, checkpoint.turning, checkpoint.still
        kept = [(turn, item) for turn, item in self.messages if turn <= self.turn]
        self.messages = []
        self.stage.reporter.clear()
        with self._mute():
            for turn, item in kept:
                self.stage.reporter.report(
                    item.code, item.message, address=item.address, block=item.block, detail=item.detail
                )
                if self.messages:
                    self.messages[-1] = turn, self.messages[-1][1]
            self._change_again()

    def change(self, call: Callable[[], None]) -> None:
        """Does something to the state at this position, now and whenever it is reached again."""
        self.history.drop_after(self.turn)
        self._changes = {turn: calls for turn, calls in self._changes.items() if turn <= self.turn}
        self._changes.setdefault(self.turn, []).append(call)
        call()

    def _change_again(self) -> None:
        for call in self._changes.get(self.turn, ()):
            call()

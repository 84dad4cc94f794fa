"""A run of user programs that is stepped: forward and backward, to a breakpoint, to its end.

experiment = Experiment(code, gpu=GpuOptions("interpreter"))
session = Session(ProgramStage(experiment, source, qpus=12, uniforms=["x + 64*qpu, y"]))
session.add_address([session.locate("loop")])
stop = session.proceed()                        # up to the breakpoint
session.register("r0")                          # 16 words
session.step(); session.back()                  # an instruction on, and back again

All QPUs go on in turns, an instruction each, as `--engine interpreter` runs them; a session never
changes what is computed. Going back starts at a checkpoint and executes again.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from vc4lab import interruption
from vc4lab.debug.breakpoints import Breakpoints
from vc4lab.debug.expressions import Expression, ExpressionError, register_key, word_of
from vc4lab.debug.source import Place
from vc4lab.debug.state import QpuView, lanes_of
from vc4lab.debug.stepped import Stepped, is_return
from vc4lab.debug.stops import Breakpoint, Cause, Stop
from vc4lab.debug.timeline import Timeline
from vc4lab.memory import MEMORY_MASK
from vc4lab.qpu.isa.encoding import BRANCH_DELAY_SLOTS, INSTRUCTION_BYTES
from vc4lab.qpu.isa.semantics import Flags
from vc4lab.v3d.user_programs.qpu import RunState

if TYPE_CHECKING:
    from vc4lab.debug.stage import Stage
    from vc4lab.diagnostics import Diagnostic
    from vc4lab.v3d.user_programs.experiment import Experiment

Reached = Callable[["Stepped"], "Stop | None"]
"""Looks at the QPU that has just had its turn: whether to stop now."""
_STOPPED = (RunState.STOPPED, RunState.STUCK)


class Session(Timeline):
    """Programs of a stage, from their beginning.

    Attributes
    ----------
    selected
        The QPU that commands are about; a stop selects the one that it is about.
    stop
        Why the session stands.
    """

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.selected = min(self.qpus)
        self.breakpoints = Breakpoints(stage)
        self._pause = threading.Event()
        self.stop = Stop(Cause.START, self.selected)

    def __repr__(self) -> str:
        return f"<Session of {len(self.qpus)} QPUs at turn {self.turn}: {self.stop.cause.value}>"

    # -- looking -----------------------------------------------------------------------------------

    @property
    def experiment(self) -> Experiment:
        """The experiment whose programs these are. Raises AttributeError of shaders."""
        found: Experiment = self.stage.experiment  # type: ignore[attr-defined]
        return found

    @property
    def qpu(self) -> Stepped:
        """The selected one."""
        return self.qpus[self.selected]

    def view(self, number: int | None = None) -> QpuView:
        """A QPU's registers and other state, as expressions see them."""
        return QpuView(self.stage, self.qpus[self.selected if number is None else number])

    def register(self, name: str, qpu: int | None = None) -> list[int]:
        """The 16 words of a register. Raises ExpressionError."""
        key = register_key(name)
        if key is None:
            raise ExpressionError(f"there is no register {name[:20]!r}: ra0-31, rb0-31, r0-5")
        return [int(word) for word in self.view(qpu).register(key)]

    def evaluate(self, text: str, qpu: int | None = None) -> Any:
        """The value of an expression: a number, or a list of one for each lane."""
        value = Expression(text).value(self.view(qpu))
        return value.tolist() if isinstance(value, np.ndarray) else value

    def place(self, qpu: int | None = None) -> Place | None:
        """The source line of a QPU's next instruction."""
        chosen = self.qpus[self.selected if qpu is None else qpu]
        return self.source.place(chosen.next_address)

    def locate(self, text: str, file: str | None = None) -> list[int]:
        """The addresses that `12`, `file.qasm:12`, `label`, `label+8` or `*0x1008` means.

        Raises ExpressionError.
        """
        text = text.strip()
        label, plus, more = text.partition("+")
        if label.strip() in self.source.labels and (not plus or more.strip().isdecimal()):
            offset = self.source.labels[label.strip()] + int(more[:9] or 0)
            return [self._code_address(self.code_address(offset), text)]
        if text.startswith("*"):
            return [self._code_address(Expression(text[1:]).value(self.view()), text)]
        name, colon, line = text.rpartition(":")
        if line.isascii() and line.isdigit() and (colon or not name):
            current = self.place()
            where = name or file or (current.file if current else None)
            found = self.source.addresses(int(line[:9]), where)
            if not found:
                what = f"{where}: " if where else ""
                raise ExpressionError(f"{what}there is no instruction at or after line {line[:9]}")
            return found
        if not text:
            raise ExpressionError("a place is a line, FILE:LINE, a label, or *ADDRESS")
        return [self._code_address(Expression(text).value(self.view()), text)]

    def _code_address(self, value: Any, text: str) -> int:
        if not isinstance(value, int) or value % INSTRUCTION_BYTES:
            raise ExpressionError(f"{text[:40]!r} is no address of an instruction")
        return value & MEMORY_MASK

    # -- forward -----------------------------------------------------------------------------------

    def step(self, count: int = 1) -> Stop:
        """The selected QPU executes so many instructions; the others have their turns meanwhile."""
        return self._steps(count, self._moved(self.selected))

    def step_line(self, count: int = 1) -> Stop:
        """Step so many times to another line of the source; the other QPUs have their turns meanwhile."""
        return self._steps(count, None)

    def step_over(self, count: int = 1, lines: bool = True) -> Stop:
        """As `step_line`, or as `step` if not `lines`; a subroutine is executed as a whole."""
        return self._steps(count, None if lines else self._moved(self.selected), over=True)

    def step_out(self) -> Stop:
        """Out of a subroutine: over the next branch to a register that does not keep its link."""
        qpu = self.qpu

        def returns(one: Stepped) -> Stop | None:
            word = qpu.next_word
            found = one is qpu and word is not None and is_return(word)
            return Stop(Cause.STEP, qpu.number) if found else None

        if returns(qpu) is None and self._forward(returns, qpu.number).cause is not Cause.STEP:
            return self.stop
        return self.step(1 + BRANCH_DELAY_SLOTS)

    def run_to(self, addresses: Iterable[int], qpu: int | None = None) -> Stop:
        """Up to before one of these instructions, on a QPU (None: any)."""
        wanted = frozenset(addresses)

        def reached(one: Stepped) -> Stop | None:
            if qpu in (None, one.number) and one.next_address in wanted:
                return Stop(Cause.STEP, one.number)
            return None

        return self._forward(reached, None)

    def proceed(self, turns: int | None = None) -> Stop:
        """Up to the next breakpoint, message that stops, fault or end. turns: at most so many."""
        return self._forward(lambda qpu: None, None, turns)

    def pause(self) -> None:
        """Stops a session that runs in another thread, or before its next turn."""
        self._pause.set()

    def _moved(self, number: int) -> Reached:
        def reached(qpu: Stepped) -> Stop | None:
            return Stop(Cause.STEP, number) if qpu.number == number else None

        return reached

    def _line_left(self, number: int) -> Reached:
        before = self.source.place(self.qpus[number].next_address)

        def reached(qpu: Stepped) -> Stop | None:
            if qpu.number != number:
                return None
            now = self.source.place(qpu.next_address)
            same = now is not None and before is not None and now[:2] == before[:2]
            return None if same else Stop(Cause.STEP, number)

        return reached

    def _steps(self, count: int, reached: Reached | None, over: bool = False) -> Stop:
        number = self.selected
        for _ in range(max(count, 1)):
            qpu = self.qpus[number]
            back = qpu.call_return if over else None
            if back is not None:
                stop = self._forward(self._back_at(number, back), number)
            else:
                stop = self._forward(reached or self._line_left(number), number)
            if stop.cause is not Cause.STEP:
                break
        return self.stop

    def _back_at(self, number: int, address: int) -> Reached:
        def reached(qpu: Stepped) -> Stop | None:
            here = qpu.number == number and qpu.next_address == address
            return Stop(Cause.STEP, number) if here else None

        return reached

    def _forward(self, reached: Reached, number: int | None, turns: int | None = None) -> Stop:
        """Turns until something stops; `reached` is asked after each in which a QPU has moved.

        number: the QPU whose end stops the session; None: only that of all.
        """
        stop = None if self.alive else self._over()
        with self._uninterrupted():
            self.breakpoints.arm()
            left = turns
            while stop is None:
                if self._is_paused():
                    stop = Stop(Cause.PAUSED, self.selected)
                    break
                if left is not None:
                    if not left:
                        stop = Stop(Cause.LIMIT, self.selected, f"{turns} turns")
                        break
                    left -= 1
                qpu, moved, messages = self._take_turn()
                stop = self._reason(qpu, moved, messages, number) or (reached(qpu) if moved else None)
        return self._stand(stop)

    @contextmanager
    def _uninterrupted(self) -> Iterator[None]:
        """Signals are only noted here, and Ctrl-C pauses; others end the process afterwards."""
        with interruption.deferred(takes_over=True):
            yield
            if interruption.came() == signal.SIGINT:
                interruption.dealt_with()
        self._pause.clear()

    def _is_paused(self) -> bool:
        return self._pause.is_set() or bool(interruption.came())

    def _reason(
        self, qpu: Stepped, moved: bool, messages: Sequence[Diagnostic], number: int | None
    ) -> Stop | None:
        """Return the reason for which this turn stops the session; None: it goes on."""
        found = self.breakpoints.after(qpu, moved, messages)
        if qpu.run_state in _STOPPED:
            return Stop(Cause.FAULT, qpu.number, qpu.waits)
        if found is not None:
            return found
        if qpu.run_state is RunState.ENDED:
            if not self.alive:
                return self._over()
            return Stop(Cause.ENDED, qpu.number) if qpu.number == number else None
        if self._still >= sum(one.alive for one in self._order):
            return self._deadlock(qpu)
        if moved and qpu.at_breakpoint:
            return Stop(Cause.BKPT, qpu.number)
        return None

    def _deadlock(self, qpu: Stepped) -> Stop:
        waiting = [one for one in self._order if one.run_state is not RunState.ENDED]
        text = "; ".join(one.text_of() for one in waiting)
        self.stage.report_deadlock(text)
        first = next((one for one in waiting if one.need is not None), qpu)
        return Stop(Cause.DEADLOCK, first.number, text)

    def _over(self) -> Stop:
        """No program goes on."""
        faults = [qpu for qpu in self._order if qpu.run_state in _STOPPED]
        if faults:
            return Stop(Cause.FAULT, faults[0].number, faults[0].waits)
        return Stop(Cause.ENDED, self.selected, "all programs have ended")

    def _stand(self, stop: Stop) -> Stop:
        self.stop = stop
        self.selected = stop.qpu
        return stop

    # -- backward ----------------------------------------------------------------------------------

    def back(self, count: int = 1) -> Stop:
        """Before the last instruction that the selected QPU has executed, `count` times."""
        for _ in range(max(count, 1)):
            at = self.history.last_of(self.selected, self.turn)
            if at is None or not self._can_reach(at):
                return self._stand(Stop(Cause.START, self.selected, self._first_text))
            self.go_to(at)
        return self._stand(Stop(Cause.STEP, self.selected))

    def back_line(self, count: int = 1) -> Stop:
        """Before the first instruction of the line that the selected QPU has executed last."""
        for _ in range(max(count, 1)):
            if self.back().cause is Cause.START:
                return self.stop
            here = self.place()
            while here is not None:
                at = self.history.last_of(self.selected, self.turn)
                before = self.turn
                if at is None or not self._can_reach(at):
                    break
                self.go_to(at)
                now = self.place()
                if now is None or now[:2] != here[:2]:
                    self.go_to(before)
                    break
        return self._stand(Stop(Cause.STEP, self.selected))

    def proceed_back(self) -> Stop:
        """Back to the last position at which a breakpoint would have stopped."""
        last = self.turn - 1  # the positions that are looked at lie before it
        began = self.turn
        while last > 0 and (start := self.history.before(last - 1)) is not None:
            with self._uninterrupted():
                found = self._last_stop(start.turn, last)
                paused = self._is_paused()
            if paused:
                self.go_to(began)
                return self._stand(Stop(Cause.PAUSED, self.selected))
            if found is not None:
                self.go_to(found[0])
                return self._stand(found[1])
            last = start.turn
        return self.restart(self._first_text)

    def _last_stop(self, start: int, last: int) -> tuple[int, Stop] | None:
        """The last position after `start`, up to `last`, where something would have stopped."""
        found: tuple[int, Stop] | None = None
        self.go_to(start)
        with self._mute():
            self.breakpoints.arm()
            while self.turn < last and not self._is_paused():
                qpu, moved, messages = self._take_turn()
                stop = self.breakpoints.after(qpu, moved, messages, counts=False)
                if stop is None and moved and qpu.alive and qpu.at_breakpoint:
                    stop = Stop(Cause.BKPT, qpu.number)
                if stop is not None:
                    found = self.turn, stop
        return found

    def restart(self, text: str = "") -> Stop:
        """Back to the beginning, or as far as it is kept."""
        self.go_to(self._first)
        return self._stand(Stop(Cause.START, self.selected, text))

    @property
    def _first_text(self) -> str:
        if self._first:
            return "what was before is no longer kept"
        return "nothing was executed before"

    # -- changing ----------------------------------------------------------------------------------

    def assign(self, target: str, value: str, qpu: int | None = None) -> None:
        """Gives a register, a lane, a flag or a word of memory a new value, from now on.

        What was recorded after this position is given up. Raises ExpressionError.
        """
        chosen = self.qpus[self.selected if qpu is None else qpu]
        view = QpuView(self.stage, chosen)
        where = Expression(target)
        name, index_tree = where.target
        index = None if index_tree is None else where.index(view, index_tree)
        new = Expression(value).value(view)
        words = [word_of(one) for one in np.atleast_1d(new).tolist()]
        if len(words) not in (1, 16):
            raise ExpressionError(f"{value[:40]!r} has {len(words)} lanes")
        self.change(self._assignment(chosen, name, index, words))

    def _assignment(self, qpu: Stepped, name: str, index: int | None, words: list[int]) -> Callable[[], None]:
        key = register_key(name)
        if name in ("mem", "memf") and index is not None:
            data = b"".join(word.to_bytes(4, "little") for word in words)
            return lambda: self._write_memory(index, data)
        if key is None and name not in ("z", "n", "c"):
            raise ExpressionError(f"{name[:20]!r} cannot be given a value: a register, flag or mem[…] can")
        if index is not None and (not 0 <= index < 16 or len(words) != 1):
            raise ExpressionError("a lane is 0 to 15, and takes one number")
        if key is not None:
            machine = qpu.machine
            lanes = np.array(lanes_of(machine.read(key)))
            lanes[slice(None) if index is None else index] = words if index is None else words[0]
            return lambda: machine.write(key, lanes)
        core = qpu.machine.core
        flags = {one: np.array(lanes_of(core.flag(one))) for one in "znc"}
        bits = np.array([word != 0 for word in words])
        flags[name][slice(None) if index is None else index] = bits if index is None else bits[0]

        def set_flags() -> None:
            core.flags = Flags.known(dict(flags))

        return set_flags

    def write_memory(self, address: int, data: bytes) -> None:
        """Gives bytes of guest memory a new value, from now on; as `assign`."""
        self.change(lambda: self._write_memory(address, data))

    def _write_memory(self, address: int, data: bytes) -> None:
        self.stage.journal.before_write(address & MEMORY_MASK, len(data))
        self.memory.write(address, data)

    # -- breakpoints -------------------------------------------------------------------------------

    def add_address(self, addresses: Iterable[int], **options: Any) -> Breakpoint:
        """Stops before instructions; options: see `Breakpoint`."""
        return self.breakpoints.add_address(addresses, **options)

"""The JIT for programs that wait: native code that can be left in the middle and resumed.

A program becomes a state machine. Before an instruction that may have to wait, and at the target of
every backward branch, stands a point where all registers are in cells; when the environment says
so, they are saved and the function returns; the next call restores them and goes on there. Code
between such points runs at full speed.
"""

from __future__ import annotations

from typing import Any

from vc4lab.simd import (
    Value,
    enter,
    i32,
    i32x16,
    jump,
    jump_if,
    load,
    mask_bits,
    mask_from_bits,
    new_block,
    store,
    var,
)

from .environment import Environment, Unsupported
from .flow import Exit, Place
from .guarded import GuardedSemantics
from .jit import _Emitter
from .jit_core import JitCore
from .plan import Plan
from .program import Program
from .unknowns import DEFAULTS, Settings

SAVED_VECTORS = 160
"""Vectors that `emit_resumable` may need to save."""


class ResumableEnvironment(Environment):
    """What a resumable program needs to know besides the usual.

    instructions: a staged cell (i64) with the number of executed instructions.
    """

    instructions: Any

    def waits(self, p: Plan) -> bool:
        """At compile time: may this instruction have to wait?"""
        raise NotImplementedError

    def may_execute(self, p: Plan) -> Value:
        """i1: can this instruction be executed now?"""
        raise NotImplementedError

    def may_continue(self) -> Value:
        """i1, asked once a trip around a loop: is there time left?"""
        raise NotImplementedError

    def suspended(self, site: int, waiting: bool) -> None:
        """The program is left before the instruction `site`, which waits or ran out of time."""
        raise NotImplementedError

    def finish(self) -> None:
        """Ends the program here and now: leaves the place being traced."""
        raise NotImplementedError


class _ResumableEmitter(_Emitter):
    env: ResumableEnvironment

    def __init__(
        self, program: Program, env: ResumableEnvironment, saved: Value, settings: Settings
    ) -> None:
        super().__init__(program, env, True, 0, settings, False)
        self.semantics = GuardedSemantics(settings)
        self.saved = saved
        self.branchy = True
        reached = [place for place in self.flow.exits if place.at < len(self.plans)]
        self.waits = {place for place in reached if env.waits(self.plans[place.at])}
        self.loops = {
            target
            for place in reached
            for exit_ in self.flow.exits[place]
            for target in (exit_.place, *exit_.options)
            if target is not None and target.at <= place.at
        }
        points = sorted(self.waits | self.loops, key=str)
        self.flow.leaders.update(points)
        self.numbers = {place: number for number, place in enumerate(points, 1)}
        self.active: JitCore | None = None

    # ---------------------------------------------------------------- the whole
    def emit_from(self, resume: Value) -> Value:
        """Emit; `resume` is 0 or what this returned the last time (0 if the program ended)."""
        core = self.start()
        self._make_cells(core)
        self.end, self.leave, self.out = new_block(), new_block(), new_block()
        self.point = var(i32, 0)
        fresh, restore = new_block(), new_block()
        jump_if(resume == 0, fresh, restore)
        self._restore(restore, resume)
        enter(fresh)
        if not self.plans:
            self.env.left_program()
            jump(self.end)
        elif self.flow.entry in self.flow.leaders:
            self._go(core, self.flow.entry)
        else:
            self._run(core, self.flow.entry)
        while self.forks or self.todo:
            if self.forks:
                block, core, place, exit_ = self.forks.pop()
                enter(block)
                self.active = core
                following = self._take(core, place, exit_)
                if following is not None:
                    self._run(core, following)
                continue
            place = self.todo.pop()
            enter(self.blocks[place])
            self._run(self._resume(place), place)
        enter(self.leave)
        for position, cell, is_mask in self._slots():
            value = mask_bits(cell.get()) if is_mask else cell.get()
            store(self.saved + 64 * position, value, 4 if is_mask else 64)
        jump(self.out)
        enter(self.end)
        jump(self.out)
        enter(self.out)
        return self.point.get()

    def _slots(self) -> list[tuple[int, Any, bool]]:
        """(vector of the save area, cell, whether it is a mask)."""
        cells = [*self.cells.values(), *self.olds.values(), *self.sfus]
        slots = [(n, cell, False) for n, cell in enumerate(cells)]
        slots += [(len(cells) + n, cell, True) for n, cell in enumerate(self.flags.values())]
        if len(slots) > SAVED_VECTORS:
            raise Unsupported("QPU-043", "the program has too much pending at once")
        return slots

    def _restore(self, block: Any, resume: Value) -> None:
        enter(block)
        for position, cell, is_mask in self._slots():
            kept = self.saved + 64 * position
            cell.set(mask_from_bits(load(i32, kept)) if is_mask else load(i32x16, kept, 64))
        for place, number in self.numbers.items():
            other = new_block()
            jump_if(resume == number, self._block(place), other)
            enter(other)
        jump(self.end)  # cannot be

    # ---------------------------------------------------------------- points
    def _resume(self, place: Place) -> JitCore:
        number = self.numbers.get(place)
        if number is not None:
            if place in self.loops:
                self._point(number, place, self.env.may_continue(), False)
            if place in self.waits:
                able = self.env.may_execute(self.plans[place.at])
                self._point(number, place, able, True)
        return super()._resume(place)

    def _point(self, number: int, place: Place, go: Value, waiting: bool) -> None:
        off, on = new_block(), new_block()
        jump_if(go, on, off)
        enter(off)
        self.point.set(number)
        self.env.suspended(place.at, waiting)
        jump(self.leave)
        enter(on)

    # ---------------------------------------------------------------- counting
    def _run(self, core: JitCore, place: Place) -> None:
        self.active = core
        super()._run(core, place)

    def _take(self, core: JitCore, place: Place, exit_: Exit) -> Place | None:
        core.steps += 1
        return super()._take(core, place, exit_)

    def _flush(self, core: JitCore) -> None:
        if core.steps:
            self.env.instructions.set(self.env.instructions.get() + core.steps)
            core.steps = 0

    def _go(self, core: JitCore, place: Place) -> None:
        self._flush(core)
        super()._go(core, place)

    def _choose(self, core: JitCore, exit_: Exit) -> None:
        self._flush(core)
        super()._choose(core, exit_)

    def _finish(self, core: JitCore) -> None:
        self._flush(core)
        super()._finish(core)

    def _count(self, instructions: int) -> None:
        """Loops are watched at their points."""

    def abandon(self) -> None:
        """End the program in the middle of an instruction."""
        if self.active is not None and self.active.steps:
            self.env.instructions.set(self.env.instructions.get() + self.active.steps)
        jump(self.end)
        enter(new_block())  # nobody comes here, but the rest of the instruction is still traced


def emit_resumable(
    program: Program,
    env: ResumableEnvironment,
    resume: Value,
    saved: Value,
    *,
    settings: Settings = DEFAULTS,
) -> Value:
    """Emit `program` at the place being traced, to be entered again while it waits.

    resume: i32, 0 at first, then what the last run returned. saved: address of SAVED_VECTORS
    64-byte vectors. Returns (i32) where to go on, 0 if the program has ended. Raises Unsupported.
    """
    emitter = _ResumableEmitter(program, env, saved, settings)
    env.finish = emitter.abandon  # type: ignore[method-assign]
    return emitter.emit_from(resume)

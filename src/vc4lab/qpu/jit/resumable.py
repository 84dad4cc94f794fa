"""The JIT for programs that wait: native code that can be left in the middle and resumed.

A program becomes a state machine. Before an instruction that may have to wait, and at the target of
every backward branch, stands a point where all registers are in cells; when the environment says
so, they are saved and the function returns; the next call restores them and goes on there. Code
between such points runs at full speed.

What is compiled together is a region of the program: at most `MAX_PLACES` places that can be
reached from its start. Where execution leaves it (a long program, a branch to a register whose
target was not known, code not read yet), state is saved in the same way and another region goes on.
"""

from __future__ import annotations

from typing import Any

from vc4lab.qpu.isa.qpu_unknowns import DEFAULTS, Settings
from vc4lab.qpu.jit.core import JitCore, Key
from vc4lab.qpu.jit.emitter import _Emitter
from vc4lab.qpu.jit.flow import Exit, Flow, Place
from vc4lab.qpu.jit.guarded import GuardedSemantics
from vc4lab.qpu.jit.region import Region, number_of
from vc4lab.qpu.run.environment import Environment, Unsupported
from vc4lab.qpu.run.execute import ALL_FLAGS
from vc4lab.qpu.run.plan import Plan
from vc4lab.simd import (
    BasicBlock,
    Cell,
    Value,
    const,
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

SAVED_VECTORS = 160
"""Vectors that `emit_resumable` may need to save."""

LONG_REGION = 1024
"""Places of a region beyond which its blocks are limited."""

MAX_BLOCK = 128
"""Instructions of such a block."""

_SFU_PLACES = 8
_REGISTERS: tuple[tuple[str, int], ...] = tuple((file, n) for file in "ab" for n in range(32))
_KEYS: tuple[Key, ...] = (
    *_REGISTERS,
    *(("r", number) for number in range(6)),
    *(("last", name) for name in ("a", "b", "mul")),
    ("target", 0),
)


class _Kept(Cell):
    """A register in memory that outlives the function."""

    def __init__(self, place: Value) -> None:
        self.place = place

    def get(self) -> Value:
        return load(i32x16, self.place, 64)

    def set(self, value: Any) -> None:
        store(self.place, value, 64)


class _KeptMask(_Kept):
    """A flag in memory."""

    def get(self) -> Value:
        return mask_from_bits(load(i32, self.place, 4))

    def set(self, value: Any) -> None:
        store(self.place, mask_bits(value), 4)


class ResumableEnvironment(Environment):
    """The environment of a resumable program.

    instructions: a staged cell (i64) with the number of executed instructions.
    """

    instructions: Cell

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

    def lost(self, target: Value) -> None:
        """The region is left for the address `target`; `Region.ways` says how to go on there."""
        raise NotImplementedError

    def blame(self, site: int) -> None:
        """The region is about to be left by the instruction `site`."""
        raise NotImplementedError

    def finish(self) -> None:
        """Ends the program here and now: leaves the place being traced."""
        raise NotImplementedError


class _ResumableEmitter(_Emitter):
    env: ResumableEnvironment

    def __init__(self, region: Region, env: ResumableEnvironment, saved: Value, settings: Settings) -> None:
        self.region = region
        super().__init__(region.flow.program, env, True, 0, settings, False)
        if settings["underflow_sign"] == "plus":
            self.semantics = GuardedSemantics(settings, brief=region.brief)
        self.saved = saved
        self.branchy = True
        reached = [place for place in self.flow.exits if place.at < len(self.plans)]
        self.waits = {place for place in reached if env.waits(self.plans[place.at])}
        self.loops = {
            target
            for place in reached
            for exit_ in self.flow.exits[place]
            for target in (exit_.place, *exit_.options)
            if target is not None and target.at <= place.at and target in self.flow.exits
        }
        entries = self.waits | self.loops
        if region.flow.start is not None:
            entries.add(region.flow.start)
        if len(reached) > LONG_REGION:
            entries |= self._breaks(entries)
        self.flow.leaders.update(entries)
        self.numbers = {place: number_of(place) for place in entries}
        self.crossings: dict[Place, BasicBlock] = {}  # register branches
        self.active: JitCore | None = None

    def _make_flow(self) -> Flow:
        return self.region.flow

    def _seen(self) -> tuple[str, bool]:
        # code outside of the region may read everything
        return (ALL_FLAGS, True) if self.region.is_part else super()._seen()

    def _breaks(self, entries: set[Place]) -> set[Place]:
        """Places that cut long code into blocks: LLVM's time grows with the square of a block."""
        leaders, found, run = self.flow.leaders | entries, set(), 0
        for place in self.flow.exits:  # in the order of the code, mostly
            run = 0 if place in leaders else run + 1
            if run == MAX_BLOCK and place.at < len(self.plans):
                found.add(place)
                run = 0
        return found

    # ---------------------------------------------------------------- the whole
    def emit_from(self, resume: Value) -> Value:
        """Emit; `resume` is 0 or what this returned the last time (0 if the program ended)."""
        core = self.start()
        self._make_cells(core)
        self.end, self.leave = new_block(), new_block()
        self.point = var(i32, 0)
        fresh, restore = new_block(), new_block()
        jump_if(resume == 0, fresh, restore)
        enter(fresh)
        for key, word in core.values.items():
            self.cells[key].set(core.export(word))
        if not self.plans:
            self._lose(Place(-1), const(i32, self.program.address), 0)
        else:
            self._emit_blocks(core)
        enter(restore)
        self._go_on(resume)
        enter(self.leave)
        jump(self.end)
        enter(self.end)
        return self.point.get()

    def _go_on(self, resume: Value) -> None:
        """Jump to where the last run was left."""
        ways = [(number, self.blocks[place]) for place, number in self.numbers.items()]
        if len({number for number, _ in ways}) < len(ways):
            raise Unsupported("QPU-043", "two places of the program cannot be told apart")
        for number, way in ways:
            other = new_block()
            jump_if(resume == number, way, other)
            enter(other)
        jump(self.end)  # unreachable

    def _make_cells(self, core: JitCore) -> None:
        """Registers live in the save area between blocks, so there is nothing to save."""
        for position, key in enumerate(_KEYS):
            self.cells[key] = _Kept(self.saved + 64 * position)
        for key in core.values:
            core.loaded[key] = None
        start = len(_KEYS)
        for number, name in enumerate(ALL_FLAGS):
            if name in self.used_flags:
                self.flags[name] = _KeptMask(self.saved + 64 * start + 4 * number)
        self.sfus += [_Kept(self.saved + 64 * (start + 1 + n)) for n in range(_SFU_PLACES)]
        start += 1 + _SFU_PLACES
        for position, old in enumerate(_REGISTERS):
            self.olds[old] = _Kept(self.saved + 64 * (start + position))
        pending = [*self.flow.exits, *self.region.ways.values()]
        if any(len(place.sfu) > _SFU_PLACES for place in pending):
            raise Unsupported("QPU-043", "the program has too much pending at once")

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
        self.active = core
        core.steps += 1
        way = exit_.pending if exit_.why == "left" else exit_.place
        if way is None or way in self.flow.exits:
            return super()._take(core, place, exit_)
        self._prepare(core, place, exit_)
        known = way.at >= 0
        address = self.program.address_of(way.at) if known else exit_.address
        self._go_out(core, way, address, place.at)
        return None

    def _prepare(self, core: JitCore, place: Place, exit_: Exit) -> None:
        super()._prepare(core, place, exit_)
        if exit_.taken is not None and self.env.records_branches:
            self.env.branched(place.at, self._target(core, place) if exit_.taken else None)

    def _target(self, core: JitCore, place: Place) -> Value | int:
        """Find where the branch at a place goes."""
        branch = self.plans[place.at].branch
        assert branch is not None
        if not branch.register:
            return branch.target(self.program.address_of(place.at))
        return core.export(core.get(("target", 0)))[int(self.settings["branch_register_lane"])]

    def _flush(self, core: JitCore) -> None:
        if core.steps:
            self.env.instructions.set(self.env.instructions.get() + core.steps)
            core.steps = 0

    def _go(self, core: JitCore, place: Place) -> None:
        self._flush(core)
        super()._go(core, place)

    def _choose(self, core: JitCore, exit_: Exit, at: int) -> None:
        """A register branch: all is saved, so that it can go on outside of the region."""
        self._flush(core)
        pending = exit_.pending
        assert pending is not None
        self._save(core, pending)
        self.env.blame(self.program.left_by(at))
        if pending in self.crossings:
            jump(self.crossings[pending])
            return
        crossing = self.crossings[pending] = new_block()
        enter(crossing)
        lane = int(self.settings["branch_register_lane"])
        target = self.cells["target", 0].get()[lane]
        for place in exit_.options:
            if place not in self.flow.exits:
                continue
            self._note(place)
            other = new_block()
            jump_if(target == self.program.address_of(place.at), self._block(place), other)
            enter(other)
        self._lose(pending, target, None)

    def _go_out(self, core: JitCore, place: Place, address: int, at: int) -> None:
        """Leave the region after instruction `at` for a place outside of it, at an address."""
        self._flush(core)
        self._save(core, place)
        self._lose(place, const(i32, address), at)

    def _lose(self, place: Place, target: Value, at: int | None) -> None:
        if at is not None:
            self.env.blame(self.program.left_by(at))
        self.point.set(number_of(place))
        self.env.lost(target)
        jump(self.leave)

    def _finish(self, core: JitCore) -> None:
        self._flush(core)
        super()._finish(core)

    def _count(self, instructions: Value | int) -> None:
        """Budgets are checked at the points of loops."""

    def abandon(self) -> None:
        """End the program in the middle of an instruction."""
        if self.active is not None and self.active.steps:
            self.env.instructions.set(self.env.instructions.get() + self.active.steps)
        jump(self.end)
        enter(new_block())  # never reached, but the rest of the instruction is still traced


def emit_resumable(
    region: Region, env: ResumableEnvironment, resume: Value, saved: Value, *, settings: Settings = DEFAULTS
) -> Value:
    """Emit a region of a program at the place being traced, to be entered again while it waits.

    resume: i32, 0 at first, then what the last run returned, or `number_of` the region's start.
    saved: address of SAVED_VECTORS 64-byte vectors, zero at first. Returns (i32) where to go on, 0
    if the program has ended. Raises Unsupported.
    """
    emitter = _ResumableEmitter(region, env, saved, settings)
    env.finish = emitter.abandon  # type: ignore[method-assign]
    return emitter.emit_from(resume)

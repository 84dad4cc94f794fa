"""The JIT: emits a QPU program into the kernel that is being traced.

A program without branches becomes pure dataflow. One with branches becomes basic blocks; registers
live in cells between them (LLVM turns cells into registers again), and what is pending in delay
slots is part of a block's identity (`flow.py`). The fast build is native arithmetic that notices
when it cannot be exact; the exact build is the reference semantics.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vc4lab.qpu.isa.encoding import INSTRUCTION_BYTES, LINK_OFFSET
from vc4lab.qpu.isa.qpu_unknowns import DEFAULTS, Settings
from vc4lab.qpu.isa.semantics import Flags, Semantics
from vc4lab.qpu.jit.core import Final, JitCore, Key, flags_used, looks_back
from vc4lab.qpu.jit.fast_float import FastSemantics
from vc4lab.qpu.jit.flow import Exit, Flow, Place
from vc4lab.qpu.jit.simd_ops import SimdOps, hide
from vc4lab.qpu.jit.words import FastWord
from vc4lab.qpu.program.program import Program
from vc4lab.qpu.run.environment import INSTRUCTION_BUDGET, Environment, Noted, Unsupported
from vc4lab.qpu.run.execute import ALL_FLAGS
from vc4lab.qpu.run.plan import plan
from vc4lab.simd import (
    BasicBlock,
    Cell,
    Value,
    all_,
    any_,
    const,
    enter,
    i32,
    i32x16,
    jump,
    jump_if,
    mask16,
    new_block,
    select,
    var,
)


class _Emitter:
    def __init__(
        self,
        program: Program,
        env: Environment,
        exact: bool,
        budget: int,
        settings: Settings,
        observe: bool,
        learned: frozenset[int] | None = None,
    ) -> None:
        self.program, self.env, self.budget = program, env, budget
        self.settings, self.observe, self.learned = settings, observe, learned
        self.flow = self._make_flow()
        self.plans = self.flow.plans
        if env.wild is None and not exact:
            env.wild = var(mask16, False)
        self.semantics: Semantics
        if exact or settings["underflow_sign"] == "kept":  # fast words let -0 stand for +0
            self.semantics = Semantics(SimdOps(), settings)
        else:
            self.semantics = FastSemantics(self._note_lanes, settings)
            self.semantics.ops.ftoi_fits = env.ftoi_fits
        self.used_flags, self.track_last = self._seen()
        self.branchy = any(p.kind == "branch" for p in self.plans)
        self.cells: dict[Key, Cell] = {}
        self.flags: dict[str, Cell] = {}
        self.olds: dict[Key, Cell] = {}
        self.sfus: list[Cell] = []
        self.blocks: dict[Place, BasicBlock] = {}
        self.todo: list[Place] = []
        self.forks: list[tuple[BasicBlock, JitCore, Place, Exit, Noted]] = []
        self.noted: dict[Place, tuple[Noted, list[Cell]]] = {}

    def _make_flow(self) -> Flow:
        names = self.settings["sf_with_never"], self.settings["load_immediate_condition"]
        plans = [plan(word, *names) for word in self.program.words]
        return Flow(self.program, plans, *flow_settings(self.settings), self.learned)

    def _seen(self) -> tuple[str, bool]:
        """Flags that may be read, and whether the last results are."""
        return ALL_FLAGS if self.observe else flags_used(self.plans), looks_back(self.plans)

    def _note_lanes(self, lanes: Value) -> None:
        self.env.wild.set(self.env.wild.get() | lanes)

    # ---------------------------------------------------------------- start and end
    def start(self) -> JitCore:
        """A core with the initial registers."""
        core = self._core()
        for register, value in self.env.initial_registers().items():
            core.values[register] = core.adopt(value)
        return core

    def emit(self) -> Final:
        core = self.start()
        if not self.branchy:
            if self.plans:
                self._run(core, self.flow.entry)
            else:
                self._leave(const(i32, self.program.address), 0)
            return Final(core, self.cells, self.flags)
        self._make_cells(core)
        self.spent = var(i32, 0)
        self.end = new_block()
        self._emit_blocks(core)
        enter(self.end)
        return Final(core, self.cells, self.flags)

    def _emit_blocks(self, core: JitCore) -> None:
        """Emit the block of the entry and all that are reached from it."""
        if self.flow.entry in self.flow.leaders:
            self._go(core, self.flow.entry)
        else:
            self._run(core, self.flow.entry)
        while self.forks or self.todo:
            if self.forks:
                block, core, place, exit_, noted = self.forks.pop()
                enter(block)
                self.env.recall(noted)
                following = self._take(core, place, exit_)
                if following is not None:
                    self._run(core, following)
                continue
            place = self.todo.pop()
            enter(self.blocks[place])
            self._run(self._resume(place), place)

    def _core(self) -> JitCore:
        core = JitCore(self.semantics, self.env, self.used_flags, self.cells)
        core.track_last = self.track_last
        return core

    def _make_cells(self, core: JitCore) -> None:
        keys: set[Key] = {("r", number) for number in range(6)}
        for p in self.plans:
            keys.update(p.reads)
            keys.update((t.file, t.address) for t in (p.add, p.mul) if t.address < 32)
            if p.branch is not None and p.branch.register:
                keys.add(("target", 0))
        keys.update(core.values)
        if self.track_last:
            keys.update({("last", "a"), ("last", "b"), ("last", "mul")})
        for key in sorted(keys, key=str):
            word = core.get(key)  # before the cell exists: the initial value
            self.cells[key] = var(i32x16, self._stored(core, word))
            core.loaded[key] = word
        for name in self.used_flags:
            self.flags[name] = var(mask16, core.flag(name))
        for place in sorted(self.flow.leaders, key=str):
            for register in place.old:
                if register not in self.olds:
                    self.olds[register] = var(i32x16, 0)
            while len(self.sfus) < len(place.sfu):
                self.sfus.append(var(i32x16, 0))

    def _stored(self, core: JitCore, word: Any) -> Value:
        """A word's lanes for a cell; constants are hidden, so that they are loaded as unknown."""
        bits = core.export(word)
        return hide(bits) if isinstance(word, FastWord) and word.fixed else bits

    # ---------------------------------------------------------------- between blocks
    def _save(self, core: JitCore, place: Place | None) -> None:
        """Put what has changed into the cells."""
        if place is not None:
            old = {key: core.old[key] if key in core.old else core.get(key) for key in place.old}
            for register, word in old.items():
                self.olds[register].set(self._stored(core, word))
            for cell, (_, word) in zip(self.sfus, core.sfu, strict=False):
                cell.set(self._stored(core, word))
        for key, word in core.values.items():
            if word is not core.loaded.get(key):
                self.cells[key].set(self._stored(core, word))
        for name, cell in self.flags.items():
            cell.set(core.flag(name))

    def _resume(self, place: Place) -> JitCore:
        """A core at the start of a place's block."""
        core = self._core()
        core.old = {key: core.adopt(self.olds[key].get()) for key in place.old}
        core.sfu = [(n, core.adopt(self.sfus[i].get())) for i, n in enumerate(place.sfu)]
        core.flags = Flags.known({name: cell.get() for name, cell in self.flags.items()})
        noted, cells = self.noted[place]
        self.env.recall(Noted(noted.shape, tuple(cell.get() for cell in cells)))
        return core

    def _note(self, place: Place) -> None:
        """Hand on the state of the stage. Raises Unsupported if it depends on the path."""
        now = self.env.noted()
        if place not in self.noted:
            self.noted[place] = now, [var(value.type, value) for value in now.values]
            return
        before, cells = self.noted[place]
        if before.shape != now.shape:
            raise Unsupported(
                "QPU-046", "texture requests or varyings depend on which branch was taken", place.at
            )
        for cell, value in zip(cells, now.values, strict=True):
            cell.set(value)

    def _block(self, place: Place) -> BasicBlock:
        if place not in self.blocks:
            self.blocks[place] = new_block()
            self.todo.append(place)
        return self.blocks[place]

    def _go(self, core: JitCore, place: Place) -> None:
        """Leave for the block of `place`."""
        self._save(core, place)
        self._note(place)
        jump(self._block(place))

    def _count(self, instructions: Value | int) -> None:
        """One more trip around a loop of so many instructions (an int or an i32); stop at the
        budget.
        """
        spent = self.spent.get() + instructions
        self.spent.set(spent)
        over, on = new_block(), new_block()
        limit = self.budget if self.env.budget is None else self.env.budget
        jump_if(spent > limit, over, on)
        enter(over)
        self.env.loop_limit()
        jump(self.end)
        enter(on)

    def _finish(self, core: JitCore) -> None:
        if self.branchy:
            if self.observe:
                self._save(core, None)
            jump(self.end)

    # ---------------------------------------------------------------- running
    def _run(self, core: JitCore, place: Place) -> None:
        """Emit instructions from `place` on, until something else takes over."""
        following: Place | None = place
        while following is not None:
            place = following
            p = self.plans[place.at]
            core.execute(p, place.at)
            exits = self.flow.exits[place]
            exit_ = exits[0]
            if len(exits) == 2:
                mask, every = core.branch_mask(p)
                assert mask is not None  # two exits: it depends
                condition = all_(mask) if every else any_(mask)
                other = core.fork()
                taken, straight = new_block(), new_block()
                jump_if(condition, taken, straight)
                self.forks.append((taken, other, place, exit_, self.env.noted()))
                enter(straight)
                exit_ = exits[1]
            following = self._take(core, place, exit_)

    def _take(self, core: JitCore, place: Place, exit_: Exit) -> Place | None:
        """Emit what an exit does; the next place if this block simply goes on there."""
        self._prepare(core, place, exit_)
        if exit_.why == "end":
            self.env.program_end()
        elif exit_.why == "left":
            self._leave(const(i32, exit_.address), place.at)
        elif exit_.why == "dynamic":
            self._choose(core, exit_, place.at)
            return None
        if exit_.place is None:
            self._finish(core)
            return None
        if exit_.place.at <= place.at:
            # whatever follows: every loop goes back somewhere
            self._count(place.at - exit_.place.at + 1)
        if exit_.place not in self.flow.leaders:
            return exit_.place
        self._go(core, exit_.place)
        return None

    def _prepare(self, core: JitCore, place: Place, exit_: Exit) -> None:
        """Emit what an exit does before it leads anywhere."""
        if exit_.taken:
            self._link(core, place)
        for event in exit_.due:
            if event.kind == "switch":
                core.switch_threads(bool(event.target))

    def _link(self, core: JitCore, place: Place) -> None:
        p = self.plans[place.at]
        assert p.branch is not None
        address = self.program.address_of(place.at)
        if p.branch.register:
            base = core.ops.const(p.branch.target(address))
            core.values["target", 0] = core.ops.add(core.branch_register(p), base)
        core.link(p, address + LINK_OFFSET)

    def _choose(self, core: JitCore, exit_: Exit, at: int) -> None:
        """A register branch that is left at instruction `at`: compare the target with the address
        of every instruction.
        """
        lane = int(self.settings["branch_register_lane"])
        target = core.export(core.get(("target", 0)))[lane]
        # All options have the same pending state up to the registers they read.
        for place in exit_.options:
            self._save(core, place)
            self._note(place)
        back = const(i32, self.program.address_of(at) + INSTRUCTION_BYTES) - target
        near = back.ult(len(self.plans) * INSTRUCTION_BYTES)
        back = back.shr(INSTRUCTION_BYTES.bit_length() - 1)
        self._count(select(near, back, const(i32, 1)))
        for place in exit_.options:
            other = new_block()
            jump_if(target == self.program.address_of(place.at), self._block(place), other)
            enter(other)
        self._leave(target, at)
        jump(self.end)

    def _leave(self, target: Value, at: int) -> None:
        """Execution leaves the program after instruction `at`, for an address."""
        self.env.site = self.program.left_by(at)
        self.env.left_program(target)


def flow_settings(settings: Settings) -> tuple[bool, bool]:
    """`keep_old` and `mul_nop_writes` of a Flow."""
    keep_old = settings["register_after_write"] == "old"
    return keep_old, settings["mul_nop_result"] == "last-quad-3"


def emit_program(
    program: Program,
    env: Environment,
    *,
    exact: bool = False,
    budget: int = INSTRUCTION_BUDGET,
    settings: Settings = DEFAULTS,
    observe: bool = False,
    learned: frozenset[int] | None = None,
) -> Final:
    """Emit `program` at the place being traced (a kernel built with float_mode="qpu").

    exact: the reference semantics instead of the fast arithmetic. After a fast run the caller must
    look at the processor's sticky flags (invalid, overflow) and at `env.wild`, and run the exact
    build if anything shows. budget: instructions in loops before `env.loop_limit()` ends the
    program. observe: keep all registers and flags for the returned Final. learned: instructions
    that branches to registers go to besides the likely ones, if the caller compiles again when
    `env.left_program` learns of another one; None: any may be. Raises Unsupported for what cannot
    be compiled or what the environment refuses.
    """
    return _Emitter(program, env, exact, budget, settings, observe, learned).emit()


def emit_interleaved(
    program: Program,
    envs: Sequence[Environment],
    *,
    exact: bool = False,
    budget: int = INSTRUCTION_BUDGET,
    settings: Settings = DEFAULTS,
    observe: bool = False,
    learned: frozenset[int] | None = None,
) -> list[Final]:
    """Emit `program` for several batches, instruction by instruction in turn.

    The processor overlaps the independent batches: two at a time run a third faster on AVX-512 (32
    registers), hardly so on AVX2, slower on SSE2. Programs with branches are emitted one after the
    other.
    """
    emitters = [_Emitter(program, env, exact, budget, settings, observe, learned) for env in envs]
    if not emitters or emitters[0].branchy:
        return [emitter.emit() for emitter in emitters]
    for emitter in emitters:
        if isinstance(emitter.semantics, FastSemantics):
            emitter.semantics.ops.straight = len(emitters) > 1
    cores = [emitter.start() for emitter in emitters]
    following: Place | None = emitters[0].flow.entry if program.words else None
    if following is None:
        for env in envs:
            env.left_program(const(i32, program.address))
    while following is not None:
        place = following
        for core in cores:
            core.execute(emitters[0].plans[place.at], place.at)
        (exit_,) = emitters[0].flow.exits[place]
        for emitter, core in zip(emitters, cores, strict=True):
            following = emitter._take(core, place, exit_)
    return [Final(core, emitter.cells, emitter.flags) for emitter, core in zip(emitters, cores, strict=True)]

"""How an instruction flows through the QPU: operands, both ALUs, rotation, flags, packs, writes and
side effects.

Written once: `interpreter.py` runs it on numpy words, `../jit/emitter.py` on staged values. Control
flow is theirs; here is one instruction. A register-file write is visible after one instruction
(setting "register_after_write"), an SFU result after two, everything else at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from vc4lab.qpu.isa.hazards import SFU
from vc4lab.qpu.isa.operations import Condition, Mux, Signal
from vc4lab.qpu.isa.ops import Mask, Word
from vc4lab.qpu.isa.packing import pack_colour, pack_register, unpack
from vc4lab.qpu.isa.registers import ACCUMULATOR_WRITE, Read, Write
from vc4lab.qpu.isa.semantics import Flags, Result, Semantics
from vc4lab.qpu.isa.sfu import FUNCTIONS
from vc4lab.qpu.run.environment import Environment, RegisterKey
from vc4lab.qpu.run.peripherals import PURE_READS, SOURCES, read_peripheral, write_peripheral
from vc4lab.qpu.run.plan import Plan, Target

SFU_LATENCY = SFU - 1  # instructions between
_QUAD_FIRST = tuple(lane & ~3 for lane in range(16))
_QUAD_THREE = tuple(12 | lane & 3 for lane in range(16))
_FIRST = (0,) * 16
ALL_FLAGS = "znc"


class SavedCore(NamedTuple):
    """A copy of a core, which `Core.saved` returns."""

    values: dict[tuple[str, int | str], Word]
    old: dict[RegisterKey, Word]
    sfu: tuple[tuple[int, Word], ...]
    flags: Flags
    visible: dict[RegisterKey, Word]


class Core:
    """The state of one QPU thread and the execution of single instructions on it.

    values: registers by key, ("a", n), ("b", n), ("r", n), ("last", "a"|"b"|"mul"); missing ones
    come from `load`. used_flags: those of "znc" that anything will ever look at.
    """

    def __init__(self, semantics: Semantics, env: Environment, used_flags: str = ALL_FLAGS) -> None:
        self.semantics = semantics
        self.ops = semantics.ops
        self.settings = semantics.settings
        self.env = env
        self.values: dict[tuple[str, int | str], Word] = {}
        self.old: dict[RegisterKey, Word] = {}  # what the next instruction still reads
        self.sfu: list[tuple[int, Word]] = []  # (instructions until visible, result)
        self.used_flags = used_flags
        self.track_last = True  # keep what register 39 and a mul NOP would deliver
        self.flags = self.clear_flags()
        self.written: Callable[[str, Word, Mask | None], None] | None = None  # trace hook
        self._visible: dict[RegisterKey, Word] = {}  # registers as this instruction reads them
        self._keep_old = self.settings["register_after_write"] == "old"
        self._pointer_always_moves = self.settings["uniforms_address_condition"] == "ignored"
        self._shared_reads = _SHARED_READS
        if self.settings["uniform_read_twice"] == "two":
            self._shared_reads = frozenset({Read.MUTEX_ACQUIRE})

    def clear_flags(self) -> Flags:
        return Flags(self._no_lane, self._no_lane)

    def _no_lane(self) -> Mask:
        return self.ops.mnot(self.ops.always())

    # ---------------------------------------------------------------- state
    def load(self, key: tuple[str, int | str]) -> Word:
        """The value of a register that this core has not seen yet."""
        return self.ops.const(0)

    def get(self, key: tuple[str, int | str]) -> Word:
        """The newest value of a register."""
        value = self.values.get(key)
        if value is None:
            value = self.values[key] = self.load(key)
        return value

    def adopt(self, value: Word, source: str = "") -> Word:
        """A word as the environment returns it, in the form the semantics compute with. source:
        where it is from.
        """
        return value

    def export(self, value: Word) -> Word:
        """A word in the form the environment expects."""
        return value

    def export_mask(self, mask: Mask | None) -> Mask:
        """Lanes of a write (None: all) in the form the environment expects."""
        return self.ops.always() if mask is None else mask

    def saved(self) -> SavedCore:
        """The state between two instructions; words are never changed in place, so none is copied."""
        return SavedCore(dict(self.values), dict(self.old), tuple(self.sfu), self.flags, dict(self._visible))

    def restore(self, saved: SavedCore) -> None:
        """Back to a state."""
        self.values, self.old, self.sfu = dict(saved.values), dict(saved.old), list(saved.sfu)
        self.flags, self._visible = saved.flags, dict(saved.visible)

    def flag(self, name: str) -> Mask:
        mask = self.flags.get(name)
        return self._no_lane() if mask is None else mask

    def condition(self, code: int) -> Mask | None:
        """The lanes where a condition holds; None for all."""
        if code == Condition.ALWAYS:
            return None
        if code == Condition.NEVER:
            return self._no_lane()
        mask = self.flag("znc"[(code - 2) >> 1])
        return self.ops.mnot(mask) if code & 1 else mask

    # ---------------------------------------------------------------- one instruction
    def execute(self, p: Plan, site: int) -> None:
        """Execute everything of an instruction except its control flow. site: its index in the
        program.
        """
        self.env.begin(site)
        if self.sfu:
            for remaining, word in self.sfu:
                if not remaining:
                    self.values["r", 4] = word
            self.sfu = [(n - 1, word) for n, word in self.sfu if n]
        self._visible, self.old = self.old, {}
        if p.idle:
            return
        if p.kind == "alu":
            self._alu(p)
        elif p.kind != "branch":
            if p.kind == "semaphore":
                word = int(p.instruction.value)
                self.env.semaphore(word & 15, bool(word >> 4 & 1))
            self._load_immediate(p)

    def _alu(self, p: Plan) -> None:
        env = self.env
        if p.signal == Signal.SCOREBOARD_WAIT:
            env.scoreboard_wait()
        a, b, c = self._read_ports(p)
        loaded = self._signal_load(p.signal)
        if p.signal == Signal.BREAKPOINT:
            if p.instruction.value:
                env.breakpoint()
            else:
                env.zeroed()
        cache: dict[int, Word] = {}

        def operand(mux: int) -> Word:
            if mux not in cache:
                cache[mux] = self._operand(p, mux, a, b)
            return cache[mux]

        add = mul = None
        if p.add_op:
            add = self.semantics.add_alu(p.add_op, operand(p.add_mux[0]), operand(p.add_mux[1]))
        if p.mul_op:
            mul = self.semantics.mul_alu(p.mul_op, operand(p.mul_mux[0]), operand(p.mul_mux[1]))
        unmoved, amount = mul, self._rotation_amount(p)
        if mul is not None and amount is not None:
            mul = self._rotate(p, mul, amount)
        if not p.mul_op and p.mul.is_write and self.settings["mul_nop_result"] == "last-quad-3":
            mul = self.semantics.integer(self.ops.permute(self.get(("last", "mul")), _QUAD_THREE))
        if c is not None:
            self.values["r", 5] = c
        add_mask = None if add is None else self.condition(p.add.condition)
        mul_mask = None if mul is None else self.condition(p.mul.condition)
        if p.sets_flags:
            if p.sets_flags == "add":
                result, mask = add, add_mask
            else:
                result, mask = (mul if p.mul_op else None), mul_mask
                if self.settings["rotation_order"] == "last":
                    result = unmoved
            if result is not None:
                self._set_flags(result.flags, mask)
        if mul_mask is not None and amount is not None:
            if self.settings["rotation_order"] == "last":
                mul_mask = self._rotate_mask(p, mul_mask, amount)
        self._write_both(p, add, add_mask, mul, mul_mask, site=env.site)
        if self.track_last and p.mul_op and mul is not None:
            self.values["last", "mul"] = mul.word
        if loaded is not None:
            self.values["r", 4] = loaded
        if p.signal == Signal.SCOREBOARD_UNLOCK:
            env.scoreboard_unlock()

    def _load_immediate(self, p: Plan) -> None:
        lanes = p.lanes
        word = self.ops.const(lanes[0] if len(set(lanes)) == 1 else list(lanes))
        result = self.semantics.integer(self.adopt(word))
        add_mask, mul_mask = self.condition(p.add.condition), self.condition(p.mul.condition)
        if p.sets_flags:
            self._set_flags(result.flags, add_mask if p.sets_flags == "add" else mul_mask)
        self._write_both(p, result, add_mask, result, mul_mask, site=self.env.site)

    # ---------------------------------------------------------------- reading
    def _read_ports(self, p: Plan) -> tuple[Word, Word, Word | None]:
        """Read ports A and B, and a varying's C if one was read."""
        c = None
        values: list[Word] = []
        for file, address, mux in (("a", p.raddr_a, Mux.A), ("b", p.raddr_b, Mux.B)):
            needed = mux in p.muxes
            if address is None:
                value = self.adopt(self.ops.const(p.immediate))
            elif address < 32:
                key = (file, address)
                value = self._visible[key] if key in self._visible else self.get(key)
            elif address == Read.NOP or (address in PURE_READS and not needed):
                value = None
                if needed:
                    value = self.ops.permute(self.get(("last", file)), _QUAD_THREE)
                values.append(value)
                continue
            elif address == p.raddr_a and file == "b" and address in self._shared_reads:
                value = values[0]
            elif address == Read.VARYING:
                slope, constant = self.env.varying()
                value, c = self.adopt(slope, "varying"), self.adopt(constant, "varying")
            else:
                word = read_peripheral(self.env, self.ops, self.settings, file, address)
                value = self.adopt(word, SOURCES.get((file, address), ""))
            if self.track_last:
                self.values["last", file] = value
            values.append(value)
        return values[0], values[1], c

    def _operand(self, p: Plan, mux: int, a: Word, b: Word) -> Word:
        if mux == Mux.B:
            return b
        if mux == Mux.A:
            raw = p.raddr_a >= 32 and self.settings["peripheral_unpack"] == "raw"
            return a if raw else unpack(self.semantics, p.unpack_a, a, p.unpack_float)
        word = self.get(("r", mux))
        return unpack(self.semantics, p.unpack_r4, word, True) if mux == Mux.R4 else word

    def _signal_load(self, signal: int) -> Word | None:
        """The value a load signal brings to r4 for the next instruction."""
        env = self.env
        if signal in (Signal.LOAD_TMU0, Signal.LOAD_TMU1):
            return self.adopt(env.tmu_load(signal - Signal.LOAD_TMU0), "tmu")
        if signal in (Signal.LOAD_COLOUR, Signal.LOAD_COLOUR_END):
            return self.adopt(env.tlb_colour_load(), "tlb")
        if signal == Signal.LOAD_COVERAGE:
            return self.adopt(env.tlb_coverage_load(), "tlb")
        if signal == Signal.LOAD_ALPHA_MASK:
            return self.adopt(env.tlb_alpha_load(), "tlb")
        return None

    # ---------------------------------------------------------------- results
    def _rotation_amount(self, p: Plan) -> int | Word | None:
        """By how many lanes the mul result moves up; None: there is no rotation."""
        if not p.rotation or not p.mul_op:
            return None
        if p.rotation > 0:
            return p.rotation
        return self.ops.andc(self.get(("r", 5)), 15)

    def _rotate_mask(self, p: Plan, mask: Mask, amount: int | Word) -> Mask:
        """A mask with lanes moved as those of the mul result."""
        ops = self.ops
        return ops.test(ops.rotate(ops.mask_to_word(mask), amount, p.rotate_full), 1)

    def _rotate(self, p: Plan, result: Result, amount: int | Word) -> Result:
        """The mul result with lanes moved; flags follow their lanes."""
        word = self.ops.rotate(result.word, amount, p.rotate_full)

        def carry() -> Mask | None:
            mask = result.flags.get("c")
            return None if mask is None else self._rotate_mask(p, mask, amount)

        return Result(word, self.semantics.word_flags(word, carry), result.is_float)

    def _set_flags(self, new: Flags, mask: Mask | None) -> None:
        if mask is None:
            self.flags = new
            return
        ops, kept = self.ops, {name: self.flags.get(name) for name in self.used_flags}

        def merged(name: str) -> Mask | None:
            fresh, before = new.get(name), kept.get(name)
            if before is not None:
                before = ops.mand(ops.mnot(mask), before)
            if fresh is None:
                return before
            fresh = ops.mand(mask, fresh)
            return fresh if before is None else ops.mor(fresh, before)

        self.flags = Flags(lambda: merged("z"), lambda: merged("n"), lambda: merged("c"))

    def _write_both(
        self,
        p: Plan,
        add: Result | None,
        add_mask: Mask | None,
        mul: Result | None,
        mul_mask: Mask | None,
        site: int,
    ) -> None:
        writes = [(p.add, add, add_mask), (p.mul, mul, mul_mask)]
        if p.add.address == p.mul.address and self.settings["same_destination"] == "add":
            writes.reverse()  # the last one wins
        for target, result, mask in writes:
            if result is not None and target.is_write:
                self._write(target, result, mask, site)

    def _write(self, target: Target, result: Result, mask: Mask | None, site: int) -> None:
        file, address = target.file, target.address
        if address < 32:
            key: tuple[str, int] = (file, address)
            old = self.get(key)
            if self._keep_old:
                self.old.setdefault(key, old)
            self._store(key, self._packed(target, result, old), old, mask)
        elif Write.ACC0 <= address <= Write.ACC3:
            key = ("r", address - Write.ACC0)
            old = self.get(key)
            self._store(key, self._packed(target, result, old), old, mask)
        elif address == Write.ACC5:
            old = self.get(("r", 5))
            sources = _QUAD_FIRST if file == "a" else _FIRST
            word = self.ops.permute(self._packed(target, result, old), sources)
            if mask is not None:
                mask = self._r5_mask(mask, sources)
            self._store(("r", 5), word, old, mask)
        else:
            word = self._packed(target, result, self.ops.const(0))
            if address in FUNCTIONS:
                self._sfu(address, word, mask)
                return
            if self.written:
                self.written(f"{file}{address}", word, mask)
            if address == Write.UNIFORMS_ADDRESS and self._pointer_always_moves:
                mask = None
            exported = self.export(word), self.export_mask(mask)
            write_peripheral(self.env, self.settings, file, address, *exported, site)

    def _r5_mask(self, mask: Mask, sources: tuple[int, ...]) -> Mask:
        """Lanes of r5 that a conditional write changes."""
        choice = self.settings["r5_write_condition"]
        if sources == _FIRST or choice == "lane-0":
            return self.ops.permute_mask(mask, sources)
        if choice == "any":
            for step in (1, 2):
                moved = tuple(lane ^ step for lane in range(16))
                mask = self.ops.mor(mask, self.ops.permute_mask(mask, moved))
        return mask

    def _packed(self, target: Target, result: Result, old: Word) -> Word:
        if target.colour:
            return pack_colour(self.semantics, target.colour, result.word, old)
        if target.pack and target.address < 32:
            return pack_register(self.semantics, target.pack, result, old)
        return result.word

    def _store(self, key: RegisterKey, word: Word, old: Word, mask: Mask | None) -> None:
        self.values[key] = word if mask is None else self.ops.select(mask, word, old)
        if self.written:
            self.written(f"{'r' if key[0] != 'r' else ''}{key[0]}{key[1]}", word, mask)

    def _sfu(self, address: int, word: Word, mask: Mask | None) -> None:
        """Start a special function; lanes whose condition fails keep their r4."""
        result = self.semantics.special(address, word)
        if mask is not None:
            result = self.ops.select(mask, result, self.get(("r", 4)))
        self.sfu.append((SFU_LATENCY, result))
        if self.written:
            self.written("sfu", word, mask)

    # ---------------------------------------------------------------- control
    def branch_mask(self, p: Plan) -> tuple[Mask | None, bool]:
        """(lanes to reduce, whether all are needed) for a branch; mask None: always taken."""
        assert p.branch is not None
        code = int(p.branch.condition)
        if code >= 12:
            # 12-14 are reserved: never taken
            return (None, True) if code == 15 else (self._no_lane(), False)
        mask = self.flag("znc"[code >> 2])
        return (self.ops.mnot(mask) if code & 1 else mask), not code & 2

    def branch_register(self, p: Plan) -> Word:
        """The register that a branch adds to its target."""
        assert p.branch is not None
        key = ("a", int(p.branch.raddr_a))
        return self._visible[key] if key in self._visible else self.get(key)

    def link(self, p: Plan, address: int) -> None:
        """The register and flag writes of a taken branch: the address after its delay slots."""
        result = self.semantics.integer(self.adopt(self.ops.const(address & 0xFFFFFFFF)))
        for target in (p.add, p.mul):
            if target.address < 32 or target.address in ACCUMULATOR_WRITE:
                self._write(target, result, None, self.env.site)
        if p.sets_flags:
            self._set_flags(result.flags, None)

    def switch_threads(self, last: bool) -> None:
        """A thread switch takes effect."""
        self.env.thread_switch(last)
        if self.settings["thread_switch_registers"] == "zero":
            for number in range(4):
                self.values["r", number] = self.ops.const(0)
            self.flags = self.clear_flags()


# One read of these serves both ports of an instruction.
_SHARED_READS = frozenset({Read.UNIFORM, Read.VARYING, Read.VPM, Read.MUTEX_ACQUIRE})

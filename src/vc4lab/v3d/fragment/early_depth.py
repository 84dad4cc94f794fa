"""Blocks that their depth test will reject are left out before the fragment program runs.

A program usually hands the interpolated depth to the tile buffer as it came, near its end. Where
that is certain, and where nothing but the colours of visible pixels comes of the program, the test
can be done first: what fails it now fails it then, as blocks of a draw run one after the
other. Nothing is written here, so all buffers hold the same in the end. Not used by the reference
interpreter, nor by pipelines that count: those have to see what the program does with hidden quads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vc4lab.optimisations import EARLY_DEPTH
from vc4lab.qpu.isa.operations import END_SIGNALS, AddOp, Condition, MulOp, Mux, Signal
from vc4lab.qpu.isa.registers import ACCUMULATOR_WRITE, REGFILE_SIZE, TMU_WRITES, Write
from vc4lab.qpu.run.plan import plan
from vc4lab.records.codes import Compare
from vc4lab.simd import Value, any_
from vc4lab.v3d.state.frame_mode import SAMPLE_BYTES
from vc4lab.v3d.tlb.depth_stencil import compare, sample_depth
from vc4lab.v3d.tlb.samples import any_lane

if TYPE_CHECKING:
    from vc4lab.qpu.program.program import Program
    from vc4lab.qpu.run.plan import Plan, Target
    from vc4lab.v3d.state.tile_context import FragmentKey

MIN_INSTRUCTIONS = 12
"""Instructions from which a program is worth the test; one with textures always is. To blend
interpolated colours takes 18; the test takes about as long as five.
"""

_DEPTH = ("b", 15)
"""The register in which a program finds its depth (hardware reference 7.6)."""

_COLOURS = (Write.TLB_COLOUR_ALL, Write.TLB_COLOUR_MS)
_HARMLESS = frozenset(
    {
        *range(REGFILE_SIZE), *ACCUMULATOR_WRITE, *TMU_WRITES, *_COLOURS,
        Write.NOP, Write.TMU_NOSWAP, Write.TLB_Z,
        Write.SFU_RECIP, Write.SFU_RECIPSQRT, Write.SFU_EXP, Write.SFU_LOG,
    }
)  # fmt: skip
"""Writes without effect on pixels, flags or other units, or governed by the depth test."""

_PLAIN = frozenset(
    {
        Signal.NONE, Signal.THREAD_SWITCH, Signal.LAST_THREAD_SWITCH, Signal.PROGRAM_END,
        Signal.SCOREBOARD_WAIT, Signal.SCOREBOARD_UNLOCK, Signal.LOAD_COLOUR,
        Signal.LOAD_COLOUR_END, Signal.LOAD_TMU0, Signal.LOAD_TMU1,
    }
)  # fmt: skip


def rejects_early(key: FragmentKey, program: Program) -> bool:
    """Whether blocks of a draw are depth-tested before the program runs."""
    if not EARLY_DEPTH.serves():
        return False
    if key.engine == "interpreter" or key.counting or key.coverage or key.vg_mask:
        return False
    if key.depth_function == Compare.ALWAYS or None in key.textures or program.has_branches:
        return False
    if not key.textures and len(program.words) < MIN_INSTRUCTIONS:
        return False
    return depth_decides(program)


def depth_decides(program: Program) -> bool:
    """Whether lanes whose interpolated depth fails the test leave nothing, whatever else happens.

    True only for what is certain: one write of TLB_Z with the depth as it came, before all colour
    writes; those under a condition no wider than its own.
    """
    scan = _Scan()
    plans = [plan(word) for word in program.words]
    if not any(p.kind == "alu" and p.signal in END_SIGNALS for p in plans):
        return False
    return all(scan.take(p) for p in plans) and scan.tested


class _Scan:
    """Goes through a program without branches; `depths` are registers that hold the depth."""

    def __init__(self) -> None:
        self.depths: set[tuple[str, int]] = {_DEPTH}
        self.written: dict[tuple[str, int], bool] = {}
        """Registers that the previous instruction wrote: whether they held the depth before."""
        self.tested = False
        self.condition = int(Condition.ALWAYS)
        """The condition of the write of TLB_Z; after new flags none that a colour write could have, too."""

    def take(self, p: Plan) -> bool:
        """Processes the next instruction; False if its effect is not certain."""
        if p.kind not in ("alu", "load"):
            return False
        if p.kind == "alu" and p.signal not in _PLAIN:
            return False
        moved = self._moved(p)
        targets = [t for t in (p.add, p.mul) if t.is_write]
        if not all(t.address in _HARMLESS for t in targets):
            return False
        if not self._tile_buffer(p, targets, moved):
            return False
        if p.sets_flags and self.tested and self.condition != Condition.ALWAYS:
            self.condition = Condition.NEVER
        self._registers(p, targets, moved)
        return True

    def _tile_buffer(self, p: Plan, targets: list[Target], moved: dict[str, bool]) -> bool:
        """Notes the depth test, and checks the colour writes."""
        tests = [t for t in targets if t.address == Write.TLB_Z]
        colours = [t for t in targets if t.address in _COLOURS]
        for target in colours:
            narrow = self.condition in (Condition.ALWAYS, target.condition) and not p.rotation
            if not self.tested or tests or not narrow:
                return False
        for target in tests:
            if self.tested or not moved["add" if target is p.add else "mul"]:
                return False
            self.tested, self.condition = True, target.condition
        return True

    def _moved(self, p: Plan) -> dict[str, bool]:
        """Whether the results of the two ALUs are the depth as it came."""
        if p.kind != "alu":
            return {"add": False, "mul": False}
        add = p.add_op == AddOp.OR and p.add_mux[0] == p.add_mux[1] and p.add.pack == 0
        mul = p.mul_op == MulOp.V8MIN and p.mul_mux[0] == p.mul_mux[1] and p.mul.pack == 0
        mul = mul and p.mul.colour == 0 and p.rotation == 0
        return {"add": add and self._holds(p, p.add_mux[0]), "mul": mul and self._holds(p, p.mul_mux[0])}

    def _holds(self, p: Plan, mux: int) -> bool:
        """Whether an operand is the depth."""
        if mux == Mux.A:
            return p.unpack_a == 0 and self._register("a", p.raddr_a)
        if mux == Mux.B:
            return p.raddr_b is not None and self._register("b", p.raddr_b)
        return mux != Mux.R4 and ("r", mux) in self.depths

    def _register(self, file: str, address: int) -> bool:
        """Whether a register holds the depth, in its old state as in a new one."""
        register = file, address
        return register in self.depths and self.written.get(register, True)

    def _registers(self, p: Plan, targets: list[Target], moved: dict[str, bool]) -> None:
        """Notes what the instruction writes."""
        written: dict[tuple[str, int], bool] = {}
        for target in targets:
            if target.address < REGFILE_SIZE:
                register = target.file, target.address
            elif target.address in ACCUMULATOR_WRITE:
                register = "r", ACCUMULATOR_WRITE[target.address]
            else:
                continue
            before = register in self.depths
            now = moved["add" if target is p.add else "mul"] and register != ("r", 5)
            written.setdefault(register, before)
            whole = target.condition == Condition.ALWAYS
            if now and (whole or before):
                self.depths.add(register)
            else:
                self.depths.discard(register)
        self.written = written


def may_pass(key: FragmentKey, zs: Value, flags: list[Value], z: Value, steps: list[Value] | None) -> Value:
    """Whether one of the lanes that `flags` has for each sample passes the test just now (i1)."""
    return any_(passing(key, zs, flags, z, steps))


def passing(key: FragmentKey, zs: Value, flags: list[Value], z: Value, steps: list[Value] | None) -> Value:
    """The lanes that `flags` has for some sample that passes the test just now."""
    seen = []
    for number, lanes in enumerate(flags):
        depth = sample_depth(z, steps[number]) if steps else z
        old = key.layout.load_block(zs + SAMPLE_BYTES * number).shr(8)
        seen.append(lanes & compare(key.depth_function, depth, old))
    return any_lane(seen)

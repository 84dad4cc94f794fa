"""Which byte of a rendered 32-bit pixel is red: a job does not state it, its shaders reveal it.

Window surfaces on Linux are B,G,R,A in memory, textures R,G,B,A; the tile buffer only knows bytes,
so the driver lets the fragment shader put red where the surface has it. Components come in order
out of varyings and unpacked texels: if byte 0 is made of later ones than byte 2, the order is
B,G,R,A.
"""

from __future__ import annotations

from collections import Counter
from enum import Enum

from vc4lab.qpu.isa.encoding import Alu, File
from vc4lab.qpu.isa.operations import Mux, Pack, Signal, Unpack
from vc4lab.qpu.isa.registers import REGFILE_SIZE, Read, Write
from vc4lab.qpu.program.program import Program

LOADS_TEXEL = frozenset([Signal.LOAD_TMU0, Signal.LOAD_TMU1])
BYTES = {Pack.B8A: 0, Pack.B8B: 1, Pack.B8C: 2, Pack.B8D: 3}
COMPONENTS = {Unpack.B8A: 0, Unpack.B8B: 1, Unpack.B8C: 2, Unpack.B8D: 3}

Tag = tuple[str, int]
Sources = frozenset[Tag]
NOTHING: Sources = frozenset()


class ByteOrder(Enum):
    """Colours in memory, lowest address first."""

    RGBA = "rgba"
    BGRA = "bgra"


class _Trace:
    """Follows components through one program in textual order; what a register is made of."""

    def __init__(self) -> None:
        self.registers: dict[tuple[str, int], Sources] = {}
        self.packed: list[Sources] = [NOTHING] * 4
        self.varyings = 0

    def step(self, instruction: Alu) -> None:
        varying = NOTHING
        if any(address == Read.VARYING for _, address in instruction.read_addresses()):
            varying = frozenset([("varying", self.varyings)])
            self.varyings += 1

        def sources(mux: int) -> Sources:
            unpacks = COMPONENTS.get(instruction.unpack)
            if mux == Mux.R4:
                if instruction.pm and unpacks is not None:
                    return frozenset([("texel", unpacks)])
                return self.registers.get(("acc", 4), NOTHING)
            if mux in (Mux.A, Mux.B):
                file: File = "a" if mux == Mux.A else "b"
                if file == "b" and instruction.has_small_immediate:
                    return NOTHING
                address = instruction.raddr_a if mux == Mux.A else instruction.raddr_b
                return varying if address == Read.VARYING else self._read(file, address)
            return self.registers.get(("acc", int(mux)), NOTHING)

        add = sources(instruction.add_a) | sources(instruction.add_b)
        mul = sources(instruction.mul_a) | sources(instruction.mul_b)
        results = (
            (instruction.op_add, instruction.write_addresses()[0], add, not instruction.pm),
            (instruction.op_mul, instruction.write_addresses()[1], mul, bool(instruction.pm)),
        )
        for operation, (file, address), made_of, packs in results:
            if not operation:
                continue
            byte = BYTES.get(instruction.pack) if packs or file == "a" else None
            if byte is not None:
                self.packed[byte] = made_of
            if address < REGFILE_SIZE:
                self.registers[file, address] = made_of
            elif Write.ACC0 <= address <= Write.ACC3:
                self.registers["acc", address - Write.ACC0] = made_of
        if instruction.signal in LOADS_TEXEL:
            self.registers["acc", 4] = NOTHING

    def _read(self, file: File, address: int) -> Sources:
        return self.registers.get((file, address), NOTHING) if address < REGFILE_SIZE else NOTHING


def shader_byte_order(program: Program) -> ByteOrder | None:
    """The order a fragment shader writes, None if it does not show (grey, constants, mixtures)."""
    trace = _Trace()
    for instruction in program.instructions:
        if isinstance(instruction, Alu):
            trace.step(instruction)
    for kind in ("texel", "varying"):
        low, high = ({index for tag, index in trace.packed[byte] if tag == kind} for byte in (0, 2))
        if low and high and low != high:
            first, last = min(low - high or low), min(high - low or high)
            if first != last:
                return ByteOrder.RGBA if first < last else ByteOrder.BGRA
    return None


class ByteOrders:
    """Votes of all shaders of a run, by the surface they draw to."""

    def __init__(self) -> None:
        self.votes: dict[int, Counter[ByteOrder]] = {}

    def add(self, surface: int, programs: tuple[Program, ...]) -> None:
        """Let the shaders that draw to the surface at this address vote."""
        counter = self.votes.setdefault(surface, Counter())
        for program in programs:
            order = shader_byte_order(program)
            if order is not None:
                counter[order] += 1

    def of(self, surface: int) -> ByteOrder:
        """The surface's own majority, else that of the run, else B,G,R,A as windows have it."""
        whole: Counter[ByteOrder] = Counter()
        for counter in self.votes.values():
            whole += counter
        for counter in (self.votes.get(surface, Counter()), whole):
            if counter:
                return counter.most_common(1)[0][0]
        return ByteOrder.BGRA

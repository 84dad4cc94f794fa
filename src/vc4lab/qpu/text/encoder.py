"""Turns the slots of one ALU instruction into its 64-bit word.

An instruction has one read port per register file, one small immediate, one pack, one unpack, one
pm bit and one swap bit for all its operands, so most of this file decides who gets them.
"""

from __future__ import annotations

from dataclasses import dataclass

from vc4lab.qpu.isa.encoding import NOP_WORD, Alu
from vc4lab.qpu.isa.operations import (
    MUL_PACKS,
    ROTATE_BY_R5,
    SMALL_IMMEDIATES,
    AddOp,
    Condition,
    MulOp,
    Mux,
    Signal,
)
from vc4lab.qpu.isa.registers import REGFILE_SIZE
from vc4lab.qpu.text.expressions import Symbols
from vc4lab.qpu.text.mnemonics import ADD_OPS, MUL_OPS, ONE_OPERAND, OPERATION_NAMES, READ_REGISTERS, SIGNALS
from vc4lab.qpu.text.operands import (
    NOP_ADDRESS,
    Destination,
    NotSmall,
    Source,
    is_rotation,
    parse_destination,
    parse_source,
    parse_suffixes,
    place_destinations,
)
from vc4lab.qpu.text.syntax import Mistake, Slot, Text, unknown


@dataclass
class _Operation:
    """A parsed add or mul operation."""

    column: int
    op: int = 0
    condition: int = 0
    destination: Destination | None = None
    sources: tuple[Source, ...] = ()


class AluEncoder:
    """Collects the slots of one ALU instruction, then `encode`s the word."""

    def __init__(self, symbols: Symbols) -> None:
        self.symbols = symbols
        self.add: _Operation | None = None
        self.mul: _Operation | None = None
        self.signal: Signal | None = None
        self.sets_flags = False
        self.pm: int | None = None
        self.ports: dict[str, int | None] = {"a": None, "b": None}
        self.reads: list[tuple[Text, dict[str, int]]] = []
        self.unpack = 0
        self.unpacks_a: bool | None = None  # whether file A reads are unpacked, once known
        self.immediate: int | None = None  # small immediate code

    # Slots -----------------------------------------------------------------------------------

    def take(self, slot: Slot) -> None:
        """Add a slot; operations of both ALUs go to the add ALU first, unless they rotate."""
        name = slot.name
        turns = name in MUL_OPS and any(is_rotation(text) for text in slot.operands[1:])
        if name in ("pm0", "pm1"):
            self.pm = int(name[2])
        elif name == "read":
            self.force_read(slot)
        elif self.add is None and self.mul is None and name in ADD_OPS and not turns:
            self.add = self.operation(slot, ADD_OPS[name])
        elif self.mul is None and name in MUL_OPS:
            self.mul = self.operation(slot, MUL_OPS[name])
        elif self.add is None and name in ADD_OPS:
            self.add = self.operation(slot, ADD_OPS[name])
        elif name in SIGNALS:
            if self.signal is not None:
                raise Mistake("an instruction has only one signal", slot.column)
            if slot.operands or slot.suffixes:
                raise Mistake(f"{name} takes no operands", slot.column)
            self.signal = SIGNALS[name]
        elif name in ADD_OPS or name in MUL_OPS:
            alu = "add" if name in ADD_OPS else "mul"
            raise Mistake(f"the {alu} ALU has already an operation; {name} needs it", slot.column)
        else:
            raise unknown("operation", name, OPERATION_NAMES, slot.column)

    def operation(self, slot: Slot, op: AddOp | MulOp) -> _Operation:
        condition, sets_flags = parse_suffixes(slot)
        if sets_flags and isinstance(op, MulOp) and self.add and self.add.op:
            raise Mistake("flags come from the add ALU here: put .setf there", slot.column)
        self.sets_flags |= sets_flags
        if op == 0:
            return self.nop(slot, condition)
        expected = 2 if slot.name in ONE_OPERAND else 3
        if len(slot.operands) != expected:
            form = f"{slot.name} destination, " + ", ".join(["source"] * (expected - 1))
            raise Mistake(
                f"{slot.name} takes {expected} operands ({form}), {len(slot.operands)} given", slot.column
            )
        sources = [parse_source(text, self.symbols) for text in slot.operands[1:]]
        if expected == 2:
            sources *= 2
        return _Operation(
            slot.column,
            int(op),
            int(Condition.ALWAYS if condition is None else condition),
            parse_destination(slot.operands[0]),
            tuple(sources),
        )

    def nop(self, slot: Slot, condition: Condition | None) -> _Operation:
        if len(slot.operands) > 1:
            raise Mistake("nop takes no sources", slot.column)
        if not slot.operands:
            return _Operation(slot.column, 0, int(condition or 0))
        given = Condition.ALWAYS if condition is None else condition
        return _Operation(slot.column, 0, int(given), parse_destination(slot.operands[0]))

    def force_read(self, slot: Slot) -> None:
        if len(slot.operands) != 1:
            raise Mistake("read takes one register", slot.column)
        text = slot.operands[0]
        files = READ_REGISTERS.get(text.text.lower())
        if files is None:
            raise unknown("register", text.text, READ_REGISTERS, text.column)
        self.reads.append((text, files))

    def allocate_reads(self, single: bool) -> None:
        """Give `read` its ports: registers of a single file, or those that both files have."""
        for text, files in self.reads:
            if (len(files) == 1) != single:
                continue
            file = "a" if "a" in files and self.ports["a"] is None else "b"
            if file not in files or self.ports[file] is not None:
                raise Mistake(f"the read port of {text.text} is in use", text.column)
            self.ports[file] = files[file]

    # Operands --------------------------------------------------------------------------------

    def sources(self) -> list[Source]:
        found: list[Source] = []
        for operation in (self.add, self.mul):
            for source in operation.sources if operation else ():
                if not any(source is other for other in found):
                    found.append(source)
        return found

    def rotate(self) -> None:
        """Take the rotation, which sits in the small immediate field."""
        for source in self.add.sources if self.add else ():
            if source.rotation is not None:
                amount = source.rotation - ROTATE_BY_R5 or "r5"
                cure = f"nop; mov r0, {source.name} >> {amount}"
                text = f"only the mul ALU rotates: write `{cure}` before and use r0 here"
                raise Mistake(text, source.column)
        for source in self.mul.sources if self.mul else ():
            if source.rotation is None:
                continue
            if self.immediate not in (None, source.rotation):
                raise Mistake("an instruction has only one rotation", source.column)
            self.immediate = source.rotation
        for source in self.mul.sources if self.mul else ():
            if source.rotation is None and self.immediate is not None and source.immediate is None:
                text = f"the result is rotated, so every operand rotates alike: {source.name} too"
                raise Mistake(text, source.column)

    def choose_unpack(self) -> None:
        unpacked = [s for s in self.sources() if s.unpack]
        for source in unpacked:
            if source.unpack != unpacked[0].unpack:
                raise Mistake("an instruction has only one unpack mode", source.column)
            from_r4 = source.accumulator == Mux.R4
            if not from_r4 and "a" not in source.files:
                raise Mistake("only r4 and file A reads can be unpacked", source.column)
            if from_r4 != (unpacked[0].accumulator == Mux.R4):
                raise Mistake("r4 and file A cannot be unpacked together", source.column)
            self.set_pm(int(from_r4), source.column)
            self.unpack = source.unpack
            self.unpacks_a = not from_r4
        if unpacked and not self.unpacks_a:
            for source in self.sources():
                if source.accumulator == Mux.R4 and not source.unpack:
                    raise Mistake("all uses of r4 are unpacked alike here", source.column)

    def set_pm(self, pm: int, column: int) -> None:
        if self.pm not in (None, pm):
            raise Mistake(
                "pack and unpack disagree: regfile A packs and unpacks need pm=0, "
                "mul packs and r4 unpacks pm=1",
                column,
            )
        self.pm = pm

    def claim(self, source: Source, file: str) -> bool:
        """Try to read a source through a file's port."""
        address = source.files.get(file)
        if address is None or self.ports[file] not in (None, address):
            return False
        if file == "b" and self.immediate is not None:
            return False
        if file == "a" and self.unpacks_a and not source.unpack:
            return False
        if file == "b" and source.unpack:
            return False
        self.ports[file] = address
        source.mux = Mux.A if file == "a" else Mux.B
        return True

    def allocate(self) -> None:
        """Give every source its mux: accumulators, then what has no choice, then the rest."""
        self.allocate_reads(single=True)
        waiting: list[Source] = []
        for source in self.sources():
            if source.accumulator is not None:
                source.mux = Mux(source.accumulator)
            elif source.immediate is not None:
                self.take_immediate(source)
            else:
                waiting.append(source)
        for source in waiting:
            if len(source.files) == 1 or source.unpack:
                file = "a" if source.unpack else next(iter(source.files))
                if not self.claim(source, file):
                    raise self.port_mistake(source, file)
        self.allocate_reads(single=False)
        for source in waiting:
            if source.mux is None:
                same = [f for f in "ab" if self.ports[f] == source.files[f]]
                if not any(self.claim(source, file) for file in [*same, "a", "b"]):
                    raise Mistake(f"both read ports are in use, {source.name} needs one", source.column)

    def port_mistake(self, source: Source, file: str) -> Mistake:
        if file == "b" and self.immediate is not None:
            text = "a small immediate or rotation takes the place of the file B read"
        elif file == "a" and self.unpacks_a and not source.unpack:
            text = "all file A reads of an instruction are unpacked alike"
        else:
            text = f"only one register of file {file.upper()} can be read per instruction"
        return Mistake(f"{text} ({source.name})", source.column)

    def take_immediate(self, source: Source) -> None:
        word = source.immediate or 0
        source.mux = Mux.B
        if self.ports["b"] is not None:
            raise Mistake("a small immediate takes the place of the file B read", source.column)
        if self.immediate is None:
            if word not in SMALL_IMMEDIATES[:48]:
                text = "is no small immediate (-16..15, 2**-8..2**7 as floats); use ldi"
                raise NotSmall(f"{source.name} {text}", source.column)
            self.immediate = SMALL_IMMEDIATES.index(word)
        elif SMALL_IMMEDIATES[self.immediate] != word:
            text = "an instruction has only one small immediate or rotation"
            raise NotSmall(text, source.column)

    # Destinations ----------------------------------------------------------------------------

    def encode(self) -> int:
        """The finished word."""
        self.rotate()
        self.choose_unpack()
        self.allocate()
        packs = [o for o in (self.add, self.mul) if o and o.destination and o.destination.pack]
        pack = self.choose_pack(packs)
        pack_to_a = bool(packs) and self.pm != 1
        ws, waddr_add, waddr_mul = place_destinations(
            self.add.destination if self.add else None, self.mul.destination if self.mul else None, pack_to_a
        )
        signal = self.signal
        port_b = self.ports["b"]
        if self.immediate is not None:
            if signal not in (None, Signal.NONE):
                column = (self.add or self.mul or _Operation(0)).column
                raise Mistake("a small immediate or rotation leaves no room for a signal", column)
            signal, port_b = Signal.SMALL_IMMEDIATE, self.immediate
        fields: dict[str, int] = {
            "signal": Signal.NONE if signal is None else signal,
            "unpack": self.unpack,
            "pm": self.pm or 0,
            "pack": pack,
            "sf": int(self.sets_flags),
            "ws": ws,
            "waddr_add": waddr_add,
            "waddr_mul": waddr_mul,
            "raddr_a": NOP_ADDRESS if self.ports["a"] is None else self.ports["a"],
            "raddr_b": NOP_ADDRESS if port_b is None else port_b,
        }
        for alu, operation in (("add", self.add), ("mul", self.mul)):
            if operation is None:
                continue
            fields[f"op_{alu}"] = operation.op
            fields[f"cond_{alu}"] = operation.condition
            for letter, source in zip("ab", operation.sources, strict=False):
                fields[f"{alu}_{letter}"] = source.mux or 0
        return Alu(NOP_WORD).replace(**fields).encode()

    def choose_pack(self, packs: list[_Operation]) -> int:
        if not packs:
            return 0
        if len(packs) == 2:
            raise Mistake("an instruction has only one pack", packs[1].column)
        destination = packs[0].destination
        assert destination is not None
        in_regfile_a = destination.files.get("a", 64) < REGFILE_SIZE
        is_mul = packs[0] is self.mul
        if not is_mul and not in_regfile_a:
            raise Mistake("the add ALU can only pack into ra0..ra31", destination.column)
        if is_mul and self.pm is None:
            self.pm = int(destination.pack in MUL_PACKS)
        self.set_pm(self.pm if is_mul and self.pm is not None else 0, destination.column)
        if self.pm == 1 and destination.pack not in MUL_PACKS:
            raise Mistake("the mul ALU packs only 8a 8b 8c 8d 8abcd when pm=1", destination.column)
        if self.pm == 0 and not in_regfile_a:
            raise Mistake("this pack (pm=0) works only into ra0..ra31", destination.column)
        return destination.pack

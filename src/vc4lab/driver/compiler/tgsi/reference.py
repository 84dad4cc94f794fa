"""Executes a TGSI program as it stands (numpy): the reference for the SSA form.

It shares with that only what single operations compute (`ssa/ops.py`); registers, masks of lanes
and control flow are its own.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vc4lab.driver.compiler.ssa.expand import COORDINATES, ONE, SETS, SIMPLE
from vc4lab.driver.compiler.ssa.ops import OPS, Words, compute
from vc4lab.driver.compiler.ssa.reference import Endless, Inputs, Mask, Outputs
from vc4lab.driver.compiler.tgsi.operations import Kind, Shape
from vc4lab.driver.compiler.tgsi.program import COMPONENTS, File, Instruction, Program, Register, Source


def run_tgsi(program: Program, inputs: Inputs) -> Outputs:
    """Execute a program. Raises Endless."""
    return _Machine(program, inputs).run()


def _op(name: str, *words: Words) -> Words:
    return compute(OPS[name], list(words))


class _Machine:
    """The registers of all lanes: arrays of (register, component, lane) by file."""

    def __init__(self, program: Program, inputs: Inputs) -> None:
        self._program = program
        self._inputs = inputs
        lanes = inputs.lanes
        sizes = {File.TEMP: 1, File.OUT: 1, File.ADDR: 1}
        for one in program.declarations:
            if one.file in sizes:
                sizes[one.file] = max(sizes[one.file], one.last + 1)
        self._files = {file: np.zeros((size, 4, lanes), np.uint32) for file, size in sizes.items()}
        self._ranges = {
            (one.file, one.array): (one.first, one.last) for one in program.declarations if one.array
        }
        self._discarded = np.zeros(lanes, np.bool_)
        self._turns = 0

    def run(self) -> Outputs:
        self._block(0, np.ones(self._inputs.lanes, np.bool_))
        outputs = {}
        for one in self._program.declarations:
            if one.file is File.OUT:
                for number in range(one.first, one.last + 1):
                    for letter in one.mask:
                        component = COMPONENTS.index(letter)
                        outputs[number, component] = self._files[File.OUT][number, component]
        return Outputs(outputs, self._discarded)

    # -- control flow ------------------------------------------------------------------------------

    def _block(self, at: int, mask: Mask) -> tuple[int, Mask, Mask, Mask]:
        """Execute up to what closes the block.

        Returns its place, the lanes that come there, those that broke and those that continue.
        """
        broken, again = np.zeros_like(mask), np.zeros_like(mask)
        instructions = self._program.instructions
        while True:
            instruction = instructions[at]
            name = instruction.operation.name
            if name == "END" or instruction.operation.closes:
                return at, mask, broken, again
            if name in ("IF", "UIF"):
                at, mask, out, back = self._if(at, mask)
                broken, again = broken | out, again | back
            elif name == "BGNLOOP":
                at, mask = self._loop(at, mask)
            elif name == "BRK":
                broken, mask = broken | mask, np.zeros_like(mask)
            elif name == "CONT":
                again, mask = again | mask, np.zeros_like(mask)
            elif mask.any():
                self._execute(instruction, mask)
            at += 1

    def _if(self, at: int, mask: Mask) -> tuple[int, Mask, Mask, Mask]:
        instruction = self._program.instructions[at]
        word = self._read(instruction.sources[0], 0, instruction.operation.takes)
        if instruction.operation.name == "IF":
            word = _op("fne", word, np.zeros_like(word))
        condition = word != 0
        at, first, broken, again = self._block(at + 1, mask & condition)
        second = mask & ~condition
        if self._program.instructions[at].operation.name == "ELSE":
            at, second, out, back = self._block(at + 1, second)
            broken, again = broken | out, again | back
        return at, first | second, broken, again

    def _loop(self, at: int, mask: Mask) -> tuple[int, Mask]:
        left = np.zeros_like(mask)
        while True:
            self._turns += bool(mask.any())
            if self._turns > self._inputs.budget:
                raise Endless(f"no end after {self._inputs.budget} turns")
            end, mask, broken, again = self._block(at + 1, mask)
            left |= broken
            mask = mask | again
            if not mask.any():
                return end, left

    # -- registers ---------------------------------------------------------------------------------

    def _numbers(self, register: Register) -> tuple[NDArray[np.int64], Mask]:
        """The register that each lane means, and whether it is inside of what may be meant."""
        lanes = self._inputs.lanes
        index = register.index
        if index is None:
            return np.full(lanes, register.number, np.int64), np.ones(lanes, np.bool_)
        word = self._files[index.file][index.number, COMPONENTS.index(index.component)]
        numbers = word.view(np.int32).astype(np.int64) + register.number
        known = self._ranges.get((register.file, index.array))
        if known is None or not index.array:
            size = len(self._files[register.file]) if register.file in self._files else 1 << 30
            known = (0, size - 1)
        return numbers, (numbers >= known[0]) & (numbers <= known[1])

    def _read(self, source: Source, component: int, kind: Kind) -> Words:
        letter = COMPONENTS.index(source.swizzle[component])
        word = self._register(source.register, letter)
        integer = kind in (Kind.INT, Kind.UINT)
        if source.absolute:
            word = _op("iabs" if integer else "fabs", word)
        if source.negate:
            word = _op("ineg" if integer else "fneg", word)
        return word

    def _register(self, register: Register, component: int) -> Words:
        lanes = self._inputs.lanes
        file = register.file
        if file is File.IMM:
            constants = self._program.immediates[register.number].words + (0,) * 4
            return np.full(lanes, constants[component], np.uint32)
        if file in (File.IN, File.SV):
            table = self._inputs.inputs if file is File.IN else self._inputs.system
            found = table.get((register.number, component))
            return np.zeros(lanes, np.uint32) if found is None else found
        numbers, inside = self._numbers(register)
        if file is File.CONST:
            return self._inputs.uniform(register.dimension or 0, numbers, component)
        memory = self._files[file][:, component]
        words = memory[np.where(inside, numbers, 0), np.arange(lanes)]
        return np.where(inside, words, np.uint32(0))

    def _write(self, register: Register, component: int, word: Words, mask: Mask) -> None:
        numbers, inside = self._numbers(register)
        lanes = np.flatnonzero(mask & inside)
        self._files[register.file][numbers[lanes], component, lanes] = word[lanes]

    # -- instructions ------------------------------------------------------------------------------

    def _execute(self, instruction: Instruction, mask: Mask) -> None:
        operation = instruction.operation
        if operation.shape is Shape.KILL:
            self._kill(instruction, mask)
            return
        if operation.shape is Shape.FLOW:
            return
        (target,) = instruction.targets
        components = [COMPONENTS.index(letter) for letter in target.mask]
        results = self._results(instruction)
        for component in components:
            word = results[component]
            if instruction.saturate:
                word = _op("fsat", word)
            self._write(target.register, component, word, mask)

    def _kill(self, instruction: Instruction, mask: Mask) -> None:
        killed = np.ones_like(mask)
        if instruction.sources:
            words = [self._read(instruction.sources[0], one, Kind.FLOAT) for one in range(4)]
            killed = np.any([word.view(np.float32) < 0 for word in words], axis=0)
        self._discarded |= mask & killed

    def _results(self, instruction: Instruction) -> list[Words]:
        """All four components of the result."""
        operation = instruction.operation
        if operation.shape is Shape.TEXTURE:
            return self._sample(instruction)
        kind = operation.takes
        operands = [
            [self._read(source, component, kind) for source in instruction.sources] for component in range(4)
        ]
        if operation.shape is Shape.COMPONENT:
            return [_component(operation.name, words) for words in operands]
        if operation.shape is Shape.DOT:
            total = _op("fmul", *operands[0])
            for words in operands[1 : int(operation.name[-1])]:
                total = _op("fadd", total, _op("fmul", *words))
            return [total] * 4
        if operation.shape is Shape.SCALAR:
            return [_op(SIMPLE[operation.name], *operands[0])] * 4
        one = np.full(self._inputs.lanes, ONE, np.uint32)
        zero = np.zeros_like(one)
        if operation.name == "DST":
            return [one, _op("fmul", *operands[1]), operands[2][0], operands[3][1]]
        (x,), (y,), _, (w,) = operands
        power = _op("fpow", _op("fmax", y, zero), w)
        return [one, _op("fmax", x, zero), _op("select", _op("flt", zero, x), power, zero), one]

    def _sample(self, instruction: Instruction) -> list[Words]:
        name, texture = instruction.operation.name, instruction.texture
        assert texture is not None
        source, *more, sampler = instruction.sources
        letters = [COMPONENTS.index(letter) for letter in COORDINATES[texture]]
        args = [self._read(source, letter, instruction.operation.takes) for letter in letters]
        w = self._read(source, 3, Kind.FLOAT)
        if name == "TXP":
            args = [_op("fmul", arg, _op("frcp", w)) for arg in args]
        if name in ("TXB", "TXL"):
            args.append(w)
        if name == "TEX2" and texture.is_shadow:
            args.pop()
        if name in ("TXB2", "TXL2", "TEX2"):
            args.append(self._read(more[0], 0, Kind.FLOAT))
        if name == "TXD":
            flat = letters[: len(letters) - texture.is_shadow]
            args += [self._read(one, letter, Kind.FLOAT) for one in more for letter in flat]
        numbers, _ = self._numbers(sampler.register)
        count = max((one.last for one in self._program.declarations if one.file is File.SAMP), default=0)
        # Lanes that mean no sampler get the first one's.
        numbers = np.where((numbers < 0) | (numbers > count), 0, numbers)
        found = [np.zeros(self._inputs.lanes, np.uint32)] * 4
        for number in np.unique(numbers):
            sampled = self._inputs.sample(name, texture.value, int(number), args)
            found = [np.where(numbers == number, new, old) for new, old in zip(sampled, found, strict=True)]
        return found


def _component(name: str, words: list[Words]) -> Words:
    """One component of an operation that works on each alone."""
    if name in SIMPLE:
        return _op(SIMPLE[name], *words)
    if name in SETS:
        op, swapped = SETS[name]
        return _op("b2f", _op(op, *(words[::-1] if swapped else words)))
    if name in ("MOV", "UARL"):
        return words[0]
    if name in ("ARL", "ARR"):
        return _op("f2i", _op("ffloor" if name == "ARL" else "fround", words[0]))
    if name == "MAD":
        return _op("fadd", _op("fmul", words[0], words[1]), words[2])
    if name == "UMAD":
        return _op("iadd", _op("imul", words[0], words[1]), words[2])
    if name == "LRP":
        difference = _op("fadd", words[1], _op("fneg", words[2]))
        return _op("fadd", _op("fmul", words[0], difference), words[2])
    assert name == "CMP"
    return _op("select", _op("flt", words[0], np.zeros_like(words[0])), words[1], words[2])

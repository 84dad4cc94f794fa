"""Moves that only bring a value to or from an address go: what makes or reads the value does it.

A read of the uniform stream or the VPM becomes an operand of the one operation that reads it, and
what makes a value writes it to a unit itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from vc4lab.qpu.isa.operations import AddOp, MulOp
from vc4lab.qpu.machine.code import Block, Const, Op, Read, Reg, StreamWord, Wants


def fold(blocks: Sequence[Block]) -> None:
    """Fold moves of all blocks in place; call it before the program is scheduled."""
    for block in blocks:
        kept = _Fold(block)
        for op in list(block.ops):
            if _is_move(op) and not kept.into_reader(op):
                kept.into_maker(op)
        block.ops = [op for op in block.ops if op not in kept.gone]


def _is_move(op: Op) -> bool:
    plain = op.tied is None and op.flags is None and op.sets is None and op.second is None
    return plain and op.name == "mov" and not op.pack and not op.rotate and op.loads is None


class _Fold:
    """The moves of one block that have gone."""

    def __init__(self, block: Block) -> None:
        self._block = block
        self._place = {op: number for number, op in enumerate(block.ops)}
        self.gone: set[Op] = set()

    def _replace(self, old: Op, new: Op) -> None:
        """Let what came after a move come after the operation that does its work."""
        new.after = list(dict.fromkeys([*new.after, *old.after]))
        for op in self._block.ops:
            if op is not new and old in op.after:
                op.after = list(dict.fromkeys(new if one is old else one for one in op.after))
        new.peripheral |= old.peripheral
        self.gone.add(old)

    def into_reader(self, move: Op) -> bool:
        """A word that is read from an address is an operand of what reads it."""
        source, result = move.args[0], move.target
        if not isinstance(source, Read) or not isinstance(result, Reg) or result.uses != 1:
            return False
        if not move.after and not move.peripheral:
            return False  # what never changes stays in a register
        if len(result.readers) != 1 or result.wants not in (Wants.ANY, Wants.FILE):
            return False
        reader = result.readers[0]
        if reader not in self._place or reader.rotate or reader.peripheral or any(reader.unpacks):
            return False
        for arg in reader.args:
            if isinstance(arg, Read | Const | StreamWord):
                return False
            maker = arg.op
            if arg is not result and maker in self._place and self._place[maker] > self._place[move]:
                return False
        if reader.tied is not None and reader.tied.op in self._place:
            return False
        reader.args = [source if arg is result else arg for arg in reader.args]
        reader.stays = move.stays
        self._replace(move, reader)
        return True

    def into_maker(self, move: Op) -> bool:
        """Let the operation that makes a value write it to an address itself; return whether it does."""
        given, address = move.args[0], move.target
        if not isinstance(given, Reg) or not isinstance(address, int) or given.uses != 1:
            return False
        maker = given.op
        if maker is None or maker not in self._place or maker in self.gone or given.wants is not Wants.ANY:
            return False
        plain = maker.tied is None and maker.flags is None and maker.sets is None and maker.second is None
        if not plain or maker.target is not given or maker.pack or maker.rotate or maker.after:
            return False
        if maker.signal is not None or maker.loads is not None or maker.peripheral:
            return False
        maker.target, maker.target_file, maker.name = address, move.target_file, move.name
        if move.request is not None:
            if any(isinstance(arg, Const | StreamWord) for arg in maker.args):
                maker.target, maker.target_file = given, ""
                return False
            maker.request = move.request
            maker.request.writes = [maker if one is move else one for one in maker.request.writes]
        self._block.ops.remove(maker)
        self._block.ops.insert(self._block.ops.index(move), maker)
        self._place[maker] = self._place[move]
        self._replace(move, maker)
        return True


def keep(blocks: Sequence[Block]) -> None:
    """Results in r4 and r5 that are read late, or often, are copied at once if others come meanwhile:
    what reads r4 comes soon, and would need more registers than the copy.
    """
    for block in blocks:
        place = {op: number for number, op in enumerate(block.ops)}
        busy = [number for op, number in place.items() if _results(op)]
        copies: dict[Op, Op] = {}
        for op in block.ops:
            for result in _results(op):
                last = max((place[one] for one in result.readers), default=0)
                is_long = len(result.readers) > MOST_READERS or last - place[op] > FARTHEST
                if (is_long and any(place[op] < number < last for number in busy)) or _is_lost(result):
                    copies[op] = _copied(result, block)
        if copies:
            block.ops = [one for op in block.ops for one in (op, copies.get(op)) if one is not None]


def _is_lost(result: Reg) -> bool:
    """Whether one of several that read it writes over it."""
    return len(result.readers) > 1 and any(_results(op) for op in result.readers)


def _results(op: Op) -> list[Reg]:
    """List the results that an operation leaves in r4 or r5."""
    both = (op.target, op.second)
    return [one for one in both if isinstance(one, Reg) and one.wants in (Wants.R4, Wants.R5)]


MOST_READERS, FARTHEST = 2, 12
"""Readers of a result in r4, and operations between it and the last of them, without a copy."""


def _copied(result: Reg, block: Block) -> Op:
    """A move to a register that all readers of a result read instead."""
    move = Op("mov", AddOp.OR, MulOp.V8MIN, [result], result.op.line if result.op is not None else 0)
    copy = Reg(move)
    copy.block = block.number
    move.target = copy
    for op in dict.fromkeys(result.readers):
        op.args = [copy if arg is result else arg for arg in op.args]
        if any(op.unpacks):
            copy.wants = Wants.FILE_A
    copy.readers, copy.uses = result.readers, result.uses
    result.readers, result.uses = [move], 1
    return move

"""Which operations wait for which: the graph by which a block is scheduled."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from vc4lab.qpu.isa.hazards import SFU, UNIFORM_POINTER
from vc4lab.qpu.isa.registers import SFU_WRITES, Write
from vc4lab.qpu.machine.code import Block, Op, Reg, Request, Wants

SAMPLE_HEIGHT = 20
"""How much earlier than what reads a sample its request should be."""


def connect(blocks: Sequence[Block]) -> None:
    """Set `next`, `waiting` and `height` of all operations. Those with no effect are removed."""
    number = 0
    for block in reversed(blocks):
        _remove_unused(block)
        for op in reversed(block.ops):
            if op.tied is not None and isinstance(op.target, Reg):
                if op.tied.wants is Wants.ANY:
                    op.tied.wants = op.target.wants
    for block in blocks:
        for op in block.ops:
            op.number = number
            number += 1
    for block in blocks:
        inside = set(block.ops)
        for op in block.ops:
            _edges_of(op, inside)
        _heights(block)
        _number(block)


def _remove_unused(block: Block) -> None:
    kept = []
    for op in reversed(block.ops):
        if _is_used(op):
            kept.append(op)
            continue
        for reg in op.reads:
            reg.uses -= 1
            reg.readers.remove(op)
        if op.tied is not None:
            op.tied.uses -= 1
        if op.flags is not None:
            op.flags.users.remove(op)
    block.ops = kept[::-1]


def _is_used(op: Op) -> bool:
    if op.stays:
        if isinstance(op.target, Reg) and not op.target.uses:
            op.target = None
        return True
    if op.sets is not None and op.sets.users:
        return True
    if op.second is not None and op.second.uses:
        return True
    if op.second is not None and op.target is None:
        return False
    if isinstance(op.target, Reg):
        return bool(op.target.uses)
    only_flags = op.sets is not None and op.target is None
    return op.target not in SFU_WRITES and not only_flags


def _edges_of(op: Op, inside: set[Op]) -> None:
    """Find the operations that must come before another one, and how many instructions before."""
    before: dict[Op, int] = {}

    def add(other: Op | None, distance: int) -> None:
        if other is not None and other in inside and other is not op:
            before[other] = max(before.get(other, 0), distance)

    for reg in op.reads:
        maker = reg.op
        add(maker, SFU if maker is not None and maker.target in SFU_WRITES else 1)
    if op.tied is not None:
        add(op.tied.op, 1)
        for reader in op.tied.readers:
            add(reader, 0)
    if op.flags is not None:
        add(op.flags.setter, 1)
    if op.sets is not None:
        for user in op.sets.users:
            for reg in (*user.reads, *((user.tied,) if user.tied is not None else ())):
                if reg.op is None or reg.op.flags is not op.sets:
                    add(reg.op, 0)
            if user.tied is not None:
                for reader in user.tied.readers:
                    if reader.flags is not op.sets:
                        add(reader, 0)
    for other in op.after:
        add(other, UNIFORM_POINTER if other.target == Write.UNIFORMS_ADDRESS else 1)
    for other in op.together:
        add(other, 0)
    if op.request is not None:
        _request_edges(op, op.request, add)
    op.waiting = len(before)
    for other, distance in before.items():
        other.next.append((op, distance))


def _request_edges(op: Op, request: Request, add: Callable[[Op | None, int], None]) -> None:
    """A texture request waits for all that it reads; its last write and its signal for those before."""
    if op.signal is not None:
        add(request.writes[-1], 1)
        return
    for one in request.writes:
        for reg in one.reads:
            add(reg.op, SFU if reg.op is not None and reg.op.target in SFU_WRITES else 1)
    if op is request.writes[-1]:
        for one in request.writes[:-1]:
            add(one, 1)


def _heights(block: Block) -> None:
    """How many instructions at least come after each operation begins."""
    for op in _backwards(block):
        height = 0
        for after, distance in op.next:
            if after.signal is not None and after.request is not None:
                distance = SAMPLE_HEIGHT
            height = max(height, after.height + distance)
        op.height = height


def _number(block: Block) -> None:
    """No operation has a higher number than those that wait for it: what sets flags waits for the
    registers of all that depend on them, and some of these were made long after it.
    """
    for op in _backwards(block):
        op.number = min([op.number, *(after.number for after, _ in op.next)])


def _backwards(block: Block) -> list[Op]:
    """An order in which each operation is after all that wait for it."""
    left = {op: len(op.next) for op in block.ops}
    waits: dict[Op, list[Op]] = {op: [] for op in block.ops}
    for op in block.ops:
        for after, _ in op.next:
            waits[after].append(op)
    ready = [op for op in block.ops if not left[op]]
    found = []
    while ready:
        op = ready.pop()
        found.append(op)
        for before in waits[op]:
            left[before] -= 1
            if not left[before]:
                ready.append(before)
    assert len(found) == len(block.ops), "operations wait for each other"
    return found

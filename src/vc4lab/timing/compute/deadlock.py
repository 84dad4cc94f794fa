"""A model that stands still: which queues are full, and who waits for whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vc4lab.timing.compute.kinds import CAUSE_TEXT, Cause

if TYPE_CHECKING:
    from vc4lab.timing.compute.model import ComputeModel


def waits_for(model: ComputeModel, number: int) -> str:
    """Report in words why a QPU waits whose program has not ended."""
    qpu = model.qpus[number]
    listing = model.listing_of(number)
    cause = Cause(qpu.cause)
    what = CAUSE_TEXT.get(cause, "its turn")
    if cause is Cause.MUTEX:
        what += f", held by QPU {model.figures.mutex - 1}"
    elif cause is Cause.SEMAPHORE:
        semaphore = listing.code(qpu.site).number
        what += f" {semaphore} (now {model.figures.semaphores[semaphore]})"
    elif cause in (Cause.LOAD_START, Cause.STORE_START):
        kind = "loader" if cause is Cause.LOAD_START else "storer"
        what += f", QPU {model.machine.states[kind][0].owner}"
    return f"waits at 0x{listing.program.address_of(max(int(qpu.site), 0)):08x}: {what}"


def deadlock(model: ComputeModel) -> list[str]:
    """Lines about a model in which nothing happens any more, though programs have not ended."""
    waiting = [number for number in model.started if not model.qpus[number].stopped]
    if not waiting and not model.queued:
        return []
    lines = ["the model stands still, as the chip would:"]
    lines += [f"QPU {number} {waits_for(model, number)}" for number in waiting]
    if model.queued:
        lines.append(f"{model.queued} programs wait for a QPU")
    for name, queues in model.machine.queues.items():
        for number, queue in enumerate(queues):
            if queue.count >= queue.capacity:
                lines.append(f"queue {name} {number} is full ({queue.count} pieces)")
    return lines

"""A model of frames that stands still: which queues are full, and who waits for whom."""

from __future__ import annotations

from vc4lab.timing.machine import Machine


def deadlock(machine: Machine) -> list[str]:
    """Lines about a model in which nothing happens any more, though a frame is not done."""
    lines = ["the model stands still before the frame is done:"]
    states = machine.states
    reader = states["rendering_list"][0]
    lines.append(
        f"rendering_list: at step {reader.step}, {reader.tiles - reader.tiles_done} tiles ahead of "
        "the tile buffer"
    )
    clusters = zip(states["setup"], states["front_end"], states["tile_buffer"], strict=True)
    for cluster, (setup, front, tile) in enumerate(clusters):
        if setup.list:
            waits = " waits for shaded vertices of" if setup.starved else ""
            at = f"primitive {setup.following} (list {setup.list - 1})"
            lines.append(f"setup {cluster}:{waits} {at}")
        if front.primitive:
            at = f"primitive {front.primitive - 1}, vector {front.vector}"
            lines.append(f"front_end {cluster}: {at}")
        at = f"{tile.written} vectors, operation {tile.work - 1}"
        lines.append(f"tile_buffer {cluster}: {at}")
    for name, queues in machine.queues.items():
        for number, queue in enumerate(queues):
            if not queue.count:
                continue
            full = "full" if queue.count >= queue.capacity else f"{queue.count} pieces"
            reader_name, place = machine.names[queue.reader]
            waiting = [
                f"{one} {at}"
                for bit, (one, at) in enumerate(machine.names)
                if queue.writers[bit >> 6] >> (bit & 63) & 1
            ]
            writers = f"; {', '.join(waiting)} waits for room" if waiting else ""
            lines.append(f"queue {name} {number}: {full}, read by {reader_name} {place}{writers}")
    return lines

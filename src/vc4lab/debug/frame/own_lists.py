"""Draws of jobs whose tile lists no binner has written: the program wrote them itself.

There is no primitive record of a binning list, so a draw is what has the same state in all tiles, in the
order in which the lists have it first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vc4lab.debug.frame.index import FrameDraw
from vc4lab.memory import MEMORY_MASK
from vc4lab.records.codes import ListPrimitive
from vc4lab.records.control import RECORD_SIZES
from vc4lab.records.primitives import ListFormat, decode_compressed
from vc4lab.records.states import PrimitiveListFormat
from vc4lab.v3d.tile_lists.scan_context import EXPANDED, Segment

if TYPE_CHECKING:
    from vc4lab.memory import GuestMemory
    from vc4lab.v3d.events import FrameWork


def own_draws(memory: GuestMemory, event: FrameWork, job: int, first: int) -> list[FrameDraw]:
    """The draws of a job, numbered from `first` on."""
    lists: dict[int, dict[int, int]] = {}
    kind: Any = Segment.python
    for place in range(0, len(event.segments), Segment.size):
        segment = kind.from_buffer_copy(event.segments, place)
        work = event.draws[segment.draw]
        address = int(segment.list_address) & MEMORY_MASK
        found = lists.setdefault(int(segment.draw), {})
        if int(work.state.list_format) & EXPANDED:
            if work.record is not None:  # a primitive record of the rendering list
                found[work.record & MEMORY_MASK] = RECORD_SIZES[memory.u8(work.record)]
            continue
        head = RECORD_SIZES[memory.u8(address)]
        form = ListFormat(int(work.state.list_format) & 0xFF)
        found[address] = head + decode_compressed(memory.read, address + head, form).first_size
    draws: list[FrameDraw] = []
    for number in sorted(lists):
        work, places = event.draws[number], tuple(lists[number].items())
        if not places:
            continue
        primitive = PrimitiveListFormat(int(work.state.list_format) & 0xFF).type
        name = primitive.name.lower() if isinstance(primitive, ListPrimitive) else "primitives"
        address = places[0][0]
        draws.append(
            FrameDraw(
                first + len(draws),
                job,
                0,
                address,
                memory.u8(address),
                f"{name} in tile lists",
                work.vertices,
                0,
                0,
                0,
                max(work.vertices - 1, 0),
                int(work.state.config) & 0xFFFFFFFF,
                work.shader,
                {"primitives in tiles": work.primitives},
                (),
                places,
            )
        )
    return draws

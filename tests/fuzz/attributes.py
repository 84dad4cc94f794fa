"""Random attribute layouts: arrays of any size, stride and place, over each other and anywhere."""

import random
import struct

from tests.fuzz import world
from tests.fuzz.fuzzer import Fuzzer, Plan, fuzzer, size_of, word
from tests.fuzz.lists import run_lists

from vc4lab.memory import MEMORY_SIZE
from vc4lab.records.control import build, bytes_reader, parse_list

RECORD_AT = 0x0E80_0000
"""Where the new shader record lies; nothing else does."""


def layout(rng: random.Random, count: int, anchors: list[int]) -> bytes:
    """The attributes of a shader record: 8 bytes each."""
    wide = rng.random() < 0.3  # four arrays fill the column, others lie on them
    data = b""
    for number in range(count):
        address = rng.choice((*anchors, MEMORY_SIZE - rng.randrange(1, 300), word(rng)))
        size = rng.choice((rng.randrange(1, 65), rng.randrange(1, 65), 64, 16, 4))
        places = [rng.randrange(256) for _ in range(2)]
        if wide and number < 4:
            size, places = 64, [64 * number] * 2
        elif wide:
            size = rng.choice((1, 4, 8, 8, 12))
        stride = rng.choice((rng.randrange(256), size))
        data += struct.pack("<IBBBB", address & 0xFFFFFFFF, size - 1, stride, *places)
    return data


@fuzzer
class AttributeFuzzer(Fuzzer):
    """A recorded frame with a shader record of other attributes."""

    name = "attributes"
    quick = 12
    share = 5
    v3d = True

    def plan(self, rng: random.Random) -> Plan:
        name = rng.choice(("triangle", "triangle", "cube", "crate"))
        scene = world.scene(name)
        start, data = scene.data("binning")
        count, extended = rng.choice((8, 8, rng.randrange(1, 9))), rng.random() < 0.2
        record = bytearray(scene.data("records")[1][:36])
        for at in (16, 28):  # of the vertex and the coordinate shader
            if rng.random() < 0.8:
                record[at - 2] = rng.choice((0xFF, rng.randrange(256)))  # arrays
                record[at - 1] = rng.choice((0xFF, 0xFC, rng.randrange(256)))  # bytes
        anchors = [address for address, _ in scene.parts.values()]
        new = bytes(record) + layout(rng, 8 if extended else count, anchors)
        new += rng.randbytes(32 if extended else 0)
        edits = [(RECORD_AT, new)]
        for found in parse_list(bytes_reader(data), 0, len(data)):
            if found.id == 64:
                state = build(64, address=RECORD_AT, attributes=count & 7, extended=extended)
                edits.append((start + found.address, state))
        return Plan(
            name, tuple(edits), {"warm": rng.random() < 0.3, "fed": rng.random() < 0.3}, size_of(edits)
        )

    def run(self, plan: Plan) -> None:
        scene = world.scene(plan.scene)
        run_lists(plan, scene.binning, scene.rendering)

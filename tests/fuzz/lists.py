"""Damaged control lists through the registers: recorded lists, random records, random bytes."""

import random
from typing import Any

from tests.fuzz import world
from tests.fuzz.fuzzer import Fuzzer, Plan, fuzzer, scribble, size_of, word

from vc4lab.debug.why.watch import EmptyFrames
from vc4lab.diagnostics import StrictStop
from vc4lab.memory import MEMORY_SIZE
from vc4lab.records.control import RECORDS, build

LIST_AT = 0x0F00_0000
"""Where lists made here lie; nothing else does."""

_BINNING = (4, 5, 6, 6, 32, 32, 33, 33, 41, 56, 64, 65, 66, 67, *range(96, 107), 112)
_RENDERING = (17, 17, 24, 24, 25, 26, 27, 28, 28, 29, 113, 114, 115, 115, 115, 115, 115, 64, 65, 56)
_ALL = tuple(sorted(RECORDS))
_SYSTEM = (0, 1, 2, 3, 7, 8, 16, 17, 18)


def random_record(rng: random.Random, pool: tuple[int, ...], anchors: list[int]) -> bytes:
    """A record with random fields; addresses mostly point to things that exist."""
    identity = rng.choice(rng.choice((pool, pool, pool, pool, pool, pool, _SYSTEM, _ALL)))
    kind = RECORDS[identity]
    values: dict[str, int] = {}
    for name, bits in kind.layout_fields.items():
        if rng.random() < 0.15:
            continue
        top = (1 << bits.width) - 1
        values[name] = (word(rng) << rng.choice((0, 0, 16, 32))) & top
        if "address" in name and rng.random() < 0.9:
            values[name] = rng.choice(anchors) >> getattr(bits, "shift", 0)
        elif rng.random() < 0.3 and bits.width > 4:
            values[name] = rng.randrange(16)
    raw = 0
    for name, value in values.items():
        bits = kind.layout_fields[name]
        raw |= value << bits.lo & bits.mask
    data = bytes([identity]) + raw.to_bytes(kind.size - 1, "little")
    if kind.variable:
        data += rng.randbytes(rng.randrange(40))
    return data


@fuzzer
class ListFuzzer(Fuzzer):
    """Lists of recorded and hand-made frames with damaged bytes."""

    name = "lists"
    quick = 40
    share = 20
    v3d = True

    def plan(self, rng: random.Random) -> Plan:
        name = rng.choice((*world.SMALL, *world.SMALL, "crate", "cube"))
        scene = world.scene(name)
        edits: list[tuple[int, bytes]] = []
        for part in rng.choice((("binning",), ("rendering",), ("binning", "rendering"))):
            edits += scribble(rng, *scene.data(part))
        if rng.random() < 0.2:
            edits += scribble(rng, *scene.data("records"))
        options: dict[str, Any] = {}
        if rng.random() < 0.1:
            options["strict"] = True
        if rng.random() < 0.2:
            options["ends"] = (rng.randrange(-16, 16), rng.randrange(-16, 16))
        if rng.random() < 0.3:
            options["overspill"] = (word(rng), rng.choice((0, 16, 4096, 1 << 20, 0xFFFFFFFF)))
        if rng.random() < 0.5:
            options["warm"] = True
        options["fed"] = rng.random() < 0.3
        return Plan(name, tuple(edits), options, size_of(edits))

    def run(self, plan: Plan) -> None:
        scene = world.scene(plan.scene)
        run_lists(plan, scene.binning, scene.rendering)


def run_lists(plan: Plan, binning: tuple[int, int], rendering: tuple[int, int]) -> None:
    """Both lists through a fresh V3D, with the options a plan can have.

    "warm": the scene was drawn undamaged before, so native code knows its programs and states.
    """
    scene, options = world.scene(plan.scene), plan.options
    first, second = options.get("ends", (0, 0))
    strict = options.get("strict", False)
    engine, fed = options.get("engine", "jit"), options.get("fed", False)
    v3d = world.device(strict=strict, engine=engine, fed=fed)
    if options.get("explained"):
        EmptyFrames(v3d, v3d.reporter)
    if options.get("warm"):
        scene.restore()
        world.submit(v3d, scene.binning, scene.rendering)
    scene.restore(plan.edits)
    try:
        world.submit(
            v3d,
            (binning[0], binning[1] + first & 0xFFFFFFFF),
            (rendering[0], rendering[1] + second & 0xFFFFFFFF),
            options.get("overspill", (0, 0)),
        )
    except StrictStop:
        assert strict


@fuzzer
class ExplainedFuzzer(ListFuzzer):
    """Damaged lists whose frames without a picture are run again, and explained."""

    name = "explained-lists"
    quick = 25
    share = 5

    def plan(self, rng: random.Random) -> Plan:
        found = super().plan(rng)
        found.options["explained"] = True
        return found


@fuzzer
class RecordFuzzer(Fuzzer):
    """Lists made of random records, anywhere in memory, with branches to anywhere."""

    name = "records"
    quick = 40
    share = 450
    v3d = True

    def plan(self, rng: random.Random) -> Plan:
        name = rng.choice((*world.SMALL, *world.SMALL, "crate"))
        scene = world.scene(name)
        start = rng.choice((LIST_AT, LIST_AT, LIST_AT, MEMORY_SIZE - rng.randrange(1, 4000)))
        second = rng.choice((LIST_AT + 0x10000, LIST_AT + 0x10001, start))
        anchors = [address for address, _ in scene.parts.values()]
        anchors += [start, second, start + rng.randrange(64), 0, MEMORY_SIZE - 1, 0xC0000000]
        anchors += [LIST_AT + 0x20000, LIST_AT + 0x100000, word(rng)]
        edits: list[tuple[int, bytes]] = []
        ends = []
        for at, pool in ((start, _BINNING), (second, _RENDERING)):
            here, kind = at, rng.random()
            for _ in range(rng.choice((1, 5, 20, 60, 200))):
                if kind < 0.15:
                    data = rng.randbytes(rng.choice((1, 5, 64)))
                else:
                    data = self._piece(rng, pool, anchors, scene)
                edits.append((here, data))
                here += len(data)
            ends.append((at, here & 0xFFFFFFFF))
        options: dict[str, Any] = {"lists": tuple(ends)}
        if rng.random() < 0.3:
            options["overspill"] = (word(rng), rng.choice((0, 16, 4096, 1 << 20, 0xFFFFFFFF)))
        if rng.random() < 0.5:
            options["warm"] = True
        options["fed"] = rng.random() < 0.3
        return Plan(name, tuple(edits), options, size_of(edits))

    def _piece(
        self, rng: random.Random, pool: tuple[int, ...], anchors: list[int], scene: world.Scene
    ) -> bytes:
        kind = rng.random()
        if kind < 0.03:
            return scene.data("binning" if pool is _BINNING else "rendering")[1]
        if kind < 0.06 and pool is _BINNING:
            return build(
                112,
                address=(LIST_AT + 0x200000) & ~0xFFF,
                memory_size=rng.choice((0, 32, 4096, 1 << 16, 1 << 20, 0xFFFFFFFF)),
                state_address=LIST_AT + 0x900000,
                tiles_x=rng.choice((0, 1, 2, 20, 255)),
                tiles_y=rng.choice((0, 1, 2, 15, 255)),
                auto_initialise=rng.randrange(2),
                initial_block=rng.randrange(4),
                block=rng.randrange(4),
            ) + build(6)
        return random_record(rng, pool, anchors)

    def run(self, plan: Plan) -> None:
        run_lists(plan, *plan.options["lists"])

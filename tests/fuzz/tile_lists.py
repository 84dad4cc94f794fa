"""Tile lists damaged in memory between binning and rendering."""

import random

from tests.fuzz import world
from tests.fuzz.fuzzer import Fuzzer, Plan, fuzzer, scribble, size_of

from vc4lab.memory import MEMORY_SIZE


@fuzzer
class TileListFuzzer(Fuzzer):
    """Compressed lists with damage where the binner really wrote, and lists of random codes."""

    name = "tile-lists"
    quick = 25
    share = 6
    v3d = True

    def plan(self, rng: random.Random) -> Plan:
        scene_names = ("coloured", "textured", "triangle", "mipmap", "horse", "cube")
        name = rng.choice(scene_names) + "+binned"
        scene = world.scene(name)
        address, data = scene.data("lists")
        used = len(data.rstrip(b"\0")) or 1
        edits: list[tuple[int, bytes]] = []
        kind = rng.random()
        if kind < 0.7:
            edits = scribble(rng, address, data[:used])
        elif kind < 0.85:  # a list of random codes in place of a tile's
            tile = address + 32 * rng.randrange(max(1, used // 32))
            edits = [(tile, self._codes(rng, address))]
        else:  # a tile continues at the end of memory
            at = MEMORY_SIZE - rng.randrange(1, 40)
            tile = address + 32 * rng.randrange(max(1, used // 32))
            edits = [(tile, b"\x10" + at.to_bytes(4, "little")), (at, self._codes(rng, at))]
        return Plan(name, tuple(edits), {"fed": rng.random() < 0.3}, size_of(edits))

    def _codes(self, rng: random.Random, address: int) -> bytes:
        out = bytearray()
        for _ in range(rng.choice((1, 5, 30))):
            kind = rng.random()
            if kind < 0.2:
                out += bytes([56, rng.choice((0x12, 0x10, 0x11, 0x22, 0x32, rng.getrandbits(8)))])
            elif kind < 0.5:
                out += b"\x30" + rng.randbytes(rng.randrange(30)) + b"\x80"
            elif kind < 0.7:
                out += b"\x31" + rng.randbytes(4) + rng.randbytes(rng.randrange(30)) + b"\x80"
            elif kind < 0.8:
                target = address + rng.randrange(-64, 256)
                out += rng.choice((b"\x10", b"\x11")) + (target & 0xFFFFFFFF).to_bytes(4, "little")
            else:
                out += rng.randbytes(rng.randrange(1, 12))
        return bytes(out)

    def run(self, plan: Plan) -> None:
        scene = world.scene(plan.scene)
        scene.restore(plan.edits)
        world.submit(world.device(fed=plan.options["fed"]), rendering=scene.rendering)

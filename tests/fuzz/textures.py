"""Random texture parameters P0 to P3 in frames that sample with them."""

import random

from tests.fuzz import world
from tests.fuzz.fuzzer import Fuzzer, Plan, fuzzer, size_of, word

from vc4lab.memory import MEMORY_SIZE


@fuzzer
class TextureFuzzer(Fuzzer):
    """Frames whose texture configuration is random, or nearly right."""

    name = "textures"
    quick = 25
    share = 1
    v3d = True

    def plan(self, rng: random.Random) -> Plan:
        name = rng.choice(("textured", "cubemap", "cubemap", "mipmap"))
        scene = world.scene(name)
        part = "uniforms" if "uniforms" in scene.parts else "uniforms_fs"
        address, data = scene.data(part)
        words = [int.from_bytes(data[k : k + 4], "little") for k in range(0, 16, 4)]
        edits = []
        for number in range(4):
            kind = rng.random()
            if kind < 0.25:
                continue
            value = rng.getrandbits(32)
            if kind < 0.5 and words[number]:  # nearly right
                value = words[number] ^ 1 << rng.randrange(32)
            elif number == 0 and kind < 0.7:  # any type, near the end of memory
                value = (MEMORY_SIZE - 4096 * rng.randrange(3)) & 0xFFFFFFFF | rng.getrandbits(12)
            elif number == 1 and kind < 0.8:  # sizes that exist
                size = rng.choice((0, 1, 2, 5, 64, 2047))
                value = size << 20 | rng.choice((1, size)) << 8 | rng.getrandbits(8) | value & 1 << 31
            edits.append((address + 4 * number, value.to_bytes(4, "little")))
        if rng.random() < 0.3:  # odd coordinates
            start, vertices = scene.data(rng.choice([p for p in scene.parts if p[:4] == "vert"]))
            place = start + 4 * rng.randrange(len(vertices) // 4)
            edits.append((place, word(rng).to_bytes(4, "little")))
        return Plan(name, tuple(edits), {"fed": rng.random() < 0.3}, size_of(edits))

    def run(self, plan: Plan) -> None:
        scene = world.scene(plan.scene)
        scene.restore(plan.edits)
        v3d = world.device(fed=plan.options["fed"])
        world.submit(v3d, scene.binning, scene.rendering)

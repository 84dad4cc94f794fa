"""Random reads and writes of the register block, with real and damaged lists in memory."""

import random

from tests.fuzz import world
from tests.fuzz.fuzzer import Fuzzer, Plan, fuzzer, word

from vc4lab.v3d.registers import REGISTERS

_LISTS = ("CT0CA", "CT0EA", "CT1CA", "CT1EA", "CT0CS", "CT1CS", "BPOA", "BPOS", "SRQPC", "SRQUA")


@fuzzer
class RegisterFuzzer(Fuzzer):
    """Sequences of accesses; addresses written are often those of the scene's lists."""

    name = "registers"
    quick = 25
    share = 10
    v3d = True

    def plan(self, rng: random.Random) -> Plan:
        name = rng.choice(world.SMALL)
        scene = world.scene(name)
        offsets = [register.offset for register in REGISTERS]
        favoured = [r.offset for r in REGISTERS if r.name in _LISTS]
        places = [*scene.binning, *scene.rendering, *(a for a, _ in scene.parts.values())]
        edits = []
        for _ in range(rng.choice((5, 30, 100))):
            offset = rng.choice(favoured if rng.random() < 0.5 else offsets)
            if rng.random() < 0.05:
                offset = rng.getrandbits(32)
            value = word(rng)
            if rng.random() < 0.5:
                value = rng.choice(places) + rng.choice((0, 0, 0, 1, -1, 5))
            if rng.random() < 0.2:
                value = 1 << rng.randrange(32)
            edits.append((offset, None if rng.random() < 0.15 else value & 0xFFFFFFFF))
        return Plan(name, tuple(edits), {}, 4 * len(edits))

    def run(self, plan: Plan) -> None:
        world.scene(plan.scene).restore()
        v3d = world.device()
        for offset, value in plan.edits:
            if value is None:
                assert 0 <= v3d.read(offset) <= 0xFFFFFFFF
            else:
                v3d.write(offset, value)
        for register in REGISTERS:
            assert 0 <= v3d.read(register.offset) <= 0xFFFFFFFF
        assert v3d.interrupt_pending in (True, False)
        assert v3d.waiting is None or v3d.waiting

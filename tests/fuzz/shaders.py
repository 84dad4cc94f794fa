"""Damaged and random QPU programs in every stage of whole frames, in every engine."""

import random
from typing import Any

from tests.fuzz import world
from tests.fuzz.fuzzer import Fuzzer, Plan, fuzzer, size_of, word
from tests.qpu.qpu_programs import random_alu, random_branch, random_ldi, random_program

from vc4lab.diagnostics import StrictStop
from vc4lab.qpu.isa.encoding import NOP

CODE_AT = 0x0E00_0000
"""Where new programs lie; the addresses in shader records follow."""

_STAGES = {"fragment": 4, "vertex": 16, "coordinate": 28}
"""Byte offset of the code address in a GL shader record (NV: only the first)."""

_ENGINES = ("fast",) * 7 + ("exact",) * 2 + ("interpreter",)


def without_vpm(word: int) -> int:
    """A nop in place of an ALU instruction or load that touches the VPM."""
    signal = word >> 60
    writes = (word >> 38 & 63, word >> 32 & 63)
    reads = {14: (), 15: (), 13: (word >> 18 & 63,)}.get(signal, (word >> 18 & 63, word >> 12 & 63))
    touches = {48, 49, 50} & {*writes, *reads}
    return NOP.value if touches and signal != 15 else word


def random_word(rng: random.Random, at: int, length: int) -> int:
    """An instruction: sensible, or any 64 bits."""
    kind = rng.random()
    if kind < 0.3:
        return rng.getrandbits(64)
    if kind < 0.7:
        return random_alu(rng)
    return random_ldi(rng) if kind < 0.85 else random_branch(rng, at, length)


@fuzzer
class ShaderFuzzer(Fuzzer):
    """One stage of a frame gets a damaged, random or endless program."""

    name = "shaders"
    quick = 12
    share = 5
    v3d = True

    def plan(self, rng: random.Random) -> Plan:
        name = rng.choice(("coloured", "textured", "triangle", "triangle", "mipmap"))
        scene = world.scene(name)
        stage = rng.choice([s for s in _STAGES if s in scene.parts])
        address, code = scene.data(stage)
        edits: list[tuple[int, bytes]] = []
        if rng.random() < 0.55:
            for _ in range(rng.choice((1, 1, 2, 4))):
                edits.append(self._damage(rng, address, code))
        else:
            words = self._program(rng, code)
            if stage == "fragment" and rng.random() < 0.9:  # it would be refused otherwise
                words = [without_vpm(word) for word in words]
            edits = [(CODE_AT + 8 * k, w.to_bytes(8, "little")) for k, w in enumerate(words)]
            place = scene.parts["records"][0] + _STAGES[stage]
            edits.append((place, CODE_AT.to_bytes(4, "little")))
        options: dict[str, Any] = {"engine": rng.choice(_ENGINES)}
        if rng.random() < 0.2:  # other varyings and uniforms, infinite ones among them
            part = rng.choice([p for p in scene.parts if p[:4] in ("unif", "vert")])
            start, data = scene.data(part)
            edits.append((start + rng.randrange(len(data) // 4) * 4, word(rng).to_bytes(4, "little")))
        if rng.random() < 0.05:
            options["strict"] = True
        options["fed"] = rng.random() < 0.3
        return Plan(name, tuple(edits), options, size_of(edits))

    def _damage(self, rng: random.Random, address: int, code: bytes) -> tuple[int, bytes]:
        length = len(code) // 8
        index = rng.randrange(length)
        old = int.from_bytes(code[8 * index : 8 * index + 8], "little")
        if rng.random() < 0.6:
            new = old ^ 1 << rng.randrange(64)
        else:
            new = random_word(rng, index, length)
        return address + 8 * index, new.to_bytes(8, "little")

    def _program(self, rng: random.Random, code: bytes) -> list[int]:
        kind = rng.random()
        length = rng.choice((3, 10, 30, 60))
        if kind < 0.35:
            return random_program(rng, length, branches=True)
        if kind < 0.7:  # random instructions in the middle of what the stage really does
            words = [int.from_bytes(code[k : k + 8], "little") for k in range(0, len(code), 8)]
            place = rng.randrange(len(words))
            new = [random_word(rng, place + k, length) for k in range(rng.randrange(1, 12))]
            return words[:place] + new + words[place:]
        if kind < 0.9:
            return [random_word(rng, k, length) for k in range(length)] + random_program(rng, 1)
        return [rng.getrandbits(64) for _ in range(length)]

    def run(self, plan: Plan) -> None:
        scene = world.scene(plan.scene)
        scene.restore(plan.edits)
        engine = plan.options["engine"]
        strict = plan.options.get("strict", False)
        reference = engine == "interpreter"
        chosen = engine if reference else "jit"
        v3d = world.device(strict=strict, engine=chosen, fed=plan.options["fed"])
        if engine == "exact":
            v3d.frames.preparer.pipelines.engine = "exact"
            v3d.frames.preparer.vertices.engine = "exact"
            v3d.binning.coordinates.engine = "exact"
        try:
            world.submit(v3d, scene.binning, scene.rendering)
        except StrictStop:
            assert strict

"""Random user programs through SRQPC: VPM, DMA, semaphores, textures of a compute job."""

import random
from dataclasses import replace
from typing import Any

from tests.fuzz import world
from tests.fuzz.fuzzer import Fuzzer, Plan, fuzzer, size_of, word
from tests.fuzz.shaders import random_word
from tests.qpu.qpu_programs import alu, ldi, random_program

from vc4lab.v3d.registers import BY_NAME

CODE_AT, UNIFORMS_AT = 0x0E00_0000, 0x0E10_0000
BUDGET = 1 << 20
"""Instructions of one program; endless ones shall not take the time of the others."""

_SPECIAL = (48, 49, 50, 51, 40, 36, 38, 42, *range(52, 64))
"""Write addresses of the VPM, its DMA, the mutex, interrupts, special functions, texture units."""


def _piece(rng: random.Random) -> list[int]:
    """Instructions that do something with a peripheral."""
    kind = rng.random()
    if kind < 0.4:  # a setup word or an address, nearly sensible
        value = rng.choice((0x1A00, 0x80904000, 0xC0000000, 0x83010000, UNIFORMS_AT, word(rng)))
        if rng.random() < 0.5:
            value ^= 1 << rng.randrange(32)
        return [ldi(value, waddr_add=rng.choice((48, 49, 49, 50, 50)), ws=rng.getrandbits(1))]
    if kind < 0.7:
        return [alu(op_add=21, waddr_add=rng.choice(_SPECIAL), add_a=0, add_b=0, raddr_a=rng.choice(
            (32, 48, 50, 51, 38)), ws=rng.getrandbits(1))]  # fmt: skip
    if kind < 0.8:  # semaphore
        return [14 << 60 | 4 << 57 | 39 << 38 | 39 << 32 | rng.getrandbits(5)]
    return [random_word(rng, 0, 20)]


@fuzzer
class ProgramFuzzer(Fuzzer):
    """A handful of programs at once, as a compute job starts them."""

    name = "programs"
    quick = 12
    share = 10
    v3d = True

    def plan(self, rng: random.Random) -> Plan:
        edits: list[tuple[int, bytes]] = []
        starts = []
        for number in range(rng.choice((1, 1, 2, 4))):
            words: list[int] = []
            for _ in range(rng.choice((1, 5, 20, 50))):
                words += _piece(rng)
            words += random_program(rng, rng.choice((1, 10)), branches=rng.random() < 0.3)
            if rng.random() < 0.1:
                words = [rng.getrandbits(64) for _ in range(rng.choice((3, 30)))]
            at = CODE_AT + 0x1000 * number
            edits += [(at + 8 * k, w.to_bytes(8, "little")) for k, w in enumerate(words)]
            starts.append(at if rng.random() < 0.95 else word(rng))
        edits += [(UNIFORMS_AT + 4 * k, word(rng).to_bytes(4, "little")) for k in range(32)]
        options: dict[str, Any] = {
            "starts": tuple(starts),
            "engine": rng.choice(("jit", "jit", "jit", "interpreter")),
            "registers": tuple(
                (BY_NAME[name].offset, word(rng))
                for name in ("VPMBASE", "SQRSV0", "SQRSV1", "SRQCS", "SQCNTL")
                if name in BY_NAME and rng.random() < 0.2
            ),
            "length": rng.choice((0, 4, 32, word(rng))),
        }
        return Plan("coloured", tuple(edits), options, size_of(edits))

    def run(self, plan: Plan) -> None:
        world.scene(plan.scene).restore(plan.edits)
        reference = plan.options["engine"] == "interpreter"
        v3d = world.device(engine=plan.options["engine"])
        budget = BUDGET >> 6 if reference else BUDGET >> 3  # it may have to be interpreted
        v3d.programs.options = replace(v3d.programs.options, budget=budget)
        for offset, value in plan.options["registers"]:
            v3d.write(offset, value)
        for start in plan.options["starts"]:
            v3d.write(BY_NAME["SRQUA"].offset, UNIFORMS_AT)
            v3d.write(BY_NAME["SRQUL"].offset, plan.options["length"])
            v3d.write(BY_NAME["SRQPC"].offset, start)
        world.submit(v3d, *((world.scene(plan.scene).binning,) if reference else ()))

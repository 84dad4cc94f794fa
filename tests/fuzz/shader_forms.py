"""Random and damaged shaders in two forms: TGSI as it stands and SSA give the same words."""

import random
from pathlib import Path

from tests.fuzz.fuzzer import Fuzzer, Plan, fuzzer
from tests.support.shader_runs import AnyProgram, any_inputs, both

from vc4lab.driver.compiler.tgsi.parser import parse
from vc4lab.driver.compiler.tgsi.program import TgsiError


@fuzzer
class ShaderFormsFuzzer(Fuzzer):
    """Programs of any conditions, loops and jumps; real shaders with lines left out or moved."""

    name = "shader-forms"
    quick = 40
    share = 20

    def __init__(self) -> None:
        folder = Path(__file__).parents[1] / "data" / "tgsi"
        self._texts = [path.read_text() for path in sorted(folder.glob("*.tgsi"))]

    def plan(self, rng: random.Random) -> Plan:
        options = {"seed": rng.randrange(100)}
        if rng.random() < 0.6:
            text = AnyProgram(rng).text()
            return Plan("random", tuple(text.splitlines()), options, len(text))
        lines = rng.choice(self._texts).splitlines()
        for _ in range(rng.choice((1, 3, 8))):
            at = rng.randrange(1, len(lines))
            if rng.random() < 0.5:
                lines.insert(rng.randrange(1, len(lines)), lines[at])
            else:
                del lines[at]
        return Plan("damaged", tuple(lines), options, 40)

    def run(self, plan: Plan) -> None:
        try:
            program = parse("\n".join(plan.edits))
        except TgsiError:
            return
        try:
            both(program, any_inputs(plan.options["seed"], budget=30))
        except TgsiError as error:
            if error.code not in ("TGSI-003", "TGSI-006"):
                raise

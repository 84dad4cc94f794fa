"""Shader texts of any kind: a program that prints itself, or a TgsiError with a place."""

import random
from pathlib import Path

from tests.fuzz.fuzzer import Fuzzer, Plan, fuzzer, scribble, size_of

from vc4lab.driver.compiler.tgsi.operations import OPERATIONS
from vc4lab.driver.compiler.tgsi.parser import parse
from vc4lab.driver.compiler.tgsi.program import Program, TgsiError, print_tgsi

_TOKENS = """
VERT FRAG DCL IMM PROPERTY FLT32 UINT32 INT32 IN[0] OUT[0] TEMP[0] TEMP[1].x CONST[0] IMM[0] ADDR[0]
SAMP[0] SVIEW[0] TEMP[ADDR[0].x+1](1) CONST[ADDR[0].x] CONST[0][1] -TEMP[0] |TEMP[0]| .xyzw .xxxx
, , , , 2D CUBE SHADOW2D GENERIC[0] POSITION COLOR PERSPECTIVE LINEAR ARRAY(1) LOCAL {0, 0, 0, 0}
{1.5, nan, -1, 0x7fffffff} :3 0: 1: TEMP[0..3] IN[99999999] OUT[0].xz # _SAT 1e999 0x -
""".split()  # noqa: SIM905


@fuzzer
class TgsiFuzzer(Fuzzer):
    """Token salad, damaged shaders, lines in another order."""

    name = "tgsi"
    quick = 150
    share = 100

    def __init__(self) -> None:
        folder = Path(__file__).parents[1] / "data" / "tgsi"
        self._texts = [path.read_text() for path in sorted(folder.glob("*.tgsi"))]

    def plan(self, rng: random.Random) -> Plan:
        kind = rng.choice(("damaged", "damaged", "lines", "salad"))
        if kind == "salad":
            tokens = [*_TOKENS, *OPERATIONS]
            made = tuple(
                " ".join(rng.choice(tokens) for _ in range(rng.randrange(1, 9)))
                for _ in range(rng.randrange(1, 30))
            )
            return Plan(kind, made, {}, sum(map(len, made)))
        number = rng.randrange(len(self._texts))
        text = self._texts[number]
        if kind == "lines":
            lines = text.splitlines()
            for _ in range(rng.choice((1, 2, 5))):
                at, to = rng.randrange(len(lines)), rng.randrange(len(lines))
                line = lines[at] if rng.random() < 0.5 else lines.pop(at)
                lines.insert(to, line)
            return Plan(kind, tuple(lines), {}, 40)
        edits = scribble(rng, 0, text.encode())
        return Plan(kind, tuple(edits), {"text": number}, size_of(edits))

    def run(self, plan: Plan) -> None:
        if plan.scene == "damaged":
            data = bytearray(self._texts[plan.options["text"]].encode())
            for place, new in plan.edits:
                data[place : place + len(new)] = new
            text = data.decode(errors="replace")
        elif plan.scene == "salad":
            text = "FRAG\n" + "\n".join(plan.edits) + "\nEND\n"
        else:
            text = "\n".join(plan.edits)
        try:
            program = parse(text)
        except TgsiError as found:
            error = found
        else:
            self._prints_itself(program)
            return
        assert error.code.startswith("TGSI-")
        assert 1 <= error.line <= text.count("\n") + 1
        assert error.column >= 1

    def _prints_itself(self, program: Program) -> None:
        printed = print_tgsi(program)
        assert parse(printed) == program
        assert print_tgsi(parse(printed)) == printed

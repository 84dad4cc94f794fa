"""Assembler sources and instruction words of any kind."""

import random
from pathlib import Path

from tests.fuzz.fuzzer import Fuzzer, Plan, fuzzer

from vc4lab.qpu.dialects.choose import DIALECTS, assemble_source
from vc4lab.qpu.isa.encoding import Instruction
from vc4lab.qpu.lint.lint import lint
from vc4lab.qpu.program.program import Program
from vc4lab.qpu.text.assembler import AssemblyError, assemble
from vc4lab.qpu.text.disassembler import disassemble, disassemble_program
from vc4lab.qpu.text.outputs import c_source

_TOKENS = """
mov fadd fsub fmul add sub shr asr ror shl min max and or xor not clz v8adds v8subs mul24 v8muld
nop itof ftoi fmin fmax ldi li bra brr sacq srel thrend thrsw sbwait sbdone ldtmu0 ldtmu1 loadc
r0 r1 r2 r3 r4 r5 ra0 ra15 ra31 rb0 rb15 rb31 vary unif vpm vw_setup vr_setup t0s t0t t1b tlbc tlbz
.setf .8a .8b .16a .unpack8a .ifz .ifnc .anynz .global .set .quad .macro .endm , , , , ; ; ; ( ) +
- * / % << >> 0 1 -16 15 0x7fffffff 0xffffffffffffffffff 1.5 1e40 -0.0 label: :label label @ # //
/* */ " ' [ ] = \\ 1e999 nan inf 0b2 08 ~ ! ** ((((((((((((((((((((((((
""".split()  # noqa: SIM905


def _sources() -> list[str]:
    root = Path(__file__).parents[2]
    files = [*root.glob("examples/**/*.qasm"), *root.glob("examples/**/*.qpu")]
    texts = [path.read_text() for path in sorted(files)[:20]]
    return texts or ["mov r0, unif ; nop\nnop ; nop ; thrend\nnop\nnop\n"]


@fuzzer
class AssemblerFuzzer(Fuzzer):
    """Token salad, damaged sources, random text: a program, or an AssemblyError with lines."""

    name = "assembler"
    quick = 150
    share = 200

    def __init__(self) -> None:
        self.sources = _sources()

    def plan(self, rng: random.Random) -> Plan:
        kind = rng.random()
        if kind < 0.4:
            lines = [self._line(rng) for _ in range(rng.choice((1, 3, 20)))]
        elif kind < 0.9:
            lines = rng.choice(self.sources).splitlines()
            for _ in range(rng.randrange(1, 8)):
                place = rng.randrange(len(lines))
                lines[place] = self._spoil(rng, lines[place])
        else:
            lines = ["".join(chr(rng.choice((9, 32, 0x2028, rng.randrange(1, 0xD000))))
                             for _ in range(rng.randrange(80))) for _ in range(4)]  # fmt: skip
        return Plan("text", tuple(lines), {}, sum(map(len, lines)))

    def _line(self, rng: random.Random) -> str:
        return " ".join(rng.choice(_TOKENS) for _ in range(rng.randrange(12)))

    def _spoil(self, rng: random.Random, line: str) -> str:
        parts = line.split(" ")
        place = rng.randrange(len(parts))
        kind = rng.randrange(4)
        if kind == 0:
            parts[place] = rng.choice(_TOKENS)
        elif kind == 1:
            parts.insert(place, rng.choice(_TOKENS))
        elif kind == 2:
            del parts[place]
        else:
            parts[place] = parts[place][: rng.randrange(5)] + chr(rng.randrange(1, 300))
        return " ".join(parts)

    def run(self, plan: Plan) -> None:
        try:
            assembly = assemble("\n".join(plan.edits))
        except AssemblyError:
            return
        assert assembly.listing() is not None
        assert c_source(assembly, "name")
        lint(assembly.words)


_OTHER_TOKENS = """
.macro .endm .rep .endr .foreach .endf .if .elseif .else .endif .ifset .const .unset .local .endloc
.func .include "vc4.qinc" .back .endb .clone .assert .align .byte .short .int .float .double .bit
.lset .lconst :1 r:1f r:1b :loop r:loop ::name vpm_setup( vdw_setup_0( dma_h32( h32( isRegfileA(
.ifz .ifnn .setf .unpack16b .pack8a .8asf ra39 rb39 nop.tend sema up, down, define(`x', include(`
alu bra li sem sig=simm cond_add=al op_add=or waddr_add=ra3 simm=1.0 imm=`1 2 +` imm=:loop rel=1 sa=inc
undefine(`x') eval( ifelse( incr( decr( dnl ' ` $1 $# a b x y 99999999 1<<40 ; ;; .tend .ldtmu0
""".split()  # noqa: SIM905
_OTHER_SOURCES = (
    ".macro m, a, b\n  mov a, b\n.endm\n.rep i, 3\n  m r0, i\n.endr\n.set x, ra3\n:1\n  brr -, r:1b\n"
    "nop\nnop\nnop\n  mov.ifz x, vpm_setup(1, 0, h32(2)); mul24 r1, r2, r3\n  thrend\n  nop\n  nop",
    "li cond_add=al waddr_add=ra0 imm=`1 2 + 3 <<`\n:loop\nalu cond_add=al op_add=sub sf=1 add_a=ra"
    "\nbra cond_br=anyzc rel=1 imm=:loop ; back\nalu sig=simm simm=-16 mul_b=rb\nsem sa=dec sem=7",
    "define(`a', `ra3')\nldi rb49, 0xa00\nadd a, a, r1; nop\nbrr.zf ra39, loop\nnop.tend ra39, ra39, ra39",
)


@fuzzer
class DialectFuzzer(AssemblerFuzzer):
    """The same kinds of text for every dialect, and for the search of the one that it is in."""

    name = "dialects"
    quick = 60
    share = 100

    def __init__(self) -> None:
        super().__init__()
        self.sources = [*self.sources, *_OTHER_SOURCES * 4]

    def _line(self, rng: random.Random) -> str:
        tokens = _OTHER_TOKENS if rng.random() < 0.6 else _TOKENS
        return " ".join(rng.choice(tokens) for _ in range(rng.randrange(10)))

    def run(self, plan: Plan) -> None:
        text = "\n".join(plan.edits)
        for dialect in (None, *DIALECTS):
            found = None
            try:
                assemble_source(text, dialect=dialect)
            except AssemblyError as error:
                found = error
            assert found is None or (found.errors and found.shown("x"))


@fuzzer
class WordFuzzer(Fuzzer):
    """Any words: decoded, printed, assembled again, looked over by the linter."""

    name = "words"
    quick = 100
    share = 100

    def plan(self, rng: random.Random) -> Plan:
        words = [rng.getrandbits(64) for _ in range(rng.choice((1, 5, 30)))]
        return Plan("words", tuple(words), {}, 8 * len(words))

    def run(self, plan: Plan) -> None:
        for word in plan.edits:
            assert Instruction.decode(word).encode() == word
            assert disassemble(word)
            assert disassemble(word, 0x1000)
        program = Program(tuple(plan.edits), 0x1000)
        assert len(list(disassemble_program(program))) == len(plan.edits)
        lint(plan.edits)
        assert program.uniform_sites is not None
        assert program.texture_requests is not None
        text = "\n".join(disassemble(word) for word in plan.edits)
        try:
            assemble(text)
        except AssemblyError:
            return  # some words have no text that says all their bits

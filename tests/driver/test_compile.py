"""Shaders compiled for the QPU: what they compute there is what their text says."""

from pathlib import Path

import numpy as np
import pytest
from tests.support.compiled_shaders import (
    all_varyings,
    any_pixels,
    attribute_words,
    check_rules,
    differing_colours,
    expected_vertices,
    is_near,
    reference,
    run_compiled,
    varyings_for,
)
from tests.support.shader_runs import LANES, SAMPLES

from vc4lab.driver.compiler import compile as compile_module
from vc4lab.driver.compiler.compile import compile_fragment, compile_vertex
from vc4lab.driver.compiler.interface import (
    CompiledShader,
    FragmentKey,
    Stage,
    TextureKey,
    UniformKind,
    VertexKey,
)
from vc4lab.driver.compiler.ssa.ops import Words
from vc4lab.driver.compiler.ssa.values import Function
from vc4lab.driver.compiler.tgsi.operations import OPERATIONS, Kind, Operation, Shape
from vc4lab.driver.compiler.tgsi.parser import parse
from vc4lab.driver.compiler.tgsi.program import File, Program
from vc4lab.drm.kernel.shader_rules import check_shader
from vc4lab.mesa.protocol.formats import Format
from vc4lab.qpu.isa.operations import Signal
from vc4lab.qpu.machine.code import TooComplex
from vc4lab.qpu.program.program import Program as QpuProgram
from vc4lab.v3d.vpm.shader_rows import only_whole_rows

VERTICES = [path for path in SAMPLES if ".vert" in path.name]
FRAGMENTS = [path for path in SAMPLES if ".frag" in path.name]
FOUR_FLOATS = int(Format.R32G32B32A32_FLOAT)


def check_fragment(program: Program, key: FragmentKey, seeds: int = 3) -> CompiledShader:
    """Compile, and compare with the reference on random pixels."""
    shader = compile_fragment(program, key)
    check_rules(shader.words)
    for seed in range(seeds):
        inputs = any_pixels(program, seed)
        expected = reference(program, inputs)
        ran = run_compiled(shader, inputs, varyings_for(program, inputs))
        assert differing_colours(program, expected, ran) == []
        assert (ran.coloured == ~expected.discarded).all()
    return shader


@pytest.mark.parametrize("path", FRAGMENTS, ids=lambda path: path.stem)
def test_fragment_programs_compute_what_their_text_says(path: Path) -> None:
    check_fragment(parse(path.read_text()), FragmentKey())


@pytest.mark.parametrize("path", VERTICES, ids=lambda path: path.stem)
def test_vertex_programs_compute_what_their_text_says(path: Path) -> None:
    program = parse(path.read_text())
    count = 1 + max(one.last for one in program.declarations if one.file is File.IN)
    key = VertexKey(formats=(FOUR_FLOATS,) * count, varyings=all_varyings(program))
    compiled = compile_vertex(program, key)
    for shader in (compiled.vertex, compiled.coordinate):
        check_rules(shader.words)
        # else each row is addressed while the program runs: two and a half times as slow
        assert only_whole_rows(QpuProgram(tuple(shader.words)))
        for seed in range(3):
            inputs = any_pixels(program, seed)
            words = attribute_words(compiled, shader.stage, inputs)
            ran = run_compiled(shader, inputs, vpm=words)
            wanted = expected_vertices(program, key, shader.stage, reference(program, inputs))
            header = 0 if shader.stage is Stage.VERTEX else 4
            assert len(ran.vpm) == len(wanted)
            for number, (a, b) in enumerate(zip(wanted, ran.vpm, strict=True)):
                if number != header:
                    assert is_near(a, b).all(), f"word {number}"
                    continue
                for shift in (0, 16):
                    places = [
                        (one >> np.uint32(shift)).astype(np.uint16).view(np.int16).astype(int)
                        for one in (a, b)
                    ]
                    far = np.abs(places[0] - places[1]) > 2 + np.abs(places[0]) * 2e-3
                    fits = np.abs(places[0]) < 30000
                    assert far[fits].sum() <= 2, "screen coordinates"
    # it writes the four clip coordinates, too, but no varyings
    assert len(compiled.coordinate.words) <= len(compiled.vertex.words) + 4


def operation_program(operation: Operation) -> Program:
    """A vertex shader that gives an operation's result as a varying."""
    sources = ", ".join(f"IN[{number}]" for number in range(operation.sources))
    inputs = "".join(f"DCL IN[{number}]\n" for number in range(4))
    return parse(
        f"VERT\n{inputs}DCL OUT[0], POSITION\nDCL OUT[1], GENERIC[0]\nMOV OUT[0], IN[3]\n"
        f"{operation.name} OUT[1], {sources}\nEND\n"
    )


def operands(operation: Operation, rng: np.random.Generator) -> dict[tuple[int, int], Words]:
    """Words that it is defined for; some of them equal, or halves."""
    table = {}
    is_integer = operation.takes in (Kind.INT, Kind.UINT)
    for number in range(4):
        for component in range(4):
            words = rng.uniform(-6, 6, LANES).astype(np.float32).view(np.uint32)
            if is_integer and number < 3:
                limit = 40 if component % 2 else 1 << 31
                words = rng.integers(-limit, limit, LANES).astype(np.uint32)
            elif operation.name in ("RSQ", "SQRT", "LG2", "POW") and not number:
                words = words & np.uint32(0x7FFFFFFF)
            elif operation.name == "UCMP" and not number:
                words = rng.integers(0, 2, LANES).astype(np.uint32)
            table[number, component] = words
    table[1, 1] = table[0, 1].copy()
    if not is_integer and operation.name not in ("RSQ", "SQRT", "LG2", "POW"):
        table[0, 2] = (np.arange(LANES) * 0.5 - 4).astype(np.float32).view(np.uint32)
    return table


COMPUTING = [
    one
    for one in OPERATIONS.values()
    if one.shape in (Shape.COMPONENT, Shape.SCALAR, Shape.DOT, Shape.VECTOR)
    if one.name not in ("ARL", "ARR", "UARL", "DDX", "DDY")
]


@pytest.mark.parametrize("operation", COMPUTING, ids=lambda one: one.name)
def test_each_operation(operation: Operation) -> None:
    """Floats to one in a thousand, integers and truth values to the bit."""
    program = operation_program(operation)
    key = VertexKey(formats=(FOUR_FLOATS,) * 4, varyings=all_varyings(program))
    compiled = compile_vertex(program, key)
    check_rules(compiled.vertex.words)
    inputs = any_pixels(program, 1)
    inputs.inputs = operands(operation, np.random.default_rng(3))
    expected = reference(program, inputs)
    words = attribute_words(compiled, Stage.VERTEX, inputs)
    given = run_compiled(compiled.vertex, inputs, vpm=words).vpm[3:]
    for component in range(4):
        wanted = expected.outputs[1, component]
        if operation.gives is Kind.FLOAT:
            assert is_near(wanted, given[component]).all()
        else:
            assert (wanted == given[component]).all()


ARRAYS = 12


def test_an_array_that_fills_most_registers() -> None:
    """48 values live at once, each chosen by an index that only the lane knows."""
    rows = ["FRAG", "DCL IN[0], GENERIC[0], PERSPECTIVE", "DCL OUT[0], COLOR", "DCL CONST[0..5]"]
    rows += [f"DCL TEMP[0..{ARRAYS - 1}], ARRAY(1), LOCAL", "DCL TEMP[12..19]", "DCL ADDR[0]"]
    rows += ["IMM[0] UINT32 {0, 15, 1, 3}"]
    body = [f"MOV TEMP[{number}], IMM[0].xxxx" for number in range(ARRAYS)]
    for number in range(4):
        body += [f"AND TEMP[12].x, CONST[5].{'xyzw'[number]}, IMM[0].yyyy"]
        body += ["UARL ADDR[0].x, TEMP[12].xxxx", f"MOV TEMP[ADDR[0].x](1), CONST[{number}]"]
    for number in range(4):
        body += [f"AND TEMP[13].x, CONST[4].{'xyzw'[number]}, IMM[0].yyyy"]
        body += ["UARL ADDR[0].x, TEMP[13].xxxx", f"MOV TEMP[{14 + number}], TEMP[ADDR[0].x](1)"]
    body += ["MAD TEMP[14], TEMP[15], IN[0], TEMP[14]", "MAD TEMP[16], TEMP[17], IN[0], TEMP[16]"]
    body += ["ADD OUT[0], TEMP[14], TEMP[16]", "END"]
    rows += [f"{number:3}: {row}" for number, row in enumerate(body)]
    check_fragment(parse("\n".join(rows) + "\n"), FragmentKey(), seeds=8)


PLACES = 256


def test_an_array_of_many_places_that_are_chosen() -> None:
    """Each place is compared with an index twice; nothing but those chosen must be kept."""
    rows = ["FRAG", "DCL IN[0], GENERIC[0], PERSPECTIVE", "DCL OUT[0], COLOR", "DCL CONST[0]"]
    rows += [f"DCL TEMP[0..{PLACES - 1}], ARRAY(1), LOCAL", "DCL ADDR[0]"]
    rows += [f"DCL TEMP[{PLACES}..{PLACES + 1}]", f"IMM[0] UINT32 {{0, {PLACES - 1}, 0, 0}}"]
    rows += ["  0: MOV TEMP[0].x, IMM[0].xxxx"]
    rows += [f"  1: AND TEMP[{PLACES}].xy, CONST[0], IMM[0].yyyy"]
    rows += [f"  2: UARL ADDR[0].x, TEMP[{PLACES}].xxxx"]
    rows += ["  3: MOV TEMP[ADDR[0].x](1).x, CONST[0].zzzz"]
    rows += [f"  4: UARL ADDR[0].x, TEMP[{PLACES}].yyyy"]
    rows += [f"  5: USEQ TEMP[{PLACES}].x, TEMP[ADDR[0].x](1).xxxx, CONST[0].wwww"]
    rows += [f"  6: UCMP OUT[0], TEMP[{PLACES}].xxxx, IN[0], CONST[0]", "  7: END"]
    check_fragment(parse("\n".join(rows) + "\n"), FragmentKey(), seeds=2)


CHOICE = """FRAG
DCL IN[0], GENERIC[0], PERSPECTIVE
DCL OUT[0], COLOR
DCL CONST[0..1]
DCL TEMP[0..1]
  0: FSLT TEMP[0].x, IN[0].xxxx, CONST[0].xxxx
  1: UCMP TEMP[1], TEMP[0].xxxx, CONST[1], IN[0]
  2: MOV OUT[0], TEMP[1]
  3: END
"""


def test_a_comparison_that_only_chooses_is_flags_and_no_word() -> None:
    shader = check_fragment(parse(CHOICE), FragmentKey())
    assert len(shader.words) <= 14


NESTED = """FRAG
DCL IN[0], GENERIC[0], PERSPECTIVE
DCL OUT[0], COLOR
DCL CONST[0..1]
DCL TEMP[0..3]
DCL TEMP[4..7], ARRAY(1), LOCAL
DCL ADDR[0]
IMM[0] INT32 {0, 1, 3, 4}
MOV TEMP[4], IN[0]
MOV TEMP[0].x, IMM[0].xxxx
BGNLOOP
ISGE TEMP[1].x, TEMP[0].xxxx, CONST[0].xxxx
UIF TEMP[1].xxxx
BRK
ENDIF
MOV TEMP[2].x, IMM[0].xxxx
BGNLOOP
ISGE TEMP[1].x, TEMP[2].xxxx, CONST[0].yyyy
UIF TEMP[1].xxxx
BRK
ENDIF
UADD TEMP[3].x, TEMP[2].xxxx, TEMP[0].xxxx
AND TEMP[3].x, TEMP[3].xxxx, IMM[0].zzzz
UARL ADDR[0].x, TEMP[3].xxxx
MAD TEMP[ADDR[0].x+4](1), TEMP[ADDR[0].x+4](1), IMM[1].xxxx, IN[0]
UADD TEMP[2].x, TEMP[2].xxxx, IMM[0].yyyy
ENDLOOP
UADD TEMP[0].x, TEMP[0].xxxx, IMM[0].yyyy
ENDLOOP
MAD OUT[0], TEMP[4], IMM[1].yyyy, TEMP[6]
END
""".replace("MOV TEMP[4]", "IMM[1] FLT32 {0.5, 0.25, 0.0, 0.0}\nMOV TEMP[4]", 1)


def test_an_array_that_changes_in_nested_loops() -> None:
    check_fragment(parse(NESTED), FragmentKey())


def test_an_array_of_nested_loops_is_there_once() -> None:
    """44 values that both loops carry on: two places for each would be more than there are."""
    text = NESTED.replace("TEMP[4..7]", "TEMP[4..14]").replace("{0, 1, 3, 4}", "{0, 1, 7, 4}")
    check_fragment(parse(text), FragmentKey())


OUTPUT_ARRAY = """VERT
DCL IN[0..1]
DCL OUT[0], POSITION
DCL OUT[1..3], ARRAY(1), GENERIC[0]
DCL TEMP[0]
DCL ADDR[0]
MOV OUT[0], IN[0]
MOV OUT[1], IN[1]
MOV OUT[2], IN[1].wzyx
MOV OUT[3], IN[1].yyxx
F2I TEMP[0].x, |IN[1].xxxx|
UARL ADDR[0].x, TEMP[0].xxxx
MOV OUT[ADDR[0].x+1](1).xyz, IN[0]
END
"""


def test_an_array_of_outputs_that_is_written_by_an_index(tmp_path: Path) -> None:
    """The index is each lane's own; 3 is outside of the array."""
    path = tmp_path / "outputs.vert.tgsi"
    path.write_text(OUTPUT_ARRAY)
    test_vertex_programs_compute_what_their_text_says(path)


def test_loops_stay_where_their_turns_do_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    (path,) = (one for one in SAMPLES if one.name == "ints.loop-const.1.frag.tgsi")
    program = parse(path.read_text())
    unrolled = compile_fragment(program, FragmentKey())

    def refuse(_: object) -> Function:
        raise TooComplex("TGSI-007", "no registers left")

    monkeypatch.setattr(compile_module, "unroll", refuse)
    looped = compile_fragment(program, FragmentKey())
    assert UniformKind.UNIFORMS_ADDRESS in {one.kind for one in looped.uniforms}
    assert UniformKind.UNIFORMS_ADDRESS not in {one.kind for one in unrolled.uniforms}
    check_fragment(program, FragmentKey())


def sampling(depth: int, count: int) -> str:
    """A fragment shader: `count` samples, each made of what `depth` samples give one after another;
    parts of the coordinates live on, pixels are discarded, and the result is a sum.
    """
    rows = ["FRAG", "DCL IN[0], GENERIC[0], PERSPECTIVE", "DCL OUT[0], COLOR", "DCL CONST[0..1]"]
    rows += [f"DCL TEMP[0..{count + 1}]"]
    rows += [f"DCL SAMP[{unit}]\nDCL SVIEW[{unit}], 2D, FLOAT" for unit in range(count)]
    body = [f"MOV TEMP[{count}], CONST[1]"]
    for unit in range(count):
        body += [f"MUL TEMP[{unit}].xy, IN[0], CONST[0].{'xyzw'[unit % 4]}"]
        body += [f"TEX TEMP[{unit}], TEMP[{unit}], SAMP[{unit}], 2D"] * depth
        body += [f"MAD TEMP[{count}], TEMP[{unit}], IN[0].zzzz, TEMP[{count}]"]
    body += [f"ADD TEMP[{count + 1}].x, TEMP[{count}].xxxx, CONST[1].yyyy"]
    body += [f"KILL_IF TEMP[{count + 1}].xxxx", f"MUL OUT[0], TEMP[{count}], CONST[0].xxxx", "END"]
    return "\n".join([*rows, *body]) + "\n"


@pytest.mark.parametrize(
    ("depth", "count", "switches"),
    [(1, 1, 1), (2, 1, 2), (3, 2, 3), (8, 1, 8), (9, 1, 0), (1, 3, 0), (1, 9, 0)],
)
def test_programs_of_two_threads(depth: int, count: int, switches: int) -> None:
    """A switch for each sample that another one is made of. Samples that do not wait for each other
    follow closer with one thread, of which the texture unit takes more at once.
    """
    shader = check_fragment(parse(sampling(depth, count)), FragmentKey(textures=(TextureKey(),) * count))
    signals = [word >> 60 for word in shader.words]
    found = [one for one in signals if one in (Signal.THREAD_SWITCH, Signal.LAST_THREAD_SWITCH)]
    assert found == [Signal.THREAD_SWITCH] * (switches - 1) + [Signal.LAST_THREAD_SWITCH] * bool(switches)
    assert shader.is_threaded == bool(switches)
    assert check_shader(shader.words).threaded == shader.is_threaded


def test_what_lives_across_a_switch_has_half_of_the_registers() -> None:
    """With too many values there is one thread."""
    many = "".join(
        f"ADD TEMP[{number}], IN[{number % 6}], CONST[{number % 2}].{swizzle}\n"
        for number, swizzle in zip(range(2, 12), ("xxyy", "yzxw", "zzwx", "wxyz", "xyzw") * 2, strict=True)
    )
    text = (
        "FRAG\nDCL IN[0..5], GENERIC[0], PERSPECTIVE\nDCL OUT[0], COLOR\nDCL CONST[0..1]\n"
        "DCL TEMP[0..12]\nDCL SAMP[0]\nDCL SVIEW[0], 2D, FLOAT\n"
        + many
        + "MUL TEMP[0], TEMP[2], TEMP[3]\n"
        + "".join(f"MAD TEMP[0], TEMP[{n}], TEMP[0], TEMP[{n + 1}]\n" for n in range(2, 11))
        + "TEX TEMP[1], TEMP[0], SAMP[0], 2D\n"
        + "".join(f"MAD TEMP[1], TEMP[1], TEMP[{n}], TEMP[{n}]\n" for n in range(2, 12))
        + "MOV OUT[0], TEMP[1]\nEND\n"
    )
    shader = compile_fragment(parse(text), FragmentKey(textures=(TextureKey(),)))
    check_rules(shader.words)
    assert not shader.is_threaded


LIT_TEXTURE = """FRAG
DCL IN[0], GENERIC[0], PERSPECTIVE
DCL IN[1].x, GENERIC[1], PERSPECTIVE
DCL OUT[0], COLOR
DCL SAMP[0]
DCL SVIEW[0], 2D, FLOAT
DCL CONST[0]
DCL TEMP[0..9]
IMM[0] UINT32 {0, 1056964608, 0, 0}
IMM[1] FLT32 {0x3f800000, 0x00000000, 0x00000000, 0x00000000}
MOV TEMP[0].xy, IN[0].zwzw
MOV TEMP[0].z, IN[1].xxxx
DP3 TEMP[2].x, TEMP[0].xyzx, TEMP[0].xyzx
RSQ TEMP[3].x, TEMP[2].xxxx
MUL TEMP[4].xyz, TEMP[0].xyzz, TEMP[3].xxxx
DP3 TEMP[5].x, TEMP[4].xyzx, CONST[0].xyzx
MAX TEMP[6].x, TEMP[5].xxxx, IMM[0].xxxx
TEX TEMP[7], IN[0], SAMP[0], 2D
FSLT TEMP[8].x, TEMP[7].wxxx, IMM[0].yyyy
AND TEMP[9].x, TEMP[8].xxxx, IMM[1].xxxx
KILL_IF -TEMP[9].xxxx
MUL OUT[0].xyz, TEMP[7].xyzz, TEMP[6].xxxx
MOV OUT[0].w, TEMP[7].wyzw
END
"""
"""A colour of a texture times one that r4 is needed for: the products are packed where they are made."""


@pytest.mark.parametrize("has_threads", [False, True])
@pytest.mark.parametrize("alpha", ["TEMP[7].wyzw", "IMM[1].xxxx", "TEMP[6].xxxx"])
@pytest.mark.parametrize("discards", [False, True])
def test_what_is_unpacked_and_packed_leaves_r4_to_others(
    has_threads: bool, alpha: str, discards: bool
) -> None:
    text = LIT_TEXTURE.replace("OUT[0].w, TEMP[7].wyzw", f"OUT[0].w, {alpha}")
    if not discards:
        text = text.replace("KILL_IF -TEMP[9].xxxx\n", "")
    choices = compile_module.Choices(has_threads=has_threads)
    program = parse(text)
    shader = compile_fragment(program, FragmentKey(), choices)
    check_rules(shader.words)
    inputs = any_pixels(program, 1)
    ran = run_compiled(shader, inputs, varyings_for(program, inputs))
    assert differing_colours(program, reference(program, inputs), ran) == []
    check_fragment(program, FragmentKey(writes_z=True))

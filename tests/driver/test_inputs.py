"""What programs read besides varyings: textures of each kind, vertex formats, places in points."""

import numpy as np
import pytest
from tests.support.compiled_shaders import (
    all_varyings,
    any_pixels,
    check_rules,
    differing_colours,
    reference,
    run_compiled,
    varyings_for,
)
from tests.support.shader_runs import LANES

from vc4lab.driver.compiler.compile import compile_fragment, compile_vertex
from vc4lab.driver.compiler.interface import (
    FragmentKey,
    Primitives,
    TextureKey,
    UniformKind,
    Varying,
    VertexKey,
)
from vc4lab.driver.compiler.tgsi.parser import parse
from vc4lab.mesa.protocol.codes import Compare, Swizzle
from vc4lab.mesa.protocol.formats import Format
from vc4lab.qpu.machine.code import TooComplex

HEAD = (
    "FRAG\nDCL IN[0], GENERIC[0], PERSPECTIVE\nDCL OUT[0], COLOR\nDCL SAMP[0]\n"
    "DCL TEMP[0..1]\nIMM[0] FLT32 {0x3dcccccd, 0x3f000000, 0x3f800000, 0x3f800000}\n"
    "MOV TEMP[0], IN[0]\nMOV TEMP[0].w, IMM[0].zzzz\n"
)


def check(body: str) -> tuple[UniformKind, ...]:
    """Compile, compare with the reference; the kinds of its uniforms."""
    program = parse(HEAD + body + "END\n")
    shader = compile_fragment(program, FragmentKey())
    check_rules(shader.words)
    for seed in range(3):
        inputs = any_pixels(program, seed)
        expected = reference(program, inputs)
        ran = run_compiled(shader, inputs, varyings_for(program, inputs))
        assert differing_colours(program, expected, ran) == []
    return tuple(one.kind for one in shader.uniforms)


@pytest.mark.parametrize(
    ("operation", "texture"),
    [
        (operation, texture)
        for operation in ("TEX", "TXB", "TXL", "TXP")
        for texture in ("1D", "2D", "RECT", "CUBE")
        if (operation, texture) != ("TXP", "CUBE")  # which GL does not have
    ],
)
def test_samples(operation: str, texture: str) -> None:
    kinds = check(f"{operation} OUT[0], TEMP[0], SAMP[0], {texture}\n")
    assert kinds.count(UniformKind.TEXTURE_P0) == kinds.count(UniformKind.TEXTURE_P1) == 1
    needs_level = operation == "TXL" or texture == "CUBE"
    assert (UniformKind.TEXTURE_P2 in kinds) == needs_level


def test_samples_that_depend_on_samples() -> None:
    check("TEX TEMP[1], TEMP[0], SAMP[0], 2D\nTEX OUT[0], TEMP[1], SAMP[0], 2D\n")


def test_many_samples_at_once() -> None:
    """More than the unit's queue holds."""
    lines = ["MOV OUT[0], IMM[0].xxxx"]
    for _ in range(12):
        lines += ["ADD TEMP[0].xy, TEMP[0].xyyy, IMM[0].xxxx", "TEX TEMP[1], TEMP[0], SAMP[0], 2D"]
        lines += ["MAD OUT[0], TEMP[1], IMM[0].xxxx, OUT[0]"]
    text = "\n".join(lines).replace("OUT[0]", "TEMP[2]") + "\nMOV OUT[0], TEMP[2]\nEND\n"
    program = parse(HEAD.replace("TEMP[0..1]", "TEMP[0..2]") + text)
    shader = compile_fragment(program, FragmentKey())
    check_rules(shader.words)
    inputs = any_pixels(program, 1)
    ran = run_compiled(shader, inputs, varyings_for(program, inputs))
    assert differing_colours(program, reference(program, inputs), ran) == []


@pytest.mark.parametrize("stage", ["plain", "loop"])
def test_samplers_by_an_index(stage: str) -> None:
    """Each lane has the sampler that its index names, whatever the others name."""
    rows = "DCL SAMP[1]\nDCL SAMP[2]\nDCL ADDR[0]\nIMM[1] UINT32 {3, 2, 0, 0}\n"
    head = HEAD.replace("MOV", rows + "MOV", 1)
    body = "AND TEMP[1].x, IN[0].wwww, IMM[1].xxxx\nUMIN TEMP[1].x, TEMP[1].xxxx, IMM[1].yyyy\n"
    sample = "UARL ADDR[0].x, TEMP[1].xxxx\nTEX OUT[0], TEMP[0], SAMP[ADDR[0].x], 2D\n"
    if stage == "loop":
        sample = f"BGNLOOP :0\n{sample}BRK\nENDLOOP :0\n"
    program = parse(head + body + sample + "END\n")
    shader = compile_fragment(program, FragmentKey())
    check_rules(shader.words)
    assert [one.kind for one in shader.uniforms].count(UniformKind.TEXTURE_P0) == 3
    for seed in range(4):
        inputs = any_pixels(program, seed)
        expected = reference(program, inputs)
        ran = run_compiled(shader, inputs, varyings_for(program, inputs))
        assert differing_colours(program, expected, ran) == []


def test_swizzles_of_views() -> None:
    """A B8G8R8X8 texture: the unit's third byte is red, alpha is one."""
    swizzle = (Swizzle.Z, Swizzle.Y, Swizzle.X, Swizzle.ONE)
    program = parse(HEAD + "TEX OUT[0], TEMP[0], SAMP[0], 2D\nEND\n")
    inputs = any_pixels(program, 2)
    words = []
    for key in (TextureKey(), TextureKey(swizzle=swizzle)):
        shader = compile_fragment(program, FragmentKey(textures=(key,)))
        check_rules(shader.words)
        words.append(run_compiled(shader, inputs, varyings_for(program, inputs)).colour)
    plain, swizzled = (one.view(np.uint8).reshape(LANES, 4) for one in words)
    assert (swizzled[:, :3] == plain[:, 2::-1]).all()
    assert (swizzled[:, 3] == 255).all()


@pytest.mark.parametrize("compare", list(Compare), ids=lambda one: one.name)
def test_shadow_comparisons(compare: Compare) -> None:
    key = FragmentKey(textures=(TextureKey(is_depth=True, compare=compare),))
    program = parse(HEAD + "TEX OUT[0], TEMP[0], SAMP[0], SHADOW2D\nEND\n")
    depth = FragmentKey(textures=(TextureKey(is_depth=True),))
    inputs = any_pixels(program, 3)
    varyings = varyings_for(program, inputs)
    reference_value = inputs.inputs[0, 2].view(np.float32)
    shader = compile_fragment(program, key)
    check_rules(shader.words)
    passed = run_compiled(shader, inputs, varyings).colour & 255
    plain = parse(HEAD + "TEX OUT[0], TEMP[0], SAMP[0], 2D\nEND\n")
    sampled = (run_compiled(compile_fragment(plain, depth), inputs, varyings).colour & 255) / 255
    ref = np.clip(reference_value, 0, 1)
    clear = np.abs(ref - sampled) > 0.01
    expected = {
        Compare.NEVER: ref < -1,
        Compare.LESS: ref < sampled,
        Compare.EQUAL: ref < -1,
        Compare.LEQUAL: ref <= sampled,
        Compare.GREATER: ref > sampled,
        Compare.NOTEQUAL: ref >= 0,
        Compare.GEQUAL: ref >= sampled,
        Compare.ALWAYS: ref >= 0,
    }[compare]
    assert clear.sum() > 4
    assert ((passed == 255) == expected)[clear].all()


def test_derivatives() -> None:
    check("DDX TEMP[1], TEMP[0]\nDDY TEMP[0], TEMP[0]\nADD OUT[0], TEMP[0], TEMP[1]\n")


def test_places_in_points_come_before_varyings() -> None:
    """The implicit varyings are read even if nothing uses them."""
    program = parse(HEAD + "MOV OUT[0], TEMP[0]\nEND\n")
    for primitives, count in ((Primitives.POINTS, 2), (Primitives.LINES, 1)):
        shader = compile_fragment(program, FragmentKey(primitives=primitives))
        check_rules(shader.words)
        inputs = any_pixels(program, 4)
        table = varyings_for(program, inputs)
        places = [np.full(LANES, 7, np.uint32)] * count
        ran = run_compiled(shader, inputs, table, before=places)
        assert differing_colours(program, reference(program, inputs), ran) == []


def test_sprites() -> None:
    program = parse(HEAD + "MOV OUT[0], IN[0]\nEND\n")
    key = FragmentKey(primitives=Primitives.POINTS, sprite_coords=1)
    shader = compile_fragment(program, key)
    assert shader.varyings == ()
    inputs = any_pixels(program, 4)
    x, y = (np.full(LANES, value, np.float32).view(np.uint32) for value in (0.25, 0.75))
    ran = run_compiled(shader, inputs, {Varying("none", 0, 0): x}, before=[x, y])
    assert (ran.colour == 0xFF004040).all()


VERTEX = parse(
    "VERT\nDCL IN[0]\nDCL IN[1]\nDCL OUT[0], POSITION\nDCL OUT[1], GENERIC[0]\n"
    "MOV OUT[0], IN[1]\nMOV OUT[1], IN[0]\nEND\n"
)
SCALES = {"UNORM": 1.0, "USCALED": 0.0, "SSCALED": 0.0, "SNORM": 2.0}
INTEGERS = [
    name
    for bits in (8, 16)
    for kind in SCALES
    for name in (f"R{bits}_{kind}", "".join(f"{one}{bits}" for one in "RGBA") + f"_{kind}")
]


@pytest.mark.parametrize("name", [*INTEGERS, "B8G8R8A8_UNORM"])
def test_vertex_formats(name: str) -> None:
    """(2 c + 1) / (2^b - 1) for signed ones, c / (2^b - 1) for unsigned ones."""
    kind = name.rpartition("_")[2]
    bits = 16 if "16" in name else 8
    letters = "BGRA" if name.startswith("B8") else "RGBA" if "A" in name.partition("_")[0] else "R"
    key = VertexKey((int(Format[name]), int(Format.R32G32B32A32_FLOAT)), all_varyings(VERTEX))
    compiled = compile_vertex(VERTEX, key)
    check_rules(compiled.vertex.words)
    rng = np.random.default_rng(1)
    values = rng.integers(0, 1 << bits, (LANES, len(letters))).astype(np.uint64)
    size = compiled.attributes[0].size // 4
    packed = np.zeros((LANES, 2), np.uint64)
    for number in range(len(letters)):
        at = number * bits
        packed[:, at // 32] |= values[:, number] << np.uint64(at % 32)
    words = [packed[:, k].astype(np.uint32) for k in range(size)]
    one = np.ones(LANES, np.float32).view(np.uint32)
    ran = run_compiled(compiled.vertex, any_pixels(VERTEX, 1), vpm=[*words, *[one] * 4])
    numbers = values.astype(np.int64)
    if kind.startswith("S"):
        numbers = np.where(numbers >> (bits - 1), numbers - (1 << bits), numbers)
    top = (1 << bits) - 1
    floats = numbers.astype(np.float64)
    scaled = {"UNORM": floats / top, "SNORM": (2 * floats + 1) / top}.get(kind, floats)
    for component in range(4):
        given = ran.vpm[3 + component].view(np.float32)
        if component < len(letters):
            expected = scaled[:, letters.index("RGBA"[component])]
            assert np.abs(given - expected).max() <= 1e-5 * max(1, np.abs(expected).max())
        else:
            assert (given == (component == 3)).all()


def test_formats_without_a_conversion_are_refused() -> None:
    key = VertexKey((int(Format.R11G11B10_FLOAT), 31), all_varyings(VERTEX))
    with pytest.raises(TooComplex, match="TGSI-008"):
        compile_vertex(VERTEX, key)

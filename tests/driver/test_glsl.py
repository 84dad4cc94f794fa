"""Shaders in GLSL: their words, partners and probes; which line each value comes from."""

import re

import pytest

from vc4lab.driver.compiler.compile import Choices, compile_fragment
from vc4lab.driver.compiler.interface import FragmentKey
from vc4lab.driver.compiler.tgsi.parser import parse
from vc4lab.driver.glsl.lines import Lines, split_lines
from vc4lab.driver.glsl.partner import partner_of, varyings_of
from vc4lab.driver.glsl.probes import MOST, Statement, probes_of
from vc4lab.driver.glsl.tokens import is_desktop, is_tgsi, is_vertex, tokens_of

FRAGMENT = """// a comment; with = signs
precision mediump float;
varying vec2 uv, other[2];
uniform vec4 k;
float square(float x) { return x * x; }
void main() {
    float a = square(uv.x), b = uv.y;
    if (a > 0.5)
        a += b;
    for (int i = 0; i < 4; i++) { a *= k[i]; }
    gl_FragColor = vec4(a);
}
"""


def shown(text: str) -> list[tuple[int, str]]:
    """Line and value of the statements of a fragment shader, in order."""
    found = probes_of(text, tokens_of(text), vertex=False, desktop=False)
    return [(one.statement.line, one.statement.value) for one in found]


def test_tokens_have_their_lines() -> None:
    tokens = tokens_of("a /* b\n c */ d // e\n#define F(x) \\\n  x\n1.5e-3f <= .5")
    assert [(one.text, one.line) for one in tokens] == [
        ("a", 1), ("d", 2), ("#define F(x) \\\n  x", 3), ("1.5e-3f", 5), ("<=", 5), (".5", 5),
    ]  # fmt: skip


def test_what_a_text_is() -> None:
    assert is_tgsi("\nFRAG\nDCL")
    assert not is_tgsi("FRAGMENT")
    assert not is_vertex("x", tokens_of(FRAGMENT))
    assert is_vertex("x.vert", tokens_of(FRAGMENT))
    assert is_vertex("x", tokens_of("void main() { gl_Position = p; }"))
    assert not is_desktop(tokens_of(FRAGMENT))
    assert is_desktop(tokens_of("#version 120\n"))
    assert not is_desktop(tokens_of("#version 100\nvoid main() { gl_FragColor = gl_Color; }"))
    assert is_desktop(tokens_of("void main() { gl_FragColor = gl_Color; }"))


def test_partners_have_all_varyings() -> None:
    tokens = tokens_of(FRAGMENT)
    assert [(one.type, one.name, one.size) for one in varyings_of(tokens)] == [
        ("vec2", "uv", ""), ("vec2", "other", "2"),
    ]  # fmt: skip
    vertex = partner_of(tokens, vertex=False, desktop=False)
    assert "uv = (vc4lab_place * vc4lab_scale[0]).xy;" in vertex
    assert "for (int i = 0; i < (2); i++) other[i] =" in vertex
    fragment = partner_of(tokens_of("varying mat3 m; void main() {}"), vertex=True, desktop=False)
    assert "gl_FragColor += (m[0] + m[1] + m[2]).xyzx;" in fragment


def test_partners_keep_conditions() -> None:
    text = "#version 120\n#ifdef A\nvarying float a;\n#else\nvarying vec4 b;\n#endif\nvoid main() {}"
    lines = partner_of(tokens_of(text), vertex=False, desktop=True).splitlines()
    assert lines[0] == "#version 120"
    body = lines[lines.index("void main() {") :]
    assert [one for one in body if one.startswith("#")] == ["#ifdef A", "#else", "#endif"]
    assert body.index("#ifdef A") < next(n for n, one in enumerate(body) if one.startswith("a = "))


def test_statements_come_as_they_are_executed() -> None:
    assert shown(FRAGMENT) == [
        (5, "x * x"), (7, "a"), (7, "b"), (8, "a > 0.5"), (9, "a"), (10, "i"), (10, "a"),
        (11, "gl_FragColor"),
    ]  # fmt: skip


def test_functions_come_before_their_last_call() -> None:
    text = (
        "float f(float x) {\n return x; }\nfloat g(float x) {\n return f(x); }\n"
        "void main() {\nfloat a = f(1.0);\nfloat b = g(a);\ngl_FragColor = vec4(b); }"
    )
    assert [line for line, _ in shown(text)] == [6, 2, 4, 7, 8]


def test_probes_keep_the_lines_and_the_number_of_brackets() -> None:
    for probe in probes_of(FRAGMENT, tokens_of(FRAGMENT), vertex=False, desktop=False):
        assert probe.text.count("{") == probe.text.count("}")
        assert probe.text.index("vc4lab_main") > 0
        lines = probe.text.splitlines()
        number = next(n for n, one in enumerate(lines, 1) if "vc4lab_seen = vc4lab_show(" in one)
        assert number == probe.statement.line


@pytest.mark.parametrize(
    "text",
    ["", "void main() {", "void main() { if (", "}}}}", "(((", "void main() { for (;;) a = b; }", "#", "/*",
     "void main() { else else else gl_FragColor = 1; }", "varying", "varying vec2 a[", "\0\xff" * 50],
)  # fmt: skip
def test_what_is_no_shader_is_left_to_mesa(text: str) -> None:
    tokens = tokens_of(text)
    probes_of(text, tokens, vertex=False, desktop=False)
    for vertex in (False, True):
        partner_of(tokens, vertex=vertex, desktop=vertex)


def test_probes_are_bounded() -> None:
    text = "void main() { gl_FragColor = vec4(0.0); " + "gl_FragColor += 1.0; " * 500 + "}"
    assert len(shown(text)) == MOST
    deep = "void main() { gl_FragColor = vec4(0.0); " + "if (a) " * 5000 + "gl_FragColor += 1.0; }"
    assert len(shown(deep)) <= MOST


HEAD = "FRAG\nDCL IN[0], GENERIC[0], PERSPECTIVE\nDCL OUT[0], COLOR\nDCL CONST[0..1]\nDCL TEMP[0..3]\n"
HEAD += "IMM[0] UINT32 {0, 1065353216, 0, 0}\n"
WHOLE = HEAD + (
    "0: MUL TEMP[0].x, IN[0].xxxx, IN[0].yyyy\n1: MAD TEMP[1].x, TEMP[0].xxxx, CONST[0].xxxx, IN[0].zzzz\n"
    "2: MOV OUT[0], TEMP[1].xxxx\n3: END\n"
)
CHOSEN = (
    "FSNE TEMP[3].x, CONST[1].xxxx, IMM[0].xxxx\n"
    "9: UCMP OUT[0], TEMP[3].xxxx, {probe}, TEMP[1].xxxx\n10: END\n"
)


def probe(first: str, shown_as: str) -> str:
    """TGSI of a probe: the whole, in other registers, and what is shown."""
    return (
        HEAD + first + "5: MAD TEMP[1].x, IN[0].xxxx, IMM[0].xxxx, IN[0].zzzz\n"
        "6: MUL TEMP[2].x, IN[0].xxxx, IN[0].yyyy\n"
        "7: MAD TEMP[1].x, TEMP[2].xxxx, CONST[0].xxxx, IN[0].zzzz\n"
        "8: " + CHOSEN.format(probe=shown_as)
    )


def statement(line: int, target: str = "a") -> Statement:
    """One that assigns."""
    return Statement(line, target, target, 0, 0)


def test_values_belong_to_the_first_statement_that_needs_them() -> None:
    lines = Lines(parse(WHOLE))
    assert lines.add(statement(7), probe("", "TEMP[2].xxxx"), "gl_FragColor")
    assert lines.add(statement(8, "gl_FragColor"), probe("", "TEMP[1].xxxx"), "gl_FragColor")
    shader = compile_fragment(parse(WHOLE), FragmentKey(), Choices(mark=lines.mark))
    assert shader.words == compile_fragment(parse(WHOLE), FragmentKey()).words, "lines change nothing"
    from vc4lab.qpu.text.disassembler import disassemble

    texts = [disassemble(word) for word in shader.words]
    found = {text: glsl for text, (_, glsl) in zip(texts, split_lines(shader.lines), strict=False)}
    multiplied = next(
        glsl for text, glsl in found.items() if re.search(r"fmul r\d, r[ab]?\d, r[ab]?\d", text)
    )
    assert 7 in multiplied
    assert next(glsl for text, glsl in found.items() if "unif" in text)[-1] == 8
    assert next(glsl for text, glsl in found.items() if "tlbc" in text) == (8,)


def test_a_probe_with_another_shader_does_not_count() -> None:
    lines = Lines(parse(WHOLE))
    other = probe("", "TEMP[2].xxxx").replace("TEMP[2].xxxx, CONST[0].xxxx", "TEMP[2].xxxx, CONST[0].yyyy")
    assert not lines.add(statement(7), other, "gl_FragColor")
    assert not lines.add(statement(7), "FRAG\n0: END\n", "gl_FragColor")
    assert not lines.add(statement(7), "nonsense", "gl_FragColor")
    assert lines.probes == 0

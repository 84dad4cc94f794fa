"""`vc4lab compile` of shaders in GLSL, with the Mesa that is installed; clocks and comparisons."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from tests.support.host_tools import why_no_library
from typer.testing import CliRunner

from vc4lab.cli.compile import compile as command
from vc4lab.cli.exit_codes import ExitCode
from vc4lab.cli.groups import spread
from vc4lab.mesa.glsl import link
from vc4lab.mesa.glsl.link import CLIENT
from vc4lab.qpu.isa.encoding import words_of

SHADERS = Path(__file__).parents[1] / "data" / "tgsi"
CEL = SHADERS / "ints.shading-cel.1.frag.tgsi"
APP = typer.Typer()
APP.command("compile")(spread(command))
RUN = CliRunner()


def can_unshare() -> bool:
    """Whether a program can get a /tmp of its own here."""
    found = subprocess.run(["unshare", "-rm", "true"], check=False, capture_output=True, timeout=60)
    return found.returncode == 0


mesa = pytest.mark.skipif(
    bool(why_no_library("EGL")) or not can_unshare(), reason=why_no_library("EGL") or "no /tmp of its own"
)
FRAGMENT = """precision mediump float;
varying vec2 uv;
uniform sampler2D picture;
uniform vec4 tint;
void main() {
    vec4 c = texture2D(picture, uv);
    float grey = dot(c.rgb, vec3(0.25, 0.5, 0.25));
    c.rgb = mix(vec3(grey), c.rgb, tint.a);
    gl_FragColor = c * tint;
}
"""
VERTEX = """attribute vec4 place;
uniform mat4 turned;
varying vec2 uv;
void main() {
    uv = place.xy * 0.5 + 0.5;
    gl_Position = turned * place;
}
"""


def files(folder: Path, **texts: str) -> list[str]:
    """Shader files of these texts."""
    for name, text in texts.items():
        (folder / f"shader.{name}").write_text(text)
    return [str(folder / f"shader.{name}") for name in texts]


def run(*words: object) -> str:
    """What the command prints; it must succeed."""
    result = RUN.invoke(APP, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return result.output


def lines_of(output: str) -> dict[str, set[int]]:
    """Operations of each instruction, and the lines that stand beside them."""
    found: dict[str, set[int]] = {}
    for row in output.splitlines():
        match = re.match(r" *\d+  [0-9a-f]{16}  (.*?) # ([\d,]+): ", row)
        if match:
            for word in re.findall(r"\b(?:fmul|fadd|t0s|ldtmu0|tlbc|vw_setup)\b", match[1]):
                found.setdefault(word, set()).update(map(int, match[2].split(",")))
    return found


@mesa
def test_a_fragment_shader_with_its_lines(tmp_path: Path) -> None:
    (file,) = files(tmp_path, frag=FRAGMENT)
    output = run(file)
    assert output.startswith("# fragment program: ")
    found = lines_of(output)
    assert found["t0s"] == {6}
    assert found["tlbc"] == {9}
    assert {7, 8, 9} <= found["fmul"]
    assert "9: gl_FragColor = c * tint;" in output
    assert "(TGSI line " not in output
    assert "(TGSI line " in run(file, "--explain")


@mesa
def test_a_vertex_shader_keeps_what_nothing_reads(tmp_path: Path) -> None:
    (file,) = files(tmp_path, vert=VERTEX)
    output = run(file)
    assert output.startswith("# vertex program: ")
    assert "# varyings: GENERIC[0].x, GENERIC[0].y" in output
    assert {5, 6} <= lines_of(output)["fmul"]
    assert "# varyings" not in run(file, "--stage", "coordinate").partition("uniforms")[0]


@mesa
def test_both_shaders_of_a_program(tmp_path: Path) -> None:
    pair = files(tmp_path, vert=VERTEX, frag=FRAGMENT)
    output = run(*pair)
    assert "# vertex program: " in output
    assert "# fragment program: " in output
    assert RUN.invoke(APP, [*pair, "-o", str(tmp_path / "x.bin")]).exit_code == ExitCode.BAD_INPUT
    run(*pair, "--stage", "fragment", "-o", tmp_path / "x.bin")
    alone = run(pair[1])
    assert alone.count("tlbc") == 1
    again = RUN.invoke(APP, [pair[1], pair[1]])
    assert again.exit_code == ExitCode.BAD_INPUT
    assert "both are fragment shaders" in again.output


@mesa
def test_desktop_shaders(tmp_path: Path) -> None:
    text = "void main() { gl_FragColor = gl_Color * gl_TexCoord[0].x; }"
    (file,) = files(tmp_path, frag=text)
    assert "COLOR[0].x" in run(file)
    (file,) = files(tmp_path, vert="#version 120\nvoid main() { gl_Position = ftransform(); }")
    assert "# vertex program: " in run(file)
    refused = RUN.invoke(APP, [file, "--api", "es"])
    assert refused.exit_code == ExitCode.BAD_INPUT
    assert f"{file}:1:" in refused.output


@mesa
def test_mistakes_are_mesas_with_file_and_line(tmp_path: Path) -> None:
    (file,) = files(tmp_path, frag=FRAGMENT.replace("* tint", "* taint"))
    result = RUN.invoke(APP, [file])
    assert result.exit_code == ExitCode.BAD_INPUT
    assert f"{file}:9:21: error: `taint' undeclared" in result.output
    (file,) = files(tmp_path, frag="#version 300 es\nvoid main() {}")
    assert "GLSL ES 3.00 is not supported" in RUN.invoke(APP, [file]).output
    pair = files(tmp_path, vert=VERTEX.replace("uv", "st"), frag=FRAGMENT)
    assert "uv" in RUN.invoke(APP, pair).output
    for text in ("", "{", "void main() {", "\0\0", "#error no\n", "void main() { while (true) ; }"):
        (file,) = files(tmp_path, frag=text)
        assert RUN.invoke(APP, [file]).exit_code in (0, ExitCode.BAD_INPUT), text


@mesa
def test_macros_without_end_end_in_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client = tmp_path / "client.py"
    text = CLIENT.read_text()
    client.write_text(text.replace("120, 4 << 30", "120, 1 << 29"))
    assert client.read_text() != text
    monkeypatch.setattr(link, "CLIENT", client)
    macros = "".join(f"#define A{n} A{n - 1} A{n - 1}\n" for n in range(1, 40))
    shader = (
        f"precision mediump float;\n#define A0 1.0 +\n{macros}void main() {{ gl_FragColor = vec4(A39 1.0); }}"
    )
    (file,) = files(tmp_path, frag=shader)
    result = RUN.invoke(APP, [file])
    assert result.exit_code == ExitCode.BAD_INPUT
    assert "at program 1 of 2: the shader takes too much of it" in result.output


@mesa
def test_without_a_driver_there_is_a_sentence(tmp_path: Path) -> None:
    (file,) = files(tmp_path, frag=FRAGMENT)
    result = subprocess.run(
        [sys.executable, "-m", "vc4lab", "compile", file],
        check=False, capture_output=True, text=True, timeout=60,
        env={**os.environ, "__EGL_VENDOR_LIBRARY_FILENAMES": "/nonexistent.json"},
    )  # fmt: skip
    assert result.returncode == ExitCode.BAD_INPUT
    assert "Mesa's OpenGL cannot be used here" in result.stderr
    assert "libegl-mesa0" in result.stderr


def test_words_go_into_every_container(tmp_path: Path) -> None:
    run(CEL, "-o", tmp_path / "x.bin")
    words = words_of((tmp_path / "x.bin").read_bytes())
    for name, part in (("x.h", "x[]"), ("x.py", "X = ("), ("x.s", "x_size"), ("x.hex", f"{words[0]:016x}")):
        run(CEL, "-o", tmp_path / name)
        assert part in (tmp_path / name).read_text(), name
    run(CEL, "-o", tmp_path / "x.o")
    from vc4lab.qpu.text.containers import elf_code

    assert words_of(elf_code((tmp_path / "x.o").read_bytes(), "x")[0]) == words


def test_clocks_of_instructions_and_lines() -> None:
    output = run(CEL, "--timing", "--lines")
    assert re.search(r"\n# [\d.]+ clocks for 16 lanes \(mean of \d+ runs\); waits: ", output)
    rows = re.findall(r"^ *\d+  [0-9a-f]{16}  .{46} +([\d.]+)", output, re.MULTILINE)
    total = re.search(r"# ([\d.]+) clocks for 16 lanes", output)
    assert total is not None
    assert all(float(row) >= 4 for row in rows)
    # a run also waits between its programs
    assert sum(map(float, rows)) == pytest.approx(float(total[1]), rel=0.1)
    table = output.partition("line by line")[2]
    clocks = [float(one) for one in re.findall(r"^ +([\d.]+) +[\d.]+ % ", table, re.MULTILINE)]
    assert sum(clocks) == pytest.approx(sum(map(float, rows)), rel=0.01)
    vertex = run(SHADERS / "ints.jellyfish.2.vert.tgsi", "--timing")
    assert "clocks for 16 lanes" in vertex
    assert RUN.invoke(APP, [str(CEL), "--lines"]).exit_code == ExitCode.BAD_INPUT


def test_a_program_is_compared_with_flags_shaders_and_words(tmp_path: Path) -> None:
    same = run(CEL, "--compare", "depth")
    assert "the instructions are the same" in same
    other = run(CEL, "--compare", "no-depth")
    assert re.search(r"instructions +\d+ +\d+", other)
    assert "-nop; mov tlbz" in other or "tlbz" in other.partition("+++")[2]
    run(CEL, "-o", tmp_path / "old.bin")
    assert "the instructions are the same" in run(CEL, "--compare", tmp_path / "old.bin")
    looped = SHADERS / "ints.loop-const.1.frag.tgsi"
    assert "thread switches" in run(looped, "--compare", "no-unroll")
    assert "(second)" in run(CEL, "--compare", looped)
    for wrong in ("nothing", "no-", "depth,maybe", str(tmp_path / "none.bin")):
        assert RUN.invoke(APP, [str(CEL), "--compare", wrong]).exit_code == ExitCode.BAD_INPUT
    vertex = SHADERS / "ints.jellyfish.2.vert.tgsi"
    assert "no fragment program" in RUN.invoke(APP, [str(CEL), "--compare", str(vertex)]).output


def test_a_page_has_each_line_in_the_colour_of_its_instructions(tmp_path: Path) -> None:
    run(CEL, "--html", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "<script" not in page
    assert "ints.shading-cel.1.frag.tgsi: fragment program, " in page
    row = r'<div style="(?:background:(hsl\([^)]*\));)?white-space:pre;padding:0 .4rem">([^<]*)</div>'
    rows = re.findall(row, page)
    source = CEL.read_text().splitlines()
    assert len(rows) > len(source) + 50
    colours = {int(text[:4]): colour for colour, text in rows[: len(source)]}
    for colour, text in rows[len(source) :]:
        lines = re.search(r" {2,}([\d,]+)$", text)
        assert colour == (colours[int(lines[1].split(",")[-1])] if lines else "")
    assert len({colour for colour in colours.values() if colour}) > 20
    assert RUN.invoke(APP, [str(CEL), "--html", str(tmp_path)]).exit_code == ExitCode.OUTPUT

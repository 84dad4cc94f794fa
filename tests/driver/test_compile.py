"""Shaders compiled for the QPU: what they compute there is what their text says."""

from __future__ import annotations

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

from vc4lab.driver.compiler.compile import compile_fragment, compile_vertex
from vc4lab.driver.compiler.keys import FragmentKey, VertexKey
from vc4lab.driver.compiler.result import CompiledShader, Stage
from vc4lab.driver.compiler.tgsi.parser import parse
from vc4lab.driver.compiler.tgsi.program import File, Program
from vc4lab.mesa.protocol.formats import Format

SAMPLES = sorted((Path(__file__).parents[1] / "data" / "tgsi").glob("*.tgsi"))
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

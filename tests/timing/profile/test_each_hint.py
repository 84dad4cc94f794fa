"""Every hint has a frame (or a run of them) that deserves it, and one near it that does not."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.support.frame_timings import recorded

from vc4lab.diagnostics import catalogue
from vc4lab.qpu.text.assembler import assemble
from vc4lab.timing.frames.frame import Frame
from vc4lab.timing.frames.vertex_batches import rendering_batches
from vc4lab.timing.profile.hints import Facts, Question, facts_of, hints_of, run_hints
from vc4lab.v3d.tiles.job import OP_LOAD, OP_STORE
from vc4lab.v3d.tmu.texture_state import LevelLayout, MipMode

TEXTURE = "glmark2_texture_texture-filter_linear"
Run = tuple[Facts, ...]


def textured() -> Frame:
    return recorded(TEXTURE)[-1]


def column(frame: Frame, table: str, **values: Any) -> Frame:
    changed = getattr(frame, table).copy()
    for name, value in values.items():
        changed[name] = value
    return replace(frame, **{table: changed})


def raster(layout: LevelLayout) -> Frame:
    return column(textured(), "textures", layout=layout)


def named_again(distance: int) -> Frame:
    """Every vertex is named three times: after so many others."""
    part = textured().binnings[-1]
    rows = np.arange(240, dtype=np.uint32).reshape(-1, distance)
    vertices = np.ascontiguousarray(np.repeat(rows, 3, axis=0).reshape(-1))
    draws = part.draws[:1].copy()
    draws["first_vertex"], draws["vertices"] = 0, len(vertices)
    return replace(textured(), binnings=(replace(part, draws=draws, vertices=vertices),))


def in_tiles(times: float) -> Frame:
    """Each vertex of the draws is shaded so many times while tiles are drawn."""
    frame = recorded("glmark2_shading_shading_gouraud")[-1]
    shaded = int(rendering_batches(frame).sizes.sum())
    vertices = np.zeros(len(frame.draws), np.int32)
    vertices[0] = shaded / times
    return column(frame, "draws", vertices=vertices)


def plain_quad(varyings: int) -> Frame:
    """The textured frame as if its first draw were a quad of one colour."""
    frame = textured()
    words = tuple(assemble("mov tlbc, unif\nnop ; nop ; thrend\nnop\nnop").words)
    frame = column(frame, "draws", varyings=varyings, primitives=2, program=len(frame.programs))
    covered = np.zeros(len(frame.lists), np.int32)
    covered[0] = frame.width * frame.height // 4
    frame = column(frame, "lists", draw=0, quads_covered=covered)
    return replace(frame, programs=(*frame.programs, words), textures=frame.textures[:0])


def loads(kind: int) -> Frame:
    ops = textured().ops.copy()
    ops["kind"][ops["kind"] == OP_STORE] = kind
    return replace(textured(), ops=ops)


def hidden(early_z: bool) -> Frame:
    return column(column(textured(), "blocks", passed=0), "draws", early_z=early_z)


def threads(count: int) -> Frame:
    return column(textured(), "draws", threads=count)


def drawn_over(times: float) -> Frame:
    """The quads of a frame of another size: each pixel is drawn so many times."""
    frame = textured()
    shaded = frame.blocks["flags"].astype(np.int64)
    quads = int(sum(((shaded >> 4 * n) & 15 > 0).sum() for n in range(4)))
    return replace(frame, width=int(4 * quads / times), height=1)


def minified(mips: MipMode, lines: int) -> Frame:
    frame = column(textured(), "textures", mips=mips, cube=False)
    return column(frame, "requests", lines=lines)


def attributes(stride: int) -> Frame:
    """One array of 8 bytes for each of many vertices."""
    frame = column(textured(), "draws", vertices=1000)
    rows = frame.attributes[:1].copy()
    rows["draw"], rows["bytes"], rows["stride"] = 0, 8, stride
    return replace(frame, attributes=rows)


SMALL = Facts(2, frozenset(), 0, frozenset())
STORES = Facts(100, frozenset({16}), 4096, frozenset())
LOADS = Facts(100, frozenset(), 0, frozenset({16}))


def real(name: str, number: int = -1) -> Callable[[], Frame]:
    return lambda: recorded(name)[number]


CASES: dict[str, tuple[Callable[[], Frame | Run], Callable[[], Frame | Run]]] = {
    "PERF-001": (lambda: raster(LevelLayout.RASTER), lambda: raster(LevelLayout.T)),
    "PERF-002": (real("glmark2_bump_bump-render_normals"), real(TEXTURE)),
    "PERF-003": (lambda: (SMALL,) * 4, lambda: (SMALL, LOADS, LOADS, LOADS)),
    "PERF-004": (lambda: named_again(60), lambda: named_again(3)),
    "PERF-005": (lambda: in_tiles(2.6), lambda: in_tiles(2.4)),
    "PERF-006": (lambda: plain_quad(0), lambda: plain_quad(1)),
    "PERF-007": (lambda: loads(OP_LOAD), lambda: loads(OP_STORE)),
    "PERF-008": (lambda: (STORES, SMALL), lambda: (STORES, LOADS)),
    "PERF-009": (lambda: hidden(early_z=False), lambda: hidden(early_z=True)),
    "PERF-010": (lambda: threads(1), lambda: threads(2)),
    "PERF-011": (lambda: drawn_over(3.1), lambda: drawn_over(2.9)),
    "PERF-012": (real("glmark2_shading_shading_gouraud"), real("glmark2_ideas")),
    "PERF-013": (lambda: minified(MipMode.BASE, 20), lambda: minified(MipMode.BASE, 1)),
    "PERF-014": (lambda: attributes(17), lambda: attributes(16)),
}
"""By code: what deserves the hint, and what does not."""


def codes(what: Frame | Run, run: Callable[[Frame], int] | None = None) -> set[str]:
    if isinstance(what, tuple):
        return {hint.code for hint in run_hints(what)}
    return {hint.code for hint in hints_of(Question(what, 1000, run))}


def faster(_frame: Frame) -> int:
    """In place of the model: every other frame would take half the clocks."""
    return 500


def test_every_code_has_a_case() -> None:
    assert set(CASES) == {code for code in catalogue() if code.startswith("PERF-")}


@pytest.mark.parametrize("code", list(CASES))
def test_a_frame_that_deserves_it_gets_it(code: str) -> None:
    assert code in codes(CASES[code][0](), faster)


@pytest.mark.parametrize("code", list(CASES))
def test_a_frame_that_does_not_deserve_it_is_left_alone(code: str) -> None:
    assert code not in codes(CASES[code][1](), faster)


def test_mip_levels_are_enough() -> None:
    assert "PERF-013" not in codes(minified(MipMode.NEAREST, 20))


@pytest.mark.parametrize(
    ("run", "found"),
    [
        ("glmark2_shading_shading_phong", {"PERF-002", "PERF-012"}),
        ("glmark2_texture_texture-filter_mipmap", {"PERF-007"}),
        ("sdl_testdraw2", {"PERF-012"}),
        ("kmscube_smooth", set()),
        ("tri_arm64", set()),
    ],
)
def test_hints_of_recorded_runs(run: str, found: set[str]) -> None:
    assert codes(recorded(run)[-1]) == found


def test_glmark2_stores_depth_that_it_never_loads() -> None:
    assert codes(tuple(map(facts_of, recorded("glmark2_ideas")))) == {"PERF-008"}
    assert codes(tuple(map(facts_of, recorded("kmscube_smooth")))) == set()

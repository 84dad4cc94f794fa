"""Each optimisation of the table can be left out: other code or another way, the same result."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import vc4lab
from vc4lab.optimisations import TABLE, Optimisation
from vc4lab.simd import host_target

ROOT = Path(__file__).parents[1]
SHADED, TEXTURED = "glmark2_shading_shading_phong", "glmark2_texture_texture-filter_linear"
LARGE = "two threads: glmark2_buffer_update-method_map"
SMOOTH = "again: kmscube_smooth"
USED_BY = {
    "packed-quads": SHADED,
    "paired-batches": SHADED,
    "whole-utiles": TEXTURED,
    "neighbour-utiles": TEXTURED,
    "tile-tables": TEXTURED,
    "compressed-blocks": TEXTURED,
    "early-depth": TEXTURED,
    "scaled-depths": TEXTURED,
    "fused-bytes": TEXTURED,
    "index-runs": TEXTURED,
    "shared-shading": LARGE,
    "placed-helpers": LARGE,
    "thorough-builds": SMOOTH,
    "untouched-tiles": TEXTURED,
    "steady-waits": "wfe",
    "native-turns": "four_locks",
}


def start(without: str, *names: str) -> subprocess.CompletedProcess[str]:
    """A process that leaves pieces out."""
    return subprocess.run(
        [sys.executable, "-m", "tests.support.without", *names],
        cwd=ROOT, env={**os.environ, "VC4LAB_WITHOUT": without},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@cache
def with_all() -> dict[str, list[str]]:
    found: dict[str, list[str]] = json.loads(start("", *sorted({*USED_BY.values()})).stdout)
    return found


@pytest.mark.parametrize("piece", TABLE, ids=lambda piece: piece.name)
def test_the_same_result_without_a_piece(piece: Optimisation) -> None:
    name = USED_BY[piece.name]
    result, way = json.loads(start(piece.name, name).stdout)[name]
    expected, usual = with_all()[name]
    assert result == expected
    assert (way != usual) == piece.serves(host_target().level)


def test_rows_name_their_files_and_what_they_gain() -> None:
    for piece in TABLE:
        assert "%" in piece.gains
        assert {*piece.level.split()} <= {"avx512", "avx2"}
        assert (Path(vc4lab.__file__).parent / piece.file).is_file()


def test_an_unknown_name_is_refused() -> None:
    done = start("early-depht", "wfe")
    assert done.returncode != 0
    assert "no optimisation is called early-depht" in done.stderr


def test_the_command_says_so_in_a_sentence() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "vc4lab", "boards"],
        env={**os.environ, "VC4LAB_WITHOUT": "early-depht"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("vc4lab: VC4LAB_WITHOUT: no optimisation is called early-depht; ")

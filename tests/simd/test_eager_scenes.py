"""Eager equals native: whatever Python calls in small scenes is run both ways and compared."""

import ctypes
import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support import eager_shadow
from tests.support.eager_scenes import SCENES

from vc4lab.simd import Function, Value, build, eager, i32, load, ptr, store

REACHED = {
    "primitives": (
        "execute_list execute_system execute_draw draw_vertices apply_state begin_draw "
        "draw_triangles draw_lines draw_points copy_vertices append_entry append_coded allocate "
        "link open_list write_state finish_tile finish_all collect scan scan_tile scan_list "
        "find_draw draw_record direct_vertices prepare draw_list draw"
    ),
    "outlines": "admit_vg draw_vg_triangles draw_vg_trapezoids set_state scan_tile draw_list draw",
    "textures": "sample lookup",
    "images": "copy",
    "vertices": "fetch_batch",
    "programs": (
        "run step_host step_scheduler step_qpu step_instruction_cache step_uniform_cache step_l2 "
        "step_sdram step_storer choose access what_is_missing do_effects write_piece take_piece "
        "remove_piece is_readable"
    ),
}
"""Kernels that a scene calls, with all that they call."""


@pytest.mark.parametrize("scene", SCENES)
def test_memory_becomes_the_same(scene: str) -> None:
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", "tests.support.eager_scenes", scene]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    report = json.loads(done.stdout)
    assert report["different"] == []
    assert set(REACHED[scene].split()) <= set(report["compared"]), report


def test_a_difference_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def adds(number: int, returned: int) -> Function[Value]:
        def body(place: Value) -> Value:
            store(place, load(i32, place) + number)
            return load(i32, place) * returned

        return Function((ptr,), i32, body, "adds")

    monkeypatch.setattr(eager_shadow, "DIFFERENT", [])
    native = build("adds", {"adds": adds(1, 1)})["adds"]
    word = ctypes.c_int32(7)
    for number, returned, found in ((1, 1, 0), (2, 1, 2), (1, 2, 1)):
        twin = eager.EagerFunction("adds", adds(number, returned), "default", {})
        both = eager_shadow._compared(native.call, "adds", twin, 100)
        word.value = 7
        assert both(ctypes.addressof(word)) == 8
        assert word.value == 8
        assert len(eager_shadow.DIFFERENT) == found
        eager_shadow.DIFFERENT.clear()

"""The vertices of a draw by several threads: the bytes that one thread makes."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.vertices import ARRAYS, UNIFORMS, words
from tests.v3d.vertex.test_vertex import SCALE

from vc4lab.drm.recorded.replay import replay
from vc4lab.memory import GuestMemory
from vc4lab.simd.team import Team
from vc4lab.v3d.vertex import shader_table
from vc4lab.v3d.vertex.context import VertexContext, VertexKey, buffer_bytes
from vc4lab.v3d.vertex.pipeline import vertex_pipeline
from vc4lab.v3d.vertex.shared_shading import PIECE, Sharing

RUNS = Path(__file__).parents[2] / "data" / "vc4-jobs"
COUNT = 5000


class Shading:
    """A shader over an array of vertices, by one thread and by a team."""

    def __init__(self, values: Any) -> None:
        self.memory = GuestMemory()
        self.memory.write(ARRAYS, values.astype(np.float32).tobytes())
        self.memory.write(UNIFORMS, np.array([2.5, -1.0], np.float32).tobytes())
        self.key = VertexKey(words(SCALE), ((0, 12, 0),), 12, 3)
        self.pipeline = vertex_pipeline(self.key)

    def context(self) -> tuple[Any, Any]:
        room = (ctypes.c_char * (buffer_bytes(3, COUNT) + 64))()
        context: Any = VertexContext(memory=self.memory.base, uniforms=UNIFORMS, last=COUNT - 1)
        context.output = (ctypes.addressof(room) + 63) & ~63
        context.bases[0], context.strides[0] = ARRAYS, 12
        context.until, context.pitch = (COUNT + 15) // 16, self.key.pitch
        return context, room

    def rows(self, context: Any) -> bytes:
        return ctypes.string_at(context.output, buffer_bytes(3, COUNT - 1))

    def alone(self) -> bytes:
        context, _room = self.context()
        self.pipeline.shade(context)
        return self.rows(context)

    def shared(self, threads: int, exact: int) -> tuple[bool, bytes, Any]:
        context, _room = self.context()
        team = Team(threads)
        sharing = Sharing(team, context.address)
        team.provide(threads - 1)
        native = self.pipeline.native
        assert native is not None
        shade = ctypes.CFUNCTYPE(
            ctypes.c_int32, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int32
        )(sharing.state.shade)
        done = shade(sharing.state.address, native.address, exact, threads - 1)
        team.close()
        return bool(done), self.rows(context), context


def values() -> Any:
    return np.random.default_rng(3).standard_normal(3 * COUNT)


@pytest.mark.parametrize("threads", [2, 4])
def test_the_same_rows(threads: int) -> None:
    shading = Shading(values())
    done, rows, context = shading.shared(threads, exact=0)
    assert done
    assert rows == shading.alone()
    assert context.batches == (COUNT + 15) // 16


def test_special_floats_with_the_exact_build() -> None:
    odd = values()
    odd[::700], odd[3::900] = np.nan, 3e38
    shading = Shading(odd)
    due = shading.alone()
    done, rows, _context = shading.shared(3, exact=shading.pipeline.exact.address)
    assert done
    assert rows == due


def test_without_the_exact_build_it_is_not_done() -> None:
    odd = values()
    odd[16 * PIECE * 3 * 5] = 3e38  # in the sixth piece
    done, _rows, _context = Shading(odd).shared(3, exact=0)
    assert not done


def test_a_recorded_run_looks_the_same_and_uses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Sharing] = []

    class Noted(Sharing):
        def __init__(self, team: Team, template: int) -> None:
            super().__init__(team, template)
            made.append(self)

    monkeypatch.setattr(shader_table, "Sharing", Noted)
    run = RUNS / "glmark2_shading_shading_gouraud"
    pictures = [replay(run, threads=threads).image for threads in (1, 4)]
    assert pictures[0].tobytes() == pictures[1].tobytes()
    assert [bool(sharing.state.batches) for sharing in made] == [False, False, True, True]

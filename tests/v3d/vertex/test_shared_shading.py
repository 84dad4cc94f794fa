"""The vertices of a draw by several threads: the bytes that one thread makes."""

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
from vc4lab.v3d.vertex import shader_lookup
from vc4lab.v3d.vertex.context import VertexContext, VertexKey, buffer_bytes
from vc4lab.v3d.vertex.driver import _CONTEXT_BYTES as CONTEXT_BYTES
from vc4lab.v3d.vertex.driver import BATCHES_PER_PIECE, Sharing
from vc4lab.v3d.vertex.pipeline import vertex_pipeline

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
        self.template: Any = None
        """The context that is shared."""

    def context(self) -> tuple[Any, Any]:
        room = (ctypes.c_char * (buffer_bytes(3, COUNT) + 64))()
        context: Any = VertexContext(memory=self.memory.base, uniforms=UNIFORMS, last=COUNT - 1)
        context.output = (ctypes.addressof(room) + 63) & ~63
        context.bases[0], context.strides[0] = ARRAYS, 12
        context.until = (COUNT + 15) // 16
        return context, room

    def rows(self, context: Any) -> bytes:
        return ctypes.string_at(context.output, buffer_bytes(3, COUNT - 1))

    def alone(self) -> bytes:
        context, _room = self.context()
        self.pipeline.shade(context)
        return self.rows(context)

    def part(self, context: Any, number: int) -> bool:
        """The part of one thread, which finds all of the work."""
        self._share(context, 3)
        state, native = self.sharing.state, self.pipeline.native
        assert native is not None
        state.entry, state.exact, state.failed = native.address, 0, 0
        state.next, state.until = context.next_batch, context.until
        ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_int32)(state.part)(state.address, number)
        return not state.failed

    def together(self, context: Any, exact: int, helpers: int = 2) -> bool:
        """All threads."""
        self._share(context, 1 + helpers)
        native = self.pipeline.native
        assert native is not None
        shade = ctypes.CFUNCTYPE(
            ctypes.c_int32, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int32
        )(self.sharing.state.shade)
        return bool(shade(self.sharing.state.address, native.address, exact, helpers))

    def _share(self, context: Any, threads: int) -> None:
        if self.template is context:
            return
        self.template = context
        self.team = Team(threads)
        self.sharing = Sharing(self.team, context.address)
        self.team.provide(threads - 1)

    def shared(self, threads: int, exact: int) -> tuple[bool, bytes, Any]:
        context, _room = self.context()
        done = self.together(context, exact, threads - 1)
        self.team.close()
        return done, self.rows(context), context


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
    odd[16 * BATCHES_PER_PIECE * 3 * 5] = 3e38  # in the sixth piece
    done, _rows, _context = Shading(odd).shared(3, exact=0)
    assert not done


def test_a_helper_alone_makes_the_same_rows() -> None:
    """Everything that a shader needs is handed on: two arrays, marks, a range, HOST_INT."""
    shading = Shading(values())
    shading.memory.write(ARRAYS + 0x20000, values().astype(np.float32).tobytes())
    text = SCALE.replace("mov r1, vpm ; nop", "mov r1, vpm ; nop\n    mov host_int, r1")
    shading.key = VertexKey(words(text), ((0, 8, 0), (1, 4, 8)), 12, 3)
    shading.pipeline = vertex_pipeline(shading.key)
    marks = (ctypes.c_char * (COUNT + 16))(*(k % 3 == 0 for k in range(COUNT)))
    done: list[tuple[bytes, bytes]] = []
    for number in (-1, 0, 1, 2):
        context, _room = shading.context()
        asked = ctypes.c_uint8(0)
        context.first, context.last, context.used = 5, COUNT - 9, ctypes.addressof(marks)
        context.bases[1], context.strides[1] = ARRAYS + 0x20000, 4
        context.interrupts = ctypes.addressof(asked)
        if number < 0:
            shading.pipeline.shade(context)
        else:
            assert shading.part(context, number)
        done.append((shading.rows(context), bytes(asked)))
    assert done[0][1] == b"\1"
    assert done[1:] == done[:1] * 3


def test_helpers_have_contexts_of_their_own() -> None:
    shading = Shading(values())
    context, _room = shading.context()
    shading.part(context, 2)
    first, second = (
        VertexContext.python.from_address(shading.sharing.state.contexts + k * CONTEXT_BYTES)
        for k in range(2)
    )
    assert (first.memory, second.memory) == (0, shading.memory.base)


def test_a_draw_after_one_that_was_not_done() -> None:
    """Nothing is left of it, in the state nor in the helpers' contexts."""
    shading = Shading(values())
    due = shading.alone()
    context, _room = shading.context()
    assert shading.part(context, 1)
    state = shading.sharing.state
    VertexContext.python.from_address(state.contexts).stopped = 2
    ctypes.memset(context.output, 0, len(due))
    assert shading.part(context, 1)
    assert shading.rows(context) == due
    state.failed, state.batches, state.exact = 1, 7, 1
    ctypes.memset(context.output, 0, len(due))
    assert shading.together(context, 0)
    assert (shading.rows(context), context.batches) == (due, (COUNT + 15) // 16)


def test_batches_outside_of_the_range_are_left_alone() -> None:
    """Vertices are marked there, and it does not begin or end with a piece."""
    shading = Shading(values())
    context, _room = shading.context()
    context.next_batch, context.until = 5, 5 + 2 * BATCHES_PER_PIECE + 3
    assert shading.together(context, 0)
    assert context.batches == 2 * BATCHES_PER_PIECE + 3
    pitch = shading.key.pitch
    batches = [
        any(ctypes.string_at(context.output + k * pitch, pitch)) for k in range(3 * BATCHES_PER_PIECE + 16)
    ]
    assert [k for k, there in enumerate(batches) if there] == [*range(5, 5 + 2 * BATCHES_PER_PIECE + 3)]


def test_a_recorded_run_looks_the_same_and_uses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Sharing] = []

    class Noted(Sharing):
        def __init__(self, team: Team, template: int) -> None:
            super().__init__(team, template)
            made.append(self)

    monkeypatch.setattr(shader_lookup, "Sharing", Noted)
    run = RUNS / "glmark2_shading_shading_gouraud"
    pictures = [replay(run, threads=threads).image for threads in (1, 4)]
    assert pictures[0].tobytes() == pictures[1].tobytes()
    assert [bool(sharing.state.batches) for sharing in made] == [False, False, True, True]

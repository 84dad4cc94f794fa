"""What listeners hear of the draws of a frame: as a parser finds them in the tile lists."""

import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.support.frames import GREEN, RED, Frame, solid
from tests.support.jobs import nv_vertex, viewport

from vc4lab.diagnostics import Reporter
from vc4lab.drm.kernel.hardware import run_job
from vc4lab.drm.recorded.jobs import RecordedRun
from vc4lab.qpu.text.assembler import assemble
from vc4lab.records.codes import ListPrimitive
from vc4lab.records.control import DEFAULTS, STATE_FIELDS, build, parse_list
from vc4lab.records.payload import Compressed, ShaderState, State
from vc4lab.records.states import GlShaderState
from vc4lab.v3d.core import V3D
from vc4lab.v3d.events import DrawPrepared

JOBS = Path(__file__).parents[2] / "data" / "vc4-jobs"
RUNS = ("glmark2_ideas", "glmark2_bump_bump-render_normals", "sdl_testdraw2", "tri_arm64")
SQUARE = ((5, 5), (5, 110), (110, 5), (110, 110))
VERTICES = b"".join(nv_vertex(x, y, 0.5, 1.0) for x, y in SQUARE)


@dataclass
class Parsed:
    """A draw of a frame, as the lists have it."""

    record: int
    shader: int
    primitive: int
    primitives: int = 0
    vertices: set[int] = field(default_factory=set)


def initial_state() -> dict[str, bytes]:
    """What the records of state set, as it is before any of them."""
    fields = [one for members in STATE_FIELDS.values() for one in members]
    state = {one.name: bytes(one.width) for one in fields}
    for one in fields:
        if one.name in DEFAULTS:
            value = DEFAULTS[one.name]
            state[one.name] = (
                struct.pack("<f", value) if one.real else int(value).to_bytes(one.width, "little")
            )
    return state


def parsed(memory: Any, start: int, end: int, state: dict[str, bytes]) -> list[Parsed]:
    """The draws of a rendering list: primitives with the same state, which goes on from `state`."""
    found: dict[frozenset[Any], Parsed] = {}
    for record in parse_list(memory.read, start, end, follow=True):
        payload = record.payload
        if isinstance(payload, State):
            data = memory.read(record.address + 1, record.size - 1)
            for one in payload.state_fields:
                state[one.name] = data[one.offset : one.offset + one.width]
            if isinstance(payload, ShaderState):
                state["shader_kind"] = bytes([record.id])
        elif isinstance(payload, Compressed):
            shader = GlShaderState(int.from_bytes(state["shader_word"], "little")).address
            new = Parsed(record.address, shader, state["list_format"][0] & 15)
            draw = found.setdefault(frozenset(state.items()), new)
            draw.primitives += len(record.primitives)
            draw.vertices.update(vertex for p in record.primitives for vertex in p)
    return list(found.values())


@pytest.mark.parametrize(
    ("name", "engine"), [*((name, "jit") for name in RUNS), ("tri_arm64", "interpreter")]
)
def test_the_draws_of_recorded_jobs(name: str, engine: str) -> None:
    run = RecordedRun(JOBS / name, Reporter())
    v3d = V3D(run.memory, Reporter(), engine=engine)
    heard: list[DrawPrepared] = []
    v3d.listeners.draw_prepared.subscribe(heard.append)
    count, state = 0, initial_state()
    for job in run.jobs * 2:  # their pipelines are new, then known
        heard.clear()
        built = job.build(run.memory)
        assert run_job(v3d, built)
        expected = parsed(run.memory, built.render_start, built.render_end, state)
        assert [event[:-1] for event in heard] == [
            (d.record, d.shader, d.primitive, d.primitives, len(d.vertices)) for d in expected
        ]
        for event in heard:
            assert event.pipeline is not None
            assert event.shader is not None
            code = run.memory.u32(event.shader + 4)
            words = event.pipeline.key.program
            assert run.memory.read(code, 8 * len(words)) == b"".join(
                word.to_bytes(8, "little") for word in words
            )
            assert event.pipeline.address
        count += len(heard)
    assert count


def heard_of(frame: Frame, body: bytes, *, binned: bool = True) -> list[DrawPrepared]:
    heard: list[DrawPrepared] = []
    with frame.v3d.listeners.draw_prepared.subscribe(heard.append):
        if binned:
            frame.bin(viewport(frame.job) + body)
        else:
            frame.render(viewport(frame.job) + body)
    return heard


def test_a_draw_that_is_left_out_has_no_pipeline() -> None:
    frame = Frame()
    odd = "mov t0t, 0\nmov t0s, 0\n" * 40 + "nop ; nop ; thrend\nnop\nnop ; nop ; sbdone\n"
    shaders = [frame.nv_shader(text, VERTICES) for text in (solid(RED), odd, solid(GREEN))]
    events = heard_of(frame, b"".join(shader + build(33, mode=4, length=3) for shader in shaders))
    assert [event.pipeline is None for event in events] == [False, True, False]
    assert len({event.shader for event in events}) == 3
    assert frame.reporter.counts["FRG-001"]


def test_kinds_of_primitives_and_shaders() -> None:
    frame = Frame()
    solid_red = frame.nv_shader(solid(RED), VERTICES)
    body = solid_red + b"".join(build(33, mode=mode, length=4) for mode in (0, 1, 4, 5))
    events = heard_of(frame, body)
    assert [event.primitive for event in events] == [
        ListPrimitive.POINTS,
        ListPrimitive.LINES,
        ListPrimitive.TRIANGLES,
    ]
    assert [event.vertices for event in events] == [4, 4, 4]
    state = int.from_bytes(solid_red[1:5], "little")
    assert {event.shader for event in events} == {state}


def test_records_that_no_binner_saw() -> None:
    frame = Frame()
    shader = frame.nv_shader(solid(RED), VERTICES)
    indices = frame.job.put(bytes((0, 1, 2)))
    draws = build(33, mode=4, length=3), build(99, line_width=2.0)
    body = shader + draws[0] + draws[1] + build(32, mode=4, length=3, address=indices, maximum_index=2)
    events = heard_of(frame, body, binned=False)
    memory = frame.job.memory
    places = [
        record.address
        for record in parse_list(memory.read, frame.first, frame.first + 4096)
        if record.id in (32, 33)
    ]
    assert [event.record for event in events] == places[:2]
    assert [event.vertices for event in events] == [3, 3]


def test_an_inline_shader_is_its_program() -> None:
    frame = Frame()
    code = frame.job.put(assemble(solid(RED)).bytes, 8)
    corners = struct.pack("<6H", 80, 80, 80, 1600, 1600, 80)
    body = build(67, threading=1, code=code)
    body += build(41, type=4, length=3, address=frame.job.put(corners))
    (event,) = heard_of(frame, body)
    assert event.shader == code
    assert event.vertices == 0
    assert event.primitives == 3, "one in each tile that it meets"


def test_a_draw_without_a_shader() -> None:
    frame = Frame()
    (event,) = heard_of(frame, build(33, mode=4, length=3), binned=False)
    assert event.shader is event.pipeline is None
    assert frame.reporter.counts["CLE-013"]

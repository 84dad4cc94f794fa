"""More programs and addresses than are remembered: nothing grows, and nothing old is used."""

import struct
from typing import Any

import numpy as np
import pytest
from tests.support.frames import BLUE, GREEN, RED, Frame, solid
from tests.support.jobs import viewport

from vc4lab.diagnostics import Reporter
from vc4lab.memory import GuestMemory
from vc4lab.qpu.text.assembler import assemble
from vc4lab.records.control import build
from vc4lab.records.declarations import TileRenderingMode
from vc4lab.v3d.checks import addresses, draw_ranges, hints
from vc4lab.v3d.checks.addresses import AddressCheck
from vc4lab.v3d.checks.hints import Lint
from vc4lab.v3d.draws import pipelines
from vc4lab.v3d.events import Use
from vc4lab.v3d.state import render_state
from vc4lab.v3d.state.render_state import ProgramCache
from vc4lab.v3d.unknowns import DEFAULT_UNKNOWNS
from vc4lab.v3d.vertex import shader_lookup, shading

COLOURS = (RED, GREEN, BLUE, 0xFFFFFFFF)
LIMITS: tuple[tuple[Any, str], ...] = (
    (render_state, "KNOWN_PROGRAMS"),
    (pipelines, "MAX_KNOWN"),
    (shading, "_MAX_PIPELINES"),
    (shader_lookup, "MAX_PIPELINES"),
    (draw_ranges, "MAX_SHADERS"),
    (addresses, "MAX_RANGES"),
    (hints, "MAX_MODES"),
)


def copies(words: int, number: int) -> str:
    """A program that copies its attributes; with another number it is another program."""
    text = f"ldi vr_setup, 0x{words}01a00\nldi vw_setup, 0x1a00\nldi r0, {number}\nnop\nnop\n"
    return text + "mov vpm, vpm ; nop\n" * words + "nop ; nop ; thrend\nnop\nnop\n"


class Stripes:
    """A triangle for each of four shaders, side by side."""

    def __init__(self, engine: str) -> None:
        self.frame = Frame(64, 64, engine=engine)
        job = self.frame.job
        self.codes = [job.program(solid(colour)) for colour in COLOURS]
        self.shaders = []
        for number, code in enumerate(self.codes):
            corners = ((16 * number + 1, 2), (16 * number + 15, 2), (16 * number + 1, 60))
            clip = b"".join(struct.pack("<4f", 0, 0, 0, 1) for _ in corners)
            screen = b"".join(struct.pack("<hhff", 16 * x, 16 * y, 0.5, 1.0) for x, y in corners)
            record = struct.pack("<HBBII", 1, 0, 0, code, 0)
            record += struct.pack("<HBBII", 0, 2, 12, job.program(copies(3, number)), 0)
            record += struct.pack("<HBBII", 0, 3, 28, job.program(copies(7, number)), 0)
            record += struct.pack("<IBBBB", job.put(clip), 15, 16, 0, 0)
            record += struct.pack("<IBBBB", job.put(screen), 11, 12, 0, 16)
            self.shaders.append(build(64, address=job.put(record), attributes=2))

    def draw(self, turn: int) -> list[set[int]]:
        """The colours of each stripe, after the fragment programs have taken each other's place."""
        for number, code in enumerate(self.codes):
            colour = COLOURS[(number + turn) % len(COLOURS)]
            self.frame.job.memory.write(code, assemble(solid(colour)).bytes)
        draw = build(33, mode=4, length=3, first=0)
        body = b"".join(shader + draw for shader in self.shaders)
        picture = self.frame.bin(viewport(self.frame.job) + body)
        stripes = [picture[:, 16 * n : 16 * n + 16] for n in range(len(COLOURS))]
        return [set(np.unique(stripe[8:40, 2:4]).tolist()) for stripe in stripes]

    def remembered(self) -> list[int]:
        """How many there are of what the limits limit."""
        lint, preparer = self.frame.v3d.lint, self.frame.v3d.frames.preparer
        rooms: tuple[Any, ...] = (
            preparer.programs._met,
            preparer.pipelines._known,
            preparer.vertices._pipelines,
            preparer.vertices.shaders._places,
            preparer.ranges._known,
            lint.addresses._known,
            lint.addresses._lines,
            lint._quiet,
        )
        return [len(room) for room in rooms]


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
@pytest.mark.parametrize("limit", [1, 3])
def test_frames_of_more_shaders_than_are_remembered(
    engine: str, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name in LIMITS:
        monkeypatch.setattr(module, name, limit)
    stripes = Stripes(engine)
    for turn in (0, 1, 2, 0, 3):
        expected = [{COLOURS[(number + turn) % 4]} for number in range(4)]
        assert stripes.draw(turn) == expected
        assert max(stripes.remembered()) <= limit
    assert not stripes.frame.reporter.items, stripes.frame.reporter.summary()


def test_findings_about_ranges_that_were_forgotten_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses, "MAX_RANGES", 4)
    check = AddressCheck(Reporter(), 32 << 20)
    for _ in range(3):
        check.uses(Use.CODE, 0xC0100004, 8)
    assert check.reporter.counts == {"MEM-002": 1}
    for place in range(3):
        check.uses(Use.CODE, 0xC0200000 + 0x1000 * place, 8)
        check.uses(Use.CODE, 0xC0100004, 8)
    assert check.reporter.counts == {"MEM-002": 1}
    check.uses(Use.CODE, 0xC0300000, 8)
    check.uses(Use.CODE, 0xC0100004, 8)
    assert check.reporter.counts == {"MEM-002": 2}


def test_a_mode_that_was_forgotten_is_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mode without findings counts as known; its address is looked at when it comes anew."""
    monkeypatch.setattr(hints, "MAX_MODES", 2)
    monkeypatch.setattr(addresses, "MAX_RANGES", 1)
    lint = Lint(Reporter(), 32 << 20)
    outside = TileRenderingMode.make(address=64 << 20, width=64, height=64, format=1)
    inside = TileRenderingMode.make(address=1 << 20, width=64, height=64, format=1)
    for place, mode, count in (
        (0, outside, 1), (16, inside, 1), (0, outside, 1), (32, inside, 1), (0, outside, 2),
    ):  # fmt: skip
        assert lint.rendering_mode(0x1000 + place, mode)
        assert sum(lint.reporter.counts.values()) == count, place


def test_programs_at_more_addresses_than_are_remembered() -> None:
    memory = GuestMemory()
    programs = ProgramCache(memory, Reporter(), DEFAULT_UNKNOWNS)
    data, other = (assemble(solid(colour)).bytes for colour in (RED, GREEN))
    places = [0x10_0000 + 64 * k for k in range(5000)]
    for place in places:
        memory.write(place, data)
        assert programs.get(place).address == place
    assert len(programs._programs) <= 4096
    last = programs.get(places[-1])
    assert programs.get(places[-1]) is last
    memory.write(places[-1], other)
    assert programs.get(places[-1]).words != last.words
    memory.write(places[-1], data)
    assert programs.get(places[-1]) is last, "the same object, by which pipelines are known"

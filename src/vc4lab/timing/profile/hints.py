"""Hints in words about a frame: what costs it time, and what would not.

Each hint is a function of a frame's tables. Where it says how much faster, the model was run again
(`Question.run`). What each code means: `diagnostics/catalogue/performance.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vc4lab.qpu.isa.accesses import Kind, accesses
from vc4lab.timing.frames.frame import Frame, count_bits, quads_of
from vc4lab.timing.frames.vertex_batches import collect_batches, rendering_batches
from vc4lab.timing.profile.late_scoreboard import PIXELS, with_late_scoreboard
from vc4lab.timing.profile.result import Hint
from vc4lab.timing.profile.tiled import requests_of, with_tiled
from vc4lab.v3d.state.frame_mode import COLOUR
from vc4lab.v3d.tiles.job import OP_LOAD, OP_LOAD_FULL, OP_STORE, OP_STORE_FULL
from vc4lab.v3d.tmu.texture_state import LevelLayout, MipMode

WORTH = 0.02
"""A share of the frame's clocks or quads below which a hint is not given."""
FASTER = 1.02
AGAIN = 1.3
"""Vertices that are shaded, for each that there is, from which a hint is given."""
IN_TILES = 2.5
OVERDRAW = 3.0
SMALL = 4.0
"""Quads of a triangle."""
LINES_OF_QUAD = 3.0
CLEAR_PROGRAM = 16
"""Instructions of a program that may be a clear."""
MANY_JOBS = 4


@dataclass(frozen=True)
class Question:
    """A frame, what it takes, and how to run the model on another one."""

    frame: Frame
    clocks: int
    run: Callable[[Frame], int] | None = None


def hints_of(question: Question) -> tuple[Hint, ...]:
    """All hints about a frame, in the order of their codes."""
    if question.frame.lost or not len(question.frame.draws):
        return ()
    return tuple(hint for rule in RULES for hint in rule(question))


@dataclass(frozen=True)
class Facts:
    """The facts about a frame that hints about a whole run need.

    stored: guest addresses where depth is stored; loaded: what is loaded from where.
    """

    primitives: int
    stored: frozenset[int]
    stored_bytes: int
    loaded: frozenset[int]


def facts_of(frame: Frame) -> Facts:
    """The facts about a frame."""
    ops = frame.ops
    depth = [n for n, surface in enumerate(frame.surfaces) if surface.buffer != COLOUR]
    stores = (ops["kind"] == OP_STORE) & np.isin(ops["surface"], depth)
    loads = np.isin(ops["kind"], (OP_LOAD, OP_LOAD_FULL))
    return Facts(
        int(frame.draws["primitives"].sum()),
        frozenset(map(int, np.unique(ops["address"][stores]))),
        int(ops["bytes"][stores].sum()),
        frozenset(map(int, np.unique(ops["address"][loads]))),
    )


def run_hints(facts: Sequence[Facts]) -> tuple[Hint, ...]:
    """Hints about all frames of a run together."""
    small = sum(0 < one.primitives <= 2 for one in facts)
    found = []
    if len(facts) >= MANY_JOBS and 2 * small >= len(facts):
        text = (
            f"{small} of {len(facts)} jobs draw two primitives or fewer: one job per quad; drawn "
            "in one job they would load and store their tiles once"
        )
        found.append(Hint("PERF-003", text))
    return (*found, *_stores(facts))


def _stores(facts: Sequence[Facts]) -> Iterator[Hint]:
    """Depth that is stored and never loaded again."""
    loaded: set[int] = set()
    unused = []
    for one in reversed(facts):
        if one.stored_bytes and not loaded & one.stored:
            unused.append(one.stored_bytes)
        loaded |= one.loaded
    if unused:
        yield Hint(
            "PERF-008",
            f"{len(unused)} of {len(facts)} frames store depth or stencil ({max(unused)} bytes a "
            "frame) that no later frame of the run loads",
        )


def raster_textures(question: Question) -> Iterator[Hint]:
    """PERF-001"""
    frame = question.frame
    textures = frame.textures[frame.textures["layout"] == LevelLayout.RASTER]
    for address in dict.fromkeys(map(int, textures["address"])):
        mine = textures[textures["address"] == address]
        before = _lines(frame, mine)
        if not before:
            continue
        other = with_tiled(frame, mine)
        after = _lines(other, mine)
        first = mine[0]
        text = (
            f"a raster texture ({first['width']}x{first['height']}, {first['bits']} bits, at "
            f"0x{address:08x}): "
        )
        draw, clocks = int(first["draw"]), None
        if question.run is not None:
            clocks = question.run(other)
            gain = question.clocks / max(clocks, 1)
            if gain < FASTER:
                continue
            text += f"tiled, the frame would be {gain:.2f} times as fast, with "
        elif before < FASTER * after:
            continue
        text += f"{before / max(after, 1):.1f} times fewer lines to read"
        yield Hint("PERF-001", text, draw, clocks)


def _lines(frame: Frame, textures: Any) -> int:
    return sum(
        int(frame.requests["lines"][requests_of(frame, int(t["draw"]), int(t["number"]))].sum())
        for t in textures
    )


def early_scoreboard(question: Question) -> Iterator[Hint]:
    """PERF-002"""
    frame = question.frame
    known: set[int] = set()
    for draw, quads in _large_draws(frame):
        words, number = _program(frame, draw), int(frame.draws["program"][draw])
        other = None if number in known else with_late_scoreboard(frame, draw)
        known.add(number)
        if other is None:
            continue
        first, later = _first_pixels(words), _first_pixels(_program(other, draw))
        text = (
            f"the scoreboard is taken too early: at instruction {first} of {len(words)} of the "
            f"fragment program, where it could be {later} ({quads} quads)"
        )
        clocks = None
        if question.run is not None:
            clocks = question.run(other)
            gain = question.clocks / max(clocks, 1)
            if gain < FASTER:
                continue
            text += f"; then the frame would be {gain:.2f} times as fast"
        elif later - first < len(words) // 3:
            continue
        yield Hint("PERF-002", text, draw, clocks)


def _first_pixels(words: Sequence[int]) -> int:
    """The first instruction that waits for pixels."""
    return next(n for n, word in enumerate(words) if accesses(word).kinds & PIXELS)


def vertices_again(question: Question) -> Iterator[Hint]:
    """PERF-004 and PERF-005"""
    frame = question.frame
    named = shaded = distinct = 0
    for part in frame.binnings:
        firsts = np.append(part.draws["first_vertex"], len(part.vertices)).astype(np.int32)
        shaded += int(collect_batches(part.vertices, firsts).sizes.sum())
        named += len(part.vertices)
        for draw in part.draws:
            first, count = int(draw["first_vertex"]), int(draw["vertices"])
            distinct += len(np.unique(part.vertices[first : first + count]))
    if distinct > 64 and shaded > AGAIN * distinct:
        yield Hint(
            "PERF-004",
            f"vertices are shaded {shaded / distinct:.2f} times each for the binner: {shaded} for "
            f"{distinct} different ones ({named} are named)",
        )
    drawn = int(frame.draws["vertices"].sum())
    in_tiles = int(rendering_batches(frame).sizes.sum())
    if drawn > 64 and in_tiles > IN_TILES * drawn:
        yield Hint(
            "PERF-005",
            f"vertices are shaded {in_tiles / drawn:.2f} times each while tiles are drawn: "
            f"{in_tiles} for {drawn}; each tile shades its own",
        )


def clear_by_drawing(question: Question) -> Iterator[Hint]:
    """PERF-006"""
    frame, lists = question.frame, question.frame.lists
    if not len(lists):
        return
    _, firsts = np.unique(lists["tile"], return_index=True)
    draws, counts = np.unique(lists["draw"][firsts], return_counts=True)
    draw = int(draws[counts.argmax()])
    row, mine = frame.draws[draw], lists[lists["draw"] == draw]
    plain = not len(frame.textures[frame.textures["draw"] == draw]) and not row["varyings"]
    quads = int(mine["quads_covered"].sum())
    covers = quads >= 0.95 * _quads_of_frame(frame)
    words = _program(frame, draw)
    if plain and covers and 0 < len(words) <= CLEAR_PROGRAM and int(row["primitives"]) <= 2:
        yield Hint(
            "PERF-006",
            f"the frame is cleared by drawing: {quads} quads of one colour, where the tile buffer "
            "is cleared for nothing",
            draw,
        )


def loads_of_tiles(question: Question) -> Iterator[Hint]:
    """PERF-007"""
    ops = question.frame.ops
    loads = np.isin(ops["kind"], (OP_LOAD, OP_LOAD_FULL))
    moved = np.isin(ops["kind"], (OP_STORE, OP_STORE_FULL))
    loaded, stored = int(ops["bytes"][loads].sum()), int(ops["bytes"][moved].sum())
    if loaded:
        yield Hint(
            "PERF-007",
            f"{int(loads.sum())} loads of tiles: {loaded} bytes are read before the tiles are "
            f"drawn, {stored} are stored",
        )


def hidden_quads(question: Question) -> Iterator[Hint]:
    """PERF-009"""
    frame = question.frame
    owner = frame.lists["draw"][frame.list_of_block]
    shaded = count_bits(quads_of(frame.blocks["flags"]))
    passed = count_bits(quads_of(frame.blocks["passed"]))
    late = ~frame.draws["early_z"][owner]
    total, hidden = int(shaded.sum()), int((shaded - passed)[late].sum())
    if total and hidden > 0.2 * total:
        yield Hint(
            "PERF-009",
            f"{hidden} of {total} quads are shaded though they are hidden, in draws without early "
            "Z; with it, and drawn from front to back, most would be left out",
        )


def alone_on_its_qpu(question: Question) -> Iterator[Hint]:
    """PERF-010"""
    frame = question.frame
    for draw, quads in _large_draws(frame):
        samples = any(accesses(word).kinds & Kind.TMU_LOAD for word in _program(frame, draw))
        if samples and int(frame.draws["threads"][draw]) == 1:
            yield Hint(
                "PERF-010",
                f"a program that samples textures runs alone on its QPU ({quads} quads): while it "
                "waits for a texel, nothing else runs there",
                draw,
            )


def overdraw(question: Question) -> Iterator[Hint]:
    """PERF-011"""
    frame = question.frame
    shaded = int(count_bits(quads_of(frame.blocks["flags"])).sum())
    whole = _quads_of_frame(frame)
    if shaded > OVERDRAW * whole:
        yield Hint("PERF-011", f"each pixel is drawn {shaded / whole:.1f} times on the average")


def small_triangles(question: Question) -> Iterator[Hint]:
    """PERF-012"""
    totals = question.frame.totals()
    quads, triangles = totals["covered_quads"], totals["covered_primitives"]
    if triangles > 500 and quads < SMALL * triangles:
        yield Hint(
            "PERF-012",
            f"triangles are smaller than vectors: {quads / triangles:.1f} quads for each of "
            f"{triangles} that cover pixels",
        )


def no_mip_levels(question: Question) -> Iterator[Hint]:
    """PERF-013"""
    frame = question.frame
    for texture in frame.textures:
        tiled = texture["layout"] != LevelLayout.RASTER
        if not tiled or texture["mips"] != MipMode.BASE or texture["cube"]:
            continue
        draw, number = int(texture["draw"]), int(texture["number"])
        mine = requests_of(frame, draw, number)
        owner = np.repeat(np.arange(len(frame.blocks)), frame.blocks["requests"])[mine]
        quads = int(count_bits(quads_of(frame.blocks["flags"][owner])).sum())
        lines = int(frame.requests["lines"][mine].sum())
        if quads > WORTH * _quads_of_frame(frame) and lines > LINES_OF_QUAD * quads:
            yield Hint(
                "PERF-013",
                f"a minified texture without mip levels ({texture['width']}x{texture['height']}, "
                f"at 0x{int(texture['address']):08x}): {lines / quads:.1f} lines of texels a quad",
                draw,
            )


def strewn_attributes(question: Question) -> Iterator[Hint]:
    """PERF-014"""
    frame = question.frame
    for draw in range(len(frame.draws)):
        mine = np.sort(frame.attributes[frame.attributes["draw"] == draw], order="address")
        vertices = int(frame.draws["vertices"][draw])
        used = fetched = 0
        end = -1
        for array in mine:
            used += int(array["bytes"])
            if int(array["address"]) >= end:  # not beside the one before
                fetched += max(int(array["stride"]), int(array["bytes"]))
                end = int(array["address"]) + int(array["stride"])
        if vertices > 256 and 2 * used < fetched:
            yield Hint(
                "PERF-014",
                f"{used} of {fetched} bytes that are fetched for each of {vertices} vertices are used",
                draw,
            )


RULES: tuple[Callable[[Question], Iterator[Hint]], ...] = (
    raster_textures,
    early_scoreboard,
    vertices_again,
    clear_by_drawing,
    loads_of_tiles,
    hidden_quads,
    alone_on_its_qpu,
    overdraw,
    small_triangles,
    no_mip_levels,
    strewn_attributes,
)


def _quads_of_frame(frame: Frame) -> int:
    samples = 4 if frame.multisample else 1
    return max(frame.width * frame.height * samples // 4, 1)


def _large_draws(frame: Frame) -> Iterator[tuple[int, int]]:
    """Draws that are worth a hint, and their quads."""
    blocks = frame.blocks
    owner = frame.lists["draw"][frame.list_of_block]
    quads = np.bincount(owner, count_bits(quads_of(blocks["flags"])), len(frame.draws))
    for draw, count in enumerate(quads):
        if count > WORTH * _quads_of_frame(frame):
            yield draw, int(count)


def _program(frame: Frame, draw: int) -> tuple[int, ...]:
    """The words of a draw's fragment program."""
    number = int(frame.draws["program"][draw])
    return frame.programs[number] if 0 <= number < len(frame.programs) else ()

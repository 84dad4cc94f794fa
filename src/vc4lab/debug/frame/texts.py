"""Histories and draws as lines of text, and as JSON."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from vc4lab.debug.frame.pixel import followed, loaded_by
from vc4lab.debug.frame.places import Position
from vc4lab.debug.frame.touch import DRAWN, HIDDEN, STENCILLED, UNCOVERED, Touch, state_dict
from vc4lab.debug.frame.watch import ACCESS_NAMES
from vc4lab.records.states import ConfigurationBits

if TYPE_CHECKING:
    from vc4lab.debug.frame.copies import TextureSource
    from vc4lab.debug.frame.pixel import PixelHistory
    from vc4lab.debug.frame.runs import FrameRuns
    from vc4lab.debug.frame.watch import PixelState, ProgramStep, Texel

INDENT = "    "
MOST_TEXELS = 4
"""Texture requests of a touch that are printed."""
MOST_FOLLOWED = 16
"""Histories of texels that are looked for after that of a pixel."""
_SHAPES = {1: "point", 2: "line", 3: "triangle"}


def as_float(word: int) -> float:
    """A word as a single."""
    (value,) = struct.unpack("<f", (word & 0xFFFFFFFF).to_bytes(4, "little"))
    return float(value)


def rgba(word: int, *, is_blue_first: bool) -> str:
    """A colour word as #rrggbbaa."""
    parts = list((word & 0xFFFFFFFF).to_bytes(4, "little"))
    if is_blue_first:
        parts[0], parts[2] = parts[2], parts[0]
    return "#" + bytes(parts).hex()


def colour_text(state: PixelState, *, is_blue_first: bool) -> str:
    """The colour of a pixel; of its samples where they differ."""
    found = []
    for words in state.colours:
        if len(words) > 1:
            found.append(":".join(f"{word:08x}" for word in words))
        else:
            found.append(rgba(words[0], is_blue_first=is_blue_first))
    return found[0] if len(set(found)) == 1 else "/".join(found)


def depth_text(state: PixelState) -> str:
    """Depth of a pixel, or of its samples."""
    found = [f"{one:06x}" for one in state.depths]
    return found[0] if len(set(found)) == 1 else "/".join(found)


def stencil_text(state: PixelState) -> str:
    """Stencil of a pixel, or of its samples."""
    found = [f"{one:02x}" for one in state.stencils]
    return found[0] if len(set(found)) == 1 else "/".join(found)


def touch_name(touch: Touch) -> str:
    """Which primitive it was."""
    vertices = touch.listed.vertices if touch.listed is not None else ()
    shape = _SHAPES.get(len(vertices), "primitive")
    which = f"draw {touch.draw.number}" if touch.draw is not None else "a list of its own"
    number = f" {touch.primitive}" if touch.primitive is not None else ""
    names = ", ".join(map(str, vertices))
    return f"{which}, {shape}{number} (vertices {names})"


def touch_lines(touch: Touch, *, is_blue_first: bool) -> Iterator[str]:
    """A touch, with what it changed and read."""
    block = touch.block
    before, after = touch.before, touch.after
    why = f": {touch.why}" if touch.why else ""
    yield f"{touch_name(touch)}: {touch.outcome}{why}"
    old, new = (colour_text(one, is_blue_first=is_blue_first) for one in (before, after))
    if old != new or touch.outcome == DRAWN:
        yield f"  colour   {old} -> {new}"
    for name, text in (("depth", depth_text), ("stencil", stencil_text)):
        if text(before) != text(after):
            yield f"  {name:8} {text(before)} -> {text(after)}"
    if touch.outcome == UNCOVERED:
        return
    facing = ", faces backwards" if block.reverse else ""
    samples = f", samples {block.samples:04b}" if len(before.colours) > 1 else ""
    yield f"  fragment depth {block.depth:06x}, W {block.w:.7g}{samples}{facing}"
    if touch.outcome in (HIDDEN, STENCILLED):
        address = touch.draw.where(ConfigurationBits.id) if touch.draw is not None else None
        where = "" if address is None else f" at 0x{address:08x}"
        yield f"  record   96{where}: {ConfigurationBits(touch.config & 0xFFFFFF).text()}"
    if block.varyings:
        yield "  varyings " + ", ".join(f"{one:.6g}" for one in block.varyings)
    for one, source in list(zip(block.texels, touch.sources, strict=True))[:MOST_TEXELS]:
        yield f"  texture  {texel_text(one)}"
        if source is not None:
            yield f"           {source.text()}"
    if len(block.texels) > MOST_TEXELS:
        yield f"           (and {len(block.texels) - MOST_TEXELS} more requests)"
    length = len(block.draw.program)
    yield f"  program  0x{touch.code:08x}, {length} instructions, uniforms 0x{block.uniforms_address:08x}"
    at = touch.code - block.draw.program.address
    for step in block.program:
        yield f"    {written_text(step, block.lane, at)}"


def texel_text(one: Texel) -> str:
    """A texture request with what came."""
    places = ", ".join(f"{as_float(word):.6g}" for word in one.coordinates)
    return f"{one.number} at ({places}): " + " ".join(f"{word:08x}" for word in one.words)


def written_text(step: ProgramStep, lane: int, at: int = 0) -> str:
    """An instruction with what it wrote in a lane; `at`: where address 0 is."""
    found = []
    for name, value, mask in step.writes:
        if mask is None or mask[lane]:
            word = value[lane]
            found.append(f"{name}={word:08x} ({as_float(word):.6g})")
        else:
            found.append(f"{name}: not here")
    return f"{step.address + at:08x}  {step.text:60} {', '.join(found)}".rstrip()


def history_lines(history: PixelHistory, *, every: bool = False) -> Iterator[str]:
    """A history, after those of jobs that drew what its tile was loaded from.

    every: with primitives that share a block of 4x4 with the pixel, but do not cover it.
    """
    if history.earlier is not None:
        yield from history_lines(history.earlier, every=every)
    blue = history.is_blue_first
    job = history.job
    name = f" ({job.name})" if job.name else ""
    final = _final_text(history)
    x, y = history.tile
    title = f"frame {history.frame}, job {job.number}{name}, pixel {history.x},{history.y}: {final}"
    if history.earlier is not None and not history.touches:
        yield f"{title}, as it was loaded: nothing touches it"
        return
    yield title
    covering = [one for one in history.touches if one.outcome != UNCOVERED]
    place = "samples" if job.colour is None else f"surface 0x{job.colour.address:08x}"
    yield (
        f"{place}, tile at {x},{y}: {len(history.primitives)} primitives,"
        f" of which {len(covering)} cover the pixel"
    )
    if history.loaded is not None:
        whose = "" if history.earlier is not None else ", which no job of this frame has drawn before"
        yield f"the tile was loaded from 0x{history.loaded:08x}{whose}"
    before = history.before
    if before is not None:
        yield (
            f"before: colour {colour_text(before, is_blue_first=blue)}, depth {depth_text(before)},"
            f" stencil {stencil_text(before)}"
        )
    for touch in history.touches:
        if every or touch.outcome != UNCOVERED:
            yield from touch_lines(touch, is_blue_first=blue)


def _final_text(history: PixelHistory) -> str:
    """The pixel as it was stored."""
    colour = history.job.colour
    if colour is None or history.final is None:
        return colour_text(history.end, is_blue_first=history.is_blue_first)
    if colour.bits == 32:
        return rgba(history.final, is_blue_first=history.is_blue_first)
    return f"{history.final:0{colour.bits // 4}x}"


def followed_lines(
    frame: FrameRuns, history: PixelHistory, *, every: bool = False, left: list[int] | None = None
) -> Iterator[str]:
    """A history, and after it those of the texels that were drawn with, indented.

    left: how many more histories are looked for; one of each texture of a touch is.
    """
    left = [MOST_FOLLOWED] if left is None else left
    yield from history_lines(history, every=every)
    chain: list[PixelHistory] = []
    one: PixelHistory | None = history
    while one is not None:
        chain.insert(0, one)
        one = one.earlier
    first = chain[0]
    if first.loaded is not None and left[0]:
        made = loaded_by(frame, first)
        if made is not None:
            left[0] -= 1
            yield f"{INDENT}the tile was loaded from what frame {made.frame} has drawn:"
            for line in followed_lines(_frame_of(frame, made), made, every=every, left=left):
                yield INDENT + line
    for part in chain:
        for touch in part.touches:
            if touch.outcome == DRAWN:
                yield from _sources_lines(frame, part, touch, every=every, left=left)


def _frame_of(frame: FrameRuns, history: PixelHistory) -> FrameRuns:
    """The frame of a history that was followed to from a frame."""
    return next((one for one in reversed(frame.before) if one.number == history.frame), frame)


def _sources_lines(
    frame: FrameRuns, history: PixelHistory, touch: Touch, *, every: bool, left: list[int]
) -> Iterator[str]:
    """The histories of what a touch has sampled: of each texture the request in the middle."""
    textures: dict[int, list[TextureSource]] = {}
    for source in touch.sources:
        if source is not None:
            textures.setdefault(source.address, []).append(source)
    for found in textures.values():
        source = found[len(found) // 2]
        if not left[0]:
            yield f"{INDENT}(more is not followed)"
            return
        made = followed(frame, history, source)
        yield f"{INDENT}{touch_name(touch)} sampled {source.text()}" + (
            ":" if made is not None else ", which no captured job has drawn"
        )
        if made is None:
            continue
        left[0] -= 1
        where = _frame_of(frame, made)
        for line in followed_lines(where, made, every=every, left=left):
            yield INDENT + line


def position_of(history: PixelHistory, touch: Touch) -> Position:
    """Return the position of a touch in its capture."""
    draw = 0 if touch.draw is None else touch.draw.number
    return Position(history.frame, history.job.number, draw, touch.primitive)


def touch_dict(touch: Touch) -> dict[str, Any]:
    """A touch as JSON has it. Words of colours are hexadecimal, as the tile buffer has them."""
    block = touch.block
    return {
        "draw": None if touch.draw is None else touch.draw.number,
        "record": None if touch.draw is None else touch.draw.address,
        "primitive": touch.primitive,
        "vertices": list(touch.listed.vertices) if touch.listed is not None else [],
        "covered": touch.is_covered,
        "outcome": touch.outcome,
        "why": touch.why,
        "config": touch.config,
        "before": state_dict(touch.before),
        "after": state_dict(touch.after),
        "depth": block.depth,
        "samples": block.samples,
        "reverse": block.reverse,
        "w": block.w,
        "varyings": list(block.varyings),
        "program": touch.code,
        "uniforms": [f"{word:08x}" for word in block.uniforms],
        "texels": [
            {
                "request": one.number,
                "coordinates": [as_float(word) for word in one.coordinates],
                "words": [f"{word:08x}" for word in one.words],
                "source": None if source is None else source._asdict(),
            }
            for one, source in zip(block.texels, touch.sources, strict=True)
        ],
        "writes": [
            {
                "kind": ACCESS_NAMES[one.kind],
                "sample": one.sample,
                "word": one.word,
                "value": f"{one.value:08x}",
                "takes_part": one.takes_part,
            }
            for one in block.writes
        ],
        "steps": [
            {
                "address": step.address + touch.code - block.draw.program.address,
                "text": step.text,
                "writes": {name: f"{value[block.lane]:08x}" for name, value, _mask in step.writes},
            }
            for step in block.program
        ],
    }


def history_dict(history: PixelHistory, *, every: bool = False) -> dict[str, Any]:
    """A history as JSON has it."""
    colour = history.job.colour
    return {
        "frame": history.frame,
        "x": history.x,
        "y": history.y,
        "job": history.job.number,
        "surface": None if colour is None else colour.address,
        "tile": list(history.tile),
        "primitives": len(history.primitives),
        "blue_first": history.is_blue_first,
        "final": None if history.final is None else f"{history.final:08x}",
        "end": state_dict(history.end),
        "loaded": history.loaded,
        "earlier": None if history.earlier is None else history_dict(history.earlier, every=every),
        "touches": [
            {"position": str(position_of(history, one)), **touch_dict(one)}
            for one in history.touches
            if every or one.outcome != UNCOVERED
        ],
    }

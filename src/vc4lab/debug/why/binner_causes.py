"""Why the binner puts nothing into tile lists, or the renderer draws none of them: sentences."""

from __future__ import annotations

import numpy as np

from vc4lab.debug.why.evidence import Cause, Evidence
from vc4lab.debug.why.stages import Group, many
from vc4lab.memory import MEMORY_MASK
from vc4lab.records.declarations import (
    Branch,
    BranchToSublist,
    IndexedPrimitives,
    TileBinningMode,
    VertexArrayPrimitives,
)
from vc4lab.records.payload import Primitives, ShaderState
from vc4lab.records.states import ClipWindow, ViewportOffset
from vc4lab.v3d.state.render_state import INDEX_8

FAR_OUT = 8.0
"""So many times Wc away, positions are thought to be in other units."""
_WORD = 0xFFFFFFFF


def no_draw(evidence: Evidence) -> Cause | None:
    """A binning list that sets everything up, and draws nothing; None: it means to draw nothing."""
    shaders = evidence.executed(*_kinds(ShaderState), thread=0)
    draws = evidence.executed(*_kinds(Primitives), thread=0)
    if draws or not shaders or evidence.lists.binning is None:
        return None
    start, end = evidence.lists.binning
    return Cause(
        "DRAW-001",
        f"the binning list from 0x{start:08x} to 0x{end:08x} names a shader record, but has no primitive "
        f"record ({VertexArrayPrimitives.id}, {IndexedPrimitives.id}) after it: there is nothing to draw",
        shaders[-1],
    )


def _kinds(base: type) -> list[type]:
    from vc4lab.records.control import RECORDS

    return [kind for kind in RECORDS.values() if issubclass(kind, base)]


def view_volume(evidence: Evidence, group: Group) -> Cause:
    """Vertices that the clipper finds outside."""
    corners = evidence.corners(group)
    text = f"{_lost(group, group.rejected)} outside of the view volume"
    if corners is not None and corners.clip is not None and len(corners.number):
        x, y, z, w = (float(value) for value in corners.clip[0])
        clip = corners.clip
        planes = corners.common_planes
        if not np.isfinite(clip).all():
            text += ", because clip coordinates are no numbers: were uniforms or attributes never set?"
        elif (clip[:, 3] == 0).all():
            text += ": Wc is 0 for all vertices (the coordinate shader writes Xc, Yc, Zc, Wc first)"
        elif (clip[:, 3] < 0).all():
            text += ": Wc is negative for all vertices: they are on the other side of the viewer"
        else:
            text += f": all vertices are {planes[0]}" if planes else ", each beyond a plane of it"
            if (np.abs(clip[:, :2]).max(1) > FAR_OUT * np.abs(clip[:, 3])).any():
                text += "; are X and Y in pixels? Clip coordinates go from -Wc to Wc"
        text += f"; vertex {corners.number[0]} has Xc {x:g}, Yc {y:g}, Zc {z:g}, Wc {w:g}"
    return Cause("DRAW-002", text, _draw(group), group.text())


def area(evidence: Evidence, group: Group) -> Cause:
    """Vertices on a line, or in one place."""
    corners = evidence.corners(group)
    text = f"{_lost(group, group.degenerate)} without an area"
    if corners is not None and len(corners.number):
        if (corners.screen == corners.screen[0]).all():
            x, y = corners.screen[0]
            what = (
                "all vertices are" if len(corners.number) > 1 else f"only vertex {corners.number[0]} is used,"
            )
            text += f": {what} at pixel ({x:g}, {y:g})"
        else:
            text += ": their vertices lie on one line"
        text += _index_guess(evidence, group) or _source(group)
    return Cause("DRAW-003", text, _draw(group), group.text())


def _index_guess(evidence: Evidence, group: Group) -> str:
    """Bytes of which each second one is 0 are 16-bit indices."""
    row = group.binned[0]
    place, length = int(row["place"]) & _WORD, int(row["length"])
    if int(row["op"]) != IndexedPrimitives.id:
        return ""
    if int(row["index_type"]) == INDEX_8 and length > 1:
        data = evidence.memory.read(place, min(length, 64))
        if not any(data[1::2]) and any(data[::2]) | (length < 4):
            return (
                f"; the indices at 0x{place:08x} are read as bytes ({', '.join(map(str, data[:6]))} …): are "
                "they 16-bit ones? Then bits 7:4 of record 32 are 1"
            )
    return ""


def _source(group: Group) -> str:
    """Return where vertices come from, and what is likely to be wrong there, in words."""
    record = group.record
    if record is None:
        return ""
    if record.nv is not None:
        stride, place = int(record.nv.stride), int(record.nv.vertices)
        text = f"; they are read at 0x{place:08x}, {stride} bytes apart"
        return f"{text} (shader record at 0x{record.address:08x}){_doubts(place, stride)}"
    if record.gl is None:
        return ""
    shader = record.gl.record
    arrays = [one for number, one in enumerate(record.gl.attributes) if shader.cs_attributes >> number & 1]
    if not arrays:
        return (
            f"; the shader record at 0x{record.address:08x} selects no attribute array for the coordinate "
            "shader (bits 215:208)"
        )
    first = arrays[0]
    text = (
        f"; the first attribute array of the coordinate shader is at 0x{first.address:08x}, {first.stride} "
        f"bytes apart (shader record at 0x{record.address:08x})"
    )
    text += _doubts(first.address, first.stride)
    if not shader.cs_uniforms & MEMORY_MASK:
        text += "; its uniforms are at 0x00000000: was the address never filled in?"
    else:
        text += f"; its uniforms, which may scale positions, are at 0x{int(shader.cs_uniforms):08x}"
    return text


def _doubts(address: int, stride: int) -> str:
    if not address & MEMORY_MASK:
        return ": was the address never filled in?"
    return ": with stride 0 all are the first one" if not stride else ""


def window(evidence: Evidence, group: Group) -> Cause:
    """Primitives beyond the tiles, or the clip window."""
    corners = evidence.corners(group)
    text = f"{_lost(group, group.outside)} outside of the window"
    found = evidence.before(ClipWindow, group)
    offset = evidence.before(ViewportOffset, group)
    if corners is not None and len(corners.number):
        left, top, right, bottom = corners.box
        text += f": vertices lie between pixels ({left:g}, {top:g}) and ({right:g}, {bottom:g})"
    if found is not None:
        place, clip = found
        right, top = int(clip.left) + int(clip.width), int(clip.bottom) + int(clip.height)
        text += (
            f", and record 102 at 0x{place:08x} lets ({int(clip.left)}, {int(clip.bottom)}) to ({right}, "
            f"{top}) through"
        )
    columns, rows = evidence.found.binned[-1].tiles if evidence.found.binned else (0, 0)
    text += f"; the binner has {columns} x {rows} tiles"
    if offset is None:
        text += "; no record 103 sets a viewport offset: it is 0, the top left corner"
    else:
        place, view = offset
        text += f"; the viewport offset is ({view.x / 16:g}, {view.y / 16:g}) (record 103 at 0x{place:08x})"
    return Cause("DRAW-004", text, _draw(group) if found is None else found[0], group.text())


def tile_lists(evidence: Evidence, group: Group) -> Cause:
    """Lists that the binner has written, and the renderer does not draw."""
    calls = evidence.executed(Branch, BranchToSublist, thread=1)
    mode = evidence.before(TileBinningMode, group)
    many_lists = f"the binner has put {many(group.placed, group.kind)} into tile lists"
    if not calls:
        start = evidence.lists.rendering[0] if evidence.lists.rendering else 0
        text = f"{many_lists}, but the rendering list at 0x{start:08x} branches to none of them (record 17)"
        return Cause("DRAW-005", text, start, group.text())
    target = evidence.memory.u32(calls[0] + 1)
    text = (
        f"{many_lists}, but none is in those that the rendering list branches to; the first is 0x{target:08x}"
    )
    if mode is not None:
        place, record = mode
        text += (
            f", and the binner's first one is at 0x{int(record.address):08x} (record 112 at 0x{place:08x})"
        )
        if int(record.address) & MEMORY_MASK == target & MEMORY_MASK:
            text += "; are the next ones a block apart, row by row?"
    return Cause("DRAW-005", text, calls[0], group.text())


def _lost(group: Group, count: int) -> str:
    verb = "is" if group.primitives == 1 else "are"
    return f"{count} of {many(group.primitives, group.kind)} {verb}"


def _draw(group: Group) -> int | None:
    return int(group.binned[0]["record"]) & _WORD if group.binned else None

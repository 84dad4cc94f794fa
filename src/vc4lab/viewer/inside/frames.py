"""A capture, a frame and the state at a draw as documents of JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from vc4lab.debug.frame.overlays import OVERLAYS
from vc4lab.diagnostics.catalogue import catalogue
from vc4lab.images.tiling import Tiling
from vc4lab.jobs.events_text import event_text
from vc4lab.jobs.model import (
    BufferNamed,
    Filled,
    JobBegun,
    Origin,
    PagesLoaded,
    Patched,
    Shown,
    Stored,
    Submitted,
    Zeroed,
)
from vc4lab.records.control import format, parse_record
from vc4lab.records.shader import AttributeRecord, GlShaderRecord, NvShaderRecord, VgShaderRecord

if TYPE_CHECKING:
    from vc4lab.bits import Layout
    from vc4lab.debug.frame.capture import CapturedFrame
    from vc4lab.debug.frame.index import FrameDraw, FrameJob
    from vc4lab.diagnostics import Diagnostic
    from vc4lab.jobs.model import Event
    from vc4lab.records.control import Record
    from vc4lab.v3d.state.frame_mode import Surface
    from vc4lab.viewer.inside.session import Session
    from vc4lab.viewer.inside.views import JobLists

MOST_ROWS = 50_000
"""Rows of a frame's list of events."""
LONGEST = 200
"""Characters of an event's text."""
BUFFERS = {0: "none", 1: "colour", 2: "depth and stencil", 3: "depth", 4: "mask", 5: "full resolution"}


def capture_document(session: Session) -> dict[str, Any]:
    """Return what a capture holds, and which frame is looked at first."""
    opened = session.opened
    jobs, capture = opened.capture.jobs, opened.capture
    numbers = [one.number for one in capture.frames]
    return {
        "name": session.name,
        "front": jobs.front,
        "program": jobs.program,
        "frames": [
            {"number": one.number, "jobs": one.source.has_jobs, "events": len(one.source.events)}
            for one in capture.frames
        ],
        "chosen": capture.frame().number if numbers else 0,
        "editions": session.editions,
        "overlays": list(OVERLAYS),
    }


def frame_document(frame: CapturedFrame) -> dict[str, Any]:
    """Return a frame: its jobs, draws, messages and list of events. Raises CaptureError."""
    jobs = frame.jobs
    messages = [_message(frame, place, one) for place, one in frame.stage.findings]
    return {
        "number": frame.number,
        "job": frame.job.number if any(one.draws_colours for one in jobs) else 0,
        "jobs": [_job(one) for one in jobs],
        "draws": [_draw(one) for one in frame.draws],
        "messages": messages,
        "rows": list(_rows(frame, messages)),
    }


def _job(job: FrameJob) -> dict[str, Any]:
    width, height = job.size
    return {
        "job": job.number,
        "name": job.name,
        "width": width,
        "height": height,
        "grid": list(job.grid),
        "multisample": job.mode.layout.multisample,
        "wide": job.mode.layout.wide,
        "colour": None if job.colour is None else job.colour.address,
        "surfaces": [_surface(one) for one in job.surfaces],
        "full": sorted(job.full)[:8],
        "draws": [one.number for one in job.draws],
    }


def _surface(one: Surface) -> dict[str, Any]:
    return {
        "buffer": BUFFERS.get(one.buffer, str(one.buffer)),
        "address": one.address,
        "width": one.width,
        "height": one.height,
        "bits": one.bits,
        "tiling": Tiling(min(one.tiling, 2)).name.lower(),
        "pitch": one.pitch,
    }


def _draw(draw: FrameDraw) -> dict[str, Any]:
    found = draw.as_dict()
    gl = draw.shader is not None and draw.shader.gl is not None
    return {
        **found,
        "first": draw.first,
        "last": draw.last,
        "programs": ["fragment", "vertex", "coordinate"] if gl else ["fragment"] * bool(draw.shader),
    }


def _message(frame: CapturedFrame, place: int, one: Diagnostic) -> dict[str, Any]:
    """A message, with the job during which it came, and the draw whose records it names."""
    job = next((job for job in frame.jobs if place <= job.place), None)
    draws = job.draws if job is not None else []
    named = next((draw for draw in draws if _names(draw, one.address)), None)
    entry = catalogue().get(one.code)
    return {
        "code": one.code,
        "severity": one.severity.name.lower(),
        "text": one.message,
        "address": one.address,
        "job": 0 if job is None else job.number,
        "draw": 0 if named is None else named.number,
        "title": "" if entry is None else entry.title,
        "cure": "" if entry is None else entry.cure,
    }


def _names(draw: FrameDraw, address: int | None) -> bool:
    """Whether an address is that of a draw, of a record in force or of a program."""
    if address is None:
        return False
    if address == draw.address or any(at == address for at, _identity in draw.records):
        return True
    gl = draw.shader.gl if draw.shader is not None else None
    return gl is not None and address in (gl.record.fs_code, gl.record.vs_code, gl.record.cs_code)


def _rows(frame: CapturedFrame, messages: list[dict[str, Any]]) -> Iterator[list[Any]]:
    """The events in order, as [kind, text, job, draw, address]."""
    left = MOST_ROWS
    place = 0
    for job in frame.jobs:
        name = f" · {job.name}" if job.name else ""
        width, height = job.size
        address = 0 if job.colour is None else job.colour.address
        yield ["job", f"job {job.number}{name} · {width}x{height}", job.number, 0, address]
        left -= 1
        for row in _events(frame, place, job.begun + bool(job.draws), job.number):
            yield row
            left -= 1
        for row in _draws(frame, job):
            if left <= 0:
                yield ["event", f"(a list of {MOST_ROWS} rows ends here)", job.number, 0, 0]
                return
            yield row
            left -= 1
        yield from (_message_row(one) for one in messages if one["job"] == job.number and not one["draw"])
        place = job.place + 1
        while place < len(frame.source.events) and isinstance(frame.source.events[place], Stored | Shown):
            place += 1  # what came of it
        yield from _events(frame, job.begun + bool(job.draws), place, job.number)
    yield from (_message_row(one) for one in messages if not one["job"])
    yield from _events(frame, place, len(frame.source.events), 0)


def _events(frame: CapturedFrame, first: int, end: int, job: int) -> Iterator[list[Any]]:
    """The events from a place to another, as rows."""
    origin = ""
    for event in frame.source.events[first:end]:
        if isinstance(event, JobBegun):
            continue
        if isinstance(event, Origin):
            origin = f", from {event.text}"
            continue
        text, origin = event_text(event) + origin, ""
        address = getattr(event, "address", getattr(event, "value", 0))
        yield [_kind(event), text[:LONGEST], job, 0, address]


def _kind(event: Event) -> str:
    """The kind of an event's row."""
    match event:
        case Patched():
            return "edit"
        case PagesLoaded() | Zeroed() | Filled() | BufferNamed() | Submitted():
            return "memory"
        case _:
            return "event"


def _draws(frame: CapturedFrame, job: FrameJob) -> Iterator[list[Any]]:
    """The draws of a job, each after the records of state that changed."""
    before: dict[int, int] = {}
    frame.stage.run(job.number)
    read = frame.stage.memory.read
    messages: dict[int, list[dict[str, Any]]] = {}
    for place, one in frame.stage.findings:
        made = _message(frame, place, one)
        if made["draw"]:
            messages.setdefault(made["draw"], []).append(made)
    for draw in job.draws:
        now = {identity: address for address, identity in draw.records}
        for identity, address in sorted(now.items(), key=lambda item: item[1]):
            if before.get(identity) != address:
                text = format(parse_record(read, address))[10:].split("\n")[0].strip()
                yield ["record", text[:LONGEST], job.number, draw.number, address]
        before = now
        text = f"draw {draw.number} · {draw.mode}, {draw.length} vertices"
        yield ["draw", text, job.number, draw.number, draw.address]
        yield from (_message_row(one) for one in messages.get(draw.number, ()))


def _message_row(one: dict[str, Any]) -> list[Any]:
    return ["message", f"{one['code']} {one['text']}"[:LONGEST], one["job"], one["draw"], one["address"] or 0]


# -- state -----------------------------------------------------------------------------------------


def state_document(frame: CapturedFrame, draw: int, lists: JobLists) -> dict[str, Any]:
    """Return the records of state in force at a draw, and its shader record, field by field.

    Raises NoSuchPlace, CaptureError.
    """
    records = [_record(frame, one, lists) for one in frame.state(draw)]
    one = frame.draws[draw - 1]
    return {
        "draw": _draw(one),
        "record": _record(frame, parse_record(frame.stage.memory.read, one.address), lists),
        "records": records,
        "shader": list(_shader(frame, one, lists)),
    }


def _record(frame: CapturedFrame, record: Record, lists: JobLists) -> dict[str, Any]:
    payload = record.payload
    found = lists.find("binning", record.address)
    return {
        "title": record.name,
        "id": record.id,
        "address": record.address,
        "bytes": frame.stage.memory.read(record.address, record.size).hex(),
        "fields": [] if payload is None else _fields(payload),
        "line": None if found is None else [*found, lists.views[found[0]].lines[found[1]].text.strip()],
    }


def _fields(layout: Layout) -> list[list[Any]]:
    """Name, text, bits and meaning of each field."""
    return [
        [name, bits.text(layout.value), f"{bits.hi}:{bits.lo}" if bits.width > 1 else str(bits.lo), bits.doc]
        for name, bits in layout.layout_fields.items()
    ]


def _shader(frame: CapturedFrame, draw: FrameDraw, lists: JobLists) -> Iterator[dict[str, Any]]:
    """The shader record with its attribute arrays."""
    shader, read = draw.shader, frame.stage.memory.read
    if shader is None:
        return
    kind: type[Layout] = VgShaderRecord
    title = "VG shader record"
    if shader.gl is not None:
        kind, title = GlShaderRecord, "GL shader record"
    elif shader.nv is not None:
        kind, title = NvShaderRecord, "NV shader record"
    yield _layout(read, kind, title, shader.address, lists)
    if shader.gl is None or shader.gl.extended:
        return
    size = AttributeRecord.bit_width // 8
    for number in range(len(shader.gl.attributes)):
        at = shader.address + GlShaderRecord.bit_width // 8 + size * number
        yield _layout(read, AttributeRecord, f"attribute array {number}", at, lists)


def _layout(read: Any, kind: type[Layout], title: str, address: int, lists: JobLists) -> dict[str, Any]:
    size = kind.bit_width // 8
    data = read(address, size).ljust(size, b"\0")
    found = lists.find("shader", address)
    return {
        "title": title,
        "id": None,
        "address": address,
        "bytes": data.hex(),
        "fields": _fields(kind.from_bytes(data)),
        "line": None if found is None else [*found, lists.views[found[0]].lines[found[1]].text.strip()],
    }

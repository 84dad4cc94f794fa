"""Jobs of drivers as captures keep them, and conversions: captures ↔ folders of recorded jobs.

A capture holds what the V3D got. What the program handed to its driver is kept beside it, as a file
of JSON for each job; the buffers' content is what memory holds when the job begins.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from vc4lab.capture.errors import CaptureError
from vc4lab.diagnostics import Reporter
from vc4lab.drm.objects.gem_objects import GemObject
from vc4lab.drm.recorded.writer import JobRecorder, submit_table
from vc4lab.drm.uapi.submit import MAX_BUFFER, PAGE, STREAMS, FieldError, Submit, integer, parse_submit
from vc4lab.jobs.model import JobBegun, Submitted
from vc4lab.jobs.player import FrameResult, JobsPlayer
from vc4lab.memory import MEMORY_SIZE

if TYPE_CHECKING:
    from vc4lab.drm.device.device import DrmDevice
    from vc4lab.drm.events import JobTaken
    from vc4lab.jobs.model import JobsCapture, JobsFrame
    from vc4lab.jobs.recorder import JobsRecorder


def capture(device: DrmDevice, recorder: JobsRecorder) -> None:
    """Keep the jobs of a device, and the frames of its screen. The recorder's `close` ends it."""
    numbers: WeakKeyDictionary[GemObject, int] = WeakKeyDictionary()
    count = itertools.count(1)

    def taken(event: JobTaken) -> None:
        for one in event.objects:
            if one not in numbers:
                numbers[one] = next(count)
        buffers = [(one.address, one.size, one.label or one.kind) for one in event.objects]
        facts = {"program": event.program, "bos": [_buffer(one, numbers[one]) for one in event.objects]}
        recorder.job(event.name, buffers, submit_bytes(event.submit, facts))

    def shown(frames: int) -> None:
        recorder.frame(frames, lambda: device.pictures.image, at_once=False)

    recorder.attach(device.v3d)
    device.gpu.job_taken.subscribe(taken)
    device.frame_listeners.append(shown)


def take_recorded(recorder: JobsRecorder, name: str, submit: Submit) -> None:
    """A recorded job is about to run again."""
    entries = [
        {
            **{"handle": one.handle, "addr": one.address, "size": one.size, "asked": one.size},
            **{"shader": one.shader, "tiling": 0, "zero": True},
        }
        for one in submit.buffers
    ]
    buffers = [(one.address, one.size, f"buffer {one.handle}") for one in submit.buffers]
    recorder.job(name, buffers, submit_bytes(submit, {"bos": entries}))


def submit_bytes(submit: Submit, facts: dict[str, Any]) -> bytes:
    """A job as a program handed it in, with its streams in hexadecimal."""
    streams = {name: bytes(getattr(submit, name)).hex() for name in STREAMS}
    return json.dumps({**submit_table(submit), **facts, "streams": streams}).encode()


def _buffer(one: GemObject, number: int) -> dict[str, Any]:
    return {
        "handle": number,
        "addr": one.address,
        "size": one.size,
        "asked": one.asked,
        "kind": one.kind,
        "shader": one.private,
        "label": one.label,
        "tiling": one.modifier,
        "zero": True,
    }


def read_submit(data: bytes, file: str) -> tuple[Submit, dict[str, Any]]:
    """The job of such a file, and all that is in it. Raises CaptureError."""
    try:
        table = json.loads(data)
        streams = table["streams"]
        submit = parse_submit(table, *(bytes.fromhex(streams[name]) for name in STREAMS))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        reason = error if isinstance(error, FieldError) else "no job of a driver"
        raise CaptureError("CAP-004", str(reason), file) from None
    return submit, table


class _Folder:
    """Writes the jobs of a capture as it is played."""

    def __init__(self, player: JobsPlayer, folder: Path, tell: Callable[[str], None]) -> None:
        self._player = player
        self._recorder = JobRecorder(folder, player.memory, on_stop=tell)
        self._objects: dict[int, GemObject] = {}
        self._open: tuple[Submit, Sequence[GemObject]] | None = None

    @property
    def jobs(self) -> int:
        """Jobs that were written."""
        return self._recorder.jobs

    def end(self) -> None:
        """The job at hand is through."""
        if self._open is not None:
            self._recorder.after(*self._open)
            self._open = None

    def write(self, frame: JobsFrame, file: str) -> None:
        """A job is about to run. Raises CaptureError."""
        submit, table = read_submit(frame.files[file], file)
        objects = [self._object(entry, file) for entry in table["bos"]]
        program = table.get("program")
        self._recorder.memory = self._player.memory
        self._recorder.before(submit, objects, {"program": program} if isinstance(program, str) else {})
        self._open = submit, objects

    def _object(self, entry: Any, file: str) -> GemObject:
        try:
            number, address, size = (integer(entry, name) for name in ("handle", "addr", "size"))
            asked, tiling = integer(entry, "asked"), integer(entry, "tiling", 64)
        except FieldError as error:
            raise CaptureError("CAP-004", str(error), file) from None
        if address % PAGE or not 0 < size <= MAX_BUFFER or address + size > MEMORY_SIZE or asked > size:
            raise CaptureError("CAP-004", f"buffer {number} of {size} bytes at 0x{address:x}", file)
        known = self._objects.get(number)
        if known is None or (known.address, known.size) != (address, size):
            private = entry.get("shader") is True
            known = self._objects[number] = GemObject(address, size, asked, "buffer", private=private)
        label = entry.get("label")
        known.label, known.modifier = label[:1000] if isinstance(label, str) else "", tiling
        return known


def write_folder(
    found: JobsCapture, folder: Path, tell: Callable[[str], None], reporter: Reporter | None = None
) -> int:
    """A folder of recorded jobs, for `vc4lab replay`; how many there are. The capture is played.

    Raises CaptureError for one that was not made of a driver's jobs, OSError.
    """
    if not any(isinstance(one, Submitted) for frame in found.frames for one in frame.events):
        text = f"its jobs come from {found.front or 'elsewhere'}, not from a driver's programs"
        raise CaptureError("CAP-011", text)
    player = JobsPlayer(found, reporter=reporter)
    writer = _Folder(player, folder, tell)
    for frame in found.frames:
        if frame.start is not None:
            player.begin(frame)
        result, pending = FrameResult(), ""
        for event in frame.events:
            if isinstance(event, JobBegun):
                writer.end()
            elif isinstance(event, Submitted):
                pending = event.file
            elif pending and _runs(event):
                writer.write(frame, pending)
                pending = ""
            player.do(event, result)
    writer.end()
    return writer.jobs


def _runs(event: object) -> bool:
    """Whether memory holds all that the job needs: the V3D gets it."""
    return getattr(event, "register", "") != ""

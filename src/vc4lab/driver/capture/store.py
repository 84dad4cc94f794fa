"""A capture as files: what an archive holds, and what a folder has besides pictures and tables.

capture.json                    table: resources, frames, programs
frames/10/commands.txt          the frame's commands, one a line; a halt ends a queue
frames/10/picture.png           what was shown
state/blend-1.txt               a part of the state, one field a line
shaders/shader-1.tgsi           a shader as Mesa sent it
constants/constants-1.csv       a constant buffer: a row for each CONST
resources/resource-5.bin        what it held when the first frame began, if that is not zero
data/data-3.bin                 rows of an upload
jobs/10/…, pages/…              the jobs that the frames became (`jobs/store.py`)
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vc4lab import __version__
from vc4lab.capture import table
from vc4lab.capture.files import write_archive
from vc4lab.driver.capture.state_text import part_lines
from vc4lab.driver.capture.tables import constants_csv
from vc4lab.driver.commands.commands import command_text, ref_text
from vc4lab.driver.stored_programs import to_json
from vc4lab.jobs import store as jobs_store

if TYPE_CHECKING:
    from vc4lab.driver.capture.model import Capture, CapturedFrame, CapturedResource

LEVEL = "queue"
"""The table's entry for the command queue. The jobs that it became have one of their own."""


def save_capture(capture: Capture, path: str | Path) -> None:
    """Write an archive. Raises OSError, CaptureError."""
    write_archive(Path(path), files_of(capture))


def part_file(kind: str, number: int) -> str:
    """The file of a part of the state."""
    name = ref_text(kind, number)
    if kind == "shader":
        return f"shaders/{name}.tgsi"
    return f"constants/{name}.csv" if kind == "constants" else f"state/{name}.txt"


def resource_file(number: int) -> str:
    """The file of a resource's content."""
    return f"resources/{ref_text('resource', number)}.bin"


def data_file(number: int) -> str:
    """The file of the rows of an upload."""
    return f"data/{ref_text('data', number)}.bin"


def part_bytes(kind: str, value: Any) -> bytes:
    """A part of the state as a file."""
    if kind == "shader":
        return str(value).encode("utf-8")
    if kind == "constants":
        return constants_csv(value).encode()
    return "".join(f"{line}\n" for line in part_lines(kind, value)).encode()


def commands_text(frame: CapturedFrame) -> str:
    """A frame's commands."""
    return "".join(f"{command_text(one, names=True)}\n" for one in frame.commands)


def content(capture: Capture) -> dict[str, Any]:
    """The table."""
    texts = {text: number for number, text in capture.parts["shader"].items()}
    found: dict[str, Any] = {
        "made_by": f"vc4lab {__version__}",
        "program": capture.program,
        LEVEL: {
            "frames": [
                {"number": one.number, "commands": one.file, "picture": _picture_name(one)}
                for one in capture.frames
            ],
            "resources": [_resource(one) for one in capture.resources.values()],
            "programs": [to_json(one, part_file("shader", texts[one.text])) for one in capture.programs],
        },
    }
    if capture.jobs is not None and capture.jobs.frames:
        found[jobs_store.LEVEL] = jobs_store.layer_table(capture.jobs, _pictures(capture))
    return found


def _pictures(capture: Capture) -> dict[int, str | None]:
    return {one.number: _picture_name(one) for one in capture.frames}


def _picture_name(frame: CapturedFrame) -> str | None:
    return f"frames/{frame.number}/picture.png" if frame.picture is not None else None


def _resource(one: CapturedResource) -> dict[str, Any]:
    return {
        "number": one.number,
        "target": str(one.target),
        "format": str(one.format),
        "bind": one.bind,
        "width": one.width,
        "height": one.height,
        "depth": one.depth,
        "array_size": one.array_size,
        "last_level": one.last_level,
        "samples": one.samples,
        "content": resource_file(one.number) if one.memory.any() else None,
    }


def files_of(capture: Capture) -> Iterator[tuple[str, bytes]]:
    """All files with their names."""
    yield table.NAME, table.table_bytes(content(capture))
    for frame in capture.frames:
        yield frame.file, commands_text(frame).encode()
        name = _picture_name(frame)
        if name is not None and frame.picture is not None:
            yield name, frame.picture
    for kind, parts in capture.parts.items():
        for number, value in parts.items():
            yield part_file(kind, number), part_bytes(kind, value)
    for resource in capture.resources.values():
        if resource.memory.any():
            yield resource_file(resource.number), resource.data
    for number, data in capture.data.items():
        yield data_file(number), data
    if capture.jobs is not None and capture.jobs.frames:
        yield from jobs_store.layer_files(capture.jobs, _pictures(capture))

"""A capture as a folder that people edit: its files, and views of its data.

`views.json` says for each view (a picture, a table, a listing) which data it shows, and the check
sum that it has unedited: a view that was not edited changes nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vc4lab.capture.files import write_folder
from vc4lab.driver.capture.pictures import png_of
from vc4lab.driver.capture.store import data_file, files_of, resource_file
from vc4lab.driver.capture.vertices import DrawTables, Table, header, rows_text
from vc4lab.driver.queue import commands as c
from vc4lab.driver.queue.text import ref_text
from vc4lab.mesa.protocol.codes import Target
from vc4lab.mesa.store.resources import Box
from vc4lab.qpu.text.disassembler import disassemble

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from vc4lab.driver.capture.model import Capture, CapturedResource

VIEWS = "views.json"
MANUAL = """A capture of vc4lab gl, unpacked. Edit, then: vc4lab replay THIS_FOLDER

frames/N/commands.txt   what is done, in order; a copy of state/blend-1.txt under a new number,
                        named in state/pipe_state-N.txt, is another state for some draws
state/                  a field a line: blend factors, depth functions, viewports ...
constants/              uniforms
shaders/                TGSI; it is compiled again if it was edited
programs/               QPU programs; what was edited is drawn with
resources/, data/       pictures (PNG) of what textures hold and get; the .bin files are the data
vertices/               vertices and indices, a row each

A picture, table or program changes only what was edited in it. If the .bin file of a picture or
table is edited, leave the picture or table as it is.
"""


def sum_of(data: bytes) -> str:
    """The check sum of a file."""
    return hashlib.sha256(data).hexdigest()


def unpack(capture: Capture, folder: str | Path) -> None:
    """Write a capture as a folder. Raises OSError, CaptureError."""
    write_folder(Path(folder), folder_files(capture))


def folder_files(capture: Capture) -> Iterator[tuple[str, bytes]]:
    """All files of the folder with their names."""
    yield "README.txt", MANUAL.encode()
    sums: dict[str, str] = {}
    for name, data in files_of(capture):
        if name.endswith(".bin") or name.endswith(".tgsi"):
            sums[name] = sum_of(data)
        yield name, data
    views = []
    for name, data, description in _views(capture):
        used = {one: sums[one] for one in description.pop("data") if one in sums}
        views.append({"file": name, "sum": sum_of(data), "data": used, **description})
        yield name, data
    yield VIEWS, (json.dumps({"views": views}, indent=1) + "\n").encode()


View = tuple[str, bytes, dict[str, Any]]


def _views(capture: Capture) -> Iterator[View]:
    yield from picture_views(capture)
    yield from _tables(capture)
    yield from _programs(capture)


def picture_views(capture: Capture) -> Iterator[View]:
    """The pictures of textures and uploads."""
    for resource in capture.resources.values():
        if resource.target != Target.BUFFER and resource.memory.any():
            yield from _levels(resource)
    seen = set()
    for _, _, command in capture.walk():
        if not isinstance(command, c.Upload) or command.address in seen:
            continue
        seen.add(command.address)
        resource = capture.resources[command.resource]
        box = Box(*command.box)
        if resource.target != Target.BUFFER and box.depth == 1:
            rows = _rows(capture.data[command.address], 0, resource, box.width, box.height)
            name = data_file(command.address)
            yield from _picture(name.replace(".bin", ".png"), name, 0, rows, resource, box[3:5])


def _levels(resource: CapturedResource) -> Iterator[View]:
    name, offset = resource_file(resource.number), 0
    levels = [
        (number, level, sample)
        for sample in range(resource.samples)
        for number, level in enumerate(resource.levels)
    ]
    for number, level, sample in levels:
        for layer in range(level.layers):
            suffix = f"-level{number}" * bool(number) + f"-face{layer}" * (level.layers > 1)
            suffix += f"-sample{sample}" * (resource.samples > 1)
            rows = _rows(resource.data, offset, resource, level.width, level.height)
            size = level.width, level.height
            file = name.replace(".bin", f"{suffix}.png")
            yield from _picture(file, name, offset, rows, resource, size)
            offset += level.rows * level.row_bytes


def _rows(data: bytes, offset: int, resource: CapturedResource, width: int, height: int) -> NDArray[np.uint8]:
    import numpy as np

    rows, across = resource.layout.rows(height), resource.layout.row_bytes(width)
    return np.frombuffer(data, np.uint8, rows * across, offset).reshape(rows, across)


def _picture(
    file: str, name: str, offset: int, rows: Any, resource: CapturedResource, size: Any
) -> Iterator[View]:
    png = png_of(rows, resource.layout)
    if png is not None:
        about = {"offset": offset, "format": str(resource.format), "size": list(size)}
        yield file, png, {"kind": "picture", "data": [name], **about}


def _tables(capture: Capture) -> Iterator[View]:
    counts = {"vertices": 0, "indices": 0}
    for table in DrawTables(capture).tables.values():
        kind = "indices" if table.shape.columns[0].name == "index" else "vertices"
        counts[kind] += 1
        file = f"vertices/{kind}-{counts[kind]}.csv"
        shape = table.shape
        lines = [
            f"# {ref_text('resource', shape.resource)} from byte {shape.start}, {shape.stride} bytes a row",
            header(shape),
            *rows_text(shape, table.first, table.last, table.content),
        ]
        yield file, "".join(f"{line}\n" for line in lines).encode(), _table(capture, table)


def _table(capture: Capture, table: Table) -> dict[str, Any]:
    runs = []
    for start, length, owner, place in table.runs:
        file = data_file(owner) if owner else resource_file(table.shape.resource)
        if not owner and not capture.resources[table.shape.resource].memory.any():
            file = ""  # all of it is 0, and has no file
        runs.append([start - table.begin, length, file, place])
    return {
        "kind": "table",
        "data": sorted({file for _, _, file, _ in runs if file}),
        "columns": [[one.name, one.kind, one.offset] for one in table.shape.columns],
        "stride": table.shape.stride,
        "rows": [table.first, table.last],
        "runs": runs,
    }


def _programs(capture: Capture) -> Iterator[View]:
    texts = {text: number for number, text in capture.parts["shader"].items()}
    for number, stored in enumerate(capture.programs, 1):
        shader = f"shaders/{ref_text('shader', texts[stored.text])}.tgsi"
        for place, program in enumerate(stored.shaders):
            lines = [f"# {program.stage.value} program of {shader}"]
            for index, word in enumerate(program.words):
                lines.append(disassemble(word, 8 * index))
            uniforms = [f"# uniform {at}: {one}" for at, one in enumerate(program.uniforms)]
            data = "".join(f"{line}\n" for line in [*lines, *uniforms]).encode()
            file = f"programs/program-{number}-{program.stage.value}.qasm"
            about = {"kind": "program", "data": [shader], "program": [number - 1, place]}
            yield file, data, about

"""A capture as a folder that people edit: its files, and views of its data.

`views.json` says for each view (a picture, a table, a listing) which data it shows, and the check
sum that it has unedited: a view that was not edited changes nothing.

From an edited folder only what differs from what the data show is put in, so that a view that stores less
than the data (a picture of 16-bit colours, a rounded number) changes nothing by itself.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vc4lab.capture import table
from vc4lab.capture.errors import CaptureError
from vc4lab.capture.files import MEMBER_BYTES, FolderFiles, check_name, write_folder
from vc4lab.capture.lines import decoded
from vc4lab.capture.table import TABLE_BYTES, Value
from vc4lab.driver.capture.pictures import NoPicture, edited, is_editable, png_of
from vc4lab.driver.capture.store import LEVEL, data_file, files_of, resource_file
from vc4lab.driver.capture.tables import (
    KINDS,
    MAX_ROWS,
    Column,
    DrawTables,
    Shape,
    Table,
    cell_bytes,
    header,
    rows_text,
)
from vc4lab.driver.commands import commands as c
from vc4lab.driver.commands.commands import ref_text
from vc4lab.mesa.protocol.codes import Target
from vc4lab.mesa.protocol.formats import Format, layout_of
from vc4lab.mesa.store.resources import Box
from vc4lab.qpu.text.assembler import assemble
from vc4lab.qpu.text.disassembler import disassemble
from vc4lab.qpu.text.syntax import AssemblyError

if TYPE_CHECKING:
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
    capture = replace(capture, jobs=None)  # an edited frame becomes other ones
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
    for one in DrawTables(capture).tables.values():
        kind = "indices" if one.shape.columns[0].name == "index" else "vertices"
        counts[kind] += 1
        file = f"vertices/{kind}-{counts[kind]}.csv"
        shape = one.shape
        lines = [
            f"# {ref_text('resource', shape.resource)} from byte {shape.start}, {shape.stride} bytes a row",
            header(shape),
            *rows_text(shape, one.first, one.last, one.content),
        ]
        yield file, "".join(f"{line}\n" for line in lines).encode(), _table(capture, one)


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


MAX_VIEWS = 100_000
MAX_WORDS = 1 << 14


class EditedFiles(FolderFiles):
    """The files of an unpacked capture. Raises CaptureError.

    Attributes
    ----------
    programs
        Files of the programs that were edited.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.programs: list[str] = []
        self._made: dict[str, bytes] = {}
        self._set: dict[str, dict[int, tuple[int, str]]] = {}
        """Bytes of edited data that were set, and by which view."""
        views = self._views()
        for count, view in enumerate(views["views"] if views is not None else ()):
            if count >= MAX_VIEWS:
                raise view.wrong("more views than a capture has")
            self._view(view)

    def _views(self) -> Value | None:
        if VIEWS not in self:
            return None
        try:
            found = json.loads(super().read(VIEWS, TABLE_BYTES).decode("utf-8"))
        except (ValueError, RecursionError) as error:
            where = self._where(VIEWS)
            raise CaptureError("CAP-004", f"no JSON: {str(error)[:200]}", where) from None
        return Value(found, "", self._where(VIEWS))

    def _where(self, name: str) -> str:
        return f"{self.name}/{name}"

    def read(self, name: str, limit: int = MEMBER_BYTES) -> bytes:
        made = self._made.get(name)
        return made if made is not None else super().read(name, limit)

    def _view(self, view: Value) -> None:
        file = check_name(view["file"].text())
        if file not in self:
            return  # a view is no part of the capture: it may be removed
        data = super().read(file)
        if sum_of(data) == view["sum"].text():
            return
        for name, known in view["data"].items():
            if sum_of(super().read(check_name(name))) != known.text():
                text = f"it was edited, and {name}, of which it was made, as well"
                raise CaptureError("CAP-008", text, self._where(file))
        kind = view["kind"].text()
        makers = {"picture": self._picture, "table": self._table, "program": self._program}
        if kind not in makers:
            raise view["kind"].wrong(f"is none of {', '.join(makers)}")
        makers[kind](view, file, data)

    def _data(self, name: str) -> bytearray:
        """Data that is edited."""
        return bytearray(self.read(check_name(name)))

    def _put(self, name: str, data: bytearray, at: int, new: bytes, file: str, line: int) -> None:
        """Set bytes. Raises CaptureError if another view has set them to others."""
        known = self._set.setdefault(name, {})
        for place, byte in enumerate(new, at):
            before = known.get(place)
            if before is not None and before[0] != byte:
                text = f"{before[1]} says something else about the same byte of {name}"
                raise CaptureError("CAP-008", text, self._where(file), line)
            known[place] = byte, file
        data[at : at + len(new)] = new

    # -- pictures ----------------------------------------------------------------------------------

    def _picture(self, view: Value, file: str, png: bytes) -> None:
        layout = layout_of(Format.__members__.get(view["format"].text(), 0))
        if layout is None or not is_editable(layout):
            text = "colours of this format cannot be made again: edit the .bin file"
            raise CaptureError("CAP-006", text, self._where(file))
        name = next((name for name, _ in view["data"].items()), "")
        width, height = (view["size"][place].whole(1, 1 << 13) for place in (0, 1))
        offset, size = view["offset"].whole(0, MEMBER_BYTES), layout.row_bytes(width) * height
        data = self._data(name)
        if offset + size > len(data):
            raise view["offset"].wrong("lies outside of the data")
        old = np.frombuffer(bytes(data[offset : offset + size]), np.uint8).reshape(height, -1)
        try:
            new = edited(old, layout, png)
        except NoPicture as reason:
            raise CaptureError("CAP-006", str(reason), self._where(file)) from None
        data[offset : offset + size] = new.tobytes()
        self._made[name] = bytes(data)

    # -- tables ------------------------------------------------------------------------------------

    def _table(self, view: Value, file: str, data: bytes) -> None:
        columns = tuple(_column(one) for one in view["columns"])
        first, last = (view["rows"][place].whole(0, 1 << 32) for place in (0, 1))
        stride = view["stride"].whole(0, 1 << 16)
        shape = Shape(1, 0, stride, columns)
        if not columns or not 0 <= last - first <= MAX_ROWS or len(columns) > 256:
            raise view["rows"].wrong("no rows or columns")
        size = (last - first) * stride + max(one.offset + one.size for one in columns)
        if size > MEMBER_BYTES:
            raise view["rows"].wrong("too many")
        content, owner, place, names = self._content(view, size)
        before = rows_text(shape, first, last, content)
        after = [
            (number, line.strip())
            for number, line in enumerate(decoded(data, self._where(file)).split("\n"), 1)
            if line.strip() and not line.lstrip().startswith("#")
        ]
        if not after or after[0][1] != header(shape):
            self._wrong(file, after[0][0] if after else 1, f"the first line is not {header(shape)}")
        if len(after) - 1 != len(before):
            text = f"{len(after) - 1} rows, but there must be {len(before)}"
            self._wrong(file, after[-1][0], text)
        made = {name: self._data(name) for name in names if name}
        for row, (old, (number, new)) in enumerate(zip(before, after[1:], strict=True)):
            if old == new:
                continue
            cells, known = [one.strip() for one in new.split(",")], old.split(",")
            if len(cells) != len(known) or cells[0] != known[0]:
                self._wrong(file, number, f"not row {known[0]} with {len(known) - 1} numbers")
            for column, text, was in zip(columns, cells[1:], known[1:], strict=True):
                if text == was:
                    continue
                try:
                    changed = cell_bytes(column, text)
                except (ValueError, OverflowError):
                    self._wrong(file, number, f"{column.name}: {text[:40]!r} is no such number")
                at = row * stride + column.offset
                for byte in range(column.size):
                    name = names[owner[at + byte]] if owner[at + byte] >= 0 else ""
                    if not name:
                        self._wrong(file, number, f"{column.name}: its data have no file to edit")
                    one = changed[byte : byte + 1]
                    self._put(name, made[name], int(place[at + byte]), one, file, number)
        self._made.update({name: bytes(one) for name, one in made.items()})

    def _wrong(self, file: str, line: int, text: str) -> None:
        raise CaptureError("CAP-006", text, self._where(file), line)

    def _content(self, view: Value, size: int) -> tuple[Any, Any, Any, list[str]]:
        """The bytes that a table shows; of each the number of its file, and its place there."""
        content = np.zeros(size, np.uint8)
        owner = np.full(size, -1, np.int64)
        place = np.zeros(size, np.int64)
        names: list[str] = []
        for run in view["runs"]:
            start, length = run[0].whole(0, size), run[1].whole(0, size)
            name, at = run[2].text(), run[3].whole(0, MEMBER_BYTES)
            if start + length > size:
                raise run.wrong("lies outside of the table")
            if name not in names:
                names.append(name)
            part = slice(start, start + length)
            owner[part], place[part] = names.index(name), np.arange(at, at + length)
            if name:
                data = np.frombuffer(super().read(check_name(name)), np.uint8)
                if at + length > len(data):
                    raise run.wrong(f"lies outside of {name}")
                content[part] = data[at : at + length]
        return content, owner, place, names

    # -- programs ----------------------------------------------------------------------------------

    def _program(self, view: Value, file: str, data: bytes) -> None:
        where = self._where(file)
        try:
            made = assemble(decoded(data, where))
        except AssemblyError as error:
            first = error.errors[0]
            raise CaptureError("CAP-006", first.message, where, first.line) from None
        if not 1 <= len(made.words) <= MAX_WORDS:
            raise CaptureError("CAP-006", f"{len(made.words)} instructions", where)
        try:
            whole = json.loads(self.read(table.NAME, TABLE_BYTES).decode("utf-8"))
        except (ValueError, RecursionError):
            return  # who reads the table says what is wrong with it
        programs = Value(whole, "", self._where(table.NAME))[LEVEL]["programs"]
        number, place = (view["program"][one].whole(0, 1 << 20) for one in (0, 1))
        stored = programs[number]["programs"][place]
        if isinstance(stored.value, dict):
            stored.value["words"] = [f"{word:016x}" for word in made.words]
            stored.value["lines"] = []
            programs[number].value["edited"] = file
        self._made[table.NAME] = json.dumps(whole).encode()
        self.programs.append(file)


def _column(value: Value) -> Column:
    kind = value[1].text()
    if kind not in KINDS:
        raise value[1].wrong(f"is none of {', '.join(KINDS)}")
    return Column(value[0].text(), kind, value[2].whole(0, 1 << 16))

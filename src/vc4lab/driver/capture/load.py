"""Files → capture. What is wrong is a `CaptureError` with code, file and line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vc4lab.capture.errors import CaptureError
from vc4lab.capture.files import ArchiveFiles, Files
from vc4lab.capture.lines import TEXT_BYTES, decoded, numbered
from vc4lab.capture.table import Value, read_table
from vc4lab.driver.capture.folder import EditedFiles
from vc4lab.driver.capture.model import STAGES, Capture, CapturedFrame, CapturedResource, box_shape
from vc4lab.driver.capture.state_text import parse_part
from vc4lab.driver.capture.store import LEVEL, data_file, part_file
from vc4lab.driver.capture.tables import parse_constants
from vc4lab.driver.commands import commands as c
from vc4lab.driver.commands.commands import parse_command, ref_text
from vc4lab.driver.stored_programs import from_json, text_sum
from vc4lab.jobs.load import read_jobs
from vc4lab.jobs.store import LEVEL as JOBS
from vc4lab.mesa.protocol import limits
from vc4lab.mesa.protocol.codes import Target
from vc4lab.mesa.protocol.fields import Malformed
from vc4lab.mesa.protocol.formats import Format
from vc4lab.mesa.protocol.messages import ResourceCreate2
from vc4lab.mesa.store.resources import Box, Refused

MAX_NUMBER = 1 << 30
MAX_COMMANDS = 1 << 20
"""Commands of a frame."""
MAX_FRAMES = 10_000
MAX_RESOURCES = 1 << 14
RESOURCES_BYTES = 768 << 20
"""Bytes of all resources: what GPU memory holds."""
PICTURE_BYTES = 64 << 20
_CURE = "; a reference is its kind, a minus and a number"


def open_capture(path: str | Path) -> Capture:
    """A capture from an archive or a folder. Raises CaptureError."""
    place = Path(path)
    files: Files = EditedFiles(place) if place.is_dir() else ArchiveFiles(place)
    return _Loader(files).capture()


class _Loader:
    def __init__(self, files: Files) -> None:
        self.files = files
        self.made = Capture()
        self._values: dict[tuple[str, int], Any] = {}

    def capture(self) -> Capture:
        table = read_table(self.files)
        made = self.made
        program = table.get("program")
        made.program = program.text()[:1000] if program is not None else ""
        queue = table.get(LEVEL)
        if queue is None:
            raise table.wrong(f"there is no {LEVEL!r}: it has no frames of a command queue")
        self._resources(queue["resources"])
        for number, one in enumerate(queue["frames"]):
            if number >= MAX_FRAMES:
                raise one.wrong(f"more than {MAX_FRAMES} frames")
            made.frames.append(self._frame(one))
        numbers = [one.number for one in made.frames]
        if len(set(numbers)) != len(numbers):
            raise queue["frames"].wrong("two frames have the same number")
        self._programs(queue)
        if not self.files.is_folder and table.get(JOBS) is not None:
            made.jobs = read_jobs(self.files)  # in a folder the commands may be others by now
        return made

    def _text(self, name: str) -> str:
        return decoded(self.files.read(name, TEXT_BYTES), self._where(name))

    def _where(self, name: str) -> str:
        return f"{self.files.name}/{name}" if self.files.is_folder else f"{self.files.name}: {name}"

    # -- resources ---------------------------------------------------------------------------------

    def _resources(self, table: Value) -> None:
        total = 0
        for count, one in enumerate(table):
            resource = self._resource(one)
            total += resource.size
            if total > RESOURCES_BYTES or count >= MAX_RESOURCES:
                raise one.wrong("the resources are more than GPU memory holds")
            if resource.number in self.made.resources:
                raise one.wrong(f"there are two resources {resource.number}")
            content = one.get("content")
            if content is not None and content.value is not None:
                data = self.files.read(content.text(), limits.RESOURCE_BYTES)
                try:
                    resource.fill(data)
                except ValueError as error:
                    raise CaptureError("CAP-006", str(error), self._where(content.text())) from None
            self.made.resources[resource.number] = resource

    def _resource(self, one: Value) -> CapturedResource:
        names = ("width", "height", "depth", "array_size", "last_level")
        sizes = [one[name].whole(0, limits.RESOURCE_BYTES) for name in names]
        samples = one.get("samples")  # captures from before there were several have none
        described: Any = (
            one["number"].whole(1, MAX_NUMBER),
            _named(one["target"], Target),
            _named(one["format"], Format),
            one["bind"].whole(0, (1 << 32) - 1),
            *sizes,
            *(samples.whole(1, limits.SAMPLES) if samples is not None else 1, 0),
        )
        asked = ResourceCreate2(*described)
        try:
            return CapturedResource(asked)
        except Refused as reason:
            raise one.wrong(reason.text) from None

    # -- frames ------------------------------------------------------------------------------------

    def _frame(self, one: Value) -> CapturedFrame:
        frame = CapturedFrame(one["number"].whole(1, MAX_NUMBER))
        name = one["commands"].text()
        where = self._where(name)
        for number, line in numbered(self._text(name)):
            if len(frame.commands) >= MAX_COMMANDS:
                raise CaptureError("CAP-006", f"more than {MAX_COMMANDS} commands", where, number)
            try:
                command = parse_command(line, names=True)
                self._check(command)
            except (Malformed, Refused) as reason:
                raise CaptureError("CAP-006", str(reason), where, number) from None
            frame.commands.append(command)
            frame.lines.append(number)
        if not frame.commands or not isinstance(frame.commands[-1], c.Halt):
            raise CaptureError("CAP-006", "the last command is no halt", where, number_of(frame))
        picture = one.get("picture")
        if picture is not None and picture.value is not None and picture.text() in self.files:
            frame.picture = self.files.read(picture.text(), PICTURE_BYTES)
        return frame

    def _check(self, command: c.QueueCommand) -> None:
        """Check that what a command names is there, and fits. Raises Malformed, Refused, CaptureError."""
        for name, spec in command.specs.items():
            value = getattr(command, name)
            if spec.ref == "resource":
                self._resource_of(value, name)
            elif spec.ref in self.made.parts:
                self._known(spec.ref, value, name)
        if isinstance(command, c.Upload | c.ReadBack):
            resource = self.made.resources[command.resource]
            box = Box(*command.box)
            resource.check(command.level, box)
            if isinstance(command, c.Upload):
                shape = box_shape(resource, box)
                self._rows(command.address, shape[0] * shape[1] * shape[2])
            elif command.address:
                raise Malformed("address: rows that are read back have no place in a capture")

    def _resource_of(self, number: int, name: str) -> CapturedResource:
        found = self.made.resources.get(number)
        if found is None:
            raise Malformed(f"{name}={ref_text('resource', number)}: there is no such resource")
        return found

    def _rows(self, number: int, size: int) -> None:
        if not number:
            raise Malformed(f"address: an upload needs data{_CURE}")
        if number not in self.made.data:
            self.made.data[number] = self.files.read(data_file(number), limits.RESOURCE_BYTES)
        found = len(self.made.data[number])
        if found != size:
            raise Malformed(f"{data_file(number)} has {found} bytes, the box {size}")

    # -- state -------------------------------------------------------------------------------------

    def _known(self, kind: str, number: int, name: str) -> None:
        """Read a part of the state, and those that it names."""
        if number in self.made.parts[kind]:
            return
        if not number:
            raise Malformed(f"{name}: it names none{_CURE}")
        file = part_file(kind, number)
        if file not in self.files:
            raise Malformed(f"{name}={ref_text(kind, number)}: there is no file {file}")
        value = self._part(kind, file)
        self.made.parts[kind][number] = value
        for part, one in _named_parts(kind, value):
            try:
                self._known(part, one, part)
            except Malformed as reason:
                raise CaptureError("CAP-006", str(reason), self._where(file)) from None

    def _part(self, kind: str, file: str) -> Any:
        text, where = self._text(file), self._where(file)
        if kind == "shader":
            self.made.files[text] = where
            return text
        if kind == "constants":
            return parse_constants(text, where)
        return parse_part(kind, text, where, self.made.resources.__getitem__)

    # -- programs ----------------------------------------------------------------------------------

    def _programs(self, queue: Value) -> None:
        table = queue.get("programs")
        files = {part_file("shader", number): text for number, text in self.made.parts["shader"].items()}
        for one in table if table is not None else ():
            text = files.get(one["shader"].text())
            program = from_json(one, text or "")
            if text is not None and one["sum"].text() == text_sum(text):
                self.made.programs.append(program)


def number_of(frame: CapturedFrame) -> int:
    """The line of a frame's last command."""
    return frame.lines[-1] if frame.lines else 1


def _named(value: Value, enum: Any) -> Any:
    text = value.text()
    for one in enum:
        if str(one) == text:
            return one
    raise value.wrong(f"{text[:40]!r} is no {enum.__name__.lower()}")


def _named_parts(kind: str, value: Any) -> list[tuple[str, int]]:
    """List what a part names: kinds and numbers."""
    if kind == "pipe_state":
        return list(value.items())
    if kind != "shader_state":
        return []
    found = []
    for stage in STAGES:
        for part, number in value[stage].items():
            if part == "constants":
                found += [(part, one) for one in number if one]
            else:
                found.append((part, number))
    return found

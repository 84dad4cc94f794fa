"""Loads recorded jobs from files into guest memory.

A run's jobs share one memory: what an earlier job rendered is the input of a later one.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from vc4lab.diagnostics import Reporter
from vc4lab.drm.kernel.built_job import REGION, WORKSPACE, BuiltJob, Workspace
from vc4lab.drm.kernel.jobs import build_submit
from vc4lab.drm.kernel.shaders import KnownShaders
from vc4lab.drm.uapi.submit import (
    MAX_BUFFER,
    PAGE,
    STREAMS,
    Buffer,
    FieldError,
    JobReporter,
    Submit,
    integer,
    parse_submit,
    refuse,
)
from vc4lab.files import read_up_to, size_text
from vc4lab.images.tiling import round_up
from vc4lab.memory import MEMORY_SIZE, GuestMemory
from vc4lab.ranges import JOB

MAX_FILE = 16 << 20
MAX_RUN = 1 << 30
"""Bytes of the streams of a run's jobs; blobs are read when they are wanted."""
LOWEST = 1 << 20

_JOB_NAME = re.compile(r"job[0-9]+")
_BLOB_NAME = re.compile(r"[0-9A-Za-z_-]+(\.z)?")


class RecordedJob:
    """One job directory; `submit` is None (and reported) when its description is unusable."""

    def __init__(self, run: RecordedRun, path: Path) -> None:
        self.run = run
        self.path = path
        self.name = path.name
        self.whole = True
        """Whether all of its streams are there."""
        self.submit = self._load()

    def _load(self) -> Submit | None:
        reporter = self.run.reporter
        try:
            text = _read_file(self.path / "submit.json")
            table = json.loads(text)
            sizes = [(name, integer(table, f"{name}_size")) for name in STREAMS]
            return parse_submit(table, *[self._stream(name, size) for name, size in sizes])
        except (OSError, ValueError, RecursionError) as error:
            what = error if isinstance(error, FieldError) else f"submit.json: {_reason(error)}"
            reporter.report("DRM-002", f"{self.name}: {what}", block="DRM")
            return None

    def _stream(self, name: str, size: int) -> bytes:
        if size > MAX_FILE:
            raise FieldError(f"field '{name}_size' is not a size up to {MAX_FILE}")
        if size == 0:
            return b""
        if self.run.stream_bytes > MAX_RUN:
            raise FieldError(f"not read: the run's streams exceed {size_text(MAX_RUN)}")
        try:
            data = _read_file(self.path / f"{name}.bin")
        except (OSError, ValueError) as error:
            data, problem = b"", _reason(error)
        else:
            problem = f"has {len(data)} of {size} bytes" if len(data) < size else ""
        if problem:
            self.whole = False
            self.run.reporter.report("DRM-003", f"{self.name}/{name}.bin: {problem}", block="DRM")
        self.run.stream_bytes += len(data)
        return data[:size]

    def build(self, memory: GuestMemory | None = None) -> BuiltJob:
        """Bring the job's buffers into memory and make its lists. Raises JobError."""
        memory = memory if memory is not None else self.run.memory
        reporter = self.run.reporter
        if self.submit is None:
            refuse(reporter, "DRM-002", f"{self.name}: nothing to run")
        if not self.whole:
            refuse(reporter, "DRM-003", f"{self.name}: not drawn, as a part of it is missing")
        named = JobReporter(self.name, reporter)
        for buffer in self.submit.buffers:
            _check_buffer(buffer, named)
        workspace = self.run.workspace
        if workspace is None:
            refuse(named, "DRM-004", "no room for the binner's memory between the buffers")
        self.run.contents.load(self.submit.buffers, memory)
        known = self.run.known if memory is self.run.memory else None
        place = Workspace.at(workspace)
        return build_submit(self.submit, memory, place, named, known)


class RecordedRun:
    """A run directory, or one job directory (then with the jobs of its run that come before it).

    ``number`` names one job of a run directory, with the same effect as its own directory.
    Everything wrong with the files goes to `reporter`; nothing raises but a number that is none.
    """

    def __init__(self, path: str | Path, reporter: Reporter | None = None, number: int | None = None) -> None:
        JOB.check_optional(number)
        self.reporter = reporter if reporter is not None else Reporter()
        self.path = Path(path)
        self.memory = GuestMemory()
        self.known = KnownShaders(self.memory)
        self.stream_bytes = 0
        """Bytes of the streams read so far."""
        directories = self._directories()
        if not directories:
            self.reporter.report("DRM-001", f"{self.path} contains no job", block="DRM")
        elif number is not None:
            directories = self._up_to(directories, number)
        folder = directories[0].parent if directories else Path()
        inside, beside = folder / "blobs", folder.parent / "blobs"
        self.contents = _Contents(inside if os.path.isdir(inside) else beside, self.reporter)
        self.jobs = [RecordedJob(self, directory) for directory in directories]
        if not os.path.isdir(self.contents.directory):
            self._miss_contents(inside, beside)
        self.workspace = _find_room(
            buffer for job in self.jobs if job.submit is not None for buffer in job.submit.buffers
        )

        one = number is not None or os.path.isfile(self.path / "submit.json")
        self.wanted = self.jobs[-1:] if one else self.jobs
        """The jobs asked for; the others only come before them."""

    def _miss_contents(self, *places: Path) -> None:
        """Say once that the folder of all contents is not there; nothing is drawn from zeros."""
        buffers = [b for job in self.jobs if job.submit is not None for b in job.submit.buffers]
        count = sum(buffer.content is not None for buffer in buffers)
        if not count:
            return
        looked = " nor ".join(map(str, places))
        text = f"the folder blobs with the contents of {count} buffers is missing: neither {looked}"
        self.reporter.report("DRM-003", f"{text} exists; copy it with the run", block="DRM")
        for job in self.jobs:
            job.whole = False

    def _up_to(self, directories: list[Path], number: int) -> list[Path]:
        numbers = [int(path.name[3:]) if _is_job(path) else -1 for path in directories]
        if number in numbers:
            return directories[: numbers.index(number) + 1]
        self.reporter.report(
            "DRM-001",
            f"{self.path} has no job {number}, only {', '.join(map(str, numbers[:20]))}",
            block="DRM",
        )
        return []

    def _directories(self) -> list[Path]:
        path = Path(os.path.realpath(self.path))  # no exception for links in a circle
        try:
            if (path / "submit.json").is_file():
                if not _is_job(path):
                    return [path]
                siblings = [p for p in path.parent.iterdir() if _is_job(p)]
                return sorted((p for p in siblings if _place(p) <= _place(path)), key=_place)
            return sorted((p for p in path.iterdir() if _is_job(p)), key=_place)
        except (OSError, ValueError):
            return []


@dataclass
class _Contents:
    """Which recorded content each buffer holds, so that only changes are loaded.

    A buffer is loaded when it is new. When its recorded content changes later, the CPU wrote to it:
    only the bytes that differ are written, because the GPU may have rendered into the rest, unless
    the recording says that it has seen all of them (``"whole": true``).
    """

    directory: Path
    reporter: Reporter
    loaded: dict[int, Buffer] = field(default_factory=dict)

    def load(self, buffers: Iterable[Buffer], memory: GuestMemory) -> None:
        """Bring a job's buffers up to date."""
        for buffer in buffers:
            known = self.loaded.get(buffer.address)
            if known is not None and known.size == buffer.size and known.handle == buffer.handle:
                if buffer.whole:
                    memory.write(buffer.address, self._content(buffer).ljust(buffer.size, b"\0"))
                elif known.content != buffer.content:
                    self._change(known, buffer, memory)
            else:
                self._forget(buffer, memory)
                if buffer.content is not None:
                    memory.write(buffer.address, self._content(buffer))
            self.loaded[buffer.address] = buffer

    def _forget(self, buffer: Buffer, memory: GuestMemory) -> None:
        """Zero what earlier buffers left where a new one goes."""
        end = buffer.address + buffer.size
        for address, old in list(self.loaded.items()):
            if address < end and buffer.address < address + old.size:
                memory.fill(address, old.size)
                del self.loaded[address]

    def _change(self, known: Buffer, buffer: Buffer, memory: GuestMemory) -> None:
        import numpy

        old = numpy.frombuffer(self._content(known).ljust(buffer.size, b"\0"), numpy.uint8)
        new = numpy.frombuffer(self._content(buffer).ljust(buffer.size, b"\0"), numpy.uint8)
        changed = old != new
        memory.array(buffer.address, buffer.size)[changed] = new[changed]

    def _content(self, buffer: Buffer) -> bytes:
        name = buffer.content
        if name is None:
            return b""
        try:
            if not _BLOB_NAME.fullmatch(name):
                raise ValueError("not a blob's name")
            stream = zlib.decompressobj()
            data = stream.decompress(_read_file(self.directory / name, MAX_BUFFER), buffer.content_size or 1)[
                : buffer.content_size
            ]
        except (OSError, ValueError, zlib.error) as error:
            data = b""
            self.reporter.report("DRM-003", f"blob {name[:80]}: {_reason(error)}", block="DRM")
        else:
            if len(data) < buffer.content_size:
                self.reporter.report(
                    "DRM-003", f"blob {name}: {len(data)} of {buffer.content_size} bytes", block="DRM"
                )
        return data


def _is_job(path: Path) -> bool:
    return _JOB_NAME.fullmatch(path.name) is not None and path.is_dir()


def _place(path: Path) -> tuple[int, str]:
    """A job directory's place in its run."""
    return int(path.name[3:]), path.name


def _read_file(path: Path, limit: int = MAX_FILE) -> bytes:
    """A file's content. Raises OSError, or ValueError for what is no file or too large."""
    if path.exists() and not path.is_file():  # a pipe would be waited for
        raise ValueError("not a file")
    with path.open("rb") as file:
        data = read_up_to(file, limit + 1)
    if len(data) > limit:
        raise ValueError(f"larger than {limit} bytes")
    return data


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return (error.strerror or "cannot be read").lower()
    if isinstance(error, RecursionError):
        return "nested too deeply"
    if isinstance(error, UnicodeDecodeError):
        return f"not a text file (byte {error.start} is not UTF-8)"
    if isinstance(error, json.JSONDecodeError):
        return f"not JSON ({error.msg} in line {error.lineno}, column {error.colno})"
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _check_buffer(buffer: Buffer, reporter: Reporter) -> None:
    what = f"buffer {buffer.handle}"
    if not 0 < buffer.size <= MAX_BUFFER or buffer.address + buffer.size > MEMORY_SIZE:
        refuse(reporter, "DRM-004", f"{what}: {buffer.size} bytes at 0x{buffer.address:x}")
    if buffer.address % PAGE:
        text = f"0x{buffer.address:x} is not a multiple of the page size"
        refuse(reporter, "DRM-004", f"{what}: {text}")


def _find_room(buffers: Iterable[Buffer]) -> int | None:
    """The lowest address with room for `WORKSPACE` between all buffers, in one 256 MiB region."""
    taken = sorted({(b.address, b.address + b.size) for b in buffers})
    start = LOWEST
    for low, high in [*taken, (MEMORY_SIZE, MEMORY_SIZE)]:
        if start // REGION != (start + WORKSPACE - 1) // REGION:
            start = round_up(start, REGION)
        if start + WORKSPACE <= low:
            return start
        start = max(start, round_up(high, PAGE))
    return None

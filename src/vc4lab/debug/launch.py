"""A session out of what a command line or an editor says: program, memory, uniforms.

Whatever is wrong is a LaunchError with a sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from vc4lab.debug.programs import ProgramStage
from vc4lab.debug.session import Session
from vc4lab.debug.source import Source
from vc4lab.diagnostics import Reporter
from vc4lab.files import read_source, why
from vc4lab.options import GpuOptions
from vc4lab.qpu.dialects.choose import assemble_source
from vc4lab.qpu.text.containers import ELF_MAGIC, NotFound, elf_code, text_code
from vc4lab.qpu.text.syntax import AssemblyError
from vc4lab.v3d.unknowns import DEFAULT_UNKNOWNS, Unknowns
from vc4lab.v3d.user_programs.experiment import Experiment

if TYPE_CHECKING:
    from vc4lab.debug.frame.capture import Capture
    from vc4lab.debug.shaders.listing import KnownProgram

BINARY, HEX = ".bin", ".hex"
LARGEST_PROGRAM = 4 << 20
"""Bytes of a program's file, whatever its form."""
LARGEST_CARRIER = 16 << 20
"""Bytes of a file that has programs in it: an ELF file, a source in C."""


class LaunchError(ValueError):
    """A program, memory or uniforms that cannot be used; the message says why."""


def read_program(
    path: Path,
    entry: str | None = None,
    symbol: str | None = None,
    dialect: str | None = None,
    folders: Sequence[Path] = (),
) -> tuple[Source, list[str]]:
    """The program of a file, and what is odd in its source. Raises LaunchError.

    symbol: it is an ELF symbol, a C array, or the `.word` lines after a label. dialect, folders: see
    `assemble_source`.
    """
    is_words = path.suffix.lower() in (BINARY, HEX)
    try:
        data = read_source(str(path), LARGEST_PROGRAM if symbol is None else LARGEST_CARRIER)
        is_words = is_words or symbol is not None or data.startswith(ELF_MAGIC)
        if is_words and entry is not None:
            raise LaunchError(f"{path}: words have no labels, so --entry {entry!r} is not possible")
        words = _words(path, data, symbol) if is_words else None
    except OSError as error:
        raise LaunchError(f"{path}: {why(error)}") from None
    except NotFound as error:
        raise LaunchError(f"{path}: {error}") from None
    if words is not None:
        return Source(path, words), []
    try:
        text = data.decode("utf-8-sig")
        assembly = assemble_source(text, dialect=dialect, path=str(path), folders=folders)
    except UnicodeDecodeError as error:
        raise LaunchError(f"{path}: not a text file (byte {error.start} is not UTF-8)") from None
    except AssemblyError as error:
        raise LaunchError(error.shown(str(path))) from None
    notes = [f"{note.file or path}:{note.line}: note: {note.message}" for note in assembly.notes]
    if entry is not None and entry not in assembly.labels:
        known = ", ".join(assembly.labels) or "none"
        raise LaunchError(f"{path}: there is no label {entry!r} (known: {known})")
    start = assembly.labels[entry] if entry is not None else 0
    return Source.of(path, assembly, start), notes


def _words(path: Path, data: bytes, symbol: str | None) -> bytes:
    """The words in a file that is no source of QPU assembly."""
    if data.startswith(ELF_MAGIC):
        return elf_code(data, symbol)[0]
    if symbol is not None:
        return text_code(data.decode("utf-8", "replace"), symbol)
    return data if path.suffix.lower() == BINARY else _from_hex(path, data)


def _from_hex(path: Path, data: bytes) -> bytes:
    try:
        words = [int(word, 16) for word in data.decode("utf-8-sig").split()]
        return b"".join(word.to_bytes(8, "little") for word in words)
    except UnicodeDecodeError as error:
        raise LaunchError(f"{path}: not a text file (byte {error.start} is not UTF-8)") from None
    except (ValueError, OverflowError):
        raise LaunchError(f"{path}: expected one hexadecimal 64-bit word per line") from None


Frames = Callable[[Path], "tuple[Capture, Iterable[KnownProgram]]"]
"""Opens a capture: its frames, and what it knows of programs. Raises LaunchError, CaptureError."""


class Launchable(Protocol):
    """Describes what is stepped."""

    @property
    def is_named(self) -> bool:
        """Whether there is a program."""

    @property
    def frames(self) -> Frames | None:
        """The function that opens captures which an editor names; None: there is none."""

    def session(self) -> tuple[Session, list[str]]:
        """The session where it begins, and what is to be said first. Raises LaunchError."""


@dataclass(frozen=True)
class Launch:
    """Describes what to run, in the options of `vc4lab run`. folder: where relative names lie.

    frames: see `Launchable`.
    """

    program: Path = Path()
    qpus: int = 1
    uniforms: Sequence[str] = ()
    memory: Sequence[str] = ()
    entry: str | None = None
    symbol: str | None = None
    budget: int | None = None
    check: bool = True
    dialect: str | None = None
    include: Sequence[Path] = ()
    unknowns: Unknowns = DEFAULT_UNKNOWNS
    folder: Path | None = None
    frames: Frames | None = None

    @property
    def is_named(self) -> bool:
        """Whether there is a program."""
        return self.program != Path()

    def session(self) -> tuple[Session, list[str]]:
        """The programs where they begin, and what is odd in the source. Raises LaunchError."""
        source, notes = read_program(self.program, self.entry, self.symbol, self.dialect, self.include)
        try:
            experiment = Experiment(
                source.code,
                entry=source.entry,
                gpu=GpuOptions("interpreter", 1, self.unknowns, self.budget),
                reporter=Reporter(),
                check=self.check,
                raw=source.raw,
            )
            for text in self.memory:
                experiment.add_area(text, self.folder)
            return Session(ProgramStage(experiment, source, self.qpus, self.uniforms)), notes
        except OSError as error:
            raise LaunchError(f"{error.filename}: {why(error)}") from None
        except ValueError as error:
            raise LaunchError(str(error)) from None

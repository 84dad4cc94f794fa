"""Types of options that commands share: ranges, engines, addresses, names of files, unknowns.

A value that an option cannot take ends with exit code 2 and a usage message; the ranges are those
of `vc4lab.ranges`, which the Python interface checks as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vc4lab.cli.exit_codes import failed
from vc4lab.ranges import PICTURES, THREADS, Real, Whole

if TYPE_CHECKING:
    from vc4lab.diagnostics.unknown import Unknowns


class Engine(StrEnum):
    """How QPU code is executed."""

    JIT = "jit"
    INTERPRETER = "interpreter"


class ByteOrderChoice(StrEnum):
    """How the bytes of a recorded surface are read."""

    AUTO = "auto"
    RGBA = "rgba"
    BGRA = "bgra"


def limits(allowed: Whole, least: int | None = None) -> dict[str, Any]:
    """The range of a whole number as typer takes it."""
    return {"min": allowed.least if least is None else least, "max": allowed.most}


class Number:
    """A parser for typer: finite numbers in a range."""

    __name__ = "float"

    def __init__(self, allowed: Real) -> None:
        self.allowed = allowed

    def __call__(self, text: str) -> float:
        try:
            return self.allowed.check(float(text))
        except (TypeError, ValueError, OverflowError):
            text = f"{_short(text)} is not a number {self.allowed}."
            raise typer.BadParameter(text) from None


class Address:
    """A parser for typer: whole numbers as people write addresses, 0x8000 or 32768."""

    __name__ = "address"

    def __init__(self, allowed: Whole, multiple: int = 1) -> None:
        self.allowed = allowed
        self.multiple = multiple

    def __call__(self, text: str | int) -> int:
        try:
            number = self.allowed.check(text if isinstance(text, int) else int(text, 0))
        except ValueError:
            problem = f"{_short(text)} is not a number {self.allowed}, such as 0x8000."
            raise typer.BadParameter(problem) from None
        if number % self.multiple:
            raise typer.BadParameter(f"{_short(text)} is not a multiple of {self.multiple}.")
        return number


class FrameRange:
    """A parser for typer: N frames, or the frames from A to B, both included."""

    __name__ = "N or A:B"

    def __call__(self, text: str | tuple[int, int]) -> tuple[int, int]:
        if not isinstance(text, str):
            return text
        first, colon, last = text.partition(":")
        try:
            found = PICTURES.check(int(first)), PICTURES.check(int(last if colon else first))
            if found[0] <= found[1]:
                return found if colon else (0, found[1])
        except ValueError:
            pass
        raise typer.BadParameter(
            f"{_short(text)} is neither a number {PICTURES} nor two of them, such as 10:12."
        )


class FilePath:
    """A parser for typer: names of files and folders. An empty one would mean where one is."""

    __name__ = "path"

    def __call__(self, text: str | Path) -> Path:
        if not str(text):
            raise typer.BadParameter("the name of a file or folder is empty.")
        return Path(text)


FILE = FilePath()


def _short(value: object) -> str:
    text = str(value)
    return repr(text if len(text) <= 40 else text[:37] + "…")


ProcessesOption = Annotated[int | None, typer.Option(help="Processes; one per processor.", **limits(THREADS))]
SchedulerOption = Annotated[
    str | None,
    typer.Option(
        help="Have the workers of this Dask scheduler do it (extra: vc4lab[sweep]).", metavar="ADDRESS"
    ),
]
METAVAR = "NAME=CHOICE"
UnknownOption = Annotated[
    list[str] | None,
    typer.Option(
        "--unknown",
        help="Change a choice about undocumented hardware, see `vc4lab unknowns`; repeatable.",
        metavar=METAVAR,
    ),
]
CountersOption = Annotated[bool, typer.Option("--counters", help="Print each job's performance counters.")]


def unknowns_of(texts: Sequence[str] | None) -> Unknowns:
    """The setting of all switches. Raises typer.Exit, with a sentence, for what is none."""
    import vc4lab.drm.cpu_memory.cpu_memory_unknowns
    import vc4lab.scanout.display_unknowns
    import vc4lab.soc.board_unknowns  # noqa: F401 – importing adds its rows
    from vc4lab.diagnostics.unknown import Unknowns

    changed: dict[str, str] = {}
    try:
        for text in texts or ():
            name, equals, choice = text.partition("=")
            if not equals:
                raise ValueError(f"{text!r} is not {METAVAR}")
            changed[name.strip()] = choice.strip()
        return Unknowns(changed)
    except (KeyError, ValueError) as error:
        raise failed(f"--unknown: {error.args[0]}") from None

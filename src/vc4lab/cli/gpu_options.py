"""The options that every command with a V3D has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vc4lab.cli.groups import Group
from vc4lab.cli.messages import reporter_of
from vc4lab.cli.options import Engine, UnknownOption, limits, unknowns_of
from vc4lab.cli.outputs import say
from vc4lab.ranges import THREADS

if TYPE_CHECKING:
    from vc4lab.diagnostics import Reporter
    from vc4lab.options import GpuOptions


@dataclass(frozen=True)
class GpuGroup(Group):
    """The options of a V3D, and of what is reported of it."""

    engine: Annotated[Engine, typer.Option(help="How QPU code is executed; interpreter: the reference.")] = (
        Engine.JIT
    )
    threads: Annotated[
        int | None, typer.Option(help="Worker threads; one per processor.", **limits(THREADS))
    ] = None
    unknown: UnknownOption = None
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first error.")] = False

    def options(self, **others: Any) -> GpuOptions:
        """The choices for one V3D. others: fields of GpuOptions. Raises typer.Exit."""
        from vc4lab.options import GpuOptions

        if "unknowns" not in others:
            others["unknowns"] = unknowns_of(self.unknown)
        return GpuOptions(self.engine.value, self.threads, **others)

    def reporter(self) -> Reporter:
        """The reporter of a command, which prints its messages."""
        made = reporter_of(self.strict)
        made.listeners.append(lambda item: say(str(item)))
        return made

"""The settings of a run, collected once and passed on as a whole."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vc4lab.cli.groups import Group
from vc4lab.cli.options import FILE, limits
from vc4lab.cli.outputs import PictureOptions
from vc4lab.ranges import PORT
from vc4lab.soc.options import MachineOptions

if TYPE_CHECKING:
    from vc4lab.cli.capturing import CaptureWish
    from vc4lab.cli.live_timing import LiveTiming


@dataclass(frozen=True)
class InstrumentOptions(Group):
    """Says what looks at a machine, and what goes into it and comes out of it."""

    gdb: Annotated[
        int | None,
        typer.Option(
            help="Wait for a debugger on this loopback port (target remote :PORT).",
            metavar="PORT",
            **limits(PORT),
        ),
    ] = None
    gdb_wait: Annotated[
        bool, typer.Option(help="With --gdb: whether to wait before the first instruction.")
    ] = True
    trace: Annotated[
        str | None,
        typer.Option(
            help="Print register accesses, interrupts and mailbox messages as they happen.",
            metavar="mmio,irq,mailbox,v3d",
        ),
    ] = None
    trace_to: Annotated[
        Path | None, typer.Option(help="Write the trace into this file.", metavar="FILE", parser=FILE)
    ] = None
    symbols: Annotated[
        Path | None,
        typer.Option(
            help="Take function names from this ELF file. Default: the one next to the image.",
            metavar="F.elf",
            parser=FILE,
        ),
    ] = None
    save_state: Annotated[
        Path | None,
        typer.Option(help="Save the machine here when the run is over.", metavar="F", parser=FILE),
    ] = None
    load_state: Annotated[
        Path | None, typer.Option(help="Continue from a saved machine.", metavar="F", parser=FILE)
    ] = None
    state_in_place: bool = False
    """`load_state` is in an own cache (`load_state`'s `in_place`)."""
    audio: Annotated[
        Path | None, typer.Option(help="Record what the PWM plays here.", metavar="F.wav", parser=FILE)
    ] = None
    write_image: Annotated[
        bool, typer.Option("--write-image", help="Write the card's changes to its image at the end.")
    ] = False
    lists: Annotated[
        bool,
        typer.Option(
            "--lists",
            help="Print the control lists that the program starts, with tile lists, shader records, "
            "programs and uniforms.",
        ),
    ] = False


@dataclass(frozen=True)
class Settings:
    """A run of a machine."""

    path: Path
    machine: MachineOptions = field(default_factory=MachineOptions)
    pictures: PictureOptions = field(default_factory=PictureOptions)
    instruments: InstrumentOptions = field(default_factory=InstrumentOptions)
    timing: LiveTiming | None = None
    capture: CaptureWish | None = None
    frames: int | None = None
    seconds: float | None = None
    serial: str | None = None
    all_keys: bool = False
    """With serial "stdio" on a terminal: Ctrl-C is the program's."""
    realtime: bool = False
    says_late: bool = True
    """Whether a host that is too slow for `realtime` is reported: it was asked for."""
    strict: bool = False
    front: str = "boot"
    """The command, as captures name it."""

"""The settings of a run, collected once and passed on as a whole."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from vc4lab.cli.outputs import PictureOptions
from vc4lab.soc.options import MachineOptions

if TYPE_CHECKING:
    from vc4lab.cli.capturing import CaptureWish
    from vc4lab.cli.live_timing import LiveTiming


@dataclass(frozen=True)
class InstrumentOptions:
    """Says what looks at a machine, and what goes into it and comes out of it."""

    gdb: int | None = None
    gdb_wait: bool = True
    trace: str | None = None
    trace_to: Path | None = None
    symbols: Path | None = None
    save_state: Path | None = None
    load_state: Path | None = None
    state_in_place: bool = False
    """`load_state` is in an own cache (`load_state`'s `in_place`)."""
    audio: Path | None = None
    write_image: bool = False
    timing: LiveTiming | None = None
    capture: CaptureWish | None = None
    lists: bool = False


@dataclass(frozen=True)
class Settings:
    """A run of a machine."""

    path: Path
    machine: MachineOptions = field(default_factory=MachineOptions)
    pictures: PictureOptions = field(default_factory=PictureOptions)
    instruments: InstrumentOptions = field(default_factory=InstrumentOptions)
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

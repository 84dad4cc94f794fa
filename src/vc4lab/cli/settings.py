"""What a command line asks of a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vc4lab.diagnostics.unknown import Unknowns
    from vc4lab.soc.boot.boot_extras import BootExtras


@dataclass
class Settings:
    """What the command line asked for."""

    path: Path
    board: str = "pi2"
    frames: int | None = None
    seconds: float | None = None
    screenshot: Path | None = None
    record: Path | None = None
    serial: str | None = None
    headless: bool = False
    strict: bool = False
    engine: str = "jit"
    gdb: int | None = None
    gdb_wait: bool = True
    trace: str | None = None
    trace_to: Path | None = None
    symbols: Path | None = None
    window: bool = False
    save_state: Path | None = None
    load_state: Path | None = None
    every: int = 1
    audio: Path | None = None
    card: Path | None = None
    write_image: bool = False
    caches: str | None = None
    both_orders: bool = False
    unknowns: Unknowns | None = None
    realtime: bool = False
    extras: BootExtras | None = None

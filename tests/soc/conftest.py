"""Booting the test kernels, with a V3D that only counts."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vc4lab.diagnostics import Reporter
from vc4lab.memory import GuestMemory
from vc4lab.soc.devices.serial.serial import SerialPort
from vc4lab.soc.machine import Machine
from vc4lab.v3d.event_listeners import V3DListeners
from vc4lab.v3d.events import FrameDone

KERNELS = Path(__file__).parent / "kernels"
CT1EA = 0x10C


class CountingV3D:
    """A V3D that completes a frame when its rendering thread is started."""

    def __init__(self, memory: GuestMemory, reporter: Reporter) -> None:
        self.listeners = V3DListeners()
        self.waiting: str | None = None
        self.interrupt_pending = False
        self.writes: list[tuple[int, int]] = []

    def read(self, offset: int) -> int:
        return 0x02443356 if offset == 0 else 0

    def write(self, offset: int, value: int) -> None:
        self.writes.append((offset, value))
        if offset == CT1EA:
            self.listeners.frame_done.emit(FrameDone(0))
            self.listeners.raise_failure()

    def settle(self) -> None:
        """It has no programs to run."""


Boot = Callable[..., Machine]


@pytest.fixture
def boot(tmp_path: Path) -> Boot:
    """`boot("name", config, typed)` → a machine with a test kernel (or bytes) on its card."""

    def make(kernel: str | bytes, config: str | None = None, typed: str = "", **options: Any) -> Machine:
        image = kernel if isinstance(kernel, bytes) else (KERNELS / f"{kernel}.img").read_bytes()
        (tmp_path / "kernel7.img").write_bytes(image)
        if config is not None:
            (tmp_path / "config.txt").write_text(config)
        port = SerialPort()
        port.type(typed)
        options.setdefault("v3d_factory", CountingV3D)
        return Machine(tmp_path, serial=port, **options)

    return make

"""How a run of a machine ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

from vc4lab.memory import GuestMemory
from vc4lab.soc.devices.serial.uart import Uart
from vc4lab.soc.videocore.framebuffer import Screen


class Stop(Enum):
    """Why `Machine.run` returned."""

    FRAMES = "the frames came"
    SECONDS = "the time is up"
    HALTED = "the program has ended"
    RESET = "the program asked for a restart"
    HANG = "the program hangs"
    STOPPED = "it was stopped"
    CRASH = "the program crashed"


class Inspectable(Protocol):
    """A machine, as it is looked at after a run."""

    screen: Screen
    uart: Uart
    memory: GuestMemory

    @property
    def v3d(self) -> Any:
        """The V3D, None if it was never switched on."""


@dataclass(frozen=True)
class RunResult:
    """How a run ended: why, frames presented since power-on, guest seconds, a sentence.

    The machine's screen, serial line, memory and V3D can be asked here too:
    `Machine("sdcard").run(frames=3).screen.image`.
    """

    reason: Stop
    frames: int
    seconds: float
    message: str
    machine: Inspectable | None = field(default=None, compare=False, repr=False)

    def __repr__(self) -> str:
        frames = "1 frame" if self.frames == 1 else f"{self.frames} frames"
        text = f"{frames}, {self.seconds:.3f} s of guest time, {self.message}"
        return f"<RunResult {self.reason.name}: {text}>"

    def _of(self) -> Inspectable:
        if self.machine is None:
            raise ValueError("this result has no machine")
        return self.machine

    @property
    def screen(self) -> Screen:
        """The machine's display."""
        return self._of().screen

    @property
    def uart(self) -> Uart:
        """The machine's serial port; `uart.text` is what it printed."""
        return self._of().uart

    @property
    def memory(self) -> GuestMemory:
        """The machine's RAM; `memory[0x8000:0x8010]` are bytes."""
        return self._of().memory

    @property
    def v3d(self) -> Any:
        """The machine's V3D, None if it was never switched on."""
        return self._of().v3d

    def _repr_png_(self) -> bytes | None:
        """The picture, in a notebook."""
        return None if self.machine is None else self.machine.screen._repr_png_()

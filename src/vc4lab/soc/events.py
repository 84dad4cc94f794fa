"""Events of a machine that may be observed, besides those of its V3D (`v3d/events/`).

`Machine.listeners` has an attribute for each kind, with any number of listeners
(`vc4lab.listeners`). They are called in the thread that runs the machine, between two slices of the
CPU; when one raises, `Machine.run` raises after all have heard. What comes inside of a slice is
heard where it happens: `Bus.watch`, `Mailbox.message`, `InterruptController.line_change`,
`Cpu.exception_taken`, `HypCore.left`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from vc4lab.listeners import Listeners
from vc4lab.soc.result import RunResult


class Vsync(NamedTuple):
    """A vsync: its number since power-on."""

    number: int


class RunEnded(NamedTuple):
    """A run has ended, `Machine.run` is about to return this."""

    result: RunResult


class V3DMade(NamedTuple):
    """The program has switched the V3D on: here it is, with registers as after power on."""

    v3d: Any


class MachineListeners:
    """The listeners of one machine, by kind of event."""

    def __init__(self) -> None:
        self.vsync: Listeners[Vsync] = Listeners()
        self.run_ended: Listeners[RunEnded] = Listeners()
        self.v3d_made: Listeners[V3DMade] = Listeners()

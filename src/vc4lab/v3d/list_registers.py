"""The registers of the list threads (CTn…), of the pipelines' state and of the binner's memory.

As in `core.py`, the behaviour of a register is a method named after it. Source: hardware reference
2.5, 2.6.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from vc4lab.v3d.memory_uses import Use
from vc4lab.v3d.registers import BinnerDebug, PipelineStatus, ThreadControl

if TYPE_CHECKING:
    from vc4lab.v3d.register_owner import RegisterOwner


class ListRegisters:
    """What these registers of a V3D do."""

    def __init__(self, v3d: RegisterOwner) -> None:
        self._v3d = v3d
        self._values = v3d.values
        self._binning = v3d.binning
        self._threads = v3d.threads
        for number in (0, 1):
            self._install(number)

    # -- list threads ------------------------------------------------------------------------

    def _install(self, number: int) -> None:
        """The behaviour of thread `number`'s registers (its number is in their names)."""
        thread, v3d = self._threads[number], self._v3d

        def starts(write: Callable[[int], bool]) -> Callable[[int], None]:
            return lambda value: v3d.start(number) if write(value) else None

        def current() -> int:
            return thread.first if v3d.seems_busy(number) else thread.current

        registers: dict[str, tuple[Callable[[], int], Callable[[int], None] | None]] = {
            f"CT{number}CS": (
                partial(self._status, number),
                starts(partial(self._write_control, number)),
            ),
            f"CT{number}CA": (current, thread.set_current),
            f"CT{number}EA": (lambda: thread.end, starts(thread.set_end)),
            f"CT0{number}RA0": (lambda: thread.stack[-1] if thread.stack else 0, None),
            f"CT{number}LC": (thread.list_counters, thread.clear_counters),
        }
        for name, (read, write) in registers.items():
            setattr(self, f"_on_read_{name}", read)
            if write is not None:
                setattr(self, f"_on_write_{name}", write)

    def _write_control(self, number: int, value: int) -> bool:
        """CTnCS as written; whether the thread starts."""
        if ThreadControl(value).CTRSTA and self._v3d.progress is not None:
            self._v3d.progress.finish(number)
        if ThreadControl(value).CTRSTA and self._v3d.unknowns["state_after_reset"] == "reset":
            v3d = self._v3d
            (v3d.frames if number else v3d.binning.binner).forget_state()
        return self._threads[number].write_control(value)

    def _status(self, number: int) -> int:
        if self._v3d.seems_busy(number):
            return ThreadControl.make(CTRUN=1, CTMODE=0).value
        shown = number if self._v3d.unknowns["ctsema"] == "sent" else 1 - number
        return self._threads[number].status(self._threads[shown].increments)

    def _on_read_PCS(self) -> int:
        binning, rendering = (t.running or self._v3d.seems_busy(t.number) for t in self._threads)
        return PipelineStatus.make(
            BMOOM=self._binning.out_of_memory,
            BMACTIVE=binning,
            BMBUSY=binning and self._binning.out_of_memory,
            RMACTIVE=rendering,
        ).value

    # -- binner memory -----------------------------------------------------------------------

    def _on_read_BPCA(self) -> int:
        return self._binning.binner.pool_address

    def _on_read_BPCS(self) -> int:
        return self._binning.binner.pool_bytes

    def _on_write_BPOS(self, value: int) -> None:
        self._values["BPOS"] = value
        if value:
            self._v3d.lint.addresses.uses(Use.OVERSPILL, self._values["BPOA"], 4)
            if self._v3d.progress is not None:
                self._v3d.progress.begin(0)
        self._binning.supply(self._values["BPOA"], value)
        if self._threads[0].running:
            self._v3d.run()

    def _on_write_BXCF(self, value: int) -> None:
        self._values["BXCF"] = value
        self._binning.clipping_disabled = bool(BinnerDebug(value).CLIPDISA)

    def _on_read_CT0PC(self) -> int:
        return self._binning.remaining

    def _on_write_BPOA(self, value: int) -> None:
        self._values["BPOA"] = value

    def _on_read_BPOS(self) -> int:
        return self._binning.overspill_size

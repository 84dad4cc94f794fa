"""A core's physical addresses: RAM, registers, and where nothing is."""

from __future__ import annotations

from collections.abc import Callable

from vc4lab.diagnostics.unknown import Unknowns
from vc4lab.soc.address.bus import Bus
from vc4lab.soc.address.open_bus import OpenBus
from vc4lab.soc.board import Board
from vc4lab.soc.cores.cpu import Cpu

WINDOW = 0x01000000
"""Bytes of the peripherals' window."""
GIB = 1 << 30
END = 1 << 32


def repeats(board: Board, unknowns: Unknowns) -> tuple[int, ...]:
    """Addresses at which the first GiB is found again: a BCM2835 has 30 address lines."""
    if board.local is not None or unknowns["arm_upper_addresses"] == "nothing":
        return ()
    return tuple(range(GIB, END, GIB))


class AddressSpace:
    """The windows of a board's cores; all cores see the same.

    Parameters
    ----------
    local
        The bus of the local block, and how many bytes it has; None on a board without.
    """

    def __init__(
        self,
        board: Board,
        bus: Bus,
        local: tuple[Bus, int] | None,
        places: Callable[[int], str],
        unknowns: Unknowns,
    ) -> None:
        self._again = repeats(board, unknowns)
        self._windows = [
            (start + board.peripherals, WINDOW, bus.native_window) for start in (0, *self._again)
        ]
        gap = board.peripherals + WINDOW
        if board.local is not None and local is not None:
            local_bus, size = local
            self._windows.append((board.local, size, local_bus.native_window))
            gap = board.local + size
        ends = (*self._again, END)
        self.nothing = [
            OpenBus(start + gap, bus.clock.counter, bus.reporter, places, board.peripherals)
            for start in (0, *self._again)
        ]
        for nothing, start, end in zip(self.nothing, (0, *self._again), ends, strict=True):
            self._windows.append((start + gap, end - start - gap, nothing.native_window))

    def lay_out(self, cpu: Cpu) -> None:
        """Give a core its windows."""
        for start in self._again:
            cpu.repeat_memory(start)
        for start, size, functions in self._windows:
            cpu.calls.map_window(start, size, functions)

"""Native execution of binning lists (`binning_kernel.py`) for one V3D."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from vc4lab.memory import lazy_zeros
from vc4lab.simd import NativeFunction, NativeModule, build, i32, late_kernel, ptr
from vc4lab.v3d.cle import binning_context as bc
from vc4lab.v3d.cle.binned_draws import BinnedDraws
from vc4lab.v3d.cle.binning_context import BinningContext, Note
from vc4lab.v3d.ptb import binner as ptb
from vc4lab.v3d.ptb.context import DONE
from vc4lab.v3d.state.record_notes import MAX_NOTES as MAX_RECORDS
from vc4lab.v3d.tile_lists.scan_context import MAX_VERTICES
from vc4lab.v3d.vertex.context import COORDINATE_ROWS, VERTEX_BATCH, NvContext
from vc4lab.v3d.vertex.fetch import range_function
from vc4lab.v3d.vertex.nv import copy_function
from vc4lab.v3d.vpm.shader_rows import ROW_BYTES

if TYPE_CHECKING:
    from vc4lab.memory import GuestMemory
    from vc4lab.v3d.checks.addresses import AddressCheck
    from vc4lab.v3d.ptb.binner import Binner
    from vc4lab.v3d.state.record_notes import RecordNotes
    from vc4lab.v3d.vertex.shader_table import ShaderTable

assert bc.WORK_PER_CALL < MAX_RECORDS, "one call notes more records than there is room for"
_OUTPUT_BYTES = MAX_VERTICES // VERTEX_BATCH * (COORDINATE_ROWS + 1) * ROW_BYTES


@cache
def _native(recording: bool = False, works: bool = False) -> NativeModule:
    """Variants: `recording` notes each record that it executes, `works` what each draw took."""
    kernels = {
        "execute": late_kernel(
            "vc4lab.v3d.cle.binning_kernel", "execute_list", (ptr,), i32, recording=recording, works=works
        ),
        "admit_vg": late_kernel("vc4lab.v3d.cle.draw_kernel", "admit_vg", (ptr, i32), i32),
    }
    key = f"binning_list{'-recording' * recording}{'-works' * works}"
    return build("binning_list", kernels, float_mode="default", key=key, quick=True)


@cache
def _execute(recording: bool, works: bool) -> Callable[[int], int]:
    found: Callable[[int], int] = _native(recording, works)["execute"].call
    return found


def _function(number: int) -> NativeFunction:
    """One of `BinningContext.functions`."""
    if number == bc.COPY_NV:
        return copy_function()
    if number in (bc.BYTES, bc.SHORTS):
        return range_function(8 if number == bc.BYTES else 16)
    return ptb.native((*ptb.KERNELS, "outcodes")[number])


class NativeBinning:
    """Executes the records of a binning list.

    `shaders` are the coordinate shaders it may use, `addresses` knows which need no message.
    `context` says what the list has come to; `context.indices` counts the vertices of its draws.
    """

    def __init__(
        self, memory: GuestMemory, binner: Binner, shaders: ShaderTable, addresses: AddressCheck
    ) -> None:
        self.binner = binner
        self.shaders = shaders
        context = BinningContext()
        self.context = context
        self._address = context.address
        self._execute: Callable[[int], int] | None = None  # made when needed, see v3d/README.md
        self.notes_uses = False
        """Whether draws and modes are noted, for listeners to uses of memory."""
        self.binned: BinnedDraws | None = None
        """Takes what draws took, if there is a listener for that."""
        self._nv = NvContext()
        self._nv.memory = memory.base
        shaders.attach(context, memory.base, addresses)
        context.binner, context.nv = binner.context.address, self._nv.address
        self._memory = lazy_zeros(MAX_VERTICES + _OUTPUT_BYTES + 64)
        context.used = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        context.output = context.used + MAX_VERTICES

    def run(self, here: int, end: int, notes: RecordNotes) -> tuple[int, int]:
        """Executes records from guest address `here` on, and notes them if that is wanted.

        Returns
        -------
        tuple
            The address of the next record, and what came of the last one (`binning_context`).
        """
        context = self.context
        context.here, context.end = here, end  # members take the low 32 bits
        if notes.any_listener.present:
            result = notes.run(0, context, _execute(True, self.binned is not None))
        elif self.binned is not None:
            result = _execute(False, True)(self._address)
        else:
            execute = self._execute
            if execute is None:
                execute = self._execute = _execute(False, False)
            result = execute(self._address)
        return context.here & 0xFFFFFFFF, result

    def take_notes(self) -> list[Any]:
        """The notes that were made since the last call."""
        count, self.context.note_count = self.context.note_count, 0
        start = self.context.notes
        return [Note.python.from_address(start + number * Note.size) for number in range(count)]

    def note_uses(self, wanted: bool) -> None:
        """Whether notes are made from now on."""
        context, self.notes_uses = self.context, wanted
        if wanted and not context.notes:
            self._notes = (ctypes.c_char * (Note.size * bc.MAX_NOTES))()
            context.notes = ctypes.addressof(self._notes)
        context.note_room = bc.MAX_NOTES if wanted else 0

    def record_draws(self, wanted: bool) -> None:
        """Whether what draws took is noted from now on."""
        self.binned = BinnedDraws(self.context.binned) if wanted else None

    def settle(self, result: int) -> int:
        """The rest of a draw or flush that the binner did not finish; the status, as of these."""
        context, binner = self.context, self.binner
        if result == bc.INTERRUPTED:
            return binner.settle_draw(context.status)
        if result == bc.FLUSHED:
            return binner.settle_flush(context.status, bool(context.flushed_all))
        return DONE

    def admit_vg(self, length: int) -> int:
        """The finding about a VG record of `length` words, which is counted; or 0."""
        return int(_native()["admit_vg"](self._address, length & 0xFFFFFFFF))

    def compile(self) -> None:
        """The native function that is wanted may be called from now on."""
        number = self.context.wanted
        self.context.functions[number] = _function(number).address

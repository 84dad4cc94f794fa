"""Runs the native walker of binning lists (`walk_kernel.py`) for one V3D."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING, Any

from vc4lab.simd import Function, NativeFunction, Value, build, i32, is_known, ptr
from vc4lab.v3d.cle.walk_context import FLUSHED, INTERRUPTED, MOST_NOTES, Note, WalkContext
from vc4lab.v3d.draws.patience import Patience
from vc4lab.v3d.ptb import binner as ptb
from vc4lab.v3d.ptb.context import DONE
from vc4lab.v3d.state.draw_input import INDEX_8, INDEX_16, PRIMITIVE_TYPE, IndexSource
from vc4lab.v3d.tile_lists.scan_context import MAX_VERTICES
from vc4lab.v3d.vertex.context import BATCH, COORDINATE_ROWS
from vc4lab.v3d.vertex.indices import range_function
from vc4lab.v3d.vertex.nv import NvContext, copy_function
from vc4lab.v3d.vpm.shader_rows import ROW_BYTES

if TYPE_CHECKING:
    from vc4lab.memory import GuestMemory
    from vc4lab.v3d.checks.addresses import AddressCheck
    from vc4lab.v3d.ptb.binner import Binner
    from vc4lab.v3d.vertex.shader_table import ShaderTable

_OUTPUT_BYTES = MAX_VERTICES // BATCH * (COORDINATE_ROWS + 1) * ROW_BYTES


def _walk(context: Value) -> Any:
    """Imports the kernel when it is compiled, not when it is loaded."""
    from vc4lab.v3d.cle.walk_kernel import walk

    return walk(context)


_MODULE: Any = {
    "name": "walk", "functions": {"walk": Function((ptr,), i32, _walk, "walk")},
    "float_mode": "default", "key": "walk",
}  # fmt: skip


@cache
def _native() -> NativeFunction:
    return build(**_MODULE)["walk"]


class ListWalker:
    """Executes the records of a binning list that need no Python.

    `shaders` are the coordinate shaders it may use, `addresses` knows which need no message.
    `context` says what the list has come to, whichever path executed its records;
    `context.indices` counts the vertices of all its draws.
    """

    def __init__(
        self,
        memory: GuestMemory,
        binner: Binner,
        shaders: ShaderTable,
        addresses: AddressCheck,
    ) -> None:
        self.binner = binner
        self.shaders = shaders
        self.patience = Patience(lambda: is_known(**_MODULE))
        context: Any = WalkContext()
        self.context = context
        self._address = context.address
        self._nv: Any = NvContext()
        self._nv.memory = memory.base
        shaders.attach(context, memory.base, addresses)
        context.binner, context.nv = binner.context.address, self._nv.address
        # untouched pages cost nothing
        self._memory = (ctypes.c_char * (MAX_VERTICES + _OUTPUT_BYTES + 64))()
        context.used = (ctypes.addressof(self._memory) + 63) & ~63
        context.output = context.used + MAX_VERTICES

    def run(self, here: int, end: int) -> tuple[int, int]:
        """Executes records from guest address `here` on.

        Returns
        -------
        tuple
            The address of the next record, and why it stopped there: `OTHER`, or `INTERRUPTED` or
            `FLUSHED` with `context.status`.
        """
        context = self.context
        context.here, context.end = here, end  # members take the low 32 bits
        result: int = _native().call(self._address)
        return context.here & 0xFFFFFFFF, result

    def take_notes(self) -> list[Any]:
        """The notes that were made since the last call."""
        count, self.context.note_count = self.context.note_count, 0
        start = self.context.notes
        return [Note.python.from_address(start + number * Note.size) for number in range(count)]

    def listen(self, wanted: bool) -> None:
        """Whether notes are made from now on."""
        context = self.context
        if wanted and not context.notes:
            self._notes = (ctypes.c_char * (Note.size * MOST_NOTES))()
            context.notes = ctypes.addressof(self._notes)
        context.note_room = MOST_NOTES if wanted else 0

    def settle(self, result: int) -> int:
        """The rest of a draw or flush that the binner did not finish; the status, as of these."""
        context, binner = self.context, self.binner
        if result == INTERRUPTED:
            return binner.settle_draw(context.status)
        if result == FLUSHED:
            return binner.settle_flush(context.status, bool(context.flushed_all))
        return DONE

    def provide(self, mode: int, source: IndexSource, *, nv: bool) -> None:
        """A draw was done in Python; the native code it needed may be called from now on."""
        context, kind = self.context, PRIMITIVE_TYPE[mode]
        if not context.binners[kind]:
            context.binners[kind] = ptb.native(ptb.KERNELS[kind]).address
            context.outcodes = ptb.native("outcodes").address
        if source.kind == INDEX_8 and not context.bytes_used:
            context.bytes_used = range_function(8).address
        if source.kind == INDEX_16 and not context.shorts_used:
            context.shorts_used = range_function(16).address
        if nv and not context.copy_nv:
            context.copy_nv = copy_function().address

    def provide_frame(self) -> None:
        """Records 112 and 4 were done in Python, and may be done natively from now on."""
        context = self.context
        if not context.configure:
            context.configure = ptb.native("configure").address
            context.finish = ptb.native("finish_all").address

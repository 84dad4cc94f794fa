"""The draws of a frame as native arrays, and the native code that prepares what it knows."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, overload

from vc4lab.simd import Function, NativeFunction, Value, build, i32, is_known, ptr
from vc4lab.v3d.draws.context import PREPARED, ROOM, PrepareContext
from vc4lab.v3d.draws.patience import Patience
from vc4lab.v3d.draws.pipeline_table import PipelineTable
from vc4lab.v3d.state.tile_context import DrawParams
from vc4lab.v3d.tiles.job import Draw
from vc4lab.v3d.vertex.nv import NvContext, copy_function

if TYPE_CHECKING:
    from vc4lab.memory import GuestMemory
    from vc4lab.v3d.checks.addresses import AddressCheck
    from vc4lab.v3d.tile_lists.contents import DrawUse, ScanResult
    from vc4lab.v3d.vertex.shading import VertexStage

_ALIGNMENT = 64


@lru_cache(maxsize=1)
def _native() -> NativeFunction:
    def body(context: Value) -> Any:
        from vc4lab.v3d.draws.kernel import prepare  # only when it is compiled

        return prepare(context)

    return build(**_arguments(body))["prepare"]


def _known() -> bool:
    return is_known(**_arguments(lambda context: context))


def _arguments(body: Callable[[Value], Any]) -> dict[str, Any]:
    functions = {"prepare": Function(args=(ptr,), returns=i32, body=body)}
    return {"name": "draws", "functions": functions, "float_mode": "default", "key": "draws"}


class FrameDraws(Sequence[Draw]):
    """The draws of the frame at hand; made once, filled anew for each frame.

    `table` has two u64 a draw, the host addresses of its function and parameters. Items are made
    when they are asked for. `prepare(use)` does in Python what native code leaves to it.
    `reached(use, number, target)` prepares a draw again whose program goes on at an address that
    was not known. `make` turns what was entered as `made` into the rest of a `Draw`.
    """

    def __init__(
        self,
        memory: GuestMemory,
        vertices: VertexStage,
        addresses: AddressCheck,
        prepare: Callable[[DrawUse], Draw],
        reached: Callable[[DrawUse, int, int], Draw | None],
        make: Callable[[int, int, Any], Draw],
        *,
        rht_moved: int,
    ) -> None:
        self.pipelines = PipelineTable()
        self.table: Any = None
        self._vertices = vertices
        self._prepare, self._reached, self._make = prepare, reached, make
        self._scan: ScanResult | None = None
        self._count = self._capacity = 0
        self._by_python: dict[int, Draw] = {}
        self._nv: Any = NvContext()
        self._nv.memory = memory.base
        context: Any = PrepareContext()
        self._context, self._address = context, context.address
        vertices.shaders.attach(context, memory.base, addresses)
        self.pipelines.attach(context)
        context.nv = self._nv.address
        context.rht_moved = rht_moved
        self._patience = Patience(_known)
        self._grow(64)

    def _grow(self, capacity: int) -> None:
        self._capacity = capacity
        self.table = (ctypes.c_uint64 * (2 * capacity))()
        self._found = (ctypes.c_uint64 * capacity)()
        self._params = (ctypes.c_char * (capacity * DrawParams.size + _ALIGNMENT))()
        context = self._context
        context.results = ctypes.addressof(self.table)
        context.found = ctypes.addressof(self._found)
        context.params = -(-ctypes.addressof(self._params) // _ALIGNMENT) * _ALIGNMENT

    def done_natively(self) -> list[int]:
        """The draws of the scan at hand that needed no Python."""
        return [number for number in range(self._count) if number not in self._by_python]

    def fill(self, scan: ScanResult, *, mode: int, native: bool = True) -> None:
        """Prepares all draws of a scan.

        `mode` numbers the modes of a frame that pipelines depend on (8 bits). `native`: as far as
        native code can do it.
        """
        self._scan = scan
        context, count = self._context, scan.draw_count
        if self.pipelines.stale:
            self.pipelines.renew()
        native = native and self._patience.over()
        if self._by_python:
            self._by_python.clear()
        self._count = count
        if not count:
            return
        if count > self._capacity:
            self._grow(2 * count)
        context.draws, context.draw_count, context.draw = scan.draw_entries, count, 0
        context.mode, context.expanded = mode, scan.expanded
        while context.draw < count:
            if native and self.pipelines.made and self._run() == PREPARED:
                return
            number = context.draw
            draw = self._by_python[number] = self._prepare(scan.draw(number))
            self.table[2 * number], self.table[2 * number + 1] = draw.function, draw.params
            context.draw = number + 1

    def _run(self) -> int:
        """Native code as far as it gets."""
        context, arena = self._context, self._vertices.arena
        while True:
            context.room, context.room_end = arena.window
            status: int = _native().call(self._address)
            arena.take_up_to(context.room)
            if status != ROOM:
                return status
            arena.reserve(context.needed)

    def reached(self, number: int, target: int) -> Draw | None:
        """A draw made anew, whose program has gone on at `target`; None if it cannot."""
        assert self._scan is not None
        draw = self._reached(self._scan.draw(number), number, target)
        if draw is not None:
            self._by_python[number] = draw
        return draw

    def provide(self, *, nv: bool) -> None:
        """A draw was prepared in Python; the native code it needed may be called from now on."""
        if nv and not self._context.copy_nv:
            self._context.copy_nv = copy_function().address

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, number: int) -> Draw: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[Draw]: ...
    def __getitem__(self, number: int | slice) -> Draw | Sequence[Draw]:
        if isinstance(number, slice):
            return [self[k] for k in range(*number.indices(self._count))]
        if not 0 <= number < self._count:
            raise IndexError(number)
        known = self._by_python.get(number)
        if known is not None:
            return known
        made = self.pipelines.made[self._found[number]]
        return self._make(self.table[2 * number], self.table[2 * number + 1], made)

"""Finds or makes the native sampler for a texture configuration that a user program brings."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from vc4lab.v3d.compute.state import TEXTURES, QpuState, SharedState, Unit

if TYPE_CHECKING:
    from vc4lab.diagnostics import Reporter
    from vc4lab.v3d.unknowns import Unknowns

_RESOLVE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_uint64, ctypes.c_int32)


class TextureSlots:
    """Fills the slots of a SharedState when native code asks; the oldest makes room."""

    def __init__(self, shared: SharedState, reporter: Reporter, unknowns: Unknowns) -> None:
        self.shared = shared
        self.reporter = reporter
        self.unknowns = unknowns
        self._next = 0
        self._kept: list[Any] = [None] * TEXTURES
        self._callback = _RESOLVE(self._resolve)
        shared.resolve = ctypes.cast(self._callback, ctypes.c_void_p).value or 0

    def _resolve(self, qpu: int, unit: int) -> int:
        from vc4lab.v3d.fragment.texture_state import describe_texture
        from vc4lab.v3d.fragment.tmu_kernels import sampler_module

        base = qpu + QpuState.offset("units") + unit * Unit.size
        used = ctypes.c_int32.from_address(base + Unit.offset("written")).value
        place = base + Unit.offset("parameters")
        words = [ctypes.c_uint32.from_address(place + 4 * k).value for k in range(4)]
        words = [word if k < used else 0 for k, word in enumerate(words)]
        p0, p1, p2, p3 = words
        kind, descriptor = describe_texture(p0, p1, p2, p3, used, unknowns=self.unknowns)
        module = sampler_module(kind)
        number = self._next
        self._next = (number + 1) % TEXTURES
        self._kept[number] = (module, descriptor)
        slot = self.shared.element("textures", number)
        slot.parameters = [word - (word >> 31 << 32) for word in words]
        slot.used = used
        slot.words = kind.result_words
        slot.sampler = module["sample"].address
        slot.descriptor = descriptor.address
        self.shared.slots = max(int(self.shared.slots), number + 1)
        return number

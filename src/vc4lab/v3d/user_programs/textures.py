"""Textures of user programs: their native samplers, and findings about them."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from vc4lab.v3d.tmu.texture_slots import fill_slot, padded
from vc4lab.v3d.user_programs.state import TEXTURES, QpuState, SharedState, Unit

if TYPE_CHECKING:
    from vc4lab.diagnostics import Reporter
    from vc4lab.v3d.unknowns import Unknowns

MAX_CONFIGURATIONS = 1024
"""Configurations that are checked; a program may compute new ones without end."""

_RESOLVE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_uint64, ctypes.c_int32)


class TextureFindings:
    """Findings about the textures that programs sample: reported once for each configuration.

    QPUs on any thread add what they meet; the thread that starts them reports it afterwards.
    """

    def __init__(self, reporter: Reporter, unknowns: Unknowns) -> None:
        self.reporter, self.unknowns = reporter, unknowns
        self._told: set[tuple[int, ...]] = set()
        self._met: dict[tuple[int, ...], None] = {}

    def add(self, words: Sequence[int]) -> None:
        """A program samples with these 1 to 4 parameters."""
        if len(self._told) < MAX_CONFIGURATIONS:
            self._met[tuple(words)] = None

    def report(self) -> None:
        """Reports findings about the textures added since the last call; no program runs."""
        if not self._met:
            return
        from vc4lab.v3d.tmu.texture_state import describe_texture

        met, self._met = self._met, {}
        for words in sorted(met.keys() - self._told):
            self._told.add(words)
            describe_texture(*padded(words), len(words), unknowns=self.unknowns, reporter=self.reporter)


class TextureSlots:
    """Fills the slots of a SharedState on request; the oldest is replaced."""

    def __init__(self, shared: SharedState, findings: TextureFindings, unknowns: Unknowns) -> None:
        self.shared = shared
        self.findings = findings
        self.unknowns = unknowns
        self._next = 0
        self._kept: list[Any] = [None] * TEXTURES
        self._callback = _RESOLVE(self._resolve)
        shared.resolve = ctypes.cast(self._callback, ctypes.c_void_p).value or 0

    def clear(self) -> None:
        """Empty slots, to be filled again."""
        self.shared.slots = self._next = 0

    def _resolve(self, qpu: int, unit: int) -> int:
        from vc4lab.v3d.tmu.kernels import recording_module, sampler_module
        from vc4lab.v3d.tmu.texture_state import describe_texture

        base = qpu + QpuState.units.offset + unit * Unit.size
        used = ctypes.c_int32.from_address(base + Unit.written.offset).value
        place = base + Unit.parameters.offset
        words = [ctypes.c_uint32.from_address(place + 4 * k).value for k in range(used)]
        self.findings.add(words)
        kind, descriptor = describe_texture(*padded(words), used, unknowns=self.unknowns)
        module = sampler_module(kind)
        recorded = QpuState.python.from_address(qpu).record != 0
        recorder = recording_module(kind) if recorded else None
        number = self._next
        self._next = (number + 1) % TEXTURES
        self._kept[number] = (module, recorder, descriptor)
        fill_slot(self.shared.textures[number], words, kind, descriptor, module, recorder)
        self.shared.slots = max(int(self.shared.slots), number + 1)
        return number

"""Memory blocks that native code and the reference interpreter share: VPM, mutex, semaphores, QPUs."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

from vc4lab.bits import signed32
from vc4lab.memory.native import Stream
from vc4lab.qpu.jit.resumable import SAVED_VECTORS
from vc4lab.simd import Array, Struct, i8, i32, i32x16, i64, nested, ptr
from vc4lab.v3d.tmu.texture_slots import TextureSlot
from vc4lab.v3d.user_programs.needs import SEMAPHORES
from vc4lab.v3d.vpm.access import Reads
from vc4lab.v3d.vpm.setup import VPM_BYTES

RESULTS = 16
"""Places in the ring of texture results of one TMU."""

TEXTURES = 16
"""Texture configurations that native code knows."""


class Status(IntEnum):
    """Why a native program returned."""

    ENDED = 0
    BLOCKED = 1  # at a mutex or semaphore; `site` says where
    YIELDED = 2  # its slice is over
    REFUSED = 3  # a facility that user programs do not have
    STUCK = 4  # a stall that cannot end; `detail` is an index of STALLS
    LOST = 5  # execution goes on outside of the region, at the address `detail`
    ZEROED = 7  # execution ran into zeroed memory
    HALTED = 8  # the watch noticed something, and the program must not go on


STALLS = (
    "a VPM read without a read setup",
    "a result of TMU0 without a request",
    "a result of TMU1 without a request",
    "room in the request queue of TMU0, but reads no results",
    "room in the request queue of TMU1, but reads no results",
)
NO_VPM_DATA, NO_RESULT, NO_ROOM = 0, 1, 3
"""Indices of STALLS; those of the TMUs plus the unit."""

LOOKUPS = 12
"""Lookups a TMU holds: 8 words of requests and 4 results (direct lookups have one word each)."""


class SharedState(Struct):
    """State that all user programs share.

    ram: bytes of populated RAM. rows: VPM rows that programs may write. mutex: 0 free, else QPU
    number + 1. interrupts: not 0 for a QPU that wrote HOST_INT. resolve: C function (QPU state
    address, unit) -> index in `textures`, of which `slots` are set.
    """

    vpm = Array(i8, VPM_BYTES + 64)
    memory = ptr
    ram = i32
    rows = i32
    mutex = i32
    semaphores = Array(i32, SEMAPHORES)
    interrupts = Array(i32, 16)
    slots = i32
    resolve = ptr
    textures = Array(TextureSlot, TEXTURES)


class Unit(Struct):
    """One TMU as one QPU sees it: S, T, R, B and parameters written so far, and results."""

    results = Array(i32x16, RESULTS)
    coordinates = Array(i32x16, 4)
    scratch = Array(i32x16, 2)
    parameters = Array(i32, 5)
    head = i32
    count = i32
    written = i32


PIECES = 8


class QpuState(Struct):
    """A QPU that runs a user program natively.

    saved: registers and flags while suspended. findings: FINDING_... bits; outside: a DMA address.
    dma_time: how many instructions its DMA counts for; slice_end: of instructions, less that.
    watch: a `WatchState` if the program is watched. record: where its way is recorded, if it is
    (`recording/format.py`); recorded, record_room: bytes written, and after which its turn ends;
    lines: where a sample notes lines of memory.
    lookups, loaded_rows … stored: of the TMUs and of its DMA in rows and elements, for `job_time`.
    pieces: of memory that its DMA has written, the first `PIECES`: from `firsts` to `pasts`.
    """

    saved = Array(i32x16, SAVED_VECTORS)
    units = Array(Unit, 2)
    ms_flags = i32x16
    instructions = i64
    slice_end = i64
    dma_time = i64
    lookups = i64
    loaded_rows = i64
    loaded = i64
    stored_rows = i64
    stored = i64
    pieces = i32
    firsts = Array(i32, PIECES)
    pasts = Array(i32, PIECES)
    number = i32
    findings = i32
    outside = i32
    resume = i32
    site = i32
    detail = i32
    rev_flag = i32
    uniforms = i32
    uniforms_left = i32
    reads = nested(Reads)
    write_setup = i32
    write_address = i32
    load_setup = i32
    load_stride = i32
    store_setup = i32
    store_stride = i32
    watch = ptr
    record = ptr
    recorded = i32
    record_room = i32
    lines = nested(Stream)


class Setups(NamedTuple):
    """Words of the four DMA setup registers: load, its stride, store, its stride."""

    load: int
    pitch: int
    store: int
    gap: int

    @classmethod
    def of(cls, state: QpuState) -> Setups:
        """Those of a QPU."""
        words = state.load_setup, state.load_stride, state.store_setup, state.store_stride
        return cls(*(word & 0xFFFFFFFF for word in words))

    def set(self, state: QpuState) -> None:
        """Gives them to a QPU."""
        state.load_setup, state.load_stride = signed32(self.load), signed32(self.pitch)
        state.store_setup, state.store_stride = signed32(self.store), signed32(self.gap)


FINDING_UNIFORMS = 1
FINDING_SETUP_IGNORED = 2
FINDING_SETUP_RESERVED = 4
FINDING_OUTSIDE_RAM = 8
FINDING_VPM_WRITE = 16
"""Bits of `QpuState.findings`: what native code found, for Python to report."""


def vpm_bytes(shared: SharedState) -> Any:
    """The VPM as a numpy array of bytes, in place."""
    import numpy as np

    from vc4lab.v3d.vpm.setup import VPM_BYTES as SIZE

    return np.frombuffer(memoryview(shared.vpm), np.uint8)[:SIZE]


def fill_with_noise(shared: SharedState) -> None:
    """Let the VPM hold at power-on what RAM does: rows that no program has filled show."""
    from vc4lab.memory.guest import part
    from vc4lab.v3d.vpm.setup import VPM_BYTES as SIZE

    memoryview(shared.vpm).cast("B")[:SIZE] = part(0, SIZE)

"""What a user program sees in the golden interpreter: uniforms, VPM, DMA, TMU, mutex and more."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from vc4lab.qpu.run.environment import Environment
from vc4lab.v3d.user_programs import state as st
from vc4lab.v3d.user_programs.native.dma import run_transfer
from vc4lab.v3d.user_programs.needs import SEMAPHORE_LIMIT, Need
from vc4lab.v3d.user_programs.state import QpuState, SharedState, vpm_bytes
from vc4lab.v3d.vpm import golden as vpm
from vc4lab.v3d.vpm import setup as vs
from vc4lab.v3d.vpm.shader_rows import LANES, GenericSetup, ReadQueue, first_address, next_address

if TYPE_CHECKING:
    from vc4lab.memory import GuestMemory
    from vc4lab.v3d.tmu.state import TextureDescriptor, TextureKind
    from vc4lab.v3d.unknowns import Unknowns
    from vc4lab.v3d.vpm.golden import Lanes, Words


class PermanentStall(Exception):  # noqa: N818 - a state of the program
    """A stall that no other QPU can end."""


class UserEnvironment(Environment):
    """One QPU.

    shared: what it shares with the others; uniforms: SRQUA; length: of the stream in words, None if
    it has no limit.
    """

    def __init__(
        self,
        shared: SharedState,
        memory: GuestMemory,
        number: int,
        uniforms: int,
        length: int | None,
        unknowns: Unknowns,
    ) -> None:
        self.shared = shared
        self.memory = memory
        self.number = number
        self.unknowns = unknowns
        self.stream = uniforms
        self.left = length
        self.vpm = vpm_bytes(shared)
        self.reads = ReadQueue()
        self.generic_write = GenericSetup()
        self.write_address = 0
        self.flags = np.zeros(LANES, np.uint32)
        self.reverse = 0
        self.pending: tuple[dict[str, Words], dict[str, Words]] = ({}, {})
        self.parameters: tuple[list[int], list[int]] = ([], [])
        self.results: tuple[deque[Words], deque[Words]] = (deque(), deque())
        self.state = QpuState()
        """Of it: the DMA's setups, findings, and what DMA and lookups count for."""
        self.sampled: Callable[[Sequence[int]], None] = lambda _words: None
        """Called with the parameters of each texture request."""

    def note(self, finding: int) -> None:
        self.state.findings |= finding

    # -- waiting -----------------------------------------------------------------------------

    def possible(self, need: Need) -> bool:
        """Whether an instruction that needs this can be executed now."""
        if need.kind == "mutex":
            return bool(self.shared.mutex == 0)
        value = self.shared.semaphores[need.number]
        return value > 0 if need.kind == "lower" else value < SEMAPHORE_LIMIT

    def mutex_acquire(self) -> Words:
        self.shared.mutex = self.number + 1
        return self.element_number()

    def mutex_release(self) -> None:
        self.shared.mutex = 0

    def semaphore(self, number: int, decrement: bool) -> None:
        self.shared.semaphores[number] += -1 if decrement else 1

    def host_interrupt(self, value: Words, mask: Lanes) -> None:
        if bool(np.any(np.asarray(value) * np.asarray(mask))):
            self.shared.interrupts[self.number] = 1

    # -- uniforms and numbers ------------------------------------------------------------------

    def uniform(self) -> Words:
        return np.full(LANES, self.next_uniform(), np.uint32)

    def next_uniform(self) -> int:
        """The next word of the stream; after its end 0."""
        if self.left is not None:
            if self.left == 0:
                self.note(st.FINDING_UNIFORMS)
                if self.unknowns["uniforms_length"] == "limit":
                    return 0
            else:
                self.left -= 1
        word = self.memory.u32(self.stream)
        self.stream = (self.stream + 4) & 0xFFFFFFFF
        return word

    def uniforms_address(self, value: Words, relative: bool, mask: Lanes) -> None:
        if mask[0]:
            base = self.stream if relative else 0
            self.stream = (base + int(value[0])) & 0xFFFFFFFF
            self.left = None

    def element_number(self) -> Words:
        return np.arange(LANES, dtype=np.uint32)

    def qpu_number(self) -> Words:
        return np.full(LANES, self.number, np.uint32)

    def x_coord(self) -> Words:
        return np.arange(LANES, dtype=np.uint32) & np.uint32(1)

    def y_coord(self) -> Words:
        return np.arange(LANES, dtype=np.uint32) >> np.uint32(1) & np.uint32(1)

    def ms_flags(self) -> Words:
        return self.flags.copy()

    def rev_flag(self) -> Words:
        return np.full(LANES, self.reverse, np.uint32)

    def set_ms_flags(self, value: Words, mask: Lanes) -> None:
        self.flags = np.where(mask, value & 15, self.flags).astype(np.uint32)

    def set_rev_flag(self, value: Words, mask: Lanes) -> None:
        if mask[0]:
            self.reverse = int(value[0]) & 1

    # -- VPM -----------------------------------------------------------------------------------

    def vpm_setup(self, side: str, value: Words) -> None:
        word = int(value[0])
        kind = word >> 30
        if side == "write":
            if kind == 0:
                self.generic_write = GenericSetup(word)
                self.write_address = first_address(self.generic_write)
            elif kind == vs.STORE_KIND:
                self.state.store_setup = word
            elif kind == vs.STORE_STRIDE_KIND:
                self.state.store_stride = word
            else:
                self.note(st.FINDING_SETUP_RESERVED)
        elif kind == 0:
            if not self.reads.setup(word):
                self.note(st.FINDING_SETUP_IGNORED)
        elif kind == 1:
            self.note(st.FINDING_SETUP_RESERVED)
        elif word >> 28 == vs.LOAD_STRIDE_KIND:
            self.state.load_stride = word
        else:
            self.state.load_setup = word

    def vpm_read(self) -> Words:
        found = self.reads.next()
        if found is None:
            raise PermanentStall(st.STALLS[st.NO_VPM_DATA])
        self.reading(*found)
        return vpm.read(self.vpm, *found, self.unknowns["vpm_read_extension"])

    def reading(self, setup: GenericSetup, address: int) -> None:
        """A vector of the VPM is about to be read."""

    def vpm_write(self, value: Words, mask: Lanes) -> None:
        rows = int(self.shared.rows)
        if not vpm.write(self.vpm, self.generic_write, self.write_address, value, mask, rows):
            self.note(st.FINDING_VPM_WRITE)
        self.write_address = next_address(self.generic_write, self.write_address)

    def dma_start(self, side: str, value: Words) -> None:
        run_transfer(side, self.unknowns, self.shared, self.state, int(value[0]))

    def dma_wait(self, side: str) -> None:
        """A transfer is complete when the write that starts it is."""

    def dma_busy(self, side: str) -> Words:
        return np.zeros(LANES, np.uint32)

    # -- texture unit --------------------------------------------------------------------------

    def tmu_write(self, unit: int, register: str, value: Words, mask: Lanes, site: int) -> None:
        pending, parameters = self.pending[unit], self.parameters[unit]
        direct = register == "s" and not parameters
        if register == "s" and len(self.results[unit]) >= st.LOOKUPS:
            raise PermanentStall(st.STALLS[st.NO_ROOM + unit])
        self.state.lookups += register == "s"
        if direct:
            self._look_up(unit, value)
            return
        word = self.next_uniform()
        if len(parameters) < 4:
            parameters.append(word)
        pending[register] = np.array(value, np.uint32)
        if register == "s":
            self._sample(unit)
            pending.clear()
            parameters.clear()

    def _look_up(self, unit: int, value: Words) -> None:
        from vc4lab.v3d.tmu.kernels import lookup_words

        self.results[unit].append(lookup_words(self.memory, value))

    def _sample(self, unit: int) -> None:
        from vc4lab.v3d.tmu.state import describe_texture
        from vc4lab.v3d.tmu.texture_slots import padded

        words = self.parameters[unit]
        self.sampled(words)
        kind, descriptor = describe_texture(*padded(words), len(words), unknowns=self.unknowns)
        zero = np.zeros(LANES, np.uint32)
        coordinates = [self.pending[unit].get(name, zero) for name in "strb"]
        found = self._texels(unit, kind, descriptor, coordinates)
        for at in range(0, len(found), LANES):
            self.results[unit].append(found[at : at + LANES])

    def _texels(
        self,
        unit: int,
        kind: TextureKind,
        descriptor: TextureDescriptor,
        coordinates: list[Words],
    ) -> Words:
        from vc4lab.v3d.tmu.kernels import sample_words

        return sample_words(kind, descriptor, self.memory, *coordinates)

    def tmu_load(self, unit: int) -> Words:
        if not self.results[unit]:
            raise PermanentStall(st.STALLS[st.NO_RESULT + unit])
        return self.results[unit].popleft()

    # -- without effect here ---------------------------------------------------------------------

    def scoreboard_wait(self) -> None:
        """No other QPU holds the scoreboard."""

    def scoreboard_unlock(self) -> None:
        pass

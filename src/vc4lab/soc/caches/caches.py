"""`--caches`: attaches the cache model to a machine; without the option there is none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from vc4lab.ranges import CACHE_MODES, check_word
from vc4lab.soc.caches.core_cache import CoreCache
from vc4lab.soc.caches.data_cache import DataCache
from vc4lab.soc.devices.dma_transfer import SRC_IGNORE, SRC_INC, Mover
from vc4lab.soc.events import V3DMade
from vc4lab.soc.hardware import Hardware
from vc4lab.v3d.events import MemoryUse

CHECK, STALE = CACHE_MODES
OLD_LINE, LINE = 32, 64
L2_ALIAS = 0x40000000
"""The alias that boards use on which the ARM's accesses go through the VideoCore's L2."""
PROPERTY_CHANNEL, FRAMEBUFFER_CHANNEL = 8, 1
STRUCTURE = 40
LARGEST_MESSAGE = 1 << 20
V3D, DMA, FIRMWARE, DISPLAY = "the V3D", "the DMA", "the firmware", "the display"


@dataclass(frozen=True)
class CachedMover(Mover):
    """A DMA mover that reports what it reads."""

    cache: DataCache = field(kw_only=True)

    def begin(self, info: int, source: int, dest: int, size: int) -> None:
        super().begin(info, source, dest, size)
        if not info & SRC_IGNORE:
            self.cache.reads(DMA, "its source", source, size if info & SRC_INC else 4)

    def move(self, info: int, source: int, dest: int, size: int) -> bool:
        if not info & SRC_IGNORE and not self.is_device(source):
            self.cache.reads(DMA, "its source", source, size if info & SRC_INC else 4)
        with self.cache.foreign(DMA):
            return super().move(info, source, dest, size)

    def control_block(self, address: int) -> list[int]:
        self.cache.reads(DMA, "a control block", address, 32)
        with self.cache.foreign(DMA):
            return super().control_block(address)


class Caches:
    """The caches of a machine, from before its first instruction on.

    `mode`: "check" reports mistakes, "stale" lets the others see old bytes as well.
    Raises ValueError for another mode.
    """

    def __init__(self, machine: Hardware, mode: str) -> None:
        check_word("caches", mode, CACHE_MODES)
        board = machine.board
        self._machine = machine
        old = machine.cores[0].model == "1176"
        through_l2 = board.alias == L2_ALIAS and not machine.config.flag("disable_l2cache")
        self.data = DataCache(
            machine.memory,
            machine.reporter,
            machine.places,
            line_size=OLD_LINE if old else LINE,
            stale=mode == STALE,
            l2_between=through_l2,
        )
        self.cores = [CoreCache(self.data, cpu) for cpu in machine.cores]
        channels = machine.mailbox.channels
        for number in (PROPERTY_CHANNEL, FRAMEBUFFER_CHANNEL):
            channels[number] = partial(self._message, number, channels[number])
        unit = machine.dma.unit
        unit.mover = CachedMover(**vars(unit.mover), cache=self.data)
        machine.has_caches = True
        machine.v3d_bridge.foreign = partial(self.data.foreign, V3D)
        machine.txp.foreign = partial(self.data.foreign, DISPLAY)
        machine.videocore.framebuffer.look = self._look

    def adopt(self, event: V3DMade) -> None:
        """Watch a V3D that has just got power."""
        v3d = event.v3d
        from vc4lab.v3d.checks.cache_watch import CacheWatch

        enabled = v3d.unknowns["l2c_at_power_on"] == "enabled"
        watch = CacheWatch(self._machine.memory, self._machine.reporter, l2_enabled=enabled)
        v3d.listeners.memory_used.subscribe(self._v3d_reads)
        watch.listen(v3d.listeners)

    def _v3d_reads(self, event: MemoryUse) -> None:
        use, address, size, _record = event
        if use.is_read:
            self.data.reads(V3D, use.words, address, size)
        if use is use.UNIFORMS:
            count = min(size // 4, 256)
            words = [self._machine.memory.u32(address + 4 * n) for n in range(count)]
            self.data.points_to(V3D, words)

    def _message(self, number: int, channel: Callable[[int], int | None], data: int) -> int | None:
        memory = self._machine.memory
        size = STRUCTURE
        if number == PROPERTY_CHANNEL:
            size = min(memory.u32(data), LARGEST_MESSAGE)
        self.data.reads(FIRMWARE, "a mailbox message", data, size)
        with self.data.foreign(FIRMWARE):
            return channel(data)

    def _look(self, address: int, size: int) -> memoryview:
        self.data.reads(DISPLAY, "the framebuffer", address, size)
        return self.data.memory_view(address, size)

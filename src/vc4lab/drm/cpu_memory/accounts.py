"""Accounts of a frame: which process read and wrote how much of which buffer, and what it costs.

A look at the page tables says how many pages of a mapping were touched, not how. A mapping without
the right to write was read. Of others, pages whose content changed were written; the rest counts
as read only if the GPU or another process wrote the buffer since the last look, or if the process
never wrote it: a program that draws the same again must not look like one that reads.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

import vc4lab.drm.cpu_memory.cpu_memory_unknowns  # noqa: F401 - its row is in the table
from vc4lab.drm.cpu_memory.profiles import Attribute, Cost, Profile, cost_of
from vc4lab.drm.cpu_memory.touched import PAGE, Looker, Region, children
from vc4lab.listeners import Listeners

if TYPE_CHECKING:
    from vc4lab.diagnostics import Reporter
    from vc4lab.drm.objects.gem_objects import GemObject
    from vc4lab.memory import GuestMemory

KEPT_FRAMES = 1000
MAX_ROWS = 256
"""Rows of the report; what would be more is put together as "others"."""
WORTH_SAYING = 64 << 10
"""Bytes of a frame's reads past the cache that are worth a diagnostic."""
MUCH_MORE = 4
OTHERS = ("others", "buffers", Attribute.WRITE_COMBINED)

Key = tuple[str, str, Attribute]
"""Process, buffer, how it is mapped."""


@dataclass
class Use:
    """Bytes of touched pages, and what they cost."""

    read: int = 0
    written: int = 0
    cost: Cost = field(default_factory=Cost)

    def add(self, other: Use) -> None:
        """Put another one's in."""
        self.read += other.read
        self.written += other.written
        self.cost += other.cost


@dataclass
class Frame:
    """Programs' work with buffers until a picture was handed to the display."""

    number: int
    uses: dict[Key, Use]

    @property
    def cost(self) -> Cost:
        """The cost of all processes."""
        return sum((use.cost for use in self.uses.values()), Cost())


@dataclass
class _Tracked:
    """A buffer that a process maps or mapped."""

    target: GemObject
    content: np.ndarray
    """As it was at the last look, or after the GPU's last job."""
    writers: set[int] = field(default_factory=set)
    """Processes that were seen writing it."""
    touched_by: set[int] = field(default_factory=set)
    """Processes in whose cache it may be."""
    gpu_wrote: bool = False
    is_dirty: bool = False
    """A process wrote it since the display took it."""


@dataclass
class _Process:
    """A process that maps buffers."""

    name: str
    sizes: Counter[int] = field(default_factory=Counter)
    """Pages of the mappings that it asked for."""
    resident: dict[int, int] = field(default_factory=dict)
    """Pages that were mapped at the last look, by the mapping's start."""


@dataclass(eq=False)
class CpuMemory:
    """The accounts of a device's programs."""

    profile: Profile
    memory: GuestMemory
    looker: Looker
    reporter: Reporter
    is_coherent: bool
    frames: deque[Frame] = field(default_factory=lambda: deque(maxlen=KEPT_FRAMES))
    frame_count: int = 0
    totals: dict[Key, Use] = field(default_factory=dict)
    failure: str = ""
    """Why processes cannot be looked at."""
    frame_counted: Listeners[Frame] = field(default_factory=Listeners)
    _processes: dict[int, _Process] = field(default_factory=dict)
    _tracked: dict[int, _Tracked] = field(default_factory=dict)
    _uses: dict[Key, Use] = field(default_factory=dict)
    _reported: dict[tuple[str, str, str], int] = field(default_factory=dict)
    """Bytes by code, process and kind of buffer."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    # -- what happens ------------------------------------------------------------------------------

    def mapped(self, process: int, name: str, target: GemObject, size: int) -> None:
        """A process is about to map a buffer."""
        known = self._processes.setdefault(process, _Process(f"{name}[{process}]"))
        known.sizes[-(-size // PAGE)] += 1
        with self._lock:
            tracked = self._tracked.get(target.address)
            if tracked is None or tracked.target is not target:
                self._tracked[target.address] = _Tracked(target, self._content(target).copy())

    def unmapping(self, process: int, size: int, address: int) -> None:
        """A process is about to unmap something."""
        known = self._processes.get(process)
        pages = -(-size // PAGE)
        if known is None or not known.sizes[pages]:
            return
        for region in self._regions(process):
            if address <= region.start and region.end <= address + pages * PAGE:
                known.sizes[pages] -= 1
                self._count([(process, region)])
                known.resident.pop(region.start, None)

    def job_finished(self, seqno: int) -> None:
        """A job of the GPU is through; called in its thread."""
        with self._lock:
            for tracked in self._tracked.values():
                if tracked.target.write_seqno == seqno:
                    tracked.content = self._content(tracked.target).copy()
                    tracked.gpu_wrote = True

    def frame(self, shown: Iterable[GemObject]) -> None:
        """A picture is handed to the display: the frame's end."""
        for process in list(self._processes):
            for child in children(process):
                name = self._processes[process].name.partition("[")[0]
                self._processes.setdefault(child, _Process(f"{name}[{child}]"))
        found = [(process, region) for process in list(self._processes) for region in self._regions(process)]
        self._count(found)
        for process, known in list(self._processes.items()):
            known.resident = {r.start: r.resident for p, r in found if p == process}
            if not known.resident:
                continue  # it maps nothing, or its number is another one's now
            try:
                self.looker.clear(process)
            except ProcessLookupError:
                del self._processes[process]
            except OSError as error:
                self.failure = f"/proc/{process}/clear_refs: {error.strerror}"
        for target in shown:
            self._check_display(target)
        with self._lock:
            mapped = {id(t) for _, r in found if (t := self._find(r)) is not None}
            for address, tracked in list(self._tracked.items()):
                if not tracked.target.holders and id(tracked) not in mapped:
                    del self._tracked[address]
        self.frame_count += 1
        frame = Frame(self.frame_count, self._uses)
        self._uses = {}
        self.frames.append(frame)
        if self.frame_counted.subscriptions:
            self.frame_counted.emit(frame)

    # -- looking -----------------------------------------------------------------------------------

    def _regions(self, process: int) -> list[Region]:
        try:
            return self.looker.regions(process)
        except (FileNotFoundError, ProcessLookupError):
            self._processes.pop(process, None)
        except OSError as error:
            self.failure = f"/proc/{process}/smaps: {error.strerror}"
        return []

    def _content(self, target: GemObject) -> np.ndarray:
        return self.memory.array(target.address, target.size // 8, "u8")

    def _find(self, region: Region) -> _Tracked | None:
        tracked = self._tracked.get(region.offset)
        if tracked is not None:
            return tracked
        for tracked in self._tracked.values():
            target = tracked.target
            if target.address <= region.offset < target.address + target.size:
                return tracked
        return None

    def _count(self, found: list[tuple[int, Region]]) -> None:
        """Put what these mappings show into the frame's accounts."""
        groups: dict[int, tuple[_Tracked, list[tuple[int, Region]]]] = {}
        with self._lock:
            for process, region in found:
                tracked = self._find(region)
                if region.touched and tracked is not None:
                    groups.setdefault(id(tracked), (tracked, []))[1].append((process, region))
            for tracked, users in groups.values():
                self._count_buffer(tracked, users)

    def _count_buffer(self, tracked: _Tracked, users: list[tuple[int, Region]]) -> None:
        able = {process for process, region in users if region.writes}
        changed = self._changed(tracked) if able else 0
        writers = able & tracked.writers or able if changed else set()
        tracked.writers |= writers
        tracked.is_dirty |= bool(changed)
        left = changed
        for process, region in users:
            before = self._processes[process].resident.get(region.start, 0)
            sure = region.surely_touched(before)
            written = min(left, region.touched) if region.writes and process in writers else 0
            left -= written
            foreign = tracked.gpu_wrote or (changed and process not in writers)
            if not region.writes or foreign or process not in tracked.writers:
                read = max(0, sure - written)
            else:
                read, written = 0, max(written, sure)
            if not region.reads:
                read, written = 0, max(written, sure)
            self._note(tracked, process, read * PAGE, written * PAGE)
        tracked.touched_by |= {process for process, _ in users}
        tracked.gpu_wrote = False

    def _changed(self, tracked: _Tracked) -> int:
        """Pages whose content is new; from now on it is known."""
        now = self._content(tracked.target)
        different = (now != tracked.content).reshape(-1, PAGE // 8).any(axis=1)
        for page in np.flatnonzero(different):
            place = slice(page * (PAGE // 8), (page + 1) * (PAGE // 8))
            tracked.content[place] = now[place]
        return int(different.sum())

    def _note(self, tracked: _Tracked, process: int, read: int, written: int) -> None:
        target = tracked.target
        attribute = target.attribute
        key = self._processes[process].name, str(target), attribute
        use = Use(read, written, cost_of(self.profile, attribute, read, written))
        self._uses.setdefault(key, Use()).add(use)
        if key not in self.totals and len(self.totals) >= MAX_ROWS:
            key = OTHERS
        self.totals.setdefault(key, Use()).add(use)
        if attribute is not Attribute.CACHED:
            if read >= WORTH_SAYING:
                self._report_slow(key[0], target, attribute, use)
        elif not self.is_coherent and tracked.gpu_wrote and process in tracked.touched_by and read:
            self._report(
                "DRM-042", key[0], target,
                f"{key[0]} reads {target}, which the GPU wrote after the process had cached it: "
                "it may see the old bytes",
            )  # fmt: skip

    # -- diagnostics -------------------------------------------------------------------------------

    def _report_slow(self, name: str, target: GemObject, attribute: Attribute, use: Use) -> None:
        cached = cost_of(self.profile, Attribute.CACHED, use.read, use.written)
        upkeep = self.profile.maintenance(use.read, use.written)
        self._report(
            "DRM-040", name, target,
            f"{name} read at least {use.read / 1e6:.2f} MB of {attribute} memory for a frame, "
            f"{target}: {use.cost.seconds * 1e3:.1f} ms on {self.profile.title}; cached "
            f"{cached.seconds * 1e3:.1f} ms, and {upkeep * 1e3:.1f} ms if caches are maintained",
            use.read,
        )  # fmt: skip

    def _check_display(self, target: GemObject) -> None:
        tracked = self._tracked.get(target.address)
        if tracked is None or not tracked.is_dirty:
            return
        tracked.is_dirty = False
        if target.attribute is Attribute.CACHED and not self.is_coherent:
            self._report(
                "DRM-041", "display", target,
                f"the display shows {target}, which a process wrote through its cache: what is "
                "still in the cache is not shown",
            )  # fmt: skip

    def _report(self, code: str, who: str, target: GemObject, text: str, size: int = 0) -> None:
        """Once for each process and kind of buffer, and again if it is much more than before."""
        key = code, who, target.kind
        if key not in self._reported or size > self._reported[key] * MUCH_MORE:
            self._reported[key] = size
            self.reporter.report(code, text, block="DRM")

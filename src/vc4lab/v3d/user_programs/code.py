"""User programs as they lie in memory: read and compiled once, until their bytes change."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from vc4lab.qpu.jit.flow import MAX_PLACES, PLACES_PER_INSTRUCTION, Place
from vc4lab.qpu.program.program import Program
from vc4lab.qpu.program.reader import program_at, reach
from vc4lab.qpu.run.environment import Unsupported
from vc4lab.qpu.run.plan import plan
from vc4lab.v3d.user_programs.needs import need_of

if TYPE_CHECKING:
    from vc4lab.memory import GuestMemory
    from vc4lab.qpu.jit.region import Region
    from vc4lab.simd import NativeFunction
    from vc4lab.v3d.unknowns import Unknowns
    from vc4lab.v3d.user_programs.watching.watch import Allowed, Watched

MAX_PROGRAMS = 64
"""Programs kept in memory."""

MANY_REGIONS = 16
"""Regions of a program after which further ones are small: transfers between regions are mostly
known by then, and each region may repeat code of the others.
"""
SMALL_REGION = 256

LONG_PROGRAM = 4 * MAX_PLACES
"""Places of a program whose code is optimised; the rest is compiled quickly: at a millisecond each,
64 Ki instructions would take a minute.
"""


@dataclass(frozen=True)
class NativeRegion:
    """Native code of a region: (SharedState address, QpuState address) -> Status."""

    region: Region
    function: NativeFunction
    watched: Watched | None = None
    recorded: bool = False


@dataclass
class UserProgram:
    """A program and its native code, a region at a time.

    program: what is known of it; grows when it goes where it was not read yet. read: memory.
    waits: whether it has a mutex or semaphore instruction. verdict: why it cannot be compiled.
    allowed: what it may touch, if it is watched. linted: the lint has seen it. compiled: regions
    that were to be compiled. starts: how many more are watched; None: all, if it is watched at all.
    """

    program: Program
    read: Callable[[int, int], bytes]
    settings: Unknowns
    waits: bool = False
    verdict: Unsupported | None = None
    allowed: Allowed | None = None
    linted: bool = False
    starts: int | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)
    _regions: dict[tuple[bool, bool, Place | None], NativeRegion] = field(default_factory=dict)
    compiled: int = 0
    _places: int = 0
    _watched: tuple[Program, Watched] | None = None

    def __post_init__(self) -> None:
        self._look_for_waits(0)

    def _look_for_waits(self, first: int) -> None:
        names = self.settings["sf_with_never"], self.settings["load_immediate_condition"]
        new = self.program.words[first:]
        self.waits |= any(need_of(plan(word, *names)) is not None for word in new)

    @property
    def watched(self) -> Watched | None:
        """The part of the program that is watched; None if it runs unwatched."""
        if self.allowed is None:
            return None
        if self._watched is None or self._watched[0] is not self.program:
            from vc4lab.v3d.user_programs.watching.watch import UNRESTRICTED, Watched

            watched = Watched.of(self.program) if self.allowed.restrictions else UNRESTRICTED
            self._watched = self.program, watched
        return self._watched[1]

    def allowed_for_a_start(self) -> Allowed | None:
        """Take what a start of the program may touch, if it is watched."""
        if self.starts is not None:
            self.starts -= 1
            if self.starts < 0 and self.allowed is not None:
                with self.lock:
                    self.allowed = None
                    self._regions.clear()
                    self._places = 0
        return self.allowed

    def native(self, limited: bool, recorded: bool = False) -> NativeRegion | None:
        """The region of the program's entry; None if it must be interpreted."""
        with self.lock:
            if self.verdict is not None:
                return None
            try:
                return self._region(limited, recorded, None)
            except Unsupported as verdict:
                self.verdict = verdict
                return None

    def follow(
        self, current: NativeRegion, number: int, target: int, limited: bool
    ) -> tuple[NativeRegion, int] | None:
        """The region where execution goes on that left `current` by a way with this number, for an
        address, and the number to resume with; None if no code can lie there. Raises Unsupported.
        """
        from vc4lab.qpu.jit.region import number_of, place_after

        with self.lock:
            way = current.region.ways[number]
            if way.at < 0:
                before = self.program
                index = self._learn(target)
                if index is None:
                    return None
                # from now on with one way more, if it is new
                key = limited, current.recorded, current.region.flow.start
                left = self._regions.pop(key, None) if self.program is not before else None
                if left is not None:
                    self._places -= len(left.region.flow.exits)
                way = place_after(way, index, self.program, self.settings)
            return self._region(limited, current.recorded, way), number_of(way)

    def _region(self, limited: bool, recorded: bool, start: Place | None) -> NativeRegion:
        found = self._regions.get((limited, recorded, start))
        if found is None:
            from vc4lab.qpu.jit.region import Region
            from vc4lab.v3d.user_programs.native.compiled import compile_user_program

            most = MAX_PLACES if self.compiled < MANY_REGIONS else SMALL_REGION
            brief = self._places > LONG_PROGRAM
            region = Region.of(self.program, self.settings, start, most, brief)
            self.compiled += 1
            self._places += len(region.flow.exits)
            limit = PLACES_PER_INSTRUCTION * len(self.program) + MANY_REGIONS * MAX_PLACES
            if self._places > limit:
                raise Unsupported("QPU-043", "the program's paths meet too often to be compiled")
            stops = self.allowed is not None and self.allowed.stops
            function = compile_user_program(
                region, self.settings, limited, watched=self.watched, stops=stops, recorded=recorded
            )
            found = NativeRegion(region, function, self.watched, recorded)
            self._regions[limited, recorded, start] = found
        return found

    def grow(self, target: int) -> Program | None:
        """The program with the code at an address; None if there can be none."""
        with self.lock:
            return None if self._learn(target) is None else self.program

    def _learn(self, address: int) -> int | None:
        """Execution went to this address: the instruction there, if there is one."""
        program = self.program
        grown = reach(program, self.read, address)
        if grown is None:
            return program.index_of(address)
        self.program = grown
        self._look_for_waits(len(program))
        return grown.index_of(address)


class CodeCache:
    """Programs by address, under one setting of the unknowns. allowed: they are watched."""

    def __init__(self, memory: GuestMemory, unknowns: Unknowns, allowed: Allowed | None = None) -> None:
        self.allowed = allowed
        self.memory = memory
        self.unknowns = unknowns
        self._known: OrderedDict[int, UserProgram] = OrderedDict()

    def read(self, address: int) -> UserProgram:
        """The program that lies at a guest address now."""
        known = self._known.get(address)
        if known is not None and known.program.lies_in(self.memory):
            self._known.move_to_end(address)
            return known
        program = program_at(self.memory, address, settings=self.unknowns)
        found = UserProgram(program, self.memory.read, self.unknowns, allowed=self.allowed)
        if any(problem.code == "QPU-001" for problem in program.problems):
            found.verdict = Unsupported("QPU-001", "the program has no end")
        self._known[address] = found
        while len(self._known) > MAX_PROGRAMS:
            self._known.popitem(last=False)
        return found

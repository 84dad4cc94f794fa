"""Regions: the parts of a program that are compiled together, and the ways out of them."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass

from vc4lab.qpu.isa.qpu_unknowns import Settings
from vc4lab.qpu.jit.emitter import flow_settings
from vc4lab.qpu.jit.flow import MAX_PLACES, Flow, Place
from vc4lab.qpu.program.program import Program
from vc4lab.qpu.run.plan import plan


@dataclass(frozen=True)
class Region:
    """A part of a program that is compiled together. ways: by number, the places outside of it that
    execution goes to; those whose instruction is not known (at: -1) say what is pending there.
    brief: as of `GuardedSemantics`.
    """

    flow: Flow
    ways: Mapping[int, Place]
    brief: bool = False

    @property
    def is_part(self) -> bool:
        """Whether other regions of the program may come before or after it."""
        return bool(self.ways) or self.flow.start is not None

    @classmethod
    def of(
        cls,
        program: Program,
        settings: Settings,
        start: Place | None = None,
        most: int = MAX_PLACES,
        brief: bool = False,
    ) -> Region:
        """The region from a place on (default: the program's entry). Raises Unsupported."""
        names = settings["sf_with_never"], settings["load_immediate_condition"]
        plans = [plan(word, *names) for word in program.words]
        known = program.targets
        flow = Flow(program, plans, *flow_settings(settings), known, start, most, partly=True)
        ways: dict[int, Place] = {}
        for exits in flow.exits.values():
            for exit_ in exits:
                for place in (exit_.place, *exit_.options):
                    if place is not None and place not in flow.exits:
                        ways[number_of(place)] = place
                if exit_.why in ("left", "dynamic"):
                    assert exit_.pending is not None
                    ways[number_of(exit_.pending)] = exit_.pending
        return cls(flow, ways, brief)


def place_after(way: Place, index: int, program: Program, settings: Settings) -> Place:
    """The place at instruction `index` of a program, for a way out of a region that leads there."""
    if way.at >= 0:
        return way
    names = settings["sf_with_never"], settings["load_immediate_condition"]
    reads = plan(program.words[index], *names).reads
    return way._replace(at=index, old=tuple(sorted(set(way.old) & set(reads))))


def number_of(place: Place) -> int:
    """A number for a place to go on at, not 0, which stays the same when more is learned."""
    return zlib.crc32(repr(place).encode()) >> 1 | 1

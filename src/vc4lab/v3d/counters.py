"""The performance counters: what each of the 30 sources counts, and the 16 registers that do.

A functional model knows events (primitives, quads, pixels), not clocks and not caches: sources of
those are marked as not modelled, and a program that selects one is reported once. Source: AG100-R
pp. 97-99, hardware reference 2.9.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vc4lab.registers import Block, Register

if TYPE_CHECKING:
    from vc4lab.diagnostics import Reporter

COUNTERS = 16
GLOBAL_ENABLE = 1 << 31
SOURCE_MASK = 0x1F
_WORD = 0xFFFFFFFF

Totals = Callable[[], Mapping[str, int]]
"""Events since the start, by the names in `CounterSource.events`; absent names count as 0."""


@dataclass(frozen=True)
class CounterSource:
    """One source: its number in PCTRSn, the unit that counts, and what.

    ``events`` are the model's counts that add up to it, none if it is not modelled; ``note`` says
    what is assumed, or why it is not modelled.
    """

    id: int
    unit: str
    text: str
    events: tuple[str, ...] = ()
    note: str = ""

    @property
    def modelled(self) -> bool:
        """Whether it counts here."""
        return bool(self.events)


_CLOCKS = "clocks are not modelled"
_CACHES = "caches are not modelled"

SOURCES: tuple[CounterSource, ...] = (
    CounterSource(0, "FEP", "valid primitives that produce no pixels, for all tiles", ("primitives_empty",)),
    CounterSource(1, "FEP", "valid primitives, for all tiles", ("primitives_valid",)),
    CounterSource(2, "FEP", "quads rejected by early Z, near or far", note="no early Z here"),
    CounterSource(3, "FEP", "valid quads", ("quads_valid",)),
    CounterSource(4, "TLB", "quads with no pixel passing stencil", ("quads_stencil_failed",)),
    CounterSource(5, "TLB", "quads with no pixel passing Z and stencil", ("quads_depth_failed",)),
    CounterSource(6, "TLB", "quads with any pixel passing Z and stencil", ("quads_depth_passed",)),
    CounterSource(7, "TLB", "quads with zero coverage in all pixels", ("coverage_none",)),
    CounterSource(8, "TLB", "quads with non-zero coverage in any pixel", ("coverage_some",)),
    CounterSource(9, "TLB", "quads with valid pixels written to the colour buffer", ("quads_covered",)),
    CounterSource(10, "PTB", "primitives discarded: outside the viewport", ("rejected", "outside")),
    CounterSource(11, "PTB", "primitives that need clipping", ("clipped",)),
    CounterSource(12, "PSE", "primitives discarded: facing", ("primitives_reversed",)),
    CounterSource(13, "QPU", "idle clocks of all QPUs", note=_CLOCKS),
    CounterSource(14, "QPU", "clocks of vertex and coordinate shading", note=_CLOCKS),
    CounterSource(15, "QPU", "clocks of fragment shading", note=_CLOCKS),
    CounterSource(16, "QPU", "clocks executing valid instructions", note=_CLOCKS),
    CounterSource(17, "QPU", "clocks stalled on TMUs", note=_CLOCKS),
    CounterSource(18, "QPU", "clocks stalled on the scoreboard", note=_CLOCKS),
    CounterSource(19, "QPU", "clocks stalled on varyings", note=_CLOCKS),
    CounterSource(20, "QPU", "instruction cache hits", note=_CACHES),
    CounterSource(21, "QPU", "instruction cache misses", note=_CACHES),
    CounterSource(22, "QPU", "uniforms cache hits", note=_CACHES),
    CounterSource(23, "QPU", "uniforms cache misses", note=_CACHES),
    CounterSource(24, "TMU", "texture quads processed", ("texture_quads",)),
    CounterSource(25, "TMU", "texture cache misses", note=_CACHES),
    CounterSource(26, "VPM", "clocks VDW stalled for the VPM", note=_CLOCKS),
    CounterSource(27, "VPM", "clocks VCD stalled for the VPM", note=_CLOCKS),
    CounterSource(28, "L2C", "level 2 cache hits", note=_CACHES),
    CounterSource(29, "L2C", "level 2 cache misses", note=_CACHES),
)


DETAILS = frozenset(source.id for source in SOURCES if source.modelled) - {3, 10, 11, 12}
"""Sources that are only counted while they are asked for: drawing takes a little longer then."""


def coverage_counts(totals: Mapping[str, int], reading: str) -> dict[str, int]:
    """The values of counters 7 and 8, as the unknown `counter_coverage` says."""
    if reading == "paths":
        return {}
    names = (("coverage_none", "quads_uncovered"), ("coverage_some", "quads_covered"))
    return {name: totals.get(event, 0) for name, event in names}


def counts(totals: Mapping[str, int]) -> dict[int, int]:
    """The modelled sources' values from the model's events."""
    return {
        source.id: sum(totals.get(name, 0) for name in source.events) for source in SOURCES if source.modelled
    }


def table(values: Mapping[int, int]) -> list[str]:
    """Lines for people: every source with its value, or why there is none. `values` may have those
    of a timing model, too."""
    lines = []
    for source in SOURCES:
        value = str(values[source.id]) if source.id in values else "-"
        known = source.modelled or source.id in values
        why = "" if known else f" ({source.note or 'not modelled'}; see --timing)"
        lines.append(f"{source.id:2d} {source.unit} {value:>12}  {source.text}{why}")
    return lines


class PerformanceCounters(Block):
    """PCTRC, PCTRE, PCTRn and PCTRSn.

    A counter runs while its bit of PCTRE and bit 31 are set; it then follows the total of its
    source. Nothing runs between two accesses: totals are looked at when something is read.
    """

    PCTRC = Register(0x670, access="w", doc="performance counter clear")
    PCTRE = Register(0x674, doc="performance counter enable")
    PCTR = Register(0x680, count=COUNTERS, stride=8, names="PCTR{}", doc="count")
    PCTRS = Register(0x684, count=COUNTERS, stride=8, names="PCTRS{}", doc="source of a count")

    def __init__(self, reporter: Reporter, totals: Totals, values: dict[str, int] | None = None) -> None:
        super().__init__(values)
        self.reporter = reporter
        self.totals = totals
        self.enable = 0
        self.everything = False
        """Count all sources, whatever the registers say (for listings)."""
        self.sources = [0] * COUNTERS
        self._values = [0] * COUNTERS
        self._bases = [0] * COUNTERS

    @property
    def detailed(self) -> bool:
        """Whether anything of `DETAILS` is to be counted."""
        return self.everything or not DETAILS.isdisjoint(self.selected)

    @property
    def selected(self) -> frozenset[int]:
        """Sources that count now."""
        return frozenset(self.sources[n] for n in range(COUNTERS) if self._running(n))

    def on_write_PCTRC(self, value: int) -> None:
        for number in range(COUNTERS):
            if value >> number & 1:
                self._set(number, 0)

    def on_read_PCTRE(self) -> int:
        return self.enable

    def on_write_PCTRE(self, value: int) -> None:
        held = [self.on_read_PCTR(number) for number in range(COUNTERS)]
        self.enable = value & (GLOBAL_ENABLE | 0xFFFF)
        for number, count in enumerate(held):
            self._set(number, count)
        self._explain(range(COUNTERS))

    def on_read_PCTR(self, number: int) -> int:
        value = self._values[number]
        if self._running(number):
            value += self._total(number) - self._bases[number]
        return value & _WORD

    def on_write_PCTR(self, number: int, value: int) -> None:
        self._set(number, value)

    def on_read_PCTRS(self, number: int) -> int:
        return self.sources[number]

    def on_write_PCTRS(self, number: int, value: int) -> None:
        count = self.on_read_PCTR(number)
        self.sources[number] = value & SOURCE_MASK
        self._set(number, count)
        self._explain([number])

    def _running(self, number: int) -> bool:
        return bool(self.enable & GLOBAL_ENABLE and self.enable >> number & 1)

    def _total(self, number: int) -> int:
        return counts(self.totals()).get(self.sources[number], 0)

    def _set(self, number: int, value: int) -> None:
        self._values[number] = value & _WORD
        if self._running(number):
            self._bases[number] = self._total(number)

    def _explain(self, numbers: Iterable[int]) -> None:
        """Says why an enabled counter will not count."""
        if self.enable and not self.enable & GLOBAL_ENABLE:
            self.reporter.report(
                "CLE-037", f"PCTRE = 0x{self.enable:08x} enables counters, but bit 31 is not set: none counts"
            )
            return
        for number in numbers:
            if not self._running(number):
                continue
            source = self.sources[number]
            if source >= len(SOURCES):
                self.reporter.report("CLE-037", f"PCTRS{number} selects {source}: no such source")
            elif not SOURCES[source].modelled:
                entry = SOURCES[source]
                self.reporter.report(
                    "CLE-037",
                    f"source {source} ({entry.unit}: {entry.text}) is not modelled, so PCTR{number}"
                    f" does not count: {entry.note or 'not counted yet'}",
                )

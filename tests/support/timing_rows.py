"""Published measurements that small programs of our own can repeat, and what the model says.

Each row names where it was published; `docs/timing.md` has them as a table, written by
`python -m tests.support.timing_rows`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache as once

from tests.support.compute import CODE, DATA, END
from tests.support.timing import cache, per_round, stall, timed

from vc4lab.timing.result import Timing

FITTED, KEPT, PRINTED = "fitted", "kept back", "printed"
LIMITS = {FITTED: 0.05, KEPT: 0.15}


@dataclass(frozen=True)
class Row:
    """A measurement. group: how far the model may be from it (`LIMITS`)."""

    name: str
    measured: float
    unit: str
    source: str
    reliability: str
    group: str
    model: Callable[[], float]

    @property
    def error(self) -> float:
        """Of the model, as a part of what was measured; 0 if both are 0."""
        value = self.model()
        return abs(value - self.measured) / self.measured if self.measured else float(value != 0)

    @property
    def met(self) -> bool:
        """Whether the model is near enough."""
        return self.group not in LIMITS or self.error <= LIMITS[self.group]


def filler(count: int) -> str:
    """Instructions that need nothing of the chip."""
    return "add r0, r0, 1\n" * count


def loop(body: str, instructions: int) -> str:
    """A loop of so many instructions in all, `body` first; the rounds are the first uniform."""
    used = len([line for line in body.splitlines() if line.strip()])
    rest = instructions - used - 5
    assert rest >= 0
    again = "sub.setf r3, r3, 1\nbrr.anynz again\nnop\nnop\nnop\n"
    return "again:\n" + body + filler(rest) + again + END


def start(*more: str) -> str:
    """Takes the rounds, and does what else comes before a loop."""
    return "mov r3, unif\n" + "".join(line + "\n" for line in more)


# -- instruction issue

ISSUE = start() + loop("", 10)
RAISES = start() + loop("srel -, 3\n", 7)
LOWERS = start() + loop("sacq -, 3\n", 7)
FOUR = "mov r0, r0" + END


@once
def issue() -> float:
    return per_round(ISSUE, lambda n: [[n]], 1000, 3000, qpus=12)


@once
def semaphores() -> float:
    return per_round([RAISES, LOWERS], lambda n: [[n]], 1000, 3000, board="pi3")


@once
def four() -> Timing:
    return timed(FOUR)


# -- caches


def straight(instructions: int) -> str:
    """A program of so many instructions without a branch."""
    return filler(instructions - 3) + END


def uniforms_of(count: int) -> str:
    """A program that reads so many uniforms."""
    return "mov r0, unif\n" * count + END


def gathers(*units: int) -> str:
    """Looks up the address in the uniform plus 4 bytes a lane, by each unit; waits for it."""
    head = "mov r1, unif\nshl r0, elem_num, 2\nadd r1, r1, r0\n"
    return head + "".join(f"mov t{n}s, r1\nnop ; nop ; ldtmu{n}\n" for n in units) + END


def resident(lines: int, stride: int) -> str:
    """Looks up so many lines, so many lines apart, twice."""
    body = "mov r1, r2\n"
    for _ in range(lines):
        body += f"mov t0s, r1\nnop ; nop ; ldtmu0\nldi r0, {64 * stride}\nadd r1, r1, r0\n"
    return "mov r2, unif\n" + 2 * body + END


UNIFORM_RATE = (
    "mov r3, unif\nmov r2, unif\nagain:\nmov unif_addr, r2\nnop\nnop\n{}"
    + "mov r0, unif\n" * 253
    + "sub.setf r3, r3, 1\nbrr.anynz again\n"
    + "mov r0, unif\n" * 3
    + END
)


@once
def uniform_slots(nops: int) -> float:
    """Slots that each of 256 uniform reads takes, with so many nops after all of them."""
    program = UNIFORM_RATE.format("nop\n" * nops)
    clocks = per_round(program, lambda n: [[n, DATA]], 100, 300)
    return (clocks / 4 - 5 - nops) / 256


# -- TMU, VPM

LOOKUPS = (
    "mov r1, unif\nmov t0s, r1\nnop ; nop ; ldtmu0\nmov t0s, r1\nnop ; nop ; ldtmu0\n"
    "mov t1s, r1\nnop ; nop ; ldtmu1\nnop\n" + END
)


@once
def lookup_stalls() -> tuple[float, float, float]:
    """Slots of stall of a lookup: from SDRAM, from the TMU's cache, from L2."""
    timing = timed(LOOKUPS, [[DATA]])
    stalls = {one.address: sum(one.stalls.values()) / 4 for one in timing.hot}
    return stalls[CODE + 16], stalls[CODE + 32], stalls[CODE + 48]


@once
def vpm_read() -> float:
    timing = timed("ldi vr_setup, 0x101a00\nmov r0, vpm\n" + END)
    return stall(timing, "VPM read set-up") / 4


# -- DMA


def load_setup(words: int) -> int:
    return 0x83000000 | (words & 15) << 20 | 1 << 12


def store_setup(words: int) -> int:
    return 0x80004000 | 16 << 23 | words << 16


LOAD, STORE = "mov vr_addr, r1\nmov -, vr_wait\n", "mov vw_addr, r1\nmov -, vw_wait\n"
ADDRESS = "mov r1, unif"


@once
def loads(words: int) -> float:
    program = start(ADDRESS, f"ldi vr_setup, {load_setup(words):#x}") + loop(LOAD * 16, 37)
    return per_round(program, lambda n: [[n, DATA]], 10, 110) / 16


@once
def stores(words: int) -> float:
    program = start(ADDRESS, f"ldi vw_setup, {store_setup(words):#x}") + loop(STORE * 16, 37)
    return per_round(program, lambda n: [[n, DATA]], 10, 110) / 16


@once
def stores_of(qpus: int) -> float:
    """Clocks of a store of 16 units of a word, while so many QPUs want to."""
    program = start(ADDRESS, f"ldi vw_setup, {store_setup(1):#x}") + loop(STORE, 7)
    clocks = per_round(program, lambda n: [[n, DATA]], 10, 110, qpus=qpus, board="pi3")
    return clocks / qpus


@once
def hidden_stores() -> float:
    """A pass of 35 instructions with two stores, of which ten slots are not hidden."""
    store = "mov vw_addr, r1\n" + filler(10) + "mov -, vw_wait\n"
    body = store + filler(5) + store
    program = start(ADDRESS, f"ldi vw_setup, {store_setup(1):#x}") + loop(body, 35)
    return per_round(program, lambda n: [[n, DATA]], 10, 110, board="pi1")


@once
def exposed_transfers(board: str) -> float:
    """A pass of 50 instructions with two loads and two stores, each waited for at once."""
    setups = f"ldi vw_setup, {store_setup(1):#x}", f"ldi vr_setup, {load_setup(1):#x}"
    program = start(ADDRESS, *setups) + loop(2 * LOAD + 2 * STORE, 50)
    return per_round(program, lambda n: [[n, DATA]], 10, 110, board=board)


MANDEL = "mandel-qpu, Pi 2: 33.781 s for 2.1106e8 rounds of ten"
QI10 = "Terminus-IMRC QI10, Pi 3 at 400 MHz: 0.864278 s"
COLD = "swrenn/qpu"
RULES = "Terminus-IMRC QI3, QU3-16, QT10-31"
SUGIZAKI = "Sugizaki, forum post 1144081"
ROT3D = "QPULib, V3DLib: Rot3D"

ROWS = (
    Row("mandel: a round of 10 instructions, 12 QPUs", 33.781 * 250e6 / 2.1106e8, "clocks",
        MANDEL, "A", FITTED, issue),
    Row("two QPUs and a semaphore: a round of 7", 0.864278 * 400e6 / 12345678, "clocks",
        QI10, "A", FITTED, semaphores),
    Row("four instructions, all caches cold", 86, "clocks", COLD, "B", FITTED,
        lambda: four().clocks),
    Row("the same: instruction cache hits", 4, "", COLD, "B", FITTED,
        lambda: cache(four(), "instruction_cache").hits),
    Row("the same: instruction cache misses", 1, "", COLD, "B", FITTED,
        lambda: cache(four(), "instruction_cache").misses),
    Row("the same: uniform hits", 2, "", COLD, "B", FITTED,
        lambda: cache(four(), "uniform_cache").hits),
    Row("the same: uniform misses", 1, "", COLD, "B", FITTED,
        lambda: cache(four(), "uniform_cache").misses),
    Row("the same: L2 misses", 2, "", COLD, "B", FITTED, lambda: cache(four(), "l2").misses),
    Row("64 uniforms back to back: a read", 1.67, "slots", RULES, "A", FITTED,
        lambda: uniform_slots(0)),
    Row("the same with 7 nops after them: more", 0, "slots", RULES, "A", FITTED,
        lambda: 256 * (uniform_slots(7) - uniform_slots(0)) + 7),
    Row("lookup: stall, from the TMU's cache", 9, "slots", SUGIZAKI, "B", FITTED,
        lambda: lookup_stalls()[1]),
    Row("lookup: stall, from L2", 12, "slots", SUGIZAKI, "B", FITTED, lambda: lookup_stalls()[2]),
    Row("lookup: stall, from SDRAM", 20, "slots", SUGIZAKI, "B", FITTED,
        lambda: lookup_stalls()[0]),
    Row("VPM read set-up: stall", 5, "slots", "Terminus-IMRC QV56, Pi 2", "A", FITTED, vpm_read),
    Row("load of 16 rows of 16 words, back to back", 371, "clocks", "Terminus-IMRC QV52, Pi 2",
        "A", FITTED, lambda: loads(16)),
    Row("load of 16 rows of a word, waited for", 145, "clocks", ROT3D, "B", FITTED,
        lambda: loads(1)),
    Row("store of 16 units of 16 words", 229, "clocks", "masonjwang", "C", PRINTED,
        lambda: stores(16)),
    Row("store of 16 units of a word, 4 QPUs", 167, "clocks", ROT3D, "A-", FITTED,
        lambda: stores_of(4)),
    Row("store of 16 units of a word, 8 QPUs", 167, "clocks", ROT3D, "A-", FITTED,
        lambda: stores_of(8)),
    Row("store of 16 units of a word, 12 QPUs", 167, "clocks", ROT3D, "A-", FITTED,
        lambda: stores_of(12)),
    Row("Rot3D 2 and 3, a pass: 35 instructions, 2 stores", 375, "clocks", ROT3D, "A", FITTED,
        hidden_stores),
    Row("Rot3D 1, a pass, Pi 1: 50 instructions, 2 loads, 2 stores", 833, "clocks", ROT3D, "B",
        FITTED, lambda: exposed_transfers("pi1")),
    Row("Rot3D 1, a pass, Pi 3", 813, "clocks", ROT3D, "B", FITTED,
        lambda: exposed_transfers("pi3")),
)  # fmt: skip
"""In the order of the page."""


def table() -> str:
    """The rows as a table of Markdown."""
    return as_table(ROWS)


def as_table(rows: Sequence[Row]) -> str:
    """Rows as a table of Markdown."""
    lines = [
        "| measurement | board | model | error | unit | source | rel. | |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        met = row.group if row.met else f"{row.group}, not met"
        lines.append(
            f"| {row.name} | {row.measured:.5g} | {row.model():.5g} | {row.error:.1%} "
            f"| {row.unit} | {row.source} | {row.reliability} | {met} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())

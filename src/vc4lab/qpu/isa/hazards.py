"""The restrictions and latencies of the QPU, each declared once.

`../lint/lint.py` looks for broken ones in a program, `v3d/user_programs/watching/watch.py` in what
a program executes; a scheduler or a timing model finds here how far apart two instructions have to
stand. Distances are in instructions of one thread: the next instruction has distance 1.

Source: AG100-R pp. 37-38 and what was measured since (hardware reference 4.11 to 4.19).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from vc4lab.qpu.isa.accesses import NOTHING, TLB_ACCESS, TLB_LOADS, TLB_WRITE, VPM_ACCESS, Accesses, Kind
from vc4lab.qpu.isa.encoding import BRANCH_DELAY_SLOTS, END_DELAY_SLOTS

GUIDE: Final = "AG100-R pp. 37-38"


@dataclass(frozen=True)
class Hazard:
    """A pair of instructions that must not stand closer than `distance`.

    The hardware does not wait here: what goes wrong is the code's explanation. nearest: the first
    distance at which the rule holds. same_place: only if both name the same register. text: the
    message at the consumer, with {place} and {distance}.
    """

    name: str
    code: str
    producer: Kind
    consumer: Kind
    distance: int
    text: str
    reference: str = GUIDE
    nearest: int = 1
    same_place: bool = False

    def broken(self, before: Accesses, after: Accesses, distance: int) -> frozenset[str] | None:
        """The places at fault if two instructions are so far apart (empty: no place matters), else
        None.
        """
        if not self.nearest <= distance < self.distance:
            return None
        if not (before.kinds & self.producer and after.kinds & self.consumer):
            return None
        if not self.same_place:
            return NOTHING
        return (before.at(self.producer) & after.at(self.consumer)) or None

    def message(self, place: str, distance: int) -> str:
        """The finding in words."""
        before = f"the instruction {distance} before" if distance > 1 else "the instruction before"
        return self.text.format(place=place, before=before)


@dataclass(frozen=True)
class Pairing:
    """Accesses of one instruction that do not go together: at most one of `kinds` counts.

    names: of the kinds in messages. allowed: kinds that may stand together all the same.
    """

    name: str
    code: str
    kinds: tuple[tuple[Kind, str], ...]
    reference: str = GUIDE
    allowed: tuple[Kind, ...] = ()

    def broken(self, touched: Accesses, parameter: bool = False) -> str | None:
        """The message for an instruction, None if it keeps the rule. parameter: it takes a uniform
        for the texture unit.
        """
        units = (*touched.units, *((Kind.TMU_PARAMETER,) if parameter else ()))
        found = [(unit, name) for unit in units for kind, name in self.kinds if unit & kind]
        if len(found) < 2:
            return None
        together = Kind(0)
        for kind, _ in found:
            together |= kind
        if any(not together & ~pair for pair in self.allowed):
            return None
        return f"{' and '.join(name for _, name in found)} in one instruction"


@dataclass(frozen=True)
class Form:
    """Something that no single instruction should do. text may have {place}."""

    name: str
    code: str
    kind: Kind
    text: str
    reference: str = GUIDE


class Where(Enum):
    """A part of a program: the first two instructions, the one with the program-end signal and its
    delay slots, or some of these.
    """

    FIRST = "first two instructions"
    LAST = "program-end instruction and its delay slots"
    END = "program-end instruction"
    SLOTS = "delay slots of the program end"
    FINAL = "last instruction"

    def holds(self, after_start: int, after_end: int) -> bool:
        """Whether an instruction is there: so many after the first and after the program end
        (negative: before it).
        """
        if self is Where.FIRST:
            return after_start < 2
        first = {Where.SLOTS: 1, Where.FINAL: END_DELAY_SLOTS}.get(self, 0)
        last = 0 if self is Where.END else END_DELAY_SLOTS
        return first <= after_end <= last


@dataclass(frozen=True)
class Placement:
    """Accesses that must not stand in a part of a program."""

    name: str
    code: str
    kinds: Kind
    where: Where
    text: str
    reference: str = GUIDE


@dataclass(frozen=True)
class Latency:
    """After how many instructions a result is there. interlocked: the hardware waits for it; if
    not, a `Hazard` has the same distance. None: it depends on other units.
    """

    result: str
    instructions: int | None
    interlocked: bool = False
    reference: str = GUIDE


REGISTER_FILE: Final = 2
SFU: Final = 3
UNIFORM_POINTER: Final = 3

LATENCIES: Final = (
    Latency("accumulator", 1),
    Latency("flags", 1),
    Latency("register file", REGISTER_FILE),
    Latency("multisample and reverse flags", REGISTER_FILE, reference="VC4C (measured)"),
    Latency("r4 by a signal", 1),
    Latency("r4 by the SFU", SFU),
    Latency("r5 by a varying read", 1),
    Latency("uniform pointer", UNIFORM_POINTER),
    Latency("VPM read setup", 3, interlocked=True, reference="vc4asm (measured); AG100-R p. 55"),
    Latency("texture result", None, interlocked=True, reference="AG100-R pp. 39-40"),
    Latency("DMA, seen by vr_wait and vw_wait", None, interlocked=True, reference="AG100-R p. 57"),
    Latency("branch", 1 + BRANCH_DELAY_SLOTS, reference="AG100-R p. 34"),
    Latency("program end and thread switch", 1 + END_DELAY_SLOTS, reference="AG100-R p. 29"),
)

HAZARDS: Final = (
    Hazard(
        "register file", "QPU-101", Kind.REGISTER_WRITE, Kind.REGISTER_READ, REGISTER_FILE,
        "{place} is read, but was written by {before}", same_place=True,
    ),
    Hazard(
        "SFU result", "QPU-102", Kind.SFU_WRITE, Kind.R4_READ, SFU,
        "r4 is read, but the SFU was started by {before}: the result comes after two others",
    ),
    Hazard(
        "SFU result lost", "QPU-102", Kind.SFU_WRITE, Kind.R4_LOAD | Kind.SFU_WRITE, SFU,
        "r4 is written again, but the SFU was started by {before}: one of the results is lost",
    ),
    Hazard(
        "rotated accumulator", "QPU-108", Kind.ACCUMULATOR_WRITE, Kind.ROTATED, 2,
        "{place} is rotated right after its write", same_place=True,
    ),
    Hazard(
        "rotation amount", "QPU-108", Kind.ACCUMULATOR_WRITE, Kind.ROTATION_AMOUNT, 2,
        "rotation by r5 right after a write of r5", same_place=True,
    ),
    Hazard(
        "uniform pointer", "QPU-110", Kind.UNIFORM_ADDRESS, Kind.UNIFORM_READ, UNIFORM_POINTER,
        "a uniform is read, but the uniform address was written by {before}",
    ),
    Hazard(
        "branch spacing", "QPU-112", Kind.BRANCH, Kind.BRANCH, BRANCH_DELAY_SLOTS,
        "branch in a delay slot of {before}", "hardware reference 4.12 (measured)",
    ),
    Hazard(
        "branch in the last delay slot", "QPU-125", Kind.BRANCH, Kind.BRANCH,
        1 + BRANCH_DELAY_SLOTS, "branch in the last delay slot of another",
        "Linux vc4 validator", nearest=BRANCH_DELAY_SLOTS,
    ),
    Hazard(
        "end in a delay slot", "QPU-126", Kind.CONDITIONAL_BRANCH, Kind.PROGRAM_END,
        1 + BRANCH_DELAY_SLOTS, "the program ends in a delay slot of the branch by {before}",
        "AG100-R pp. 29 and 34",
    ),
    Hazard(
        "branch after the end", "QPU-122", Kind.PROGRAM_END, Kind.BRANCH, 1 + END_DELAY_SLOTS,
        "the program ends before this branch goes anywhere", "AG100-R pp. 29 and 34",
    ),
    Hazard(
        "switch spacing", "QPU-113", Kind.THREAD_SWITCH, Kind.THREAD_SWITCH, 3,
        "the thread was switched by {before}", "Mesa vc4, instruction scheduler",
    ),
    Hazard(
        "TMU swap", "QPU-115", Kind.TMU_SWAP, Kind.TMU_WRITE, 3,
        "a TMU is written, but tmurs was written by {before}",
    ),
    Hazard(
        "sample flags after depth", "QPU-119", Kind.TLB_Z_WRITE, Kind.SAMPLE_FLAGS_READ, 3,
        "the sample flags are read, but depth was written by {before}",
    ),
)  # fmt: skip
"""Between two instructions of one way through the program."""

PAIRINGS: Final = (
    Pairing(
        "one peripheral", "QPU-109",
        (
            (Kind.TMU_WRITE, "TMU write"),
            (Kind.TMU_LOAD, "TMU load"),
            (Kind.SFU_WRITE, "SFU write"),
            (TLB_WRITE, "tile buffer write"),
            (TLB_LOADS, "tile buffer load"),
            (Kind.MUTEX, "mutex"),
            (Kind.SEMAPHORE, "semaphore"),
        ),
        allowed=(Kind.TLB_COLOUR_WRITE | Kind.TLB_COLOUR_LOAD,),
    ),
    Pairing(
        "VPM and texture unit", "QPU-127",
        ((Kind.VPM_READ | Kind.VPM_WRITE, "VPM access"), (Kind.TMU_LOAD, "TMU load")),
        "vc4asm addendum (measured)",
        allowed=(Kind.VPM_READ | Kind.VPM_WRITE,),
    ),
    Pairing(
        "one uniform", "QPU-111",
        ((Kind.UNIFORM_READ, "uniform read"), (Kind.TMU_PARAMETER, "texture parameter")),
    ),
)  # fmt: skip
"""Within one instruction."""

FORMS: Final = (
    Form(
        "one target", "QPU-103", Kind.SAME_TARGET, "add and mul both write {place}",
        "AG100-R p. 29, write addresses",
    ),
    Form(
        "unconditional place", "QPU-114", Kind.CONDITIONAL_WRITE,
        "a condition does not hold this write to {place} back", "vc4asm addendum (measured)",
    ),
    Form(
        "flags of nothing", "QPU-116", Kind.FLAGS_OF_NOTHING,
        "the add operation never happens, so no flags are set", "AG100-R p. 28; vc4asm",
    ),
    Form(
        "packed peripheral", "QPU-117", Kind.PACKED_PERIPHERAL, "byte pack into {place}",
        "vc4asm addendum (measured)",
    ),
    Form(
        "stream read twice", "QPU-120", Kind.DOUBLE_READ,
        "{place} is read through both files: one word, seen twice",
        "Linux vc4 validator counts one",
    ),
    Form(
        "rotation inside quads", "QPU-124", Kind.PARTIAL_ROTATION,
        "only r0 to r3 rotate through all lanes: this rotates inside each quad",
        "py-videocore's tests (measured)",
    ),
)  # fmt: skip
"""An instruction by itself."""

PLACEMENTS: Final = (
    Placement(
        "streams at the end", "QPU-104",
        Kind.UNIFORM_READ | Kind.VARYING_READ | Kind.UNIFORM_ADDRESS, Where.LAST,
        "uniform or varying access in the last three instructions",
    ),
    Placement(
        "VPM at the end", "QPU-104", VPM_ACCESS, Where.LAST,
        "VPM access in the last three instructions",
    ),
    Placement(
        "register at the end", "QPU-105", Kind.REGISTER_WRITE, Where.END,
        "the program-end instruction writes a register",
    ),
    Placement(
        "register 14 at the end", "QPU-105", Kind.REGISTER_14, Where.LAST,
        "register 14 is used in the last three instructions",
    ),
    Placement(
        "early tile buffer", "QPU-107",
        Kind.SCOREBOARD_WAIT | TLB_ACCESS, Where.FIRST,
        "tile buffer access in the first two instructions",
    ),
    Placement(
        "depth at the end", "QPU-119", Kind.TLB_Z_WRITE, Where.FINAL,
        "depth is written by the last instruction",
    ),
    Placement(
        "request at the end", "QPU-122", Kind.TMU_WRITE | Kind.SFU_WRITE, Where.LAST,
        "the program ends before the result of this request is there",
    ),
    Placement(
        "switch after the end", "QPU-122", Kind.THREAD_SWITCH, Where.SLOTS,
        "the program ends before this thread switch",
    ),
)  # fmt: skip
"""A place in a program."""

MAX_DISTANCE: Final = max(hazard.distance for hazard in HAZARDS) - 1
"""How far back a hazard reaches."""

PRODUCERS: Final = Kind(sum({int(kind) for h in HAZARDS for kind in h.producer}))
CONSUMERS: Final = Kind(sum({int(kind) for h in HAZARDS for kind in h.consumer}))
SINGLES: Final = Kind(sum({int(form.kind) for form in FORMS}))
"""Kinds without which an instruction breaks no hazard and no form."""

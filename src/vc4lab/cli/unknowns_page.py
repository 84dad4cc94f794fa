"""docs/unknowns.md: every row of `vc4lab unknowns`, and open questions that need no choice.

python -m vc4lab.cli.unknowns_page > docs/unknowns.md
"""

from __future__ import annotations

from vc4lab.diagnostics.flips import by_row, sentences
from vc4lab.diagnostics.unknown import Unknown
from vc4lab.drm.cpu_memory.cpu_memory_unknowns import CPU_MEMORY_UNKNOWNS
from vc4lab.qpu.isa.qpu_unknowns import QPU_UNKNOWNS
from vc4lab.scanout.display_unknowns import DISPLAY_UNKNOWNS
from vc4lab.soc.board_unknowns import BOARD_UNKNOWNS
from vc4lab.v3d.register_unknowns import REGISTER_UNKNOWNS
from vc4lab.v3d.tlb.tlb_unknowns import TLB_UNKNOWNS
from vc4lab.v3d.tmu.tmu_unknowns import TMU_UNKNOWNS
from vc4lab.v3d.unknowns import LIST_UNKNOWNS
from vc4lab.v3d.user_programs.user_program_unknowns import USER_PROGRAM_UNKNOWNS

HEAD = """\
# What no document says

Where the published documents leave a question open, this simulator makes a choice. This page lists
them. Each is a switch: `vc4lab replay RUN --unknown fill_rule=bottom-left`, likewise for `boot` and
`run`; from Python `DEFAULT_UNKNOWNS.with_(fill_rule="bottom-left")`. Compiled code and the reference
interpreter follow it alike, bit for bit. The default is printed **bold**. A settled row names its
evidence; for the others, a measurement on a board is welcome. "Flipped" says what another choice
changes, all else at its default, in suites whose results on real boards are published, and in recorded
runs of Mesa's driver, of which every byte that a job leaves is compared (`make decide`).

Chapter numbers are those of the hardware reference this simulator was written from; AG100-R is
Broadcom's *VideoCore IV 3D Architecture Reference Guide*.

Generated from the table by `python -m vc4lab.cli.unknowns_page`; `vc4lab unknowns --json` prints
the same data for programs.
"""

AREAS: tuple[tuple[str, list[Unknown]], ...] = (
    ("Control lists, binner", LIST_UNKNOWNS),
    ("Registers", REGISTER_UNKNOWNS),
    ("QPU", QPU_UNKNOWNS),
    ("Textures", TMU_UNKNOWNS),
    ("Rasteriser and tile buffer", TLB_UNKNOWNS),
    ("User programs, VPM and DMA", USER_PROGRAM_UNKNOWNS),
    ("Board and firmware", BOARD_UNKNOWNS),
    ("Display hardware (HVS)", DISPLAY_UNKNOWNS),
    ("Memory next to the processor", CPU_MEMORY_UNKNOWNS),
)

NOT_DECIDED: tuple[tuple[str, str, str], ...] = (
    (
        "1.3",
        "The V3D's clock, which depends on the firmware",
        "it only scales the estimated time of jobs. Programs that ask the mailbox get the rate of "
        "the board's first firmware.",
    ),
    (
        "1.5",
        "Line size of the uniforms cache, size of the L2",
        "no such cache is modelled. `--caches check` reports every word that was not cleared, "
        "whatever a cache's size.",
    ),
    (
        "3.4",
        "Index type 2 of record 32 (32-bit indices), which one debugger accepts",
        "the guide has no such type: the record is left out, with CLE-016.",
    ),
    (
        "7.6",
        "Which quads share a vector of 16 lanes",
        "it changes nothing for programs that stay in their quad, and only theirs are put "
        "together; those that look across quads (rotations of r0 to r3, branches, lane numbers) "
        "run on 4x4 blocks of one primitive.",
    ),
)
"""Open questions that need no choice: chapter, question, why not."""


def write_page() -> str:
    """The page, ending in a newline."""
    lines = [HEAD]
    for title, rows in AREAS:
        lines += [f"## {title}", ""]
        for row in rows:
            lines += _row(row)
    lines += ["## Open, but not decided by code", "", "| chapter | what | not decided because |"]
    lines.append("| --- | --- | --- |")
    lines += [f"| {chapter} | {what} | {why} |" for chapter, what, why in NOT_DECIDED]
    return "\n".join(lines) + "\n"


def _row(row: Unknown) -> list[str]:
    lines = [f"### {row.name}", "", row.question, ""]
    for choice, meaning in row.choices.items():
        shown = f"**`{choice}`**" if choice == row.default else f"`{choice}`"
        lines.append(f"* {shown}: {meaning}")
    evidence = f"Settled by: {row.settled}" if row.settled else f"Would be settled by: {row.decided_by}"
    lines += ["", evidence, f"Source: {row.reference}."]
    lines += [f"Flipped: {sentence}." for sentence in sentences(by_row().get(row.name, ()))]
    return [*lines, ""]


if __name__ == "__main__":
    print(write_page(), end="")

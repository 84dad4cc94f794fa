"""docs/diagnostics.md: every code of the catalogue in a table, area by area.

python -m vc4lab.diagnostics.table > docs/diagnostics.md
"""

from __future__ import annotations

from importlib import import_module

from vc4lab.diagnostics.catalogue import AREAS, catalogue
from vc4lab.diagnostics.entry import Entry

HEAD = """\
# Diagnostics

What `vc4lab` says when a program does something that a board would not do as meant. Each message
has a code, the address in guest memory, the instruction (with the function, when the program's
ELF file is there) and a sentence; `vc4lab explain CODE` prints the whole entry with the cure. An
*error* stops a board, hangs it or draws garbage (and stops `--strict`), a *warning* is probably
not what was wanted, a *hint* works slowly or by luck.

Written from the catalogue by `python -m vc4lab.diagnostics.table`.

## Options that look closer

* `--strict` stops at the first error, and lays a guard zone after the framebuffer and everything
  else that the firmware hands out: who writes past the end of a buffer is named.
* `--caches check` models the ARM's data cache and the V3D's caches, and reports who reads old bytes
  and which instruction wrote the new ones. `--caches stale` lets the V3D, the DMA, the firmware,
  the display and the CPU really see the old bytes. The cache is very large (32 MiB): a line stays
  in it until the program cleans or invalidates it, which is the worst that can happen on a board.
  What is cached follows from the page tables (MMU and cache on, write-back memory; tables of
  AArch32's HYP mode count as uncached); operations by set and way count for the whole cache,
  cleaning to the point of unification (`DC CVAU`) for nothing. Loads and stores are several times
  slower with it; without the option nothing of it is there.
* `--both-orders` saves the screenshot twice, the second time with red and blue exchanged.

When a program makes no progress, SOC-040 names who waits for what: the list threads, the register
that is polled and what it counts, the sleeping CPU and its interrupts. The bits of PCS are states
and no errors (but BMOOM, bit 8).
"""


def write_table() -> str:
    """The page, ending in a newline."""
    lines = [HEAD]
    known = catalogue()
    for area, prefix in AREAS.items():
        codes = [code for code in known if code.startswith(f"{prefix}-")]
        if not codes:
            continue
        module = import_module(f"vc4lab.diagnostics.catalogue.{area}")
        title = (module.__doc__ or "").strip().splitlines()[0].rstrip(".")
        lines += [f"## {prefix}: {title}", "", "| code | what | severity | reference |"]
        lines.append("| --- | --- | --- | --- |")
        lines += [_row(known[code]) for code in sorted(codes)]
        lines.append("")
    return "\n".join(lines)


def _row(entry: Entry) -> str:
    cells = (entry.code, entry.title, entry.severity.name.lower(), entry.reference)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    print(write_table(), end="")

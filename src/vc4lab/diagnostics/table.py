"""docs/diagnostics.md: every code of the catalogue in a table, area by area.

python -m vc4lab.diagnostics.table > docs/diagnostics.md
"""

from __future__ import annotations

from importlib import import_module

from vc4lab.diagnostics.catalogue import AREAS, catalogue
from vc4lab.diagnostics.entry import Entry

HEAD = """\
# Diagnostics

The messages of `vc4lab` about programs that would not work on a board as intended. Each message
has a code, the address in guest memory, the instruction (with the function, if the program's ELF
file is available) and a sentence; `vc4lab explain CODE` prints the whole entry with the cure, and
`vc4lab explain black screen` names those that fit what is seen ([black-screen.md](black-screen.md)
walks from there to the cause). After
an *error* a board stops, hangs or draws garbage (and `--strict` stops); a *warning* is probably not
what was intended; a *hint* is about what works slowly or by luck.

Written from the catalogue by `python -m vc4lab.diagnostics.table`.

## Options that check more

* `--strict` stops at the first error, and places a guard zone after the framebuffer and everything
  else that the firmware allocates, so that a write past the end of a buffer is reported. Findings
  about what works here but not, or not always, on a board are errors then, too: "error with
  --strict" in the tables below.
* `--caches check` models the ARM's data cache and the V3D's caches, and reports what reads old
  bytes and which instruction wrote the new ones. With `--caches stale` the V3D, the DMA, the
  firmware, the display and the CPU actually get the old bytes. The modelled cache is very large
  (32 MiB): a line stays in it until the program cleans or invalidates it, which is the worst case.
  What is cached follows from the page tables (MMU and cache on, write-back memory; tables of
  AArch32's HYP mode count as uncached). Operations by set and way apply to the whole cache;
  cleaning to the point of unification (`DC CVAU`) has no effect. Loads and stores are several times
  slower with this option, and not slower at all without it.
* `--ram noise` lets RAM hold noise at power-on, the same each time, where the firmware has left it
  alone, so that a .bss section that is not cleared, and everything else that is used before it is
  set, shows as on a board. The VPM of QPU programs then holds noise as well. `--strict` has it, too
  (also under `vc4lab run`), but for Linux; `--ram zero` is the other choice.
* `--forgiving` does the opposite: what a board would refuse, or get wrong, works where earlier
  versions let it work. The entries of the messages that this concerns say so. From Python:
  `Machine(path, forgiving=True)`, `GpuOptions(forgiving=True)`.
* `--both-orders` saves the screenshot twice, the second time with red and blue exchanged.

When a program makes no progress, SOC-040 reports what each part waits for: the list threads, the
register that is polled and what it counts, the sleeping CPU and its interrupts. The bits of PCS are
states, not errors, except BMOOM (bit 8).
"""


def write_table() -> str:
    """The page, ending in a newline."""
    lines = [HEAD]
    known = catalogue()
    for area, prefix in AREAS.items():
        codes = [code for code in known if code.startswith(f"{prefix}-")]
        module = import_module(f"vc4lab.diagnostics.catalogue.{area}")
        title = (module.__doc__ or "").strip().splitlines()[0].rstrip(".")
        lines += [f"## {prefix}: {title}", "", "| code | what | severity | reference |"]
        lines.append("| --- | --- | --- | --- |")
        lines += [_row(known[code]) for code in sorted(codes)]
        lines.append("")
    return "\n".join(lines)


def _row(entry: Entry) -> str:
    cells = (entry.code, entry.title, entry.severities, entry.reference)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    print(write_table(), end="")

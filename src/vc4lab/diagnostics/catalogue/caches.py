"""Messages about caches, the ARM's and the V3D's; they come with `--caches` only."""

from __future__ import annotations

from vc4lab.diagnostics.entry import Entry, Severity

_PERIPHERALS = "BCM2835 ARM Peripherals"
_ARM = "ARM Architecture Reference Manual ARMv7-A"

ENTRIES = [
    Entry(
        "CACHE-001",
        "Something reads what only the ARM's cache has",
        "The CPU wrote to cached memory and did not clean the lines, so memory has the old bytes "
        "when the V3D, the DMA, the firmware or the display reads it. On a board it works now and "
        "then, when the lines happened to be written back. Found with --caches; the cache is "
        "modelled far larger than it is, so a line stays in it until the program cleans it.",
        _ARM + ", B2.2 caches and memory hierarchy",
        "Clean the range to the point of coherency before the others start (DCCMVAC, mcr p15, 0, "
        "rt, c7, c10, 1; dc cvac on AArch64) and dsb, or map shared buffers uncached.",
        Severity.WARNING,
    ),
    Entry(
        "CACHE-002",
        "The CPU reads old bytes from its cache",
        "The V3D, the DMA or the firmware wrote to memory of which the ARM's data cache holds a "
        "line, and the CPU reads the line without having invalidated it. Found with --caches.",
        _ARM + ", B2.2 caches and memory hierarchy",
        "Invalidate the range before it is read (DCIMVAC, mcr p15, 0, rt, c7, c6, 1; dc ivac on "
        "AArch64), or map it uncached.",
        Severity.WARNING,
    ),
    Entry(
        "CACHE-003",
        "Invalidating loses what the CPU wrote",
        "A dirty line of the data cache is invalidated without being cleaned: what the CPU wrote "
        "there never reaches memory. A line is 64 bytes (32 on a Pi Zero or 1), so that neighbours "
        "of a buffer may be lost as well. Found with --caches.",
        _ARM + ", B2.2 caches and memory hierarchy",
        "Clean and invalidate (DCCIMVAC, dc civac), and align buffers to lines.",
        Severity.WARNING,
    ),
    Entry(
        "CACHE-004",
        "Past the VideoCore's L2 cache",
        "On a Pi Zero or 1 the ARM's memory accesses go through the VideoCore's L2 cache, and the "
        "bus alias 0xC0000000 goes past it to memory, which may have the old bytes. Found with "
        "--caches.",
        _PERIPHERALS + " 1.2.3",
        "Use the alias 0x40000000 on these boards, or disable_l2cache=1 in config.txt.",
        Severity.WARNING,
    ),
    Entry(
        "CACHE-005",
        "Two write the same cache lines",
        "The V3D, the DMA or the firmware writes lines that the ARM's data cache has written and "
        "not cleaned. When the cache writes them back, the others' bytes are lost: a picture with "
        "wrong stripes. Found with --caches.",
        _ARM + ", B2.2 caches and memory hierarchy",
        "Clean and invalidate a buffer before it is given away, and align it to lines.",
        Severity.WARNING,
    ),
    Entry(
        "CACHE-006",
        "The V3D's caches are not cleared",
        "A program, a uniform stream or a texture has changed since a job read it last, and the "
        "caches of the V3D may still have the old bytes: each slice has one for instructions, "
        "uniforms and texels, with the V3D's L2 cache behind them. Writes of the CPU and even "
        "tile stores of the V3D go past them. vc4lab always reads memory; it looks for this with "
        "--caches.",
        "AG100-R p. 84, L2CACTL and SLCACTL; Linux vc4_gem.c clears both before each job",
        "Write L2CACTL (0x020) = 4 and SLCACTL (0x024) = 0x0F0F0F0F before a job is started. 0x0F "
        "clears the instruction caches only.",
        Severity.WARNING,
    ),
]

"""Messages about caches, the ARM's and the V3D's; they come with `--caches` only."""

from __future__ import annotations

from vc4lab.diagnostics.entry import Entry, Severity

_PERIPHERALS = "BCM2835 ARM Peripherals"
_ARM = "ARM Architecture Reference Manual ARMv7-A"

ENTRIES = [
    Entry(
        "CACHE-001",
        "Memory is read while the ARM's cache has newer bytes",
        "The CPU wrote to cached memory and did not clean the lines, so the V3D, the DMA, the "
        "firmware or the display reads the old bytes from memory, or the MMU does: an ARM1176's table "
        "walks never look into its data cache, those of other cores only if TTBR0 or TCR asks for "
        "inner cacheable walks. On a board this works "
        "occasionally, when the lines happened to be written back. Found with --caches, which "
        "models the cache far larger than it is: a line stays in it until the program cleans it.",
        _ARM + ", B2.2 caches and memory hierarchy, B4.1.154 TTBR0; ARM1176JZF-S TRM (DDI 0301H) 3.2.13",
        "Clean the range to the point of coherency before the reader starts (DCCMVAC, mcr p15, 0, "
        "rt, c7, c10, 1; dc cvac on AArch64), then dsb; or map shared buffers uncached.",
        Severity.WARNING,
    ),
    Entry(
        "CACHE-002",
        "The CPU reads old bytes from its cache",
        "The V3D, the DMA or the firmware wrote to memory that the ARM's data cache holds, and the "
        "CPU reads the cached line without invalidating it first. Found with --caches.",
        _ARM + ", B2.2 caches and memory hierarchy",
        "Invalidate the range before reading it (DCIMVAC, mcr p15, 0, rt, c7, c6, 1; dc ivac on "
        "AArch64), or map it uncached.",
        Severity.WARNING,
    ),
    Entry(
        "CACHE-003",
        "Invalidation discards what the CPU wrote",
        "A dirty line of the data cache is invalidated without being cleaned, so what the CPU "
        "wrote there never reaches memory. A line is 64 bytes (32 on a Pi Zero or 1): data next to "
        "the buffer may be lost as well. Found with --caches.",
        _ARM + ", B2.2 caches and memory hierarchy",
        "Clean and invalidate (DCCIMVAC, dc civac), and align buffers to cache lines.",
        Severity.WARNING,
    ),
    Entry(
        "CACHE-004",
        "Access that bypasses the VideoCore's L2 cache",
        "On a Pi Zero or 1 the ARM's memory accesses go through the VideoCore's L2 cache. The bus "
        "alias 0xC0000000 bypasses it and reads memory, which may have the old bytes. Found with "
        "--caches.",
        _PERIPHERALS + " 1.2.3",
        "Use the alias 0x40000000 on these boards, or disable_l2cache=1 in config.txt.",
        Severity.WARNING,
    ),
    Entry(
        "CACHE-005",
        "Two writers share cache lines",
        "The V3D, the DMA or the firmware writes lines that the ARM's data cache holds dirty. When "
        "the cache writes them back, the other writer's bytes are lost; the picture gets wrong "
        "stripes. Found with --caches.",
        _ARM + ", B2.2 caches and memory hierarchy",
        "Clean and invalidate a buffer before handing it over, and align it to cache lines.",
        Severity.WARNING,
    ),
    Entry(
        "CACHE-006",
        "The V3D's caches are not cleared",
        "A program, a uniform stream or a texture has changed since a job last read it, and the "
        "V3D's caches may still hold the old bytes: each slice caches instructions, uniforms and "
        "texels, backed by the V3D's L2 cache. Writes of the CPU, and even tile stores of the V3D, "
        "do not update them. vc4lab always reads memory; it reports this with --caches.",
        "AG100-R p. 84, L2CACTL and SLCACTL; Linux vc4_gem.c clears both before each job",
        "Write L2CACTL (0x020) = 4 and SLCACTL (0x024) = 0x0F0F0F0F before starting a job. 0x0F "
        "clears the instruction caches only.",
        Severity.WARNING,
    ),
]

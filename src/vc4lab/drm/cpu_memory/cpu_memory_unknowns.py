"""Open questions about caches and devices next to the processor."""

from __future__ import annotations

from vc4lab.diagnostics.unknown import Unknown, register

CPU_MEMORY_UNKNOWNS = [
    Unknown(
        "dma_coherent",
        "Do the ZynqMP's display and GPU see what the processor has in its cache?",
        {
            "no": "they read and write memory: with `--cpu-memory`, a cached buffer that the "
            "display shows after a process wrote it, or that a process reads after the GPU wrote "
            "it, is a diagnostic (DRM-041, DRM-042)",
            "yes": "their accesses go through the caches: nothing to report",
        },
        "no",
        "Write a cached dumb buffer that is on the screen, without any cache maintenance.",
        "I. Kawazome's articles on the ZynqMP's display (2022) have no cache maintenance, and keep "
        "the X driver's buffers uncached because the cursor is not shown properly otherwise",
    )
]

register(CPU_MEMORY_UNKNOWNS)

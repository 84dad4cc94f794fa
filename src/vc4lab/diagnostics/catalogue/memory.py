"""Messages about guest memory."""

from vc4lab.diagnostics.entry import Entry, Severity

ENTRIES = [
    Entry(
        "MEM-001",
        "Access outside RAM",
        "A block of the GPU accesses an address that is not populated RAM. The hardware returns an "
        "undefined value and drops writes; vc4lab keeps the access inside its own memory.",
        "BCM2835 ARM Peripherals p. 5, address map",
        "A bus address is 0xC0000000 (or another alias) + a physical address below the RAM size. A "
        "program with an MMU must translate its pointers first.",
        Severity.WARNING,
    ),
    Entry(
        "MEM-002",
        "Misaligned access",
        "The address must be a multiple of the access size; the hardware drops the low bits. QPU "
        "programs need 8 bytes, uniforms 4, textures 4096: the low 12 bits of a texture's first "
        "parameter are flags (type, mip levels), which a misaligned address would change.",
        "AG100-R p. 34 (code), p. 41 (textures), pp. 53-61",
        "Align the buffer or the offset.",
        Severity.WARNING,
    ),
]

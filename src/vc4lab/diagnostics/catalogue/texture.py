"""Messages about texture parameters and the texture unit."""

from vc4lab.diagnostics.entry import Entry, Severity

_PARAMETERS = "AG100-R pp. 41-43, texture configuration parameters"

ENTRIES = [
    Entry(
        "TMU-001",
        "Reserved texture type",
        "The type (P0 bits 7:4 with P1 bit 31 as bit 4) is above 17. What the hardware does is not "
        "documented; vc4lab samples it as RGBA8888.",
        "AG100-R p. 40",
        "Often the parameter words are swapped or the uniform stream is out of step: compare the "
        "number of texture coordinate writes with the words in the stream.",
    ),
    Entry(
        "TMU-002",
        "This texture type cannot be filtered",
        "Integer 16 bit textures are point-sampled only, and half-float ones where the switch "
        "tmu_half_filter says so. The nearest texel is returned.",
        "AG100-R p. 40; HW-2619, HW-2645",
        "Set MAGFILT and MINFILT to nearest (P1 = … | 0x90).",
        Severity.WARNING,
    ),
    Entry(
        "TMU-003",
        "Reserved minification filter",
        "MINFILT (P1 bits 6:4) is 6 or 7. vc4lab samples the nearest texel of level 0.",
        "AG100-R p. 42",
        "Use 0 to 5.",
    ),
    Entry(
        "TMU-004",
        "Raster texture whose width is not a power of two",
        "The texture unit computes the row pitch of raster textures from the next power of two, so "
        "rows must be stored that far apart.",
        "HW-2898",
        "Pad the rows to a power of two, or use the T format.",
        Severity.WARNING,
    ),
    Entry(
        "TMU-005",
        "Child image of 2048 texels",
        "A child image whose width or height is 2048 fails on silicon. vc4lab samples it.",
        "HW-2753",
        "Use a smaller window.",
    ),
    Entry(
        "TMU-006",
        "Texture size is not a power of two",
        "Repeating wrap modes and mip levels are defined for powers of two. vc4lab wraps at the "
        "true size and lays out levels from the next power of two, as drivers do; the picture of "
        "a level is the true size, halved (--unknown tmu_level_size).",
        "OpenGL ES 2.0 section 3.8.2; Mesa vc4_resource.c",
        "Clamp to the edge and use one level, or use a power of two.",
        Severity.HINT,
    ),
    Entry(
        "TMU-007",
        "Child image of a texture with mip levels",
        "How a child window applies to the smaller levels is not documented; vc4lab samples the "
        "window of level 0 only.",
        _PARAMETERS,
        "Set MIPLVLS to 0 for child images.",
    ),
    Entry(
        "TMU-008",
        "Child image of a cube map",
        "Both cube map mode and child parameters are set; the child parameters are ignored.",
        _PARAMETERS,
        "Use one of the two.",
    ),
    Entry(
        "TMU-009",
        "Raster texture with mip levels",
        "Whether raster textures can have mip levels is not documented; vc4lab expects the levels "
        "below the base, each with a power-of-two pitch.",
        "AG100-R p. 40",
        "Use the T format for mip-mapped textures.",
        Severity.WARNING,
    ),
    Entry(
        "TMU-010",
        "More mip levels than the size has",
        "MIPLVLS (P0 bits 3:0) counts levels beyond 1x1; those repeat the size 1x1 and lie below "
        "the real ones.",
        "AG100-R p. 41",
        "MIPLVLS is the number of levels minus one: log2 of the larger side at most.",
        Severity.HINT,
    ),
    Entry(
        "TMU-011",
        "Cube map without stride",
        "CMMODE is set but no parameter gives the distance of the faces: all six are the first.",
        _PARAMETERS,
        "Write a third parameter with PTYPE 1 and the stride; the request then needs S, T and R.",
    ),
    Entry(
        "TMU-012",
        "Wide result of a texture that was only known at run time",
        "The program computes where its texture parameters lie, or finds them by the way it took, "
        "and they name type RGBA64, whose requests have two result words. vc4lab returns the first "
        "one only: how many results wait must be known when a program is compiled.",
        _PARAMETERS,
        "Let the parameters follow from uniforms alone, or use a type with one result word.",
        Severity.WARNING,
    ),
    Entry(
        "TMU-013",
        "Too many textures that were only known at run time",
        "Programs that compute where their texture parameters lie asked for more textures than "
        "vc4lab keeps for one frame; the others return 0.",
        _PARAMETERS,
        "If there should be few: the uniform pointer is out of step, and the parameters are "
        "something else.",
        Severity.WARNING,
    ),
]

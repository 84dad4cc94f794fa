"""Messages about texture parameters and the texture unit."""

from vc4lab.diagnostics.entry import Entry, Severity

CONFIGURATIONS = frozenset(f"TMU-{number:03}" for number in range(1, 12))
"""Codes for what a texture's parameters alone decide. A driver writes them anew for each draw: the
same words at another address are the same cause and are only counted."""

_PARAMETERS = "AG100-R pp. 41-43, texture configuration parameters"

ENTRIES = [
    Entry(
        "TMU-001",
        "Reserved texture type",
        "The type (P0 bits 7:4, with P1 bit 31 as bit 4) is above 17. What the hardware does is "
        "not documented; vc4lab samples it as RGBA8888.",
        "AG100-R p. 40",
        "Often the parameter words are swapped, or the uniform stream is out of step: compare the "
        "number of texture coordinate writes with the number of words in the stream.",
    ),
    Entry(
        "TMU-002",
        "Texture type cannot be filtered",
        "16-bit integer textures are point-sampled only, and so are half-float ones where the "
        "switch tmu_half_filter says so. The nearest texel is returned.",
        "AG100-R p. 40; HW-2619, HW-2645",
        "Set MAGFILT and MINFILT to nearest (P1 = … | 0x90).",
        Severity.WARNING,
    ),
    Entry(
        "TMU-003",
        "Reserved minification filter",
        "MINFILT (P1 bits 6:4) is 6 or 7, which is not documented. vc4lab samples the nearest "
        "texel of level 0.",
        "AG100-R p. 42",
        "Use a value from 0 to 5.",
    ),
    Entry(
        "TMU-004",
        "Raster texture whose width is not a power of two",
        "The texture unit computes the pitch of raster textures from the next power of two, so "
        "rows must be stored that far apart. Otherwise the picture is slanted.",
        "HW-2898",
        "Pad the rows to a power of two, or use the T format.",
        Severity.WARNING,
    ),
    Entry(
        "TMU-005",
        "Child image of 2048 texels",
        "A child image with a width or height of 2048 fails on the chip. vc4lab samples it.",
        "HW-2753",
        "Use a smaller window.",
    ),
    Entry(
        "TMU-006",
        "Texture size is not a power of two",
        "Repeating wrap modes and mip levels are defined for powers of two. vc4lab wraps at the "
        "true size and lays out mip levels from the next power of two, as drivers do; each level's "
        "picture is half the size of the previous one, starting from the true size (--unknown "
        "tmu_level_size).",
        "OpenGL ES 2.0 section 3.8.2; Mesa vc4_resource.c",
        "Clamp to the edge and use one level, or use a power of two.",
        Severity.HINT,
    ),
    Entry(
        "TMU-007",
        "Child image of a texture with mip levels",
        "How a child window applies to the smaller levels is not documented. vc4lab samples the "
        "window of level 0 only.",
        _PARAMETERS,
        "Set MIPLVLS to 0 for child images.",
    ),
    Entry(
        "TMU-008",
        "Child image of a cube map",
        "Both cube map mode and child parameters are set. vc4lab ignores the child parameters.",
        _PARAMETERS,
        "Use one of the two.",
    ),
    Entry(
        "TMU-009",
        "Raster texture with mip levels",
        "Whether raster textures can have mip levels is not documented. vc4lab expects the levels "
        "in memory before the base, each with a power-of-two pitch.",
        "AG100-R p. 40",
        "Use the T format for mip-mapped textures.",
        Severity.WARNING,
    ),
    Entry(
        "TMU-010",
        "Too many mip levels",
        "MIPLVLS (P0 bits 3:0) counts levels beyond 1x1. They are 1x1 as well, and lie before the "
        "real ones in memory.",
        "AG100-R p. 41",
        "MIPLVLS is the number of levels minus one: at most log2 of the larger side.",
        Severity.HINT,
    ),
    Entry(
        "TMU-011",
        "Cube map without stride",
        "CMMODE is set, but no parameter gives the distance between faces, so all six faces are "
        "the first one.",
        _PARAMETERS,
        "Write a third parameter with PTYPE 1 and the stride; the request then needs S, T and R.",
    ),
    Entry(
        "TMU-012",
        "64-bit result of a texture known only at run time",
        "The program computes where its texture parameters are, or selects them by a branch, and "
        "they have type RGBA64, whose requests return two result words. vc4lab returns only the "
        "first: the number of results must be known when a program is compiled.",
        _PARAMETERS,
        "Let the parameters follow from uniforms alone, or use a type with one result word.",
        Severity.WARNING,
    ),
    Entry(
        "TMU-013",
        "Too many textures known only at run time",
        "Programs that compute where their texture parameters are requested more textures than "
        "vc4lab keeps for one frame. The others return 0.",
        _PARAMETERS,
        "If the program should use few textures, its uniform pointer is out of step and it takes "
        "other data for parameters.",
        Severity.WARNING,
    ),
]

"""Names what a person sees when something is wrong, and likely causes, the most likely one first.

`vc4lab explain black screen` searches these, and then the words of all entries.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Symptom:
    """Something that is seen.

    names: what people call it; one of them must be in the question, all its words in any order.
    causes: a code of the catalogue, or a sentence where no message can notice the cause.
    """

    names: tuple[str, ...]
    causes: tuple[str, ...]


SYMPTOMS = [
    Symptom(
        (
            "black screen",
            "blank screen",
            "black picture",
            "nothing drawn",
            "nothing shown",
            "nothing visible",
            "no picture",
            "empty screen",
            "screen stays black",
            "no triangle",
            "not drawn",
            "not shown",
            "not visible",
            "invisible",
        ),
        (
            "Run with --strict: the first message is usually the cause.",
            "SOC-030",
            "SOC-040",
            "SOC-003",
            "SOC-140",
            "SOC-141",
            "SOC-142",
            "DRAW-006",
            "DRAW-004",
            "DRAW-002",
            "DRAW-003",
            "DRAW-010",
            "DRAW-008",
            "DRAW-009",
            "DRAW-005",
            "DRAW-012",
            "DRAW-011",
            "DRAW-007",
            "DRAW-001",
            "CLE-041",
            "CLE-047",
            "CLE-046",
            "CLE-012",
            "CLE-030",
            "CLE-042",
            "CLE-026",
            "SOC-112",
            "SOC-143",
            "SOC-145",
            "SOC-144",
            "SOC-085",
            "SOC-089",
            "SOC-021",
            "`vc4lab boot --capture F.vc4cap` keeps what reached the V3D; `vc4lab why F.vc4cap` then says "
            "for each frame how many primitives and pixels each stage has let through.",
        ),
    ),
    Symptom(
        (
            "tiny picture",
            "picture too small",
            "very small triangle",
            "triangle small",
            "top left corner",
            "only a corner",
            "few pixels",
        ),
        ("DRAW-013", "DRAW-014", "SOC-085", "CLE-024"),
    ),
    Symptom(
        ("black triangle", "triangle is black", "colours are black", "object black", "no colours"),
        (
            "VTX-010",
            "FRG-008",
            "VTX-004",
            "QPU-117",
            "FRG-002",
            "A varying is read as plane value x W (ra15) + r5: without the addition it is a slope, not a "
            "colour; and a colour of 0.0 to 1.0 becomes a byte by a pack (.8a to .8d) of a mul result.",
        ),
    ),
    Symptom(
        ("upside down", "mirrored", "flipped", "inverted picture", "wrong way up"),
        (
            "Screen coordinates of the V3D begin in the top left corner and Y grows downwards; "
            "OpenGL's begin at the bottom. Negate Y (or the viewport's Y scale, record 105) and "
            "exchange the facing of triangles (record 96, bit 2).",
            "The first row of a texture in memory is at T = 0, which OpenGL has at the bottom: "
            "reverse the rows, the coordinate, or set FLIPY (bit 8 of its first parameter).",
        ),
    ),
    Symptom(
        (
            "wrong colour",
            "wrong color",
            "colours wrong",
            "colors wrong",
            "red blue swapped",
            "red and blue",
            "blue instead of red",
            "red instead of blue",
            "bgr rgb",
            "colours swapped",
        ),
        (
            "SOC-084",
            "SOC-085",
            "FRG-008",
            "VTX-004",
            "QPU-117",
            "SOC-089",
            "Byte 0 of an RGBA8888 pixel of the V3D is red. `boot --both-orders` saves the picture "
            "in both readings.",
        ),
    ),
    Symptom(
        ("flicker", "flickers", "flickering", "tearing", "flashing", "blinks", "half drawn frame"),
        (
            "CLE-042",
            "CLE-043",
            "CLE-044",
            "CACHE-001",
            "CACHE-006",
            "SOC-112",
            "The picture is drawn where it is shown: draw into one half of a virtual screen twice "
            "as high, and show it (tag 0x00048009) after the end of the frame, at the vertical "
            "blank.",
        ),
    ),
    Symptom(
        (
            "garbage",
            "noise",
            "random pixels",
            "corrupt picture",
            "corrupted",
            "scrambled",
            "wrong tiles",
            "tiles in the wrong place",
            "old picture",
        ),
        (
            "CLE-045",
            "CLE-042",
            "CLE-019",
            "CLE-024",
            "CLE-027",
            "CACHE-001",
            "CACHE-006",
            "SOC-085",
            "SOC-086",
            "Load and store of the tile buffer have another format (raster, T-format) than the picture.",
        ),
    ),
    Symptom(
        ("slanted", "skewed", "stripes", "sheared", "diagonal", "shifted rows"),
        ("SOC-083", "SOC-085", "TMU-004", "CLE-019"),
    ),
    Symptom(
        (
            "hang",
            "hangs",
            "stuck",
            "freezes",
            "frozen",
            "never returns",
            "endless loop",
            "stops after some frames",
            "does not end",
            "timeout",
        ),
        (
            "SOC-040",
            "CLE-028",
            "CLE-012",
            "CLE-022",
            "CLE-035",
            "QPU-050",
            "QPU-051",
            "QPU-041",
            "VTX-007",
            "SOC-049",
            "SOC-120",
            "SOC-060",
            "SOC-061",
        ),
    ),
    Symptom(
        (
            "crash",
            "crashes",
            "exception",
            "data abort",
            "prefetch abort",
            "undefined instruction",
            "reboots",
            "resets",
        ),
        ("SOC-042", "SOC-110", "SOC-059", "SOC-043", "SOC-087", "SOC-048", "SOC-046", "SOC-113", "BOOT-030"),
    ),
    Symptom(
        (
            "does not start",
            "does not boot",
            "rainbow screen",
            "led flashes",
            "led blinks",
            "nothing happens",
            "kernel not found",
            "rainbow square",
        ),
        ("BOOT-002", "BOOT-016", "BOOT-005", "BOOT-006", "BOOT-007", "SOC-043", "SOC-082"),
    ),
    Symptom(
        (
            "no serial",
            "no uart",
            "serial silent",
            "no output",
            "no console",
            "garbled serial",
            "nothing printed",
        ),
        ("SOC-058", "SOC-054", "SOC-040", "SOC-042", "BOOT-013"),
    ),
    Symptom(
        (
            "works in qemu",
            "works here not on board",
            "not on hardware",
            "works on pi 1 not on pi 2",
            "other board",
            "only on real hardware",
            "works only sometimes",
        ),
        (
            "Run with --strict --caches check --ram noise.",
            "SOC-110",
            "SOC-113",
            "SOC-112",
            "CACHE-001",
            "CACHE-002",
            "SOC-087",
            "SOC-003",
            "CLE-042",
            "SOC-093",
        ),
    ),
    Symptom(
        (
            "result zero",
            "all zeros",
            "results are zero",
            "zeros",
            "0000",
            "wrong result",
            "wrong sum",
            "wrong values",
        ),
        (
            "QPU-063",
            "QPU-062",
            "QPU-065",
            "QPU-066",
            "QPU-069",
            "QPU-101",
            "QPU-056",
            "CACHE-001",
            "CACHE-002",
            "mul24 multiplies the low 24 bits without a sign: negative numbers need more.",
            "A DMA store is over when vw_wait has been read; the QPU's end does not wait for it.",
        ),
    ),
    Symptom(
        (
            "triangles missing",
            "holes",
            "parts missing",
            "missing geometry",
            "half missing",
            "only half",
            "cut off",
        ),
        (
            "CLE-047",
            "DRAW-006",
            "DRAW-012",
            "CLE-014",
            "CLE-027",
            "CLE-028",
            "CLE-032",
            "CLE-024",
            "VTX-004",
            "The clip window (record 102) is smaller than the picture.",
            "`vc4lab why F.vc4cap` counts what each stage drops, also where something is left.",
        ),
    ),
    Symptom(
        ("wrong texture", "texture black", "texture garbled", "texture scrambled", "texture wrong"),
        (
            "TMU-001",
            "TMU-004",
            "TMU-009",
            "TMU-010",
            "FRG-002",
            "FRG-003",
            "CACHE-006",
            "CLE-009",
            "A texture's base address is a multiple of 4096; the low bits of its first parameter "
            "are the number of mip levels.",
        ),
    ),
    Symptom(
        ("slow", "low fps", "low frame rate", "takes too long", "too slow", "performance"),
        (
            "PERF-001",
            "PERF-002",
            "PERF-007",
            "PERF-008",
            "PERF-010",
            "PERF-012",
            "PERF-013",
            "`vc4lab profile` says which block bounds a frame, and what would help.",
        ),
    ),
]

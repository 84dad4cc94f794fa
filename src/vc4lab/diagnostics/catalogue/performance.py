"""Hints of `vc4lab profile` about what a frame spends its time on."""

from __future__ import annotations

from vc4lab.diagnostics.entry import Entry, Severity

HINT = Severity.HINT

ENTRIES = [
    Entry(
        "PERF-001",
        "A raster texture is sampled",
        "Texels of a raster image that are above each other lie in different lines of memory. A "
        "quad with linear filtering reads two or three lines, where the same texels of a tiled "
        "image are often in one. The number is a second run of the model, with the lines that a "
        "T-format image would have; which of the four tiles of a line a quad reads is taken from "
        "its place on the screen, so it is exact for images drawn one to one.",
        "hardware reference, texture formats; bm project: 97 against 384 Mpixel/s",
        "Upload the image in T format (Mesa does, unless it is shared or scanned out), or copy it "
        "once with a job that stores tiled.",
        HINT,
    ),
    Entry(
        "PERF-002",
        "The scoreboard is taken too early",
        "A fragment program waits for the pixels of earlier quads at its first access to the tile "
        "buffer. What comes after it runs one vector after the other for pixels that overlap. Here "
        "writes of depth or stencil stand earlier than they have to; the number is a second run of "
        "the model with these instructions further down.",
        "AG100-R, scoreboard; bm project: 2 to 4 times slower; Mesa: +1.2 %",
        "Move the first read or write of the tile buffer (colour load, tlb_z, tlb_c) towards the end.",
        HINT,
    ),
    Entry(
        "PERF-003",
        "Many jobs draw next to nothing",
        "Each job loads and stores its tiles and fills and empties the pipeline. Here most jobs "
        "have two primitives or fewer: one job for each quad.",
        "hardware reference, jobs; Mesa: x11perf copywinwin100 2.3 times as fast without",
        "Draw what goes to the same surface one after the other; avoid flushes and reads of what "
        "was just drawn in between.",
        HINT,
    ),
    Entry(
        "PERF-004",
        "Vertices are shaded more than once",
        "The vertex cache joins vertices that are named again soon. Here the coordinate shader "
        "shades many vertices again, because they are named again too late.",
        "hardware reference, vertex cache manager",
        "Order triangles so that those that share vertices follow one another, or use strips.",
        HINT,
    ),
    Entry(
        "PERF-005",
        "Vertices are shaded again for each tile",
        "Vertices are shaded once for the binner, and again in each tile that one of their "
        "triangles touches. Here each of them is shaded many times while tiles are drawn.",
        "hardware reference, tile lists",
        "Shorten the vertex shader, or split meshes whose triangles lie in many tiles into parts "
        "that lie in few.",
        HINT,
    ),
    Entry(
        "PERF-006",
        "The frame is cleared by drawing",
        "The first draw of the tiles covers the whole frame with one colour, without textures and "
        "varyings. The tile buffer can be cleared for nothing when a tile begins.",
        "hardware reference, tile buffer clear; Mesa: a quad costs 5.5 %",
        "Clear all of colour (and depth with stencil) with glClear, without scissor and masks.",
        HINT,
    ),
    Entry(
        "PERF-007",
        "Tiles are loaded from memory",
        "Each tile's old content is read before it is drawn, because the job did not begin with a "
        "clear. That takes memory bandwidth, and the tile buffer waits for it.",
        "hardware reference, tile buffer load; bm project: one triangle 296 us, most of it loads",
        "Clear the whole surface first, or say that its content is not needed "
        "(glInvalidateFramebuffer, EGL_SWAP_BEHAVIOR left at destroyed).",
        HINT,
    ),
    Entry(
        "PERF-008",
        "Depth or stencil is stored",
        "Depth and stencil are written to memory at the end of each tile. If no later job loads "
        "them, that is for nothing.",
        "bm project: Z save and reload about 1 ms a job; Mesa: es2gears +1.57 %",
        "Invalidate depth and stencil before the frame ends (glInvalidateFramebuffer, "
        "glDiscardFramebufferEXT).",
        HINT,
    ),
    Entry(
        "PERF-009",
        "Hidden quads are shaded",
        "Many quads fail the depth test only after they were shaded, in draws that do not enable early Z.",
        "record 96, early Z; hardware reference, front end pipe",
        "Enable early Z: fragment shaders without discard and without depth writes, depth test "
        "with one direction for the whole frame; draw from front to back.",
        HINT,
    ),
    Entry(
        "PERF-010",
        "A program that samples textures runs alone on its QPU",
        "Two programs may share a QPU, so that one works while the other waits for its texture. "
        "This one uses more than half of the registers, or is not marked for it.",
        "AG100-R, threads; bm project: 384 against 511 Mpixel/s; Mesa: up to +20 %",
        "Keep the program within 16 registers of each file, with thread switches after its requests.",
        HINT,
    ),
    Entry(
        "PERF-011",
        "Pixels are drawn many times over",
        "The frame shades several times as many quads as it has.",
        "hardware reference, front end pipe",
        "Draw opaque things from front to back with early Z, and large blended layers less often.",
        HINT,
    ),
    Entry(
        "PERF-012",
        "Triangles are smaller than vectors",
        "A vector has four quads of 2x2 pixels. Where triangles cover fewer pixels than that, "
        "lanes are empty, and setting triangles up takes longer than filling them.",
        "bm project: 51 clocks for a triangle",
        "Use meshes with less detail for what is small on the screen.",
        HINT,
    ),
    Entry(
        "PERF-013",
        "A minified texture has no mip levels",
        "Neighbouring pixels read texels far from each other, so that nearly every one has a line "
        "of its own.",
        "hardware reference, TMU cache",
        "Make mip levels (glGenerateMipmap) and a MIN_FILTER that uses them.",
        HINT,
    ),
    Entry(
        "PERF-014",
        "Little of what is fetched for vertices is used",
        "Attributes of a vertex lie far from each other, or with gaps: of each line of 64 bytes "
        "that is fetched only a part is used.",
        "hardware reference, attribute DMA",
        "Put attributes that are used together next to each other in one array; use smaller types.",
        HINT,
    ),
]

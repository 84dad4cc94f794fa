"""Undocumented behaviour of the tile buffer and of multisampling: rows of `vc4lab unknowns`."""

from __future__ import annotations

from vc4lab.diagnostics.unknown import Unknown

TLB_UNKNOWNS: list[Unknown] = [
    Unknown(
        "coverage_samples",
        "Where in a pixel are the 16 samples of the coverage pipe, by bit of the mask?",
        {
            "grid": "a regular 4x4 grid, row by row",
            "rooks": "one in each of 16 rows and 16 columns, row by row",
        },
        "grid",
        "Accumulate a half plane with a slowly turning edge and read the 16-bit mask.",
        "no source; AG100-R p. 50 resolves 16x from blocks of 4x4; hardware reference 7.12",
    ),
    Unknown(
        "coverage_winding",
        "How does the coverage pipe count windings for the nonzero rule (record 96 bits 10:9 = 0)?",
        {
            "wrap": "2 bits a sample, forward-facing one up, reverse one down, modulo 4",
            "saturate": "the same, but it stops at 1 and -1",
        },
        "wrap",
        "Accumulate a square four times with the same winding and read its coverage.",
        "no source; 32 bits of a pixel's Z and stencil for 16 samples leave 2; reference 7.12",
    ),
    Unknown(
        "coverage_level",
        "How does the 8-bit coverage level (signal 7) follow from the samples that are covered?",
        {"scaled": "number x 255 / 16, to nearest", "shifted": "number x 16, at most 255"},
        "scaled",
        "Read the level of pixels with 1 to 16 covered samples.",
        "AG100-R p. 51 says 4 x 8-bit level; hardware reference 7.9",
    ),
    Unknown(
        "coverage_multisample",
        "A multisample frame has four Z/stencil words a pixel: which hold its coverage of 16 samples?",
        {
            "first": "that of sample 0; the other three stay as they are",
            "copies": "all four hold the same",
            "quarters": "bits 7:0 of each, for 4 of the 16 samples; the rest is 0",
        },
        "first",
        "Accumulate a path in such a frame and dump depth and stencil (record 26).",
        "no source; coverage is described in frames of 64x64 tiles only; hardware reference 7.1, 7.12",
    ),
    Unknown(
        "sample_positions",
        "Where in a pixel are the four samples of a multisample frame?",
        {
            "rotated": "rotated grid: (3,1) (7,3) (1,5) (5,7) eighths from the corner",
            "mirrored": "the same mirrored: (5,1) (1,3) (7,5) (3,7)",
            "grid": "regular grid: (2,2) (6,2) (2,6) (6,6)",
        },
        "rotated",
        "Draw a triangle with slowly rising edges into such a frame and dump it (record 26).",
        "no source; hardware reference 7.5",
    ),
    Unknown(
        "ms_depth",
        "With which depth are the samples of a multisample frame tested?",
        {
            "plane": "what TLB_Z was given plus the primitive's slope up to the sample",
            "centre": "what TLB_Z was given, the same for all four",
        },
        "plane",
        "Dump depth and stencil (record 26) of a steep triangle.",
        "no source; hardware reference 7.5",
    ),
    Unknown(
        "ms_no_oversample",
        "Which coverage have samples in a multisample frame with oversampling off (96 bits 7:6)?",
        {
            "centre": "all four that of the pixel centre; the depth of each is as ms_depth says",
            "single": "all four that of the pixel centre, and its depth: the frame looks as if it "
            "had one sample",
            "samples": "each its own, as with oversampling on",
        },
        "centre",
        "Draw a slanted, steep triangle without GL multisampling and dump the samples (record 26).",
        "both GL drivers switch it off when GL multisampling is disabled; hardware reference 7.5. Not "
        "`samples`: piglit's ext_framebuffer_multisample, interpolation 4 non-centroid-deriv-disabled, "
        "passes on a Raspberry Pi 3 and fails with it",
    ),
    Unknown(
        "decimate_16",
        "What does a 16x decimating store (record 28 bits 7:6 = 2) of a multisample frame write?",
        {
            "quad": "one pixel for the 16 samples of a 2x2 quad: a surface of half the size",
            "pixel": "the same as 4x",
        },
        "quad",
        "Store a multisample frame with mode 2 and compare its size with mode 1.",
        "AG100-R names a 4x4 block, for OpenVG's oversampling; hardware reference 7.10",
    ),
    Unknown(
        "resolve_without_decimate",
        "What do records 24 and 25 store of a multisample frame whose record 113 has decimate 0?",
        {
            "average": "the average of a pixel's four samples, as with decimate 1",
            "sample_0": "the first sample of each pixel, as record 28 with mode 0",
        },
        "average",
        "Draw a slanted edge so, store it with record 25 and count its colours.",
        "AG100-R table 38 calls the records Store multisample resolved; every public multisample "
        "program leaves decimate at 0; hardware reference 7.10",
        "Straight edges in a capture of a real screen (kumaashi tex_06_02_depth) are 0.07 to 0.10 "
        "pixels rms off a line, as an average of four gives; one sample gives 0.26 to 0.33",
    ),
    Unknown(
        "resolve_rounding",
        "How is the average of 4 (or 16) samples rounded when colours are resolved?",
        {"nearest": "to nearest, halves up", "truncate": "down"},
        "nearest",
        "Resolve pixels whose samples differ by one.",
        "no source; hardware reference 7.10",
    ),
    Unknown(
        "clear_colour_words",
        "What does the second colour word of record 114 do in a 32-bit frame?",
        {"first": "nothing: the first one counts", "columns": "it clears the odd columns"},
        "first",
        "Clear with two different words and store the frame.",
        "AG100-R table 38 wants the same colour twice; hardware reference 3.6",
    ),
    Unknown(
        "dump_64_bit",
        "How are 64-bit colours arranged in a full-resolution dump (record 26)?",
        {
            "halves": "all red and green words, then all blue and alpha words",
            "pixels": "the two words of each sample side by side",
        },
        "halves",
        "Dump a 64-bit frame whose pixels are all different.",
        "no source; no driver renders 64-bit colours; hardware reference 3.3",
    ),
    Unknown(
        "double_buffer_tile",
        "How large is a tile in double-buffer mode (records 112, 113)?",
        {"half": "64x32: each half of the tile buffer holds one tile", "full": "64x64 as without"},
        "half",
        "Bin two points 40 rows apart and count the tile lists that are not empty.",
        "AG100-R p. 46 only says the halves are used alternately; drivers never set it; "
        "hardware reference 3.6, 7.1",
    ),
    Unknown(
        "depth_never",
        "Does depth function 0 (never) reject a fragment whose program writes TLB_Z?",
        {"rejects": "yes", "passes": "no: as if there were no test"},
        "rejects",
        "Draw with function 0 and a program that writes TLB_Z and a colour.",
        "Hardware reference 7.9. Mesa's drivers mean never by it; kumaashi saw the cube of "
        "Sample_V3D_03 with a program that does not write TLB_Z (cp.qasm), not with one that does "
        "(copy.h)",
        "dEQP-GLES2 fragment_ops.depth.cmp_never and depth_stencil.stencil_depth_funcs.*_depth_never pass "
        "on a Raspberry Pi 3; with `passes` what Mesa's driver draws with GL_NEVER is seen (recorded run "
        "depth_never)",
    ),
    Unknown(
        "z_only_stencil",
        "What does a store of Z only (record 28 buffer 3) write into the stencil byte?",
        {"zero": "0", "stored": "the stencil, as a store of Z and stencil"},
        "zero",
        "Store Z only over a buffer of ones.",
        "AG100-R table 38; hardware reference 7.10",
    ),
    Unknown(
        "ms_flags_single",
        "What does MS_FLAGS read for a covered pixel in a frame without multisampling?",
        {"all": "0xF: any of its bits stands for the pixel", "one": "1: only bit 0 is there"},
        "all",
        "Write MS_FLAGS as colour.",
        "only not zero is certain; hardware reference 7.6",
    ),
    Unknown(
        "ms_flags_write",
        "On what does a program's write of MS_FLAGS act?",
        {
            "tlb_z": "on the next write of TLB_Z: it tests these samples, and colours follow it",
            "nothing": "on nothing: MS_FLAGS stays as it is",
            "all": "on all that comes after it, as the guide has it",
        },
        "tlb_z",
        "Switch all samples off and write a colour, without TLB_Z and after it.",
        "AG100-R p. 51; hardware reference 7.9",
        "On a Pi 3 piglit's sample-alpha-to-coverage color and unaligned-blit color msaa (2 and 4 "
        "samples) fail as if it did nothing; the programs, where recorded, do not write TLB_Z. "
        "With it, it acts: Broadcom's driver gets round HW-2924 by two writes of TLB_Z, each after "
        "the flags of one facing",
    ),
    Unknown(
        "stencil_setup_lane",
        "Which lane of TLB_STENCIL_SETUP counts?",
        {"0": "lane 0", "15": "lane 15"},
        "0",
        "Write a setup word that differs from lane to lane.",
        "no source; hardware reference 7.9",
    ),
    Unknown(
        "dump_single",
        "How is a tile without multisampling arranged in a full dump (records 26, 28)?",
        {
            "quads": "16 bytes for each 2x2 quad, as one sample of the multisample layout",
            "rows": "row by row, 64 words each",
        },
        "quads",
        "Dump a tile whose pixels are all different.",
        "no source; hardware reference 3.3, 7.11",
    ),
    Unknown(
        "dump_mask",
        "How much of a full dump (record 28 buffer 5) is the VG mask of a pixel?",
        {"words": "a word, as its colour", "bytes": "a byte, in the order of the quads"},
        "words",
        "Dump a tile whose mask differs from pixel to pixel.",
        "no source; hardware reference 3.3",
    ),
    Unknown(
        "z_clip_pixels",
        "What becomes of pixels beyond the Z planes (record 104) in a quad that has others?",
        {"pixels": "they are not drawn", "quads": "they are drawn: only whole quads are left out"},
        "pixels",
        "Draw a steep triangle through the far plane and look at its edge there.",
        "counter 2 counts quads; hardware reference 7.2",
    ),
    Unknown(
        "depth_rounding",
        "How does Zs become the 24-bit depth of rb15?",
        {
            "times_2_24": "Zs x 2^24, cut off, at most 0xFFFFFF",
            "truncate": "Zs x (2^24 - 1), cut off",
            "nearest": "Zs x (2^24 - 1), rounded",
        },
        "times_2_24",
        "Write rb15 of a sloped triangle and dump the depth.",
        "no document; hardware reference 7.6",
        "On a Pi 3 a draw at 0.75 fails EQUAL after Mesa cleared to 0.75, which is 0xBFFFFF there "
        "(piglit depthstencil-default_fb-clear and three more): of 441 depth tests this choice "
        "flips exactly these four, neither rounding of 2^24 - 1 does",
    ),
]

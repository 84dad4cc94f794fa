"""Undocumented behaviour of the texture unit: rows of `vc4lab unknowns`."""

from __future__ import annotations

from vc4lab.diagnostics.unknown import Unknown

TMU_UNKNOWNS: list[Unknown] = [
    Unknown(
        "tmu_filter_rounding",
        "How are the blends of bilinear filtering rounded?",
        {
            "each": "each of the three blends rounds to the nearest 8 bits",
            "truncate": "each of the three blends rounds down",
            "once": "exact 16 bit weights of four texels, rounded once",
        },
        "each",
        "Sample a black to white edge at 256 positions on a board and compare the steps.",
        "AG100-R p. 39 does not say; hardware reference 6.6",
    ),
    Unknown(
        "tmu_filter_weights",
        "How many fractional bits have the weights of bilinear filtering?",
        {"8": "8, rounded down", "7": "7, rounded down"},
        "8",
        "As for `tmu_filter_rounding`.",
        "AG100-R p. 39 does not say; hardware reference 6.6",
        "texwrap 2d, 2d proj and formats of piglit fail on a Raspberry Pi 3, also with textures whose sizes "
        "are powers of two: 30 results of 28 cases, which pass with 7. So the pair of 7 and "
        "`tmu_filter_rounding=truncate`, with which four cases of dEQP-GLES2 fail as on a board "
        "(docs/conformance.md), is not the chip's",
    ),
    Unknown(
        "tmu_coordinate_bits",
        "How many significant bits of S and T choose texels and weights?",
        {"24": "all of a float", "12": "12, the one before the point among them; the rest is cut off"},
        "24",
        "As for `tmu_filter_rounding`, with S from 1 to 2 and a texture 32 wide: 64 steps a texel, or 256.",
        "no source; hardware reference 6.6. With 12 all 119 results of piglit's texwrap 2d, 2d proj and "
        "formats are as on a Raspberry Pi 3 (with 24, 13 or 11, 16 parts whose sizes are no powers of two "
        "pass that fail there), and four of dEQP-GLES2's filtering.2d fail as there; but of its 503 cases of "
        "textures 24 fail, too, that pass there, where S and T repeat or are mirrored. The chip's way lies "
        "between",
    ),
    Unknown(
        "tmu_half_filter",
        "How are textures of half floats (types S16F, RGBA64) filtered?",
        {
            "round": "in single precision, each blend rounded to the nearest half",
            "truncate": "in single precision, each blend rounded toward zero",
            "point": "not at all: the nearest texel",
        },
        "round",
        "Sample an S16F texture with two texels at 256 positions between them.",
        "AG100-R p. 40 forbids filtering of S16 only; HW-2619, HW-2645 name problems, no "
        "precision; hardware reference 6.3",
    ),
    Unknown(
        "tmu_lod_log2",
        "How is log2 of the texel footprint computed for the level of detail?",
        {
            "smooth": "mantissa plus a parabola, error below 0.01",
            "linear": "the mantissa itself, error up to 0.086",
        },
        "smooth",
        "Blend two mip levels of different colours under a slowly changing scale.",
        "AG100-R does not say; hardware reference 6.6",
        "ten mipmapped cases of dEQP-GLES2, texture.mipmap.2d.affine.linear_nearest_{clamp,mirror,repeat} "
        "among them, pass on a Raspberry Pi 3 and fail with `linear`",
    ),
    Unknown(
        "tmu_lod_footprint",
        "Which size has the footprint of a pixel, from the differences of S and T in its quad?",
        {"largest": "the larger of both, in texels of level 0", "sum": "both added: GL's upper bound"},
        "largest",
        "Blend two mip levels of different colours under a plane turned by 45 degrees.",
        "AG100-R does not give the formula; hardware reference 6.6",
        "piglit's levelclamp (OpenGL 1.2) and fbo-generatemipmap pass on a Raspberry Pi 3 and fail "
        "with `sum`",
    ),
    Unknown(
        "tmu_lod_step",
        "How far do S and T step from pixel to pixel at most, as far as the level of detail asks?",
        {"size": "by the size of the texture: a difference above 1 counts as 1", "any": "as far as they do"},
        "size",
        "Blend the mip levels of a 32x64 texture where S steps by 1.07 and T by 0.2 a pixel.",
        "AG100-R does not say; hardware reference 6.6",
        settled="dEQP-GLES2 texture.mipmap.2d.basic.{nearest,linear}_linear_*_non_square, a whole "
        "cell with that step, comes out at LOD 5.0 instead of 5.1 on a Raspberry Pi 3: Mesa 25.0.7 "
        "lists all six, 22.3.6 four, and exactly these four fail here with the dEQP of its boards (1.3.3.0); "
        "no other of 84 such tests changes. Mesa's list quotes the log of a "
        "board, 2048 invalid pixels, and the pair of colours 0xff29d6 and 0xff2dd2: the cell has 2048 "
        "pixels, 0xff29d6 is due (no cell is due the other), and it is 0xff2dd2 here "
        "(recorded run mip_non_square)",
    ),
    Unknown(
        "tmu_lod_lane",
        "Which lane's B is the level of detail with BSLOD = 1?",
        {"quad": "lane 0 of each quad", "lane": "every lane its own"},
        "lane",
        "Explicit levels that differ inside a quad.",
        "AG100-R p. 43; hardware reference 6.6",
        settled="dEQP-GLES2 texture_functions.vertex.texture2dlod, whose vertices side by side ask "
        "for other levels, passes on a Raspberry Pi 3",
    ),
    Unknown(
        "tmu_bias_lane",
        "Which lane's B is the bias of the level of detail with BSLOD = 0?",
        {"lane": "every lane its own", "quad": "lane 0 of each quad"},
        "lane",
        "Sample with a bias that differs inside a quad.",
        "by analogy with BSLOD = 1, which is settled; hardware reference 6.6",
    ),
    Unknown(
        "tmu_magnified_below",
        "Up to which LOD does MAGFILT act if MINFILT picks nearest texels of mip levels?",
        {"gl": "0.5 with a linear MAGFILT, as OpenGL ES 2 has it; else 0", "zero": "0 always"},
        "gl",
        "Sample a checkerboard with an explicit LOD of 0.2, MAGFILT 0 and MINFILT 2.",
        "AG100-R does not say; hardware reference 6.6",
        settled="dEQP texture.vertex.cube.filtering.nearest_mipmap_{nearest,linear}_linear_* ask "
        "for LOD 0.19 and pass on a Pi 3; with `zero` all six fail",
    ),
    Unknown(
        "tmu_cube_wrap",
        "Do the wrap modes of P1 act inside the faces of a cube map?",
        {
            "programmed": "yes; border, which has no colour there, clamps",
            "clamp": "no, faces clamp at their edges",
        },
        "programmed",
        "Sample a face with a linear filter half a texel from its edge, wrap mode repeat.",
        "AG100-R does not say; hardware reference 6.6",
        settled="dEQP texture.vertex.cube.wrap.repeat_repeat, two of its cube.filtering.*_repeat "
        "and texture_functions.vertex.texturecubelod pass on a Pi 3; with `clamp` they fail",
    ),
    Unknown(
        "tmu_cube_lod",
        "What is the footprint of a quad of a cube map whose lanes lie on several faces?",
        {
            "projected": "that of lanes 0 to 2 projected onto the face of the lane that samples",
            "each_face": "that of the coordinates which each lane has on its own face",
        },
        "projected",
        "Sample a cube map with mip levels along its edges.",
        "AG100-R does not say; hardware reference 6.6",
        settled="42 mipmapped cases of dEQP-GLES2 texture.size.cube and texture.mipmap.cube and "
        "six tests of piglit pass on a Raspberry Pi 3; differences of the raw S, T and R do not "
        "give their pictures either",
    ),
    Unknown(
        "tmu_level_size",
        "How large is mip level i of a texture whose size is no power of two?",
        {
            "halved": "the true size, halved i times: the corner of the room that it takes",
            "room": "all of its room, which is that of the next power of two",
        },
        "halved",
        "Sample level 1 of a 640x480 texture at S = 1.",
        "a program's need: Mesa's driver draws and stores only the corner; AG100-R does not say; "
        "hardware reference 6.5",
        "the parts of piglit's fbo-generatemipmap-formats whose sizes are no powers of two, depth formats "
        "among them, pass on a Raspberry Pi 3 and fail with `room`",
    ),
    Unknown(
        "tmu_border_4444",
        "In which order does R give the border colour of type RGBA4444?",
        {
            "result": "as in the result word: red in byte 0, alpha in byte 3",
            "reversed": "alpha in byte 0, red in byte 3",
        },
        "result",
        "Sample outside of such a texture with wrap mode 3.",
        "inferred from RGB565 and RGBA5551, which piglit's texwrap bordercolor shows on a "
        "Raspberry Pi 3; hardware reference 6.6",
    ),
    Unknown(
        "tmu_short_position",
        "Where is the sample of types S16F, S8 and S16 in the result word?",
        {"low": "bits 15:0 (7:0)", "high": "bits 31:16 (23:16)"},
        "low",
        "Sample one of these types and store r4 unchanged.",
        "AG100-R p. 40; hardware reference 6.3",
    ),
    Unknown(
        "tmu_alpha_colour",
        "Which colour has the result word of types A4 and A1?",
        {"zero": "0, 0, 0", "alpha": "the alpha, three times"},
        "zero",
        "Sample one of these types and store r4 unchanged.",
        "AG100-R p. 40 names alpha only; hardware reference 6.3",
    ),
    Unknown(
        "tmu_bw1_utile",
        "Which shape has a utile of 1-bit texels (type BW1, A1)?",
        {"32x16": "32 columns and 16 rows", "64x8": "64 columns and 8 rows"},
        "32x16",
        "Sample a texture of type 12 whose words are all different.",
        "AG100-R says 32x16, Broadcom's library addresses 64x8; hardware reference 6.4",
    ),
    Unknown(
        "tmu_yuyv_order",
        "In which order are Y, U and V in the result word of type YUYV422R?",
        {
            "yuv": "Y in byte 0, U in byte 1, V in byte 2, 255 in byte 3",
            "uyv": "U, Y, V, 255",
            "vuy": "V, U, Y, 255",
        },
        "yuv",
        "Sample one pair with three different values.",
        "no source; hardware reference 6.3",
    ),
    Unknown(
        "tmu_not_finite",
        "Which texel does an infinite or NaN coordinate mean?",
        {"zero": "that of coordinate 0", "far": "that of 2^24 with its sign"},
        "zero",
        "Sample with S = infinity in each wrap mode.",
        "no source; hardware reference 6.6",
    ),
]

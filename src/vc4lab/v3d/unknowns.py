"""Every undocumented behaviour of the V3D: the question, our choice, the alternatives, a switch.

No such choice hides in code. A block asks `unknowns["fill_rule"]`; `vc4lab unknowns` prints the
table. Rows of the lists and of the binner are here; registers, textures, tiles, user programs and
QPU have theirs in their own rooms, and this module puts all of them into the table.
"""

from __future__ import annotations

from vc4lab.diagnostics.unknown import DEFAULT_UNKNOWNS, Unknown, Unknowns, register
from vc4lab.qpu.isa.qpu_unknowns import QPU_UNKNOWNS
from vc4lab.v3d.register_unknowns import REGISTER_UNKNOWNS
from vc4lab.v3d.tlb.tlb_unknowns import TLB_UNKNOWNS
from vc4lab.v3d.tmu.tmu_unknowns import TMU_UNKNOWNS
from vc4lab.v3d.user_programs.user_program_unknowns import USER_PROGRAM_UNKNOWNS

__all__ = ["DEFAULT_UNKNOWNS", "LIST_UNKNOWNS", "Unknown", "Unknowns"]

LIST_UNKNOWNS: list[Unknown] = [
    Unknown(
        "sublist_depth",
        "How deep may Branch to Sub-list (17) nest?",
        {"1": "one return address", "2": "two return addresses"},
        "2",
        "Nest two sub-lists on a board and look where the list goes on.",
        "AG100-R p. 66 says 2, the CTnRA register says one deep; hardware reference 2.5, 3.2",
    ),
    Unknown(
        "ctsema",
        "Whose semaphore does CTnCS.CTSEMA show?",
        {
            "sent": "increments made by thread n that the other thread has not consumed",
            "own": "increments that thread n itself can still consume",
        },
        "sent",
        "Increment in thread 0, do not wait in thread 1, read both registers.",
        "AG100-R CTnCS; Broadcom's driver tests CT0CS.CTSEMA before submitting a bin list; "
        "hardware reference 3.2",
    ),
    Unknown(
        "binner_clip_window",
        "Does the binner leave out tiles that lie outside the clip window (102)?",
        {"used": "yes, once a clip window was programmed", "ignored": "no, only the frame counts"},
        "used",
        "Bin with a small clip window, look at the tile lists outside of it.",
        "AG100-R table 38 allows 102 in binning lists without saying what for; hardware reference 3.6",
    ),
    Unknown(
        "clip_window_empty",
        "What does a clip window (102) without pixels limit?",
        {
            "wraps": "its last pixel is left (bottom) + size - 1 in 16 bits: a size of 0 limits "
            "nothing in its direction if the window begins at 0, else nothing is drawn",
            "both": "nothing if width and height are 0; with a single 0 nothing is drawn",
            "each": "nothing in the direction, or both, in which it has size 0",
            "nothing": "everything: nothing is drawn",
        },
        "wraps",
        "Draw with windows of 0x64 and of 64x0 at (0, 0) and at (1, 1).",
        "Broadcom's drivers skip the draw, Mesa sends 0x0; hardware reference 3.6",
        "For 0x0 on a Pi 3: piglit's gl-1.0-scissor-offscreen, window at (0, 0), fails and draws "
        "all; dEQP's scissor.outside_render_tri and _point, at (0, 256), pass and draw nothing, "
        "outside_render_line overflows the binner. Only `wraps` explains all four; windows with a "
        "single 0 were not seen",
    ),
    Unknown(
        "guard_band",
        "Where does the clipper cut in X and Y?",
        {
            "wide": "only what would leave the range of s12.4 screen coordinates",
            "viewport": "at the edges of the view volume",
        },
        "wide",
        "Bin triangles that stick out of the viewport; look for records 49 and their clip data.",
        "AG100-R p. 52 names a guard band without its size; hardware reference 3.9, 7.2",
    ),
    Unknown(
        "tile_list_format",
        "How do tile lists know their format if the binning list has no record 56?",
        {
            "first_list": "the first list of a tile says it, in every frame",
            "separate": "they say changes only, but record 56 of the rendering list does not reach them",
        },
        "first_list",
        "Read the tile lists of the second frame of a program that never sends record 56.",
        "kumaashi's RPI2_TRIANGLE_DEMO and DEMO2 draw on his board with 0x32 in the rendering list "
        "and none in the binning list; Broadcom's VG driver sends 0x32 in both and counts on none "
        "in tile lists; hardware reference 3.4, 3.9",
    ),
    Unknown(
        "line_loop_end",
        "In which direction is the closing line of a line loop drawn?",
        {"last_first": "from the last vertex to the first", "first_last": "the other way"},
        "last_first",
        "Draw a flat-shaded line loop: the closing line has the colour of its second vertex.",
        "no source; hardware reference 3.9",
    ),
    Unknown(
        "clipper_z_order",
        "Which float of Clipper Z (106) is the scale?",
        {"scale_first": "Zs = Zc/Wc x first + second", "offset_first": "Zs = Zc/Wc x second + first"},
        "scale_first",
        "Clip a triangle at the near plane with two different values, read the clip record.",
        "AG100-R and Mesa against Broadcom's khrn driver; equal for the usual 0.5, 0.5; "
        "hardware reference 3.6",
    ),
    Unknown(
        "fill_rule",
        "Which of two triangles gets a pixel whose centre lies exactly on their shared edge?",
        {
            "top-left": "the one for which it is a left edge or the edge with the lowest row",
            "bottom-left": "the one for which it is a left edge or the edge with the highest row",
        },
        "top-left",
        "Draw a square whose edges pass through pixel centres and count rows and columns.",
        "no source; hardware reference 7.3",
    ),
    Unknown(
        "line_shape",
        "What quadrilateral is a line?",
        {
            "parallelogram": "ends cut along the minor axis, width measured along it",
            "rectangle": "ends and width square to the line",
        },
        "parallelogram",
        "Draw a line 16 pixels wide at 30 degrees on a board.",
        "no source; hardware reference 7.4",
        "piglit's line-aa-width (OpenGL 1.1) passes on a Raspberry Pi 3 and fails with `rectangle`",
    ),
    Unknown(
        "line_coordinate",
        "On which side is the line coordinate 0?",
        {
            "left-is-0": "left of the direction from vertex 0 to 1, rows growing upward, is 1 away",
            "left-is-1": "the other way round",
        },
        "left-is-0",
        "Write the line coordinate as colour on a board.",
        "Broadcom's smooth-line shader is symmetric; hardware reference 7.4",
    ),
    Unknown(
        "rht_facing",
        "Which way does a right-hand trapezoid face (record 96 bits 2:0)?",
        {
            "edge": "an edge toward higher rows is counter-clockwise, one toward lower clockwise",
            "any": "it has no facing: drawn if any face is enabled",
        },
        "edge",
        "Draw one trapezoid up and one down with only one face enabled.",
        "no source; the known programs enable both faces; hardware reference 3.6",
    ),
    Unknown(
        "rht_boundary_offset",
        "Does the viewport offset (103) move the RHT X boundary (100)?",
        {"moved": "yes, like a vertex", "fixed": "no, it is a column of the frame"},
        "moved",
        "Draw a trapezoid with a viewport offset other than 0.",
        "no source; the known programs have an offset of 0; hardware reference 7.4",
    ),
    Unknown(
        "vg_dummy",
        "What follows the code 0xBFFF0001 in a VG strip or fan (records 41, 42)?",
        {
            "skip": "the next vertex takes its place: the strip or fan goes on",
            "restart": "a new strip or fan begins",
        },
        "skip",
        "Put the code into the middle of a strip and look which triangles appear.",
        "AG100-R p. 68 calls it a dummy primitive; no program is known that uses it; hardware reference 3.4",
    ),
    Unknown(
        "vg_continuation",
        "Which vertices of a fan's continuation list come from the fan before it (record 41, 7:4)?",
        {
            "two": "the first two: its hub and its last vertex",
            "one": "only the hub; the second vertex is that of the list",
        },
        "two",
        "Continue a fan with three vertices far away from each other.",
        "AG100-R p. 68: the first vertex (or first two) are ignored; hardware reference 3.4",
    ),
    Unknown(
        "index_error",
        "What happens when an index is above the maximum of record 32?",
        {
            "stop": "ERRSTAT.VCMBE is set and the binning thread stops with an error",
            "skip": "ERRSTAT.VCMBE is set, the rest of the record is skipped",
        },
        "stop",
        "Draw an index above the maximum, then another triangle; see whether the list ends.",
        "AG100-R p. 67 calls it an error; ERRSTAT has a bit for binner and renderer; hardware reference 3.4",
    ),
    Unknown(
        "dither_565",
        "Which pattern do dithered 565 stores add?",
        {"bayer": "a 4x4 Bayer matrix", "none": "none: like undithered"},
        "bayer",
        "Store a slow colour ramp with format 0 of record 28 and read it back.",
        "no source; hardware reference 7.10",
    ),
    Unknown(
        "rounding_565",
        "How do undithered 565 stores reduce 8 bits to 5 and 6?",
        {"round": "to nearest, as Broadcom's software does", "truncate": "low bits dropped"},
        "round",
        "Store all 256 grey values with format 2 of record 28 and read them back.",
        "Broadcom khrn_image.c rounds; hardware reference 7.10",
    ),
    Unknown(
        "state_after_reset",
        "Does CTRSTA reset the state that records 96 to 106 have set?",
        {
            "kept": "no: it stays until it is changed",
            "reset": "yes, and that of 56 and 64 to 67: as after power on",
        },
        "kept",
        "Set the line width, reset the thread, draw a line.",
        "hardware reference 3.6",
    ),
    Unknown(
        "tile_state_order",
        "In which order does the binner write state records into a tile list?",
        {
            "ascending": "96 to 104 ascending, then 56, then the shader state",
            "shader_first": "56, the shader state, then 96 to 104 ascending",
        },
        "ascending",
        "Read the tile lists of a board.",
        "only that 56 precedes the shader state is certain; hardware reference 3.9",
    ),
    Unknown(
        "clip_weights",
        "How do the three coefficients of a clipped vertex (record 49) give its varyings?",
        {
            "plain": "the sum of the original vertices with these weights",
            "projected": "the same sum of varyings divided by Wc, times the Wc of the record",
        },
        "plain",
        "Clip a triangle with one varying and read its colours.",
        "only the layout of the record is known; hardware reference 3.5",
    ),
    Unknown(
        "binner_facing",
        "Does the binner leave out primitives that face the wrong way?",
        {
            "no": "no: they are in the tile lists, setup drops them",
            "yes": "yes, triangles that record 96 does not enable",
        },
        "no",
        "Bin a triangle that faces away and read the tile list.",
        "counter 12 belongs to the PSE; hardware reference 3.9",
    ),
    Unknown(
        "clipper_far",
        "Does the clipper cut at the far plane (Zc = Wc)?",
        {
            "cut": "yes, as at the near plane",
            "left": "no: what lies beyond is left to the Z planes of record 104",
        },
        "cut",
        "Bin a triangle that sticks out of the far plane; look for a record 49.",
        "AG100-R p. 52 names the view volume; hardware reference 3.9, 7.2",
    ),
    Unknown(
        "bpos_small",
        "What does the binner do with an overspill block (BPOS) of less than 4096 bytes?",
        {"refused": "it waits for a larger one", "taken": "it uses it"},
        "refused",
        "Exhaust the pool, write 2048 to BPOS, read PCS.BMOOM.",
        "comments in Broadcom's driver: not accepted; hardware reference 2.6, 3.9",
    ),
    Unknown(
        "varying_missing",
        "What does a fragment program read after the last varying of its shader record?",
        {
            "zero": "0, and FRG-008 is reported",
            "waits": "nothing: it waits forever, so its draws are left out",
        },
        "zero",
        "Draw with a program that reads three varyings and a record that declares two.",
        "the interpolator computes as many as the record says, and a QPU waits for its FIFO "
        "(counter 19); hardware reference 4.15",
    ),
    Unknown(
        "depth_offset_unit",
        "How much is one unit of the depth offset (record 101)?",
        {
            "one": "one step of the 24-bit depth",
            "float": "one step of the largest Zs of the primitive, as a float32",
        },
        "one",
        "Draw with units 1 and dump the depth.",
        "AG100-R p. 70; hardware reference 3.6",
    ),
]

for _rows in (
    LIST_UNKNOWNS,
    REGISTER_UNKNOWNS,
    QPU_UNKNOWNS,
    TLB_UNKNOWNS,
    TMU_UNKNOWNS,
    USER_PROGRAM_UNKNOWNS,
):
    register(_rows)

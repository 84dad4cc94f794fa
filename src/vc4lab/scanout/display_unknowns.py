"""Undocumented behaviour of the display hardware (HVS): rows of the unknowns table."""

from __future__ import annotations

from vc4lab.diagnostics.unknown import DEFAULT_UNKNOWNS, Unknown, Unknowns, register

__all__ = ["DEFAULT_UNKNOWNS", "DISPLAY_UNKNOWNS", "Unknowns"]

_LINUX = "No document of the HVS is public; Linux's vc4_plane.c and vc4_hvs.c"

DISPLAY_UNKNOWNS = [
    Unknown(
        "hvs_filter",
        "How does the display scale a plane?",
        {
            "polyphase": "by 4 taps in 8 phases (Mitchell and Netravali, B = C = 1/3), to less "
            "than 2/3 by the mean of the area that a pixel covers",
            "nearest": "by the source pixel under the middle of each pixel",
        },
        "polyphase",
        "Scale a plane of one white pixel on a board and capture the HDMI signal.",
        f"{_LINUX} name the filter's coefficients, the two scalers and the factor between them, "
        "not their phases or precision",
    ),
    Unknown(
        "hvs_shrink_limit",
        "What shows a plane that is shrunk 32 times or more?",
        {
            "scales": "it is scaled like others",
            "wraps": "only the low 21 bits of the factor (16.16) count, so a part of it",
            "refuses": "nothing: the change is refused with ERANGE",
        },
        "scales",
        "Shrink a plane 40 times on a board.",
        f"{_LINUX} let every factor through to fields of 21 bits",
    ),
    Unknown(
        "hvs_expand",
        "How does a channel of less than 8 bits become one of 8?",
        {
            "repeats": "its bits are repeated",
            "nearest": "in proportion, to the nearest number: up to one more or less",
        },
        "repeats",
        "Show a ramp in RGB565 on a board and capture the HDMI signal.",
        f"{_LINUX} choose a mode named EXPAND_ROUND of four, without what it does",
    ),
    Unknown(
        "hvs_chroma",
        "What colour has a pixel of a plane with less colour than brightness (NV12 and others)?",
        {
            "blends": "three parts of the nearest sample and one of the next, in each direction",
            "nearest": "that of the sample which it shares with its neighbours",
        },
        "blends",
        "Show one coloured sample in NV12 on a board and capture the HDMI signal.",
        f"{_LINUX} scale colour by two with the scaler's filters",
    ),
    Unknown(
        "hvs_csc_rounding",
        "How are the sums rounded that make red, green and blue of brightness and colour?",
        {"nearest": "to the nearest", "down": "down"},
        "nearest",
        "Show a ramp in NV12 on a board and capture the HDMI signal.",
        f"{_LINUX} give the coefficients (8 bits after the point), not the rounding",
    ),
    Unknown(
        "hvs_blend_rounding",
        "How are products rounded where planes are blended?",
        {"nearest": "to the nearest", "down": "down"},
        "nearest",
        "Lay a plane of alpha 1 over white on a board and capture the HDMI signal.",
        _LINUX,
    ),
    Unknown(
        "hvs_matrix_rounding",
        "How are the sums of the colour matrix (CTM) rounded?",
        {"nearest": "to the nearest", "down": "down: a matrix of ones takes one of every colour"},
        "nearest",
        "Set a CTM of ones on a board and capture the HDMI signal.",
        "Linux's vc4_kms.c gives the factors (9 bits after the point: one is 511/512), not the rounding",
    ),
    Unknown(
        "hvs_fixed_mix",
        "Which alpha has a plane of fixed alpha whose list also asks for a mix (ALPHA_MIX)?",
        {
            "fixed": "the fixed one, whatever its pixels have",
            "product": "that of each pixel times the fixed one",
        },
        "fixed",
        "Lay a half transparent plane with pixel blend mode None over white on a board.",
        f"{_LINUX} set both bits for pixel blend mode None with a plane's alpha, of which DRM says "
        "that pixels' alpha does not count",
    ),
    Unknown(
        "hvs_identity",
        "What does the HVS's register DISPID read as?",
        {"name": "0x48565320, the letters HVS", "zero": "0"},
        "name",
        "Read 0x3F400008 on a board whose display runs.",
        f"{_LINUX} name the register, not its value, and do not read it",
    ),
    Unknown(
        "txp_alpha",
        "Which alpha do pixels have that TXP writes with their alpha (ALPHA_ENABLE)?",
        {"opaque": "1: the picture has been laid over a background", "zero": "0"},
        "opaque",
        "Write a picture back in ARGB8888 on a board.",
        "Linux's vc4_txp.c names the bit, not what composing leaves of alpha",
    ),
    Unknown(
        "txp_pace",
        "How long does TXP take for a picture?",
        {"clock": "a cycle of the core clock for each pixel", "display": "a 60th of a second, as a display"},
        "clock",
        "Measure the time from the start to the interrupt on a board.",
        "Linux's vc4_txp.c waits for the interrupt and names no time",
    ),
]

register(DISPLAY_UNKNOWNS)

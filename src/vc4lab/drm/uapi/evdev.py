"""The evdev interface: events, numbers of types and codes.

Source: Linux include/uapi/linux/input.h and input-event-codes.h.
"""

from __future__ import annotations

from vc4lab.drm.uapi.structures import Structure

VERSION = 0x010001
EVENT = Structure("input_event", "i64 sec, i64 usec, u16 type, u16 code, i32 value")
ID_FIELDS = "u16 bustype, u16 vendor, u16 product, u16 version"
ABSINFO_FIELDS = "i32 value, i32 minimum, i32 maximum, i32 fuzz, i32 flat, i32 resolution"
ABSINFO = Structure("input_absinfo", ABSINFO_FIELDS)

EV_SYN, EV_KEY, EV_REL, EV_ABS, EV_MSC, EV_SW = range(6)
EV_LED, EV_SND, EV_REP, EV_FF = 0x11, 0x12, 0x14, 0x15
SYN_REPORT, SYN_DROPPED = 0, 3
REPORT = (EV_SYN, SYN_REPORT, 0)
REL_X, REL_Y, REL_WHEEL, REL_WHEEL_HI_RES = 0, 1, 8, 11
ABS_X, ABS_Y = 0, 1
REP_DELAY, REP_PERIOD = 0, 1
BTN_LEFT, BTN_TASK = 0x110, 0x117
CODES = {
    EV_SYN: 32, EV_KEY: 768, EV_REL: 16, EV_ABS: 64, EV_MSC: 8, EV_SW: 17, EV_LED: 16, EV_SND: 8,
    EV_FF: 128,
}  # fmt: skip
"""How many codes there are of each type; for EV_SYN the number of types."""
PROPERTIES = 32
CLOCKS = (0, 1, 7)
"""CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME."""
WHEEL_STEP = 120
"""Units of the fine wheel in a step."""

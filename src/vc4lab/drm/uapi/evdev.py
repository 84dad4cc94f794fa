"""The evdev interface: events, numbers of types and codes, declarations of its ioctls.

Source: Linux include/uapi/linux/input.h and input-event-codes.h.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from vc4lab.drm.uapi.ioctls import READ, Ioctl
from vc4lab.drm.uapi.structures import Structure

if TYPE_CHECKING:
    from vc4lab.drm.input.clients import EvdevFile
    from vc4lab.drm.supervisor.answers import Caller

EVDEV_TYPE = 0x45
"""'E'."""
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


@dataclass(slots=True)
class EvdevCall:
    """One ioctl on an input device."""

    file: EvdevFile
    task: Caller
    number: int
    room: int
    """Bytes of the argument as the program's request says."""
    argument: int
    """The argument itself: an address, or a number where the kernel takes one."""
    args: Any = field(default=None)
    """Values of the declared structure, where there is one."""


EvdevResult = bytes | int | None
"""Bytes are cut to the program's room, stored, and their number is the result."""
EvdevHandler = Callable[[Any, EvdevCall], EvdevResult]


@dataclass(frozen=True)
class EvdevIoctl(Ioctl):
    """A declared ioctl of input devices."""

    kind: int = EVDEV_TYPE
    numbers: int = 1
    """So many in a row: one for each type, or for each axis."""
    any_size: bool = False
    """The program chooses the size."""
    by_value: bool = False
    """The argument is a number, not an address."""


def evdev_ioctl(
    number: int,
    name: str,
    fields: str = "",
    *,
    direction: int = READ,
    numbers: int = 1,
    any_size: bool = False,
    by_value: bool = False,
) -> Callable[[EvdevHandler], EvdevHandler]:
    """Declare a method as the handler of an ioctl."""

    def mark(handler: EvdevHandler) -> EvdevHandler:
        function: Any = handler
        function.declares = EvdevIoctl(
            number, name, Structure(name, fields), function.__name__, direction,
            numbers=numbers, any_size=any_size, by_value=by_value,
        )  # fmt: skip
        return handler

    return mark


def evdev_table(part: Any) -> dict[tuple[int, int], tuple[EvdevIoctl, Callable[..., EvdevResult]]]:
    """What an object's methods declare, by direction and number."""
    table: dict[tuple[int, int], tuple[EvdevIoctl, Callable[..., EvdevResult]]] = {}
    for value in vars(type(part)).values():
        declared = getattr(value, "declares", None)
        if isinstance(declared, EvdevIoctl):
            for number in range(declared.number, declared.number + declared.numbers):
                table[declared.direction, number] = declared, getattr(part, declared.handler)
    return table

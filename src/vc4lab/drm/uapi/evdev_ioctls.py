"""How an ioctl of input devices is declared; see `ioctls.py`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from vc4lab.drm.uapi.evdev import EVDEV_TYPE
from vc4lab.drm.uapi.ioctls import READ, Ioctl
from vc4lab.drm.uapi.structures import Structure

if TYPE_CHECKING:
    from vc4lab.drm.input.clients import EvdevFile
    from vc4lab.drm.supervisor.answers import Caller


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

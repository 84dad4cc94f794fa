"""One declaration per ioctl: number, structure and handler together.

A handler is a method with a decorator::

    @ioctl(0x0C, "GET_CAP", "u64 capability, u64 value")
    def get_cap(self, call: Call) -> None:
        call.args.value = ...

From the declaration come dispatch (`table_of`), the argument's size, the text of `--trace ioctl`
and the table in the documentation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vc4lab.drm.uapi.ioctl_types import DRM_TYPE
from vc4lab.drm.uapi.results import Later
from vc4lab.drm.uapi.structures import Structure, Values

if TYPE_CHECKING:
    from vc4lab.drm.device.files import OpenFile
    from vc4lab.drm.supervisor.answers import Caller

READ, WRITE = 2, 1
"""Directions of an ioctl's argument as its number says them: to the program, from the program."""


@dataclass(slots=True)
class Call:
    """One ioctl of a program: its caller, open file and arguments."""

    file: OpenFile
    task: Caller
    args: Any
    """Values of the declared structure."""
    data: bytes
    """The same as the program handed them in."""

    def read(self, address: int, size: int) -> bytes:
        """Bytes of the program's memory. Raises Refused (EFAULT)."""
        return self.task.read(address, size)

    def write(self, address: int, data: bytes) -> None:
        """Bytes into the program's memory. Raises Refused (EFAULT)."""
        self.task.write(address, data)

    def write_list(self, address: int, room: int, structure: Structure, many: list[Values]) -> int:
        """An array as KMS calls give it: only if all of it fits. Returns its length."""
        if address and room >= len(many) and many:
            self.task.write(address, structure.pack_all(many))
        return len(many)


Result = Later | int | None
Handler = Callable[[Any, Call], Result]


@dataclass(frozen=True)
class Ioctl:
    """A declared ioctl."""

    number: int
    name: str
    structure: Structure
    handler: str
    """Name of the method."""
    direction: int = READ | WRITE
    render: bool = False
    """Allowed on render nodes."""
    master: bool = False
    """Only for the file that owns the display."""
    kind: int = DRM_TYPE

    @property
    def request(self) -> int:
        """The number as programs pass it."""
        return self.direction << 30 | self.structure.size << 16 | self.kind << 8 | self.number


def ioctl(
    number: int,
    name: str,
    fields: str,
    *,
    direction: int = READ | WRITE,
    render: bool = False,
    master: bool = False,
) -> Callable[[Handler], Handler]:
    """Declare a method as the handler of an ioctl."""

    def mark(handler: Handler) -> Handler:
        structure = Structure(name, fields)
        function: Any = handler
        declared = Ioctl(number, name, structure, function.__name__, direction, render, master)
        function.declares = declared
        return handler

    return mark


def table_of(*parts: Any) -> dict[int, tuple[Ioctl, Callable[[Call], Result]]]:
    """What the objects' methods declare, by number. Raises ValueError for a number given twice."""
    table: dict[int, tuple[Ioctl, Callable[[Call], Result]]] = {}
    for part in parts:
        for base in type(part).__mro__:
            for value in vars(base).values():
                declared = getattr(value, "declares", None)
                if isinstance(declared, Ioctl):
                    if declared.number in table:
                        raise ValueError(f"ioctl 0x{declared.number:02x} declared twice")
                    table[declared.number] = declared, getattr(part, declared.handler)
    return table

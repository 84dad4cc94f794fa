"""One declaration per ioctl: number, structure and handler together.

A handler is a method with a decorator::

    @ioctl(0x0C, "GET_CAP", "u64 capability, u64 value")
    def get_cap(self, call: Call) -> None:
        call.args.value = ...

From the declaration come dispatch (`table_of`), the argument's size, the text of `--trace ioctl`
and the table in the documentation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from vc4lab.drm.uapi.results import Later
from vc4lab.drm.uapi.structures import Structure

if TYPE_CHECKING:
    from vc4lab.drm.objects.files import OpenFile
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
    """Those values as the program handed them in."""

    def read(self, address: int, size: int) -> bytes:
        """Bytes of the program's memory. Raises Refused (EFAULT)."""
        return self.task.read(address, size)

    def write(self, address: int, data: bytes) -> None:
        """Bytes into the program's memory. Raises Refused (EFAULT)."""
        self.task.write(address, data)


Result = Later | int | None
DeclaredHandler = TypeVar("DeclaredHandler", bound=Callable[..., Any])


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
    authenticated: bool = False
    """Only for files that the display's owner let in, and for the owner."""
    numbers: int = 1
    """So many in a row: of input devices one for each type of event, or for each axis."""
    any_size: bool = False
    """The program chooses the size."""
    by_value: bool = False
    """The argument is a number, not an address."""


def ioctl(
    number: int, name: str, fields: str = "", **declared: Any
) -> Callable[[DeclaredHandler], DeclaredHandler]:
    """Declare a method as the handler of an ioctl, or of one more.

    `declared`: the other attributes of `Ioctl`.
    """

    def mark(handler: DeclaredHandler) -> DeclaredHandler:
        function: Any = handler
        structure = Structure(name, fields)
        made = Ioctl(number, name, structure, function.__name__, **declared)
        function.declares = made, *getattr(function, "declares", ())
        return handler

    return mark


def declared_by(part: Any) -> Iterator[tuple[Ioctl, Callable[[Any], Any]]]:
    """The ioctls that an object's methods declare, with these methods."""
    for base in type(part).__mro__:
        for value in vars(base).values():
            for declared in getattr(value, "declares", ()):
                yield declared, getattr(part, declared.handler)


def table_of(*parts: Any) -> dict[int, tuple[Ioctl, Callable[[Call], Result]]]:
    """Collect what the objects' methods declare, by number. Raises ValueError for a number given twice."""
    table: dict[int, tuple[Ioctl, Callable[[Call], Result]]] = {}
    for part in parts:
        for declared, handler in declared_by(part):
            if declared.number in table:
                raise ValueError(f"ioctl 0x{declared.number:02x} declared twice")
            table[declared.number] = declared, handler
    return table

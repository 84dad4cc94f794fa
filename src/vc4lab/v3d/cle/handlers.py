"""Which method executes which record: a decorator of the method names the record's class."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from vc4lab.records.payload import Payload

#: A handler gets the address of its record; it may change the thread (jump, stall, stop).
Handler = Callable[[int], None]

F = TypeVar("F", bound=Callable[..., None])
_MARK = "executed_records"


def executes(*records: type[Payload]) -> Callable[[F], F]:
    """Marks the method of a stage that executes these records."""

    def mark(method: F) -> F:
        setattr(method, _MARK, (*records, *getattr(method, _MARK, ())))
        return method

    return mark


def handlers_of(stage: object) -> dict[int, Handler]:
    """The methods of a stage by the id of the records that they execute."""
    table: dict[int, Handler] = {}
    for name, method in vars(type(stage)).items():
        for record in getattr(method, _MARK, ()):
            if record.id in table:
                raise TypeError(f"{type(stage).__name__} executes {record.title} in two methods")
            table[record.id] = getattr(stage, name)
    return table

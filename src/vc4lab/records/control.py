"""Control lists: records built, parsed and printed from their declarations.

`RECORDS` (by id), `RECORD_SIZES` (for native readers) and `build` derive from the classes of
`declarations.py` and `states.py`; `parse_list` reads bytes of any origin and never raises.

Tables of records by what their classes say serve handlers, native readers and hints. All are in the order
of ids; native code is compiled with what stands here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from vc4lab.records import declarations, states
from vc4lab.records.payload import BINNING, RENDERING, Payload, ShaderState, State, StateField
from vc4lab.records.primitives import MAX_PRIMITIVES, ListFormat, decode_compressed, decode_vg_inline
from vc4lab.records.states import PrimitiveListFormat

Reader = Callable[[int, int], bytes]
"""`read(address, size)`: that many bytes, fewer at the end of what there is."""

RECORDS: dict[int, type[Payload]] = dict(
    sorted(
        (kind.id, kind)
        for kind in (vars(declarations) | vars(states)).values()
        if isinstance(kind, type) and issubclass(kind, Payload) and kind.id >= 0
    )
)
"""Record class by id, in that order; 254 (GEM handles, no hardware) included."""

RECORD_SIZES: tuple[int, ...] = tuple(
    RECORDS[number].size if number in RECORDS and number != declarations.GemHandles.id else 0
    for number in range(256)
)
"""Total bytes of a record by id, 0 = the hardware stops here. 42, 48, 49: their fixed part."""

MAX_RECORDS = 1 << 20
"""A list of more records is taken for a loop of branches."""

_BY_NAME: dict[str, type[Payload]] = {}


def _key(name: str) -> str:
    return "".join(c for c in name.lower() if c.isalnum())


for _kind in RECORDS.values():
    _BY_NAME[_key(_kind.title)] = _BY_NAME[_key(_kind.__name__)] = _kind


def record_type(record: int | str | type[Payload]) -> type[Payload]:
    """The declaration of a record by id, title, or class name (any case). Raises KeyError."""
    if isinstance(record, str):
        if _key(record) not in _BY_NAME:
            raise KeyError(f"no control-list record is called {record!r}")
        return _BY_NAME[_key(record)]
    if isinstance(record, int):
        if record not in RECORDS:
            raise KeyError(f"no control-list record has the id {record}")
        return RECORDS[record]
    return record


def build(record: int | str | type[Payload], **fields: Any) -> bytes:
    """The bytes of one record (of 42, 48, 49: the fixed part). Fields not named are 0.

    Raises KeyError (no such record), TypeError (no such field), ValueError (range, alignment).
    """
    kind = record_type(record)
    return bytes([kind.id]) + kind.make(**fields).to_bytes()


@dataclass(frozen=True)
class Record:
    """One parsed record.

    Attributes
    ----------
    address, size
        Its address, and its bytes in a straight line (a compressed list up to its end or to its
        first branch).
    payload
        Its fields; None for an illegal record.
    problem
        Why it is illegal, None otherwise; parsing stops there.
    next
        Address of the record after it, not following 16, 17 and 18.
    primitives
        Decoded primitives of 48 and 49 as tuples of vertices (index or (x, y)); of 42 each vertex.
    """

    address: int
    id: int
    size: int
    payload: Payload | None
    next: int
    problem: str | None = None
    primitives: tuple[Any, ...] = ()
    list_format: ListFormat | None = None

    @property
    def illegal(self) -> bool:
        """Whether the list cannot be read further."""
        return self.problem is not None

    @property
    def name(self) -> str:
        """The record's title."""
        return RECORDS[self.id].title if self.id in RECORDS else f"reserved id 0x{self.id:02x}"

    @property
    def fields(self) -> dict[str, Any]:
        """Field values by name, in order of declaration."""
        return {} if self.payload is None else self.payload.as_dict()

    def __getattr__(self, name: str) -> Any:
        payload = self.__dict__.get("payload")
        if payload is not None and name in payload.layout_fields:
            return getattr(payload, name)
        raise AttributeError(f"record {self.name!r} has no field {name!r}")


def parse_record(
    read: Reader,
    address: int,
    end: int | None = None,
    list_format: ListFormat | None = None,
    limit: int = MAX_PRIMITIVES,
) -> Record:
    """The record at `address`; damaged or reserved bytes give a record with `problem`."""
    address &= 0xFFFFFFFF
    head = read(address, 16)
    if not head:
        return Record(address, 0, 0, None, address, "outside of memory")
    number = head[0]
    kind = RECORDS.get(number)
    if kind is None:
        return Record(address, number, 1, None, address + 1, f"reserved id 0x{number:02x}")
    after = address + kind.size
    if len(head) < kind.size or (end is not None and address < end < after):
        return Record(address, number, len(head), None, after, f"{kind.title}: cut off by the end")
    payload = kind(int.from_bytes(head[1 : kind.size], "little"))
    if not kind.variable:
        return Record(address, number, kind.size, payload, after)
    if number == declarations.VgInline.id:
        decoded, list_format = decode_vg_inline(read, after, payload.value & 15, limit), None
    else:
        list_format = list_format or ListFormat(0x12)
        decoded = decode_compressed(read, after, list_format, limit)
    size = kind.size + decoded.first_size
    return Record(address, number, size, payload, decoded.next, decoded.problem, decoded.items, list_format)


def parse_list(
    read: Reader,
    address: int,
    end: int | None = None,
    *,
    follow: bool = False,
    list_format: int = 0x12,
    limit: int = MAX_RECORDS,
) -> Iterator[Record]:
    """The records from `address` to `end`, in order.

    Parameters
    ----------
    end
        Address where the list ends (CTnEA). Without it: at Halt, Return or a Branch.
    follow
        Go through Branch, Branch to Sub-list and Return as the hardware does.
    list_format
        Byte of the Primitive List Format in force at the beginning.
    limit
        Most records to give; the last one then has `problem`.

    The last record has `problem` when the list is damaged; nothing is ever raised.
    """
    form = ListFormat(list_format)
    budget = MAX_PRIMITIVES
    stack: list[int] = []
    for _ in range(limit):
        if end is not None and (address == end or (not follow and address > end)):
            return
        record = parse_record(read, address, end, form, budget)
        budget -= len(record.primitives)
        yield record
        if record.illegal or (record.id == declarations.Halt.id and (end is None or follow)):
            return
        address = record.next
        payload = record.payload
        if isinstance(payload, states.PrimitiveListFormat):
            form = ListFormat(payload.value)
        elif isinstance(payload, declarations.Branch):
            if follow:
                address = payload.address
            elif end is None:
                return
        elif isinstance(payload, declarations.BranchToSublist) and follow:
            if len(stack) >= 2:
                yield Record(address, record.id, 0, None, address, "sub-lists nested too deeply")
                return
            stack.append(address)
            address = payload.address
        elif isinstance(payload, declarations.Return):
            if follow and stack:
                address = stack.pop()
            elif end is None:
                return
    yield Record(address, 0, 0, None, address, f"list not ended after {limit} records")


def format(record: Record) -> str:
    """One line: address, id, title, fields; each primitive of a list on its own line."""
    place = f"{record.address:08x}  {record.id:3d}  "
    if record.problem is not None:
        return f"{place}!! {record.problem}"
    text = record.payload.text() if record.payload is not None else ""
    line = f"{place}{record.name}{'  ' + text if text else ''}"
    if record.list_format is not None:
        line += f"  [{record.list_format}]"
    pad = " " * 15
    return "\n".join([line, *(f"{pad}{_primitive_text(p)}" for p in record.primitives)])


def format_list(
    memory: Any,
    address: int,
    end: int | None = None,
    *,
    follow: bool = True,
    limit: int = 4096,
    list_format: int = 0x12,
) -> str:
    """A whole list in text, branches followed, at most `limit` records.

    `memory` is a `GuestMemory` or a reader function.
    """
    read: Reader = memory.read if hasattr(memory, "read") else memory
    records = parse_list(read, address, end, follow=follow, limit=limit, list_format=list_format)
    return "\n".join(format(record) for record in records)


def bytes_reader(data: bytes, base: int = 0) -> Reader:
    """A reader over `data` placed at address `base`; outside there is nothing."""

    def read(address: int, size: int) -> bytes:
        start = address - base
        return data[start : start + size] if 0 <= start < len(data) else b""

    return read


def _primitive_text(primitive: Any) -> str:
    parts = []
    for vertex in primitive:
        if isinstance(vertex, tuple):
            parts.append(f"({vertex[0] / 16:g}, {vertex[1] / 16:g})")
        else:
            parts.append(str(vertex))
    return " ".join(parts)


STATES: tuple[type[State], ...] = tuple(kind for kind in RECORDS.values() if issubclass(kind, State))
"""The records of state."""

STATE_FIELDS: dict[int, tuple[StateField, ...]] = {kind.id: kind.state_fields for kind in STATES}
"""The members of the render state that each record of state sets, by its id."""

STATE_RECORD_BYTES: dict[int, int] = {kind.id: kind.size for kind in STATES}
"""Size of each record of state, id byte included."""

STATE_SLOTS: tuple[tuple[int, ...], ...] = (
    *((kind.id,) for kind in STATES if not issubclass(kind, PrimitiveListFormat | ShaderState)),
    (PrimitiveListFormat.id,),
    tuple(kind.id for kind in STATES if issubclass(kind, ShaderState)),
)
"""Kinds of state that the binner caches, in the order in which it writes them into a tile list.

Records of one kind replace each other.
"""

DEFAULTS: dict[str, float] = {name: value for kind in STATES for name, value in kind.initial.items()}
"""Members of the render state that are not 0 at first."""


def records_of(*kinds: type[Payload], native: str = "") -> tuple[type[Payload], ...]:
    """The records of these kinds, or of all; `native`: those that this list's reader executes."""
    return tuple(
        kind for kind in RECORDS.values() if issubclass(kind, kinds or Payload) and native in kind.native
    )


def ids_of(*kinds: type[Payload], native: str = "") -> tuple[int, ...]:
    """The ids of `records_of`."""
    return tuple(kind.id for kind in records_of(*kinds, native=native))


def foreign_to(letter: str) -> tuple[type[Payload], ...]:
    """The records that belong to the other thread (than `BINNING` or `RENDERING`) alone."""
    other = {BINNING: RENDERING, RENDERING: BINNING}[letter]
    return tuple(kind for kind in records_of() if kind.legal == other)

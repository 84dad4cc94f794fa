"""Text of VC4_DEBUG=cl → records: Mesa's vc4 prints binning lists as the kernel gets them.

0x0000001c 0x0000001c: 0x60 Configuration Bits
    Enable Forward Facing Primitive: 1 /* true */

Offsets in the stream, and in what the hardware sees (records 254 are the kernel's); then a line for
each field. There is no memory with it: nothing of it can be drawn.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from vc4lab.capture.errors import CaptureError
from vc4lab.jobs.dumps.clif_fields import fields_of, word_of
from vc4lab.records.control import RECORDS, Record, format
from vc4lab.records.declarations import Halt

NO_MEMORY = "it has the records of lists, and no memory: it is shown, and not drawn"
MOST_RECORDS = 1 << 18
_HEAD = re.compile(rb"0x[0-9a-f]{8} 0x([0-9a-f]{8}): 0x([0-9a-f]{2}) [^\n]{1,200}")
_FIELD = re.compile(rb" {4}[^ :][^:]{0,100}: (.{1,200})")
_COMMENT = re.compile(r"/\*.*?\*/")
_ANYWHERE = re.compile(rb"^" + _HEAD.pattern + rb"$", re.MULTILINE)


def is_list_text(head: bytes) -> bool:
    """Whether a file has such lines."""
    return b"\0" not in head and _ANYWHERE.search(head) is not None


def records_of(data: bytes, name: str) -> Iterator[Record]:
    """The records of all lists; other lines are passed over. Raises CaptureError."""
    head: tuple[int, int, int] | None = None
    values: list[str] = []
    count = 0
    for number, line in enumerate(data.split(b"\n"), 1):
        found = _HEAD.fullmatch(line.rstrip())
        if found is None:
            value = _FIELD.fullmatch(line.rstrip()) if head is not None and len(line) < 400 else None
            if value is not None and len(values) < 32:
                values.append(_COMMENT.sub("", value[1].decode("latin-1")).strip())
            elif head is not None:  # another line: the program prints as well
                yield _record(*head, values, name)
                head = None
            continue
        if head is not None:
            yield _record(*head, values, name)
        count += 1
        if count > MOST_RECORDS:
            raise CaptureError("CAP-012", f"more than {MOST_RECORDS} records", name, number)
        head, values = (int(found[1], 16), int(found[2], 16), number), []
    if head is not None:
        yield _record(*head, values, name)


def _record(offset: int, number: int, line: int, values: list[str], name: str) -> Record:
    kind = RECORDS.get(number)
    if kind is None or kind.variable:
        return Record(offset, number, 1, None, offset + 1, f"there is no record {number}")
    try:
        word = word_of(kind, values, _no_buffers) if fields_of(kind) else 0
    except ValueError as error:
        raise CaptureError("CAP-012", f"{kind.title}: {error}", name, line) from None
    return Record(offset, number, kind.size, kind(word), offset + kind.size)


def _no_buffers(text: str) -> int:
    if text != "[null]":
        raise ValueError(f"there is no buffer {text[:40]}")
    return 0


def list_lines(data: bytes, name: str) -> Iterator[str]:
    """Yield the lines that `show` prints. Raises CaptureError."""
    last: int | None = None
    for record in records_of(data, name):
        if last is None or record.address < last:
            yield "list"
        last = record.address
        yield from (f"  {line}" for line in format(record).split("\n"))
        if record.id == Halt.id:
            last = None
    yield NO_MEMORY

"""Events of captured jobs ↔ lines of text.

pages 0x00100000 17 26          pages of memory from an address on: pages 17 … 42 of the capture
fill 0x00180000 9 300           300 pages, each of which holds page 9 of the capture
patch 0x00100040 0000803f       bytes that were edited, in hexadecimal
zeros 0x00200000 4              four pages of zeros
from 0x00008a3c <draw+0x1c>     where the program was that writes the next register
note thread 1 stood at …        what is known besides
job kmscube (123) job 4         what follows belongs to this job
buffer 0x00100000 4096 shader   what lies in memory
submit jobs/3/submit-1.json     what a program handed to its driver for it
write CT0EA 0x00100400          a register
settle                          queued user programs run
power-on                        the V3D is as it was when it was switched on
stored 0x1e000000 1228800 SUM   what a surface held after the frame
shown 0x1e000000 640 480 2560 32 rgb    what was on the display: pitch in bytes, bits, order
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from vc4lab.capture.errors import CaptureError
from vc4lab.capture.files import check_name
from vc4lab.capture.lines import numbered
from vc4lab.capture.pages import PAGE
from vc4lab.jobs.model import (
    BufferNamed,
    Event,
    Filled,
    JobBegun,
    Noted,
    Origin,
    PagesLoaded,
    Patched,
    PowerCame,
    Settled,
    Shown,
    Stored,
    Submitted,
    Written,
    Zeroed,
)
from vc4lab.memory import MEMORY_SIZE
from vc4lab.v3d.registers import BY_NAME

if TYPE_CHECKING:
    from vc4lab.jobs.model import JobsFrame

WORD = 0xFFFFFFFF
LONGEST_LABEL = 200
LARGEST_SIDE = 4096
DEPTHS = (16, 24, 32)
ORDERS = ("rgb", "bgr")
_SUM = re.compile(r"[0-9a-f]{32}")
_UNPRINTABLE = re.compile(r"[^\x20-\x7e]|#")


def event_text(event: Event) -> str:
    """An event as a line."""
    match event:
        case PagesLoaded(address, first, count):
            return f"pages 0x{address:08x} {first} {count}"
        case Zeroed(address, count):
            return f"zeros 0x{address:08x} {count}"
        case Filled(address, page, count):
            return f"fill 0x{address:08x} {page} {count}"
        case Patched(address, data):
            return f"patch 0x{address:08x} {data.hex()}"
        case Written(register, value):
            return f"write {register} 0x{value:08x}"
        case Settled():
            return "settle"
        case PowerCame():
            return "power-on"
        case Stored(address, size, total):
            return f"stored 0x{address:08x} {size} {total}"
        case Shown(address, width, height, pitch, bits, order):
            return f"shown 0x{address:08x} {width} {height} {pitch} {bits} {order}"
        case Origin(text):
            return f"from {label(text)}"
        case Noted(text):
            return f"note {label(text)}"
        case JobBegun(name):
            return f"job {label(name)}"
        case Submitted(file):
            return f"submit {file}"
        case BufferNamed(address, size, text):
            return f"buffer 0x{address:08x} {size} {label(text)}"


def label(text: str) -> str:
    """A text of others, as it may stand in a line."""
    return _UNPRINTABLE.sub("?", text.strip())[:LONGEST_LABEL]


def events_text(frame: JobsFrame) -> str:
    """A frame's events."""
    return "".join(f"{event_text(one)}\n" for one in frame.events)


class _Line:
    """The words of a line, and what is wrong with it."""

    def __init__(self, text: str, file: str, number: int) -> None:
        self.kind, _, self.rest = text.partition(" ")
        self.words = self.rest.split()
        self._place = file, number

    def wrong(self, text: str) -> CaptureError:
        return CaptureError("CAP-006", text, *self._place)

    def take(self, count: int, names: str) -> Sequence[str]:
        """So many words. Raises CaptureError."""
        if len(self.words) != count:
            raise self.wrong(f"{self.kind} takes {names}")
        return self.words

    def number(self, text: str, least: int, most: int, what: str) -> int:
        """A number. Raises CaptureError."""
        try:
            found = int(text, 0)
        except ValueError:
            found = -1
        if not least <= found <= most:
            raise self.wrong(f"{text[:40]!r}: {what} is a number from {least} to {most}")
        return found

    def pages_at(self, address: str, count: str) -> tuple[int, int]:
        at = self.number(address, 0, MEMORY_SIZE - PAGE, "an address")
        if at % PAGE:
            raise self.wrong(f"{address} is no multiple of {PAGE}")
        return at, self.number(count, 1, (MEMORY_SIZE - at) // PAGE, "the count of pages")


def _pages(line: _Line, pages: int) -> Event:
    address, first, count = line.take(3, "ADDRESS FIRST COUNT")
    at, number = line.pages_at(address, count)
    start = line.number(first, 0, max(pages - number, -1), f"the first of {pages} pages")
    return PagesLoaded(at, start, number)


def _fill(line: _Line, pages: int) -> Event:
    address, page, count = line.take(3, "ADDRESS PAGE COUNT")
    at, number = line.pages_at(address, count)
    return Filled(at, line.number(page, 0, pages - 1, f"one of {pages} pages"), number)


def _patch(line: _Line, _pages: int) -> Event:
    address, data = line.take(2, "ADDRESS BYTES")
    at = line.number(address, 0, WORD, "an address")
    try:
        return Patched(at, bytes.fromhex(data))
    except ValueError:
        raise line.wrong(f"{data[:40]!r} are no bytes in hexadecimal") from None


def _zeros(line: _Line, _pages: int) -> Event:
    return Zeroed(*line.pages_at(*line.take(2, "ADDRESS COUNT")))


def _write(line: _Line, _pages: int) -> Event:
    name, value = line.take(2, "REGISTER VALUE")
    if name not in BY_NAME:
        raise line.wrong(f"the V3D has no register {name[:40]!r}")
    return Written(name, line.number(value, 0, WORD, "a value"))


def _stored(line: _Line, _pages: int) -> Event:
    address, size, total = line.take(3, "ADDRESS SIZE SUM")
    at = line.number(address, 0, WORD, "an address")
    if _SUM.fullmatch(total) is None:
        raise line.wrong(f"{total[:40]!r} is no check sum")
    return Stored(at, line.number(size, 0, MEMORY_SIZE, "a size"), total)


def _shown(line: _Line, _pages: int) -> Event:
    address, *numbers, order = line.take(6, "ADDRESS WIDTH HEIGHT PITCH BITS ORDER")
    at = line.number(address, 0, WORD, "an address")
    width, height = (line.number(one, 1, LARGEST_SIDE, "a side") for one in numbers[:2])
    pitch = line.number(numbers[2], 1, MEMORY_SIZE // height, "the pitch")
    bits = line.number(numbers[3], 16, 32, "the bits of a pixel")
    if bits not in DEPTHS or order not in ORDERS or pitch < width * bits // 8:
        raise line.wrong(f"bits are {DEPTHS}, the order is {ORDERS}, a row fits into the pitch")
    return Shown(at, width, height, pitch, bits, order)


def _buffer(line: _Line, _pages: int) -> Event:
    if len(line.words) < 2:
        raise line.wrong("buffer takes ADDRESS SIZE LABEL")
    at = line.number(line.words[0], 0, WORD, "an address")
    size = line.number(line.words[1], 0, MEMORY_SIZE, "a size")
    return BufferNamed(at, size, label(" ".join(line.words[2:])))


_READERS: dict[str, Callable[[_Line, int], Event]] = {
    "pages": _pages,
    "fill": _fill,
    "patch": _patch,
    "zeros": _zeros,
    "write": _write,
    "stored": _stored,
    "shown": _shown,
    "buffer": _buffer,
    "submit": lambda line, _: Submitted(check_name(line.take(1, "FILE")[0])),
    "from": lambda line, _: Origin(label(line.rest)),
    "note": lambda line, _: Noted(label(line.rest)),
    "job": lambda line, _: JobBegun(label(line.rest)),
    "settle": lambda line, _: (line.take(0, "nothing"), Settled())[1],
    "power-on": lambda line, _: (line.take(0, "nothing"), PowerCame())[1],
}


def read_events(text: str, frame: JobsFrame, file: str, pages: int) -> None:
    """Read a frame's events. pages: how many the capture has. Raises CaptureError."""
    for number, content in numbered(text):
        line = _Line(content, file, number)
        reader = _READERS.get(line.kind)
        if reader is None:
            raise line.wrong(f"there is no event {line.kind[:40]!r}, but {', '.join(_READERS)}")
        frame.events.append(reader(line, pages))
        frame.lines.append(number)

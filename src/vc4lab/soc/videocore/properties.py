"""Property messages (mailbox channel 8): the walk over a message, and the table of tags.

A tag is declared by decorating its handler:

    @tag(0x00030002, "get clock rate", "u32 clock", "u32 clock, u32 hertz")
    def get_clock_rate(vc, clock):
        return clock, vc.clock_rates.get(clock, 0)

One that is answered by an expression takes a row: `tag(…)(lambda vc: vc.turbo)`. The request and
the response are comma-separated words; "u64", "bytes" (the rest of the value buffer) exist too. A
handler that gives None has said why there is no answer.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from vc4lab.soc.videocore.videocore import VideoCore

REQUEST, SUCCESS, FAILURE = 0, 0x80000000, 0x80000001
RESPONSE_BIT = 1 << 31
HEADER = 8
LARGEST_MESSAGE = 1 << 20
ALLOCATE = 0x40001
"""The tag that allocates the framebuffer."""
MAX_TAGS = 1024
ALIGNMENT = "a buffer's address must be a multiple of 16"

Handler = Callable[..., Any]
GEOMETRY_SETTERS: dict[int, tuple[str, ...]] = {
    0x00048003: ("width", "height"),
    0x00048004: ("virtual_width", "virtual_height"),
    0x00048005: ("depth",),
    0x00048006: ("order",),
    0x00048007: ("alpha_mode",),
    0x00048009: ("x", "y"),
}
"""Set tags that are collected: they are applied before the message's first answer."""


@dataclass(frozen=True)
class Tag:
    """One row of the table."""

    id: int
    name: str
    request: str
    response: str
    handler: Handler
    display: bool
    """Display tags take effect together, before any of them is answered."""

    @property
    def has_fixed_response(self) -> bool:
        """Whether the answer always has the same size."""
        return "bytes" not in _kinds(self.response)

    @property
    def least_request(self) -> int:
        """Bytes without which a request says nothing: those of a setting, else of its first word.

        Many programs leave out words at the end, which then are zeros.
        """
        names = GEOMETRY_SETTERS.get(self.id)
        return 4 * len(names) if names else 4 * bool(self.request)

    def arguments(self, value: bytes) -> list[Any]:
        """The value buffer's words in the handler's form; missing words are zeros."""
        arguments: list[Any] = []
        at = 0
        for kind in _kinds(self.request):
            if kind == "bytes":
                arguments.append(value[at:])
                break
            size = 8 if kind == "u64" else 4
            arguments.append(int.from_bytes(value[at : at + size], "little"))
            at += size
        return arguments

    def pack(self, answer: Any) -> bytes:
        """The handler's answer as response bytes."""
        values = answer if isinstance(answer, (tuple, list)) else (answer,)
        out = bytearray()
        for kind, value in zip(_kinds(self.response), values, strict=False):
            if kind == "bytes":
                out += value
            else:
                size = 8 if kind == "u64" else 4
                out += (int(value) & ((1 << 8 * size) - 1)).to_bytes(size, "little")
        return bytes(out)


TAGS: dict[int, Tag] = {}


def tag(
    number: int, name: str, request: str = "", response: str = "", *, display: bool = False
) -> Callable[[Handler], Handler]:
    """Declare the decorated function as the handler of tag `number`."""

    def register(handler: Handler) -> Handler:
        if number in TAGS:
            raise ValueError(f"tag 0x{number:08x} is declared twice")
        TAGS[number] = Tag(number, name, request, response, handler, display)
        return handler

    return register


def tag_table() -> dict[int, Tag]:
    """Every tag the firmware knows, by number."""
    for area in ("board", "display", "power"):
        import_module(f"vc4lab.soc.videocore.tags_{area}")
    return TAGS


def _kinds(fields: str) -> Iterator[str]:
    for one in fields.split(","):
        if one.strip():
            yield one.split()[0]


@dataclass(frozen=True)
class _Place:
    """A tag in a message: its number and where its value buffer is."""

    number: int
    at: int
    size: int


class PropertyChannel:
    """Answers property messages for a `VideoCore`."""

    def __init__(self, vc: VideoCore) -> None:
        self.vc = vc
        self._tags = tag_table()

    def __call__(self, address: int) -> int:
        """Answer the message at `address` (bus address) in place; gives the reply's data."""
        memory = self.vc.memory
        if not memory.contains(address, 16):
            self._bad(address, "a property message outside RAM")
            return address
        size = memory.u32(address)
        if size < 12 or size > LARGEST_MESSAGE or not memory.contains(address, size):
            moved = self._where_instead(address)
            self._bad(address, f"a property message with a size of {size} bytes{moved}")
            if not size:
                return address
            memory.set_u32(address + 4, FAILURE)
            return address
        places, complete = self._walk(address, size)
        self._apply_display(places)
        for place in places:
            self._answer(place)
        memory.set_u32(address + 4, SUCCESS if complete else FAILURE)
        return address

    def _where_instead(self, address: int) -> str:
        """Find the message that is not here: the end of a sentence."""
        if self._starts(address + 8):
            return f"; a valid one is 8 bytes later: {ALIGNMENT}"
        image = self.vc.linked_for_zero
        place = image.message_place(address)
        return image.found_message() if place is not None and self._starts(place) else ""

    def allocates(self, address: int) -> bool:
        """Whether the message at an address asks for a framebuffer."""
        memory = self.vc.memory
        if not memory.contains(address, 16):
            return False
        at, end = address + HEADER, address + min(memory.u32(address), LARGEST_MESSAGE)
        for _tag in range(MAX_TAGS):
            if at + 12 > end or not memory.contains(at, 12):
                return False
            number, room = memory.u32(at), memory.u32(at + 4)
            if number in (0, ALLOCATE):
                return number == ALLOCATE
            at += 12 + (room + 3 & ~3)
        return False

    def _starts(self, address: int) -> bool:
        """Whether a property message may begin here."""
        memory = self.vc.memory
        if not memory.contains(address, 20):
            return False
        size, code, number = (memory.u32(address + at) for at in (0, 4, 8))
        return 12 <= size <= LARGEST_MESSAGE and code == REQUEST and number in self._tags

    def _walk(self, address: int, size: int) -> tuple[list[_Place], bool]:
        """The tags of a message, and whether it ends as it should."""
        memory = self.vc.memory
        places: list[_Place] = []
        at, end = address + HEADER, address + size
        while at + 4 <= end and len(places) < MAX_TAGS:
            number = memory.u32(at)
            if number == 0:
                return places, True
            if at + 12 > end:
                break
            room = memory.u32(at + 4)
            if room > end - at - 12:
                past = f"past the end: the message's first word gives {size} bytes (not words)"
                self._bad(at, f"tag 0x{number:08x} with a value of {room} bytes, {past}")
                return places, False
            places.append(_Place(number, at + 12, room))
            at += 12 + (room + 3 & ~3)
        self._bad(address, f"a property message without an end tag{_about(size)}", "SOC-013")
        return places, True

    def _apply_display(self, places: list[_Place]) -> None:
        """Collect a message's display settings and apply them once."""
        wanted: dict[str, int] = {}
        for place in places:
            names = GEOMETRY_SETTERS.get(place.number)
            if names and place.size >= 4 * len(names):
                words = struct.unpack(f"<{len(names)}I", self.vc.memory.read(place.at, 4 * len(names)))
                wanted.update(zip(names, words, strict=True))
        if wanted:
            self.vc.framebuffer.change(**wanted)

    def _answer(self, place: _Place) -> None:
        memory = self.vc.memory
        known = self._tags.get(place.number)
        if known is None:
            self.vc.reporter.report(
                "SOC-012",
                f"property tag 0x{place.number:08x} is unknown and stays unanswered",
                address=place.at - 12,
                block="mailbox",
            )
            return
        arguments = known.arguments(memory.read(place.at, place.size))
        answer = known.handler(self.vc, *arguments)
        if answer is None:
            return
        response = known.pack(answer)
        needed = max(len(response) if known.has_fixed_response else 0, known.least_request)
        if place.size < needed:
            self._bad(
                place.at - 12,
                f"tag 0x{place.number:08x} ({known.name}) has a value buffer of {place.size} "
                f"bytes, but needs {needed} (request: {known.request or 'none'}; answer: "
                f"{known.response or 'none'})",
                "SOC-014",
            )
        memory.write(place.at, response[: place.size])
        memory.set_u32(place.at - 4, RESPONSE_BIT | len(response))

    def _bad(self, address: int, text: str, code: str = "SOC-011") -> None:
        self.vc.reporter.report(code, text, address=address, block="mailbox")


def _about(size: int) -> str:
    """Say how large a message is that ends too early."""
    return f" (a word of 0) within the {size} bytes that its first word gives; it counts bytes"

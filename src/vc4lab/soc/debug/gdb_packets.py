"""Frames of the GDB remote serial protocol: `$data#checksum`, acknowledgements, the interrupt byte.

Source: the GDB manual, appendix E (Remote Protocol). What a client sends is not trusted: everything
outside of frames is dropped, frames are bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

PACKET_LIMIT = 0x4000
"""Bytes of a frame's data, as announced in qSupported."""
INTERRUPT = 0x03
_ESCAPED = re.compile(rb"}(.?)", re.DOTALL)
_SPECIAL = re.compile(rb"[#$}*]")


class Kind(Enum):
    """Kinds of what comes from the client."""

    PACKET = "a frame with a correct checksum"
    DAMAGED = "a frame with a wrong checksum, or one that is too long"
    REPEAT = "the client asks for the last answer again"
    INTERRUPT = "Ctrl-C"


@dataclass(frozen=True)
class Received:
    """One thing that came, `data` for a packet (unescaped)."""

    kind: Kind
    data: bytes = b""


class PacketReader:
    """Takes bytes in any portions and gives what is complete.

    Attributes
    ----------
    garbage
        Bytes outside of good frames since the last good one.
    """

    def __init__(self) -> None:
        self.garbage = 0
        self._frame: bytearray | None = None
        self._checksum = b""
        self._ending = False

    def feed(self, data: bytes) -> Iterator[Received]:
        """The things that `data` completes."""
        for byte in data:
            received = self._outside(byte) if self._frame is None else self._inside(byte)
            if received is not None:
                yield received

    def _outside(self, byte: int) -> Received | None:
        if byte == ord("$"):
            self._frame, self._ending, self._checksum = bytearray(), False, b""
        elif byte == INTERRUPT:
            return Received(Kind.INTERRUPT)
        elif byte == ord("-"):
            return Received(Kind.REPEAT)
        elif byte != ord("+"):
            self.garbage += 1
        return None

    def _inside(self, byte: int) -> Received | None:
        assert self._frame is not None
        if self._ending:
            self._checksum += bytes((byte,))
            return self._complete() if len(self._checksum) == 2 else None
        if byte == ord("#"):
            self._ending = True
        elif byte == ord("$"):
            self.garbage += len(self._frame)
            self._frame.clear()
        elif len(self._frame) >= 2 * PACKET_LIMIT:
            self.garbage += len(self._frame)
            self._frame = None
            return Received(Kind.DAMAGED)
        else:
            self._frame.append(byte)
        return None

    def _complete(self) -> Received:
        assert self._frame is not None
        frame, self._frame = bytes(self._frame), None
        if self._checksum.lower() != b"%02x" % (sum(frame) & 0xFF):
            self.garbage += len(frame)
            return Received(Kind.DAMAGED)
        self.garbage = 0
        return Received(Kind.PACKET, unescape(frame))


def unescape(frame: bytes) -> bytes:
    """Undo `}` escapes."""
    return _ESCAPED.sub(lambda found: bytes(byte ^ 0x20 for byte in found[1]), frame)


def frame(data: bytes) -> bytes:
    """`data` escaped, with its checksum."""
    data = _SPECIAL.sub(lambda found: b"}%c" % (found[0][0] ^ 0x20), data)
    return b"$%s#%02x" % (data, sum(data) & 0xFF)


def number(text: bytes) -> int:
    """A hexadecimal number of a packet. Raises ValueError."""
    if not text or len(text) > 16 or any(c not in b"0123456789abcdefABCDEF" for c in text):
        raise ValueError("no number")
    return int(text, 16)

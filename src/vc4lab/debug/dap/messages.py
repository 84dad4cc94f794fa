"""Messages of the Debug Adapter Protocol on a stream: a header with the length, then JSON."""

from __future__ import annotations

import json
from typing import IO, Any, Final

LARGEST: Final = 4 << 20
"""Bytes of a message."""
LONGEST_HEADER: Final = 1024
MOST_HEADERS: Final = 16


class Malformed(Exception):  # noqa: N818 - said to the user as it is
    """A message that cannot be read. ends: nothing after it can be read either."""

    def __init__(self, text: str, ends: bool = False) -> None:
        super().__init__(text)
        self.ends = ends


def read_message(stream: IO[bytes]) -> dict[str, Any] | None:
    """The next message; None at the end of the stream. Raises Malformed, OSError."""
    length = _read_length(stream)
    if length is None:
        return None
    body = b""
    while len(body) < length:
        more = stream.read(length - len(body))
        if not more:
            return None
        body += more
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        raise Malformed("a message is no JSON") from None
    if not isinstance(message, dict):
        raise Malformed("a message is no JSON object")
    return message


def _read_length(stream: IO[bytes]) -> int | None:
    length: int | None = None
    for _ in range(MOST_HEADERS):
        line = stream.readline(LONGEST_HEADER)
        if not line:
            return None
        if not line.endswith(b"\n"):
            raise Malformed("a header is too long", ends=True)
        text = line.strip()
        if not text:
            if length is None:
                raise Malformed("a message has no Content-Length", ends=True)
            return length
        name, _, value = text.partition(b":")
        if name.strip().lower() == b"content-length":
            value = value.strip()
            if not value.isdigit() or len(value) > 9 or int(value) > LARGEST:
                raise Malformed(f"Content-Length {value[:20]!r} is no length up to {LARGEST}", ends=True)
            length = int(value)
    raise Malformed("a message has too many headers", ends=True)


def packed(message: dict[str, Any]) -> bytes:
    """A message as bytes."""
    body = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)

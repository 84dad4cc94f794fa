"""A SUBMIT_CMD's words as commands, and what is wrong with them."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

from vc4lab.bounded import Bounded
from vc4lab.mesa.protocol.command import Command
from vc4lab.mesa.protocol.commands import COMMANDS
from vc4lab.mesa.protocol.fields import WORD, Malformed


class Wrong(NamedTuple):
    """An error at a place of a stream."""

    code: str
    text: str


class Decoded(NamedTuple):
    """One command of a stream, or what is wrong in its place."""

    word: int
    """Its place in the stream, in words."""
    command: Command | Wrong


_HEADER = struct.Struct("<I")
_SMALL = 64
"""Words of a command that is remembered."""
_MOST_KNOWN = 1 << 13
_known: Bounded[bytes, Command] = Bounded(_MOST_KNOWN)
"""Small commands by their bytes: frames repeat, and a decoded command never changes."""


def decode_stream(data: bytes) -> Iterator[Decoded]:
    """The commands of a stream in order."""
    start, end = 0, len(data)
    while start < end:
        found = command_at(data, start)
        yield Decoded(start // WORD, found.command)
        if found.after < 0:
            return
        start = found.after


class Found(NamedTuple):
    """A command, or what is wrong in its place; the byte after it, -1: nothing can be read."""

    command: Command | Wrong
    after: int


def command_at(data: bytes, start: int) -> Found:
    """The command that begins at a byte of a stream."""
    end = len(data)
    place = start // WORD
    if end - start < WORD:
        return Found(Wrong("GL-003", "the stream ends inside of a word"), -1)
    (header,) = _HEADER.unpack_from(data, start)
    words = header >> 16
    following = start + WORD + words * WORD
    if following > end:
        left = (end - start) // WORD - 1
        name = name_of(header)
        text = f"{name} at word {place} has {words} words, but only {left} are left"
        return Found(Wrong("GL-003", text), -1)
    if words > _SMALL:
        return Found(decode_command(header, data, start + WORD, words, place), following)
    whole = data[start:following]
    known = _known.get(whole)
    if known is not None:
        return Found(known, following)
    found = decode_command(header, data, start + WORD, words, place)
    if isinstance(found, Command):
        _remember(whole, found)
    return Found(found, following)


def _remember(whole: bytes, command: Command) -> None:
    _known[whole] = command


def decode_command(header: int, data: Any, start: int, words: int, place: int) -> Command | Wrong:
    """The command with this header, whose words begin at byte `start`."""
    declared = COMMANDS.get(header & 0xFF)
    if declared is None:
        return Wrong("GL-002", f"word {place}: there is no command {header & 0xFF}")
    try:
        return declared.decode_command(header >> 8 & 0xFF, data, start, words)
    except Malformed as reason:
        return Wrong("GL-002", f"{declared.name} at word {place}: {reason}")


def name_of(header: int) -> str:
    """The name of the command with this header."""
    declared = COMMANDS.get(header & 0xFF)
    return f"command {header & 0xFF}" if declared is None else declared.name

"""`vc4lab disasm`: QPU instruction words → text that `vc4lab asm` takes back."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from vc4lab.cli.exit_codes import failed
from vc4lab.cli.options import Address, limits
from vc4lab.files import read_source, why
from vc4lab.ranges import ADDRESS, COUNT, OFFSET

LINES_AT_ONCE = 1024
_HEX = re.compile(
    r"/\*|//[^\n]*|#[^\n]*|\b(?:0[xX])?(?P<word>[0-9a-fA-F]{16}|[0-9a-fA-F]{8})(?:[uU]|[lL])*\b"
)
LARGEST_INPUT = 16 << 20
"""Bytes to disassemble, or of hex text: a kernel image with its QPU programs in it."""


def disasm(
    file: Annotated[str, typer.Argument(help="Binary file, - for standard input.")],
    offset: Annotated[
        int,
        typer.Option(help="Byte offset to start at.", parser=Address(OFFSET), metavar="0x100"),
    ] = 0,
    count: Annotated[
        int | None, typer.Option(help="Maximum number of instructions to show.", **limits(COUNT))
    ] = None,
    hex_: Annotated[
        bool,
        typer.Option(
            "--hex",
            help="The input is text: 64-bit words of 16 hex digits, or pairs of 32-bit words "
            "(low word first) as C arrays hold them.",
        ),
    ] = False,
    address: Annotated[
        int,
        typer.Option(
            help="Address of the input's first byte.", parser=Address(ADDRESS), metavar="0x8000"
        ),
    ] = 0,
) -> None:
    """Disassemble QPU instructions."""
    from vc4lab.qpu.isa.encoding import INSTRUCTION_BYTES, words_of
    from vc4lab.qpu.text.disassembler import disassemble

    try:
        data = read_source(file, LARGEST_INPUT)
    except OSError as error:
        raise failed(f"{file}: {why(error)}") from None
    if hex_:
        data = _from_hex(data.decode("utf-8", "replace"))
    words = words_of(data[offset:])
    if not words:
        size = f"{len(data)} bytes"
        raise failed(f"{file}: no whole instruction at offset {offset} of {size}")
    lines = []
    for index, word in enumerate(words[:count]):
        at = address + offset + INSTRUCTION_BYTES * index
        lines.append(f"/* {at:08x}: {word & 0xFFFFFFFF:08x} {word >> 32:08x} */  "
                     f"{disassemble(word, at & 0xFFFFFFFF)}")  # fmt: skip
        if len(lines) == LINES_AT_ONCE:
            typer.echo("\n".join(lines))
            lines.clear()
    if lines:
        typer.echo("\n".join(lines))
    left = len(data[offset:]) % INSTRUCTION_BYTES
    if left and (count is None or count > len(words)):
        typer.echo(f"{file}: the last {left} bytes are not a whole instruction", err=True)


def _from_hex(text: str) -> bytes:
    """Bytes of hex words; comments and everything that is no word of 8 or 16 digits is skipped."""
    found = []
    position = 0
    while match := _HEX.search(text, position):
        position = match.end()
        if match[0] == "/*":
            position = text.find("*/", position) + 2
            if position < 2:
                break  # the comment is never closed
        elif word := match["word"]:
            found.append(int(word, 16).to_bytes(len(word) // 2, "little"))
    return b"".join(found)

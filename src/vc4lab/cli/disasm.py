"""`vc4lab disasm`: QPU instruction words → text that `vc4lab asm` makes the same words of."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum
from typing import Annotated

import typer

from vc4lab.cli.exit_codes import failed
from vc4lab.cli.options import Address, limits
from vc4lab.cli.recorded_programs import is_recorded, recorded_programs
from vc4lab.files import read_source, why
from vc4lab.ranges import ADDRESS, COUNT, OFFSET


class Dialect(StrEnum):
    """Names the dialects that `disasm` writes."""

    QPUASM = "qpuasm"
    VC4ASM = "vc4asm"


LINES_AT_ONCE = 1024
_HEX = re.compile(
    r"/\*|//[^\n]*|#[^\n]*|\b(?:0[xX])?(?P<word>[0-9a-fA-F]{16}|[0-9a-fA-F]{8})(?:[uU]|[lL])*\b"
)
LARGEST_INPUT = 16 << 20
"""Bytes to disassemble, or of hex text: a kernel image with its QPU programs in it."""


def disasm(
    file: Annotated[
        str,
        typer.Argument(
            help="Binary or ELF file, C or assembly source, a capture, a folder of recorded jobs; - for "
            "standard input."
        ),
    ],
    offset: Annotated[
        int, typer.Option(help="Byte offset to start at.", parser=Address(OFFSET), metavar="0x100")
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
        typer.Option(help="Address of the input's first byte.", parser=Address(ADDRESS), metavar="0x8000"),
    ] = 0,
    symbol: Annotated[
        str | None,
        typer.Option(
            help="Name of an ELF symbol, of a C array, or of a label before .word lines.", metavar="NAME"
        ),
    ] = None,
    dialect: Annotated[
        Dialect, typer.Option(help="Dialect of the text.", case_sensitive=False)
    ] = Dialect.QPUASM,
    program: Annotated[
        int | None,
        typer.Option(help="Of recorded work: only this program, by its number from 1.", **limits(COUNT, 1)),
    ] = None,
    blocks: Annotated[
        bool,
        typer.Option(
            "--blocks", help="Labels, basic blocks with the registers they use, uniforms and textures."
        ),
    ] = False,
) -> None:
    """Disassemble QPU instructions."""
    from vc4lab.qpu.isa.encoding import INSTRUCTION_BYTES, words_of

    if is_recorded(file):
        _recorded(file, program, dialect)
        return
    if program is not None:
        raise failed("--program goes with captures and folders of recorded jobs")
    try:
        data = read_source(file, LARGEST_INPUT)
    except OSError as error:
        raise failed(f"{file}: {why(error)}") from None
    data, address = _code(file, data, symbol, hex_, address)
    words = words_of(data[offset:])
    if not words:
        size = f"{len(data)} bytes"
        raise failed(f"{file}: no whole instruction at offset {offset} of {size}")
    if blocks:
        from vc4lab.qpu.dialects.blocks import program_text

        typer.echo(program_text(words[:count], dialect.value, address + offset), nl=False)
        return
    line = _line_of(dialect)
    lines = []
    for index, word in enumerate(words[:count]):
        at = address + offset + INSTRUCTION_BYTES * index
        lines.append(line(word, at))
        if len(lines) == LINES_AT_ONCE:
            typer.echo("\n".join(lines))
            lines.clear()
    if lines:
        typer.echo("\n".join(lines))
    left = len(data[offset:]) % INSTRUCTION_BYTES
    if left and (count is None or count > len(words)):
        typer.echo(f"{file}: the last {left} bytes are not a whole instruction", err=True)


def _recorded(file: str, number: int | None, dialect: Dialect) -> None:
    """The programs of recorded work, with what their uniforms were."""
    from vc4lab.qpu.dialects.blocks import program_text

    found = recorded_programs(file, number)
    if not found:
        raise failed(f"{file}: it has no programs")
    for index, one in enumerate(found, number or 1):
        place = f", 0x{one.address:08x}" if one.address else ""
        typer.echo(f"# program {index}: {one.kind}, {one.place}{place}, {len(one.words)} instructions")
        typer.echo(program_text(one.words, dialect.value, one.address, known=one.notes))


def words_of_file(file: str, symbol: str | None) -> tuple[int, ...]:
    """The words of a binary, hex or ELF file, or the end of the command."""
    from vc4lab.qpu.isa.encoding import words_of

    try:
        data = read_source(file, LARGEST_INPUT)
    except OSError as error:
        raise failed(f"{file}: {why(error)}") from None
    data, _ = _code(file, data, symbol, file.lower().endswith(".hex"), 0)
    if not data or len(data) % 8:
        raise failed(f"{file}: {len(data)} bytes are no whole number of instructions")
    return words_of(data)


def _line_of(dialect: Dialect) -> Callable[[int, int], str]:
    """A line with address, word and text."""
    if dialect == Dialect.VC4ASM:
        from vc4lab.qpu.dialects.vc4asm.disassembler import disassemble

        def shown(word: int, at: int) -> str:
            mark = f"# {at:08x}: {word & 0xFFFFFFFF:08x} {word >> 32:08x}"
            return f"{disassemble(word):<56}  {mark}"

        return shown
    from vc4lab.qpu.text.exact import disassemble_exactly

    return lambda word, at: (
        f"/* {at:08x}: {word & 0xFFFFFFFF:08x} {word >> 32:08x} */  "
        f"{disassemble_exactly(word, at & 0xFFFFFFFF)}"
    )


def _code(file: str, data: bytes, symbol: str | None, is_hex: bool, address: int) -> tuple[bytes, int]:
    """The words in a file, and their address."""
    from vc4lab.qpu.text.containers import ELF_MAGIC, NotFound, elf_code, text_code

    try:
        if data.startswith(ELF_MAGIC):
            code, place = elf_code(data, symbol)
            return code, address or place
        if symbol is not None:
            return text_code(data.decode("utf-8", "replace"), symbol), address
    except NotFound as error:
        raise failed(f"{file}: {error}") from None
    return (_from_hex(data.decode("utf-8", "replace")) if is_hex else data), address


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

"""The dialect of qpu-asm and its m4 macros, as sources of 2014 use it, by way of qpuasm's.

add rb48, ra1, rb32;  nop          every add operation sets the flags
nop.tend ra39, ra39, ra39;  nop    a suffix of the add operation is the signal, or a pack
brr.zf ra39, label, ra0            zf ze zs zc: all, none, any zero flags set, any clear
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from vc4lab.files import read_file, why
from vc4lab.qpu.dialects.m4 import M4
from vc4lab.qpu.isa.encoding import INSTRUCTION_BYTES, LINK_OFFSET
from vc4lab.qpu.text import assembler as qpuasm
from vc4lab.qpu.text.assembly import Assembly
from vc4lab.qpu.text.mnemonics import ONE_OPERAND
from vc4lab.qpu.text.syntax import MAX_SOURCE, AssemblyError, SourceError

_SIGNALS: Final = {"tend": "thrend", "ldtmu0": "ldtmu0", "ldtmu1": "ldtmu1", "tmu": "ldtmu0"}
_STATES: Final = {
    f"{flag}{state}": f"{quantor}{negation}{flag}"
    for flag in "znc"
    for state, quantor, negation in (("f", "all", ""), ("e", "all", "n"), ("s", "any", ""),
                                     ("c", "any", "n"))
}  # fmt: skip
_LINE: Final = re.compile(r"\s*(?:(?P<label>[A-Za-z_]\w*):)?\s*(?P<code>.*?)\s*(?:#.*)?$")
_OPERATION: Final = re.compile(r"(?P<name>\w+)(?:\.(?P<suffix>[\w*]+))?\s*(?P<operands>.*)")
_PACK: Final = re.compile(r"pack(?P<part>32|16a|16b|8ddupe|8a|8b|8c|8d)(?P<clamp>clamp)?")
_UNPACK: Final = re.compile(r"unpack(?P<part>32|16a|16b|8ddupe|8a|8b|8c|8d)")


def assemble(
    text: str,
    *,
    path: str = "",
    folders: Sequence[str | os.PathLike[str]] = (),
    symbols: Mapping[str, int | float] | None = None,
) -> Assembly:
    """Assemble a source of qpu-asm, its m4 macros expanded; raises AssemblyError."""
    if len(text) > MAX_SOURCE:
        raise AssemblyError([SourceError(1, 1, f"a source has at most {MAX_SOURCE} characters")])
    places = [Path(path).parent if path else Path(), *(Path(folder) for folder in folders)]

    def include(name: str) -> str:
        for place in places:
            if (place / name).is_file():
                try:
                    data = read_file(place / name, MAX_SOURCE, plain=True)
                except OSError as error:
                    raise m4.fail(f"{name}: {why(error)}") from None
                return data.decode("utf-8", "replace")
        raise m4.fail(f"there is no file {name!r} to include")

    m4 = M4(include)
    lines = m4.expand(text)
    labels = _labels([line for line, _ in lines])
    translated = "\n".join(
        _translated(line, labels, address)
        for (line, _), address in zip(lines, _addresses([line for line, _ in lines]), strict=True)
    )
    source = text.splitlines()
    try:
        assembly = qpuasm.assemble(translated, symbols=symbols)
    except AssemblyError as error:
        raise AssemblyError([_moved(one, lines, source) for one in error.errors], error.more) from None
    mapped = tuple((lines[number - 1][1], shown) for number, shown in assembly.lines)
    return replace(assembly, lines=mapped)


def _addresses(lines: list[str]) -> list[int]:
    """Byte offset at which each line's instruction stands, or would stand."""
    found, address = [], 0
    for line in lines:
        found.append(address)
        match = _LINE.match(line)
        address += INSTRUCTION_BYTES if match is not None and match["code"] else 0
    return found


def _labels(lines: list[str]) -> dict[str, int]:
    """Label -> its offset."""
    found = {}
    for line, address in zip(lines, _addresses(lines), strict=True):
        match = _LINE.match(line)
        if match is not None and match["label"]:
            found[match["label"]] = address
    return found


def _moved(error: SourceError, lines: list[tuple[str, int]], source: list[str]) -> SourceError:
    """A mistake in an expanded line, with the line of the source that it is from."""
    line, number = lines[error.line - 1] if error.line <= len(lines) else ("", 1)
    place = source[number - 1] if number <= len(source) else ""
    text = error.message
    if line.strip() != place.strip():
        text = f"{text}, in {line.strip()!r}"
    column = len(place) - len(place.lstrip()) + 1
    return SourceError(number, column, text, place)


def _translated(line: str, labels: dict[str, int], address: int) -> str:
    """A line that stands at an address in the dialect of qpuasm.js."""
    match = _LINE.match(line)
    if match is None or not (match["code"] or match["label"]):
        return ""
    label = f"{match['label']}: " if match["label"] else ""
    code = match["code"]
    if not code:
        return label
    operations = [operation.strip() for operation in code.split(";") if operation.strip()]
    if not operations:
        return label + code  # no instruction: the assembler says so
    name = operations[0].partition(".")[0].partition(" ")[0]
    if name in ("bra", "brr"):
        return label + _branch(operations[0], labels, address)
    if name == "sema":
        return label + _semaphore(operations[0])
    if name == "ldi":
        return label + _load(operations[0])
    slots: list[str] = []
    extra: list[str] = []
    rotation = re.match(r"nop\b.*<<\s*(\d+)", operations[0])
    for index, operation in enumerate(operations):
        by = rotation[1] if rotation and index else ""
        slots.append(_operation(operation, index == 0, extra, by))
    return label + "; ".join([*slots, *extra])


def _semaphore(text: str) -> str:
    """`sema up, 3` releases, `sema down, 3` acquires."""
    direction, _, number = text.removeprefix("sema").partition(",")
    releases = direction.strip() in ("up", "release")
    return f"{'srel' if releases else 'sacq'} -, {number.strip()}"


def _branch(text: str, labels: dict[str, int], address: int) -> str:
    match = _OPERATION.match(text)
    assert match is not None
    operands = [operand.strip() for operand in match["operands"].split(",")]
    if operands[-1] in ("rb39", "ra39") and len(operands) > 2:
        operands.pop()
    if len(operands) > 2 and operands[1] == "ZERO":
        operands.pop(1)
    elif operands[1:] == ["ZERO"]:
        operands[1] = "0"
    if operands[0] in ("ra39", "rb39"):
        operands[0] = "-"
    if len(operands) == 3 and operands[1] in labels:  # a table of branches after the label
        offset = labels[operands[1]] - (address + LINK_OFFSET if match["name"] == "brr" else 0)
        operands[1:] = [f"{operands[2]}+{offset}"]
    suffix = match["suffix"]
    condition = f".{_STATES.get(suffix, suffix)}" if suffix and suffix != "*" else ""
    return f"{match['name']}{condition} {', '.join(operands)}"


def _load(text: str) -> str:
    match = _OPERATION.match(text)
    assert match is not None
    first, *rest = [operand.strip() for operand in match["operands"].split(",")]
    if rest and re.fullmatch(r"r[ab]?\d+", rest[0]):
        second, *value = rest
        return f"ldi {first}, {', '.join(value)}; ldi {second}, {', '.join(value)}"
    return f"ldi {first}, {', '.join(rest)}"


def _operation(text: str, is_add: bool, extra: list[str], rotation: str) -> str:
    """rotation: of the mul operation's sources, which stands as an operand of the add `nop`."""
    match = _OPERATION.match(text)
    if match is None:
        return text
    name, suffix = match["name"], match["suffix"]
    operands = [operand.strip() for operand in match["operands"].split(",") if operand.strip()]
    flags = ".setf" if is_add and name != "nop" else ""
    if suffix in _SIGNALS:
        extra.append(_SIGNALS[suffix])
    elif suffix and (unpack := _UNPACK.fullmatch(suffix)):
        part = unpack["part"].replace("8ddupe", "8dr")
        operands[1:] = [
            f"{operand}.{part}" if re.fullmatch(r"ra\d+|r4", operand) and part != "32" else operand
            for operand in operands[1:]
        ]
    elif suffix and (pack := _PACK.fullmatch(suffix)) and operands:
        part = pack["part"].replace("8ddupe", "8abcd").replace("32", "") + "s" * bool(pack["clamp"])
        operands[0] += f".{part}" if part else ""
    elif suffix:
        name = f"{name}.{suffix}"
    if match["name"] == "nop":
        return "nop"
    if match["name"] in ONE_OPERAND:
        operands = operands[:2]
    if rotation:
        operands[1:] = [f"{operand} >> {rotation}" for operand in operands[1:]]
    return f"{name}{flags} {', '.join(operands)}"

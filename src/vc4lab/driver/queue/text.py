"""Commands and blocks as lines that can be read and edited, and read back to the same bytes.

    draw mode=triangles start=0 count=36 … pipe_state=0x4100040 shader_state=0x4100080 indexed
    clear framebuffer=0x4100000 buffers=0x5 color=[0.1, 0.2, 0.3, 1.0] depth=1.0

A field that is not named has its default; a flag is named if it is set. With `names`, as captures
have it, what a field refers to is named: `resource=resource-5 pipe_state=pipe_state-2`.
"""

from __future__ import annotations

import re
import struct
from enum import IntEnum
from typing import Any

import numpy as np

from vc4lab.driver.queue.commands import NAMES, QueueCommand
from vc4lab.mesa.protocol.fields import Malformed, Spec
from vc4lab.mesa.protocol.payload import Payload

LONGEST_CHOICE = 400
"""Characters of an enumeration's names that a message lists."""
_PART = re.compile(r"\s*(\w+)(?:=(\[[^\]]*\]|\S+))?")


def command_text(command: QueueCommand, *, names: bool = False) -> str:
    """One line; `parse_command` gives the command back."""
    return " ".join([command.name, *payload_words(command, names=names)])


def payload_words(payload: Payload, *, names: bool = False) -> list[str]:
    """`name=value` of each field that differs from its default."""
    default = type(payload)()
    words = []
    for name, spec in payload.specs.items():
        value = getattr(payload, name)
        if value == getattr(default, name):
            continue
        if names and spec.ref:
            words.append(f"{name}={ref_text(spec.ref, value)}")
        else:
            words.append(name if spec.is_flag else f"{name}={value_words(value, spec)}")
    return words


def ref_text(kind: str, number: int) -> str:
    """How something beside the queue is named."""
    return f"{kind}-{number}"


def parse_ref(kind: str, text: str) -> int:
    """Its number. Raises ValueError."""
    before, minus, number = text.rpartition("-")
    if before != kind or not minus or not number.isascii() or not 0 < len(number) < 10:
        raise ValueError(text)
    if not number.isdigit() or not int(number):
        raise ValueError(text)
    return int(number)


def parse_command(line: str, *, names: bool = False) -> QueueCommand:
    """The command of a line. Raises Malformed, which names the word that is wrong."""
    name, _, rest = line.strip().partition(" ")
    declared = NAMES.get(name)
    if declared is None:
        raise Malformed(f"there is no command {name!r}: {', '.join(NAMES)}")
    made: QueueCommand = parse_payload(declared, rest, names=names)
    return made


def parse_payload(declared: type[Any], text: str, *, names: bool = False) -> Any:
    """A payload of its words. Raises Malformed."""
    values: dict[str, Any] = {}
    position = 0
    text = text.rstrip()
    while position < len(text):
        found = _PART.match(text, position)
        if found is None:
            raise Malformed(f"{text[position:].strip()!r} is no name=value")
        position = found.end()
        name, value = found.groups()
        spec = declared.specs.get(name)
        if spec is None:
            raise Malformed(f"{name!r} is none of {', '.join(declared.specs)}")
        if spec.is_flag != (value is None):
            raise Malformed(f"{name!r} has {'no value' if spec.is_flag else 'a value'}")
        values[name] = True if value is None else parse_value(name, value, spec, names=names)
    try:
        made = declared(**values)
        made.encode()
    except (ValueError, OverflowError, struct.error) as error:
        raise Malformed(f"{declared.__name__}: {error}") from None
    return made


def value_words(value: Any, spec: Spec) -> str:
    """A field's value; `parse_value` gives it back."""
    if isinstance(value, IntEnum):
        return str(value)
    if isinstance(value, tuple):
        return f"[{', '.join(_item(one, spec) for one in value)}]"
    return _item(value, spec)


def _item(value: Any, spec: Spec) -> str:
    if isinstance(value, Payload):
        return f"({' '.join(payload_words(value))})"
    if isinstance(value, float):
        return real_text(value, single=spec.form != "d")
    return f"0x{value:x}" if spec.hex else str(value)


def real_text(value: float, *, single: bool) -> str:
    """The shortest number that is this single or double."""
    return str(np.float32(value)) if single else repr(value)


def parse_value(name: str, text: str, spec: Spec, *, names: bool = False) -> Any:
    """The value of a field. Raises Malformed."""
    try:
        if names and spec.ref:
            return parse_ref(spec.ref, text)
        if spec.form == "n":
            return _items(text, spec)
        if spec.enum is not None:
            return next(one for one in spec.enum if str(one) == text)
        return float(text) if spec.form in "fd" else int(text, 0)
    except (ValueError, StopIteration):
        choices = f": {', '.join(map(str, spec.enum))}" if spec.enum is not None else ""
        short = choices if len(choices) < LONGEST_CHOICE else ""
        raise Malformed(f"{name}={text[:60]}: not a value that it can have{short}") from None


def _items(text: str, spec: Spec) -> tuple[Any, ...]:
    if not (text.startswith("[") and text.endswith("]")):
        raise ValueError(text)
    parts = [part.strip() for part in text[1:-1].split(",") if part.strip()]
    if spec.count >= 0 and len(parts) != spec.count:
        raise ValueError(text)
    if not isinstance(spec.item, str):
        return tuple(parse_payload(spec.item, part.strip("()")) for part in parts)
    convert = float if spec.item == "f" else lambda part: int(part, 0)
    return tuple(convert(part) for part in parts)

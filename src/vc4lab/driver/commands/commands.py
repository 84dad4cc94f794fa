"""The commands of the queue: what lies in GPU memory, what is printed, what is parsed.

A command is a word `number | words << 8` and its words. Draws and blits refer to blocks of state
by their addresses (`blocks.py`), all refer to resources by numbers that the driver gives. One
declaration serves all three forms. A field with `ref` names
something that lies beside the queue; captures have numbers of their own there.

Lines can be read and edited, and read back to the same bytes.

    draw mode=triangles start=0 count=36 … pipe_state=0x4100040 shader_state=0x4100080 indexed
    clear framebuffer=0x4100000 buffers=0x5 color=[0.1, 0.2, 0.3, 1.0] depth=1.0

A field that is not named has its default; a flag is named if it is set. With `names`, as captures
have it, what a field refers to is named: `resource=resource-5 pipe_state=pipe_state-2`.
"""

from __future__ import annotations

import re
import struct
from enum import IntEnum
from typing import Any, ClassVar

import numpy as np

from vc4lab.bounded import Bounded
from vc4lab.mesa.protocol.codes import Filter, Primitive
from vc4lab.mesa.protocol.fields import WORD, Malformed, Spec, array, bits, double, flag, signed, word
from vc4lab.mesa.protocol.formats import Format
from vc4lab.mesa.protocol.payload import Payload
from vc4lab.mesa.protocol.state_commands import Scissor
from vc4lab.mesa.protocol.work_commands import DrawVbo

COMMANDS: dict[int, type[QueueCommand]] = {}
"""The declarations by number."""
NAMES: dict[str, type[QueueCommand]] = {}
"""The declarations by name."""


class QueueCommand(Payload):
    """Base of all commands."""

    number: ClassVar[int] = 0
    name: ClassVar[str] = ""

    def __init_subclass__(cls, *, number: int, name: str, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.number, cls.name = number, name
        COMMANDS[number] = NAMES[name] = cls

    def encode_command(self) -> bytes:
        """The command with its header."""
        data = self.encode()
        return (self.number | len(data) // WORD << 8).to_bytes(WORD, "little") + data


class Draw(QueueCommand, number=1, name="draw"):
    """Draws primitives: `draw_info`, and where `pipe_state` and `shader_state` are."""

    mode: Primitive = word(0, enum=Primitive)
    start: int = word(1, doc="first vertex; of indices, the index buffer's offset counts")
    count: int = word(2)
    instances: int = word(3)
    start_instance: int = word(4)
    index_bias: int = signed(5)
    restart_index: int = word(6, hex=True)
    min_index: int = word(7)
    max_index: int = word(8)
    indexed: bool = flag(9, 0)
    primitive_restart: bool = flag(9, 1)
    vertices: int = word(
        10,
        hex=True,
        ref="offsets",
        doc="address of a block: offsets of the vertex buffers, after them of the index buffer if "
        "there is one, in place of pipe_state's; 0: those",
    )
    pipe_state: int = word(11, hex=True, ref="pipe_state", doc="address of a block")
    shader_state: int = word(12, hex=True, ref="shader_state", doc="address of a block")


def draw(asked: DrawVbo, vertices: int, pipe_state: int, shader_state: int) -> Draw:
    """Gallium's draw, with the addresses of its blocks."""
    return Draw(
        mode=asked.mode,
        start=asked.start,
        count=asked.count,
        instances=asked.instance_count,
        start_instance=asked.start_instance,
        index_bias=asked.index_bias,
        restart_index=asked.restart_index,
        min_index=asked.min_index,
        max_index=asked.max_index,
        indexed=bool(asked.indexed),
        primitive_restart=bool(asked.primitive_restart),
        vertices=vertices,
        pipe_state=pipe_state,
        shader_state=shader_state,
    )


def draw_of(asked: bytes, vertices: int, pipe_state: int, shader_state: int) -> Draw:
    """The command of a draw by the words of Gallium's draw."""
    key = asked, vertices, pipe_state, shader_state
    known = _known.get(key)
    if known is None:
        known = _known[key] = draw(DrawVbo.decode(asked, 0, DrawVbo.lengths[0]), *key[1:])
    assert isinstance(known, Draw)
    return known


class Clear(QueueCommand, number=2, name="clear"):
    """Fills the surfaces of a frame buffer."""

    framebuffer: int = word(0, hex=True, ref="framebuffer", doc="address of a block")
    buffers: int = word(1, hex=True, doc="depth 1, stencil 2, colour buffer i 4 << i")
    color: tuple[float, ...] = array(2, "f", 4)
    depth: float = double(6)
    stencil: int = word(8)


class Copy(QueueCommand, number=3, name="copy"):
    """Copies a box of texels as they are."""

    target: int = word(0, ref="resource", doc="resource")
    target_level: int = word(1)
    place: tuple[int, ...] = array(2, "u", 3, doc="x y z")
    source: int = word(5, ref="resource", doc="resource")
    source_level: int = word(6)
    box: tuple[int, ...] = array(7, "u", 6, doc="x y z width height depth")


class Blit(QueueCommand, number=4, name="blit"):
    """Copies a box of texels, scaled and converted."""

    mask: int = bits(0, 7, 0, hex=True, doc="r g b a 15, depth 16, stencil 32")
    filter: Filter = bits(0, 9, 8, enum=Filter)
    scissor_enable: bool = flag(0, 10)
    render_condition_enable: bool = flag(0, 11)
    alpha_blend: bool = flag(0, 12)
    scissor: tuple[Scissor, ...] = array(1, Scissor, 1)
    target: int = word(3, ref="resource", doc="resource")
    target_level: int = word(4)
    target_format: Any = word(5, enum=Format)
    target_box: tuple[int, ...] = array(6, "i", 6, doc="x y z width height depth")
    source: int = word(12, ref="resource", doc="resource")
    source_level: int = word(13)
    source_format: Any = word(14, enum=Format)
    source_box: tuple[int, ...] = array(15, "i", 6, doc="x y z width height depth")


class Upload(QueueCommand, number=5, name="upload"):
    """Stores a box from rows in memory."""

    resource: int = word(0, ref="resource")
    level: int = word(1)
    box: tuple[int, ...] = array(2, "u", 6, doc="x y z width height depth")
    address: int = word(8, hex=True, ref="data", doc="of the rows, without padding")


class ReadBack(QueueCommand, number=6, name="readback"):
    """Stores a box to rows in memory."""

    resource: int = word(0, ref="resource")
    level: int = word(1)
    box: tuple[int, ...] = array(2, "u", 6, doc="x y z width height depth")
    address: int = word(8, hex=True, ref="data", doc="of the rows, without padding")


class Sync(QueueCommand, number=7, name="sync"):
    """Waits until every block has said that its last work is done."""


class Dump(QueueCommand, number=8, name="dump"):
    """Shows a picture: a frame ends."""

    resource: int = word(0, ref="resource")


class Halt(QueueCommand, number=9, name="halt"):
    """Stops all blocks: the queue ends."""


def command_at(data: Any, start: int) -> tuple[QueueCommand, int]:
    """The command at a byte of the queue's bytes, and where the next one is. Raises Malformed."""
    if start + WORD > len(data):
        raise Malformed(f"the queue ends at byte {start} without a halt")
    (header,) = _HEADER.unpack_from(data, start)
    declared = COMMANDS.get(header & 0xFF)
    words = header >> 8
    if declared is None:
        raise Malformed(f"there is no command {header & 0xFF} (byte {start})")
    after = start + WORD * (1 + words)
    if after > len(data):
        raise Malformed(f"{declared.name} (byte {start}) has {words} words, more than the queue")
    whole = bytes(data[start:after])
    known = _known.get(whole)
    if known is None:
        known = declared.decode(whole, WORD, words)
        _known[whole] = known
    return known, after


_HEADER = struct.Struct("<I")
_MOST_KNOWN = 1 << 13
_known: Bounded[bytes | tuple[bytes, int, int, int], QueueCommand] = Bounded(_MOST_KNOWN)
"""Commands by their bytes, or by what a draw is made of: frames repeat, and a decoded command never
changes."""


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

"""Declares the base of the commands of the virgl stream, and those about state objects.

A command is a word `number | object << 8 | length << 16` and `length` words. Those with `needs` are
sent only to a server whose capabilities have it, which ours have not. Source: Mesa 22.3,
src/virtio/virtio-gpu/virgl_protocol.h and src/gallium/drivers/virgl/virgl_encode.c.
"""

from __future__ import annotations

from typing import Any, ClassVar

from vc4lab.mesa.protocol.codes import ObjectKind
from vc4lab.mesa.protocol.fields import WORD, Malformed, of_header, rest, word
from vc4lab.mesa.protocol.objects import StateObject, decode_object
from vc4lab.mesa.protocol.payload import Payload

COMMANDS: dict[int, type[Command]] = {}
"""The declarations by number."""


class Command(Payload):
    """Base of all commands.

    Class attributes
    ----------------
    number, name
        As the protocol has them.
    needs
        The capability without which Mesa sends none; "" if it always may.
    """

    number: ClassVar[int] = -1
    name: ClassVar[str] = ""
    needs: ClassVar[str] = ""

    def __init_subclass__(cls, *, number: int, name: str, needs: str = "", **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.number, cls.name, cls.needs = number, name, needs
        if name:
            COMMANDS[number] = cls

    @classmethod
    def decode_command(cls, _kind: int, data: Any, start: int, words: int) -> Command:
        """The command with these words. `_kind`: bits 15:8 of its header. Raises Malformed."""
        return cls.decode(data, start, words)

    @property
    def kind(self) -> int:
        """Bits 15:8 of the header."""
        return 0

    def encode_command(self) -> bytes:
        """The command with its header."""
        data = self.encode()
        header = self.number | self.kind << 8 | len(data) // WORD << 16
        return header.to_bytes(WORD, "little") + data


class Nop(Command, number=0, name="NOP"):
    """Nothing."""

    words: tuple[int, ...] = rest(0, "u")


class CreateObject(Command, number=1, name="CREATE_OBJECT"):
    """Makes a state object; its kind is in the header, its state in the words from 1 on."""

    handle: int = word(0)
    state: StateObject = rest(1, "u", doc="of the object")

    @classmethod
    def decode_command(cls, kind: int, data: Any, start: int, words: int) -> Command:
        if words < 1:
            raise Malformed("it has no words, but must have a handle")
        handle = int.from_bytes(data[start : start + WORD], "little")
        return cls(handle, decode_object(kind, data, start + WORD, words - 1))

    @property
    def kind(self) -> int:
        return self.state.kind

    def encode(self) -> bytes:
        return self.handle.to_bytes(WORD, "little") + self.state.encode()

    def _parts(self) -> list[str]:
        return [f"{self.state.kind.name} handle={self.handle}", self.state.text()]


class _OfObject(Command, number=-1, name=""):
    """Base of commands about an object, whose kind is in the header."""

    object: ObjectKind = of_header(ObjectKind)
    handle: int = word(0)

    @classmethod
    def decode_command(cls, kind: int, data: Any, start: int, words: int) -> Command:
        made = cls.decode(data, start, words)
        known = ObjectKind._value2member_map_.get(kind)
        if known is None:
            raise Malformed(f"there is no object of kind {kind}")
        made.__dict__["object"] = known
        return made

    @property
    def kind(self) -> int:
        return self.object


class BindObject(_OfObject, number=2, name="BIND_OBJECT"):
    """Makes an object the current one of its kind; handle 0: none is."""


class DestroyObject(_OfObject, number=3, name="DESTROY_OBJECT"):
    """The client needs an object no longer."""

"""The messages of vtest, as Mesa 22.3 sends them: all that a client says.

A message is two words, its length and its number, and a payload. The length counts the words of the
payload except where `length` says otherwise. Source: Mesa 22.3, src/virtio/vtest/vtest_protocol.h
and virgl_vtest_socket.c.
"""

from __future__ import annotations

from typing import Any, ClassVar

from vc4lab.mesa.protocol.codes import Target, bind_text
from vc4lab.mesa.protocol.fields import rest, word
from vc4lab.mesa.protocol.formats import Format
from vc4lab.mesa.protocol.payload import Payload

MESSAGES: dict[int, type[Message]] = {}
"""The declarations by number."""


class Message(Payload):
    """Base of all messages.

    Class attributes
    ----------------
    number, name
        As the protocol has them.
    length
        The unit of the header's length: words (of the payload), bytes (of it), or words of the
        payload and of data: `data` says how many bytes of data come after it.
    versions
        The versions of the protocol in which a client sends it.
    reply
        The server's answer.
    """

    number: ClassVar[int] = -1
    name: ClassVar[str] = ""
    length: ClassVar[str] = "words"
    versions: ClassVar[tuple[int, ...]] = (0, 2)
    reply: ClassVar[str] = ""

    def __init_subclass__(
        cls,
        *,
        number: int,
        name: str,
        length: str = "words",
        versions: tuple[int, ...] = (0, 2),
        reply: str = "",
        **kwargs: Any,
    ) -> None:
        super().__init_subclass__(**kwargs)
        cls.number, cls.name, cls.length = number, name, length
        cls.versions, cls.reply = versions, reply
        MESSAGES[number] = cls

    def data_bytes(self) -> int:
        """Bytes that follow the payload without being counted among its words."""
        return 0

    def _parts(self) -> list[str]:
        texts = super()._parts()
        bind = getattr(self, "bind", None)
        if bind is None:
            return texts
        return [f"bind={bind_text(bind)}" if one.startswith("bind=") else one for one in texts]


class GetCaps(Message, number=1, name="GET_CAPS", reply="309, 1; 308 bytes"):
    """Asks for the first part of the capabilities."""


class ResourceCreate(Message, number=2, name="RESOURCE_CREATE", versions=(0,)):
    """A buffer or a texture whose contents come inline."""

    handle: int = word(0)
    target: Target = word(1, enum=Target)
    format: Any = word(2, enum=Format)
    bind: int = word(3)
    width: int = word(4)
    height: int = word(5)
    depth: int = word(6)
    array_size: int = word(7)
    last_level: int = word(8)
    nr_samples: int = word(9)


class ResourceUnref(Message, number=3, name="RESOURCE_UNREF"):
    """The client needs a resource no longer."""

    handle: int = word(0)


class TransferGet(Message, number=4, name="TRANSFER_GET", versions=(0,), reply="the bytes, without a header"):
    """Asks for the bytes of a box."""

    handle: int = word(0)
    level: int = word(1)
    stride: int = word(2)
    layer_stride: int = word(3)
    x: int = word(4)
    y: int = word(5)
    z: int = word(6)
    width: int = word(7)
    height: int = word(8)
    depth: int = word(9)
    data_size: int = word(10)


class TransferPut(Message, number=5, name="TRANSFER_PUT", length="words and data", versions=(0,)):
    """The bytes of a box, which follow without padding."""

    handle: int = word(0)
    level: int = word(1)
    stride: int = word(2)
    layer_stride: int = word(3)
    x: int = word(4)
    y: int = word(5)
    z: int = word(6)
    width: int = word(7)
    height: int = word(8)
    depth: int = word(9)
    data_size: int = word(10)

    def data_bytes(self) -> int:
        return self.data_size


class SubmitCmd(Message, number=6, name="SUBMIT_CMD"):
    """Commands of the stream."""

    commands: bytes = rest(0, "s")


class ResourceBusyWait(Message, number=7, name="RESOURCE_BUSY_WAIT", reply="1, 7; busy"):
    """Asks whether a resource is in use; with flag 1 until it is not. The client waits."""

    handle: int = word(0)
    flags: int = word(1)


class CreateRenderer(Message, number=8, name="CREATE_RENDERER", length="bytes"):
    """The first message: the program's name, with a NUL."""

    program: bytes = rest(0, "s")

    @property
    def program_name(self) -> str:
        """The name as text."""
        name = self.program.partition(b"\0")[0]
        return "".join(c if c.isprintable() else "?" for c in name.decode(errors="replace"))

    def _parts(self) -> list[str]:
        return [f"program={self.program_name}"]


class GetCaps2(Message, number=9, name="GET_CAPS2", reply="1377, 2; 1376 bytes"):
    """Asks for all capabilities."""


class PingProtocolVersion(
    Message, number=10, name="PING_PROTOCOL_VERSION", reply="0, 10; version 0 is silent"
):
    """Finds out whether the server knows versions."""


class ProtocolVersion(Message, number=11, name="PROTOCOL_VERSION", versions=(2,), reply="1, 11; version"):
    """The highest version that the client knows."""

    version: int = word(0)


class ResourceCreate2(
    Message,
    number=12,
    name="RESOURCE_CREATE2",
    versions=(2,),
    reply="one byte with a descriptor, if bytes are not 0",
):
    """A buffer or a texture whose contents come through shared memory."""

    handle: int = word(0)
    target: Target = word(1, enum=Target)
    format: Any = word(2, enum=Format)
    bind: int = word(3)
    width: int = word(4)
    height: int = word(5)
    depth: int = word(6)
    array_size: int = word(7)
    last_level: int = word(8)
    nr_samples: int = word(9)
    data_size: int = word(10, doc="of the shared memory")


class TransferGet2(Message, number=13, name="TRANSFER_GET2", versions=(2,)):
    """Copies a box into the shared memory."""

    handle: int = word(0)
    level: int = word(1)
    x: int = word(2)
    y: int = word(3)
    z: int = word(4)
    width: int = word(5)
    height: int = word(6)
    depth: int = word(7)
    data_size: int = word(8)
    offset: int = word(9, doc="of the box in the shared memory")


class TransferPut2(Message, number=14, name="TRANSFER_PUT2", length="words and absent data", versions=(2,)):
    """Copies a box out of the shared memory. The length counts data that do not follow."""

    handle: int = word(0)
    level: int = word(1)
    x: int = word(2)
    y: int = word(3)
    z: int = word(4)
    width: int = word(5)
    height: int = word(6)
    depth: int = word(7)
    data_size: int = word(8)
    offset: int = word(9, doc="of the box in the shared memory")

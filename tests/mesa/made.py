"""Messages and commands that the tests of the server make."""

from tests.mesa.conftest import RawClient

from vc4lab.mesa.protocol import messages, objects, state_commands
from vc4lab.mesa.protocol.codes import Stage, Target
from vc4lab.mesa.protocol.command import CreateObject
from vc4lab.mesa.protocol.formats import Format

BGRA = Format.B8G8R8A8_UNORM


def texture(handle: int, size: int, width: int = 8, height: int = 4, levels: int = 1, **changes):
    fields = {
        "target": Target.TEXTURE_2D,
        "format": BGRA,
        "bind": 2,
        "depth": 1,
        "array_size": 1,
        "last_level": levels - 1,
    }
    fields |= changes
    return messages.ResourceCreate2(handle=handle, width=width, height=height, data_size=size, **fields)


def buffer(handle: int, size: int) -> messages.ResourceCreate2:
    return texture(handle, size, size, 1, target=Target.BUFFER, format=Format.R8_UNORM, bind=16)


def shader(handle: int, stage: Stage, text: bytes) -> CreateObject:
    return CreateObject(handle, objects.ShaderPart(stage, len(text), False, 10, 0, text))


def frame_buffer(client: RawClient) -> None:
    """A colour buffer 5 and a depth buffer 6 with surfaces 15 and 16."""
    client.send(texture(5, 128))
    client.colour = client.memory(128)  # type: ignore[attr-defined]
    client.send(texture(6, 128, format=Format.S8_UINT_Z24_UNORM, bind=1))
    client.depth = client.memory(128)  # type: ignore[attr-defined]
    client.submit(
        CreateObject(15, objects.Surface(5, BGRA)),
        CreateObject(16, objects.Surface(6, Format.S8_UINT_Z24_UNORM)),
        state_commands.SetFramebufferState(1, 16, (15,)),
    )


def read(client: RawClient, handle: int) -> None:
    client.send(messages.TransferGet2(handle, 0, 0, 0, 0, 8, 4, 1, 128, 0))
    client.wait()
